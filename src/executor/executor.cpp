#include "executor/executor.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "executor/crash_guard.h"
#include "executor/worker.h"

namespace simpler::executor {
namespace {

constexpr std::chrono::milliseconds kDefaultSchedulerTimeout{10'000};
constexpr std::chrono::milliseconds kDefaultOrchestrationTimeout{50'000};

CoreType core_type_of(int shape) {
  return shape == static_cast<int>(graph::Shape::kAic) ? CoreType::AIC : CoreType::AIV;
}

std::chrono::milliseconds milliseconds_from_environment(const char* name, std::chrono::milliseconds otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (*end == '\0' && errno == 0 && value > 0 && value <= INT32_MAX) return std::chrono::milliseconds(value);
  log::host(log::Level::kWarn, __func__, "%s=%s is ignored: it must be a whole number of milliseconds from 1 to %d",
            name, text, INT32_MAX);
  return otherwise;
}

std::optional<std::uint64_t> seed_from_environment() {
  const char* text = std::getenv("SIMPLER_SIM_SEED");
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const std::uint64_t seed = std::strtoull(text, &end, 0);
  if (*end == '\0' && errno == 0 && *text != '-') return seed;
  log::host(log::Level::kWarn, __func__, "SIMPLER_SIM_SEED=%s is ignored: it must be a whole number of at most 64 bits",
            text);
  return std::nullopt;
}

// Whether tasks begin only when the orchestration ends, or waits for one of them.
bool serial_from_environment() {
  constexpr const char* kName = "SIMPLER_TMR_SERIAL_ORCH_SCHED_ENABLE";
  const char* text = std::getenv(kName);
  if (text == nullptr || *text == '\0' || std::strchr("0fF", *text) != nullptr) return false;
  if (std::strchr("1tT", *text) != nullptr) return true;
  log::host(log::Level::kWarn, __func__, "%s=%s is ignored: it must be 1 or true, 0 or false", kName, text);
  return false;
}

}  // namespace

Executor::Executor(int clusters, int threads)
    : cores_(clusters),
      base_threads_(seed_from_environment() ? 1 : threads),
      max_threads_(base_threads_ + cores_.core_count()),
      owner_pid_(getpid()),
      order_(seed_from_environment()),
      workers_(std::make_unique<std::unique_ptr<Worker>[]>(static_cast<std::size_t>(max_threads_))),
      scheduler_timeout_(milliseconds_from_environment("SIMPLER_SCHEDULER_TIMEOUT_MS", kDefaultSchedulerTimeout)),
      orchestration_timeout_(
          milliseconds_from_environment("SIMPLER_STREAM_SYNC_TIMEOUT_MS", kDefaultOrchestrationTimeout)) {
  for (WorkRing& ring : submitted_) ring.configure(ring_capacity_);
  gate_.set_limit(base_threads_);
  for (int i = 0; i < base_threads_; ++i) add_worker();
  monitor_thread_ = std::thread([this] { monitor(); });
}

Executor::~Executor() {
  SIMPLER_CHECK(getpid() == owner_pid_, "an executor of process %d is destroyed in its child %d", owner_pid_, getpid());
  stopping_.store(true, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(monitor_mutex_);
    monitor_wakeup_.notify_all();
  }
  monitor_thread_.join();
  int count;
  {
    const std::lock_guard lock(grow_mutex_);  // nobody adds workers after this: add_worker looks at stopping_
    count = worker_count_.load(std::memory_order_acquire);
  }
  // A worker that was just about to sleep may miss the first call, but not one after it registered; and it registers
  // before it looks at stopping_ again.
  {
    const std::lock_guard lock(limit_mutex_);  // a worker that placed the last lanes may only now refresh the limit
    gate_.set_limit(UINT16_MAX);               // so that whoever registers late looks again
  }
  gate_.wake_all();
  for (int i = 0; i < count; ++i) workers_[i]->join();
}

bool Executor::add_worker() {
  const std::lock_guard lock(grow_mutex_);
  const int index = worker_count_.load(std::memory_order_relaxed);
  if (index >= max_threads_ || stopping_.load(std::memory_order_acquire)) return false;
  // One that could not be started stays, since others may have seen it, and is tried again.
  if (workers_[index] == nullptr) workers_[index] = std::make_unique<Worker>(*this, index, ring_capacity_);
  for (int shape = 0; shape < graph::kQueuedShapes; ++shape) workers_[index]->ring(shape).configure(ring_capacity_);
  worker_count_.store(index + 1, std::memory_order_release);
  if (workers_[index]->start()) return true;
  worker_count_.store(index, std::memory_order_release);
  return false;
}

void Executor::lanes_placed(int count) {
  refresh_limit();
  for (int i = 0; i < count; ++i) {
    if (gate_.wake_one(false)) continue;
    const WorkerGate::Counts counts = gate_.counts();
    if (counts.awake() >= counts.limit || !add_worker()) break;
  }
  gate_.announce();  // single cores may be free again
}

bool Executor::reserve(std::uint32_t tasks) {
  // All rings are empty between runs, so nobody is inside their cells.
  const std::lock_guard lock(grow_mutex_);
  ring_capacity_ = std::max(ring_capacity_, tasks);
  bool ok = true;
  for (WorkRing& ring : submitted_) ok = ring.configure(ring_capacity_) && ok;
  const int count = worker_count_.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    for (int shape = 0; shape < graph::kQueuedShapes; ++shape)
      ok = workers_[i]->ring(shape).configure(ring_capacity_) && ok;
  }
  return ok;
}

void Executor::begin_run(graph::Graph& graph, graph::ErrorLatch& latch, const KernelTable& kernels) {
  graph_ = &graph;
  latch_ = &latch;
  kernels_ = &kernels;
  streak_ = 0;
  stall_ = Stall{};
  CrashGuard::install();
  timing_slots_.clear();
  if (order_.enabled()) {
    order_.start();
    gate_.wake_one(false);
  }
  if (serial_from_environment()) {
    if (order_.enabled()) {
      log::host(log::Level::kWarn, __func__,
                "SIMPLER_TMR_SERIAL_ORCH_SCHED_ENABLE is ignored: SIMPLER_SIM_SEED decides when tasks begin");
    } else {
      hold_workers(true);
    }
  }
  const std::lock_guard lock(monitor_mutex_);
  run_active_ = true;
  turn_ticks_ = submitter_ticks_ = 0;
  neglected_.store(Neglected::kNone, std::memory_order_relaxed);
  last_tick_ = Clock::now();
  without_progress_ = since_failure_ = Clock::duration::zero();
  if (monitor_sleeps_) monitor_wakeup_.notify_all();
}

void Executor::orchestration_begins(void (*give_up)(void* context), void* context) {
  const std::lock_guard lock(monitor_mutex_);
  give_up_ = give_up;
  give_up_context_ = context;
}

bool Executor::orchestration_returned() {
  const std::lock_guard lock(monitor_mutex_);
  const bool in_time = give_up_ != nullptr;
  give_up_ = nullptr;
  return in_time;
}

bool Executor::end_run() {
  submitter_waits();
  if (order_.enabled()) order_.stop();
  bool quiet = true;
  if (latch_->raised()) {
    // Running kernels finish, everything else is dropped.
    const auto is_quiet = [this] {
      discard_queued();
      return !active();
    };
    const bool timed_out = latch_->ready() && latch_->code() == static_cast<int>(abi::ErrorCode::SCHEDULER_TIMEOUT);
    const std::chrono::milliseconds patience = timed_out ? kGraceAfterTimeout : scheduler_timeout_;
    auto deadline = Clock::now() + patience;
    for (std::uint64_t seen = activity(); !(quiet = is_quiet()) && Clock::now() < deadline;) {
      awaited_slot_.store(kAnySlot, std::memory_order_seq_cst);
      if ((quiet = is_quiet())) break;
      {
        std::unique_lock lock(submitter_mutex_);
        submitter_wakeup_.wait_until(lock, deadline, [this] { return submitter_called_; });
        submitter_called_ = false;
      }
      if (const std::uint64_t now = activity(); now != seen) {
        seen = now;
        deadline = Clock::now() + patience;
      }
    }
    awaited_slot_.store(kNoSlot, std::memory_order_relaxed);
    if (quiet) {
      for (OpenTasks& open : open_) {
        open.first = graph::kNoRecord;
        open.count.store(0, std::memory_order_relaxed);
      }
    }
  }
  const std::lock_guard lock(monitor_mutex_);
  run_active_ = false;
  stuck_.store(0, std::memory_order_relaxed);
  refresh_limit();
  return quiet;
}

void Executor::push(graph::RecordRef record) {
  graph::Task& task = graph_->task(record);
  if (task.shape == graph::Shape::kDummy) {
    complete_dummies(record);
    return;
  }
  if (order_.enabled() && order_.in_turns()) {
    if (order_.submitted(record)) give_turn();
    return;
  }
  submitted_[static_cast<int>(task.shape)].push(record);
  ++streak_;
  if (submitter_busy_.load(std::memory_order_relaxed)) {
    if (streak_ % kAnnounceEvery == 0) gate_.announce();
    return;
  }
  gate_.announce();
  if (streak_ >= kBusyStreak) set_submitter_busy(true);
}

// A ready dummy runs nothing: it completes here, and so do the dummies that this makes ready. What else this makes ready
// is pushed; while tasks are submitted there is none, since nobody waits for a task that was submitted just now.
void Executor::complete_dummies(graph::RecordRef record) {
  graph_->task(record).next_open = graph::kNoRecord;
  std::vector<graph::RecordRef> woken;
  while (record != graph::kNoRecord) {
    graph::Task& task = graph_->task(record);
    graph::RecordRef next = task.next_open;
    graph_->complete(task, [&](graph::RecordRef consumer) {
      graph::Task& ready = graph_->task(consumer);
      if (ready.shape == graph::Shape::kDummy) {
        ready.next_open = next;
        next = consumer;
      } else {
        woken.push_back(consumer);
      }
    });
    record = next;
  }
  for (const graph::RecordRef ready : woken) push(ready);
}

void Executor::set_submitter_busy(bool busy) {
  submitter_busy_.store(busy, std::memory_order_relaxed);
  refresh_limit();
  if (!busy) gate_.announce();
}

void Executor::hold_workers(bool on) {
  workers_held_.store(on, std::memory_order_relaxed);
  refresh_limit();
  if (!on) gate_.announce();
}

void Executor::submitter_waits() {
  streak_ = 0;
  if (workers_held_.load(std::memory_order_relaxed)) hold_workers(false);
  if (submitter_busy_.load(std::memory_order_relaxed)) set_submitter_busy(false);
}

// Lets the worker run a few tasks. False if it had nothing to run.
bool Executor::give_turn() {
  std::vector<graph::RecordRef> left;
  bool more = deferred_.count() > 0 && deferred_.any_due();
  const int count = worker_count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    for (int shape = 0; shape < graph::kQueuedShapes; ++shape) more = more || workers_[i]->ring(shape).size() > 0;
  }
  if (order_.give_turn(&left, more)) return true;
  for (const graph::RecordRef record : left) submitted_[static_cast<int>(graph_->task(record).shape)].push(record);
  if (!left.empty()) gate_.announce();
  return false;
}

void Executor::notify_submitter() {
  const std::lock_guard lock(submitter_mutex_);
  submitter_called_ = true;
  submitter_wakeup_.notify_one();
}

void Executor::refresh_limit() {
  const std::lock_guard lock(limit_mutex_);
  if (stopping_.load(std::memory_order_relaxed)) return;
  if (workers_held_.load(std::memory_order_relaxed)) {
    gate_.set_limit(0);
    return;
  }
  const int base = base_threads_ - (submitter_busy_.load(std::memory_order_relaxed) && base_threads_ >= 2 ? 1 : 0);
  gate_.set_limit(std::min(base + stuck_.load(std::memory_order_relaxed) + gangs_.outstanding(), max_threads_));
}

bool Executor::anything_queued(int shape) const {
  if (open_[shape].count.load(std::memory_order_relaxed) > 0 || submitted_[shape].size() > 0) return true;
  const int count = worker_count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    if (workers_[i]->ring(shape).size() > 0) return true;
  }
  return false;
}

