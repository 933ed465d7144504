// One tile of the gated MLP, on a vector core: out = gate / (1 + exp(-gate)) * up. Tensors: gate, up [kBatch][kFeatures]
// (read), out (as they are, or a view of a wider matrix, written).
#include "decoder.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  constexpr int kBytes = kBatch * kFeatures * sizeof(float);
  Tile<TileType::Vec, float, kBatch, kFeatures> gate, up, weight;
  TASSIGN(gate, 0);
  TASSIGN(up, kBytes);
  TASSIGN(weight, 2 * kBytes);
  TLOAD(gate, tile_of(tensor_of(args[0])));
  TLOAD(up, tile_of(tensor_of(args[1])));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TNEG(weight, gate);
  TMUL(up, up, gate);
  pipe_barrier(PIPE_V);
  TEXP(weight, weight);
  pipe_barrier(PIPE_V);
  TADDS(weight, weight, 1.0f);
  pipe_barrier(PIPE_V);
  TDIV(up, up, weight);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(tile_of(tensor_of(args[2])), up);
  pipe_sync();
}
