// The matrix engine: acc = [start +] left x right.
//
// What      float, half and bfloat16_t operands give float, int8 operands int32, all of it exact in the operands and
//           accumulated in float. For int8 that is exact too: a block of kInner products stays below 2^24.
// How       Blocks of the operands are brought into plain rows of floats (a float right operand already is one), and
//           multiplied in register tiles of kRows x 16. Where the simulator brings a product for this processor along,
//           that one is called instead.
#pragma once

#include "elementwise.hpp"
#include "math.hpp"

namespace pto {
namespace tile_detail {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
typedef float FloatVector __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
constexpr int kLanes = kVectorBytes / 4;

constexpr int kPanel = 16;                 // columns of a register tile: a box of an accumulator
constexpr int kVectors = kPanel / kLanes;  // vectors in one of its rows
// Rows of a register tile: accumulators fill most of the 16 or 32 vector registers.
#if defined(__AVX512F__)
constexpr int kTileRows = 8;
#elif defined(__AVX__)
constexpr int kTileRows = 4;
#elif defined(__aarch64__)
constexpr int kTileRows = 4;
#else
constexpr int kTileRows = 2;
#endif
constexpr int kInner = 128;      // length of the products of one block
constexpr int kLeftRows = 32;    // rows of a left block: 16 KiB
constexpr int kRightCols = 128;  // columns of a right block: 64 KiB

// out[kRows][kPanel] = sum over k of left[row][k] * right[k][column]
template <int kRows> PTO_LOOP void multiply_panel(const float* left, Offset left_step, const float* right,
                                                  Offset right_step, int inner, float* out) {
  FloatVector sum[kRows][kVectors] = {};
  for (int k = 0; k < inner; ++k, right += right_step) {
    FloatVector b[kVectors];
    for (int v = 0; v < kVectors; ++v) b[v] = *reinterpret_cast<const FloatVector*>(right + v * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const float a = left[i * left_step + k];
      for (int v = 0; v < kVectors; ++v) sum[i][v] += a * b[v];
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<FloatVector*>(out + i * kPanel + v * kLanes) = sum[i][v];
}

// acc(row + i, col + j) = start(row + i, col + j) + out[i][j]; without a start from zero.
template <class AccView, class StartView> PTO_INLINE void add_panel(const AccView& acc, const StartView* start, int row,
                                                                    int col, int rows, int cols, const float* out) {
  using A = typename AccView::Element;
  constexpr bool kSideBySide = AccView::Col::kUnit && AccView::Col::kRun % kPanel == 0 && StartView::Col::kUnit &&
                               StartView::Col::kRun % kPanel == 0;  // col is a multiple of kPanel
  for (int i = 0; i < rows; ++i, out += kPanel) {
    A* const to = &acc.at(row + i, col);
    if (start == nullptr) {
      for (int j = 0; j < cols; ++j)
        to[kSideBySide ? j : acc.col.offset(col + j) - acc.col.offset(col)] = static_cast<A>(out[j]);
      continue;
    }
    const A* const from = &start->at(row + i, col);
    for (int j = 0; j < cols; ++j) {
      const A sum =
          Add()(from[kSideBySide ? j : start->col.offset(col + j) - start->col.offset(col)], static_cast<A>(out[j]));
      to[kSideBySide ? j : acc.col.offset(col + j) - acc.col.offset(col)] = sum;
    }
  }
}

// The right operand's block as rows of floats, at least a panel wide.
struct FloatRows {
  const float* base;
  Offset step;
};
template <class RightView> constexpr bool kDirectRows = std::is_same<typename RightView::Element, float>::value &&
                                                        RightView::Col::kUnit && RightView::Col::kRun == 0 &&
                                                        RightView::Row::kRun == 0;
template <class RightView>
PTO_INLINE FloatRows float_rows(const RightView& right, int k, int col, int inner, int cols, float* scratch) {
  if constexpr (kDirectRows<RightView>) {
    if (RightView::Row::step() % kPanel == 0) return {&right.at(k, col), RightView::Row::step()};
  }
  const int width = (cols + kPanel - 1) / kPanel * kPanel;
  if (cols < width) fill_run(scratch, int64_t{inner} * width, 0.0f);
  transfer(row_major(scratch, inner, cols, width), window(right, k, col, inner, cols), PutCast());
  return {scratch, width};
}

// left is m x k, right is k x n, acc m x n. `start` is what the products are added to: null for zero, or acc itself.
template <class AccView, class StartView, class LeftView, class RightView>
PTO_LOOP void multiply_here(const AccView& acc, const StartView* start, const LeftView& left, const RightView& right) {
  const int m = acc.rows, n = acc.cols, inner = left.cols;
  alignas(64) float left_rows[kLeftRows * kInner];
  alignas(64) float right_rows[kInner * kRightCols];
  alignas(64) float out[kTileRows * kPanel];
  for (int n0 = 0; n0 < n; n0 += kRightCols) {
    const int cols = n - n0 < kRightCols ? n - n0 : kRightCols;
    for (int k0 = 0; k0 < inner; k0 += kInner) {
      const int length = inner - k0 < kInner ? inner - k0 : kInner;
      const FloatRows b = float_rows(right, k0, n0, length, cols, right_rows);
      for (int m0 = 0; m0 < m; m0 += kLeftRows) {
        const int rows = m - m0 < kLeftRows ? m - m0 : kLeftRows;
        transfer(row_major(left_rows, rows, length, kInner), window(left, m0, k0, rows, length), PutCast());
        for (int c = 0; c < cols; c += kPanel) {
          const int width = cols - c < kPanel ? cols - c : kPanel;
          for (int r = 0; r < rows;) {
            const bool full = rows - r >= kTileRows;
            if (full)
              multiply_panel<kTileRows>(left_rows + r * kInner, kInner, b.base + c, b.step, length, out);
            else
              multiply_panel<1>(left_rows + r * kInner, kInner, b.base + c, b.step, length, out);
            const int done = full ? kTileRows : 1;
            if (k0 == 0)
              add_panel(acc, start, m0 + r, n0 + c, done, width, out);
            else
              add_panel(acc, &acc, m0 + r, n0 + c, done, width, out);
            r += done;
          }
        }
      }
    }
  }
}

template <class T> constexpr int32_t element_of() {
  return kIsHalf<T>                        ? SIMPLER_TILE_HALF
         : kIsBfloat<T>                    ? SIMPLER_TILE_BFLOAT
         : std::is_same<T, int8_t>::value  ? SIMPLER_TILE_INT8
         : std::is_same<T, int32_t>::value ? SIMPLER_TILE_INT32
                                           : SIMPLER_TILE_FLOAT;
}
template <class V> SimplerTileMatrix table_matrix(const V& v) {
  return {v.base, table_axis(v.row), table_axis(v.col), element_of<typename V::Element>()};
}

template <class AccView, class StartView, class LeftView, class RightView>
PTO_INLINE void multiply(const AccView& acc, const StartView* start, const LeftView& left, const RightView& right) {
  if constexpr (!kHosted)
    if (sim_state.hooks.kernels == nullptr) return multiply_here(acc, start, left, right);
  SimplerTileMatrix none = {};
  const SimplerTileProduct product = {table_matrix(acc),  start != nullptr ? table_matrix(*start) : none,
                                      table_matrix(left), table_matrix(right),
                                      acc.rows,           acc.cols,
                                      left.cols};
  sim_state.hooks.kernels->multiply(&product);
}

template <class A, class L, class R> constexpr bool kProductTypes =
    std::is_same<L, R>::value &&
    (std::is_same<A, float>::value ? kIsHalf<L> || kIsBfloat<L> || std::is_same<L, float>::value
                                   : std::is_same<A, int32_t>::value && std::is_same<L, int8_t>::value);

// The matrix unit computes whole boxes: all rows of the boxes that a result of `rows` rows touches.
template <class Acc> PTO_INLINE RecordEvent wrote_boxes(Acc& acc, TileView<Acc> result) {
  const int rows = (result.rows + Acc::InnerRows - 1) / Acc::InnerRows * Acc::InnerRows;
  result.rows = rows < Acc::Rows ? rows : Acc::Rows;
  return wrote(acc, result);
}

// What products are added to.
enum class StartFrom { kZero, kIn, kBias };

// to = start + products over `inner` elements; products(start) adds them to the view that it gets, or to zero if that is
// null. `in` is the tile that the start comes from.
template <StartFrom kStart, class Acc, class In, class Products>
PTO_INLINE RecordEvent add_products(Acc& acc, const TileView<Acc>& to, In& in, int inner, const char* name,
                                    Products products) {
  if constexpr (kStart == StartFrom::kIn) {
    const auto start = source(in, to.rows, to.cols, name);
    if (inner > 0)
      products(&start);
    else
      transfer(to, start, PutSame());
  } else {
    constexpr bool kBias = kStart == StartFrom::kBias;
    if constexpr (kBias) apply(to, Identity(), across_rows(source(in, 1, to.cols, name)));
    if (inner > 0)
      products(kBias ? &to : nullptr);
    else if (!kBias)
      fill(to, 0);
  }
  order_memory();
  return wrote_boxes(acc, to);
}

template <StartFrom kStart, class Acc, class In, class Left, class Right>
PTO_INLINE RecordEvent multiply_tiles(Acc& acc, In& in, Left& left, Right& right, const char* name) {
  static_assert(Acc::Loc == TileType::Acc && Left::Loc == TileType::Left && Right::Loc == TileType::Right,
                "a product takes a Left and a Right tile into an Acc tile");
  static_assert(
      kRowMajorBoxes<Left, Acc> && !Acc::isRowMajor,
      "a product's left operand has row-major boxes, its accumulator columns of row-major boxes (use TileLeft "
      "and TileAcc)");
  static_assert(Right::isRowMajor && Right::SFractal == SLayout::ColMajor,
                "a product's right operand has rows of column-major boxes (use TileRight)");
  static_assert(kProductTypes<typename Acc::DType, typename Left::DType, typename Right::DType>,
                "products are of half, bfloat16_t or float into float, or of int8_t into int32_t");
  static_assert(Left::Rows == Acc::Rows && Left::Cols == Right::Rows && Right::Cols == Acc::Cols,
                "the operands' rows and columns match");
  static_assert(std::is_same<typename Acc::DType, typename In::DType>::value,
                "the accumulator and what the product is added to have one element type");
  const int m = left.GetValidRow(), k = left.GetValidCol(), n = right.GetValidCol();
  if (m <= 0 || n <= 0) return {};
  const auto to = view(acc, m, n, name);
  const auto a = source(left, m, k, name);
  const auto b = source(right, k, n, name);
  return add_products<kStart>(acc, to, in, k, name, [&](const auto* start) { multiply(to, start, a, b); });
}

}  // namespace tile_detail

// acc = left x right. The valid region of the operands counts: m x k of left, n columns of right.
template <class Acc, class Left, class Right> PTO_INLINE RecordEvent TMATMUL(Acc& acc, Left& left, Right& right) {
  return tile_detail::multiply_tiles<tile_detail::StartFrom::kZero>(acc, acc, left, right, "TMATMUL");
}
// out = in + left x right; out and in may be one tile.
template <class Out, class In, class Left, class Right>
PTO_INLINE RecordEvent TMATMUL_ACC(Out& out, In& in, Left& left, Right& right) {
  return tile_detail::multiply_tiles<tile_detail::StartFrom::kIn>(out, in, left, right, "TMATMUL_ACC");
}
template <class Acc, class Left, class Right> PTO_INLINE RecordEvent TMATMUL_ACC(Acc& acc, Left& left, Right& right) {
  return TMATMUL_ACC(acc, acc, left, right);
}
// acc = bias + left x right; the bias has one value per column.
template <class Acc, class Left, class Right, class Bias>
PTO_INLINE RecordEvent TMATMUL_BIAS(Acc& acc, Left& left, Right& right, Bias& bias) {
  return tile_detail::multiply_tiles<tile_detail::StartFrom::kBias>(acc, bias, left, right, "TMATMUL_BIAS");
}

// The same products of a left operand with one valid row.
namespace tile_detail {
template <class Left> PTO_INLINE void need_one_row(Left& left, const char* name) {
  if (kChecks && left.GetValidRow() > 1)
    fail("%s: the left operand has %d valid rows; a vector has one", name, left.GetValidRow());
}
}  // namespace tile_detail
template <class Acc, class Left, class Right> PTO_INLINE RecordEvent TGEMV(Acc& acc, Left& left, Right& right) {
  tile_detail::need_one_row(left, "TGEMV");
  return tile_detail::multiply_tiles<tile_detail::StartFrom::kZero>(acc, acc, left, right, "TGEMV");
}
template <class Out, class In, class Left, class Right>
PTO_INLINE RecordEvent TGEMV_ACC(Out& out, In& in, Left& left, Right& right) {
  tile_detail::need_one_row(left, "TGEMV_ACC");
  return tile_detail::multiply_tiles<tile_detail::StartFrom::kIn>(out, in, left, right, "TGEMV_ACC");
}
template <class Acc, class Left, class Right, class Bias>
PTO_INLINE RecordEvent TGEMV_BIAS(Acc& acc, Left& left, Right& right, Bias& bias) {
  tile_detail::need_one_row(left, "TGEMV_BIAS");
  return tile_detail::multiply_tiles<tile_detail::StartFrom::kBias>(acc, bias, left, right, "TGEMV_BIAS");
}

}  // namespace pto