bool Executor::work_visible(const Core* held) {
  if (gangs_.waiting() || anything_queued(static_cast<int>(graph::Shape::kMix))) return true;
  if (deferred_.count() > 0 && deferred_.any_due()) return true;
  for (int shape = 0; shape < 2; ++shape) {
    const CoreType type = core_type_of(shape);
    if ((cores_.any_free(type) || (held != nullptr && held->type() == type)) && anything_queued(shape)) return true;
  }
  return false;
}

bool Executor::active() const {
  for (int shape = 0; shape < graph::kQueuedShapes; ++shape) {
    if (anything_queued(shape)) return true;
  }
  if (deferred_.count() > 0 || gangs_.pending() || gangs_.outstanding() > 0) return true;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // queues before counts: see Worker::search
  return gate_.counts().busy() > 0;
}

// Tasks that nobody has begun; those of several blocks that still have blocks to claim.
std::uint32_t Executor::queued(int shape) const {
  std::uint32_t total = open_[shape].count.load(std::memory_order_relaxed) + submitted_[shape].size();
  const int count = worker_count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) total += workers_[i]->ring(shape).size();
  return total;
}

void Executor::discard_queued() {
  deferred_.clear();
  gangs_.discard();
  graph::RecordRef dropped[64];
  const int count = worker_count_.load(std::memory_order_acquire);
  for (int shape = 0; shape < graph::kQueuedShapes; ++shape) {
    while (submitted_[shape].take(dropped, 64, 1) > 0) {
    }
    for (int i = 0; i < count; ++i) {
      while (workers_[i]->ring(shape).take(dropped, 64, 1) > 0) {
      }
    }
  }
}

