// RunStreams: the two streams that runs are launched on, one for the control processors and one for the cores.
//
// What      Made when the first run needs them. The cores' stream is replaced when code was uploaded since it was made, and
//           after a run of which it is not proven that it ended. A run owns the pair from submission until it is retired.
// Threads   poll, cpu and core may run on any thread at any time; poll answers kNotReady rather than wait for one that
//           retires or makes streams. Everything else: the runner serialises calls. A handle from cpu or core is good
//           until its run is retired: whoever waits with it without the runner's lock may be answered that it is gone.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "host/device.h"

namespace simpler::host {

class RunStreams {
 public:
  enum class Poll { kError = -1, kNotReady = 0, kComplete = 1 };
  enum class Retired { kComplete, kUnproven };

  explicit RunStreams(Device& device) : device_(device), cpu_(device), core_(device) {}

  Status ensure(bool stop_on_failure);
  void mark_stale() { stale_ = true; }
  void mark_submitted(std::uint64_t owner);
  Poll poll(int* code);  // *code: the driver's, of kError
  // Only the owner's call has an effect.
  Status retire(Retired how, std::uint64_t owner);
  int destroy();

  driver::Stream* cpu() const {
    const std::lock_guard lock(mutex_);
    return cpu_.get();
  }
  driver::Stream* core() const {
    const std::lock_guard lock(mutex_);
    return core_.get();
  }
  std::uint64_t created() const { return created_.load(); }  // cores' streams so far

 private:
  Device& device_;
  mutable std::mutex mutex_;  // of what poll, cpu and core read
  OwnedStream cpu_, core_;
  std::uint64_t owner_ = 0;  // 0: nobody
  bool complete_ = false;    // the owner's run has ended
  std::atomic<bool> stale_{false};
  std::atomic<std::uint64_t> created_{0};
};

}  // namespace simpler::host
