// Registry: the callables of a runner, by slot.
//
// What      A callable's block is uploaded once per distinct content and shared by the slots that hold it. Kernels are
//           loaded once per distinct code, whatever callable they come from. The last slot that lets go frees both.
//           The caller's block is not changed; the device's copy gets the addresses of the kernels.
// Threads   The runner serialises calls.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "abi/chip_callable.h"
#include "abi/run_image.h"
#include "base/status.h"
#include "host/device_memory.h"

namespace simpler::host {

// The code of one kernel, ready to be called.
struct KernelCode {
  OwnedCode code;
  std::uint64_t entry = 0;
};

// One distinct callable.
struct Callable {
  std::string bytes;  // the block, for comparison
  std::uint64_t hash = 0;
  bool count_noted = false;  // that a run passed another number of tensors than the signature names
  DeviceBlock upload;        // the same on the device, with the kernels' addresses filled in
  DeviceBlock kernel_table;
  std::vector<std::shared_ptr<KernelCode>> kernels;

  const abi::ChipCallable& header() const { return *reinterpret_cast<const abi::ChipCallable*>(bytes.data()); }
};

class Registry {
 public:
  explicit Registry(Allocator& allocator) : allocator_(allocator), device_(allocator.device()) {}

  // Uploads and loads; the slot stays empty on failure. The block must have been checked. *uploaded: whether the content
  // is new to the device.
  Status load(const void* blob, std::size_t bytes, std::shared_ptr<Callable>* callable, bool* uploaded);
  void set(int slot, std::shared_ptr<Callable> callable) {
    slots_[static_cast<std::size_t>(slot)] = std::move(callable);
  }
  const std::shared_ptr<Callable>& at(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  void clear();

 private:
  Status load_kernels(Callable* callable);
  Status write(std::uint64_t address, const void* bytes, std::size_t count);
  Status load_kernel(const Callable& callable, int child, std::shared_ptr<KernelCode>* kernel);

  Allocator& allocator_;
  Device& device_;
  std::array<std::shared_ptr<Callable>, abi::kMaxCallables> slots_;
  std::multimap<std::uint64_t, std::weak_ptr<Callable>> by_content_;
  std::map<std::string, std::weak_ptr<KernelCode>> kernels_by_code_;  // keyed by the code itself
};

}  // namespace simpler::host
