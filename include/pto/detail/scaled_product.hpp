// Block-scaled products: acc = [start +] (left * left scales) x (right * right scales).
//
// What      Operands of 8-bit floats; each 32 elements along the shared dimension have one scale, a power of two. The
//           scales of left are a tile of rows x inner / 32, those of right one of inner / 32 x columns.
// How       Blocks of scaled floats go to the matrix engine.
#pragma once

#include "matmul.hpp"

namespace pto {
namespace tile_detail {

constexpr int kScaleGroup = 32;  // elements for each scale

// out(r, c) = values(r, c) * scales(r, c), with a scale for each 32 rows or columns. The view's first element is at
// `first` of the shared dimension.
template <bool kAlongRows, class Values, class Scales>
PTO_LOOP void scale_block(float* out, Offset pitch, const Values& values, const Scales& scales, int first) {
  for (int r = 0; r < values.rows; ++r)
    for (int c = 0; c < values.cols; ++c) {
      const float scale = kAlongRows ? static_cast<float>(scales.at(r, (first + c) / kScaleGroup))
                                     : static_cast<float>(scales.at((first + r) / kScaleGroup, c));
      out[r * pitch + c] = load(values.at(r, c)) * scale;
    }
}

template <class AccView, class StartView, class Left, class LeftScales, class Right, class RightScales>
__attribute__((noinline)) void multiply_scaled(const AccView& acc, const StartView* start, const Left& left,
                                               const LeftScales& left_scales, const Right& right,
                                               const RightScales& right_scales) {
  constexpr int kRows = 64, kCols = 128, kDeep = 128;
  alignas(64) float left_block[kRows * kDeep];
  alignas(64) float right_block[kDeep * kCols];
  for (int n0 = 0; n0 < acc.cols; n0 += kCols)
    for (int k0 = 0; k0 < left.cols; k0 += kDeep) {
      const int cols = acc.cols - n0 < kCols ? acc.cols - n0 : kCols;
      const int deep = left.cols - k0 < kDeep ? left.cols - k0 : kDeep;
      scale_block<false>(right_block, kCols, window(right, k0, n0, deep, cols),
                         window(right_scales, 0, n0, right_scales.rows, cols), k0);
      for (int m0 = 0; m0 < acc.rows; m0 += kRows) {
        const int rows = acc.rows - m0 < kRows ? acc.rows - m0 : kRows;
        scale_block<true>(left_block, kDeep, window(left, m0, k0, rows, deep),
                          window(left_scales, m0, 0, rows, left_scales.cols), k0);
        const View<float, FixedAxis<kDeep>, FixedAxis<1>> a = {left_block, rows, deep, {}, {}};
        const View<float, FixedAxis<kCols>, FixedAxis<1>> b = {right_block, deep, cols, {}, {}};
        const auto to = window(acc, m0, n0, rows, cols);
        if (k0 > 0) {
          multiply(to, &to, a, b);
        } else if (start != nullptr) {
          const auto from = window(*start, m0, n0, rows, cols);
          multiply(to, &from, a, b);
        } else {
          multiply(to, static_cast<const AccView*>(nullptr), a, b);
        }
      }
    }
}

template <class T> constexpr bool kIsScale = std::is_same<T, ::float8_e8m0_t>::value;

template <StartFrom kStart, class Acc, class In, class Left, class LeftScale, class Right, class RightScale>
PTO_INLINE RecordEvent multiply_scaled_tiles(Acc& acc, In& in, Left& left, LeftScale& left_scale, Right& right,
                                             RightScale& right_scale, const char* name) {
  static_assert(Acc::Loc == TileType::Acc && Left::Loc == TileType::Left && Right::Loc == TileType::Right &&
                    LeftScale::Loc == TileType::ScaleLeft && RightScale::Loc == TileType::ScaleRight,
                "a block-scaled product takes a Left, a ScaleLeft, a Right and a ScaleRight tile into an Acc tile");
  static_assert(std::is_same<typename Acc::DType, float>::value && kIsFloat8<typename Left::DType> &&
                    kIsFloat8<typename Right::DType>,
                "block-scaled products are of float8_e4m3_t or float8_e5m2_t into float");
  static_assert(kIsScale<typename LeftScale::DType> && kIsScale<typename RightScale::DType>,
                "the scales of a block-scaled product are float8_e8m0_t");
  static_assert(Left::Rows == Acc::Rows && Left::Cols == Right::Rows && Right::Cols == Acc::Cols,
                "the operands' rows and columns match");
  const int m = left.GetValidRow(), k = left.GetValidCol(), n = right.GetValidCol();
  if (m <= 0 || n <= 0) return {};
  const int groups = (k + kScaleGroup - 1) / kScaleGroup;
  const auto to = view(acc, m, n, name);
  const auto a = source(left, m, k, name);
  const auto a_scale = source(left_scale, m, groups, name);
  const auto b = source(right, k, n, name);
  const auto b_scale = source(right_scale, groups, n, name);
  return add_products<kStart>(acc, to, in, k, name,
                              [&](const auto* start) { multiply_scaled(to, start, a, a_scale, b, b_scale); });
}

}  // namespace tile_detail

#define PTO_SCALED_PRODUCT(NAME)                                                                                    \
  /* acc = left x right */                                                                                          \
  template <class Acc, class Left, class LeftScale, class Right, class RightScale>                                  \
  PTO_INLINE RecordEvent NAME(Acc& acc, Left& left, LeftScale& left_scale, Right& right, RightScale& right_scale) { \
    return tile_detail::multiply_scaled_tiles<tile_detail::StartFrom::kZero>(acc, acc, left, left_scale, right,     \
                                                                             right_scale, #NAME);                   \
  }                                                                                                                 \
  /* acc = bias + left x right if the last tile is a bias */                                                        \
  template <class Acc, class Left, class LeftScale, class Right, class RightScale, class Bias,                      \
            typename std::enable_if<Bias::Loc == TileType::Bias, int>::type = 0>                                    \
  PTO_INLINE RecordEvent NAME(Acc& acc, Left& left, LeftScale& left_scale, Right& right, RightScale& right_scale,   \
                              Bias& bias) {                                                                         \
    return tile_detail::multiply_scaled_tiles<tile_detail::StartFrom::kBias>(acc, bias, left, left_scale, right,    \
                                                                             right_scale, #NAME);                   \
  }                                                                                                                 \
  /* out = in + left x right */                                                                                     \
  template <class Out, class In, class Left, class LeftScale, class Right, class RightScale,                        \
            typename std::enable_if<In::Loc == TileType::Acc, int>::type = 0>                                       \
  PTO_INLINE RecordEvent NAME(Out& out, In& in, Left& left, LeftScale& left_scale, Right& right,                    \
                              RightScale& right_scale) {                                                            \
    return tile_detail::multiply_scaled_tiles<tile_detail::StartFrom::kIn>(out, in, left, left_scale, right,        \
                                                                           right_scale, #NAME);                     \
  }
PTO_SCALED_PRODUCT(TMATMUL_MX)
PTO_SCALED_PRODUCT(TGEMV_MX)
#undef PTO_SCALED_PRODUCT

}  // namespace pto
