// Trace lines of a run: one [STRACE] line per span, in the log at level TIMING, for tools that read logs.
//
// What      chip.run > bind, validate, claim_release, runner_run > device_wall > phases, task_slot_<n>. Times are
//           nanoseconds of the host's monotonic clock; spans of the device carry clk=dev and count from the run's
//           start. The first line of a process is preceded by a [CLOCK_ANCHOR] that ties the monotonic to the wall
//           clock.
// Threads   Any. Cost: nothing below the threshold; a line is one write.
#pragma once
#include <cstdint>

#include "host/admission.h"
#include "host/phase_times.h"

namespace simpler::host {

struct RunTrace {
  std::uint64_t run_id;
  RunIdentity identity;  // its run_epoch groups the spans of one run
  std::uint64_t callable_hash;
  std::int64_t prepared_ns, bound_ns, launched_ns, collected_ns, finished_ns, released_ns;  // monotonic clock
};

std::int64_t monotonic_ns();
void emit_run_trace(const RunTrace& trace, std::uint64_t wall_ns, const PhaseTimes& times);

}  // namespace simpler::host
