// HeapRing: the output memory of one scope depth, as a ring of bytes that is given back in order of allocation.
//
// What      A block never straddles the end. top == tail means empty, so a block that would make them meet does not fit
//           by wrapping: wrapping needs strictly more room than the request. An empty ring starts over at 0, so any
//           request up to the whole capacity fits then, and a short streaming loop stays in warm memory.
// Threads   The submitter only. Deals in offsets; whoever owns the memory adds the base.
#pragma once
#include <cstdint>

namespace simpler::graph {

class HeapRing {
 public:
  static constexpr std::uint64_t kDoesNotFit = UINT64_MAX;

  void reset(std::uint64_t capacity) {
    capacity_ = capacity;
    top_ = tail_ = 0;
    blocks_ = 0;
  }

  // The offset that allocate() would return now, or kDoesNotFit. bytes > 0.
  std::uint64_t place(std::uint64_t bytes) const {
    if (blocks_ == 0) return bytes <= capacity_ ? 0 : kDoesNotFit;
    if (top_ >= tail_) {
      if (bytes <= capacity_ - top_) return top_;
      return bytes < tail_ ? 0 : kDoesNotFit;
    }
    return bytes < tail_ - top_ ? top_ : kDoesNotFit;
  }

  std::uint64_t allocate(std::uint64_t bytes) {
    const std::uint64_t offset = place(bytes);
    if (offset == kDoesNotFit) return offset;
    if (blocks_ == 0) tail_ = 0;
    top_ = offset + bytes;
    ++blocks_;
    return offset;
  }

  // Gives back the oldest block, which ended at `end`.
  void release(std::uint64_t end) {
    --blocks_;
    tail_ = end;
  }

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const {
    if (blocks_ == 0) return 0;
    return top_ > tail_ ? top_ - tail_ : capacity_ - tail_ + top_;
  }

 private:
  std::uint64_t capacity_ = 0;
  std::uint64_t top_ = 0;     // first byte past the newest block
  std::uint64_t tail_ = 0;    // first byte of the oldest block
  std::uint64_t blocks_ = 0;  // live ones; 0: empty, whatever top and tail say
};

}  // namespace simpler::graph
