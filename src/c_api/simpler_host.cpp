// The functions of host/simpler_host.h about contexts, memory, callables and facts: checks of what a C caller may get
// wrong, then the device runner.
#include "host/simpler_host.h"

#include <algorithm>
#include <memory>
#include <string>

#include "abi/chip_callable.h"
#include "base/log.h"
#include "c_api/context.h"

namespace simpler::c_api {
namespace {

using host::DeviceRunner;

static_assert(sizeof(SimplerHostLogState) == 16 && sizeof(SimplerHostLogState) == sizeof(log::State));
static_assert(static_cast<int>(ErrorKind::kRun) == SIMPLER_ERROR_RUN &&
              static_cast<int>(ErrorKind::kValue) == SIMPLER_ERROR_VALUE &&
              static_cast<int>(ErrorKind::kType) == SIMPLER_ERROR_TYPE &&
              static_cast<int>(ErrorKind::kIndex) == SIMPLER_ERROR_INDEX &&
              static_cast<int>(ErrorKind::kKey) == SIMPLER_ERROR_KEY &&
              static_cast<int>(ErrorKind::kState) == SIMPLER_ERROR_STATE &&
              static_cast<int>(ErrorKind::kTimeout) == SIMPLER_ERROR_TIMEOUT &&
              static_cast<int>(ErrorKind::kDevice) == SIMPLER_ERROR_DEVICE &&
              static_cast<int>(ErrorKind::kMemory) == SIMPLER_ERROR_MEMORY);

constexpr const char* kOutstanding = "a run is between prepare and finalize: finalize it first";

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

int check_copy(const char* what, const void* device, const void* host, std::size_t bytes) {
  if (device != nullptr && host != nullptr) return 0;
  return refuse(ErrorKind::kValue,
                format("%s of %zu bytes: the %s address is null", what, bytes, device == nullptr ? "device" : "host"));
}

}  // namespace
}  // namespace simpler::c_api

using namespace simpler;
using namespace simpler::c_api;

extern "C" {

const char* simpler_last_error(void) { return last_error().text.c_str(); }
int simpler_last_error_code(void) { return last_error().code; }
int simpler_last_error_kind(void) { return static_cast<int>(last_error().kind); }

// ---- contexts ----

void* simpler_create_device_context(const char* platform, const char* runtime) {
  return guarded(static_cast<void*>(nullptr), [&]() -> void* {
    if (platform != nullptr && runtime != nullptr) return std::make_unique<Context>(platform, runtime).release();
    refuse(ErrorKind::kValue, "platform or runtime is null");
    return nullptr;
  });
}

void* create_device_context(void) { return simpler_create_device_context("a2a3sim", "tensormap_and_ringbuffer"); }

void destroy_device_context(void* context) {
  guarded(0, [&] {
    if (context == nullptr || context_of(context)->inherited()) return 0;
    if (context_of(context)->outstanding()) {
      log::host(log::Level::kError, "destroy_device_context",
                "a run is between prepare and finalize: the context is not destroyed. Finalize the run first");
      return 0;
    }
    delete context_of(context);
    return 0;
  });
}

int simpler_set_simulator_ctx(void* context, int clusters, int threads) {
  return with_context(context, [&](Context& c) -> int {
    if (!c.simulated()) return refuse(ErrorKind::kValue, "only a simulated device has a size of choice");
    if (c.runner() != nullptr) return refuse(ErrorKind::kState, "the context is initialised already");
    c.options().sim_clusters = clusters;
    c.options().sim_threads = threads;
    return 0;
  });
}

int simpler_init(void* context, int device, const void* aicpu, size_t aicpu_bytes, const void* aicore,
                 size_t aicore_bytes, const void* dispatcher, size_t dispatcher_bytes,
                 const SimplerCallConfig* prewarm) {
  return with_context(context, [&](Context& c) -> int {
    if (c.runner() != nullptr) return refuse(ErrorKind::kState, "the context is initialised already");
    host::RunnerOptions options = c.options();
    options.device_id = device;
    options.program = bytes_of(aicpu, aicpu_bytes);
    options.cores = bytes_of(aicore, aicore_bytes);
    options.dispatcher = bytes_of(dispatcher, dispatcher_bytes);
    std::unique_ptr<DeviceRunner> runner;
    if (Status status = DeviceRunner::open(options, &runner); !status.ok()) return note(std::move(status));
    if (prewarm != nullptr) {
      Status status = runner->prewarm(*static_cast<const abi::CallConfig*>(prewarm));
      if (!status.ok()) return note(std::move(status));
    }
    c.set(std::move(runner));
    return 0;
  });
}

int simpler_prewarm_ctx(void* context, const SimplerCallConfig* config) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (config == nullptr) return refuse(ErrorKind::kValue, "the configuration is null");
    return code_of(runner.prewarm(*static_cast<const abi::CallConfig*>(config)));
  });
}