std::uint64_t Executor::completed() const {
  std::uint64_t total = 0;
  const int count = worker_count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) total += workers_[i]->completed();
  return total;
}

std::uint64_t Executor::activity() const {
  std::uint64_t total = completed();
  const int count = worker_count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) total += workers_[i]->kernel_sequence();
  return total;
}

void Executor::monitor() {
  std::unique_lock lock(monitor_mutex_);
  while (!stopping_.load(std::memory_order_acquire)) {
    if (!run_active_) {
      monitor_sleeps_ = true;
      monitor_wakeup_.wait(lock);
      monitor_sleeps_ = false;
      continue;
    }
    monitor_wakeup_.wait_for(lock, kMonitorTick);
    if (run_active_) tick();
  }
}

// Under monitor_mutex_.
void Executor::tick() {
  int running = 0, stuck = 0;
  const int count = worker_count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    Worker& worker = *workers_[i];
    const std::uint32_t sequence = worker.kernel_sequence();
    running += sequence & 1;
    worker.stuck = (sequence & 1) != 0 && sequence == worker.seen_sequence;
    worker.seen_sequence = sequence;
    stuck += worker.stuck;
  }
  if (stuck != stuck_.load(std::memory_order_relaxed)) {
    stuck_.store(stuck, std::memory_order_relaxed);
    refresh_limit();
  }
  if (order_.enabled()) watch_turns(stuck > 0, activity());
  for (;;) {
    const WorkerGate::Counts counts = gate_.counts();
    if (counts.awake() >= counts.limit || !work_visible(nullptr)) break;
    if (gate_.wake_one(false)) continue;
    if (!add_worker()) break;
  }
  notify_if_awaited(kAnySlot);
  if (!order_.enabled()) find_neglected();
  watch_progress(running, activity());
  if (give_up_ != nullptr) watch_orchestration();
}

