#include "host/runs.h"

#include <algorithm>
#include <cstring>

#include "abi/error_codes.h"
#include "abi/run_image.h"
#include "base/hash.h"
#include "base/log.h"
#include "host/launch_shape.h"
#include "host/recovery.h"
#include "host/ring_config.h"

namespace simpler::host {
namespace {

using driver::Driver;

constexpr std::uint64_t kHeapAlignment = 1024;

std::atomic<RunId> next_run_id{1};

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

// Once per callable: optional tensors are legal, a forgotten one should be found quickly.
void note_tensor_count(Callable& callable, int given) {
  const abi::ChipCallable& header = callable.header();
  const int named =
      static_cast<int>(std::count_if(header.signature, header.signature + header.sig_count, [](std::int32_t direction) {
        return direction != static_cast<std::int32_t>(abi::Direction::kScalar);
      }));
  if (named == 0 || named == given || callable.count_noted) return;
  callable.count_noted = true;
  log::host(log::Level::kWarn, "prepare_run", "the signature of %s names %d tensors, and the run passes %d",
            header.func_name, named, given);
}

std::string list(const std::uint64_t (&entries)[abi::kRuntimeEnvRingCount]) {
  return format("[%llu, %llu, %llu, %llu]", static_cast<unsigned long long>(entries[0]),
                static_cast<unsigned long long>(entries[1]), static_cast<unsigned long long>(entries[2]),
                static_cast<unsigned long long>(entries[3]));
}

Status unknown(RunId id) {
  return fail(ErrorKind::kState, format("run %llu is stale or already finalized", static_cast<unsigned long long>(id)));
}

std::int32_t to_ms(std::int64_t ns) {
  return static_cast<std::int32_t>(std::min<std::int64_t>((ns + 999'999) / 1'000'000, INT32_MAX));
}

}  // namespace

// ---- facts --------------------------------------------------------------------------------------------------------------

Runs::Run* Runs::find(RunId id) {
  for (Run& run : runs_) {
    if (run.phase != Phase::kFree && run.id == id) return &run;
  }
  return nullptr;
}

RunId Runs::running() const {
  for (const Run& run : runs_) {
    if (run.phase == Phase::kRunning) return run.id;
  }
  return 0;
}

bool Runs::uses_prepared(int callable_slot) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const Run& run) {
    return run.phase == Phase::kPrepared && run.callable_slot == callable_slot;
  });
}

std::array<RunId, kSlots> Runs::outstanding() const {
  std::array<RunId, kSlots> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (runs_[i].phase != Phase::kFree) ids[i] = runs_[i].id;
  }
  return ids;
}

std::uint64_t Runs::staging_address(int slot) const {
  return slot < 0 || slot >= kSlots ? 0 : runs_[static_cast<std::size_t>(slot)].staging.address();
}

void Runs::release() {
  for (Run& run : runs_) {
    run.callable.reset();
    run.staging.release();
    static_cast<void>(run.image.release());
    static_cast<void>(run.kernel_args.release());
  }
}

// ---- prepare ------------------------------------------------------------------------------------------------------------

Status Runs::prepare(const RunRequest& request, RunId* id) {
  const std::int64_t begin = monotonic_ns();
  const std::shared_ptr<Callable>& callable = parts_.registry.at(request.callable_slot);
  if (callable == nullptr)
    return fail(ErrorKind::kKey, format("callable slot %d is empty: register a callable first", request.callable_slot));
  if (const abi::Verdict verdict = abi::check_call_config(*request.config); !verdict.ok())
    return fail(ErrorKind::kValue, verdict.text());
  if (Status status =
          check_thread_count(request.config->aicpu_thread_num, parts_.arch, parts_.options.platform.c_str());
      !status.ok())
    return status;
  int slot = request.pipeline_slot;
  if (slot < 0) {
    const auto free =
        std::find_if(runs_.begin(), runs_.end(), [](const Run& run) { return run.phase == Phase::kFree; });
    if (free == runs_.end())
      return fail(ErrorKind::kState, format("%d runs are in flight: finalize one first", kSlots));
    slot = static_cast<int>(free - runs_.begin());
  }
  const int bank = std::max(request.arena_bank, 0);
  if (slot >= kSlots) return fail(ErrorKind::kValue, format("pipeline slot %d is outside 0..%d", slot, kSlots - 1));
  Run& run = runs_[static_cast<std::size_t>(slot)];
  const bool overlaps = parts_.admission.active() != nullptr;
  if (!parts_.admission.reserve(&run, slot, bank, !parts_.collectors.any())) {
    return fail(ErrorKind::kState,
                format("admission is occupied: pipeline slot %d, arena bank %d. A run that is prepared beside another "
                       "one needs a launched predecessor that no tool observes; finalize a run first",
                       slot, bank));
  }
  run.callable = callable;
  Status status = prepare_in(run, request, bank, overlaps);
  if (!status.ok()) {
    parts_.clock.finish(nullptr, false);
    if (!overlaps) parts_.collectors.release();
    run.callable.reset();
    parts_.admission.release_reservation(&run);
    return status;
  }
  run.callable_slot = request.callable_slot;
  run.id = *id = next_run_id.fetch_add(1);
  run.identity = {run.id, request.generation, request.dispatch_id, slot};
  run.launched = false;
  run.completion = Status();
  run.accepted_state = request.accepted_state;
  run.accepted_value = request.accepted_value;
  run.trace = {request.run_id, run.identity, run.callable->hash, begin, monotonic_ns(), 0, 0, 0, 0};
  run.phase = Phase::kPrepared;
  return Status();
}

