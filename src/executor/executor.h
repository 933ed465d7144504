// Executor: runs the ready tasks of one graph at a time on simulated cores, with as many threads as the host can use.
//
// What      Workers take ready blocks, run kernels, complete tasks and go on with a task that this made ready. There is no
//           scheduler thread. A monitor looks once a millisecond, while a run is on: if kernels sit in the way of ready
//           work, because they wait for other kernels, it lets more workers in, up to the number of modelled cores.
// Threads   `threads` workers from the start, more on demand, all parked when there is nothing to do. The submitter is the
//           caller of begin_run; push, wait_for and end_run are its calls. While it is busy, one of two or more workers
//           stays parked, so that submitter and workers together use the host's CPUs.
// Serial    With SIMPLER_TMR_SERIAL_ORCH_SCHED_ENABLE set, workers begin only when the submitter ends or waits.
// Seed      With SIMPLER_SIM_SEED set there is one worker, and it takes turns with the submitter: see seeded_order.h.
// Watchdog  A run that is not over fails when nothing has happened for too long: no block has ended, no task has completed.
//           What was left then says why, in this order: kernels run, tasks are ready, tasks wait for conditions, or the
//           orchestration does not return. Time in which the monitor itself does not run does not count.
// Lifetime  Graph, latch and kernels are borrowed from begin_run until end_run returns.
// Fork      Threads do not survive a fork: in a child, an inherited Executor may only be destroyed, which frees nothing.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/spin.h"
#include "executor/arch_profile.h"
#include "executor/core_pool.h"
#include "executor/deferred_tasks.h"
#include "executor/gang_queue.h"
#include "executor/seeded_order.h"
#include "executor/timing_slots.h"
#include "executor/work_ring.h"
#include "executor/worker_gate.h"
#include "graph/error_latch.h"
#include "graph/graph.h"

namespace simpler::executor {

using KernelFunction = void (*)(std::int64_t* args);

// The kernels of a callable by func id; nullptr where there is none.
struct KernelTable {
  static constexpr int kMaxKernels = 1024;
  KernelFunction functions[kMaxKernels] = {};
};

class Worker;
namespace test {
struct ExecutorProbe;  // breaks what never breaks by itself, to see that the watchdog notices, and says when it is to
}

// What the watchdog saw when it ended a run.
struct Stall {
  const char* sub_class = "none";           // as tools and tests know it, "S1:running-stalled"
  int running = 0;                          // kernels
  std::uint32_t ready = 0;                  // tasks
  PTO2TaskId task = PTO2TaskId::invalid();  // one that is stuck
  int core = -1;                            // where it runs; -1: nowhere
};

class Executor {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kAnySlot =
      0xFFFFFFFE;  // wait_for: idleness, failure and the monitor wake the submitter

