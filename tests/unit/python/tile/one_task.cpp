// One vector task on the one tensor, with the one scalar.
#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) void one_task(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_inout(args.tensor(0).ref());
  task.add_scalar(args.scalar(0));
  rt_submit_aiv_task(0, task);
}
