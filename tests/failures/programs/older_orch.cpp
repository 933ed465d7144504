// An orchestration as programs of the older interface have it. Tensors: a, b, out; scalar: scale, a float's bits.
// out = (a * scale + b) * scale + b, and then once more in place for the first half.
#include <stdint.h>

#include "pto_orchestration_api.h"

#define FUNC_SCALE_ADD 0

static uint64_t float_to_u64(float f) {
  union {
    float f32;
    uint64_t u64;
  } conv;
  conv.u64 = 0;
  conv.f32 = f;
  return conv.u64;
}

extern "C" {

__attribute__((visibility("default"))) PTO2OrchestrationConfig aicpu_orchestration_config(
    const ChipStorageTaskArgs& orch_args) {
  (void)orch_args;
  return PTO2OrchestrationConfig{
      .expected_arg_count = 4,
  };
}

__attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipStorageTaskArgs& orch_args) {
  const uint32_t rows = orch_args.tensor(0).shapes[0];
  const uint64_t bytes = orch_args.tensor(0).nbytes();
  const float* host_view = orch_args.tensor(0).data_as<float>();
  const ContinuousTensor& again = orch_args.tensor(1);
  DataType dtype = orch_args.tensor(0).dtype;
  union {
    uint64_t u64;
    float f32;
  } scale;
  scale.u64 = orch_args.scalar(0);
  LOG_INFO_V0("rows %u, bytes %lu, base %p", rows, static_cast<unsigned long>(bytes),
              static_cast<const void*>(host_view));
  LOG_INFO_V1("%d tensors", orch_args.tensor_count());
  LOG_INFO_V5("%d scalars", orch_args.scalar_count());
  LOG_INFO_V9("done with %s", "logging");

  Tensor ext_a = from_tensor_arg(orch_args.tensor(0));
  Tensor ext_b = from_tensor_arg(again, false, 0);
  Tensor ext_out = from_tensor_arg(orch_args.tensor(2));
  const uint32_t count = rows * orch_args.tensor(0).shapes[1];

  uint32_t shapes[RUNTIME_MAX_TENSOR_DIMS] = {rows, orch_args.tensor(0).shapes[1]};
  TensorCreateInfo ci(shapes, 2, dtype);

  PTO2_SCOPE() {
    Arg first;
    first.add_input(ext_a, ext_b);
    first.add_output(ci);
    first.add_scalar(float_to_u64(scale.f32));
    first.add_scalar((uint64_t)count);
    TaskOutputTensors outs = rt_submit_aiv_task(FUNC_SCALE_ADD, first);
    const Tensor& tmp = outs.get_ref(0);

    ArgWithDeps<4> second;
    second.add_input(tmp);
    second.add_input(ext_b);
    second.add_output(ext_out);
    second.add_scalar(scale.u64);
    second.add_scalar((uint64_t)count);
    second.add_dep(outs.task_id());
    PTO2TaskId done = rt_submit_aiv_task(FUNC_SCALE_ADD, second).task_id();

    uint32_t half[2] = {rows / 2, shapes[1]}, offset[2] = {0, 0};
    Tensor top = ext_out.view(half, offset), top_b = ext_b.view(half, offset);
    Arg third;
    third.add_inout(top);
    third.add_input(top_b);
    third.add_inout(top);
    third.add_scalar(scale.u64);
    third.add_scalar((uint64_t)(count / 2));
    third.set_dependencies(&done, 1);
    MixedKernels mixed;
    mixed.aiv0_kernel_id = FUNC_SCALE_ADD;
    rt_submit_task(mixed, third);
  }
}

}  // extern "C"
