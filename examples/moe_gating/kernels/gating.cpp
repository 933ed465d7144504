// Gating of kTokens tokens, on a vector core. Tensors: logits (read), experts, weights (written). Block i has the tokens
// from i * kTokens on.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kTokens = 16, kExperts = 128;  // as in gating_orch.cpp
constexpr int kChosen = 8;
constexpr int kPairs = 2 * kExperts;  // a logit and the number of its expert: two elements

using Logits = pto::Tile<pto::TileType::Vec, float, kTokens, kExperts>;
using Numbers = pto::Tile<pto::TileType::Vec, uint32_t, 1, kExperts>;
using SignedNumbers = pto::Tile<pto::TileType::Vec, int32_t, 1, kExperts>;
using Pairs = pto::Tile<pto::TileType::Vec, float, kTokens, kPairs>;
using BestPairs =  // the first pairs of each row
    pto::Tile<pto::TileType::Vec, float, kTokens, kPairs, pto::BLayout::RowMajor, kTokens, 2 * kChosen>;
using Weights = pto::Tile<pto::TileType::Vec, float, kTokens, kChosen>;
using Experts = pto::Tile<pto::TileType::Vec, int32_t, kTokens, kChosen>;
using PerRow = pto::Tile<pto::TileType::Vec, float, kTokens, 1, pto::BLayout::ColMajor>;

template <class T, int kColumns> using Rows =
    pto::GlobalTensor<T, pto::Shape<1, 1, 1, kTokens, kColumns>, pto::Stride<1, 1, 1, kColumns, 1>>;

// The rows of this block.
template <class T, int kColumns> __aicore__ Rows<T, kColumns> rows_of(__gm__ int64_t* args, int argument) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(args[argument]);
  return Rows<T, kColumns>(tensor->data_as<T>() + tensor->start_offset + get_block_idx(args) * kTokens * kColumns);
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Logits logits;
  Numbers numbers;
  SignedNumbers counted;
  Pairs runs, sorted;
  BestPairs best;
  Weights weights, scratch;
  Experts experts;
  PerRow row;
  TASSIGN(logits, 0x0);
  TASSIGN(numbers, 0x2000);
  TASSIGN(counted, 0x2000);
  TASSIGN(runs, 0x4000);
  TASSIGN(sorted, 0x8000);
  TASSIGN(best, 0x8000);
  TASSIGN(weights, 0xC000);
  TASSIGN(scratch, 0xC400);
  TASSIGN(experts, 0xC800);
  TASSIGN(row, 0xCC00);

  TLOAD(logits, rows_of<float, kExperts>(args, 0));
  TCI<SignedNumbers, int32_t, 0>(counted, 0);  // 0, 1, 2 ...
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  pipe_barrier(PIPE_V);
  TSORT32(runs, logits, numbers);  // sorted runs of 32 pairs
  pipe_barrier(PIPE_V);
  TMRGSORT(sorted, runs, 64);  // four runs of 64 elements become one
  pipe_barrier(PIPE_V);
  TGATHER<Weights, BestPairs, pto::MaskPattern::P0101>(weights, best);  // the logits ...
  TGATHER<Experts, BestPairs, pto::MaskPattern::P1010>(experts, best);  // ... and whose they are
  pipe_barrier(PIPE_V);

  TROWMAX(row, weights, scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDSUB(weights, weights, row);
  pipe_barrier(PIPE_V);
  TEXP(weights, weights);
  pipe_barrier(PIPE_V);
  TROWSUM(row, weights, scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDDIV(weights, weights, row);

  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(rows_of<int32_t, kChosen>(args, 1), experts);
  TSTORE(rows_of<float, kChosen>(args, 2), weights);
  pipe_sync();
}
