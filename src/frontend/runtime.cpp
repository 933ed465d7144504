#include "frontend/runtime.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/log.h"
#include "executor/crash_guard.h"

namespace simpler::frontend {

using abi::ErrorCode;
using graph::Outcome;
using graph::Resource;
using graph::Shape;
using graph::Shortage;
using graph::Submitted;
using graph::TaskSpec;

namespace {

// What a shortage is called, and the code that it ends a run with.
struct ResourceRow {
  const char* name;
  const char* unit;
  ErrorCode code;
};
constexpr ResourceRow kResources[] = {
    {"nothing", "", ErrorCode::NONE},
    {"task window", "tasks", ErrorCode::FLOW_CONTROL_DEADLOCK},
    {"output heap", "bytes", ErrorCode::HEAP_RING_DEADLOCK},
    {"dependency pool", "edges", ErrorCode::DEP_POOL_OVERFLOW},
    {"dependency pool for edges beyond 64 per task", "edges", ErrorCode::DEP_POOL_OVERFLOW},
    {"table of tracked writes", "writes", ErrorCode::TENSORMAP_OVERFLOW},
    {"memory for task records", "tasks", ErrorCode::FLOW_CONTROL_DEADLOCK},
    {"list of predecessors of one task", "tasks", ErrorCode::DEP_POOL_OVERFLOW},
};
const ResourceRow& row_of(const Shortage& shortage) { return kResources[static_cast<int>(shortage.resource)]; }

}  // namespace

const PTO2RuntimeOps Runtime::kOps = {
    .submit_task = [](PTO2Runtime* rt, const MixedKernels& kernels,
                      const CoreTaskArgs& args) { return self(rt).submit_kernels(kernels, args); },
    .submit_dummy_task =
        [](PTO2Runtime* rt, const CoreTaskArgs& args) {
          return self(rt).submit(TaskSpec{Shape::kDummy, {-1, -1, -1}, 0, false}, args);
        },
    .alloc_tensors = [](PTO2Runtime* rt, const CoreTaskArgs& args) { return self(rt).alloc(args); },
    .scope_begin = [](PTO2Runtime* rt, PTO2ScopeMode mode, const char* file,
                      int line) { self(rt).open_scope(mode, file, line); },
    .scope_end = [](PTO2Runtime* rt) { self(rt).close_scope(); },
    .orchestration_done = [](PTO2Runtime*) {},
    .is_fatal = [](PTO2Runtime* rt) { return self(rt).latch_.raised(); },
    .report_fatal =
        [](PTO2Runtime* rt, std::int32_t code, const char* function, const char* pattern, va_list values) {
          char text[graph::ErrorLatch::kTextBytes];
          std::vsnprintf(text, sizeof text, pattern, values);
          self(rt).latch_.raise(code, "%s: %s", function, text);
        },
    .log =
        [](PTO2Runtime* rt, PTO2LogLevel level, const char* function, const char* pattern, va_list values) {
          if (!log::enabled(static_cast<log::Level>(level))) return;
          log::device_v(static_cast<log::Level>(level), self(rt).log_origin(), function, pattern, values);
        },
    .get_tensor_data = [](PTO2Runtime* rt, const ChipTensor& tensor, std::uint32_t ndims,
                          const std::uint32_t* indices) -> std::uint64_t {
      char* address = nullptr;
      if (!self(rt).access(tensor, ndims, indices, "get_tensor_data", &address)) return 0;
      if (!self(rt).settle(tensor, false, "get_tensor_data")) return 0;
      std::uint64_t value = 0;
      std::memcpy(&value, address, get_element_size(tensor.dtype));
      return value;
    },
    .set_tensor_data =
        [](PTO2Runtime* rt, const ChipTensor& tensor, std::uint32_t ndims, const std::uint32_t* indices,
           std::uint64_t value) {
          char* address = nullptr;
          if (!self(rt).access(tensor, ndims, indices, "set_tensor_data", &address)) return;
          if (!self(rt).settle(tensor, true, "set_tensor_data")) return;
          std::memcpy(address, &value, get_element_size(tensor.dtype));
        },
    .available_cluster_count = [](PTO2Runtime* rt) { return static_cast<std::int32_t>(self(rt).executor_.clusters()); },
    .available_aiv_count =
        [](PTO2Runtime* rt) {
          return static_cast<std::int32_t>(self(rt).executor_.clusters() * executor::kVectorLanes);
        },
    .graph_begin = [](PTO2Runtime* rt, std::uint64_t key, const CoreTaskArgs& boundary,
                      bool always_ended) { return self(rt).begin_graph(key, boundary, always_ended); },
    .graph_end = [](PTO2Runtime* rt) { return self(rt).end_graph(); },
    .graph_commit = [](PTO2Runtime* rt) { return self(rt).commit_graph(); },
};

Runtime::Runtime(executor::Executor& executor) : executor_(executor) {
  binding_.ops = &kOps;
  binding_.self = this;
}

log::Origin Runtime::log_origin() const {
  return {.device = executor_.device(), .submitted = static_cast<std::int64_t>(graph_.submitted_count())};
}

void Runtime::run(const Orchestration& orchestration, const executor::KernelTable& kernels, abi::RunImage& image) {
  image.result.code = 0;
  std::memset(&image.result.wall_ns, 0, sizeof image.result - offsetof(abi::RunResult, wall_ns));
  __atomic_store_n(&image.result.abandoned, 0u, __ATOMIC_RELAXED);  // the host may be looking
  image_ = &image;
  begin_ = Clock::now();
  latch_.clear();
  bool submitted_all = false;
  if (quarantined_) {
    latch_.raise(ErrorCode::SCHEDULER_TIMEOUT, "not started: a kernel of the run before has not returned");
  } else if (!configure(image)) {
    latch_.raise(ErrorCode::HEAP_RING_DEADLOCK,
                 "the system refuses the address space for task windows of %llu, %llu, %llu and %llu tasks",
                 static_cast<unsigned long long>(image.rings.ring_task_window[0]),
                 static_cast<unsigned long long>(image.rings.ring_task_window[1]),
                 static_cast<unsigned long long>(image.rings.ring_task_window[2]),
                 static_cast<unsigned long long>(image.rings.ring_task_window[3]));
  } else {
    kernels_ = &kernels;
    orchestration.bind(&binding_);
    graph_.begin();
    executor_.begin_run(graph_, latch_, kernels);
    const std::int64_t tasks_may_begin = since_begin();
    begin_tasks(image);
    graph_.scopes().open(PTO2ScopeMode::AUTO);
    if (!orchestrate(orchestration, image)) return;
    submitted_all = !latch_.raised();
    while (graph_.scopes().any()) graph_.scopes().close();
    finish_tasks();
    quarantined_ = !executor_.end_run();
    if (runs_tasks_while_submitting()) image.result.scheduling = {tasks_may_begin, since_begin()};
    for (int slot = 0; slot < MAX_TASK_TIMING_SLOTS; ++slot) {
      abi::TimingWindow& window = image.result.timing_slots[slot];
      executor_.timing_slots().window(slot, begin_, &window.begin_ns, &window.end_ns);
    }
  }
  report(image, submitted_all);
  if (quarantined_) tell_abandoned(image);
}

bool Runtime::orchestrate(const Orchestration& orchestration, abi::RunImage& image) {
  executor::CrashGuard::install();
  executor_.orchestration_begins([](void* self) { static_cast<Runtime*>(self)->give_up(); }, this);
  int expected = 0;
  if (checks_argument_count())
    call_user("the configuration function", [&] { expected = orchestration.expected_arg_count(image.args); });
  const int given = image.args.tensor_count() + image.args.scalar_count();
  const bool enough = given >= expected;
  const std::int64_t entered = since_begin();
  if (enough && !latch_.raised()) call_user("the orchestration", [&] { orchestration.enter(image.args); });
  const std::int64_t returned = since_begin();
  if (!executor_.orchestration_returned()) return false;
  if (runs_tasks_while_submitting()) image.result.orchestration = {entered, returned};
  if (!enough && !latch_.raised()) {
    image.result.code = abi::RunResult::kTooFewArguments;
    std::snprintf(image.result.text, sizeof image.result.text,
                  "the orchestration expects %d arguments and got %d (%d tensors, %d scalars)", expected, given,
                  image.args.tensor_count(), image.args.scalar_count());
  }
  return true;
}

// On the monitor's thread; the orchestration still runs on the thread that called run().
void Runtime::give_up() {
  report(*image_, false);
  tell_abandoned(*image_);
}

// Last of all: who sees the word finds the result complete.
void Runtime::tell_abandoned(abi::RunImage& image) {
  __atomic_store_n(&image.result.abandoned, 1u, __ATOMIC_RELEASE);  // pairs with the host's look at the word alone
}

void Runtime::report(abi::RunImage& image, bool submitted_all) {
  image.result.wall_ns = static_cast<std::uint64_t>(since_begin());
  if (!latch_.raised()) return;
  while (!latch_.ready()) std::this_thread::yield();  // another thread is formatting the text
  image.result.code = latch_.code();
  std::snprintf(image.result.text, sizeof image.result.text, "%s", latch_.text());
  if (latch_.code() == static_cast<int>(ErrorCode::SCHEDULER_TIMEOUT)) log_stall(submitted_all);
}

void Runtime::log_stall(bool submitted_all) const {
  const executor::Stall& stall = executor_.stall();
  std::uint64_t open = 0;
  for (int ring = 0; ring < graph::kRings; ++ring) {
    graph_.for_each_live(ring, [&](PTO2TaskId id, const graph::Task&) { open += graph_.is_complete(id) ? 0 : 1; });
  }
  const std::uint64_t begun = static_cast<std::uint64_t>(stall.running) + stall.ready;
  log::host(
      log::Level::kError, "scheduler",
      "sub_class=%s completed=%llu/%llu running=%d ready=%u waiting=%llu orch_done=%d stuck_task_id=%lld stuck_core=%d",
      stall.sub_class, static_cast<unsigned long long>(graph_.submitted_count() - open),
      static_cast<unsigned long long>(graph_.submitted_count()), stall.running, stall.ready,
      static_cast<unsigned long long>(open > begun ? open - begun : 0), submitted_all ? 1 : 0,
      static_cast<long long>(stall.task.raw), stall.core);
}

bool Runtime::configure(const abi::RunImage& image) {
  if (configured_ && std::memcmp(&configured_rings_, &image.rings, sizeof image.rings) == 0 &&
      std::memcmp(configured_heaps_, image.heap_base, sizeof configured_heaps_) == 0) {
    return true;
  }
  configured_ = false;
  graph::RingSizes sizes;
  std::array<char*, graph::kRings> heaps;
  for (int r = 0; r < graph::kRings; ++r) {
    sizes.window[r] = static_cast<std::uint32_t>(image.rings.ring_task_window[r]);
    sizes.heap[r] = image.rings.ring_heap[r];
    sizes.dep_pool[r] = static_cast<std::uint32_t>(image.rings.ring_dep_pool[r]);
    heaps[r] = reinterpret_cast<char*>(image.heap_base[r]);
  }
  if (!configure_graph(sizes, heaps) || !executor_.reserve(graph_.capacity())) return false;
  configured_rings_ = image.rings;
  std::memcpy(configured_heaps_, image.heap_base, sizeof configured_heaps_);
  configured_ = true;
  return true;
}

// Calls a function of the user's shared object; whatever goes wrong in it ends the run.
template <typename Function> void Runtime::call_user(const char* what, Function function) {
  executor::CrashGuard::prepare_thread();
  try {
    const int signal = executor::CrashGuard::call([&] { function(); });
    if (signal != 0)
      latch_.raise(ErrorCode::KERNEL_CRASHED, "%s ended with %s", what, executor::CrashGuard::describe(signal));
  } catch (const OrchestrationStopped&) {
    // The code is latched already.
  } catch (const std::exception& error) {
    latch_.raise(ErrorCode::EXPLICIT_ORCH_FATAL, "%s threw an exception: %s", what, error.what());
  } catch (...) {
    latch_.raise(ErrorCode::EXPLICIT_ORCH_FATAL, "%s threw something that is no std::exception", what);
  }
}

// ---- submission -----------------------------------------------------------------------------------------------------

void Runtime::refuse(const char* pattern, ...) {
  va_list values;
  va_start(values, pattern);
  latch_.raise_v(static_cast<std::int32_t>(ErrorCode::INVALID_ARGS), pattern, values);
  va_end(values);
}

bool Runtime::kernel_exists(std::int32_t id) {
  if (id >= 0 && id < executor::KernelTable::kMaxKernels && kernels_->functions[id] != nullptr) return true;
  refuse("kernel id %d is not among the callable's kernels: add it to its incores or correct the id", id);
  return false;
}

bool Runtime::well_formed(const CoreTaskArgs& args) {
  if (args.has_error) {
    refuse("%s", args.error_msg != nullptr ? args.error_msg : "the argument object reports an error");
    return false;
  }
  for (int i = 0; i < args.tensor_count(); ++i) {
    const TensorRef& tensor = args.tensors()[i];
    const bool created = args.tag(i) == TensorArgType::OUTPUT;
    const std::uint32_t ndims = created ? tensor.create_info().ndims : tensor.ref().ndims;
    const DataType dtype = created ? tensor.create_info().dtype : tensor.ref().dtype;
    if (ndims < 1 || ndims > MAX_TENSOR_DIMS || dtype >= DataType::DATA_TYPE_NUM) {
      refuse(
          "tensor argument %d is not a valid descriptor (rank %u of at most 5, type number %d of at most 14): was it "
          "initialised?",
          i, ndims, static_cast<int>(dtype));
      return false;
    }
  }
  return true;
}

bool Runtime::acceptable(const CoreTaskArgs& args) {
  if (!well_formed(args)) return false;
  if (!graph_.scopes().any()) {
    refuse("a task was submitted outside any scope: rt_scope_end was called more often than rt_scope_begin");
    return false;
  }
  if (args.allow_early_resolve() || args.dump_arg_mask() != 0) note_ignored(args);
  return true;
}

// What is compared must exist by now; when the task is ready it is too late for a refusal that names the call.
bool Runtime::acceptable(const CoreTaskPredicate& predicate) {
  if (predicate.op > PredicateOp::LE) {
    refuse("set_predicate: the comparison is number %d, and the last one is PredicateOp::LE (%d)",
           static_cast<int>(predicate.op), static_cast<int>(PredicateOp::LE));
    return false;
  }
  const CorePredicateOperand& operand = predicate.operand;
  char* address = nullptr;
  return operand.tensor == nullptr || operand.tensor->buffer.addr == 0 ||
         locate(*operand.tensor, operand.ndims, operand.indices, "set_predicate", &address);
}

// Hints that change nothing here are accepted, and said to be ignored once.
void Runtime::note_ignored(const CoreTaskArgs& args) {
  if (args.allow_early_resolve() && !noted_early_resolve_) {
    noted_early_resolve_ = true;
    log::device(log::Level::kWarn, log_origin(), "set_allow_early_resolve",
                "the hint is ignored: the simulator starts consumers as soon as they are ready");
  }
  if (args.dump_arg_mask() != 0 && !noted_dump_) {
    noted_dump_ = true;
    log::device(log::Level::kWarn, log_origin(), "dump",
                "the marks are ignored: argument dumps are not available in this version");
  }
}

TaskOutputTensors Runtime::submit_kernels(MixedKernels kernels, const CoreTaskArgs& args) {
  if (latch_.raised() || !acceptable(args)) return {};
  const int blocks = args.launch_spec.block_count_;
  if (args.predicate().op != PredicateOp::NONE && !acceptable(args.predicate())) return {};
  if (kernels.aic_kernel_id < 0 && kernels.aiv0_kernel_id < 0 && kernels.aiv1_kernel_id >= 0)
    std::swap(kernels.aiv0_kernel_id, kernels.aiv1_kernel_id);
  const std::uint8_t lanes = kernels.to_active_mask();
  if (lanes == 0) {
    refuse("a task needs at least one kernel: its ids are aic %d, aiv0 %d and aiv1 %d, and a negative one is none",
           kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id);
    return {};
  }
  if (blocks < 1) {
    refuse("a task needs at least one block, and the launch specification asks for %d", blocks);
    return {};
  }
  for (std::int32_t id : {kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id}) {
    if (id >= 0 && !kernel_exists(id)) return {};
  }
  if (const int all = blocks * __builtin_popcount(lanes); all > most_lanes()) {
    refuse("%d blocks of %d kernels are %d, and a task has at most %d", blocks, __builtin_popcount(lanes), all,
           most_lanes());
    return {};
  }
  const bool mix = (lanes & (lanes - 1)) != 0;
  const bool cohort = args.launch_spec.require_sync_start() && blocks > 1;
  if (cohort) {
    const int limit = executor_.clusters() * (!mix && lanes != 1 ? executor::kVectorLanes : 1);
    if (blocks > limit) {
      latch_.raise(ErrorCode::REQUIRE_SYNC_START_INVALID, "%d blocks must start together, and the device has %d %s",
                   blocks, limit,
                   lanes == 1 ? "matrix cores"
                   : mix      ? "clusters"
                              : "vector cores");
      return {};
    }
  }
  TaskSpec spec{mix || cohort ? Shape::kMix : lanes == 1 ? Shape::kAic : Shape::kAiv, {}, blocks, cohort};
  spec.kernels[0] = static_cast<std::int16_t>(kernels.aic_kernel_id);
  spec.kernels[1] = static_cast<std::int16_t>(kernels.aiv0_kernel_id);
  spec.kernels[2] = static_cast<std::int16_t>(kernels.aiv1_kernel_id);
  return submit(spec, args);
}

TaskOutputTensors Runtime::alloc(const CoreTaskArgs& args) {
  if (latch_.raised() || !acceptable(args)) return {};
  if (args.tensor_count() == 0 || args.scalar_count() > 0) {
    refuse("alloc_tensors takes at least one TensorCreateInfo and no scalars; it got %d tensors and %d scalars",
           args.tensor_count(), args.scalar_count());
    return {};
  }
  for (int i = 0; i < args.tensor_count(); ++i) {
    if (args.tag(i) == TensorArgType::OUTPUT) continue;
    refuse("alloc_tensors takes only TensorCreateInfo; argument %d is an existing tensor", i);
    return {};
  }
  return submit(TaskSpec{Shape::kAlloc, {-1, -1, -1}, 0, false}, args);
}

TaskOutputTensors Runtime::submit(const TaskSpec& spec, const CoreTaskArgs& args) {
  if (latch_.raised()) return {};
  if (spec.shape == Shape::kDummy && !acceptable(args)) return {};
  const graph::Scopes& scopes = graph_.scopes();
  const std::uint32_t window = graph_.sizes().window[scopes.ring()];
  if (scopes.task_count() >= window - 1) {
    latch_.raise(ErrorCode::SCOPE_DEADLOCK,
                 "a scope at depth %d holds %u tasks, and ring %d has a window of %u: one more would never fit",
                 scopes.depth() - 1, scopes.task_count(), scopes.ring(), window);
    return {};
  }
  Clock::time_point last_progress{};
  for (;;) {
    Submitted submitted;
    Shortage shortage;
    const char* refusal = nullptr;
    switch (graph_.submit(spec, args, &submitted, &shortage, &refusal)) {
      case Outcome::kTaken: {
        // The record stays: this thread alone reclaims it. But read it before others may change it.
        const PTO2TaskId id = submitted.task->id;
        const ChipTensor* tensors = submitted.task->tensors();
        taken(spec, args, submitted);
        return TaskOutputTensors(id, tensors, submitted.outputs);
      }
      case Outcome::kRefused: refuse("%s", refusal); return {};
      case Outcome::kShort:
        if (latch_.raised()) return {};
        if (shortage.hopeless()) {
          fail(shortage, "it is too small for this one task");
          return {};
        }
        if (!make_room(shortage, &last_progress)) return {};
    }
  }
}

void Runtime::fail(const Shortage& shortage, const char* why) {
  const ResourceRow& row = row_of(shortage);
  const int depth = graph_.scopes().depth() - 1;
  char place[64] = "";
  if (graph_.lifetime() == graph::Lifetime::kScopes) {
    std::snprintf(place, sizeof place, " of ring %d (scopes at depth %d%s)", shortage.ring, shortage.ring,
                  shortage.ring == graph::kRings - 1 ? " and deeper" : "");
  } else if (shortage.ring == graph::kNodeRing) {
    std::snprintf(place, sizeof place, " of recorded graphs");
  }
  latch_.raise(row.code,
               "the %s%s has no room: %llu of %llu %s are used, %llu more are needed; "
               "%s (the task is submitted in a scope at depth %d)",
               row.name, place, static_cast<unsigned long long>(shortage.used),
               static_cast<unsigned long long>(shortage.capacity), row.unit,
               static_cast<unsigned long long>(shortage.requested), why, depth);
}

// ---- scopes and elements --------------------------------------------------------------------------------------------

void Runtime::open_scope(PTO2ScopeMode mode, const char* file, int line) {
  if (latch_.raised()) return;
  switch (graph_.scopes().open(mode)) {
    case graph::Scopes::Refusal::kNone: return;
    case graph::Scopes::Refusal::kTooDeep:
      refuse("scopes are nested deeper than %d (%s:%d)", graph::kMaxScopeDepth, file, line);
      return;
    case graph::Scopes::Refusal::kAutoInManual:
      refuse("an automatic scope inside a manual one (%s:%d): use PTO2ScopeMode::MANUAL for the inner one too", file,
             line);
      return;
  }
}

void Runtime::close_scope() {
  if (latch_.raised()) return;
  if (graph_.scopes().depth() <= 1) {  // the outermost one is the runtime's
    refuse("rt_scope_end without rt_scope_begin: the orchestration has 0 open scopes");
    return;
  }
  graph_.scopes().close();
}

SimplerGraphBlock Runtime::begin_graph(std::uint64_t, const CoreTaskArgs&, bool) {
  if (!latch_.raised()) {
    refuse("graphs are recorded and replayed by the runtime host_build_graph only: build the orchestration for it");
  }
  return {false, false, PTO2TaskId::invalid()};
}
bool Runtime::end_graph() { return false; }
PTO2TaskId Runtime::commit_graph() { return PTO2TaskId::invalid(); }

bool Runtime::access(const ChipTensor& tensor, std::uint32_t ndims, const std::uint32_t* indices, const char* call,
                     char** address) {
  if (latch_.raised()) return false;
  if (tensor.buffer.addr == 0) {
    log::device(log::Level::kError, log_origin(), call,
                "the tensor has no memory (address 0); nothing is read or written");
    return false;
  }
  return locate(tensor, ndims, indices, call, address);
}

bool Runtime::locate(const ChipTensor& tensor, std::uint32_t ndims, const std::uint32_t* indices, const char* call,
                     char** address) {
  if (tensor.ndims > MAX_TENSOR_DIMS || ndims > tensor.ndims || tensor.dtype >= DataType::DATA_TYPE_NUM) {
    refuse("%s: %u indices for a tensor of rank %u and type number %d", call, ndims, tensor.ndims,
           static_cast<int>(tensor.dtype));
    return false;
  }
  for (std::uint32_t d = 0; d < ndims; ++d) {
    if (indices[d] < tensor.shapes[d]) continue;
    refuse("%s: index %u of dimension %u is outside the tensor, which has %u there", call, indices[d], d,
           tensor.shapes[d]);
    return false;
  }
  const std::uint64_t element = tensor.compute_flat_offset(indices, ndims), width = get_element_size(tensor.dtype);
  if (element >= tensor.buffer.size / width) {
    refuse(
        "%s: the view begins %llu elements into its buffer, and the element is number %llu of a buffer of %llu bytes",
        call, static_cast<unsigned long long>(tensor.start_offset), static_cast<unsigned long long>(element),
        static_cast<unsigned long long>(tensor.buffer.size));
    return false;
  }
  *address = tensor.data_as<char>() + element * width;
  return true;
}

}  // namespace simpler::frontend
