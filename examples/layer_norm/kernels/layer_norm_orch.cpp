// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row. Tensors: x, gamma, beta (read), y (written);
// [rows][kColumns] floats, gamma and beta [kColumns], rows a multiple of kRows.
#include "../../common/block_count.h"
#include "pto_orchestration_api.h"

namespace {
constexpr uint32_t kRows = 16, kColumns = 256;  // as in layer_norm.cpp
}  // namespace

extern "C" __attribute__((visibility("default"))) void layer_norm(const ChipTaskArgs& args) {
  const ChipTensor& x = args.tensor(0).ref();
  if (x.shapes[0] % kRows != 0 || x.shapes[1] != kColumns) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "%u x %u: rows come in multiples of %u, and there are %u columns",
                    x.shapes[0], x.shapes[1], kRows, kColumns);
    return;
  }
  CoreTaskArgs task;
  task.add_input(x, args.tensor(1).ref(), args.tensor(2).ref());
  task.add_output(args.tensor(3).ref());
  set_blocks(task, x.shapes[0] / kRows);
  rt_submit_aiv_task(0, task);
}
