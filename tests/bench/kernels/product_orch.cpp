// One task on a matrix core. Tensors: a, b (read), c (written). Scalar: how often the kernel computes the product.
#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) void one_product(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_input(args.tensor(0).ref(), args.tensor(1).ref());
  task.add_output(args.tensor(2).ref());
  task.add_scalar(args.scalar(0));
  rt_submit_aic_task(0, task);
}
