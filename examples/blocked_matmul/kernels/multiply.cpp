// product = a x b for one block, on a matrix core. Tensors: a, b (read), product (written); kBlock x kBlock floats.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kBlock = 64;  // as in matmul_orch.cpp
constexpr int kBytes = kBlock * kBlock * sizeof(float);

using Loaded = pto::Tile<pto::TileType::Mat, float, kBlock, kBlock, pto::BLayout::ColMajor, kBlock, kBlock,
                         pto::SLayout::RowMajor>;
using Block = pto::Shape<1, 1, 1, kBlock, kBlock>;
using RowStride = pto::Stride<1, 1, 1, pto::DYNAMIC, 1>;  // a block's rows lie apart in the whole matrix
using Memory = pto::GlobalTensor<float, Block, RowStride>;

__aicore__ Memory memory_of(__gm__ ChipTensor* tensor) {
  return Memory(tensor->data_as<float>() + tensor->start_offset, Block(), RowStride(tensor->strides[0]));
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* tensors[3];
  for (int i = 0; i < 3; ++i) tensors[i] = reinterpret_cast<__gm__ ChipTensor*>(args[i]);

  Loaded a_loaded, b_loaded;
  pto::TileLeft<float, kBlock, kBlock> a;
  pto::TileRight<float, kBlock, kBlock> b;
  pto::TileAcc<float, kBlock, kBlock> product;
  TASSIGN(a_loaded, 0);
  TASSIGN(b_loaded, kBytes);
  TASSIGN(a, 0);
  TASSIGN(b, 0);
  TASSIGN(product, 0);

  TLOAD(a_loaded, memory_of(tensors[0]));
  TLOAD(b_loaded, memory_of(tensors[1]));
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(a, a_loaded);
  TMOV(b, b_loaded);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(product, a, b);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(memory_of(tensors[2]), product);
  pipe_sync();
}
