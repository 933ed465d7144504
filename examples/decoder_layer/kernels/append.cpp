// Writes the values of one head into the cache, on a vector core. Tensors: in [kBatch][kFeatures] (read), out: a plane of
// the cache (written). Scalar: position.
#include "decoder.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Tile<TileType::Vec, float, kBatch, kFeatures> tile;
  TASSIGN(tile, 0);
  TLOAD(tile, tile_of(tensor_of(args[0])));
  set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(tile_of(tensor_of(args[1]), static_cast<int>(args[2])), tile);
  pipe_sync();
}
