// part = weights x values, on a matrix core. Tensors: weights [kQueries][kTokens], values [kTokens][kFeatures] (read), part
// [kQueries][kFeatures] (written).
#include "page.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Loaded<kQueries, kTokens> weights_loaded;
  Loaded<kTokens, kFeatures> values_loaded;
  TileLeft<float, kQueries, kTokens> weights;
  TileRight<float, kTokens, kFeatures> values;
  TileAcc<float, kQueries, kFeatures> part;
  TASSIGN(weights_loaded, 0);
  TASSIGN(values_loaded, kTileBytes);
  TASSIGN(weights, 0);
  TASSIGN(values, 0);
  TASSIGN(part, 0);

  TLOAD(weights_loaded, Memory<kQueries, kTokens>(address(args[0])));
  TLOAD(values_loaded, Memory<kTokens, kFeatures>(address(args[1])));
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(weights, weights_loaded);
  TMOV(values, values_loaded);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(part, weights, values);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(Memory<kQueries, kFeatures>(address(args[2])), part);
  pipe_sync();
}
