#include "host/run_trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "base/log.h"

namespace simpler::host {
namespace {

std::int64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void emit_anchor_once() {
  static std::atomic<pid_t> anchored{0};  // by process: a forked child has its own
  const pid_t self = getpid();
  if (anchored.exchange(self, std::memory_order_relaxed) == self) return;
  log::host(log::Level::kTiming, "clock_anchor", "[CLOCK_ANCHOR] v=1 pid=%d mono_ns=%lld wall_ns=%lld",
            static_cast<int>(self), static_cast<long long>(clock_ns(CLOCK_MONOTONIC)),
            static_cast<long long>(clock_ns(CLOCK_REALTIME)));
}

void emit_span(const RunTrace& trace, int depth, const char* name, std::int64_t begin, std::int64_t end,
               const char* attributes) {
  if (end <= begin) return;
  log::host(log::Level::kTiming, "emit_host_span",
            "[STRACE] v=1 pid=%d tid=%d inv=%llu hid=%llx depth=%d name=%s ts=%lld dur=%lld%s%s",
            static_cast<int>(getpid()), static_cast<int>(syscall(SYS_gettid)),
            static_cast<unsigned long long>(trace.invocation), static_cast<unsigned long long>(trace.callable_hash),
            depth, name, static_cast<long long>(begin), static_cast<long long>(end - begin),
            *attributes != '\0' ? " " : "", attributes);
}

}  // namespace

std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

void emit_run_trace(const RunTrace& trace, const abi::RunResult& result) {
  if (!log::enabled(log::Level::kTiming)) return;
  emit_anchor_once();
  emit_span(trace, 0, "chip.run", trace.prepared_ns, trace.finished_ns, "");
  emit_span(trace, 1, "chip.run.bind", trace.prepared_ns, trace.bound_ns, "");
  emit_span(trace, 1, "chip.run.runner_run", trace.launched_ns, trace.collected_ns, "");
  emit_span(trace, 2, "chip.run.runner_run.device_wall", 0, static_cast<std::int64_t>(result.wall_ns), "clk=dev");
  for (int slot = 0; slot < MAX_TASK_TIMING_SLOTS; ++slot) {
    const abi::TimingWindow& window = result.timing_slots[slot];
    char name[64];
    std::snprintf(name, sizeof name, "chip.run.runner_run.device_wall.task_slot_%d", slot);
    emit_span(trace, 3, name, window.begin_ns, window.end_ns, "clk=dev");
  }
}

}  // namespace simpler::host
