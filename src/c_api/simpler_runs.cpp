// The functions of host/simpler_host.h that are about runs.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>

#include "c_api/context.h"
#include "host/simpler_host.h"

namespace simpler::c_api {
namespace {

using host::DeviceRunner;

static_assert(sizeof(SimplerPipelineResource) == 16 && sizeof(SimplerPipelineContract) == 144);
static_assert(sizeof(SimplerRunDescriptor) == 56 && offsetof(SimplerRunDescriptor, accepted_state) == 40 &&
              offsetof(SimplerRunDescriptor, accepted_value) == 48);
static_assert(SIMPLER_ERR_PREPARED_INCOMPATIBLE == host::kPreparedIncompatible);
static_assert(SIMPLER_PIPELINE_MAX_DEPTH == DeviceRunner::kPipelineDepth);

constexpr std::uint64_t kStorageMagic = 0x534d504c52554e31;  // "SMPLRUN1"
constexpr std::size_t kStorageAlignment = 64;

// What a run's storage holds; zero magic: nothing. Written by prepare and finalize alone.
struct alignas(kStorageAlignment) Storage {
  std::atomic<std::uint64_t> magic;  // released after, and acquired before, what follows
  Context* owner;
  host::RunId run;
};

// Calls with the number of a prepared run of the context.
template <class Call> int with_run(void* context, void* storage, Call call) noexcept {
  return with_runner(context, [&](Context& owner, DeviceRunner& runner) -> int {
    if (storage == nullptr) return refuse(ErrorKind::kValue, "the storage is null");
    const Storage& run = *static_cast<Storage*>(storage);
    if (run.magic.load(std::memory_order_acquire) != kStorageMagic)
      return refuse(ErrorKind::kState, "the storage holds no prepared run");
    if (run.owner != &owner) return refuse(ErrorKind::kState, "the run was prepared by another context");
    return call(runner, run.run);
  });
}

SimplerPipelineContract make_contract(bool arenas_per_run) {
  SimplerPipelineContract contract{};
  contract.abi_version = SIMPLER_PIPELINE_ABI;
  contract.depth = DeviceRunner::kPipelineDepth;
  const std::uint32_t arenas = arenas_per_run ? SIMPLER_RESOURCE_HOST_PER_RUN : SIMPLER_RESOURCE_DEVICE_SCRATCH;
  const SimplerPipelineResource resources[] = {
      {SIMPLER_RESOURCE_GM_HEAP, arenas, 0},
      {SIMPLER_RESOURCE_GM_SM, arenas, 0},
      {SIMPLER_RESOURCE_RUNTIME_IMAGE, arenas, 0},
      {SIMPLER_RESOURCE_TASK_ARGS, SIMPLER_RESOURCE_HOST_PER_RUN, 0},
      {SIMPLER_RESOURCE_AICPU_STREAM, SIMPLER_RESOURCE_EXEC_HANDLE, 0},
      {SIMPLER_RESOURCE_AICORE_STREAM, SIMPLER_RESOURCE_EXEC_HANDLE, 0},
  };
  contract.resource_count = std::size(resources);
  std::copy(std::begin(resources), std::end(resources), contract.resources);
  return contract;
}
const SimplerPipelineContract* contract_of(const std::string& runtime) {
  static const SimplerPipelineContract shared = make_contract(false), per_run = make_contract(true);
  return host::arena_copies(runtime) > 1 ? &per_run : &shared;
}

}  // namespace
}  // namespace simpler::c_api

using namespace simpler;
using namespace simpler::c_api;