Status Runs::prepare_in(Run& run, const RunRequest& request, int bank, bool overlaps) {
  if (Status status = parts_.bringup.ensure(); !status.ok()) return status;
  abi::LaunchShape shape;
  if (Status status = resolve_launch_shape(request.config->aicpu_thread_num, parts_.bringup.block_limit(),
                                           parts_.bringup.cpu_mask(), parts_.arch, &shape);
      !status.ok())
    return status;
  if (!overlaps) {
    if (Status status = parts_.collectors.prepare(); !status.ok()) return status;
    if (parts_.collectors.want_clock()) {
      if (Status status = parts_.streams.ensure(parts_.bringup.has_dma()); !status.ok()) return status;
      parts_.clock.begin(parts_.streams.cpu());
    }
  }
  note_tensor_count(*run.callable, request.args->tensor_count());
  if (Status status = run.staging.upload(parts_.allocator, *request.args, run.callable->header(), &run.tensors);
      !status.ok())
    return status;
  if (Status status = bind(run, request, bank, overlaps, shape); !status.ok()) return status;
  run.phases = parts_.phases.ensure();
  run.args = abi::KernelArgs(parts_.arch.kernel_args);
  run.args.set_runtime_args(run.image.address());
  run.args.set_registers(parts_.bringup.register_table());
  run.args.set_ffts_base(parts_.bringup.sync_window());
  run.args.set_device_wall(run.phases);
  if (Status status = run.kernel_args.grow(parts_.allocator, run.args.bytes()); !status.ok()) return status;
  return parts_.device.run("upload of the launch arguments", &Driver::copy_to_device, run.kernel_args.address(),
                           run.args.data(), run.args.bytes());
}

Status Runs::prewarm(const abi::CallConfig& config) {
  if (const abi::Verdict verdict = abi::check_call_config(config); !verdict.ok())
    return fail(ErrorKind::kValue, verdict.text());
  if (parts_.admission.outstanding())
    return fail(ErrorKind::kState, "runs are in flight: prewarm before the first one");
  std::uint64_t heap_base[abi::kRuntimeEnvRingCount];
  return place_rings(resolve_rings(config.runtime_env), 0, false, heap_base);
}

// Where the rings' memory lies depends on their sizes alone, so it is found again by them. heap_base: one per ring.
Status Runs::place_rings(const abi::RuntimeEnv& rings, int bank, bool overlaps, std::uint64_t* heap_base) {
  const std::string_view key(reinterpret_cast<const char*>(&rings), sizeof rings);
  const std::uint64_t hash = fnv1a(key.data(), key.size());
  PrebuiltImage::View view;
  if (parts_.arenas.prebuilt().lookup(bank, hash, key, &view)) {
    std::memcpy(heap_base, view.image.data(), view.image.size());
    return Status();
  }
  Arenas::Sizes sizes{};
  for (const std::uint64_t bytes : rings.ring_heap) {
    const std::uint64_t rounded = (bytes + kHeapAlignment - 1) / kHeapAlignment * kHeapAlignment;
    if (rounded < bytes || __builtin_add_overflow(sizes[Arenas::kHeap], rounded, &sizes[Arenas::kHeap]))
      return fail(ErrorKind::kValue, "the ring heaps together exceed 64 bits");
  }
  if (overlaps && !parts_.arenas.fits(bank, sizes)) {
    return Status(ErrorKind::kState, kPreparedIncompatible,
                  "the run needs larger rings than the one that executes: prepare it when that one is finalized");
  }
  if (Status status = parts_.arenas.setup(bank, sizes); !status.ok()) return status;
  std::uint64_t base = parts_.arenas.base(bank, Arenas::kHeap);
  for (int r = 0; r < abi::kRuntimeEnvRingCount; ++r) {
    heap_base[r] = base;
    base += (rings.ring_heap[r] + kHeapAlignment - 1) / kHeapAlignment * kHeapAlignment;
  }
  view.bases = {parts_.arenas.base(bank, Arenas::kHeap), 0, 0};
  view.image = {reinterpret_cast<const char*>(heap_base), abi::kRuntimeEnvRingCount * sizeof *heap_base};
  parts_.arenas.prebuilt().mark(bank, hash, key, view);
  return Status();
}

