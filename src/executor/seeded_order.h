// SeededOrder: one legal order of a run, chosen by a seed, that repeats exactly.
//
// What      Submitter and one worker take turns. After each submission, and whenever the submitter waits, the seed decides
//           how many tasks the worker runs, and which of the ready ones each time. Many seeds explore many orders.
// Given up  A task of several cores at once runs on as many threads, in no fixed order. A kernel that does not return while
//           the submitter waits for the turn may wait for another kernel, and so may a submitter that does not come back
//           for the result of a ready task. Then the turns end, the rest of the run is unordered, and a warning says so.
// Threads   start, submitted, give_turn, stop: the submitter. claim, await_turn, take, made_ready, end_turn, take_left:
//           the worker. give_up: the monitor, the worker. The worker names the run that it claimed, so one that comes
//           late cannot join the next.
// Source    The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "graph/task.h"

namespace simpler::executor {

class SeededOrder {
 public:
  explicit SeededOrder(std::optional<std::uint64_t> seed) : seed_(seed) {}

  bool enabled() const { return seed_.has_value(); }

  void start() {
    const std::lock_guard lock(mutex_);
    state_ = *seed_;
    ready_.clear();
    budget_ = 0;
    phase_ = Phase::kSubmitter;
    ++run_;
    claimed_ = false;
  }

  // The number of the run that the caller is to be the worker of; 0 if there is none.
  std::uint64_t claim() {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kOver || claimed_) return 0;
    claimed_ = true;
    return run_;
  }
  bool wants_worker() const {
    const std::lock_guard lock(mutex_);
    return phase_ != Phase::kOver && !claimed_;
  }

  // A ready task of the submitter's. True if the worker must have a turn now.
  bool submitted(graph::RecordRef record) {
    const std::lock_guard lock(mutex_);
    ready_.push_back(record);
    return draw(4) == 0;  // on average, four submissions come before the worker's next turn
  }

  // Lets the worker run up to a drawn number of tasks; returns when its turn is over. False if there was nothing to do
  // (no ready task, nor `more` that only the worker sees), or if the turns are over: then *left receives the ready
  // tasks that nobody will pick any more.
  bool give_turn(std::vector<graph::RecordRef>* left, bool more = false) {
    std::unique_lock lock(mutex_);
    if (phase_ == Phase::kSubmitter && (more || !ready_.empty())) {
      budget_ = 1 + draw(4);
      phase_ = Phase::kWorker;
      changed_.notify_all();
      changed_.wait(lock, [this] { return phase_ != Phase::kWorker; });
      if (phase_ == Phase::kSubmitter) return true;
    }
    if (phase_ == Phase::kOver) left->swap(ready_);
    return false;
  }

  // False when the turns are over.
  bool await_turn(std::uint64_t run) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return run != run_ || phase_ != Phase::kSubmitter; });
    return run == run_ && phase_ == Phase::kWorker;
  }
  bool take(std::uint64_t run, graph::RecordRef* record) {
    const std::lock_guard lock(mutex_);
    if (run != run_ || phase_ != Phase::kWorker || budget_ == 0 || ready_.empty()) return false;
    --budget_;
    const std::size_t picked = draw(ready_.size());
    *record = ready_[picked];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(picked));
    return true;
  }
  // False if the turns are over: the task is the worker's own business.
  bool made_ready(std::uint64_t run, graph::RecordRef record) {
    const std::lock_guard lock(mutex_);
    if (run != run_ || phase_ == Phase::kOver) return false;
    ready_.push_back(record);
    return true;
  }
  void end_turn(std::uint64_t run) {
    const std::lock_guard lock(mutex_);
    if (run == run_ && phase_ == Phase::kWorker) phase_ = Phase::kSubmitter;
    changed_.notify_all();
  }

  // Whose turn is to be ended.
  enum class Turn { kWorker, kSubmitter };
  // False if it is not that one's turn, or if no task is ready while it is the submitter's.
  bool give_up(Turn whose) {
    const std::lock_guard lock(mutex_);
    if (phase_ != (whose == Turn::kWorker ? Phase::kWorker : Phase::kSubmitter)) return false;
    if (whose == Turn::kSubmitter && ready_.empty()) return false;
    phase_ = Phase::kOver;
    changed_.notify_all();
    return true;
  }
  // The worker, after the turns: ready tasks that nobody will pick any more.
  void take_left(std::uint64_t run, std::vector<graph::RecordRef>* left) {
    const std::lock_guard lock(mutex_);
    if (run == run_ && phase_ == Phase::kOver) left->swap(ready_);
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::kOver;
    ready_.clear();
    changed_.notify_all();
  }
  // Tasks that wait for the worker's turn.
  std::size_t ready() const {
    const std::lock_guard lock(mutex_);
    return ready_.size();
  }
  bool in_turns() const {
    const std::lock_guard lock(mutex_);
    return phase_ != Phase::kOver;
  }

 private:
  enum class Phase { kSubmitter, kWorker, kOver };

  std::uint64_t draw(std::uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (z ^ (z >> 31)) % bound;
  }

  const std::optional<std::uint64_t> seed_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::kOver;
  std::uint64_t run_ = 0;
  bool claimed_ = false;
  std::uint64_t state_ = 0;
  std::uint64_t budget_ = 0;  // tasks that the worker may still run in this turn
  std::vector<graph::RecordRef> ready_;
};

}  // namespace simpler::executor
