// Tasks of many blocks that are timed. Tensor: arrivals int32 [1] (written), for the kernels that meet. Scalars: lanes
// (mask: 1 AIC, 2 AIV0, 4 AIV1), blocks of a task, tasks, together (1: each task is a cohort whose lanes meet once).
#include "pto_orchestration_api.h"

namespace {

enum Kernel : int32_t { kEmptyOnVectorCore = 0, kEmptyOnMatrixCore = 1, kMeetOnVectorCore = 2, kMeetOnMatrixCore = 3 };

constexpr uint32_t kTasksInScope = 1000;  // a scope holds at most window - 2 tasks; the default window is 16384

void set_width(CoreTaskArgs& task, int16_t blocks) {
#if defined(SIMPLER_ARCH_A5)
  task.launch_spec.set_core_num(blocks);
#else
  task.launch_spec.set_block_num(blocks);
#endif
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void wide_tasks(const ChipTaskArgs& args) {
  const ChipTensor& arrivals = args.tensor(0).ref();
  const uint64_t lanes = args.scalar(0), blocks = args.scalar(1), tasks = args.scalar(2), together = args.scalar(3);
  const int32_t matrix = together != 0 ? kMeetOnMatrixCore : kEmptyOnMatrixCore;
  const int32_t vector = together != 0 ? kMeetOnVectorCore : kEmptyOnVectorCore;
  MixedKernels kernels;
  kernels.aic_kernel_id = (lanes & 1) != 0 ? matrix : INVALID_KERNEL_ID;
  kernels.aiv0_kernel_id = (lanes & 2) != 0 ? vector : INVALID_KERNEL_ID;
  kernels.aiv1_kernel_id = (lanes & 4) != 0 ? vector : INVALID_KERNEL_ID;
  const auto lanes_of_block = static_cast<uint64_t>(__builtin_popcountll(lanes));
  for (uint64_t n = 0; n < tasks;) {
    PTO2_SCOPE() {
      for (const uint64_t end = n + kTasksInScope; n < tasks && n < end; ++n) {
        CoreTaskArgs task;
        if (together != 0) {
          task.add_inout(arrivals);
          task.add_scalar(static_cast<int32_t>((n + 1) * blocks * lanes_of_block));  // arrivals when all have met
        } else {
          task.add_input(arrivals);
        }
        set_width(task, static_cast<int16_t>(blocks));
        task.launch_spec.set_require_sync_start(together != 0);
        rt_submit_task(kernels, task);
      }
    }
  }
}
