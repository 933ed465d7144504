// Attention of all heads in one task: a block for each kQueries queries of a head, on one matrix core and its two vector
// cores. Tensors: q, k, v [heads][length][features], mask [kQueries][kQueries] (read), out (written); floats. Scalar: 1
// for causal attention.
#include "../../common/block_count.h"
#include "pto_orchestration_api.h"

namespace {
enum Kernel : int32_t { kCube = 0, kVector = 1 };
constexpr uint32_t kQueries = 64, kFeatures = 64, kSlotFloats = 6 * 64 * 64;  // as in attention.h
}  // namespace

extern "C" __attribute__((visibility("default"))) void attention(const ChipTaskArgs& args) {
  const ChipTensor& q = args.tensor(0).ref();
  const uint32_t heads = q.shapes[0], length = q.shapes[1];
  if (length % kQueries != 0 || q.shapes[2] != kFeatures) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS,
                    "%u positions of %u features: positions come in multiples of %u, and there "
                    "are %u features",
                    length, q.shapes[2], kQueries, kFeatures);
    return;
  }
  const uint32_t blocks = heads * (length / kQueries);
  const uint32_t slots_shape[] = {blocks * kSlotFloats};
  const TensorCreateInfo slots(slots_shape, 1, DataType::FLOAT32);
  CoreTaskArgs task;
  task.add_input(q, args.tensor(1).ref(), args.tensor(2).ref(), args.tensor(3).ref());
  task.add_output(args.tensor(4).ref());
  task.add_output(slots);
  task.add_scalar(length);
  task.add_scalar(args.scalar(0));
  set_blocks(task, blocks);
  MixedKernels kernels;
  kernels.aic_kernel_id = kCube;
  kernels.aiv0_kernel_id = kVector;
  kernels.aiv1_kernel_id = kVector;
  rt_submit_task(kernels, task);
}
