// c += a x b in blocks of kBlock x kBlock. Tensors: a [m][k], b [k][n] (read), c [m][n] (read and written); floats.
// m, k and n are multiples of kBlock.
#include "pto_orchestration_api.h"

namespace {

constexpr uint32_t kBlock = 64;

enum Kernel : int32_t { kMultiply = 0, kAccumulate = 1 };

ChipTensor block(const ChipTensor& matrix, uint32_t row, uint32_t column) {
  const uint32_t shape[] = {kBlock, kBlock};
  const uint32_t offset[] = {row * kBlock, column * kBlock};
  return matrix.view(shape, offset);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig matmul_config(const ChipTaskArgs&) {
  return PTO2OrchestrationConfig{.expected_arg_count = 3};
}

extern "C" __attribute__((visibility("default"))) void matmul(const ChipTaskArgs& args) {
  const ChipTensor& a = args.tensor(0).ref();
  const ChipTensor& b = args.tensor(1).ref();
  const ChipTensor& c = args.tensor(2).ref();
  for (uint32_t extent : {a.shapes[0], a.shapes[1], b.shapes[1]}) {
    if (extent % kBlock != 0) {
      rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "an extent of %u is no multiple of %u; pad the matrices", extent,
                      kBlock);
      return;
    }
  }
  const uint32_t block_shape[] = {kBlock, kBlock};
  const TensorCreateInfo product_info(block_shape, 2, DataType::FLOAT32);

  for (uint32_t i = 0; i < c.shapes[0] / kBlock; ++i) {
    for (uint32_t j = 0; j < c.shapes[1] / kBlock; ++j) {
      const ChipTensor c_block = block(c, i, j);
      PTO2_SCOPE() {  // its end gives the products' memory back
        for (uint32_t k = 0; k < a.shapes[1] / kBlock; ++k) {
          // The products of all k are independent of each other ...
          const ChipTensor a_block = block(a, i, k);
          const ChipTensor b_block = block(b, k, j);
          CoreTaskArgs multiply;
          multiply.add_input(a_block, b_block);
          multiply.add_output(product_info);
          const TaskOutputTensors product = rt_submit_aic_task(kMultiply, multiply);
          if (product.empty()) return;  // the run has failed
          // ... the additions to one block of c follow each other, in this order.
          CoreTaskArgs accumulate;
          accumulate.add_inout(c_block);
          accumulate.add_input(product.get_ref(0));
          rt_submit_aiv_task(kAccumulate, accumulate);
        }
      }
    }
  }
}
