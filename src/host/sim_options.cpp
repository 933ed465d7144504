#include "host/sim_options.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/log.h"

namespace simpler::host {
namespace {

int usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

Status resolve(const char* option, int value, const char* variable, int most, int fallback, int* result) {
  if (value != 0) {
    if (value < 1 || value > most) {
      return fail(ErrorKind::kValue, format("%s=%d is out of range: 1..%d, or 0 for the default", option, value, most));
    }
    *result = value;
    return Status();
  }
  *result = fallback;
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return Status();
  char* end = nullptr;
  const long parsed = std::strtol(text, &end, 10);
  if (*end == '\0' && parsed >= 1 && parsed <= most) {
    *result = static_cast<int>(parsed);
  } else {
    log::host(log::Level::kWarn, __func__, "%s=%s is ignored: it must be a whole number in 1..%d", variable, text,
              most);
  }
  return Status();
}

}  // namespace

Status resolve_sim_options(const RunnerOptions& options, const executor::ArchProfile& arch, driver::SoftChip* chip) {
  chip->arch = arch.name;
  const int clusters = std::min(executor::kDefaultSimClusters, arch.clusters);
  if (Status status = resolve("sim_clusters", options.sim_clusters, "SIMPLER_SIM_CLUSTERS", arch.clusters, clusters,
                              &chip->clusters);
      !status.ok()) {
    return status;
  }
  return resolve("sim_threads", options.sim_threads, "SIMPLER_SIM_THREADS", kMaxSimThreads, usable_cpus(),
                 &chip->threads);
}

}  // namespace simpler::host