extern "C" {

size_t get_runtime_size(void) { return sizeof(Storage); }
size_t get_runtime_alignment(void) { return alignof(Storage); }
const SimplerPipelineContract* get_pipeline_contract(void) { return contract_of("tensormap_and_ringbuffer"); }
const SimplerPipelineContract* get_pipeline_contract_ctx(void* context) {
  return context == nullptr ? nullptr : contract_of(context_of(context)->options().runtime);
}
int supports_concurrent_native_prepare_ctx(void* context) { return context != nullptr ? 1 : 0; }

int simpler_prepare_run(void* context, void* storage, int32_t id, const SimplerTaskArgs* args,
                        const SimplerCallConfig* config, const SimplerRunDescriptor* descriptor) {
  return with_runner(context, [&](Context& owner, DeviceRunner& runner) -> int {
    if (storage == nullptr || args == nullptr) return refuse(ErrorKind::kValue, "storage or arguments are null");
    if (reinterpret_cast<std::uintptr_t>(storage) % alignof(Storage) != 0)
      return refuse(ErrorKind::kValue, "the storage is not on a multiple of get_runtime_alignment()");
    Storage& run = *static_cast<Storage*>(storage);
    const std::uint64_t magic = run.magic.load(std::memory_order_acquire);
    if (magic == kStorageMagic) return refuse(ErrorKind::kState, "the storage holds a run: finalize it first");
    if (magic != 0) return refuse(ErrorKind::kValue, "the storage is not zeroed");
    const SimplerRunDescriptor where = descriptor != nullptr ? *descriptor : SimplerRunDescriptor{};
    if (where.pipeline_slot < SIMPLER_ANY_SLOT || where.pipeline_slot >= DeviceRunner::kPipelineDepth ||
        where.arena_bank < 0 || where.arena_bank >= DeviceRunner::kPipelineDepth)
      return refuse(ErrorKind::kValue, "pipeline slot and arena bank must be 0 or 1");
    const abi::CallConfig standard{};
    host::RunRequest request;
    request.callable_slot = id;
    request.args = static_cast<const ChipStorageTaskArgs*>(args);
    request.config = config != nullptr ? static_cast<const abi::CallConfig*>(config) : &standard;
    request.pipeline_slot = where.pipeline_slot;
    request.arena_bank = where.arena_bank;
    request.run_id = where.run_id;
    request.generation = where.generation;
    request.dispatch_id = where.dispatch_id;
    request.accepted_state = where.accepted_state;
    request.accepted_value = where.accepted_value;
    host::RunId prepared = 0;
    if (Status status = runner.prepare_run(request, &prepared); !status.ok()) return note(std::move(status));
    run.owner = &owner;
    run.run = prepared;
    run.magic.store(kStorageMagic, std::memory_order_release);  // from here on there is a run
    return 0;
  });
}

int simpler_launch_run(void* context, void* storage) {
  return with_run(context, storage,
                  [](DeviceRunner& runner, host::RunId run) { return code_of(runner.launch_run(run)); });
}

int simpler_poll_run(void* context, void* storage) {
  return with_run(context, storage, [](DeviceRunner& runner, host::RunId run) -> int {
    bool done = false;
    const int code = code_of(runner.poll_run(run, &done));
    if (done) return SIMPLER_POLL_COMPLETE;  // how it ended, wait and finalize tell
    return code == 0 ? SIMPLER_POLL_NOT_READY : SIMPLER_POLL_ERROR;
  });
}

int simpler_wait_run_for(void* context, void* storage, int64_t timeout_ns, int* ended) {
  return with_run(context, storage, [&](DeviceRunner& runner, host::RunId run) -> int {
    if (ended == nullptr) return refuse(ErrorKind::kValue, "there is no place to tell whether the run has ended");
    bool done = false;
    const int code = code_of(runner.wait_run(run, timeout_ns, &done));
    *ended = done ? 1 : 0;
    return code;
  });
}

int simpler_wait_run(void* context, void* storage) {
  int ended = 0;
  return simpler_wait_run_for(context, storage, -1, &ended);
}

int simpler_finalize_run_timed(void* context, void* storage, SimplerRunTiming* timing) {
  return with_run(context, storage, [&](DeviceRunner& runner, host::RunId run) -> int {
    host::RunTiming measured;
    const Status status = runner.finalize_run(run, &measured);
    static_cast<Storage*>(storage)->magic.store(0, std::memory_order_release);
    if (timing != nullptr) *timing = {measured.host_wall_ns, measured.device_wall_ns};
    return code_of(status);
  });
}

int simpler_finalize_run(void* context, void* storage) { return simpler_finalize_run_timed(context, storage, nullptr); }

uint64_t simpler_run_epoch(const void* storage) {
  if (storage == nullptr) return 0;
  const Storage& run = *static_cast<const Storage*>(storage);
  return run.magic.load(std::memory_order_acquire) == kStorageMagic ? run.run : 0;
}

int simpler_run(void* context, void* storage, int32_t id, const SimplerTaskArgs* args, const SimplerCallConfig* config,
                const SimplerRunDescriptor* descriptor) {
  int first = simpler_prepare_run(context, storage, id, args, config, descriptor);
  if (first != 0) return first;
  first = simpler_launch_run(context, storage);
  if (first == 0) first = simpler_wait_run(context, storage);
  const int last = simpler_finalize_run(context, storage);
  return last != 0 ? last : first;
}

}  // extern "C"
