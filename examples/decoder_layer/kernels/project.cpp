// One tile of a projection, on a matrix core: out = a x w. Tensors: a [kBatch][k], w [k][kFeatures], a view of the whole
// weights (read), out [kBatch][kFeatures] (written).
#include "decoder.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* a = tensor_of(args[0]);
  __gm__ ChipTensor* w = tensor_of(args[1]);
  constexpr int kStep = 64;
  Tile<TileType::Mat, float, kBatch, kStep, BLayout::ColMajor, kBatch, kStep, SLayout::RowMajor> a_loaded;
  Tile<TileType::Mat, float, kStep, kFeatures, BLayout::ColMajor, kStep, kFeatures, SLayout::RowMajor> w_loaded;
  TileLeft<float, kBatch, kStep> left;
  TileRight<float, kStep, kFeatures> right;
  TileAcc<float, kBatch, kFeatures> sum;
  TASSIGN(a_loaded, 0);
  TASSIGN(w_loaded, 0x4000);
  TASSIGN(left, 0);
  TASSIGN(right, 0);
  TASSIGN(sum, 0);

  const int a_stride = static_cast<int>(a->strides[0]), w_stride = static_cast<int>(w->strides[0]);
  for (int k = 0; k < static_cast<int>(a->shapes[1]); k += kStep) {
    TLOAD(a_loaded, part<kBatch, kStep>(a, k, a_stride));
    TLOAD(w_loaded, part<kStep, kFeatures>(w, static_cast<uint64_t>(k) * w_stride, w_stride));
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, a_loaded);
    TMOV(right, w_loaded);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    if (k == 0)
      TMATMUL(sum, left, right);
    else
      TMATMUL_ACC(sum, sum, left, right);
    set_flag(PIPE_M, PIPE_MTE2, EVENT_ID0);  // the next step's operands take the place of these
    wait_flag(PIPE_M, PIPE_MTE2, EVENT_ID0);
  }
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(tile_of(tensor_of(args[2])), sum);
  pipe_sync();
}
