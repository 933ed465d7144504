// PhaseTimes: when the phases of a run began and ended on the device, read back from its buffer.
//
// What      The buffer exists if traces are wanted: records of level TIMING are shown, and SIMPLER_DEVICE_STRACE_ENABLE is
//           not 0. The host arms it before each launch and reads it after the run. Each phase is reduced over the device's
//           threads: first start, last end. Times count from the first start of any phase but the run itself.
// Errors    Warnings; a run without times is no failed run.
// Threads   The runner serialises calls.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "abi/phase_buffer.h"
#include "executor/arch_profile.h"
#include "host/device_memory.h"

namespace simpler::host {

struct Span {
  std::int64_t start_ns = 0;
  std::int64_t length_ns = 0;  // 0: it did not take place
};

struct PhaseTimes {
  std::array<Span, abi::kPhases> phases{};  // by abi::Phase; the start of kRunWall is 0
  std::array<Span, abi::kPhaseSlots> slots{};
};

// From the buffer's bytes; `threads` and `counter_hz` as on the device.
PhaseTimes reduce_phases(const void* buffer, int threads, std::uint64_t counter_hz);

bool device_phases_wanted();

class PhaseBuffer {
 public:
  PhaseBuffer(Allocator& allocator, const executor::ArchProfile& arch) : allocator_(allocator), arch_(arch) {}
  // Its device address; 0 if times are not wanted or not possible.
  std::uint64_t ensure();
  // Everything unset, for the run that is launched next; false if that is not possible: then it must not be used.
  bool arm();
  PhaseTimes read(std::uint64_t armed);
  void release() { static_cast<void>(block_.release()); }

 private:
  Allocator& allocator_;
  const executor::ArchProfile& arch_;
  DeviceBlock block_;
  std::vector<char> unset_;  // what arm() writes
};

}  // namespace simpler::host
