// What the tasks of one page agree on: kQueries query heads share a key-value head, and a page holds kTokens tokens of it.
#pragma once
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

constexpr int kQueries = 16, kTokens = 64, kFeatures = 64;  // as in paged_attention_orch.cpp
constexpr int kTileBytes = kQueries * kTokens * sizeof(float);

template <int kRows, int kColumns> using Memory =
    pto::GlobalTensor<float, pto::Shape<1, 1, 1, kRows, kColumns>, pto::Stride<1, 1, 1, kColumns, 1>>;
template <int kRows, int kColumns> using Loaded =
    pto::Tile<pto::TileType::Mat, float, kRows, kColumns, pto::BLayout::ColMajor, kRows, kColumns,
              pto::SLayout::RowMajor>;
// One value per query, as a column, and, over the same bytes, as a row.
using PerQuery = pto::Tile<pto::TileType::Vec, float, kQueries, 1, pto::BLayout::ColMajor>;
using PerQueryFlat = pto::Tile<pto::TileType::Vec, float, 1, kQueries>;

__aicore__ inline __gm__ float* address(int64_t argument) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(argument);
  return tensor->data_as<float>() + tensor->start_offset;
}

// out = left x right, on a matrix core: left [kQueries][kTokens], out [kQueries][kFeatures]; `RightMemory` and `Right` say
// how the right operand lies in memory. Tokens and features are as many, so it serves scores and values alike.
static_assert(kTokens == kFeatures, "one shape for both products");
template <class RightMemory, class Right> __aicore__ inline void multiply(__gm__ int64_t* args) {
  Loaded<kQueries, kTokens> left_loaded;
  Right right_loaded;
  pto::TileLeft<float, kQueries, kTokens> left;
  pto::TileRight<float, kTokens, kFeatures> right;
  pto::TileAcc<float, kQueries, kFeatures> out;
  TASSIGN(left_loaded, 0);
  TASSIGN(right_loaded, kTileBytes);
  TASSIGN(left, 0);
  TASSIGN(right, 0);
  TASSIGN(out, 0);

  TLOAD(left_loaded, Memory<kQueries, kTokens>(address(args[0])));
  TLOAD(right_loaded, RightMemory(address(args[1])));
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(left, left_loaded);
  TMOV(right, right_loaded);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(out, left, right);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(Memory<kQueries, kFeatures>(address(args[2])), out);
  pipe_sync();
}
