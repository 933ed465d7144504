// The kChosen experts with the highest logits for each token, and their weights. Tensors: logits [tokens][kExperts]
// (float, read), experts [tokens][kChosen] (int32, written), weights [tokens][kChosen] (float, written). tokens is a
// multiple of kTokens.
#include "../../common/block_count.h"
#include "pto_orchestration_api.h"

namespace {
constexpr uint32_t kTokens = 16, kExperts = 128;  // as in gating.cpp
}  // namespace

extern "C" __attribute__((visibility("default"))) void gating(const ChipTaskArgs& args) {
  const ChipTensor& logits = args.tensor(0).ref();
  if (logits.shapes[0] % kTokens != 0 || logits.shapes[1] != kExperts) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "%u x %u: tokens come in multiples of %u, and there are %u experts",
                    logits.shapes[0], logits.shapes[1], kTokens, kExperts);
    return;
  }
  CoreTaskArgs task;
  task.add_input(logits);
  task.add_output(args.tensor(1).ref(), args.tensor(2).ref());
  set_blocks(task, logits.shapes[0] / kTokens);
  rt_submit_aiv_task(0, task);
}
