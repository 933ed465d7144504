// Softmax of kRows rows, on a vector core: one load, one store, everything between stays in the core's memory.
// Tensors: x (read), y (written); [rows][columns] floats. Block i has rows from i * kRows on.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kRows = 16, kMostColumns = 512;  // as in softmax_orch.cpp
constexpr int kBytes = kRows * kMostColumns * sizeof(float);

// As many columns as the tensor has, known when the kernel runs.
using Values = pto::Tile<pto::TileType::Vec, float, kRows, kMostColumns, pto::BLayout::RowMajor, kRows, pto::DYNAMIC>;
using PerRow = pto::Tile<pto::TileType::Vec, float, kRows, 1, pto::BLayout::ColMajor>;
using Extents = pto::Shape<1, 1, 1, kRows, pto::DYNAMIC>;
using RowStride = pto::Stride<1, 1, 1, pto::DYNAMIC, 1>;
using Memory = pto::GlobalTensor<float, Extents, RowStride>;

__aicore__ Memory rows_of(__gm__ ChipTensor* tensor, int block) {
  __gm__ float* first = tensor->data_as<float>() + tensor->start_offset + block * kRows * tensor->strides[0];
  return Memory(first, Extents(tensor->shapes[1]), RowStride(tensor->strides[0]));
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* x = reinterpret_cast<__gm__ ChipTensor*>(args[0]);
  __gm__ ChipTensor* y = reinterpret_cast<__gm__ ChipTensor*>(args[1]);
  const int block = get_block_idx(args), columns = static_cast<int>(x->shapes[1]);

  Values values(columns), scratch(columns);
  PerRow row;
  TASSIGN(values, 0);
  TASSIGN(scratch, kBytes);
  TASSIGN(row, 2 * kBytes);

  TLOAD(values, rows_of(x, block));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TROWMAX(row, values, scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDSUB(values, values, row);  // the largest exponent is 0: nothing overflows
  pipe_barrier(PIPE_V);
  TEXP(values, values);
  pipe_barrier(PIPE_V);
  TROWSUM(row, values, scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDDIV(values, values, row);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(rows_of(y, block), values);
  pipe_sync();
}
