// out = a + b, one task for each piece of kTile elements. Tensors: a, b (read), out (written); float, one-dimensional.
#include <algorithm>

#include "pto_orchestration_api.h"

namespace {

constexpr uint32_t kTile = 8192;        // what one task adds; as in add.cpp
constexpr uint32_t kTasksInScope = 64;  // an open scope holds on to the slots of its tasks

enum Kernel : int32_t { kAdd = 0 };

}  // namespace

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig vector_add_config(const ChipTaskArgs&) {
  return PTO2OrchestrationConfig{.expected_arg_count = 3};
}

extern "C" __attribute__((visibility("default"))) void vector_add(const ChipTaskArgs& args) {
  const ChipTensor& a = args.tensor(0).ref();
  const ChipTensor& b = args.tensor(1).ref();
  const ChipTensor& out = args.tensor(2).ref();
  const uint32_t count = out.shapes[0];

  uint32_t start = 0;
  while (start < count) {
    PTO2_SCOPE() {
      for (uint32_t n = 0; n < kTasksInScope && start < count; ++n, start += kTile) {
        const uint32_t offset[] = {start};
        const uint32_t shape[] = {std::min(kTile, count - start)};
        const ChipTensor a_piece = a.view(shape, offset);
        const ChipTensor b_piece = b.view(shape, offset);
        const ChipTensor out_piece = out.view(shape, offset);
        CoreTaskArgs task;
        task.add_input(a_piece, b_piece);
        task.add_output(out_piece);
        rt_submit_aiv_task(kAdd, task);
      }
    }
  }
}
