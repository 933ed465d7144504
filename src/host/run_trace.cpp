#include "host/run_trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "base/log.h"
#include "base/status.h"

namespace simpler::host {
namespace {

std::int64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void emit_anchor_once() {
  if (!log::claim_clock_anchor()) return;
  log::host(log::Level::kTiming, "clock_anchor", "[CLOCK_ANCHOR] v=1 pid=%d mono_ns=%lld wall_ns=%lld",
            static_cast<int>(getpid()), static_cast<long long>(clock_ns(CLOCK_MONOTONIC)),
            static_cast<long long>(clock_ns(CLOCK_REALTIME)));
}

void emit_span(const RunTrace& trace, int depth, const char* name, std::int64_t begin, std::int64_t end,
               const char* attributes) {
  if (end <= begin) return;
  log::host(log::Level::kTiming, "emit_host_span",
            "[STRACE] v=1 pid=%d tid=%d inv=%llu hid=%llx depth=%d name=%s ts=%lld dur=%lld%s%s",
            static_cast<int>(getpid()), static_cast<int>(syscall(SYS_gettid)),
            static_cast<unsigned long long>(trace.identity.run_epoch),
            static_cast<unsigned long long>(trace.callable_hash), depth, name, static_cast<long long>(begin),
            static_cast<long long>(end - begin), *attributes != '\0' ? " " : "", attributes);
}

}  // namespace

std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

void emit_run_trace(const RunTrace& trace, std::uint64_t wall_ns, const PhaseTimes& times) {
  if (!log::enabled(log::Level::kTiming)) return;
  // Names of the phases below the wall, by abi::Phase.
  static constexpr const char* kPhaseNames[abi::kPhases] = {
      "",     "preamble", "so_load",         "graph_build", "post_orch",
      "orch", "sched",    "config_validate", "arena_wire",  "sm_reset",
  };
  emit_anchor_once();
  char text[192];
  std::snprintf(text, sizeof text, "run_id=%llu dispatch_id=%llu slot_id=%d generation=%llu run_epoch=%llu",
                static_cast<unsigned long long>(trace.run_id),
                static_cast<unsigned long long>(trace.identity.dispatch_id), trace.identity.slot,
                static_cast<unsigned long long>(trace.identity.generation),
                static_cast<unsigned long long>(trace.identity.run_epoch));
  emit_span(trace, 0, "chip.run", trace.prepared_ns, trace.released_ns, text);
  emit_span(trace, 1, "chip.run.bind", trace.prepared_ns, trace.bound_ns, "");
  emit_span(trace, 1, "chip.run.runner_run", trace.launched_ns, trace.collected_ns, "");
  emit_span(trace, 1, "chip.run.validate", trace.collected_ns, trace.finished_ns, "");
  emit_span(trace, 1, "chip.run.claim_release", trace.finished_ns, trace.released_ns, "");
  emit_span(trace, 2, "chip.run.runner_run.device_wall", 0, static_cast<std::int64_t>(wall_ns), "clk=dev");
  const auto emit_device = [&](const char* name, const Span& span) {
    std::snprintf(text, sizeof text, "chip.run.runner_run.device_wall.%s", name);
    emit_span(trace, 3, text, span.start_ns, span.start_ns + span.length_ns, "clk=dev");
  };
  for (std::size_t p = 1; p < times.phases.size(); ++p) emit_device(kPhaseNames[p], times.phases[p]);
  for (std::size_t slot = 0; slot < times.slots.size(); ++slot)
    emit_device(format("task_slot_%zu", slot).c_str(), times.slots[slot]);
}

}  // namespace simpler::host
