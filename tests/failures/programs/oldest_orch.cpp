// An orchestration of the oldest interface, which compiles and is refused.
#include "orchestration_api.h"

extern "C" __attribute__((visibility("default"))) int build_sum_graph(OrchestrationRuntime* runtime,
                                                                      const ChipStorageTaskArgs& in) {
  void* const host = in.tensor(0).data_as<void>();
  const size_t bytes = in.tensor(0).nbytes();
  void* const device = device_malloc(runtime, bytes);
  if (device == nullptr || copy_to_device(runtime, device, host, bytes) != 0) return -1;
  record_tensor_pair(runtime, host, device, bytes);
  uint64_t args[2] = {reinterpret_cast<uint64_t>(device), 64};
  const uint32_t shape[1] = {64}, offset[1] = {0};
  const TensorInfo infos[2] = {make_tensor_info_from_tensor_arg(in.tensor(0)),
                               make_tensor_info(DataType::FLOAT32, 1, shape, shape, offset)};
  const int first = add_task(runtime, args, 2, 0, CoreType::AIV);
  const int second = add_task_with_tensor_info(runtime, args, 2, 0, CoreType::AIC, infos, 2);
  set_tensor_info_to_task(runtime, first, infos, 1);
  add_successor(runtime, first, second);
  print_runtime(runtime);
  device_free(runtime, nullptr);
  return get_task_count(runtime) == 2 ? 0 : -1;
}