// Writes the run's image to the device.
Status Runs::bind(Run& run, const RunRequest& request, int bank, bool overlaps, const abi::LaunchShape& shape) {
  const abi::RuntimeEnv rings = resolve_rings(request.config->runtime_env);
  log::host(log::Level::kInfo, "prepare_run", "ring sizes: task_window=%s heap=%s dep_pool=%s",
            list(rings.ring_task_window).c_str(), list(rings.ring_heap).c_str(), list(rings.ring_dep_pool).c_str());
  abi::RunImage& image = image_;
  image.result = {};

  if (Status status = place_rings(rings, bank, overlaps, image.heap_base); !status.ok()) return status;
  if (Status status = run.image.grow(parts_.allocator, sizeof(abi::RunImage)); !status.ok()) return status;
  image.callable = request.callable_slot;
  image.kernel_table = run.callable->kernel_table.address();
  image.rings = rings;
  image.shape = shape;
  const ChipStorageTaskArgs& args = *request.args;
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
    if (part.bytes == 0) continue;
    if (Status status =
            parts_.device.run("upload of the run's image", &Driver::copy_to_device, part.to, part.from, part.bytes);
        !status.ok())
      return status;
  }
  return Status();
}

// ---- launch -------------------------------------------------------------------------------------------------------------

Status Runs::launch(RunId id) {
  Run* const run = find(id);
  if (run == nullptr) return unknown(id);
  if (run->phase != Phase::kPrepared) return fail(ErrorKind::kState, "the run was launched already");
  LaunchPermit permit;
  if (!parts_.admission.acquire(run, run->identity, &permit))
    return fail(ErrorKind::kState, "another run owns the device until it is finalized");
  Device& device = parts_.device;
  Status failure = parts_.streams.ensure(parts_.bringup.has_dma());
  if (!failure.ok()) {
    run->completion = failure;
    run->phase = Phase::kComplete;
    return failure;
  }
  bool refused = false;  // by the cores, which puts the device in doubt
  const auto cores = [&] {
    if (run->phases != 0 && !parts_.phases.arm()) run->args.set_device_wall(run->phases = 0);
    if (failure = parts_.collectors.start(); !failure.ok()) return -1;
    const int code = device.call(&Driver::core_launch, parts_.bringup.core_image(), parts_.bringup.block_limit(),
                                 run->kernel_args.address(), parts_.streams.core());
    if (code != driver::kOk) {
      failure = device.failure("core_launch", code);
      refused = true;
    } else {
      parts_.streams.mark_submitted(run->identity.run_epoch);
    }
    return code;
  };
  const auto control = [&] {
    failure = device.run("cpu_launch", &Driver::cpu_launch, parts_.bringup.function(CpuEntry::kExecute),
                         parts_.arch.launch_threads, run->args.data(), run->args.bytes(), parts_.streams.cpu());
    return failure.ok() ? driver::kOk : failure.code();
  };
  run->trace.launched_ns = monotonic_ns();
  LaunchOutcome outcome = launch_transaction(run->identity, std::move(permit), cores, control);
  if (outcome.progress == LaunchProgress::kComplete && outcome.receipt.redeem(run->identity)) {
    run->launched = true;
    run->phase = Phase::kRunning;
    if (run->accepted_state != nullptr)
      std::atomic_ref<std::int32_t>(*run->accepted_state).store(run->accepted_value, std::memory_order_release);
    return Status();
  }
  if (failure.ok()) failure = fail(ErrorKind::kState, "the launch was refused: its permit is for another run");
  run->launched = outcome.progress == LaunchProgress::kPartial;
  if (run->launched || refused) give_up(device, failure.message(), parts_.options.recovery_limit_ms);
  run->completion = failure;
  run->phase = Phase::kComplete;
  return failure;
}

