// The API of orchestrations: one include gives everything.
//
// What      An orchestration submits tasks in program order; the runtime finds who must wait for whom from the tensors
//           that tasks read and write, and runs them on the device's cores, overlapping with the submission.
// Threads   One thread per run calls these functions, from the entry function only.
// Errors    The first failure ends the run: every later call is a cheap no-op that returns an empty result, and the host
//           gets the code. rt_is_fatal() tells.
// Link      Calls go through a table of functions that the loader binds, so the shared object needs no library.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <string>

#include "pto_arg_with_deps.h"
#include "pto_runtime_status.h"
#include "pto_types.h"
#include "task_args.h"

struct PTO2Runtime;

enum class PTO2LogLevel : int32_t { kDebug = 10, kInfo = 20, kTiming = 25, kWarn = 30, kError = 40 };

// How a use of a recorded graph begins; see pto_graph_api.h.
struct SimplerGraphBlock {
  bool execute_block = true;  // the caller submits the body's tasks
  bool recording = false;     // they are recorded
  PTO2TaskId task_id = PTO2TaskId::invalid();
};

// The calls behind the API. `rt` is the runtime bound to this shared object.
struct PTO2RuntimeOps {
  TaskOutputTensors (*submit_task)(PTO2Runtime* rt, const MixedKernels& kernels, const CoreTaskArgs& args);
  TaskOutputTensors (*submit_dummy_task)(PTO2Runtime* rt, const CoreTaskArgs& args);
  TaskOutputTensors (*alloc_tensors)(PTO2Runtime* rt, const CoreTaskArgs& args);
  void (*scope_begin)(PTO2Runtime* rt, PTO2ScopeMode mode, const char* file, int line);
  void (*scope_end)(PTO2Runtime* rt);
  void (*orchestration_done)(PTO2Runtime* rt);
  bool (*is_fatal)(PTO2Runtime* rt);
  void (*report_fatal)(PTO2Runtime* rt, int32_t code, const char* function, const char* format, va_list values);
  void (*log)(PTO2Runtime* rt, PTO2LogLevel level, const char* function, const char* format, va_list values);
  uint64_t (*get_tensor_data)(PTO2Runtime* rt, const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices);
  void (*set_tensor_data)(PTO2Runtime* rt, const ChipTensor& tensor, uint32_t ndims, const uint32_t* indices,
                          uint64_t value);
  int32_t (*available_cluster_count)(PTO2Runtime* rt);
  int32_t (*available_aiv_count)(PTO2Runtime* rt);
  // `always_ended`: graph_end follows wherever the block is executed, and not only where it is recorded.
  SimplerGraphBlock (*graph_begin)(PTO2Runtime* rt, uint64_t key, const CoreTaskArgs& boundary, bool always_ended);
  bool (*graph_end)(PTO2Runtime* rt);
  PTO2TaskId (*graph_commit)(PTO2Runtime* rt);
};

struct PTO2Runtime {
  const PTO2RuntimeOps* ops;
};

// What the configuration export of an orchestration returns. Fewer arguments than expected_arg_count fail the run.
#ifndef PTO2_ORCHESTRATION_CONFIG_DEFINED
#define PTO2_ORCHESTRATION_CONFIG_DEFINED
struct PTO2OrchestrationConfig {
  int expected_arg_count;  // tensors + scalars; 0: not checked
};
#endif

// ---- binding: one current runtime per shared object, set by the loader before each entry call ----------------------

__attribute__((weak, visibility("hidden"))) PTO2Runtime* simpler_bound_runtime = nullptr;

extern "C" __attribute__((weak, used, visibility("default"))) void framework_bind_runtime(PTO2Runtime* runtime) {
  simpler_bound_runtime = runtime;
}
extern "C" __attribute__((weak, visibility("hidden"))) PTO2Runtime* framework_current_runtime() {
  return simpler_bound_runtime;
}

static inline PTO2Runtime* current_runtime() { return simpler_bound_runtime; }

// ---- errors and logging ---------------------------------------------------------------------------------------------

