// Square roots by Newton's method until nothing changes any more; after max_steps the direct way instead.
// Tensors: a [kCount] (read), x [kCount] (the first guess; the roots), steps [1] int32 (written: how many steps it took,
// -1 if the direct way was taken). Scalars: tolerance (float), max_steps (int).
#include "pto_orchestration_api.h"

namespace {

constexpr uint32_t kCount = 1024;

enum Kernel : int32_t { kNewton = 0, kRoot = 1 };

constexpr uint32_t kFirst[] = {0};

// Submits one step and waits for it. Returns the largest change.
float newton_step(const ChipTensor& a, const ChipTensor& x) {
  const uint32_t one[] = {1};
  const TensorCreateInfo change_info(one, 1, DataType::FLOAT32);
  PTO2_SCOPE_GUARD();
  CoreTaskArgs task;
  task.add_input(a);
  task.add_inout(x);
  task.add_output(change_info);
  const TaskOutputTensors change = rt_submit_aiv_task(kNewton, task);
  return get_tensor_data<float>(change.get_ref(0), 1, kFirst);  // waits until the task has computed it
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig newton_config(const ChipTaskArgs&) {
  return PTO2OrchestrationConfig{.expected_arg_count = 5};
}

extern "C" __attribute__((visibility("default"))) void newton(const ChipTaskArgs& args) {
  const ChipTensor& a = args.tensor(0).ref();
  const ChipTensor& x = args.tensor(1).ref();
  const ChipTensor& steps = args.tensor(2).ref();
  const float tolerance = from_u64<float>(args.scalar(0));
  const int32_t max_steps = static_cast<int32_t>(args.scalar(1));
  if (a.shapes[0] != kCount || x.shapes[0] != kCount) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "a and x have %u and %u elements; this program takes %u", a.shapes[0],
                    x.shapes[0], kCount);
    return;
  }

  int32_t taken = 0;
  float change = tolerance;
  while (change >= tolerance && taken < max_steps && !rt_is_fatal()) {
    change = newton_step(a, x);
    ++taken;
  }
  if (change >= tolerance) {  // still moving: take the other kernel
    CoreTaskArgs task;
    task.add_input(a);
    task.add_output(x);
    rt_submit_aiv_task(kRoot, task);
    taken = -1;
  }
  set_tensor_data(steps, 1, kFirst, taken);
}