// ---- wait ---------------------------------------------------------------------------------------------------------------

// The first code of both streams that is not kOk, and whose stream that is; kSyncTimeout if the limit passed.
int Runs::wait_for_streams(std::int64_t limit_ms, const char** whose) {
  const std::int64_t begin = monotonic_ns();
  std::int64_t left = limit_ms;
  *whose = "control processors";
  for (driver::Stream* stream : {parts_.streams.cpu(), parts_.streams.core()}) {
    const std::int32_t limit = static_cast<std::int32_t>(std::min<std::int64_t>(left, INT32_MAX));
    const int code = parts_.device.call(&Driver::stream_sync, stream, limit);
    if (code != driver::kOk) return code;
    left = std::max<std::int64_t>(limit_ms - (monotonic_ns() - begin) / 1'000'000, 1);
    *whose = "cores";
  }
  return driver::kOk;
}

bool Runs::hangs(const Run& run) const {
  return parts_.timeouts.sync_ms >= 0 &&
         monotonic_ns() - run.trace.launched_ns >= std::int64_t{parts_.timeouts.sync_ms} * 1'000'000;
}

// Whether the device's program has written the run's result although something of the run never ends.
bool Runs::given_up(const Run& run) {
  if (monotonic_ns() - run.trace.launched_ns < std::int64_t{parts_.options.look_again_ms} * 1'000'000) return false;
  std::uint32_t abandoned = 0;
  const std::uint64_t flag = run.image.address() + offsetof(abi::RunImage, result.abandoned);
  return parts_.device.call(&Driver::copy_from_device, &abandoned, flag, sizeof abandoned) == driver::kOk &&
         abandoned != 0;
}

Status Runs::wait(RunId id, std::int64_t timeout_ns, bool* done) {
  const std::int64_t begin = monotonic_ns();
  for (;;) {
    std::int64_t limit_ms = -1;
    const char* waited_for = "control processors or cores";
    {
      const std::lock_guard lock(parts_.mutex);
      Run* run = find(id);
      if (run == nullptr) return unknown(id);
      if (run->phase == Phase::kPrepared) return fail(ErrorKind::kState, "the run was not launched");
      if (run->phase == Phase::kComplete) {
        *done = true;
        return run->completion;
      }
      if (parts_.timeouts.sync_ms >= 0) {
        limit_ms = parts_.timeouts.sync_ms - (monotonic_ns() - run->trace.launched_ns) / 1'000'000;
        limit_ms = std::max<std::int64_t>(limit_ms, 1);
      }
    }
    if (!parts_.device.owns()) {
      end(id, driver::kDriverInternal);
      continue;
    }
    if (Status status = parts_.device.attach(); !status.ok()) return status;
    int code = driver::kOk;
    if (timeout_ns == 0) {
      switch (parts_.streams.poll(&code)) {
        case RunStreams::Poll::kComplete: code = driver::kOk; break;
        case RunStreams::Poll::kNotReady: code = driver::kSyncTimeout; break;
        case RunStreams::Poll::kError: break;
      }
    } else {
      if (timeout_ns > 0) {
        const std::int32_t wanted = to_ms(std::max<std::int64_t>(timeout_ns - (monotonic_ns() - begin), 0));
        limit_ms = limit_ms < 0 ? wanted : std::min<std::int64_t>(limit_ms, wanted);
      }
      const std::int64_t look_again_ms = parts_.options.look_again_ms;
      code = wait_for_streams(limit_ms < 0 ? look_again_ms : std::min(limit_ms, look_again_ms), &waited_for);
    }
    if (code == driver::kSyncTimeout) {
      bool hanging = false;
      {
        const std::lock_guard lock(parts_.mutex);
        const Run* run = find(id);
        hanging = run != nullptr && run->phase == Phase::kRunning && hangs(*run);
        if (run != nullptr && run->phase == Phase::kRunning && !hanging && given_up(*run)) code = driver::kOk;
      }
      if (code == driver::kOk) {
        end(id, code);  // its result tells
        continue;
      }
      if (!hanging && (timeout_ns == 0 || (timeout_ns > 0 && monotonic_ns() - begin >= timeout_ns))) {
        *done = false;
        return Status();
      }
      if (!hanging) continue;
    }
    end(id, code, waited_for);
  }
}

