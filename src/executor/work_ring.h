// WorkRing: ready tasks of one shape that one thread made ready. It pushes, everybody takes.
//
// What      A FIFO of record references. take() claims several at once by moving the head with one CAS.
// Capacity  At least the number of tasks that can be live, each of which is in at most one ring, once: it cannot overflow,
//           and an unclaimed cell is not overwritten. A claimed one may be: cells are read before they are claimed.
// Threads   push, clear: the owner (clear: nobody else inside). take, size: any.
// Order     push's release pairs with take's acquire of the tail: the taker sees the task's record. The claim's release
//           keeps the reads before it: whoever reuses a cell has heard, by way of the task's end, of its claim.
// Cost      push: two stores. take: a CAS.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/virtual_memory.h"
#include "graph/task.h"

namespace simpler::executor {

class WorkRing {
 public:
  // `capacity` tasks or more. False if the system refuses the address space.
  bool configure(std::uint32_t capacity) {
    std::uint32_t size = 64;
    while (size < capacity) size *= 2;
    if (size == mask_ + 1) return true;
    mask_ = size - 1;
    return cells_.reserve(std::size_t{size} * sizeof(Cell));
  }
  void clear() {
    head_.store(0, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_relaxed);
    pushed_ = 0;
  }

  void push(graph::RecordRef record) {
    cells_.as<Cell>()[pushed_ & mask_].store(record, std::memory_order_relaxed);
    tail_.store(++pushed_, std::memory_order_release);
  }

  // Takes up to `most` tasks, but no more than 1/share of what is there (rounded up). Returns how many.
  std::uint32_t take(graph::RecordRef* out, std::uint32_t most, std::uint32_t share) {
    std::uint32_t head = head_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint32_t available = tail_.load(std::memory_order_acquire) - head;
      if (available == 0 || static_cast<std::int32_t>(available) < 0) return 0;
      std::uint32_t count = (available + share - 1) / share;
      if (count > most) count = most;
      // Read first, claim then: once claimed, the cells may be reused while this thread sleeps.
      for (std::uint32_t i = 0; i < count; ++i)
        out[i] = cells_.as<Cell>()[(head + i) & mask_].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, head + count, std::memory_order_acq_rel, std::memory_order_relaxed))
        return count;
    }
  }

  // Changes when something is taken.
  std::uint32_t taken() const { return head_.load(std::memory_order_relaxed); }

  std::uint32_t size() const {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    const std::int32_t count = static_cast<std::int32_t>(tail_.load(std::memory_order_acquire) - head);
    return count > 0 ? static_cast<std::uint32_t>(count) : 0;
  }

 private:
  using Cell = std::atomic<graph::RecordRef>;
  alignas(64) std::atomic<std::uint32_t> tail_{0};  // the owner's
  alignas(64) std::atomic<std::uint32_t> head_{0};  // the takers'
  alignas(64) std::uint32_t mask_ = 0;
  std::uint32_t pushed_ = 0;  // the owner's copy of tail_, whose line is with whoever looked at it last
  VirtualMemory cells_;
};

}  // namespace simpler::executor
