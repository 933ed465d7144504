// The software device: a Driver table over this process's own memory and threads.
//
// What      Device memory is host memory with an allocation table: every copy and every free is checked against it.
//           A stream is a thread with an ordered queue. Kernels are shared objects, loaded as private copies. Device
//           programs are called in process.
// Lifetime  The table is valid while the object lives. Its destructor frees what was not freed.
// Threads   As Driver says.
#pragma once
#include <memory>

#include "driver/driver.h"

namespace simpler::driver {

struct SoftChip {
  int clusters;
  int threads;
};

class SoftDriver {
 public:
  explicit SoftDriver(SoftChip chip);
  ~SoftDriver();
  const Driver& table() const;
  std::size_t live_allocations() const;
  std::size_t live_bytes() const;  // as requested

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  Driver table_;
};

}  // namespace simpler::driver
