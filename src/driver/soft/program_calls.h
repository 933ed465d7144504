// ProgramCalls: the software device's part of the Driver table that is about programs: the image of the cores, kernels,
// the program of the control processors.
//
// What      A launch of cores keeps its stream busy until the program that is executed with the same arguments has ended.
//           A kernel is loaded as a private copy. The program of the control processors is one of this library; see
//           builtin_program().
// Lifetime  What a device has goes with end_generation(), the rest with the object. Programs and kernels are used by the
//           work of streams: those have ended by then.
// Threads   Any; entries of a program run on the thread of the stream that they were launched on, without a lock.
//           Lock order: this one, then that of SoftDevices.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "abi/run_image.h"
#include "base/code_image.h"
#include "driver/driver.h"
#include "driver/soft/memory_calls.h"
#include "driver/soft/soft_devices.h"
#include "driver/soft/soft_driver.h"
#include "driver/soft/soft_handles.h"
#include "driver/soft/soft_stream.h"
#include "driver/soft/stream_calls.h"
#include "executor/arch_profile.h"
#include "frontend/device_program.h"

namespace simpler::driver {

class ProgramCalls {
 public:
  ProgramCalls(SoftDevices& devices, MemoryCalls& memory, StreamCalls& streams, SoftChip chip);

  // Of the table.
  int core_image_load(Binary image, CoreImage** handle);
  int core_launch(CoreImage* image, int blocks, std::uint64_t arguments, Stream* on);
  int child_code_resolve(std::uint64_t address, std::size_t bytes, const char* label, std::uint64_t* entry,
                         ChildCode** handle);
  int child_code_release(ChildCode* handle);
  int cpu_bootstrap(Binary dispatcher, Binary program, std::uint64_t fingerprint, int ordinal, Stream* on);
  int cpu_load(std::uint64_t fingerprint, int ordinal, const char* const* symbols, int count, CpuModule** handle);
  int cpu_unload(CpuModule* handle);
  int cpu_function(CpuModule* handle, const char* symbol, CpuFunction** function);
  int cpu_launch(CpuFunction* handle, int threads, const void* payload, std::size_t bytes, Stream* on);

  // Abandons devices on which a program, perhaps while it still executes, says that something does not return.
  void notice_abandoned();

  // Programs that execute from now on find no cores.
  void forget_launches(int ordinal);
  // Takes everything of a device; how much there was.
  std::size_t end_generation(int ordinal);
  // What a program that does not return may still use, for the caller to keep.
  void leave_behind(int ordinal, std::vector<std::shared_ptr<void>>* kept);
  void count(SoftCensus* census) const;

 private:
  struct Entry;
  using Program = frontend::DeviceProgram;
  struct Function {
    std::shared_ptr<Program> program;
    const Entry* entry;
  };
  struct Image {};  // the simulated cores have their program built in
  struct Cores {
    std::weak_ptr<SoftStream> stream;
    std::shared_ptr<SoftStream::Hold> hold;
  };

  static const Entry* entry_named(std::string_view symbol);
  int call(int ordinal, const Function& function, const std::string& payload, std::string* text);
  int execute(int ordinal, Program& program, const std::string& args, std::string* text);
  std::uint64_t counts_of(std::chrono::nanoseconds time) const;
  void leave_phases(const std::string& args, const abi::RunResult& result, std::uint64_t begin) const;
  void notice_abandoned_locked();

  SoftDevices& devices_;
  MemoryCalls& memory_;
  StreamCalls& streams_;
  const SoftChip chip_;
  const executor::ArchProfile& arch_;

  HandleTable<Image, CoreImage> images_;
  HandleTable<CodeImage, ChildCode> codes_;
  HandleTable<Program, CpuModule> modules_;
  HandleTable<Function, CpuFunction> functions_;

  mutable std::mutex mutex_;                                    // all below; never held during work or waiting
  std::map<std::pair<int, std::uint64_t>, std::string> files_;  // by device and fingerprint
  std::map<std::pair<int, std::uint64_t>, Cores> cores_;        // launched, by device and run
  std::set<std::pair<int, abi::RunImage*>> executing_;          // by device
};

}  // namespace simpler::driver
