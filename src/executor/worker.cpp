#include "executor/worker.h"

#include <exception>
#include <system_error>

#include "base/log.h"
#include "executor/crash_guard.h"

namespace simpler::executor {
namespace {

thread_local Core* bound_core = nullptr;
thread_local const Executor* bound_executor = nullptr;  // of a worker thread, for its life

CoreType core_type_of(int shape) {
  return shape == static_cast<int>(graph::Shape::kAic) ? CoreType::AIC : CoreType::AIV;
}
int lane_of(int shape) { return shape == static_cast<int>(graph::Shape::kAic) ? 0 : 1; }

// Whether the condition that guards a task holds; integers of any width are compared signed.
bool holds(const graph::Predicate& predicate) {
  std::int64_t value = 0;
  switch (predicate.width) {
    case 1: value = *static_cast<const std::int8_t*>(predicate.address); break;
    case 2: value = *static_cast<const std::int16_t*>(predicate.address); break;
    case 4: value = *static_cast<const std::int32_t*>(predicate.address); break;
    default: value = *static_cast<const std::int64_t*>(predicate.address); break;
  }
  switch (predicate.op) {
    case PredicateOp::EQ: return value == predicate.target;
    case PredicateOp::NE: return value != predicate.target;
    case PredicateOp::GT: return value > predicate.target;
    case PredicateOp::LT: return value < predicate.target;
    case PredicateOp::GE: return value >= predicate.target;
    case PredicateOp::LE: return value <= predicate.target;
    case PredicateOp::NONE: break;
  }
  return true;
}

}  // namespace

Core* current_core() { return bound_core; }
bool current_run_failed() { return bound_executor != nullptr && bound_executor->run_failed(); }

Worker::Worker(Executor& executor, int index, std::uint32_t ring_capacity) : executor_(executor), index_(index) {
  for (WorkRing& ring : rings_) ring.configure(ring_capacity);
}

bool Worker::start() {
  executor_.gate_.start();
  try {
    thread_ = std::thread([this] { run(); });
    return true;
  } catch (const std::system_error&) {
    executor_.gate_.cancel_start();
    return false;
  }
}

void Worker::run() {
  CrashGuard::prepare_thread();
  bound_executor = &executor_;
  WorkerGate& gate = executor_.gate_;
  bool searching = true;  // counted by start()
  auto since = Executor::Clock::now();
  while (!executor_.stopping_.load(std::memory_order_acquire)) {
    Work work;
    if (searching) {
      if (const std::uint64_t turns = executor_.order_.enabled() ? executor_.order_.claim() : 0; turns != 0) {
        gate.end_search();
        take_turns(turns);
        searching = false;
      } else if (search(since, &work)) {
        searching = false;
        execute(work);
      } else {
        since = Executor::Clock::now();
      }
      continue;
    }
    if (gate.surplus()) {
      if (next_ != graph::kNoRecord) {  // what is in hand becomes everybody's
        rings_[static_cast<int>(executor_.graph_->task(next_).shape)].push(next_);
        next_ = graph::kNoRecord;
      }
      drop_core();
      searching = gate.sleep_if_surplus(bed_);
      since = Executor::Clock::now();
      if (searching) continue;
    }
    if (executor_.deferred_.count() > 0) poll_deferred();
    if (executor_.cores_.held_back()) drop_core();  // wider tasks wait for cores
    if (executor_.neglected_.load(std::memory_order_relaxed) == Executor::Neglected::kNone || !take_neglected(&work)) {
      work.record = next_;
      next_ = graph::kNoRecord;
    }
    if (work.record != graph::kNoRecord || take_work(&work)) {
      execute(work);
    } else {
      gate.begin_search();
      searching = true;
      since = Executor::Clock::now();
    }
  }
  drop_core();
}

// Runs tasks in the order that the seed picks, until the turns are over.
void Worker::take_turns(std::uint64_t run) {
  SeededOrder& order = executor_.order_;
  // What became ready goes to the pool that the seed picks from; also what others made ready or took: a worker that came
  // while a kernel was slow may have left again with tasks in its ring.
  const auto hand_over = [&] {
    if (executor_.deferred_.count() > 0) poll_deferred();
    if (next_ != graph::kNoRecord && order.made_ready(run, next_)) next_ = graph::kNoRecord;
    const int workers = executor_.worker_count_.load(std::memory_order_acquire);
    for (int i = 0; i < workers; ++i) {
      for (int shape = 0; shape < graph::kQueuedShapes; ++shape) {
        WorkRing& ring = executor_.workers_[(index_ + i) % workers]->rings_[shape];
        graph::RecordRef record;
        while (order.in_turns() && ring.take(&record, 1, 1) > 0) {
          if (!order.made_ready(run, record)) rings_[shape].push(record);
        }
      }
    }
  };
  while (order.await_turn(run)) {
    Work work;
    hand_over();  // conditions may have come true meanwhile
    while (order.take(run, &work.record)) {
      if (executor_.graph_->task(work.record).shape == graph::Shape::kMix &&
          order.give_up(SeededOrder::Turn::kWorker)) {
        log::host(log::Level::kWarn, __func__,
                  "SIMPLER_SIM_SEED: a task needs several cores at once, so the rest of this run has no fixed order");
      }
      execute(work);
      hand_over();
    }
    order.end_turn(run);
  }
  std::vector<graph::RecordRef> left;
  order.take_left(run, &left);
  for (const graph::RecordRef record : left)
    rings_[static_cast<int>(executor_.graph_->task(record).shape)].push(record);
  if (!left.empty()) executor_.gate_.announce();
}

// True with work in hand, and busy; false after a sleep.
bool Worker::search(Executor::Clock::time_point since, Work* work) {
  WorkerGate& gate = executor_.gate_;
  for (;;) {
    if (!gate.surplus() && executor_.work_visible(core_)) {
      if (executor_.submitter_busy_.load(std::memory_order_relaxed)) {
        const auto settled = Executor::Clock::now() + kSettleTime;
        while (executor_.submitter_busy_.load(std::memory_order_relaxed) && Executor::Clock::now() < settled) relax();
      }
      // Busy before taking: so "nothing is queued and nobody is busy" means that nothing runs.
      const bool last = gate.end_search();
      if (executor_.deferred_.count() > 0) poll_deferred();
      if (next_ != graph::kNoRecord) {
        work->record = next_;
        next_ = graph::kNoRecord;
      }
      if (work->record != graph::kNoRecord || take_work(work)) {
        if (last && executor_.work_visible(nullptr)) gate.announce();
        return true;
      }
      gate.begin_search();
    }
    if (executor_.stopping_.load(std::memory_order_acquire)) return false;
    const auto searched = Executor::Clock::now() - since;
    if (searched >= kSearchTime || gate.surplus() || executor_.crowded()) break;
    for (int i = 0; i < 16; ++i) relax();  // each look at the queues takes a cache line from whoever fills them
    if (searched >= kKeenTime) std::this_thread::yield();
  }
  drop_core();
  executor_.notify_if_awaited(Executor::kAnySlot);
  gate.fall_asleep(bed_, [this] {
    return executor_.stopping_.load(std::memory_order_relaxed) || executor_.work_visible(nullptr) ||
           (executor_.order_.enabled() && executor_.order_.wants_worker());
  });
  return false;
}

// The shape of the held core comes first: changing cores costs a lock.
bool Worker::take_work(Work* work) {
  if (executor_.gangs_.waiting() && executor_.gangs_.take(&work->lane)) return true;
  if (take_from_rings(static_cast<int>(graph::Shape::kMix), work)) return true;
  const int first = core_ != nullptr && core_->type() == CoreType::AIC ? 0 : 1;
  return take_from_rings(first, work) || take_from_rings(1 - first, work);
}

bool Worker::take_from_rings(int shape, Work* work) {
  if (executor_.open_[shape].count.load(std::memory_order_relaxed) > 0) {
    if (!hold_core(shape)) return false;
    if (join_open_task(shape, work)) return true;
  }
  if (take_from(rings_[shape], shape, 1, 1, work)) return true;
  const std::uint32_t share = 2 * static_cast<std::uint32_t>(executor_.base_threads_);
  if (take_from(executor_.submitted_[shape], shape, kBatch, share, work)) return true;
  const int workers = executor_.worker_count_.load(std::memory_order_acquire);
  for (int i = 1; i < workers; ++i) {  // each worker starts with its neighbour
    if (take_from(executor_.workers_[(index_ + i) % workers]->rings_[shape], shape, kBatch, share, work)) return true;
  }
  return false;
}

bool Worker::take_from(WorkRing& ring, int shape, std::uint32_t most, std::uint32_t share, Work* work) {
  if (ring.size() == 0 || !hold_core(shape)) return false;
  graph::RecordRef batch[kBatch];
  const std::uint32_t count = ring.take(batch, most, share);
  if (count == 0) return false;
  work->record = batch[0];
  for (std::uint32_t k = 1; k < count; ++k) rings_[shape].push(batch[k]);
  return true;
}

// What was in hand goes behind what waits in the own ring.
bool Worker::take_neglected(Work* work) {
  using Neglected = Executor::Neglected;
  const int note = executor_.neglected_.exchange(Neglected::kNone, std::memory_order_acquire);
  if (note == Neglected::kNone) return false;
  const int place = Neglected::place(note), shape = Neglected::shape(note);
  const bool taken = place == Neglected::kOpen ? hold_core(shape) && join_open_task(shape, work)
                     : place == Neglected::kSubmitted
                         ? take_from(executor_.submitted_[shape], shape, 1, 1, work)
                         : take_from(executor_.workers_[place - Neglected::kWorkers]->rings_[shape], shape, 1, 1, work);
  if (!taken || next_ == graph::kNoRecord) return taken;
  rings_[static_cast<int>(executor_.graph_->task(next_).shape)].push(next_);
  next_ = graph::kNoRecord;
  executor_.gate_.announce();
  return true;
}

// Makes core_ a core of the type that the shape needs.
bool Worker::hold_core(int shape) {
  if (shape == static_cast<int>(graph::Shape::kMix)) return true;  // its lanes bring their own
  const CoreType type = core_type_of(shape);
  if (core_ != nullptr && core_->type() == type) return true;
  Core* core = executor_.cores_.acquire(type);
  if (core == nullptr) return false;
  drop_core();
  core_ = core;
  bound_core = core;
  return true;
}

void Worker::drop_core() {
  if (core_ == nullptr) return;
  executor_.cores_.release(core_);
  core_ = nullptr;
  bound_core = nullptr;
  if (executor_.gangs_.pending()) executor_.lanes_placed(executor_.gangs_.place(*executor_.graph_));
  executor_.gate_.announce();  // somebody may wait for a core of this type
}

void Worker::execute(Work work) {
  if (work.lane.core != nullptr) {
    run_lane(work.lane);
    return;
  }
  graph::Task& task = executor_.graph_->task(work.record);
  if (work.block >= 0) {
    core_->load(task);
    run_blocks(task, work.record, work.block);
    return;
  }
  if (executor_.latch_->raised()) return;  // the run has failed: what did not start never will
  if (task.has_predicate) {
    const graph::Predicate& predicate = *task.predicate();
    bool wanted = false;
    if (const int signal = CrashGuard::call([&] { wanted = holds(predicate); }); signal != 0) {
      executor_.latch_->raise(
          abi::ErrorCode::INVALID_ARGS,
          "the predicate of task %u in ring %u reads address %p, which ended with %s: is its tensor a real one?",
          task.id.local(), task.id.ring(), predicate.address, CrashGuard::describe(signal));
      executor_.notify_submitter();
      return;
    }
    if (!wanted) {
      complete(work.record);
      return;
    }
  }
  if (task.shape == graph::Shape::kMix) {
    drop_core();
    executor_.lanes_placed(executor_.gangs_.admit(*executor_.graph_, work.record));
    return;
  }
  if (!hold_core(static_cast<int>(task.shape))) {
    rings_[static_cast<int>(task.shape)].push(work.record);  // whoever frees a core of that type looks here
    return;
  }
  core_->load(task);
  if (task.block_count > 1) {
    run_blocks(task, work.record, open_task(task, work.record));
    return;
  }
  const bool held = run_block(task, work.record, 0, lane_of(static_cast<int>(task.shape)));
  if (executor_.latch_->raised()) return;
  if (!held || task.blocks_left.fetch_sub(1, std::memory_order_acq_rel) == 1) complete(work.record);
}

// Lets other workers join the task; claims a block for the caller.
std::int32_t Worker::open_task(graph::Task& task, graph::RecordRef record) {
  Executor::OpenTasks& open = executor_.open_[static_cast<int>(task.shape)];
  std::int32_t block;
  {
    const std::lock_guard lock(open.mutex);
    block = task.next_block.fetch_add(1, std::memory_order_relaxed);
    graph::RecordRef* link = &open.first;
    while (*link != graph::kNoRecord) link = &executor_.graph_->task(*link).next_open;
    *link = record;
    task.next_open = graph::kNoRecord;
    open.count.fetch_add(1, std::memory_order_relaxed);
  }
  executor_.gate_.announce();
  return block;
}

// Joins the first open task that has an unclaimed block, and claims that. Open tasks are alive: see run_blocks.
bool Worker::join_open_task(int shape, Work* work) {
  Executor::OpenTasks& open = executor_.open_[shape];
  const std::lock_guard lock(open.mutex);
  while (open.first != graph::kNoRecord) {
    graph::Task& task = executor_.graph_->task(open.first);
    work->record = open.first;
    work->block = task.next_block.fetch_add(1, std::memory_order_relaxed);
    if (work->block < task.block_count) return true;
    open.first = task.next_open;
    open.count.fetch_sub(1, std::memory_order_relaxed);
  }
  work->record = graph::kNoRecord;
  work->block = -1;
  return false;
}

void Worker::close_task(graph::Task& task, graph::RecordRef record) {
  Executor::OpenTasks& open = executor_.open_[static_cast<int>(task.shape)];
  const std::lock_guard lock(open.mutex);
  for (graph::RecordRef* link = &open.first; *link != graph::kNoRecord;
       link = &executor_.graph_->task(*link).next_open) {
    if (*link != record) continue;
    *link = task.next_open;
    open.count.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

// Runs the block that the caller claimed, and further ones until all are claimed or other work needs the core, then reports
// how many it ran. Whoever claims the last block, or finds none, reports only after it has made sure that the task is not
// open any more: so while a task is open, or a worker still claims from it, some block is unreported and the task cannot
// complete, let alone be reused.
void Worker::run_blocks(graph::Task& task, graph::RecordRef record, std::int32_t block) {
  Executor::OpenTasks& open = executor_.open_[static_cast<int>(task.shape)];
  open.inside.fetch_add(1, std::memory_order_relaxed);
  std::int32_t finished = 0;
  bool leave = false;
  do {
    if (!executor_.latch_->raised()) run_block(task, record, block, lane_of(static_cast<int>(task.shape)));
    ++finished;
    leave = block + 1 < task.block_count && wanted_elsewhere();
    if (!leave) block = task.next_block.fetch_add(1, std::memory_order_relaxed);
  } while (!leave && block < task.block_count);
  if (!leave) close_task(task, record);
  open.visits.fetch_add(1, std::memory_order_relaxed);
  open.inside.fetch_sub(1, std::memory_order_relaxed);
  const bool last = task.blocks_left.fetch_sub(finished, std::memory_order_acq_rel) == finished;
  if (last && !executor_.latch_->raised()) complete(record);
}

// Runs one lane of a block on the core that was reserved for it. Its siblings run at the same time on other threads.
void Worker::run_lane(const Lane& lane) {
  drop_core();
  graph::Task& task = executor_.graph_->task(lane.record);
  core_ = lane.core;
  bound_core = lane.core;
  if (lane.rendezvous != nullptr) lane.rendezvous->arrive_and_wait();
  if (!executor_.latch_->raised()) {
    core_->load(task);
    run_block(task, lane.record, lane.block, lane.kernel_lane);  // conditions that it leaves count in blocks_left
  }
  core_ = nullptr;
  bound_core = nullptr;
  executor_.lanes_placed(executor_.gangs_.finish(*executor_.graph_, lane.core));
  const bool last = task.blocks_left.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last && !executor_.latch_->raised()) complete(lane.record);
}

// True if the block left conditions behind that must hold before the task is over; they count as one more block.
bool Worker::run_block(graph::Task& task, graph::RecordRef record, std::int32_t block, int lane) {
  const int kernel = task.kernels[lane];
  core_->begin_block(block);
  running_.task.store(task.id.raw, std::memory_order_relaxed);
  running_.kernel.store(kernel, std::memory_order_relaxed);
  running_.core.store(core_->index(), std::memory_order_relaxed);
  running_.block.store(block, std::memory_order_relaxed);
  const std::uint32_t sequence = kernel_sequence_.load(std::memory_order_relaxed);
  kernel_sequence_.store(sequence + 1, std::memory_order_relaxed);
  const bool timed = task.timing_slot >= 0;
  const auto begin = timed ? Executor::Clock::now() : Executor::Clock::time_point();
  try {
    const int signal = CrashGuard::call([&] { executor_.kernels_->functions[kernel](core_->args()); });
    if (signal != 0) fail_run(abi::ErrorCode::KERNEL_CRASHED, task, block, CrashGuard::describe(signal));
  } catch (const KernelEnded& end) {
    log::device(log::Level::kInfo, log_origin(task, block), "kernel", "%s", end.what());
  } catch (const std::exception& error) {
    fail_run(abi::ErrorCode::KERNEL_CRASHED, task, block, error.what());
  } catch (...) {
    fail_run(abi::ErrorCode::KERNEL_CRASHED, task, block, "it threw something that is no std::exception");
  }
  if (timed) executor_.timing_slots_.record(task.timing_slot, begin, Executor::Clock::now());
  kernel_sequence_.store(sequence + 2, std::memory_order_relaxed);
  DeferredCompletionSlab& slab = core_->slab();
  if (slab.count == 0 && slab.error_code == 0) return false;
  const DeferredTasks::Refusal refusal = executor_.deferred_.hold(task, record, slab);
  if (!refusal.text.empty()) fail_run(refusal.code, task, block, refusal.text.c_str());
  return true;
}

// Reports tasks whose last conditions have come true.
void Worker::poll_deferred() {
  graph::RecordRef due[kBatch];
  const std::size_t count = executor_.deferred_.take_due(due, kBatch);
  for (std::size_t i = 0; i < count; ++i) {
    if (executor_.graph_->task(due[i]).blocks_left.fetch_sub(1, std::memory_order_acq_rel) == 1) complete(due[i]);
  }
  if (const auto lost = executor_.deferred_.lost(); lost && !executor_.latch_->raised()) {
    executor_.latch_->raise(
        abi::ErrorCode::ASYNC_COMPLETION_INVALID,
        "task %u in ring %u waits for a completion condition at 0x%llx, which was memory when it was "
        "registered and is not any more: keep it until the task is complete",
        lost->task.local(), lost->task.ring(), static_cast<unsigned long long>(lost->address));
    executor_.notify_submitter();
  }
}

void Worker::fail_run(abi::ErrorCode code, const graph::Task& task, std::int32_t block, const char* what) {
  const bool first = executor_.latch_->raise(code, "kernel %d of task %u in ring %u, block %d, on core %d: %s",
                                             running_.kernel.load(std::memory_order_relaxed), task.id.local(),
                                             task.id.ring(), block, core_->index(), what);
  // If not, the run's failure is another one.
  if (!first) log::device(log::Level::kError, log_origin(task, block), "kernel", "%s", what);
  executor_.notify_submitter();
}

log::Origin Worker::log_origin(const graph::Task& task, std::int32_t block) const {
  return {.device = executor_.device(),
          .ring = task.id.ring(),
          .task = task.id.local(),
          .kernel = running_.kernel.load(std::memory_order_relaxed),
          .block = block,
          .core = core_->index()};
}

// Completes the task, and the dummies and skipped tasks that this makes ready; keeps one ready task in hand and puts the
// others into the own rings.
void Worker::complete(graph::RecordRef record) {
  graph::Graph& graph = *executor_.graph_;
  graph::RecordRef inline_tasks = record;  // linked by next_open
  graph.task(record).next_open = graph::kNoRecord;
  std::uint32_t pushed = 0;
  while (inline_tasks != graph::kNoRecord) {
    graph::Task& task = graph.task(inline_tasks);
    inline_tasks = task.next_open;
    const std::uint32_t slot = task.slot;
    // First: whoever sees the task complete, and with the last one the run, finds it counted.
    completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    graph.complete(task, [&](graph::RecordRef consumer) {
      graph::Task& woken = graph.task(consumer);
      if (woken.shape == graph::Shape::kDummy) {
        woken.next_open = inline_tasks;
        inline_tasks = consumer;
      } else if (next_ == graph::kNoRecord) {
        next_ = consumer;
      } else {
        rings_[static_cast<int>(woken.shape)].push(consumer);
        ++pushed;
      }
    });
    executor_.notify_if_awaited(slot);
  }
  if (pushed > 0) executor_.gate_.announce();
}

}  // namespace simpler::executor
