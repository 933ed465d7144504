// Orchestrations and kernels whose log records the tests read.
#include "pressure.h"

ENTRY(says) {
  LOG_WARN("before");
  LOG_INFO("%d is below the threshold", 1);
  for (int i = 0; i < 3; ++i) step(x, 1);
  LOG_ERROR("after %d\n", 3);
}

ENTRY(two_blocks_fail) {
  CoreTaskArgs args;
  args.add_inout(x);
  set_blocks(args, 2);
  ask(args, kMeetAndThrow, 2);
  rt_submit_aiv_task(kAct, args);
}
