// Bringup: what stands on a device before the first run: its bootstrap streams, programs, geometry, DMA workspaces.
//
// What      ensure() makes what is missing, in order, and may be called again after a failure: what it could not finish it
//           takes back. The programs' bytes are dropped when the device has them. Calls of the control processors' program
//           that are no runs go through call().
// Threads   The runner serialises calls, on threads that are attached.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "executor/arch_profile.h"
#include "host/device_memory.h"
#include "host/timeouts.h"

namespace simpler::host {

// Device programs, as bytes.
struct DeviceBinaries {
  std::string dispatcher;  // places the next one on the device
  std::string program;     // of the control processors
  std::string cores;
};

enum class CpuEntry { kInit, kExecute, kRegisterCallable, kUnregisterCallable };
inline constexpr const char* kCpuEntries[] = {"simpler_aicpu_init", "simpler_aicpu_exec",
                                              "simpler_aicpu_register_callable", "simpler_aicpu_unregister_callable"};
inline constexpr int kCpuEntryCount = 4;

class Bringup {
 public:
  // most_blocks: clusters of the chip.
  Bringup(Allocator& allocator, const executor::ArchProfile& arch, int most_blocks, const Timeouts& timeouts)
      : device_(allocator.device()),
        allocator_(allocator),
        arch_(arch),
        most_blocks_(most_blocks),
        timeouts_(timeouts) {}

  void take(DeviceBinaries binaries) { binaries_ = std::move(binaries); }
  Status ensure();
  // Runs an entry of the program on one thread and waits for it.
  Status call(CpuEntry entry, const void* payload, std::size_t bytes, const char* what);

  // Bit n of the mask: DMA engine n. Once per device; the program learns the addresses.
  Status provision_dma(std::uint32_t mask);
  Status release_dma();  // the program forgets them; without workspaces: nothing to do
  std::uint32_t dma_supported() const { return device_.driver().capabilities / driver::kDmaWorkspace0 & 3; }
  std::uint64_t dma_address(int engine) const { return dma_addresses_[engine]; }  // 0: none
  bool has_dma() const { return static_cast<bool>(workspaces_); }
  bool had_dma() const { return dma_addresses_[0] != 0 || dma_addresses_[1] != 0; }  // after release() too

  int block_limit() const { return block_limit_; }  // clusters that a launch may use
  std::uint64_t register_table() const { return registers_.address(); }
  std::uint64_t sync_window() const { return sync_window_; }
  std::uint64_t cpu_mask() const { return cpu_mask_; }
  driver::CoreImage* core_image() const { return core_image_; }
  driver::CpuFunction* function(CpuEntry entry) const { return functions_[static_cast<int>(entry)]; }
  std::size_t host_bytes() const {  // of programs still kept here
    return binaries_.dispatcher.size() + binaries_.program.size() + binaries_.cores.size();
  }

  // Gives everything back; the first failure. Streams go without being waited for: waiting for a stream that is in error
  // can block for good.
  int release();

 private:
  Status ensure_streams();
  Status find_geometry();
  Status load_binaries();
  Status launch_init();

  Device& device_;
  Allocator& allocator_;
  const executor::ArchProfile& arch_;
  const int most_blocks_;
  const Timeouts& timeouts_;
  DeviceBinaries binaries_;

  OwnedStream cpu_stream_, core_stream_;
  int block_limit_ = 0;  // 0: not asked yet
  DeviceBlock registers_;
  std::uint64_t sync_window_ = 0, cpu_mask_ = 0;
  OwnedModule module_;
  driver::CpuFunction* functions_[kCpuEntryCount] = {};  // of module_
  driver::CoreImage* core_image_ = nullptr;              // once per runner: there is no way to unload it
  bool loaded_ = false, init_done_ = false;
  OwnedWorkspaces workspaces_;
  std::uint64_t dma_addresses_[2] = {};
};

}  // namespace simpler::host
