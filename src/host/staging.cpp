#include "host/staging.h"

#include "host/shared_windows.h"

namespace simpler::host {
namespace {

constexpr std::uint64_t kSliceAlignment = 1024;

// The signature pairs with tensors only: SCALAR entries describe none.
abi::Direction direction_of(const abi::ChipCallable& callable, int* entry) {
  while (*entry < callable.sig_count && callable.signature[*entry] == static_cast<int>(abi::Direction::kScalar))
    ++*entry;
  return *entry < callable.sig_count ? static_cast<abi::Direction>(callable.signature[(*entry)++])
                                     : abi::Direction::kInOut;
}

// Whether the view is all of its buffer. What a partial view leaves out must come back as it was.
bool covers_buffer(const ChipTensor& tensor) { return tensor.is_contiguous && tensor.nbytes() == tensor.buffer.size; }

}  // namespace

Staging::Slice& Staging::slice_for(const PTOBufferHandle& buffer) {
  for (Slice& slice : slices_) {
    if (slice.host == buffer.addr && slice.bytes == buffer.size) return slice;
  }
  std::uint64_t offset = 0;
  if (!slices_.empty())
    offset = (slices_.back().device + slices_.back().bytes + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
  slices_.push_back({buffer.addr, buffer.size, offset, false, false});
  return slices_.back();
}

Status Staging::upload(Allocator& allocator, const ChipStorageTaskArgs& args, const abi::ChipCallable& callable,
                       std::vector<ChipTensor>* tensors) {
  slices_.clear();
  tensors->assign(args.tensor_data(), args.tensor_data() + args.tensor_count());
  std::vector<std::size_t> slice_of(tensors->size(), SIZE_MAX);
  int entry = 0;
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    ChipTensor& tensor = (*tensors)[i];
    const abi::Direction direction = direction_of(callable, &entry);
    tensor.owner_task_id = PTO2TaskId::invalid();
    if (tensor.is_device_memory()) {
      const PTOBufferHandle& memory = tensor.buffer;
      if (memory.addr == 0 || memory.size == 0 || allocator.holds(memory.addr, memory.size) ||
          SharedWindows::hold(memory.addr, memory.size))
        continue;
      return fail(
          ErrorKind::kValue,
          format("entry tensor %zu is device memory, %llu bytes at 0x%llx, which is not, or not any more, "
                 "allocated by this worker: it was freed, is shorter, or belongs to another one",
                 i, static_cast<unsigned long long>(memory.size), static_cast<unsigned long long>(memory.addr)));
    }
    if (tensor.buffer.size == 0 || tensor.numel() == 0) {
      tensor.buffer.addr = 0;
      continue;
    }
    Slice& slice = slice_for(tensor.buffer);
    slice.upload = slice.upload || direction != abi::Direction::kOut || !covers_buffer(tensor);
    slice.back = slice.back || direction != abi::Direction::kIn;
    slice_of[i] = static_cast<std::size_t>(&slice - slices_.data());
  }
  if (slices_.empty()) return Status();
  if (Status status = block_.grow(allocator, slices_.back().device + slices_.back().bytes, kSliceAlignment);
      !status.ok())
    return status;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    Slice& slice = slices_[i];
    slice.device += block_.address();
    Device& device = allocator.device();
    if (!slice.upload) {
      // What an output holds before it is written is undefined; but it must not be the right result of an earlier run.
      const int code = device.call(&driver::Driver::fill, slice.device, 0, slice.bytes);
      if (code != driver::kOk) return device.failure(format("clearing entry tensor %zu", i).c_str(), code);
      continue;
    }
    const int code = device.call(&driver::Driver::copy_to_device, slice.device,
                                 reinterpret_cast<const void*>(slice.host), slice.bytes);
    if (code != driver::kOk) return device.failure(format("copy of entry tensor %zu to the device", i).c_str(), code);
  }
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    if (slice_of[i] != SIZE_MAX) (*tensors)[i].buffer.addr = slices_[slice_of[i]].device;
  }
  return Status();
}

Status Staging::copy_back(Device& device) const {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i];
    if (!slice.back) continue;
    const int code =
        device.call(&driver::Driver::copy_from_device, reinterpret_cast<void*>(slice.host), slice.device, slice.bytes);
    if (code != driver::kOk) return device.failure(format("copy of entry tensor %zu from the device", i).c_str(), code);
  }
  return Status();
}

}  // namespace simpler::host
