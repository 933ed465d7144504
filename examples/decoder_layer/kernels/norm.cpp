// RMS norm of all tokens, on a vector core: out = x / sqrt(mean(x * x) + epsilon) * gain. Tensors: x [kBatch][kHidden],
// gain [kHidden] (read), out (as x, written).
#include "decoder.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  constexpr int kBytes = kBatch * kHidden * sizeof(float);
  Tile<TileType::Vec, float, kBatch, kHidden> x, squares, scratch;
  Tile<TileType::Vec, float, 1, kHidden> gain;
  Tile<TileType::Vec, float, kBatch, 1, BLayout::ColMajor> size;  // of each token
  Tile<TileType::Vec, float, 1, kBatch> flat_size;
  TASSIGN(x, 0);
  TASSIGN(squares, kBytes);
  TASSIGN(scratch, 2 * kBytes);
  TASSIGN(gain, 3 * kBytes);
  TASSIGN(size, 3 * kBytes + 0x1000);
  TRESHAPE(flat_size, size);

  TLOAD(x, part<kBatch, kHidden>(tensor_of(args[0]), 0, kHidden));
  TLOAD(gain, part<1, kHidden>(tensor_of(args[1]), 0, kHidden));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMUL(squares, x, x);
  pipe_barrier(PIPE_V);
  TROWSUM(size, squares, scratch);
  pipe_barrier(PIPE_V);
  TMULS(flat_size, flat_size, 1.0f / kHidden);
  pipe_barrier(PIPE_V);
  TADDS(flat_size, flat_size, 1e-6f);
  pipe_barrier(PIPE_V);
  TSQRT(flat_size, flat_size);
  pipe_barrier(PIPE_V);
  TROWEXPANDDIV(x, x, size);
  pipe_barrier(PIPE_V);
  TCOLEXPANDMUL(x, x, gain);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(part<kBatch, kHidden>(tensor_of(args[2]), 0, kHidden), x);
  pipe_sync();
}
