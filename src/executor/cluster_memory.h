// ClusterMemory: what the lanes of one cluster share while they run one block: the rings of their pipes.
//
// What      Pieces by key, zeroed at their first use within a block. Memory is kept from block to block.
// Threads   piece: the lanes of the block. begin_block: whoever reserves the lanes, before any of them runs.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace simpler::executor {

class ClusterMemory {
 public:
  void begin_block() {
    const std::lock_guard lock(mutex_);
    for (Piece& piece : pieces_) piece.used = false;
  }

  // At least 64-byte aligned; valid until the block's lanes have returned.
  void* piece(std::uint64_t key, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    for (Piece& piece : pieces_) {
      if (piece.key != key || piece.bytes < bytes) continue;
      if (!piece.used) std::memset(piece.memory.get(), 0, piece.bytes);
      piece.used = true;
      return piece.memory.get();
    }
    const std::uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    Piece fresh{key, rounded, true, std::unique_ptr<void, Free>(std::aligned_alloc(kAlignment, rounded))};
    if (fresh.memory == nullptr) throw std::bad_alloc();
    std::memset(fresh.memory.get(), 0, rounded);
    pieces_.push_back(std::move(fresh));
    return pieces_.back().memory.get();
  }

 private:
  static constexpr std::uint64_t kAlignment = 64;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Piece {
    std::uint64_t key;
    std::uint64_t bytes;
    bool used;
    std::unique_ptr<void, Free> memory;
  };
  std::mutex mutex_;
  std::vector<Piece> pieces_;
};

}  // namespace simpler::executor
