// c = a x b. Tensors: a [m][k], b [k][n] (half, read), c [m][n] (float, written). m and n are multiples of kBlock, k of
// kStep.
#include "../../common/block_count.h"
#include "pto_orchestration_api.h"

namespace {
constexpr uint32_t kBlock = 128, kStep = 64;  // as in tiled_matmul.cpp
}  // namespace

extern "C" __attribute__((visibility("default"))) void tiled_matmul(const ChipTaskArgs& args) {
  const ChipTensor& a = args.tensor(0).ref();
  const ChipTensor& b = args.tensor(1).ref();
  const ChipTensor& c = args.tensor(2).ref();
  if (a.shapes[0] % kBlock != 0 || b.shapes[1] % kBlock != 0 || a.shapes[1] % kStep != 0) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "%u x %u x %u: pad the outer extents to %u and the inner one to %u",
                    a.shapes[0], a.shapes[1], b.shapes[1], kBlock, kStep);
    return;
  }
  CoreTaskArgs task;
  task.add_input(a, b);
  task.add_output(c);
  set_blocks(task, c.shapes[0] / kBlock * (c.shapes[1] / kBlock));
  rt_submit_aic_task(0, task);
}
