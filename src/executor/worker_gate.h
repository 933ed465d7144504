// WorkerGate: which workers are awake, and who must be woken when work appears.
//
// What      A worker is asleep, searching, or busy. One word counts them, with the limit on how many may be awake, so that
//           a push decides from one load whether anybody must be woken.
// Rule      After a push: fence; if nobody searches, somebody sleeps and the limit allows, wake one, who counts as
//           searching at once. The last searcher to take work repeats the test. A searcher that finds nothing registers
//           as a sleeper, stops searching, fences, and looks once more.
// Order     The two fences forbid: the searcher sees no work AND the pusher sees no sleeper.
// Threads   Any; the list of sleepers has a lock that is held for a few instructions.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace simpler::executor {

class WorkerGate {
 public:
  struct Counts {
    std::uint16_t searching;
    std::uint16_t asleep;
    std::uint16_t started;
    std::uint16_t limit;  // workers that may be awake
    std::uint16_t awake() const { return static_cast<std::uint16_t>(started - asleep); }
    std::uint16_t busy() const { return static_cast<std::uint16_t>(started - asleep - searching); }
  };

  // Where a worker sleeps.
  class Bed {
   public:
    void wait() {
      while (called_.exchange(0, std::memory_order_acquire) == 0) called_.wait(0, std::memory_order_relaxed);
    }
    void call() {
      // A full barrier: libstdc++ notifies only if it sees a waiter, and must not look before the store is visible.
      called_.exchange(1, std::memory_order_seq_cst);
      called_.notify_one();
    }

   private:
    std::atomic<int> called_{0};
  };

  // Acquires: who sees a worker not busy sees all that it did while it was.
  Counts counts() const { return unpack(word_.load(std::memory_order_acquire)); }

  // After work was pushed or a core was freed. Wakes at most one worker.
  void announce() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in fall_asleep
    const Counts now = counts();
    if (now.searching == 0 && now.asleep > 0 && now.awake() < now.limit) wake_one(true);
  }
  // Wakes a sleeper if the limit allows; with `unless_searching`, only if nobody searches. False if nobody was woken.
  bool wake_one(bool unless_searching) {
    Bed* bed;
    {
      const std::lock_guard lock(mutex_);
      const Counts now = counts();
      if (sleepers_.empty() || now.awake() >= now.limit || (unless_searching && now.searching > 0)) return false;
      bed = sleepers_.back();  // the one that slept last has the warmest cache
      sleepers_.pop_back();
      add(kSearching - kAsleep);
    }
    bed->call();
    return true;
  }

  // A new worker enters searching.
  void start() { add(kStarted + kSearching); }
  void begin_search() { add(kSearching); }
  void cancel_start() { add(std::uint64_t{0} - kStarted - kSearching); }
  // Before taking work. True if nobody else searches: the caller announces what it leaves behind.
  bool end_search() { return unpack(add(-kSearching)).searching == 1; }

  // The caller searches and found nothing. Returns when somebody woke it, or at once if work appeared that `look_again`
  // sees and the limit allows; it searches either way.
  template <typename LookAgain> void fall_asleep(Bed& bed, LookAgain look_again) {
    {
      const std::lock_guard lock(mutex_);
      sleepers_.push_back(&bed);
      add(kAsleep - kSearching);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in announce
    const Counts now = counts();
    if (now.awake() < now.limit && look_again() && leave(bed)) return;
    bed.wait();
  }

  bool surplus() const {
    const Counts now = counts();
    return now.awake() > now.limit;
  }
  // The caller is busy, has put its work where others find it, and sleeps if more workers are awake than may be.
  // Afterwards it searches. False, at once, if it may stay.
  bool sleep_if_surplus(Bed& bed) {
    {
      const std::lock_guard lock(mutex_);
      if (!surplus()) return false;
      sleepers_.push_back(&bed);
      add(kAsleep);
    }
    bed.wait();
    return true;
  }

  void set_limit(int limit) {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    std::uint64_t changed;
    do {
      changed = (word & ~(std::uint64_t{0xFFFF} << 48)) | static_cast<std::uint64_t>(limit) << 48;
    } while (!word_.compare_exchange_weak(word, changed, std::memory_order_acq_rel, std::memory_order_relaxed));
  }

  // Wakes everybody, whatever the limit: for shutting down.
  void wake_all() {
    std::vector<Bed*> beds;
    {
      const std::lock_guard lock(mutex_);
      beds.swap(sleepers_);
      add((kSearching - kAsleep) * static_cast<std::uint64_t>(beds.size()));
    }
    for (Bed* bed : beds) bed->call();
  }

 private:
  static constexpr std::uint64_t kSearching = 1, kAsleep = std::uint64_t{1} << 16, kStarted = std::uint64_t{1} << 32;

  static Counts unpack(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16),
            static_cast<std::uint16_t>(word >> 32), static_cast<std::uint16_t>(word >> 48)};
  }
  std::uint64_t add(std::uint64_t difference) { return word_.fetch_add(difference, std::memory_order_acq_rel); }

  bool leave(Bed& bed) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = sleepers_.size(); i-- > 0;) {
      if (sleepers_[i] != &bed) continue;
      sleepers_.erase(sleepers_.begin() + static_cast<std::ptrdiff_t>(i));
      add(kSearching - kAsleep);
      return true;
    }
    return false;  // somebody is calling: the call must be taken
  }

  alignas(64) std::atomic<std::uint64_t> word_{0};
  alignas(64) std::mutex mutex_;
  std::vector<Bed*> sleepers_;
};

}  // namespace simpler::executor
