// Trace lines of a run: one [STRACE] line per span, in the log at level TIMING, for tools that read logs.
//
// What      chip.run > bind, runner_run > device_wall > task_slot_<n>. Times are nanoseconds of the host's monotonic clock;
//           spans of the device carry clk=dev and count from the run's start. The first line of a process is preceded by
//           a [CLOCK_ANCHOR] that ties the monotonic to the wall clock.
// Threads   Any. Cost: nothing below the threshold; a line is one write.
#pragma once
#include <cstdint>

#include "abi/run_image.h"

namespace simpler::host {

struct RunTrace {
  std::uint64_t invocation;  // groups the spans of one run
  std::uint64_t callable_hash;
  std::int64_t prepared_ns, bound_ns, launched_ns, collected_ns, finished_ns;  // monotonic clock
};

std::int64_t monotonic_ns();
void emit_run_trace(const RunTrace& trace, const abi::RunResult& result);

}  // namespace simpler::host
