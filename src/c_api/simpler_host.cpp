// The functions of host/simpler_host.h: checks of what a C caller may get wrong, then the device runner.
#include "host/simpler_host.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "abi/chip_callable.h"
#include "base/log.h"
#include "executor/arch_profile.h"
#include "host/device_runner.h"

namespace simpler::c_api {
namespace {

using host::DeviceRunner;

static_assert(sizeof(SimplerPipelineResource) == 16 && sizeof(SimplerPipelineContract) == 144);
static_assert(sizeof(SimplerRunDescriptor) == 56 && offsetof(SimplerRunDescriptor, accepted_state) == 40 &&
              offsetof(SimplerRunDescriptor, accepted_value) == 48);
static_assert(sizeof(SimplerHostLogState) == 16 && sizeof(SimplerHostLogState) == sizeof(log::State));
static_assert(SIMPLER_ERR_PREPARED_INCOMPATIBLE == host::kPreparedIncompatible);

constexpr std::uint64_t kStorageMagic = 0x534d504c52554e31;  // "SMPLRUN1"
constexpr std::size_t kStorageAlignment = 64;

struct Context {
  std::string platform, runtime;
  std::unique_ptr<DeviceRunner> runner;  // nullptr: not initialised
  std::uint64_t host_loads = 0;          // of runners that are gone

  bool outstanding() const { return runner != nullptr && runner->outstanding(); }
};

// What a run's storage holds; zero magic: nothing.
struct alignas(kStorageAlignment) Storage {
  std::uint64_t magic;
  Context* owner;
  host::RunId run;
};

std::string& last_error() {
  thread_local std::string text;
  return text;
}
int refuse(std::string text) {
  last_error() = std::move(text);
  return -1;
}
int code_of(const Status& status) {
  if (!status.ok()) last_error() = status.message();
  return status.code();
}

// Runs `call`; an exception, which no C caller could catch, becomes `failure`.
template <class Call, class Result> Result guarded(Result failure, Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    refuse(error.what());
  } catch (...) {
    refuse("an exception of unknown type");
  }
  return failure;
}

Context* context_of(void* context) { return static_cast<Context*>(context); }

// Calls with the runner of an initialised context.
template <class Call> int with_runner(void* context, Call call) noexcept {
  return guarded(-1, [&]() -> int {
    if (context == nullptr) return refuse("the context is null");
    if (context_of(context)->runner == nullptr)
      return refuse("the context is not initialised: call simpler_init first");
    return call(*context_of(context), *context_of(context)->runner);
  });
}
template <class Call> std::uint64_t fact_of(void* context, Call call) noexcept {
  return guarded(std::uint64_t{0}, [&]() -> std::uint64_t {
    return context == nullptr || context_of(context)->runner == nullptr ? 0 : call(*context_of(context)->runner);
  });
}
// Calls with the storage of a prepared run of the context.
template <class Call> int with_run(void* context, void* storage, Call call) noexcept {
  return with_runner(context, [&](Context& owner, DeviceRunner& runner) -> int {
    if (storage == nullptr) return refuse("the storage is null");
    Storage& run = *static_cast<Storage*>(storage);
    if (run.magic != kStorageMagic) return refuse("the storage holds no prepared run");
    if (run.owner != &owner) return refuse("the run was prepared by another context");
    return call(runner, run);
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

bool simulated(const std::string& platform) {
  return platform.size() > 3 && platform.substr(platform.size() - 3) == "sim";
}

// The size that a callable's header gives itself. The caller vouches for the header; what it claims is checked later.
std::size_t callable_bytes(const abi::ChipCallable& chip) {
  std::uint64_t storage = chip.binary_size;
  const int children = std::min(std::max(chip.child_count, 0), abi::kChipMaxChildren);
  for (int i = 0; i < children; ++i)
    storage = std::max(storage, std::uint64_t{chip.child_offsets[i]} + chip.child(i)->total_bytes());
  return sizeof(abi::ChipCallable) + storage;
}

std::string bytes_of(const void* data, std::size_t bytes) {
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), bytes);
}

int poll(DeviceRunner& runner, const Storage& run) {
  bool done = false;
  const int code = code_of(runner.poll_run(run.run, &done));
  if (done) return SIMPLER_POLL_COMPLETE;  // how it ended, wait and finalize tell
  return code == 0 ? SIMPLER_POLL_NOT_READY : SIMPLER_POLL_ERROR;
}

}  // namespace
}  // namespace simpler::c_api

using namespace simpler;
using namespace simpler::c_api;

