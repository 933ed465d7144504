#include "host/device_runner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "abi/error_codes.h"
#include "abi/kernel_args.h"
#include "abi/run_image.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "executor/arch_profile.h"
#include "frontend/device_program.h"
#include "host/registry.h"
#include "host/ring_config.h"
#include "host/run_trace.h"
#include "host/sim_options.h"
#include "host/staging.h"

namespace simpler::host {
namespace {

using driver::Driver;

enum DeviceFunction { kInit, kExecute, kRegister, kUnregister };
constexpr const char* kSymbols[] = {"simpler_aicpu_init", "simpler_aicpu_exec", "simpler_aicpu_register_callable",
                                    "simpler_aicpu_unregister_callable"};

constexpr std::string_view kSimSuffix = "sim";
constexpr std::int64_t kLookForAbandonedMs = 200;
constexpr std::int64_t kFinalizeLimitNs = 10'000'000'000;  // of waiting for a run before its device is given up

// The failure of a run, in the words that callers match.
Status run_failure(const abi::RunResult& result) {
  const char* name = abi::error_name(result.code);
  const char* hint = abi::error_hint(result.code);
  const bool scheduler = result.code >= static_cast<int>(abi::ErrorCode::SCHEDULER_TIMEOUT);
  log::host(log::Level::kError, "finalize_run", "%s_error_code=%d", scheduler ? "sched" : "orch", result.code);
  log::host(log::Level::kError, "finalize_run", "error detail: %s: %s", name, result.text);
  log::host(log::Level::kError, "finalize_run", "error hint: %s", hint);
  return Status(ErrorKind::kRun, result.code > 0 ? -result.code : result.code,
                format("%s: %s. %s", name, result.text, hint));
}

// One of the places for a run between prepare and finalize, with what it keeps from run to run.
struct RunSlot {
  enum class State { kFree, kPrepared, kLaunched };
  State state = State::kFree;
  RunId id = 0;
  int callable_slot = 0;
  std::shared_ptr<Callable> callable;
  std::shared_ptr<DeviceBlock> heap;
  Staging staging;
  std::vector<ChipTensor> tensors;
  DeviceBlock image;
  DeviceBlock kernel_args;
  driver::Event* event = nullptr;
  Status ended;  // the failure that a wait was told; it is told once
  RunTrace trace{};
};

std::atomic<RunId> next_run_id{1};

}  // namespace

class DeviceRunner::Impl {
 public:
  enum class State { kFresh, kReady, kUnusable, kFinalized };

  Impl(const RunnerOptions& options, const executor::ArchProfile& arch, driver::SoftChip chip)
      : options_(options), arch_(arch), chip_(chip), soft_(chip), driver_(soft_.table()), registry_(driver_) {}
  ~Impl() {
    if (getpid() == owner_pid_) static_cast<void>(finalize());
  }
  bool inherited() const { return getpid() != owner_pid_; }
  // Whether the object must outlive its owner: see finalize.
  bool forgotten() const { return forgotten_; }

  Status attach() {
    const std::lock_guard lock(mutex_);
    if (Status status = bind_thread(); !status.ok()) return status;
    for (driver::Stream** stream : {&stream_, &core_stream_}) {
      if (Status status = check(driver_.stream_create(driver_.self, stream), "stream_create"); !status.ok())
        return status;
    }
    const std::string program = driver::builtin_program(options_.runtime);
    const driver::Binary binary{program.data(), program.size()};
    const std::uint64_t fingerprint = fnv1a(program.data(), program.size());
    if (Status status = check(
            driver_.cpu_bootstrap(driver_.self, binary, binary, fingerprint, options_.device_id, stream_), "bootstrap");
        !status.ok())
      return status;
    if (Status status =
            check(driver_.cpu_load(driver_.self, fingerprint, options_.device_id, kSymbols, 4, &module_), "cpu_load");
        !status.ok())
      return status;
    for (int i = 0; i < 4; ++i) {
      if (Status status = check(driver_.cpu_function(driver_.self, module_, kSymbols[i], &functions_[i]), kSymbols[i]);
          !status.ok())
        return status;
    }
    if (Status status = check(driver_.core_image_load(driver_.self, binary, &core_image_), "core_image_load");
        !status.ok())
      return status;
    for (RunSlot& slot : runs_) {
      if (Status status = check(driver_.event_create(driver_.self, &slot.event), "event_create"); !status.ok())
        return status;
    }
    abi::InitArgs args{};
    args.device = static_cast<std::uint32_t>(options_.device_id);
    args.log_level = static_cast<std::uint32_t>(log::threshold());
    if (Status status = call_device(kInit, &args, sizeof args, "init"); !status.ok()) return status;
    become(State::kReady);
    return Status();
  }