// With a seed: ends the turns if whoever's turn it is seems to wait for the other one.
void Executor::watch_turns(bool stuck, std::uint64_t progress) {
  turn_ticks_ = stuck ? turn_ticks_ + 1 : 0;
  submitter_ticks_ = progress == last_progress_count_ ? submitter_ticks_ + 1 : 0;
  const bool kernel_waits = turn_ticks_ > kGiveUpTicks && order_.give_up(SeededOrder::Turn::kWorker);
  const auto submitter_limit = std::min<std::int64_t>(kGiveUpSubmitterTicks, scheduler_timeout_ / kMonitorTick / 2);
  const bool submitter_waits =
      !kernel_waits && submitter_ticks_ > submitter_limit && order_.give_up(SeededOrder::Turn::kSubmitter);
  if (!kernel_waits && !submitter_waits) return;
  log::host(log::Level::kWarn, __func__,
            "SIMPLER_SIM_SEED: %s waits for something, so the rest of this run has no fixed order",
            kernel_waits ? "a kernel" : "the orchestration");
}

void Executor::find_neglected() {
  const int notes = graph::kQueuedShapes * (Neglected::kWorkers + worker_count_.load(std::memory_order_acquire));
  seen_taken_.resize(static_cast<std::size_t>(notes));
  int found = Neglected::kNone;
  for (int i = 1; i <= notes; ++i) {
    const int note = (last_note_ + i) % notes;  // not the same one each time
    const int place = Neglected::place(note), shape = Neglected::shape(note);
    std::uint32_t taken;
    bool waits;
    if (place == Neglected::kOpen) {
      const OpenTasks& open = open_[shape];
      taken = open.visits.load(std::memory_order_relaxed);
      waits = open.count.load(std::memory_order_relaxed) > 0 && open.inside.load(std::memory_order_relaxed) == 0;
    } else {
      const WorkRing& ring =
          place == Neglected::kSubmitted ? submitted_[shape] : workers_[place - Neglected::kWorkers]->ring(shape);
      taken = ring.taken();
      waits = ring.size() > 0;
    }
    std::uint32_t& seen = seen_taken_[static_cast<std::size_t>(note)];
    if (waits && taken == seen && found == Neglected::kNone) found = note;
    seen = taken;
  }
  if (found != Neglected::kNone) last_note_ = found;
  neglected_.store(found, std::memory_order_release);  // the place may be of a worker that is new
}

