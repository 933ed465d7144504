// Time limits of a device, from the environment.
//
//   SIMPLER_OP_EXECUTE_TIMEOUT_US    of one program on the cores
//   SIMPLER_STREAM_SYNC_TIMEOUT_MS   of waiting for a run
//   SIMPLER_SCHEDULER_TIMEOUT_MS     without progress in a run; what the device's program watches
//
// Order     scheduler < op < sync, and sync > scheduler + 1500 ms, or else the one that gives up first is not the one that
//           knows why. If a variable breaks it, op and sync are their defaults and the scheduler's is not forwarded.
// Errors    Text that is no number in range is ignored with a warning.
#pragma once
#include <cstdint>

namespace simpler::host {

struct Timeouts {
  std::uint64_t op_us = 45'000'000;  // 0: no limit
  std::int32_t sync_ms = 50'000;     // -1: no limit
  std::int32_t call_ms = 50'000;     // of a call of the device's program that is no run; not from the environment
  std::int32_t scheduler_ms = 0;     // for the device's program; 0: its own default
};

// A simulated device has no limit for operations that was not asked for, and waiting for a run has none: its program
// watches progress itself (with SIMPLER_STREAM_SYNC_TIMEOUT_MS as the limit of an orchestration), and a host that is busy
// with other things is not a device that hangs. So the order is not checked.
Timeouts resolve_timeouts(bool simulated);

}  // namespace simpler::host