void Runs::end(RunId id, int code, const char* waited_for) {
  const auto still_running = [&] {
    Run* const run = find(id);
    return run != nullptr && run->phase == Phase::kRunning ? run : nullptr;
  };
  Status completion;
  if (code != driver::kOk) {
    // Another thread may have finalized the run meanwhile, and made new streams for the next one: then the code is about
    // handles that are gone, and says nothing about the device.
    int clusters = 0;
    {
      const std::lock_guard lock(parts_.mutex);
      if (still_running() == nullptr) return;
      clusters = parts_.bringup.block_limit();
    }
    completion = parts_.device.owns() ? parts_.device.failure("run", code)
                                      : Status(ErrorKind::kDevice, code, parts_.device.why_unusable());
    if (code == driver::kSyncTimeout) {
      completion = Status(
          completion.kind(), code,
          format("%s. The stream of the %s has not ended %d ms after the launch on %d clusters of "
                 "device %d (SIMPLER_STREAM_SYNC_TIMEOUT_MS)",
                 completion.message().c_str(), waited_for, parts_.timeouts.sync_ms, clusters, parts_.device.ordinal()));
    }
    give_up(parts_.device, completion.message(), parts_.options.recovery_limit_ms);
  }
  const std::lock_guard lock(parts_.mutex);
  Run* const run = still_running();
  if (run == nullptr) return;
  run->completion = completion;
  run->phase = Phase::kComplete;
}

// ---- finalize -----------------------------------------------------------------------------------------------------------

Status Runs::finalize(RunId id, RunTiming* timing) {
  for (;;) {
    {
      const std::lock_guard lock(parts_.mutex);
      const Run* run = find(id);
      if (run == nullptr) return unknown(id);
      if (run->phase != Phase::kRunning) break;
    }
    bool done = false;
    static_cast<void>(wait(id, -1, &done));
    if (!done) end(id, driver::kDriverInternal);  // it cannot even be waited for
  }
  const std::lock_guard lock(parts_.mutex);
  Run* run = find(id);
  if (run == nullptr) return unknown(id);
  Status outcome = run->launched ? run->completion : Status();
  std::uint64_t wall_ns = 0;
  bool collected = false;
  if (run->launched && outcome.ok()) {
    outcome = parts_.device.owns() ? parts_.device.attach() : fail(ErrorKind::kDevice, parts_.device.why_unusable());
    collected = outcome.ok();
    if (collected) outcome = collect(*run, timing, &wall_ns);
  }
  PhaseTimes times;
  if (collected && parts_.device.owns()) times = parts_.phases.read(run->phases);
  parts_.clock.finish(parts_.streams.cpu(), run->launched && outcome.ok());
  parts_.collectors.stop(run->launched && outcome.ok());  // a run that is observed is alone
  parts_.collectors.release();
  const bool proven = run->launched && run->completion.ok();
  static_cast<void>(parts_.streams.retire(proven ? RunStreams::Retired::kComplete : RunStreams::Retired::kUnproven,
                                          run->identity.run_epoch));
  run->phase = Phase::kFree;
  run->id = 0;
  run->callable.reset();
  parts_.admission.release(run);
  parts_.admission.release_reservation(run);
  run->trace.released_ns = monotonic_ns();
  if (collected) emit_run_trace(run->trace, device_phases_wanted() ? wall_ns : 0, times);
  return outcome;
}

// Reads the result of a run that has ended, and its outputs if it succeeded.
Status Runs::collect(Run& run, RunTiming* timing, std::uint64_t* wall_ns) {
  abi::RunResult result;
  if (Status status = parts_.device.run("read of the run's result", &Driver::copy_from_device, &result,
                                        run.image.address(), sizeof result);
      !status.ok())
    return status;
  run.trace.collected_ns = monotonic_ns();
  *wall_ns = result.wall_ns;
  if (result.abandoned != 0)
    parts_.device.mark_unusable("a kernel or the orchestration of a failed run has not returned");
  Status outcome = result.code != 0 ? run_failure(result) : run.staging.copy_back(parts_.device);
  run.trace.finished_ns = monotonic_ns();
  if (outcome.ok() && timing != nullptr) {
    timing->device_wall_ns = result.wall_ns;
    timing->host_wall_ns = static_cast<std::uint64_t>(run.trace.finished_ns - run.trace.prepared_ns);
  }
  return outcome;
}

}  // namespace simpler::host
