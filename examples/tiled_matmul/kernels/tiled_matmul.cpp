// One kBlock x kBlock block of c = a x b, on a matrix core. Tensors: a [m][k], b [k][n] (half), c [m][n] (float).
// The accumulator stays in place over all of k; while one pair of operands is multiplied, the next is being loaded.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kBlock = 128, kStep = 64;                // as in tiled_matmul_orch.cpp
constexpr int kBytes = kBlock * kStep * sizeof(half);  // of one operand

template <int kRows, int kColumns> using Loaded =
    pto::Tile<pto::TileType::Mat, half, kRows, kColumns, pto::BLayout::ColMajor, kRows, kColumns,
              pto::SLayout::RowMajor>;
using RowStride = pto::Stride<1, 1, 1, pto::DYNAMIC, 1>;
template <class T, int kRows, int kColumns> using Part =
    pto::GlobalTensor<T, pto::Shape<1, 1, 1, kRows, kColumns>, RowStride>;

// The part of a matrix that starts at (row, column).
template <class T, int kRows, int kColumns>
__aicore__ Part<T, kRows, kColumns> part(__gm__ ChipTensor* matrix, int row, int column) {
  __gm__ T* first = matrix->data_as<T>() + matrix->start_offset + row * matrix->strides[0] + column;
  return Part<T, kRows, kColumns>(first, {}, RowStride(matrix->strides[0]));
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* a = reinterpret_cast<__gm__ ChipTensor*>(args[0]);
  __gm__ ChipTensor* b = reinterpret_cast<__gm__ ChipTensor*>(args[1]);
  __gm__ ChipTensor* c = reinterpret_cast<__gm__ ChipTensor*>(args[2]);
  const int across = static_cast<int>(b->shapes[1]) / kBlock, block = get_block_idx(args);
  const int row = block / across * kBlock, column = block % across * kBlock;
  const int steps = static_cast<int>(a->shapes[1]) / kStep;

  Loaded<kBlock, kStep> a_loaded[2];
  Loaded<kStep, kBlock> b_loaded[2];
  pto::TileLeft<half, kBlock, kStep> left[2];
  pto::TileRight<half, kStep, kBlock> right[2];
  pto::TileAcc<float, kBlock, kBlock> sum;
  for (int i = 0; i < 2; ++i) {
    TASSIGN(a_loaded[i], i * kBytes);
    TASSIGN(b_loaded[i], (2 + i) * kBytes);
    TASSIGN(left[i], i * kBytes);
    TASSIGN(right[i], i * kBytes);
  }
  TASSIGN(sum, 0);

  // Each buffer has an event per direction: "filled" forwards, "free again" backwards.
  for (int i = 0; i < 2; ++i) {
    set_flag(PIPE_MTE1, PIPE_MTE2, static_cast<event_t>(i));
    set_flag(PIPE_M, PIPE_MTE1, static_cast<event_t>(i));
  }
  for (int step = 0; step < steps; ++step) {
    const int i = step % 2;
    const event_t buffer = static_cast<event_t>(i);
    wait_flag(PIPE_MTE1, PIPE_MTE2, buffer);
    TLOAD(a_loaded[i], part<half, kBlock, kStep>(a, row, step * kStep));
    TLOAD(b_loaded[i], part<half, kStep, kBlock>(b, step * kStep, column));
    set_flag(PIPE_MTE2, PIPE_MTE1, buffer);
    wait_flag(PIPE_MTE2, PIPE_MTE1, buffer);
    wait_flag(PIPE_M, PIPE_MTE1, buffer);
    TMOV(left[i], a_loaded[i]);
    TMOV(right[i], b_loaded[i]);
    set_flag(PIPE_MTE1, PIPE_MTE2, buffer);
    set_flag(PIPE_MTE1, PIPE_M, buffer);
    wait_flag(PIPE_MTE1, PIPE_M, buffer);
    if (step == 0)
      TMATMUL(sum, left[i], right[i]);
    else
      TMATMUL_ACC(sum, sum, left[i], right[i]);
    set_flag(PIPE_M, PIPE_MTE1, buffer);
  }
  for (int i = 0; i < 2; ++i) {
    wait_flag(PIPE_MTE1, PIPE_MTE2, static_cast<event_t>(i));
    wait_flag(PIPE_M, PIPE_MTE1, static_cast<event_t>(i));
  }
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(part<float, kBlock, kBlock>(c, row, column), sum);
  pipe_sync();
}