  Status finalize() {
    for (RunSlot& slot : runs_) {
      RunId id = 0;
      {
        const std::lock_guard lock(mutex_);
        if (slot.state != RunSlot::State::kFree) id = slot.id;
      }
      if (id == 0) continue;
      bool done = true;
      static_cast<void>(wait_run(id, kFinalizeLimitNs, &done));
      if (done) {
        static_cast<void>(finalize_run(id, nullptr));  // its failure belongs to whoever waits for it
      } else {
        const std::lock_guard lock(mutex_);  // an orchestration that does not end: it keeps what it uses
        if (state_ == State::kReady) become(State::kUnusable);
        break;
      }
    }
    const std::lock_guard lock(mutex_);
    if (state_ == State::kFinalized) return Status();
    if (state_ == State::kUnusable) {  // memory, code and threads stay with the kernel that may still use them
      become(State::kFinalized);
      forgotten_ = true;
      return Status();
    }
    if (module_ != nullptr) driver_.cpu_unload(driver_.self, module_);
    for (RunSlot& slot : runs_) {
      if (slot.event != nullptr) driver_.event_destroy(driver_.self, slot.event);
      slot.callable.reset();
      slot.heap.reset();
      slot.staging = Staging();
      slot.image.release();
      slot.kernel_args.release();
    }
    if (stream_ != nullptr) driver_.stream_destroy(driver_.self, stream_);
    if (core_stream_ != nullptr) driver_.stream_destroy(driver_.self, core_stream_);
    registry_.clear();
    heap_.reset();
    for (const auto& [address, bytes] : user_memory_) driver_.free(driver_.self, address);
    user_memory_.clear();
    for (int left = references_.exchange(0); left > 0; --left) driver_.reset_device(driver_.self, options_.device_id);
    become(State::kFinalized);
    return Status();
  }

  // ---- memory ---------------------------------------------------------------------------------------------------------

  Status malloc(std::size_t bytes, std::uint64_t* address) {
    const std::lock_guard lock(mutex_);
    if (Status status = require_ready(); !status.ok()) return status;
    if (bytes == 0) return fail(ErrorKind::kValue, "malloc of 0 bytes: ask for at least 1");
    if (const int code = driver_.alloc(driver_.self, bytes, address); code != driver::kOk) {
      return fail(ErrorKind::kMemory, format("malloc: %s (code %d)", driver_.recent_error(driver_.self), code));
    }
    user_memory_[*address] = bytes;
    return Status();
  }

  Status free(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    if (Status status = require_ready(); !status.ok()) return status;
    const auto found = user_memory_.find(address);
    if (found == user_memory_.end()) {
      return fail(ErrorKind::kValue,
                  format("free of 0x%llx: malloc of this worker did not return that address, or it was freed already",
                         static_cast<unsigned long long>(address)));
    }
    user_memory_.erase(found);
    return check(driver_.free(driver_.self, address), "free");
  }