static inline bool rt_is_fatal() { return current_runtime()->ops->is_fatal(current_runtime()); }

[[gnu::format(printf, 3, 4)]] static inline void simpler_report_fatal(int32_t code, const char* function,
                                                                      const char* format, ...) {
  va_list values;
  va_start(values, format);
  current_runtime()->ops->report_fatal(current_runtime(), code, function, format, values);
  va_end(values);
}

[[gnu::format(printf, 3, 4)]] static inline void simpler_log(PTO2LogLevel level, const char* function,
                                                             const char* format, ...) {
  va_list values;
  va_start(values, format);
  current_runtime()->ops->log(current_runtime(), level, function, format, values);
  va_end(values);
}

// Ends the run with a code of pto_runtime_status.h; the first code wins.
#define rt_report_fatal(code, ...) simpler_report_fatal((code), __FUNCTION__, __VA_ARGS__)

#define LOG_ERROR(...) simpler_log(PTO2LogLevel::kError, __FUNCTION__, __VA_ARGS__)
#define LOG_WARN(...) simpler_log(PTO2LogLevel::kWarn, __FUNCTION__, __VA_ARGS__)
#define LOG_TIMING(...) simpler_log(PTO2LogLevel::kTiming, __FUNCTION__, __VA_ARGS__)
#define LOG_INFO(...) simpler_log(PTO2LogLevel::kInfo, __FUNCTION__, __VA_ARGS__)
#define LOG_DEBUG(...) simpler_log(PTO2LogLevel::kDebug, __FUNCTION__, __VA_ARGS__)

// The older interface's ten shades of INFO.
#define LOG_INFO_V0(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V1(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V2(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V3(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V4(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V5(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V6(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V7(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V8(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V9(...) LOG_INFO(__VA_ARGS__)

[[noreturn]] inline void TaskOutputTensors::out_of_range(uint32_t index) const {
  if (!rt_is_fatal()) {
    simpler_report_fatal(PTO2_ERROR_INVALID_ARGS, "TaskOutputTensors::get_ref",
                         "index %u is past the %u outputs of the task", index, size());
  }
  throw OrchestrationStopped{};
}

template <typename Unused> auto ChipTensor::dump() const {
  std::string text = "ChipTensor(addr=" + std::to_string(buffer.addr) + ", bytes=" + std::to_string(buffer.size) +
                     ", start_offset=" + std::to_string(start_offset) + ", dtype=" + get_dtype_name(dtype) +
                     ", shape=(";
  for (uint32_t d = 0; d < ndims; ++d) text += (d != 0 ? ", " : "") + std::to_string(shapes[d]);
  text += "), strides=(";
  for (uint32_t d = 0; d < ndims; ++d) text += (d != 0 ? ", " : "") + std::to_string(strides[d]);
  return text + "))";
}

// ---- submission -----------------------------------------------------------------------------------------------------

// Any lanes of one cluster per block.
static inline TaskOutputTensors rt_submit_task(const MixedKernels& kernels, const CoreTaskArgs& args) {
  return current_runtime()->ops->submit_task(current_runtime(), kernels, args);
}
// One matrix core per block.
static inline TaskOutputTensors rt_submit_aic_task(int32_t kernel_id, const CoreTaskArgs& args) {
  return rt_submit_task(MixedKernels{kernel_id, INVALID_KERNEL_ID, INVALID_KERNEL_ID}, args);
}
// One vector core per block.
static inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel_id, const CoreTaskArgs& args) {
  return rt_submit_task(MixedKernels{INVALID_KERNEL_ID, kernel_id, INVALID_KERNEL_ID}, args);
}
// A node of the graph that runs nothing: it joins its dependencies and may allocate outputs.
static inline TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs& args) {
  return current_runtime()->ops->submit_dummy_task(current_runtime(), args);
}

