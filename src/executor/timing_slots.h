// TimingSlots: for each of 16 tags, the time from the first start to the last end of the tasks that carry it.
//
// Threads   record: any worker. clear, window: between runs.
// Cost      Untagged tasks: nothing.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "pto_types.h"

namespace simpler::executor {

class TimingSlots {
 public:
  using Clock = std::chrono::steady_clock;

  void clear() {
    for (Slot& slot : slots_) {
      slot.begin.store(INT64_MAX, std::memory_order_relaxed);
      slot.end.store(INT64_MIN, std::memory_order_relaxed);
    }
  }
  void record(int slot, Clock::time_point begin, Clock::time_point end) {
    lower(slots_[slot].begin, begin.time_since_epoch().count());
    raise(slots_[slot].end, end.time_since_epoch().count());
  }
  // False if no task with that tag has ended. Nanoseconds since `origin`.
  bool window(int slot, Clock::time_point origin, std::int64_t* begin, std::int64_t* end) const {
    if (slots_[slot].end.load(std::memory_order_relaxed) == INT64_MIN) return false;
    *begin = slots_[slot].begin.load(std::memory_order_relaxed) - origin.time_since_epoch().count();
    *end = slots_[slot].end.load(std::memory_order_relaxed) - origin.time_since_epoch().count();
    return true;
  }

 private:
  struct Slot {
    std::atomic<std::int64_t> begin{INT64_MAX}, end{INT64_MIN};
  };
  static void lower(std::atomic<std::int64_t>& target, std::int64_t value) {
    std::int64_t known = target.load(std::memory_order_relaxed);
    while (value < known && !target.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
    }
  }
  static void raise(std::atomic<std::int64_t>& target, std::int64_t value) {
    std::int64_t known = target.load(std::memory_order_relaxed);
    while (value > known && !target.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
    }
  }

  Slot slots_[MAX_TASK_TIMING_SLOTS];
};

}  // namespace simpler::executor
