// One task with the one tensor: on a matrix core if the first scalar is 1, else on a vector core. The other scalars are
// the case and how often the kernel does it.
#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) void one_tile_case(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_inout(args.tensor(0).ref());
  task.add_scalar(args.scalar(1));
  task.add_scalar(args.scalar(2));
  if (args.scalar(0) == 1)
    rt_submit_aic_task(1, task);
  else
    rt_submit_aiv_task(0, task);
}
