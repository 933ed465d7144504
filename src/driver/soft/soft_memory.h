// SoftMemory: the software device's allocation table.
//
// What      Addresses are host addresses. Small blocks come from the heap, aligned; large ones are address space that costs
//           memory only where it is touched, so that a default 1 GiB of output memory is free until used. Each block
//           belongs to the device that it was allocated on. On request every block stands between two guard bands, which
//           are checked when it is freed, and the bytes of each device are limited.
// Threads   Any; one lock around the table, none during copies. Freeing a block during a copy is the caller's mistake, as
//           on the board.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/virtual_memory.h"

namespace simpler::driver {

class SoftMemory {
 public:
  static constexpr std::size_t kAlignment = 1024;          // of every block, as output memory wants it
  static constexpr std::size_t kLargeBytes = 1024 * 1024;  // from here on: lazily committed

  enum class Freed { kOk, kUnknown, kDamaged };  // kDamaged: freed too, but somebody wrote past one of its ends

  // guard_bytes: of each band, rounded up to the alignment; 0: none. byte_limit: per device; 0: none.
  explicit SoftMemory(std::size_t guard_bytes = 0, std::size_t byte_limit = 0)
      : guard_((guard_bytes + kAlignment - 1) / kAlignment * kAlignment), limit_(byte_limit) {}
  ~SoftMemory() {
    for (auto& [address, block] : blocks_) destroy(block);
  }

  bool allocate(std::size_t bytes, std::uint64_t* address, int device = 0) {
    const std::lock_guard lock(mutex_);
    std::size_t& used = used_[device];
    if (limit_ != 0 && (bytes > limit_ || used > limit_ - bytes)) return false;
    if (bytes > SIZE_MAX / 2) return false;
    Block block;
    block.bytes = bytes;
    block.device = device;
    const std::size_t whole = guard_ + bytes + guard_;
    if (bytes >= kLargeBytes) {
      if (!block.mapping.reserve(whole)) return false;
      block.base = block.mapping.as<char>();
    } else {
      const std::size_t rounded = (whole + kAlignment - 1) / kAlignment * kAlignment;
      block.base = static_cast<char*>(std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded));
      if (block.base == nullptr) return false;
    }
    char* const begin = block.base + guard_;
    std::memset(block.base, kGuardByte, guard_);
    std::memset(begin + bytes, kGuardByte, guard_);
    *address = reinterpret_cast<std::uint64_t>(begin);
    used += bytes;
    blocks_.emplace(*address, std::move(block));
    return true;
  }

  Freed free(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.device == kNobody) return Freed::kUnknown;
    return remove(found);
  }

  // Frees all blocks of a device; how many there were.
  std::size_t free_all(int device) {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      const auto next = std::next(block);
      if (block->second.device == device) {
        remove(block);
        ++count;
      }
      block = next;
    }
    return count;
  }

  // The device's blocks are neither counted nor freed from now on; their addresses stay known.
  void leave_behind(int device) {
    const std::lock_guard lock(mutex_);
    for (auto& [address, block] : blocks_) {
      if (block.device == device) block.device = kNobody;
    }
    used_[device] = 0;
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
    return static_cast<std::size_t>(std::count_if(blocks_.begin(), blocks_.end(),
                                                  [](const auto& entry) { return entry.second.device != kNobody; }));
  }
  std::size_t total() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [device, bytes] : used_) sum += bytes;
    return sum;
  }

 private:
  static constexpr unsigned char kGuardByte = 0xFD;
  static constexpr int kNobody = -1;
  struct Block {
    std::size_t bytes = 0;
    int device = 0;
    char* base = nullptr;
    VirtualMemory mapping;
  };
  using Blocks = std::map<std::uint64_t, Block>;

  Freed remove(Blocks::iterator found) {
    Block& block = found->second;
    const auto intact = [&](const char* band) {
      return std::all_of(band, band + guard_, [](char c) { return static_cast<unsigned char>(c) == kGuardByte; });
    };
    const bool damaged = !intact(block.base) || !intact(block.base + guard_ + block.bytes);
    used_[block.device] -= block.bytes;
    destroy(block);
    blocks_.erase(found);
    return damaged ? Freed::kDamaged : Freed::kOk;
  }
  static void destroy(Block& block) {
    if (block.mapping.bytes() == 0) std::free(block.base);
  }

  const std::size_t guard_, limit_;
  mutable std::mutex mutex_;
  Blocks blocks_;
  std::map<int, std::size_t> used_;  // bytes by device
};

}  // namespace simpler::driver
