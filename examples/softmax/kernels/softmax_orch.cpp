// y = softmax of each row of x. Tensors: x (read), y (written); [rows][columns] floats, rows a multiple of kRows.
#include "../../common/block_count.h"
#include "pto_orchestration_api.h"

namespace {
constexpr uint32_t kRows = 16, kMostColumns = 512;  // as in softmax.cpp
}  // namespace

extern "C" __attribute__((visibility("default"))) void softmax(const ChipTaskArgs& args) {
  const ChipTensor& x = args.tensor(0).ref();
  const ChipTensor& y = args.tensor(1).ref();
  if (x.shapes[0] % kRows != 0 || x.shapes[1] > kMostColumns) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "%u x %u: rows come in multiples of %u, columns up to %u", x.shapes[0],
                    x.shapes[1], kRows, kMostColumns);
    return;
  }
  CoreTaskArgs task;
  task.add_input(x);
  task.add_output(y);
  set_blocks(task, x.shapes[0] / kRows);  // one task, a block per kRows rows
  rt_submit_aiv_task(0, task);
}