  Status copy_to(std::uint64_t destination, const void* source, std::size_t bytes) {
    if (Status status = locked_ready(); !status.ok()) return status;
    if (source == nullptr && bytes > 0)
      return fail(ErrorKind::kValue, format("copy_to of %zu bytes: the host address is null", bytes));
    return copy_status(driver_.copy_to_device(driver_.self, destination, source, bytes));
  }
  Status copy_from(void* destination, std::uint64_t source, std::size_t bytes) {
    if (Status status = locked_ready(); !status.ok()) return status;
    if (destination == nullptr && bytes > 0)
      return fail(ErrorKind::kValue, format("copy_from of %zu bytes: the host address is null", bytes));
    return copy_status(driver_.copy_from_device(driver_.self, destination, source, bytes));
  }
  std::size_t committed_memory() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [address, bytes] : user_memory_) total += bytes;
    return total;
  }

  // ---- callables ------------------------------------------------------------------------------------------------------

  Status register_callable(int slot, const void* blob, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (Status status = require_ready(); !status.ok()) return status;
    if (Status status = check_slot(slot); !status.ok()) return status;
    if (registry_.at(slot) != nullptr)
      return fail(ErrorKind::kState, format("callable slot %d is taken: unregister it first", slot));
    if (const abi::Verdict verdict = abi::check_chip_callable(blob, bytes); !verdict.ok()) {
      return fail(ErrorKind::kValue, format("not a valid ChipCallable: %s", verdict.text()));
    }
    std::shared_ptr<Callable> callable;
    if (Status status = registry_.load(blob, bytes, &callable); !status.ok()) return status;
    const abi::ChipCallable& header = callable->header();
    abi::RegisterCallableArgs args{};
    args.id = slot;
    args.code_address = callable->upload.address() + sizeof(abi::ChipCallable);
    args.code_bytes = header.binary_size;
    std::memcpy(args.function_name, header.func_name, sizeof args.function_name);
    std::memcpy(args.config_name, header.config_name, sizeof args.config_name);
    if (Status status = call_device(kRegister, &args, sizeof args, "register_callable"); !status.ok()) return status;
    registry_.set(slot, std::move(callable));
    ++loads_;
    return Status();
  }

  Status unregister_callable(int slot) {
    const std::lock_guard lock(mutex_);
    if (Status status = require_ready(); !status.ok()) return status;
    if (Status status = check_slot(slot); !status.ok()) return status;
    if (registry_.at(slot) == nullptr) return fail(ErrorKind::kKey, format("callable slot %d is empty", slot));
    for (const RunSlot& run : runs_) {
      if (run.state == RunSlot::State::kPrepared && run.callable_slot == slot) {
        return fail(ErrorKind::kState,
                    format("a prepared run uses callable slot %d: launch or finalize it first", slot));
      }
    }
    const std::int32_t id = slot;  // queued behind the launched runs that use it
    if (Status status = call_device(kUnregister, &id, sizeof id, "unregister_callable"); !status.ok()) return status;
    registry_.set(slot, nullptr);
    return Status();
  }

  // ---- runs -----------------------------------------------------------------------------------------------------------

  Status prepare_run(int callable_slot, const ChipStorageTaskArgs& args, const abi::CallConfig& config, RunId* id) {
    const std::int64_t begin = monotonic_ns();
    const std::lock_guard lock(mutex_);
    if (Status status = require_ready(); !status.ok()) return status;
    if (Status status = check_slot(callable_slot); !status.ok()) return status;
    if (registry_.at(callable_slot) == nullptr)
      return fail(ErrorKind::kKey, format("callable slot %d is empty: register a callable first", callable_slot));
    if (const abi::Verdict verdict = abi::check_call_config(config); !verdict.ok())
      return fail(ErrorKind::kValue, verdict.text());
    if (config.aicpu_thread_num != 0 &&
        (config.aicpu_thread_num < 2 || config.aicpu_thread_num > arch_.device_threads)) {
      return fail(ErrorKind::kValue, format("aicpu_thread_num=%d is not possible on %s: 0 for the default, or 2..%d",
                                            config.aicpu_thread_num, options_.platform.c_str(), arch_.device_threads));
    }
    const auto free_slot =
        std::find_if(runs_.begin(), runs_.end(), [](const RunSlot& run) { return run.state == RunSlot::State::kFree; });
    if (free_slot == runs_.end())
      return fail(ErrorKind::kState, format("%d runs are in flight: finalize one first", kPipelineDepth));
    RunSlot& run = *free_slot;
    run.callable = registry_.at(callable_slot);
    note_tensor_count(*run.callable, args.tensor_count());
    if (Status status = run.staging.upload(driver_, args, run.callable->header(), &run.tensors); !status.ok())
      return status;
    const abi::RuntimeEnv rings = resolve_rings(config.runtime_env);
    log::host(log::Level::kInfo, __func__, "ring sizes: task_window=%s heap=%s dep_pool=%s",
              list(rings.ring_task_window).c_str(), list(rings.ring_heap).c_str(), list(rings.ring_dep_pool).c_str());
    if (Status status = bind(run, callable_slot, args, rings); !status.ok()) return status;
    run.callable_slot = callable_slot;
    run.id = *id = next_run_id.fetch_add(1);
    run.trace = {run.id, run.callable->hash, begin, monotonic_ns(), 0, 0, 0};
    run.state = RunSlot::State::kPrepared;
    return Status();
  }

  Status launch_run(RunId id) {
    const std::lock_guard lock(mutex_);
    RunSlot* run = find(id);
    if (run == nullptr) return unknown(id);
    if (run->state != RunSlot::State::kPrepared) return fail(ErrorKind::kState, "the run was launched already");
    abi::KernelArgs args(abi::kKernelArgsA2A3);
    args.set_runtime_args(run->image.address());
    if (Status status = run->kernel_args.grow(driver_, args.bytes()); !status.ok()) return status;
    if (Status status = check(
            driver_.copy_to_device(driver_.self, run->kernel_args.address(), args.data(), args.bytes()), "kernel args");
        !status.ok())
      return status;
    if (Status status = check(
            driver_.core_launch(driver_.self, core_image_, chip_.clusters, run->kernel_args.address(), core_stream_),
            "core_launch");
        !status.ok())
      return status;
    if (Status status =
            check(driver_.cpu_launch(driver_.self, functions_[kExecute], 1, args.data(), args.bytes(), stream_),
                  "cpu_launch");
        !status.ok()) {
      return status;
    }
    if (Status status = check(driver_.event_record(driver_.self, run->event, stream_), "event_record"); !status.ok())
      return status;
    run->state = RunSlot::State::kLaunched;
    run->trace.launched_ns = monotonic_ns();
    return Status();
  }

  Status poll_run(RunId id, bool* done) { return wait_run(id, 0, done); }

  Status wait_run(RunId id, std::int64_t timeout_ns, bool* done) {
    driver::Event* event;
    std::uint64_t image;
    {
      const std::lock_guard lock(mutex_);
      RunSlot* run = find(id);
      if (run == nullptr) return unknown(id);
      if (run->state != RunSlot::State::kLaunched) return fail(ErrorKind::kState, "the run was not launched");
      event = run->event;
      image = run->image.address();
    }
    if (Status status = bind_thread(); !status.ok()) return status;
    const int code = await_event(event, image, timeout_ns < 0 ? INT64_MAX : (timeout_ns + 999'999) / 1'000'000, done);
    const std::lock_guard lock(mutex_);
    RunSlot* run = find(id);
    if (!*done) {
      if (state_ != State::kUnusable) return Status();
      *done = true;  // it is queued behind one that never ends; whoever finalizes it is told
      if (run != nullptr) run->ended = require_ready();
      return Status();
    }
    const Status ended = check(code, "wait_run");
    if (run != nullptr && !ended.ok()) run->ended = ended;
    return ended;
  }

  Status finalize_run(RunId id, RunTiming* timing) {
    bool launched;
    {
      const std::lock_guard lock(mutex_);
      const RunSlot* run = find(id);
      if (run == nullptr) return unknown(id);
      launched = run->state == RunSlot::State::kLaunched;
    }
    Status outcome;
    if (launched) {
      bool done = false;
      outcome = wait_run(id, -1, &done);
    }
    const std::lock_guard lock(mutex_);
    RunSlot* run = find(id);
    if (run == nullptr) return unknown(id);
    if (!run->ended.ok()) outcome = run->ended;
    if (launched && outcome.ok()) outcome = collect(*run, timing);
    run->ended = Status();
    run->state = RunSlot::State::kFree;
    run->id = 0;
    run->callable.reset();
    run->heap.reset();
    return outcome;
  }

  // True if no launched run is left that has not ended; waits up to the limit for that.
  bool wait_idle(std::int64_t timeout_ns) {
    for (RunSlot& slot : runs_) {
      RunId id = 0;
      {
        const std::lock_guard lock(mutex_);
        if (slot.state == RunSlot::State::kLaunched) id = slot.id;
      }
      bool done = true;
      if (id != 0) static_cast<void>(wait_run(id, timeout_ns, &done));  // kept for whoever finalizes the run
      if (!done) return false;
    }
    return true;
  }

  static Status inherited_error() {
    return fail(ErrorKind::kState,
                "this worker belongs to the parent process: its threads do not exist after a fork. Make a new one in "
                "the child");
  }

  // ---- facts ----------------------------------------------------------------------------------------------------------

  int device_id() const { return options_.device_id; }
  int cluster_count() const { return chip_.clusters; }
  int thread_count() const { return chip_.threads; }
  // Orchestrations loaded where the runtime has them run: on the host, or on the device.
  std::uint64_t loads(bool on_host) const {
    return on_host == (options_.runtime == frontend::kHostBuiltRuntime) ? loads_.load() : 0;
  }

 private:
  void become(State to) {
    static constexpr bool kAllowed[4][4] = {{0, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}};  // from x to
    static constexpr const char* kNames[] = {"Fresh", "Ready", "Unusable", "Finalized"};
    SIMPLER_CHECK(kAllowed[static_cast<int>(state_)][static_cast<int>(to)], "a device runner goes from %s to %s",
                  kNames[static_cast<int>(state_)], kNames[static_cast<int>(to)]);
    state_ = to;
  }
  // Binds the calling thread to the device; each of these is one reference.
  Status bind_thread() {
    if (Status status = check(driver_.set_device(driver_.self, options_.device_id), "set_device"); !status.ok())
      return status;
    references_.fetch_add(1);
    return Status();
  }
  Status require_ready() {
    if (state_ == State::kReady) return bind_thread();
    if (state_ == State::kUnusable) {
      return fail(ErrorKind::kState,
                  "the device is quarantined: a kernel or the orchestration of a failed run has not returned. Close "
                  "this worker and make a new one");
    }
    return fail(ErrorKind::kState,
                state_ == State::kFinalized ? "the device runner is finalized" : "the device runner is not ready");
  }
  Status locked_ready() {
    const std::lock_guard lock(mutex_);
    return require_ready();
  }
  Status check(int code, const char* what) const {
    if (code == driver::kOk) return Status();
    return fail(ErrorKind::kDevice, format("%s: %s (code %d)", what, driver_.recent_error(driver_.self), code));
  }
  Status copy_status(int code) const {
    if (code == driver::kOk) return Status();
    return fail(ErrorKind::kValue, driver_.recent_error(driver_.self));
  }
  static Status check_slot(int slot) {
    if (slot >= 0 && slot < abi::kMaxCallables) return Status();
    return fail(ErrorKind::kIndex, format("callable slot %d is outside 0..%d", slot, abi::kMaxCallables - 1));
  }
  static Status unknown(RunId id) {
    return fail(ErrorKind::kState,
                format("run %llu is stale or already finalized", static_cast<unsigned long long>(id)));
  }
  static std::string list(const std::uint64_t (&entries)[abi::kRuntimeEnvRingCount]) {
    return format("[%llu, %llu, %llu, %llu]", static_cast<unsigned long long>(entries[0]),
                  static_cast<unsigned long long>(entries[1]), static_cast<unsigned long long>(entries[2]),
                  static_cast<unsigned long long>(entries[3]));
  }
  RunSlot* find(RunId id) {
    for (RunSlot& run : runs_) {
      if (run.state != RunSlot::State::kFree && run.id == id) return &run;
    }
    return nullptr;
  }

  // Waits for the end of a run, and looks now and then whether the device has given it up: its program then never ends.
  int await_event(driver::Event* event, std::uint64_t image, std::int64_t limit_ms, bool* done) {
    const auto unusable = [this] {
      const std::lock_guard lock(mutex_);
      return state_ == State::kUnusable;
    };
    for (std::int64_t left_ms = limit_ms;;) {
      const std::int64_t step_ms = std::min(left_ms, kLookForAbandonedMs);
      const int code = driver_.event_sync(driver_.self, event, static_cast<std::int32_t>(step_ms));
      *done = code != driver::kEventSyncTimeout;
      if (*done) return code;
      std::uint32_t abandoned = 0;
      const int failure = driver_.copy_from_device(driver_.self, &abandoned,
                                                   image + offsetof(abi::RunImage, result.abandoned), sizeof abandoned);
      *done = failure != driver::kOk || abandoned != 0;
      if (*done) return failure;
      left_ms -= step_ms;
      if (left_ms == 0 || unusable()) return code;
    }
  }

  // Runs an entry of the device program and waits for it.
  Status call_device(DeviceFunction function, const void* payload, std::size_t bytes, const char* what) {
    if (Status status = check(driver_.cpu_launch(driver_.self, functions_[function], 1, payload, bytes, stream_), what);
        !status.ok())
      return status;
    return check(driver_.stream_sync(driver_.self, stream_, -1), what);
  }

  // Once per callable: optional tensors are legal, a forgotten one should be found quickly.
  static void note_tensor_count(Callable& callable, int given) {
    const abi::ChipCallable& header = callable.header();
    const int named = static_cast<int>(std::count_if(
        header.signature, header.signature + header.sig_count,
        [](std::int32_t direction) { return direction != static_cast<std::int32_t>(abi::Direction::kScalar); }));
    if (named == 0 || named == given || callable.count_noted) return;
    callable.count_noted = true;
    log::host(log::Level::kWarn, "prepare_run", "the signature of %s names %d tensors, and the run passes %d",
              header.func_name, named, given);
  }

  // Writes the run's image to the device.
  Status bind(RunSlot& run, int callable_slot, const ChipStorageTaskArgs& args, const abi::RuntimeEnv& rings) {
    std::uint64_t heap_bytes = 0;
    for (std::uint64_t bytes : rings.ring_heap) {
      if (__builtin_add_overflow(heap_bytes, (bytes + 1023) / 1024 * 1024, &heap_bytes)) {
        return fail(ErrorKind::kValue, "the ring heaps together exceed 64 bits");
      }
    }
    if (heap_ == nullptr || heap_->bytes() < heap_bytes) {
      // A run in flight keeps the old block until it is finalized.
      auto larger = std::make_shared<DeviceBlock>();
      if (Status status = larger->grow(driver_, heap_bytes); !status.ok()) return status;
      heap_ = std::move(larger);
    }
    run.heap = heap_;
    if (Status status = run.image.grow(driver_, sizeof(abi::RunImage)); !status.ok()) return status;

    abi::RunImage& image = image_;
    image.result = {};
    image.callable = callable_slot;
    image.kernel_table = run.callable->kernel_table.address();
    image.rings = rings;
    std::uint64_t base = heap_->address();
    for (int r = 0; r < abi::kRuntimeEnvRingCount; ++r) {
      image.heap_base[r] = base;
      base += (rings.ring_heap[r] + 1023) / 1024 * 1024;
    }
    const std::uint64_t device = run.image.address();
    const std::uint64_t device_args = device + offsetof(abi::RunImage, args);
    struct Part {
      std::uint64_t to;
      const void* from;
      std::size_t bytes;
    };
    const std::int32_t counts[2] = {args.tensor_count(), args.scalar_count()};
    const Part parts[] = {
        {device, &image, offsetof(abi::RunImage, args)},
        {device_args, run.tensors.data(), run.tensors.size() * sizeof(ChipTensor)},
        {device_args + offsetof(ChipStorageTaskArgs, scalars_), args.scalar_data(),
         static_cast<std::size_t>(args.scalar_count()) * 8},
        {device_args + offsetof(ChipStorageTaskArgs, tensor_count_), counts, sizeof counts},
    };
    for (const Part& part : parts) {
      if (Status status =
              check(driver_.copy_to_device(driver_.self, part.to, part.from, part.bytes), "upload of the run's image");
          !status.ok()) {
        return status;
      }
    }
    return Status();
  }

  // Reads the result of a run that has ended, and its outputs if it succeeded.
  Status collect(RunSlot& run, RunTiming* timing) {
    abi::RunResult result;
    if (Status status = check(driver_.copy_from_device(driver_.self, &result, run.image.address(), sizeof result),
                              "read of the run's result");
        !status.ok()) {
      return status;
    }
    run.trace.collected_ns = monotonic_ns();
    if (result.abandoned != 0) become(State::kUnusable);
    Status outcome = result.code != 0 ? run_failure(result) : run.staging.copy_back(driver_);
    run.trace.finished_ns = monotonic_ns();
    emit_run_trace(run.trace, result);
    if (outcome.ok() && timing != nullptr) {
      timing->device_wall_ns = result.wall_ns;
      timing->host_wall_ns = static_cast<std::uint64_t>(run.trace.finished_ns - run.trace.prepared_ns);
    }
    return outcome;
  }

  const RunnerOptions options_;
  const executor::ArchProfile& arch_;
  const driver::SoftChip chip_;
  const pid_t owner_pid_ = getpid();
  driver::SoftDriver soft_;
  const Driver& driver_;

  mutable std::mutex mutex_;  // all below; never held while waiting for a run
  State state_ = State::kFresh;
  bool forgotten_ = false;
  driver::Stream* stream_ = nullptr;
  driver::Stream* core_stream_ = nullptr;
  driver::CpuModule* module_ = nullptr;
  driver::CpuFunction* functions_[4] = {};
  driver::CoreImage* core_image_ = nullptr;
  std::atomic<int> references_{0};
  Registry registry_;
  std::array<RunSlot, kPipelineDepth> runs_;
  std::shared_ptr<DeviceBlock> heap_;
  std::map<std::uint64_t, std::size_t> user_memory_;  // address -> bytes, of malloc
  std::atomic<std::uint64_t> loads_{0};               // of orchestrations
  abi::RunImage image_;                               // of the run being prepared; all but its arguments
};

// ---- the public face --------------------------------------------------------------------------------------------------

Status DeviceRunner::open(const RunnerOptions& options, std::unique_ptr<DeviceRunner>* runner) {
  if (options.device_id < 0)
    return fail(ErrorKind::kValue, format("device_id=%d is negative: ids start at 0", options.device_id));
  const std::string_view platform = options.platform;
  const bool simulated =
      platform.size() > kSimSuffix.size() && platform.substr(platform.size() - kSimSuffix.size()) == kSimSuffix;
  const executor::ArchProfile* arch =
      executor::find_arch(simulated ? platform.substr(0, platform.size() - kSimSuffix.size()) : platform);
  if (arch == nullptr)
    return fail(ErrorKind::kValue,
                format("platform \"%s\" is unknown: use a2a3sim or a5sim", options.platform.c_str()));
  if (!simulated) {
    return fail(ErrorKind::kDevice,
                format("platform %s needs the board's driver, which this version does not have: use %ssim",
                       options.platform.c_str(), options.platform.c_str()));
  }
  if (std::find(std::begin(frontend::kRuntimeNames), std::end(frontend::kRuntimeNames), options.runtime) ==
      std::end(frontend::kRuntimeNames)) {
    return fail(ErrorKind::kValue, format("runtime \"%s\" is unknown: use tensormap_and_ringbuffer or host_build_graph",
                                          options.runtime.c_str()));
  }
  driver::SoftChip chip{};
  if (Status status = resolve_sim_options(options, *arch, &chip); !status.ok()) return status;
  auto impl = std::make_unique<Impl>(options, *arch, chip);
  if (Status status = impl->attach(); !status.ok()) return status;
  runner->reset(new DeviceRunner(std::move(impl)));
  return Status();
}

DeviceRunner::DeviceRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

DeviceRunner::~DeviceRunner() {
  // In a forked child the threads behind it do not exist: there is nothing to stop, and nothing may be waited for.
  if (!impl_->inherited()) static_cast<void>(impl_->finalize());
  if (impl_->inherited() || impl_->forgotten()) static_cast<void>(impl_.release());
}

Status DeviceRunner::finalize() { return impl_->inherited() ? Status() : impl_->finalize(); }
Status DeviceRunner::malloc(std::size_t bytes, std::uint64_t* address) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->malloc(bytes, address);
}
Status DeviceRunner::free(std::uint64_t address) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->free(address);
}
Status DeviceRunner::copy_to(std::uint64_t destination, const void* source, std::size_t bytes) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->copy_to(destination, source, bytes);
}
Status DeviceRunner::copy_from(void* destination, std::uint64_t source, std::size_t bytes) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->copy_from(destination, source, bytes);
}
std::size_t DeviceRunner::committed_memory() const { return impl_->inherited() ? 0 : impl_->committed_memory(); }
bool DeviceRunner::wait_idle(std::int64_t timeout_ns) { return impl_->inherited() || impl_->wait_idle(timeout_ns); }
Status DeviceRunner::register_callable(int slot, const void* blob, std::size_t bytes) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->register_callable(slot, blob, bytes);
}
Status DeviceRunner::unregister_callable(int slot) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->unregister_callable(slot);
}
Status DeviceRunner::prepare_run(int slot, const ChipStorageTaskArgs& args, const abi::CallConfig& config, RunId* run) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->prepare_run(slot, args, config, run);
}
Status DeviceRunner::launch_run(RunId run) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->launch_run(run);
}
Status DeviceRunner::poll_run(RunId run, bool* done) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->poll_run(run, done);
}
Status DeviceRunner::wait_run(RunId run, std::int64_t timeout_ns, bool* done) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->wait_run(run, timeout_ns, done);
}
Status DeviceRunner::finalize_run(RunId run, RunTiming* timing) {
  return impl_->inherited() ? Impl::inherited_error() : impl_->finalize_run(run, timing);
}
int DeviceRunner::device_id() const { return impl_->device_id(); }
int DeviceRunner::cluster_count() const { return impl_->cluster_count(); }
int DeviceRunner::thread_count() const { return impl_->thread_count(); }
std::uint64_t DeviceRunner::device_orchestration_loads() const { return impl_->loads(false); }
std::uint64_t DeviceRunner::host_orchestration_loads() const { return impl_->loads(true); }

}  // namespace simpler::host
