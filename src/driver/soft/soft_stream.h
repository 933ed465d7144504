// A stream of the software device: one thread that runs what is queued, in order.
//
// Threads   push, query, sync: any. The failure of a piece of work stays until one sync or query has reported it.
// Lifetime  The destructor runs what is queued, then joins.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/spin.h"
#include "driver/driver.h"

namespace simpler::driver {

struct Stream {
 public:
  // Returns a code, and a text for one that is not kOk.
  using Work = std::function<int(std::string* text)>;

  Stream() : thread_([this] { run(); }) {}
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void push(Work work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      queued_.store(++pushed_, std::memory_order_relaxed);
    }
    changed_.notify_all();
  }

  // How much has been pushed up to now: what an event remembers.
  std::uint64_t pushed() const {
    const std::lock_guard lock(mutex_);
    return pushed_;
  }

  int query(std::uint64_t target, std::string* text) {
    const std::lock_guard lock(mutex_);
    return finished_ >= target ? take_failure(text) : kNotComplete;
  }

  int sync(std::uint64_t target, std::int64_t timeout_ms, std::string* text) {
    spin_for(kSpin, [&] { return published_.load(std::memory_order_relaxed) >= target; });
    std::unique_lock lock(mutex_);
    const auto done = [&] { return finished_ >= target; };
    if (timeout_ms < 0) {
      changed_.wait(lock, done);
    } else if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), done)) {
      return kSyncTimeout;
    }
    return take_failure(text);
  }

 private:
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
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Work work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      std::string text;
      const int code = work(&text);
      lock.lock();
      if (code != kOk && code_ == kOk) {
        code_ = code;
        text_ = std::move(text);
      }
      published_.store(++finished_, std::memory_order_relaxed);
      changed_.notify_all();
      if (!queue_.empty() || closing_) continue;
      lock.unlock();
      spin_for(kSpin,
               [&] { return queued_.load(std::memory_order_relaxed) != published_.load(std::memory_order_relaxed); });
      lock.lock();
    }
  }

  // Runs in close succession find this thread, and runs of a few tasks the caller, still awake.
  static constexpr std::chrono::microseconds kSpin{50};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  std::uint64_t pushed_ = 0, finished_ = 0;
  std::atomic<std::uint64_t> queued_{0}, published_{0};  // the same numbers, for spinning without the lock
  int code_ = kOk;                                       // first failure not yet reported
  std::string text_;
  bool closing_ = false;
  std::thread thread_;
};

struct Event {
  Stream* stream = nullptr;  // borrowed; nullptr until recorded
  std::uint64_t target = 0;
};

}  // namespace simpler::driver
