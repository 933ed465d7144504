#include "host/launch_shape.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/log.h"

namespace simpler::host {
namespace {

constexpr int kGroupCpus = 4;  // control processors that share a cache
constexpr int kGroups = 2;     // of a chip; higher numbers repeat them

int group_of(int cpu) { return cpu % (kGroupCpus * kGroups) / kGroupCpus; }

std::vector<int> choose_cpus(const std::vector<int>& usable, int count) {
  for (int group = kGroups - 1; group >= 0; --group) {
    std::vector<int> members;
    for (const int cpu : usable) {
      if (group_of(cpu) == group) members.push_back(cpu);
    }
    if (static_cast<int>(members.size()) < count) continue;
    members.resize(static_cast<std::size_t>(count));
    return members;
  }
  if (count <= kGroupCpus) {  // more never fit into one
    log::host(log::Level::kWarn, __func__,
              "no group of control processors has %d free ones: threads spread over groups", count);
  }
  return {usable.begin(), usable.begin() + count};
}

}  // namespace

Status check_thread_count(int requested, const executor::ArchProfile& arch, const char* platform) {
  if (requested == 0 || (requested >= 2 && requested <= arch.device_threads)) return Status();
  return fail(ErrorKind::kValue, format("aicpu_thread_num=%d is not possible on %s: 0 for the default, or 2..%d",
                                        requested, platform, arch.device_threads));
}

int resolve_thread_count(int requested, int usable, int standard) {
  if (usable < 2) return -1;
  const int wanted = requested > 0 ? requested : standard;
  if (wanted > usable) {
    log::host(log::Level::kWarn, __func__, "%d control threads are asked for and %d are usable: the run gets %d",
              wanted, usable, usable);
  }
  return std::min(wanted, usable);
}

int resolve_blocks(int block_limit) { return block_limit < 1 ? -1 : block_limit; }

Status resolve_launch_shape(int requested_threads, int block_limit, std::uint64_t cpu_mask,
                            const executor::ArchProfile& arch, abi::LaunchShape* shape) {
  const int blocks = resolve_blocks(block_limit);
  if (blocks < 0) return fail(ErrorKind::kDevice, "the device offers no cluster to run on");
  std::vector<int> usable;
  for (int cpu = 0; cpu < 64; ++cpu) {
    if ((cpu_mask >> cpu & 1) != 0) usable.push_back(cpu);
  }
  const bool known = !usable.empty();
  const int threads = resolve_thread_count(
      requested_threads, known ? static_cast<int>(usable.size()) : arch.device_threads, arch.device_threads);
  if (threads < 0)
    return fail(ErrorKind::kDevice, format("%d control processors are usable; a run needs 2", std::popcount(cpu_mask)));
  *shape = {};
  shape->worker_count = blocks * (1 + executor::kVectorLanes);
  shape->thread_count = threads;
  shape->launch_count = threads;
  if (!known) return Status();
  const std::vector<int> cpus = choose_cpus(usable, threads);
  shape->launch_count = std::min(static_cast<int>(usable.size()), arch.launch_threads);
  shape->allowed_count = threads;
  std::copy(cpus.begin(), cpus.end(), shape->allowed_cpus);
  return Status();
}

}  // namespace simpler::host
