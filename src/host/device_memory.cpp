#include "host/device_memory.h"

#include <iterator>

namespace simpler::host {

using driver::Driver;

Status Allocator::allocate(std::size_t bytes, std::uint64_t* address) {
  if (Status status = device_.run("alloc", &Driver::alloc, bytes, address); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  live_[*address] = bytes;
  return Status();
}

Status Allocator::free(std::uint64_t address) {
  {
    const std::lock_guard lock(mutex_);
    if (live_.count(address) == 0) return Status();
    if (!device_.owns()) {
      live_.erase(address);
      return Status();
    }
  }
  if (Status status = device_.run("free", &Driver::free, address); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  live_.erase(address);
  return Status();
}

bool Allocator::knows(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  return live_.count(address) != 0;
}

bool Allocator::holds(std::uint64_t address, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return address - begin <= size && bytes <= size - (address - begin);
}

Status Allocator::free_all() {
  std::map<std::uint64_t, std::size_t> live;
  {
    const std::lock_guard lock(mutex_);
    live.swap(live_);
  }
  Status last;
  for (const auto& [address, bytes] : live) {
    if (!device_.owns()) break;
    if (Status status = device_.run("free", &Driver::free, address); !status.ok()) last = status;
  }
  return last;
}

std::size_t Allocator::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [address, bytes] : live_) sum += bytes;
  return sum;
}
std::size_t Allocator::count() const {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

Status DeviceBlock::grow(Allocator& allocator, std::size_t bytes, std::size_t alignment) {
  if (bytes <= bytes_) return Status();
  static_cast<void>(release());
  std::size_t whole = 0;
  if (__builtin_add_overflow(bytes, alignment - 1, &whole))
    return fail(ErrorKind::kMemory, format("device memory: %zu bytes on a boundary of %zu", bytes, alignment));
  if (Status status = allocator.allocate(whole, &allocation_); !status.ok()) return status;
  allocator_ = &allocator;
  address_ = (allocation_ + alignment - 1) / alignment * alignment;
  bytes_ = bytes;
  return Status();
}

Status DeviceBlock::release() {
  if (bytes_ == 0) return Status();
  bytes_ = 0;
  address_ = 0;
  return allocator_->free(allocation_);
}

}  // namespace simpler::host
