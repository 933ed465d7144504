// Device memory of a runner: the allocator that everything goes through, and blocks that give themselves back.
//
// What      The allocator knows every live allocation; freeing what it does not know is no error, and what the driver
//           refuses to free stays known until free_all() or forget() ends it. Once the device is in doubt nothing is asked
//           of it any more: frees only forget.
// Threads   Allocator: any; no lock is held during a driver's call. DeviceBlock: its owner's.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "host/device.h"

namespace simpler::host {

class Allocator {
 public:
  explicit Allocator(Device& device) : device_(device) {}
  ~Allocator() { static_cast<void>(free_all()); }
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  Device& device() { return device_; }
  Status allocate(std::size_t bytes, std::uint64_t* address);
  Status free(std::uint64_t address);
  bool knows(std::uint64_t address) const;
  bool holds(std::uint64_t address, std::uint64_t bytes) const;  // whether all of it lies in one live allocation
  Status free_all();          // the last failure; nothing is known afterwards, whatever happened
  std::size_t bytes() const;  // as requested
  std::size_t count() const;

 private:
  Device& device_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::size_t> live_;
};

class DeviceBlock {
 public:
  DeviceBlock() = default;
  ~DeviceBlock() { static_cast<void>(release()); }
  DeviceBlock(DeviceBlock&& other) noexcept { swap(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    swap(other);
    return *this;
  }

  // Makes it at least `bytes` large, on a multiple of `alignment`; contents are lost if it grows. On failure it is empty.
  Status grow(Allocator& allocator, std::size_t bytes, std::size_t alignment = 1);
  Status release();
  std::uint64_t address() const { return address_; }  // 0: empty
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(DeviceBlock& other) {
    std::swap(allocator_, other.allocator_);
    std::swap(allocation_, other.allocation_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
  }
  Allocator* allocator_ = nullptr;
  std::uint64_t allocation_ = 0, address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace simpler::host