template <std::size_t N>
static inline TaskOutputTensors rt_submit_task(const MixedKernels& kernels, CoreTaskArgsWithDeps<N>& args) {
  return rt_submit_task(kernels, args.finalize_for_submit());
}
template <std::size_t N>
static inline TaskOutputTensors rt_submit_aic_task(int32_t kernel_id, CoreTaskArgsWithDeps<N>& args) {
  return rt_submit_aic_task(kernel_id, args.finalize_for_submit());
}
template <std::size_t N>
static inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel_id, CoreTaskArgsWithDeps<N>& args) {
  return rt_submit_aiv_task(kernel_id, args.finalize_for_submit());
}

// Memory without a kernel; complete at once. Only create-infos, at least one.
static inline TaskOutputTensors alloc_tensors(const CoreTaskArgs& args) {
  return current_runtime()->ops->alloc_tensors(current_runtime(), args);
}
static inline TaskOutputTensors alloc_tensors(const TensorCreateInfo infos[], uint32_t count) {
  CoreTaskArgs args;
  for (uint32_t i = 0; i < count; ++i) args.add_output(infos[i]);
  return alloc_tensors(args);
}
template <typename... Infos>
static inline std::enable_if_t<(std::is_same_v<std::decay_t<Infos>, TensorCreateInfo> && ...), TaskOutputTensors>
alloc_tensors(const TensorCreateInfo& first, const Infos&... rest) {
  CoreTaskArgs args;
  args.add_output(first);
  (args.add_output(rest), ...);
  return alloc_tensors(args);
}

// Clusters and vector cores of this run's device.
static inline int32_t rt_available_cluster_count() {
  return current_runtime()->ops->available_cluster_count(current_runtime());
}
static inline int32_t rt_available_aiv_count() {
  return current_runtime()->ops->available_aiv_count(current_runtime());
}

// Called by the loader after the entry returned.
static inline void rt_orchestration_done() { current_runtime()->ops->orchestration_done(current_runtime()); }

// ---- scopes: lifetime of what tasks allocate; neither an order nor a barrier ----------------------------------------

static inline void rt_scope_begin(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  current_runtime()->ops->scope_begin(current_runtime(), mode, file, line);
}
static inline void rt_scope_end() { current_runtime()->ops->scope_end(current_runtime()); }

class PTO2ScopeGuard {
 public:
  explicit PTO2ScopeGuard(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
    rt_scope_begin(mode, file, line);
  }
  ~PTO2ScopeGuard() { rt_scope_end(); }
  PTO2ScopeGuard(const PTO2ScopeGuard&) = delete;
  PTO2ScopeGuard& operator=(const PTO2ScopeGuard&) = delete;
};

#define SIMPLER_CONCAT_(a, b) a##b
#define SIMPLER_CONCAT(a, b) SIMPLER_CONCAT_(a, b)
// PTO2_SCOPE(mode) { ... } opens a scope for the block; PTO2_SCOPE_GUARD(mode); for the rest of the enclosing block.
#define PTO2_SCOPE(...) if (PTO2ScopeGuard SIMPLER_CONCAT(simpler_scope_, __COUNTER__){__VA_ARGS__}; true)
#define PTO2_SCOPE_GUARD(...) \
  [[maybe_unused]] PTO2ScopeGuard SIMPLER_CONCAT(simpler_scope_, __COUNTER__) { __VA_ARGS__ }

// ---- element access -------------------------------------------------------------------------------------------------
// tensormap_and_ringbuffer waits for the tasks that write the tensor (set: also for those that read it). host_build_graph
// runs no task before the orchestration ends: it accesses entry tensors that no task writes, and refuses all others.

template <typename T = uint64_t>
static inline T get_tensor_data(const ChipTensor& tensor, uint32_t ndims, const uint32_t indices[]) {
  return from_u64<T>(current_runtime()->ops->get_tensor_data(current_runtime(), tensor, ndims, indices));
}
template <typename T = uint64_t>
static inline void set_tensor_data(const ChipTensor& tensor, uint32_t ndims, const uint32_t indices[], T value) {
  current_runtime()->ops->set_tensor_data(current_runtime(), tensor, ndims, indices, to_u64(value));
}

#if defined(SIMPLER_RUNTIME_WHOLE_GRAPH)
#include "pto_graph_api.h"
#endif
