// Worker: one thread of the Executor. See executor.h for what workers do together.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/log.h"
#include "executor/executor.h"

namespace simpler::executor {

class alignas(64) Worker {
 public:
  Worker(Executor& executor, int index, std::uint32_t ring_capacity);
  // False if the system refuses the thread.
  bool start();
  void join() { thread_.join(); }
  void abandon() { thread_.detach(); }  // in a forked child, where the thread does not exist

  WorkRing& ring(int shape) { return rings_[shape]; }
  std::uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }

  // Odd while a kernel runs; changes with every block.
  std::uint32_t kernel_sequence() const { return kernel_sequence_.load(std::memory_order_relaxed); }
  // The same number at two ticks of the monitor: this kernel has run for that long.
  std::uint32_t seen_sequence = 0;
  bool stuck = false;

  // What runs here, for messages. Meaningful while kernel_sequence is odd and only as a hint.
  struct Running {
    std::atomic<std::uint64_t> task{0};
    std::atomic<int> kernel{-1}, core{-1}, block{0};
  };
  const Running& running() const { return running_; }

 private:
  static constexpr std::uint32_t kBatch = 16;                  // tasks moved from another ring at once
  static constexpr std::chrono::microseconds kSearchTime{50};  // the wake-up of a CPU that has gone idle
  // From then on a searcher gives way: a woken worker often shares its CPU with the submitter that woke it, and would keep
  // it from going on (bench run_fixed_ms).
  static constexpr std::chrono::microseconds kKeenTime{4};
  // A worker that has caught up with a busy submitter lets it get ahead by some two hundred tasks, or until it waits.
  // Otherwise both work on the same cache lines, task by task: 2 us instead of 20 make bench tree_us, fan_in_us and
  // tiles_us a third slower.
  static constexpr std::chrono::microseconds kSettleTime{20};

  // A whole task; or, if block >= 0, one block of an open task; or, if lane.core is set, one lane of a block.
  struct Work {
    graph::RecordRef record = graph::kNoRecord;
    std::int32_t block = -1;
    Lane lane;
  };

  void run();
  void take_turns(std::uint64_t run);
  bool search(Executor::Clock::time_point since, Work* work);
  bool take_work(Work* work);
  bool take_from_rings(int shape, Work* work);
  bool take_from(WorkRing& ring, int shape, std::uint32_t most, std::uint32_t share, Work* work);
  bool take_neglected(Work* work);
  bool hold_core(int shape);
  void drop_core();
  void execute(Work work);
  // Tasks that take turns with the blocks of a wide one.
  bool wanted_elsewhere() const {
    return executor_.cores_.held_back() ||
           executor_.neglected_.load(std::memory_order_relaxed) != Executor::Neglected::kNone;
  }
  void run_blocks(graph::Task& task, graph::RecordRef record, std::int32_t block);
  bool join_open_task(int shape, Work* work);
  std::int32_t open_task(graph::Task& task, graph::RecordRef record);
  void close_task(graph::Task& task, graph::RecordRef record);
  void run_lane(const Lane& lane);
  bool run_block(graph::Task& task, graph::RecordRef record, std::int32_t block, int lane);
  void poll_deferred();
  void complete(graph::RecordRef record);
  void fail_run(abi::ErrorCode code, const graph::Task& task, std::int32_t block, const char* what);
  log::Origin log_origin(const graph::Task& task, std::int32_t block) const;

  Executor& executor_;
  const int index_;
  WorkRing rings_[graph::kQueuedShapes];
  WorkerGate::Bed bed_;
  Core* core_ = nullptr;
  graph::RecordRef next_ = graph::kNoRecord;  // made ready by the task just completed: run it while it is warm
  alignas(64) std::atomic<std::uint32_t> kernel_sequence_{0};
  std::atomic<std::uint64_t> completed_{0};
  Running running_;
  std::thread thread_;
};

}  // namespace simpler::executor
