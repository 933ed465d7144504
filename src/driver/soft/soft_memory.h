// SoftMemory: the software device's allocation table.
//
// What      Addresses are host addresses. Small blocks come from the heap, aligned; large ones are address space that costs
//           memory only where it is touched, so that a default 1 GiB of output memory is free until used.
// Threads   Any; one lock around the table, none during copies. Freeing a block during a copy is the caller's mistake, as
//           on the board.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/virtual_memory.h"

namespace simpler::driver {

class SoftMemory {
 public:
  static constexpr std::size_t kAlignment = 1024;          // of every block, as output memory wants it
  static constexpr std::size_t kLargeBytes = 1024 * 1024;  // from here on: lazily committed

  ~SoftMemory() {
    for (auto& [address, block] : blocks_) destroy(address, block);
  }

  bool allocate(std::size_t bytes, std::uint64_t* address) {
    Block block;
    block.bytes = bytes;
    if (bytes >= kLargeBytes) {
      if (!block.mapping.reserve(bytes)) return false;
      *address = reinterpret_cast<std::uint64_t>(block.mapping.as<char>());
    } else {
      const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
      if (memory == nullptr) return false;
      *address = reinterpret_cast<std::uint64_t>(memory);
    }
    const std::lock_guard lock(mutex_);
    total_ += bytes;
    blocks_.emplace(*address, std::move(block));
    return true;
  }

  // False if no block starts there.
  bool free(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return false;
    total_ -= found->second.bytes;
    destroy(address, found->second);
    blocks_.erase(found);
    return true;
  }

  // The block that holds the address; false if there is none. *room: bytes from the address to the block's end.
  bool find(std::uint64_t address, std::size_t* room) const {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return false;
    --after;
    const std::uint64_t offset = address - after->first;
    if (offset > after->second.bytes || (offset == after->second.bytes && offset > 0)) return false;
    *room = after->second.bytes - offset;
    return true;
  }

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
  }
  std::size_t total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  struct Block {
    std::size_t bytes = 0;
    VirtualMemory mapping;
  };
  static void destroy(std::uint64_t address, Block& block) {
    if (block.mapping.bytes() == 0) std::free(reinterpret_cast<void*>(address));
  }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Block> blocks_;
  std::size_t total_ = 0;
};

}  // namespace simpler::driver
