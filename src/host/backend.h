// Backend: the driver of a platform, and the device programs that it is given.
//
// What      a2a3sim and a5sim have the software device. a2a3 and a5 have the vendor's libraries, or, where
//           SIMPLER_EMULATED_VENDOR names a folder, the emulated ones there (docs/board.md). A driver in the options comes
//           before all of them.
// Lifetime  Owns the driver, unless it was given; its table is valid while the object lives.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "driver/driver.h"
#include "executor/arch_profile.h"
#include "host/bringup.h"
#include "host/device_runner.h"

namespace simpler::host {

class Backend {
 public:
  virtual ~Backend() = default;

  // Fails for a platform or runtime that there is not, and for a board without its libraries or device programs.
  static Status open(const RunnerOptions& options, std::unique_ptr<Backend>* backend);

  virtual const driver::Driver& driver() const = 0;
  virtual int clusters() const { return arch_->clusters; }       // that the device has at most
  virtual int threads() const { return arch_->device_threads; }  // that run kernels, or control them
  virtual bool simulated() const { return true; }                // whether this host's load makes it slow
  const executor::ArchProfile& arch() const { return *arch_; }
  DeviceBinaries take_binaries() { return std::move(binaries_); }

 protected:
  const executor::ArchProfile* arch_ = nullptr;
  DeviceBinaries binaries_;
};

}  // namespace simpler::host