Executor::Waits Executor::waits_for(int running) const {
  if (running > 0) return Waits::kForKernel;
  if (workers_held_.load(std::memory_order_relaxed)) return Waits::kForOrchestration;
  bool ready = gangs_.pending() || gangs_.waiting() || (order_.enabled() && order_.ready() > 0);
  for (int shape = 0; shape < graph::kQueuedShapes; ++shape) ready = ready || anything_queued(shape);
  if (ready) return Waits::kForCore;
  if (deferred_.count() > 0) return Waits::kForCondition;
  return give_up_ != nullptr ? Waits::kForOrchestration : Waits::kForNothing;
}

void Executor::watch_progress(int running, std::uint64_t progress) {
  const auto now = Clock::now();
  const Clock::duration passed = std::min<Clock::duration>(now - last_tick_, kMostPerTick);
  last_tick_ = now;
  since_failure_ = latch_->raised() ? since_failure_ + passed : Clock::duration::zero();
  const Waits waits = waits_for(running);
  if (progress != last_progress_count_ || waits != last_waits_) {
    last_progress_count_ = progress;
    last_waits_ = waits;
    without_progress_ = Clock::duration::zero();
    return;
  }
  without_progress_ += passed;
  const auto limit = waits == Waits::kForOrchestration ? orchestration_timeout_ : scheduler_timeout_;
  if (without_progress_ >= scheduler_timeout_ / kHeldBackShare && cores_.held_back()) {
    cores_.grant_single();  // what holds the cores may wait for a task that needs one
    gate_.announce();
  }
  if (without_progress_ < limit || latch_->raised()) return;
  raise_timeout(waits, running);
  notify_submitter();
}

