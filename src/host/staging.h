// Staging: the device copies of one run's entry tensors.
//
// What      Each host tensor gets a slice of a retained block, on a 1024-byte boundary; device tensors pass through, if
//           they lie in a live allocation or a window of a communication session, and empty ones get address 0. The
//           callable's signature decides what moves: an OUT that fills its whole buffer is not uploaded, IN is not copied
//           back, everything else is both. Two arguments that name the same memory share one slice, so that the runtime
//           sees that they are the same.
// Lifetime  The block only grows; one run uses it at a time. Host memory is borrowed until copy_back returns.
#pragma once
#include <vector>

#include "abi/chip_callable.h"
#include "host/device_memory.h"
#include "task_args.h"

namespace simpler::host {

class Staging {
 public:
  // *tensors receives the arguments with device addresses.
  Status upload(Allocator& allocator, const ChipStorageTaskArgs& args, const abi::ChipCallable& callable,
                std::vector<ChipTensor>* tensors);
  Status copy_back(Device& device) const;
  std::uint64_t address() const { return block_.address(); }  // of the retained block; 0: none yet
  void release() {
    slices_.clear();
    static_cast<void>(block_.release());
  }

 private:
  struct Slice {
    std::uint64_t host;
    std::uint64_t bytes;
    std::uint64_t device;  // offset in the block, then address
    bool upload;
    bool back;
  };
  Slice& slice_for(const PTOBufferHandle& buffer);

  DeviceBlock block_;
  std::vector<Slice> slices_;
};

}  // namespace simpler::host
