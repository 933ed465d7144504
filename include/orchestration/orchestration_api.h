// The oldest interface of host_build_graph: tasks with raw arguments and edges that the program draws itself.
//
// What      Sources that use it compile, so that they can be ported piece by piece. They do not run: registration refuses
//           them by the symbol below. pto_orchestration_api.h replaces it: submit tasks with tensors, and the runtime
//           finds the edges, allocates, and copies.
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/core_type.h"
#include "task_args.h"
#include "tensor_info.h"

struct OrchestrationRuntime;

// The calls behind the interface.
struct OrchestrationRuntimeOps {
  int (*add_task)(OrchestrationRuntime* runtime, uint64_t* args, int count, int func_id, CoreType core_type);
  void (*add_successor)(OrchestrationRuntime* runtime, int from, int to);
  void* (*device_malloc)(OrchestrationRuntime* runtime, size_t bytes);
  void (*device_free)(OrchestrationRuntime* runtime, void* memory);
  int (*copy_to_device)(OrchestrationRuntime* runtime, void* device, const void* host, size_t bytes);
  void (*record_tensor_pair)(OrchestrationRuntime* runtime, void* host, void* device, size_t bytes);
  int (*get_task_count)(OrchestrationRuntime* runtime);
  void (*print_runtime)(OrchestrationRuntime* runtime);
  void (*set_tensor_info_to_task)(OrchestrationRuntime* runtime, int task, const TensorInfo* infos, int count);
};
struct OrchestrationRuntime {
  const OrchestrationRuntimeOps* ops;
};

// Tells the loader what this shared object is.
extern "C" __attribute__((weak, used, visibility("default"))) void simpler_uses_orchestration_api() {}

static inline int add_task(OrchestrationRuntime* runtime, uint64_t* args, int count, int func_id, CoreType core_type) {
  return runtime->ops->add_task(runtime, args, count, func_id, core_type);
}
static inline void add_successor(OrchestrationRuntime* runtime, int from, int to) {
  runtime->ops->add_successor(runtime, from, to);
}
static inline void* device_malloc(OrchestrationRuntime* runtime, size_t bytes) {
  return runtime->ops->device_malloc(runtime, bytes);
}
static inline void device_free(OrchestrationRuntime* runtime, void* memory) {
  runtime->ops->device_free(runtime, memory);
}
static inline int copy_to_device(OrchestrationRuntime* runtime, void* device, const void* host, size_t bytes) {
  return runtime->ops->copy_to_device(runtime, device, host, bytes);
}
static inline void record_tensor_pair(OrchestrationRuntime* runtime, void* host, void* device, size_t bytes) {
  runtime->ops->record_tensor_pair(runtime, host, device, bytes);
}
static inline int get_task_count(OrchestrationRuntime* runtime) { return runtime->ops->get_task_count(runtime); }
static inline void print_runtime(OrchestrationRuntime* runtime) { runtime->ops->print_runtime(runtime); }
static inline void set_tensor_info_to_task(OrchestrationRuntime* runtime, int task, const TensorInfo* infos,
                                           int count) {
  runtime->ops->set_tensor_info_to_task(runtime, task, infos, count);
}
static inline int add_task_with_tensor_info(OrchestrationRuntime* runtime, uint64_t* args, int count, int func_id,
                                            CoreType core_type, const TensorInfo* infos, int info_count) {
  const int task = add_task(runtime, args, count, func_id, core_type);
  if (task >= 0) set_tensor_info_to_task(runtime, task, infos, info_count);
  return task;
}
