// Attention of one head of one sequence, on a vector core. Tensors: query [1][kFeatures], keys, values
// [1][1][kMost][kFeatures] (read), out [1][kFeatures] (written). Scalar: the position of the query, which is the last one.
#include "decoder.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  constexpr int kBytes = kMost * kFeatures * sizeof(float);
  const int tokens = static_cast<int>(args[4]) + 1;
  using Rows = Tile<TileType::Vec, float, kMost, kFeatures, BLayout::RowMajor, DYNAMIC, kFeatures>;
  Rows rows(tokens), scratch(tokens);
  Tile<TileType::Vec, float, 1, kFeatures> query, result;
  // A weight per token, as a column and, over the same bytes, as a row.
  Tile<TileType::Vec, float, kMost, 1, BLayout::ColMajor, DYNAMIC, 1> weights(tokens);
  Tile<TileType::Vec, float, 1, kMost, BLayout::RowMajor, 1, DYNAMIC> flat_weights(tokens), flat_scratch(tokens);
  Tile<TileType::Vec, float, 8, 1, BLayout::ColMajor, 1, 1> one;  // the highest score, then the sum
  TASSIGN(rows, 0);
  TASSIGN(scratch, kBytes);
  TASSIGN(query, 2 * kBytes);
  TASSIGN(result, 2 * kBytes + 0x100);
  TASSIGN(weights, 2 * kBytes + 0x200);
  TASSIGN(flat_weights, 2 * kBytes + 0x200);
  TASSIGN(flat_scratch, 2 * kBytes + 0x400);
  TASSIGN(one, 2 * kBytes + 0x600);

  TLOAD(query, part<1, kFeatures>(tensor_of(args[0]), 0, kFeatures));
  TLOAD(rows, part<kMost, kFeatures>(tensor_of(args[1]), 0, kFeatures));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TCOLEXPANDMUL(rows, rows, query);
  pipe_barrier(PIPE_V);
  TROWSUM(weights, rows, scratch);
  set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
  TLOAD(rows, part<kMost, kFeatures>(tensor_of(args[2]), 0, kFeatures));  // the values take the place of the keys
  pipe_barrier(PIPE_V);
  TMULS(flat_weights, flat_weights, 0.125f);  // 1 / sqrt(kFeatures)
  pipe_barrier(PIPE_V);
  TROWMAX(one, flat_weights, flat_scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDSUB(flat_weights, flat_weights, one);
  pipe_barrier(PIPE_V);
  TEXP(flat_weights, flat_weights);
  pipe_barrier(PIPE_V);
  TROWSUM(one, flat_weights, flat_scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDDIV(flat_weights, flat_weights, one);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
  TROWEXPANDMUL(rows, rows, weights);
  pipe_barrier(PIPE_V);
  TCOLSUM(result, rows);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(part<1, kFeatures>(tensor_of(args[3]), 0, kFeatures), result);
  pipe_sync();
}
