// scores = queries x keys^T, on a matrix core. Tensors: queries [kQueries][kFeatures], keys [kTokens][kFeatures] (read),
// scores [kQueries][kTokens] (written).
#include "page.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  // keys^T: its columns are the rows of the page.
  using Keys =
      GlobalTensor<float, Shape<1, 1, 1, kFeatures, kTokens>, pto::Stride<1, 1, 1, 1, kFeatures>, pto::Layout::DN>;
  Loaded<kQueries, kFeatures> queries_loaded;
  Tile<TileType::Mat, float, kFeatures, kTokens, BLayout::RowMajor, kFeatures, kTokens, SLayout::ColMajor> keys_loaded;
  TileLeft<float, kQueries, kFeatures> queries;
  TileRight<float, kFeatures, kTokens> keys;
  TileAcc<float, kQueries, kTokens> scores;
  TASSIGN(queries_loaded, 0);
  TASSIGN(keys_loaded, kTileBytes);
  TASSIGN(queries, 0);
  TASSIGN(keys, 0);
  TASSIGN(scores, 0);

  TLOAD(queries_loaded, Memory<kQueries, kFeatures>(address(args[0])));
  TLOAD(keys_loaded, Keys(address(args[1])));
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(queries, queries_loaded);
  TMOV(keys, keys_loaded);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(scores, queries, keys);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(Memory<kQueries, kTokens>(address(args[2])), scores);
  pipe_sync();
}
