// SoftStream: a stream of the software device: an ordered queue of work, waits and marks.
//
// What      Work runs on the stream's thread, which exists from the first piece of work on. A hold keeps the stream busy
//           until somebody ends it: so cores that were launched stay busy until the program that drives them lets them
//           go. A mark takes the time when everything before it is done. All of them end in the order of pushing.
// Failure   Of the first piece of work or hold that fails; it stays until one sync or query has reported it.
// Threads   Any.
// Lifetime  The destructor runs what is queued, drops holds, and joins.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/spin.h"
#include "driver/codes.h"

namespace simpler::driver {

class SoftStream {
 public:
  using Clock = std::chrono::steady_clock;
  // Returns a code, and a text for one that is not kOk.
  using Work = std::function<int(std::string* text)>;

  struct Hold {
    bool ended = false;
    int code = kOk;
    std::string text;
    std::optional<Clock::time_point> begin;  // since when it is the first in the queue
  };
  struct Mark {
    std::uint64_t target = 0;               // done when so much is
    std::optional<Clock::time_point> time;  // when that was
  };

  ~SoftStream() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      advance();
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void push(Work work) {
    {
      const std::lock_guard lock(mutex_);
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
      add({std::move(work), nullptr, nullptr});
    }
    changed_.notify_all();
  }
  std::shared_ptr<Hold> push_hold() {
    auto hold = std::make_shared<Hold>();
    const std::lock_guard lock(mutex_);
    add({nullptr, hold, nullptr});
    return hold;
  }
  void push_mark(std::shared_ptr<Mark> mark) {
    const std::lock_guard lock(mutex_);
    Mark* const kept = mark.get();
    add({nullptr, nullptr, std::move(mark)});
    kept->target = pushed_;
  }

  // Ends a hold of this stream; a second end is without effect.
  void end(Hold& hold, int code, std::string text) {
    {
      const std::lock_guard lock(mutex_);
      if (hold.ended) return;
      hold.ended = true;
      hold.code = code;
      hold.text = std::move(text);
      advance();
    }
    changed_.notify_all();
  }
  // Fails the first in the queue if it is a hold that was there for `limit` (0: none) or longer; whether it was.
  bool reap(std::chrono::microseconds limit) {
    {
      const std::lock_guard lock(mutex_);
      if (limit.count() == 0 || queue_.empty()) return false;
      const std::shared_ptr<Hold>& hold = queue_.front().hold;
      if (hold == nullptr || !hold->begin || Clock::now() - *hold->begin < limit) return false;
      hold->ended = true;
      hold->code = kCoreTimeout;
      hold->text = "the cores were busy for longer than the limit for operations allows";
      advance();
    }
    changed_.notify_all();
    return true;
  }

  // How much has been pushed up to now: what a later query or sync may ask for.
  std::uint64_t pushed() const {
    const std::lock_guard lock(mutex_);
    return pushed_;
  }
  // Whether a piece of work runs or waits, holds aside.
  bool working() const {
    const std::lock_guard lock(mutex_);
    return has_work();
  }

  int query(std::uint64_t target, std::string* text) {
    const std::lock_guard lock(mutex_);
    return finished_ >= target ? take_failure(text) : kStreamNotComplete;
  }

  int sync(std::uint64_t target, Clock::time_point deadline, std::string* text) {
    spin_for(kSpin, [&] { return published_.load(std::memory_order_relaxed) >= target; });
    std::unique_lock lock(mutex_);
    if (!wait(lock, deadline, [&] { return finished_ >= target; })) return kSyncTimeout;
    return take_failure(text);
  }
  // Until no piece of work runs or waits, holds aside; false if the deadline passed.
  bool idle_by(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return wait(lock, deadline, [&] { return !has_work(); });
  }

  // What was pushed before the mark, it included; and when the stream passed it.
  std::uint64_t target_of(const Mark& mark) const {
    const std::lock_guard lock(mutex_);
    return mark.target;
  }
  std::optional<Clock::time_point> time_of(const Mark& mark) const {
    const std::lock_guard lock(mutex_);
    return mark.time;
  }
  // Since when the first in the queue is a hold.
  std::optional<Clock::time_point> held_since() const {
    const std::lock_guard lock(mutex_);
    if (queue_.empty() || queue_.front().hold == nullptr) return std::nullopt;
    return queue_.front().hold->begin;
  }

 private:
  struct Item {  // one of the three
    Work work;
    std::shared_ptr<Hold> hold;
    std::shared_ptr<Mark> mark;
  };

  bool has_work() const {
    return running_ || std::any_of(queue_.begin(), queue_.end(), [](const Item& item) { return item.work != nullptr; });
  }
  template <class Done> bool wait(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, Done done) {
    if (deadline != Clock::time_point::max()) return changed_.wait_until(lock, deadline, done);
    changed_.wait(lock, done);  // the end of time overflows wait_until
    return true;
  }
  void add(Item item) {
    queue_.push_back(std::move(item));
    queued_.store(++pushed_, std::memory_order_relaxed);
    advance();
  }
  // Lets everything at the front that needs no thread pass.
  void advance() {
    while (!running_ && !queue_.empty() && !queue_.front().work) {
      Item& item = queue_.front();
      if (item.mark != nullptr) item.mark->time = Clock::now();
      if (item.hold != nullptr) {
        if (!item.hold->ended && !closing_) {
          if (!item.hold->begin) item.hold->begin = Clock::now();
          return;
        }
        note_failure(item.hold->code, std::move(item.hold->text));
      }
      queue_.pop_front();
      published_.store(++finished_, std::memory_order_relaxed);
    }
  }
  void note_failure(int code, std::string text) {
    if (code == kOk || code_ != kOk) return;
    code_ = code;
    text_ = std::move(text);
  }
  int take_failure(std::string* text) {
    const int code = code_;
    *text = std::move(text_);
    text_.clear();
    code_ = kOk;
    return code;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(
          lock, [this] { return (closing_ && queue_.empty()) || (!queue_.empty() && queue_.front().work != nullptr); });
      if (queue_.empty()) return;
      Work work = std::move(queue_.front().work);
      running_ = true;
      lock.unlock();
      std::string text;
      const int code = work(&text);
      work = nullptr;
      lock.lock();
      running_ = false;
      note_failure(code, std::move(text));
      queue_.pop_front();
      published_.store(++finished_, std::memory_order_relaxed);
      advance();
      changed_.notify_all();
      if (!queue_.empty() || closing_) continue;
      lock.unlock();
      spin_for(kSpin,
               [&] { return queued_.load(std::memory_order_relaxed) != published_.load(std::memory_order_relaxed); });
      lock.lock();
    }
  }

  // Runs in close succession find this thread, and runs of a few tasks the caller, still awake. A Python loop leaves 50 to
  // 100 us between two runs: with 50 us here, its empty runs take 80 to 100 us in all, with 150 us they take 46.
  static constexpr std::chrono::microseconds kSpin{150};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  std::uint64_t pushed_ = 0, finished_ = 0;
  std::atomic<std::uint64_t> queued_{0}, published_{0};  // the same numbers, for spinning without the lock
  int code_ = kOk;                                       // first failure not yet reported
  std::string text_;
  bool running_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace simpler::driver
