// DeviceProgram: what runs on a device's control processors. The driver hands it launches; a backend for the simulator
// calls it in process.
//
// What      init once, then register and unregister callables and execute runs, one call at a time.
// Threads   One stream thread calls; never two calls at once.
// Errors    0, or non-zero for a launch that the device could not even start; the text is in last_error(). How a run
//           ended is in its RunImage.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "abi/run_image.h"

namespace simpler::frontend {

// The simulated chip that a program runs on.
struct ChipShape {
  int clusters;
  int threads;  // host threads that run kernels
};

class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  virtual int init(const abi::InitArgs& args) = 0;
  virtual int register_callable(const abi::RegisterCallableArgs& args) = 0;
  virtual int unregister_callable(std::int32_t id) = 0;
  virtual int execute(abi::RunImage& image) = 0;
  const std::string& last_error() const { return last_error_; }

 protected:
  std::string last_error_;
};

// Names of the runtimes that load_program knows, for messages.
inline constexpr std::string_view kHostBuiltRuntime = "host_build_graph",
                                  kStreamingRuntime = "tensormap_and_ringbuffer";
inline constexpr std::string_view kRuntimeNames[] = {kHostBuiltRuntime, kStreamingRuntime};

// nullptr for a runtime that has no device program.
std::unique_ptr<DeviceProgram> load_program(std::string_view runtime, ChipShape chip);

}  // namespace simpler::frontend