extern "C" {

const char* simpler_last_error(void) { return last_error().c_str(); }

// ---- contexts ----

void* simpler_create_device_context(const char* platform, const char* runtime) {
  return guarded(static_cast<void*>(nullptr), [&]() -> void* {
    if (platform == nullptr || runtime == nullptr) {
      refuse("platform or runtime is null");
      return nullptr;
    }
    auto context = std::make_unique<Context>();
    context->platform = platform;
    context->runtime = runtime;
    return context.release();
  });
}

void* create_device_context(void) { return simpler_create_device_context("a2a3sim", "tensormap_and_ringbuffer"); }

void destroy_device_context(void* context) {
  guarded(0, [&] {
    if (context == nullptr) return 0;
    if (context_of(context)->outstanding()) {
      log::host(log::Level::kError, "destroy_device_context",
                "a run is between prepare and finalize: the context is not destroyed. Finalize the run first");
      return 0;
    }
    delete context_of(context);
    return 0;
  });
}

int simpler_init(void* context, int device, const void* aicpu, size_t aicpu_bytes, const void* aicore,
                 size_t aicore_bytes, const void* dispatcher, size_t dispatcher_bytes,
                 const SimplerCallConfig* prewarm) {
  return guarded(-1, [&]() -> int {
    if (context == nullptr) return refuse("the context is null");
    Context& c = *context_of(context);
    if (c.runner != nullptr) return refuse("the context is initialised already");
    host::RunnerOptions options;
    options.platform = c.platform;
    options.runtime = c.runtime;
    options.device_id = device;
    options.program = bytes_of(aicpu, aicpu_bytes);
    options.cores = bytes_of(aicore, aicore_bytes);
    options.dispatcher = bytes_of(dispatcher, dispatcher_bytes);
    std::unique_ptr<DeviceRunner> runner;
    if (const Status status = DeviceRunner::open(options, &runner); !status.ok()) return code_of(status);
    if (prewarm != nullptr) {
      const Status status = runner->prewarm(*static_cast<const abi::CallConfig*>(prewarm));
      if (!status.ok()) return code_of(status);
    }
    c.runner = std::move(runner);
    return 0;
  });
}

int finalize_device(void* context) {
  return with_runner(context, [](Context& c, DeviceRunner& runner) -> int {
    if (runner.outstanding()) return refuse("a run is between prepare and finalize: finalize it first");
    const Status status = runner.finalize();
    c.host_loads += runner.host_orchestration_loads();
    c.runner.reset();
    return code_of(status);
  });
}

// ---- memory ----

void* device_malloc_ctx(void* context, size_t bytes) {
  std::uint64_t address = 0;
  const int code =
      with_runner(context, [&](Context&, DeviceRunner& runner) { return code_of(runner.malloc(bytes, &address)); });
  return code == 0 ? reinterpret_cast<void*>(address) : nullptr;
}

void device_free_ctx(void* context, void* address) {
  if (address == nullptr) return;
  with_runner(context, [&](Context&, DeviceRunner& runner) {
    return code_of(runner.free(reinterpret_cast<std::uint64_t>(address)));
  });
}

size_t committed_device_memory_ctx(void* context) {
  return fact_of(context, [](DeviceRunner& runner) { return runner.committed_memory(); });
}

int copy_to_device_ctx(void* context, void* device, const void* host, size_t bytes) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (device == nullptr || host == nullptr) return refuse("an address is null");
    return code_of(runner.copy_to(reinterpret_cast<std::uint64_t>(device), host, bytes));
  });
}

int copy_from_device_ctx(void* context, void* host, const void* device, size_t bytes) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (device == nullptr || host == nullptr) return refuse("an address is null");
    return code_of(runner.copy_from(host, reinterpret_cast<std::uint64_t>(device), bytes));
  });
}

// ---- callables ----

int simpler_register_callable(void* context, int32_t id, const SimplerChipCallable* callable) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (callable == nullptr) return refuse("the callable is null");
    if (runner.outstanding()) return refuse("a run is between prepare and finalize: finalize it first");
    return code_of(
        runner.register_callable(id, callable, callable_bytes(*static_cast<const abi::ChipCallable*>(callable))));
  });
}

int simpler_unregister_callable(void* context, int32_t id) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (runner.outstanding()) return refuse("a run is between prepare and finalize: finalize it first");
    const Status status = runner.unregister_callable(id);
    const bool unknown = !status.ok() && (status.kind() == ErrorKind::kKey || status.kind() == ErrorKind::kIndex);
    return unknown ? 0 : code_of(status);
  });
}

