// x = x * scale + delta for one tile, on a vector core. Tensors: x [kBatch][kFeatures], a view (read and written), delta
// (read). Scalar: scale, a float.
#include "decoder.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Tile<TileType::Vec, float, kBatch, kFeatures> x, delta;
  TASSIGN(x, 0);
  TASSIGN(delta, kBatch * kFeatures * sizeof(float));
  TLOAD(x, tile_of(tensor_of(args[0])));
  TLOAD(delta, tile_of(tensor_of(args[1])));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMULS(x, x, from_u64<float>(static_cast<uint64_t>(args[2])));
  pipe_barrier(PIPE_V);
  TADD(x, x, delta);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(tile_of(tensor_of(args[0])), x);
  pipe_sync();
}