  Executor(int clusters, int threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int clusters() const { return cores_.clusters(); }
  bool run_failed() const { return latch_ != nullptr && latch_->raised(); }
  int threads() const { return base_threads_; }
  // For log records; between runs.
  void set_device(int ordinal) { device_ = ordinal; }
  int device() const { return device_; }

  // Prepares for graphs of up to `tasks` live tasks. Between runs. False if the system refuses memory.
  bool reserve(std::uint32_t tasks);

  void begin_run(graph::Graph& graph, graph::ErrorLatch& latch, const KernelTable& kernels);
  // Returns true when no worker touches the run's graph or code any more. Returns false if the run has failed and some
  // kernel does not return: then graph, kernels and this object must stay as they are, for good.
  bool end_run();

  // Submitter, around the user's orchestration. If that does not return, give_up is called, once, on the monitor's thread,
  // with the latch raised; it must not call this object. Then nothing here looks at the run any more, and
  // orchestration_returned() is false: a caller that comes back after all must leave the run as it is.
  void orchestration_begins(void (*give_up)(void* context), void* context);
  bool orchestration_returned();

  // Submitter: a task whose producers are all complete.
  void push(graph::RecordRef record);

  // Submitter: sleeps until the slot's task has completed, the latch was raised, the workers ran out of work, a
  // millisecond went by, or, at the latest, `deadline`. The caller looks again for what it needs.
  template <typename Done> void wait_for(std::uint32_t slot, Clock::time_point deadline, Done done);
  // Wakes the submitter out of wait_for.
  void notify_submitter();

  // Of the last run.
  const TimingSlots& timing_slots() const { return timing_slots_; }

  // Whether any task of the run is ready, running, or waits for conditions.
  bool active() const;
  // Tasks completed by workers, ever. A measure of progress.
  std::uint64_t completed() const;
  // Once the latch is ready with SCHEDULER_TIMEOUT. All defaults if that code came from user code.
  const Stall& stall() const { return stall_; }

 private:
  friend class Worker;
  friend struct test::ExecutorProbe;
  static constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;
  static constexpr std::chrono::milliseconds kMonitorTick{1};
  static constexpr std::chrono::microseconds kSubmitterSpin{20};  // most waits for one short task are over by then
  // After a time-out the kernels that still run are given up, and the device with them, when none of them has returned for
  // so long; after another failure, for the scheduler's limit. A busy machine may take longer in all, one kernel after
  // another.
  static constexpr std::chrono::milliseconds kGraceAfterTimeout{1000};
  static constexpr int kHeldBackShare = 20;  // of the scheduler's limit: how long cores are held back without progress
  static constexpr std::uint32_t kBusyStreak =
      64;  // submissions without a wait after which the submitter counts as busy
  // A busy submitter announces only every so many tasks: the fence costs as much as all else that push does, since it
  // waits for stores to lines that workers have. Awake workers see the tasks anyway; if all sleep and the submitter
  // pauses without a call, the monitor wakes one.
  static constexpr std::uint32_t kAnnounceEvery = 16;

  // False if there are enough, or the system refuses another thread.
  bool add_worker();
  // After lanes were placed or ended: as many workers as there are lanes must be awake.
  void lanes_placed(int count);
  void set_submitter_busy(bool busy);
  void hold_workers(bool on);
  void submitter_waits();
  bool give_turn();
  void complete_dummies(graph::RecordRef record);
  void refresh_limit();
  void monitor();
  void tick();
  void watch_progress(int running, std::uint64_t progress);
  void watch_orchestration();
  // What a run without progress waits for.
  enum class Waits { kForKernel, kForCore, kForCondition, kForOrchestration, kForNothing };
  Waits waits_for(int running) const;
  void raise_timeout(Waits waits, int running);
  void raise_stuck_kernel(int running);
  void watch_turns(bool stuck, std::uint64_t progress);
  void find_neglected();
  // Whether a worker that holds `held` (or no core) could take something.
  bool work_visible(const Core* held);
  bool anything_queued(int shape) const;
  std::uint32_t queued(int shape) const;
  void discard_queued();
  // Changes when a kernel begins or returns and when a task completes.
  std::uint64_t activity() const;
  // More threads are awake than there are CPUs: to spin would take time from the kernels that one waits for.
  bool crowded() const { return gate_.counts().awake() > base_threads_; }
  // Wakes the submitter if it waits for this slot, or, with kAnySlot, for anything.
  void notify_if_awaited(std::uint32_t slot) {
    const std::uint32_t awaited = awaited_slot_.load(std::memory_order_seq_cst);  // pairs with the store in wait_for
    if (awaited == slot || (slot == kAnySlot && awaited != kNoSlot)) notify_submitter();
  }

  CorePool cores_;
  const int base_threads_;
  int device_ = -1;  // -1: none was told
  const int max_threads_;
  const int owner_pid_;
  WorkerGate gate_;

  // Of the current run; written by begin_run and end_run.
  graph::Graph* graph_ = nullptr;
  graph::ErrorLatch* latch_ = nullptr;
  const KernelTable* kernels_ = nullptr;

  // Submitter.
  WorkRing submitted_[graph::kQueuedShapes];
  std::uint32_t streak_ = 0;
  alignas(64) std::atomic<bool> submitter_busy_{
      false};                              // it alone writes it, seldom; searchers look at it all the time
  std::atomic<bool> workers_held_{false};  // until the submitter waits, by the user's wish; it alone writes it
  std::mutex submitter_mutex_;
  std::condition_variable submitter_wakeup_;
  bool submitter_called_ = false;
  alignas(64) std::atomic<std::uint32_t> awaited_slot_{kNoSlot};  // read after each completion

  // Tasks of several blocks that still have unclaimed ones, the oldest first.
  struct OpenTasks {
    std::mutex mutex;
    graph::RecordRef first = graph::kNoRecord;
    std::atomic<std::uint32_t> count{0};
    std::atomic<std::uint32_t> visits{0};  // by workers, over now
    std::atomic<int> inside{0};            // workers that run blocks of one
  };
  OpenTasks open_[graph::kQueuedShapes];

  // Where ready work lies that nobody has touched for a tick of the monitor, although workers run other
  // work: the worker that takes this note serves that place before it goes on. So no task, wide or narrow, starves.
  struct Neglected {
    static constexpr int kNone = -1, kOpen = 0, kSubmitted = 1, kWorkers = 2;  // kWorkers + i: the rings of worker i
    static int place(int note) { return note / graph::kQueuedShapes; }
    static int shape(int note) { return note % graph::kQueuedShapes; }
  };
  std::atomic<int> neglected_{Neglected::kNone};
  DeferredTasks deferred_;
  TimingSlots timing_slots_;
  GangQueue gangs_{cores_};
  SeededOrder order_;

  // Workers: appended under grow_mutex_, read by all up to worker_count_.
  std::unique_ptr<std::unique_ptr<Worker>[]> workers_;
  std::atomic<int> worker_count_{0};
  std::mutex grow_mutex_;
  std::uint32_t ring_capacity_ = 64;
  std::atomic<bool> stopping_{false};

  // Monitor.
  std::mutex monitor_mutex_;
  std::condition_variable monitor_wakeup_;
  bool run_active_ = false;
  bool monitor_sleeps_ = false;
  static constexpr int kGiveUpTicks = 20;             // a kernel that runs for longer may wait for another one
  static constexpr int kGiveUpSubmitterTicks = 1000;  // and an orchestration for a kernel's result in memory
  static constexpr std::chrono::milliseconds kMostPerTick{100};  // that count as time without progress
  int turn_ticks_ = 0;
  int submitter_ticks_ = 0;
  std::vector<std::uint32_t> seen_taken_;  // by note: as of the last tick
  int last_note_ = 0;
  std::atomic<int> stuck_{0};
  std::mutex limit_mutex_;
  std::uint64_t last_progress_count_ = 0;
  Waits last_waits_ = Waits::kForNothing;
  Clock::time_point last_tick_;
  Clock::duration without_progress_{0};
  Clock::duration since_failure_{0};
  void (*give_up_)(void* context) = nullptr;  // set while the orchestration runs
  void* give_up_context_ = nullptr;
  Stall stall_;                                  // written before the latch is raised
  std::chrono::milliseconds scheduler_timeout_;  // these two never change, but for tests
  std::chrono::milliseconds orchestration_timeout_;
  std::thread monitor_thread_;
};

// The simulated core that the calling thread is running on, or nullptr. Kernels reach their tile memory through it.
Core* current_core();
// Whether the run of the kernel on the calling thread has failed already: then nobody needs what it waits for.
bool current_run_failed();
// Ends a kernel for that reason. It is no failure of its own.
struct KernelEnded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename Done> void Executor::wait_for(std::uint32_t slot, Clock::time_point deadline, Done done) {
  submitter_waits();
  if (order_.enabled() && give_turn()) return;
  awaited_slot_.store(slot, std::memory_order_seq_cst);  // completers release a slot, then read this
  const auto over = [&] { return done() || latch_->raised(); };
  if (!spin_for(kSubmitterSpin, [&] { return over() || crowded(); }) || !over()) {
    std::unique_lock lock(submitter_mutex_);
    submitter_wakeup_.wait_until(lock, deadline, [this] { return submitter_called_; });
    submitter_called_ = false;
  }
  awaited_slot_.store(kNoSlot, std::memory_order_relaxed);
}

}  // namespace simpler::executor
