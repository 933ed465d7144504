// A vector core's part, for half of the block's queries: the online softmax. With the largest score so far, m, and the
// sum so far, l, of exp(score - m), each step rescales what went before by exp(m before - m now).
#include "attention.h"

using namespace pto;

namespace {
using ScoreRows = Tile<TileType::Vec, float, kLaneQueries, kKeys>;
using ResultRows = Tile<TileType::Vec, float, kLaneQueries, kFeatures>;
// One value per query, as a column and, over the same bytes, as a row.
using PerQuery = Tile<TileType::Vec, float, kLaneQueries, 1, BLayout::ColMajor>;
using PerQueryFlat = Tile<TileType::Vec, float, 1, kLaneQueries>;
}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const Block block = Block::of(args);
  const int lane = get_sub_block_id(args);
  DECLARE_PIPES(block);

  ScoreRows p, mask, scratch;
  ResultRows out, part;
  PerQuery highest, before, shrink, sum, step_sum;
  PerQueryFlat flat_highest, flat_before, flat_shrink, flat_sum, flat_step_sum;
  TASSIGN(p, 0x0);
  TASSIGN(mask, 0x2000);
  TASSIGN(scratch, 0x4000);
  TASSIGN(out, 0x6000);
  TASSIGN(part, 0x8000);
  TASSIGN(highest, 0xA000);
  TASSIGN(before, 0xA100);
  TASSIGN(shrink, 0xA200);
  TASSIGN(sum, 0xA300);
  TASSIGN(step_sum, 0xA400);
  TRESHAPE(flat_highest, highest);
  TRESHAPE(flat_before, before);
  TRESHAPE(flat_shrink, shrink);
  TRESHAPE(flat_sum, sum);
  TRESHAPE(flat_step_sum, step_sum);

  TLOAD(mask, Memory<kLaneQueries, kKeys>(block.mask + lane * kLaneQueries * kKeys));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  for (int step = 0; step < block.steps; ++step) {
    ScoreRows popped;
    TPOP<Scores, ScoreRows, TileSplitAxis::TILE_UP_DOWN>(scores, popped);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(p, popped, kScale);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    TFREE<Scores, TileSplitAxis::TILE_UP_DOWN>(scores);
    pipe_barrier(PIPE_V);
    if (block.causal && step == block.steps - 1) {
      TADD(p, p, mask);  // minus infinity where the key comes after the query
      pipe_barrier(PIPE_V);
    }
    TROWMAX(highest, p, scratch);
    pipe_barrier(PIPE_V);
    if (step > 0) {
      TMAX(flat_highest, flat_highest, flat_before);
      pipe_barrier(PIPE_V);
    }
    TROWEXPANDSUB(p, p, highest);
    pipe_barrier(PIPE_V);
    TEXP(p, p);
    pipe_barrier(PIPE_V);
    TROWSUM(step_sum, p, scratch);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TPUSH<Probabilities, ScoreRows, TileSplitAxis::TILE_UP_DOWN>(probabilities, p);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    pipe_barrier(PIPE_V);
    if (step == 0) {
      TMOV(flat_sum, flat_step_sum);
    } else {
      TSUB(flat_shrink, flat_before, flat_highest);
      pipe_barrier(PIPE_V);
      TEXP(flat_shrink, flat_shrink);
      pipe_barrier(PIPE_V);
      TMUL(flat_sum, flat_sum, flat_shrink);
      pipe_barrier(PIPE_V);
      TADD(flat_sum, flat_sum, flat_step_sum);
    }
    TMOV(flat_before, flat_highest);

    TPOP<Results, ResultRows, TileSplitAxis::TILE_UP_DOWN>(results, part);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    pipe_barrier(PIPE_V);
    if (step == 0) {
      TMOV(out, part);
    } else {
      TROWEXPANDMUL(out, out, shrink);
      pipe_barrier(PIPE_V);
      TADD(out, out, part);
    }
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    TFREE<Results, TileSplitAxis::TILE_UP_DOWN>(results);
  }
  pipe_barrier(PIPE_V);
  TROWEXPANDDIV(out, out, sum);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
  TSTORE(Memory<kLaneQueries, kFeatures>(block.out + lane * kLaneQueries * kFeatures), out);
  pipe_sync();
}
