// The matrix core's part: scores = q k^T, and probabilities x v.
#include "attention.h"

using namespace pto;

namespace {
template <int kRows, int kColumns> using Loaded =
    Tile<TileType::Mat, float, kRows, kColumns, BLayout::ColMajor, kRows, kColumns, SLayout::RowMajor>;
template <int kRows, int kColumns> using LoadedTransposed =
    Tile<TileType::Mat, float, kRows, kColumns, BLayout::RowMajor, kRows, kColumns, SLayout::ColMajor>;
// k^T: its columns are the rows of k.
using Keys = GlobalTensor<float, Shape<1, 1, 1, kFeatures, kKeys>, pto::Stride<1, 1, 1, 1, kFeatures>, pto::Layout::DN>;
}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const Block block = Block::of(args);
  DECLARE_PIPES(block);

  Loaded<kQueries, kFeatures> q_loaded;
  LoadedTransposed<kFeatures, kKeys> k_loaded;
  Loaded<kKeys, kFeatures> v_loaded;
  Loaded<kQueries, kKeys> p_popped;
  TileLeft<float, kQueries, kFeatures> q;
  TileRight<float, kFeatures, kKeys> k;
  TileLeft<float, kQueries, kKeys> p;
  TileRight<float, kKeys, kFeatures> v;
  TileAcc<float, kQueries, kKeys> score;
  TileAcc<float, kQueries, kFeatures> result;
  TASSIGN(q_loaded, 0x0);
  TASSIGN(k_loaded, 0x4000);
  TASSIGN(v_loaded, 0x8000);
  TASSIGN(p_popped, 0xC000);
  TASSIGN(q, 0x0);
  TASSIGN(p, 0x4000);
  TASSIGN(k, 0x0);
  TASSIGN(v, 0x4000);
  TASSIGN(score, 0x0);
  TASSIGN(result, 0x4000);

  TLOAD(q_loaded, Memory<kQueries, kFeatures>(block.q));
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(q, q_loaded);
  for (int step = 0; step < block.steps; ++step) {
    const int first = step * kKeys * kFeatures;
    TLOAD(k_loaded, Keys(block.k + first));
    TLOAD(v_loaded, Memory<kKeys, kFeatures>(block.v + first));
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(k, k_loaded);
    TMOV(v, v_loaded);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(score, q, k);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TPUSH<Scores, TileAcc<float, kQueries, kKeys>, TileSplitAxis::TILE_UP_DOWN>(scores, score);

    TPOP<Probabilities, Loaded<kQueries, kKeys>, TileSplitAxis::TILE_UP_DOWN>(probabilities, p_popped);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    TMOV(p, p_popped);
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    TFREE<Probabilities, TileSplitAxis::TILE_UP_DOWN>(probabilities);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID1);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID1);
    TMATMUL(result, p, v);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID1);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID1);
    TPUSH<Results, TileAcc<float, kQueries, kFeatures>, TileSplitAxis::TILE_UP_DOWN>(results, result);
    // The next step's tiles take the places of this one's.
    set_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
  }
  pipe_sync();
}