// ---- runs ----

size_t get_runtime_size(void) { return sizeof(Storage); }
size_t get_runtime_alignment(void) { return alignof(Storage); }
const SimplerPipelineContract* get_pipeline_contract(void) { return contract_of("tensormap_and_ringbuffer"); }
const SimplerPipelineContract* get_pipeline_contract_ctx(void* context) {
  return context == nullptr ? nullptr : contract_of(context_of(context)->runtime);
}
int supports_concurrent_native_prepare_ctx(void* context) { return context != nullptr ? 1 : 0; }

int simpler_prepare_run(void* context, void* storage, int32_t id, const SimplerTaskArgs* args,
                        const SimplerCallConfig* config, const SimplerRunDescriptor* descriptor) {
  return with_runner(context, [&](Context& owner, DeviceRunner& runner) -> int {
    if (storage == nullptr || args == nullptr) return refuse("storage or arguments are null");
    if (reinterpret_cast<std::uintptr_t>(storage) % alignof(Storage) != 0)
      return refuse("the storage is not on a multiple of get_runtime_alignment()");
    Storage& run = *static_cast<Storage*>(storage);
    if (run.magic == kStorageMagic) return refuse("the storage holds a run: finalize it first");
    if (run.magic != 0) return refuse("the storage is not zeroed");
    const SimplerRunDescriptor where = descriptor != nullptr ? *descriptor : SimplerRunDescriptor{};
    if (where.pipeline_slot < 0 || where.pipeline_slot >= DeviceRunner::kPipelineDepth || where.arena_bank < 0 ||
        where.arena_bank >= DeviceRunner::kPipelineDepth)
      return refuse("pipeline slot and arena bank must be 0 or 1");
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
    if (const Status status = runner.prepare_run(request, &prepared); !status.ok()) return code_of(status);
    run.owner = &owner;
    run.run = prepared;
    run.magic = kStorageMagic;  // last: from here on there is a run
    return 0;
  });
}

int simpler_launch_run(void* context, void* storage) {
  return with_run(context, storage,
                  [](DeviceRunner& runner, Storage& run) { return code_of(runner.launch_run(run.run)); });
}

int simpler_poll_run(void* context, void* storage) { return with_run(context, storage, poll); }

int simpler_wait_run(void* context, void* storage) {
  return with_run(context, storage, [](DeviceRunner& runner, Storage& run) -> int {
    bool done = false;
    return code_of(runner.wait_run(run.run, -1, &done));
  });
}

int simpler_finalize_run(void* context, void* storage) {
  return with_run(context, storage, [](DeviceRunner& runner, Storage& run) {
    const Status status = runner.finalize_run(run.run, nullptr);
    run.magic = 0;
    return code_of(status);
  });
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

// ---- facts ----

uint64_t get_arena_bank_gm_heap_base_ctx(void* context, int32_t bank) {
  return fact_of(context, [&](DeviceRunner& runner) { return runner.heap_address(bank); });
}
uint64_t get_retained_temp_addr_ctx(void* context, int32_t slot) {
  return fact_of(context, [&](DeviceRunner& runner) { return runner.staging_address(slot); });
}
uint64_t get_aicpu_dlopen_count(void* context) {
  return fact_of(context, [](DeviceRunner& runner) { return runner.device_orchestration_loads(); });
}
uint64_t get_host_dlopen_count(void* context) {
  const std::uint64_t now = fact_of(context, [](DeviceRunner& runner) { return runner.host_orchestration_loads(); });
  return context == nullptr ? 0 : context_of(context)->host_loads + now;
}
uint64_t get_run_stream_set_create_count(void* context) {
  return fact_of(context, [](DeviceRunner& runner) { return runner.core_streams_created(); });
}

// ---- the rest ----

int simpler_provision_dma_workspace(void* context, uint32_t mask) {
  return with_runner(context, [&](Context& c, DeviceRunner& runner) -> int {
    if (mask != 0 && simulated(c.platform)) return refuse("a simulated device has no DMA engines");
    return code_of(runner.provision_dma(mask));
  });
}

int simpler_host_log_bind_state(SimplerHostLogState* state) {
  if (state == nullptr) return refuse("the state is null");
  if (state->abi_version != 1 || state->size < sizeof *state) return refuse("the state is of another version");
  if (!log::is_level(state->threshold)) return refuse("the threshold is none of 10, 20, 25, 30, 40, 60");
  log::bind(reinterpret_cast<log::State*>(state));
  return 0;
}

}  // extern "C"
