// sum += product for one block, on a vector core. Tensors: sum (read and written), product (read); kBlock x kBlock floats.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kBlock = 64;  // as in matmul_orch.cpp
constexpr int kBytes = kBlock * kBlock * sizeof(float);

using Operand = pto::Tile<pto::TileType::Vec, float, kBlock, kBlock>;
using Block = pto::Shape<1, 1, 1, kBlock, kBlock>;
using RowStride = pto::Stride<1, 1, 1, pto::DYNAMIC, 1>;
using Memory = pto::GlobalTensor<float, Block, RowStride>;

__aicore__ Memory memory_of(__gm__ ChipTensor* tensor) {
  return Memory(tensor->data_as<float>() + tensor->start_offset, Block(), RowStride(tensor->strides[0]));
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const Memory sum_memory = memory_of(reinterpret_cast<__gm__ ChipTensor*>(args[0]));
  const Memory product_memory = memory_of(reinterpret_cast<__gm__ ChipTensor*>(args[1]));

  Operand sum, product;
  TASSIGN(sum, 0);
  TASSIGN(product, kBytes);

  TLOAD(sum, sum_memory);
  TLOAD(product, product_memory);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(sum, sum, product);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(sum_memory, sum);
  pipe_sync();
}
