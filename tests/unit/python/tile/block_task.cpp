// One task of blocks of a cube core and two vector cores, on the one tensor. Scalars: how many blocks, whether they start
// together, and one for the kernels.
#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) void block_task(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_inout(args.tensor(0).ref());
  task.add_scalar(args.scalar(2));
  task.launch_spec.set_block_num(static_cast<int16_t>(args.scalar(0)));
  task.launch_spec.set_require_sync_start(args.scalar(1) != 0);
  MixedKernels kernels;
  kernels.aic_kernel_id = 0;
  kernels.aiv0_kernel_id = kernels.aiv1_kernel_id = 1;
  rt_submit_task(kernels, task);
}
