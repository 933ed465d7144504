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