// A failed run that the orchestration does not leave is over for everybody else.
void Executor::watch_orchestration() {
  if (!latch_->raised() || !latch_->ready()) return;
  const bool starved = without_progress_ >= orchestration_timeout_ && last_waits_ == Waits::kForOrchestration;
  if (!starved && since_failure_ < orchestration_timeout_) return;
  run_active_ = false;
  give_up_(give_up_context_);
  give_up_ = nullptr;
}

void Executor::raise_timeout(Waits waits, int running) {
  const long long limit = static_cast<long long>(scheduler_timeout_.count());
  stall_ = Stall{};
  stall_.running = running;
  for (int shape = 0; shape < graph::kQueuedShapes; ++shape) stall_.ready += queued(shape);
  switch (waits) {
    case Waits::kForKernel: raise_stuck_kernel(running); return;
    case Waits::kForCore:
      stall_.sub_class = "S3:ready-but-all-idle";
      if (gangs_.waiting()) {
        latch_->raise(abi::ErrorCode::SCHEDULER_TIMEOUT,
                      "no kernel started for %lld ms: %d lanes must run together, and the system gives this process no "
                      "more than %d threads for them (sub_class=S3:ready-but-all-idle)",
                      limit, gangs_.outstanding(), static_cast<int>(gate_.counts().started));
        return;
      }
      latch_->raise(abi::ErrorCode::SCHEDULER_TIMEOUT,
                    "nothing happened for %lld ms: %u tasks are ready and no core takes them, which is a defect of the "
                    "runtime (sub_class=S3:ready-but-all-idle)",
                    limit, stall_.ready);
      return;
    case Waits::kForCondition:
      stall_.sub_class = "S4:dependency-deadlock";
      stall_.task = deferred_.first();
      latch_->raise(abi::ErrorCode::SCHEDULER_TIMEOUT,
                    "nothing happened for %lld ms: %u tasks wait for completion conditions that nobody fulfils "
                    "(sub_class=S4:dependency-deadlock)",
                    limit, deferred_.count());
      return;
    case Waits::kForOrchestration:
      stall_.sub_class = "S5:orchestrator-starvation";
      latch_->raise(
          abi::ErrorCode::SCHEDULER_TIMEOUT,
          "the orchestration did not return, and for %lld ms no task was ready, ran or waited: it must end, or submit "
          "(sub_class=S5:orchestrator-starvation)",
          static_cast<long long>(orchestration_timeout_.count()));
      return;
    case Waits::kForNothing:
      stall_.sub_class = "unknown:accounting/corruption";
      latch_->raise(abi::ErrorCode::SCHEDULER_TIMEOUT,
                    "nothing happened for %lld ms: the run is not over, and no task is ready, runs or waits for a "
                    "condition, which is a defect of the runtime (sub_class=unknown:accounting/corruption)",
                    limit);
      return;
  }
}

void Executor::raise_stuck_kernel(int running) {
  for (int i = 0; i < worker_count_.load(std::memory_order_acquire); ++i) {
    const Worker& worker = *workers_[i];
    if (!worker.stuck) continue;
    const PTO2TaskId task{worker.running().task.load(std::memory_order_relaxed)};
    stall_.sub_class = "S1:running-stalled";
    stall_.task = task;
    stall_.core = worker.running().core.load(std::memory_order_relaxed);
    latch_->raise(abi::ErrorCode::SCHEDULER_TIMEOUT,
                  "no kernel returned for %lld ms; kernel %d of task %u in ring %u, block %d, runs on core %d, one of "
                  "%d that run "
                  "(sub_class=S1:running-stalled)",
                  static_cast<long long>(scheduler_timeout_.count()),
                  worker.running().kernel.load(std::memory_order_relaxed), task.local(), task.ring(),
                  worker.running().block.load(std::memory_order_relaxed),
                  worker.running().core.load(std::memory_order_relaxed), running);
    return;
  }
}

}  // namespace simpler::executor
