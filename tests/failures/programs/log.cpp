// Orchestrations and kernels whose log records the tests read.
#include "pressure.h"

ENTRY(says) {
  LOG_WARN("before");
  LOG_INFO("%d is below the threshold", 1);
  for (int i = 0; i < 3; ++i) step(x, 1);
  LOG_ERROR("after %d\n", 3);
}

static void submit_two_blocks(const ChipTensor& x, Act what, uint64_t a) {
  CoreTaskArgs args;
  args.add_inout(x);
  set_blocks(args, 2);
  ask(args, what, a);
  rt_submit_aiv_task(kAct, args);
}

ENTRY(two_blocks_fail) { submit_two_blocks(x, kMeetAndThrow, 2); }
ENTRY(one_block_fails_while_one_waits) { submit_two_blocks(x, kThrowBesideAWait, 0); }
