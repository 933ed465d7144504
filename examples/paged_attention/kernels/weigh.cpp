// The softmax within one page, on a vector core: weights = exp(scores / sqrt(kFeatures) - highest), 0 for tokens that are
// not there. Tensors: scores [kQueries][kTokens] (read), weights (as scores), highest, sum [kQueries] (written). Scalar:
// how many tokens of the page are there.
#include "page.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const int tokens = static_cast<int>(args[4]);
  using Present = Tile<TileType::Vec, float, kQueries, kTokens, BLayout::RowMajor, kQueries, DYNAMIC>;
  Present present(tokens), scratch(tokens);
  Tile<TileType::Vec, float, kQueries, kTokens> all;  // the same bytes: what is loaded nowhere is 0
  PerQuery highest, sum;
  PerQueryFlat flat_highest, flat_sum;
  TASSIGN(present, 0);
  TASSIGN(all, 0);
  TASSIGN(scratch, kTileBytes);
  TASSIGN(highest, 2 * kTileBytes);
  TASSIGN(sum, 2 * kTileBytes + 0x100);
  TRESHAPE(flat_highest, highest);
  TRESHAPE(flat_sum, sum);

  TLOAD(present, Memory<kQueries, kTokens>(address(args[0])));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMULS(present, present, 0.125f);  // 1 / sqrt(kFeatures)
  pipe_barrier(PIPE_V);
  TROWMAX(highest, present, scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDSUB(present, present, highest);
  pipe_barrier(PIPE_V);
  TEXP(present, present);
  pipe_barrier(PIPE_V);
  TROWSUM(sum, present, scratch);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(Memory<kQueries, kTokens>(address(args[1])), all);
  TSTORE(Memory<1, kQueries>(address(args[2])), flat_highest);
  TSTORE(Memory<1, kQueries>(address(args[3])), flat_sum);
  pipe_sync();
}
