// A process, named so that nobody who gets the same number later is taken for it.
#pragma once
#include <cstdint>

namespace simpler::host {

struct ProcessId {
  std::uint32_t pid = 0;
  std::uint64_t started = 0;  // in clock ticks since the system's start; 0: not known

  static ProcessId self();
  bool alive() const;  // a process that ended and was not waited for yet is not
};

}  // namespace simpler::host