int finalize_device(void* context) {
  return with_runner(context, [](Context& c, DeviceRunner& runner) -> int {
    return runner.outstanding() ? refuse(ErrorKind::kState, kOutstanding) : code_of(c.finalize(runner));
  });
}

int simpler_end_device(void* context) {
  if (context != nullptr && context_of(context)->inherited()) return 0;  // the parent's: nothing of it is here
  return with_context(context, [](Context& c) -> int {
    const std::shared_ptr<DeviceRunner> runner = c.runner();
    return runner == nullptr ? 0 : code_of(c.finalize(*runner));
  });
}

// ---- memory ----

void* device_malloc_ctx(void* context, size_t bytes) {
  std::uint64_t address = 0;
  const int code =
      with_runner(context, [&](Context&, DeviceRunner& runner) { return code_of(runner.malloc(bytes, &address)); });
  return code == 0 ? reinterpret_cast<void*>(address) : nullptr;
}

int simpler_free_ctx(void* context, void* address) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) {
    return code_of(runner.free(reinterpret_cast<std::uint64_t>(address)));
  });
}

void device_free_ctx(void* context, void* address) {
  if (address != nullptr) simpler_free_ctx(context, address);
}

size_t committed_device_memory_ctx(void* context) {
  return fact_of(context, [](DeviceRunner& runner) { return runner.committed_memory(); });
}

int copy_to_device_ctx(void* context, void* device, const void* host, size_t bytes) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (const int code = check_copy("copy_to", device, host, bytes); code != 0) return code;
    return code_of(runner.copy_to(reinterpret_cast<std::uint64_t>(device), host, bytes));
  });
}

int copy_from_device_ctx(void* context, void* host, const void* device, size_t bytes) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (const int code = check_copy("copy_from", device, host, bytes); code != 0) return code;
    return code_of(runner.copy_from(host, reinterpret_cast<std::uint64_t>(device), bytes));
  });
}

// ---- callables ----

int simpler_register_callable(void* context, int32_t id, const SimplerChipCallable* callable) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (callable == nullptr) return refuse(ErrorKind::kValue, "the callable is null");
    if (runner.outstanding()) return refuse(ErrorKind::kState, kOutstanding);
    return code_of(
        runner.register_callable(id, callable, callable_bytes(*static_cast<const abi::ChipCallable*>(callable))));
  });
}

int simpler_unregister_callable(void* context, int32_t id) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (runner.outstanding()) return refuse(ErrorKind::kState, kOutstanding);
    const Status status = runner.unregister_callable(id);
    const bool unknown = !status.ok() && (status.kind() == ErrorKind::kKey || status.kind() == ErrorKind::kIndex);
    return unknown ? 0 : code_of(status);
  });
}

int simpler_add_callable(void* context, int32_t id, const SimplerChipCallable* callable, size_t bytes) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    if (callable == nullptr) return refuse(ErrorKind::kValue, "the callable is null");
    return code_of(runner.register_callable(id, callable, bytes));
  });
}

int simpler_remove_callable(void* context, int32_t id) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) { return code_of(runner.unregister_callable(id)); });
}

int simpler_wait_idle_ctx(void* context, int64_t timeout_ns) {
  return with_runner(context, [&](Context&, DeviceRunner& runner) -> int {
    return runner.wait_idle(timeout_ns) ? SIMPLER_POLL_COMPLETE : SIMPLER_POLL_NOT_READY;
  });
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
  return context == nullptr ? 0 : context_of(context)->past_host_loads() + now;
}
uint64_t get_run_stream_set_create_count(void* context) {
  return fact_of(context, [](DeviceRunner& runner) { return runner.core_streams_created(); });
}

int simpler_cluster_count_ctx(void* context) {
  return static_cast<int>(
      fact_of(context, [](DeviceRunner& runner) { return static_cast<std::uint64_t>(runner.cluster_count()); }));
}
int simpler_thread_count_ctx(void* context) {
  return static_cast<int>(
      fact_of(context, [](DeviceRunner& runner) { return static_cast<std::uint64_t>(runner.thread_count()); }));
}

// ---- the rest ----

int simpler_provision_dma_workspace(void* context, uint32_t mask) {
  return with_runner(context, [&](Context& c, DeviceRunner& runner) -> int {
    if (mask != 0 && c.simulated()) return refuse(ErrorKind::kValue, "a simulated device has no DMA engines");
    return code_of(runner.provision_dma(mask));
  });
}

int simpler_host_log_bind_state(SimplerHostLogState* state) {
  if (state == nullptr) return refuse(ErrorKind::kValue, "the state is null");
  if (state->abi_version != 1 || state->size < sizeof *state)
    return refuse(ErrorKind::kValue, "the state is of another version");
  if (!log::is_level(state->threshold))
    return refuse(ErrorKind::kValue, "the threshold is none of 10, 20, 25, 30, 40, 60");
  log::bind(reinterpret_cast<log::State*>(state));
  return 0;
}

}  // extern "C"
