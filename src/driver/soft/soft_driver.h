// The software device: a Driver table over this process's own memory and threads.
//
// What      Any number of devices, each with memory, streams, cores and control processors, none shared with another one.
//           Device memory is host memory with an allocation table: every copy and every free is checked against it.
//           A stream is an ordered queue. Kernels are shared objects, loaded as private copies. Programs of the control
//           processors are those of this library, called in process; their file is the text of builtin_program().
//           Launched cores stay busy until the program that is executed with the same arguments has ended.
// Reset     A device begins a new generation when its last reference goes, or by force: what was made before is gone, and
//           its handles answer kInvalidHandle. After a limit for operations passed, or a kernel did not return, the device
//           answers kDriverInternal to everything, until it is reset by force; while its program still runs, that fails
//           too, and the device with its memory, code and threads is left alone for good. On request the reset works even
//           then: the device begins anew, and only what the old generation had is left alone.
// Lifetime  The table is valid while the object lives. Its destructor frees what was not freed.
// Threads   As Driver says.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "driver/driver.h"

namespace simpler::driver {

struct SoftChip {
  int clusters;
  int threads;                     // of the host, that run kernels
  std::string_view arch = "a2a3";  // of executor::kArchProfiles
};

struct SoftOptions {
  std::size_t guard_bytes = 0;    // on both sides of each allocation, checked when it is freed
  std::size_t byte_limit = 0;     // of each device; 0: what the host has
  std::uint32_t dma_engines = 0;  // bit n: engine n
  bool always_resets = false;     // as a board does: see Reset
};

// What is alive, over all devices.
struct SoftCensus {
  std::size_t allocations = 0, bytes = 0;  // bytes as requested
  std::size_t streams = 0, events = 0, modules = 0, child_codes = 0, mappings = 0, workspaces = 0;
  std::size_t left_at_reset = 0;  // all of these that were alive when a device was reset by its last reference
  bool empty() const {
    return allocations + streams + events + modules + child_codes + mappings + workspaces + left_at_reset == 0;
  }
};

class SoftDriver {
 public:
  explicit SoftDriver(SoftChip chip, SoftOptions options = {});
  ~SoftDriver();
  SoftDriver(const SoftDriver&) = delete;
  SoftDriver& operator=(const SoftDriver&) = delete;
  const Driver& table() const;
  SoftCensus census() const;
  // How often the device began anew; -1 for one that was never set.
  int generation(int device) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  Driver table_;
};

// The control processors' program of a runtime (tensormap_and_ringbuffer, ...), as cpu_bootstrap takes it.
std::string builtin_program(std::string_view runtime);

}  // namespace simpler::driver
