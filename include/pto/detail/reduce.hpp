// The reduction engine: one value per row or per column, and the instructions on it, one row each.
//
// What      A column reduction is a row reduction of the transposed view. Rows in boxes are brought together in strips
//           first. Floats of all widths are reduced in float; integers in their own type. Sums are formed in several
//           partial sums, so their rounding is not that of a plain loop. Max and min drop NaNs; of nothing but NaNs they
//           are the lowest or highest value.
#pragma once

#include "elementwise.hpp"
#include "math.hpp"

namespace pto {
namespace tile_detail {

struct SumOf : Add {
  template <class T> static constexpr Compute<T> start() { return 0; }
};
struct ProductOf : Mul {
  template <class T> static constexpr Compute<T> start() { return 1; }
};
struct MaxOf : Max {
  template <class T> static constexpr Compute<T> start() { return load(lowest_value<T>()); }
};
struct MinOf : Min {
  template <class T> static constexpr Compute<T> start() { return load(highest_value<T>()); }
};

constexpr int kPartials = 16;  // independent partial results: enough for any vector width to be kept busy

// Rows that lie below each other, element by element to one row; some at a time, in their order.
template <class Op, class S> PTO_LOOP_PART void reduce_rows_to_one(Op op, Compute<S>* results, const S* src,
                                                                   Offset step, int64_t rows, int64_t count) {
  constexpr int kTogether = 8;
  int64_t r = 0;
  for (; r + kTogether <= rows; r += kTogether, src += kTogether * step) {
    PTO_INDEPENDENT
    for (int64_t k = 0; k < count; ++k) {
      Compute<S> value = results[k];
      PTO_UNROLLED
      for (int i = 0; i < kTogether; ++i) value = op(value, load(src[k + i * step]));
      results[k] = value;
    }
  }
  for (; r < rows; ++r, src += step) {
    PTO_INDEPENDENT
    for (int64_t k = 0; k < count; ++k) results[k] = op(results[k], load(src[k]));
  }
}
template <class Op, class S>
PTO_LOOP void reduce_across(Op op, Compute<S>* results, const S* src, Offset step, int64_t rows, int64_t count) {
  reduce_rows_to_one(op, results, src, step, rows, count);
}
// Rows into kPartials results each: a row is a column of short rows.
template <class Op, class S>
PTO_LOOP void reduce_runs(Op op, Compute<S>* results, const S* src, Offset step, int64_t rows, int64_t count) {
  for (int64_t r = 0; r < rows; ++r, src += step, results += kPartials) {
    const int64_t whole = count / kPartials * kPartials;
    reduce_rows_to_one(op, results, src, kPartials, count / kPartials, kPartials);
    for (int64_t k = 0; whole + k < count; ++k) results[k] = op(results[k], load(src[whole + k]));
  }
}
template <class Op, class C> PTO_LOOP void combine_partials(Op op, C* results, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, results += kPartials) {
    C partial[kPartials];
    PTO_UNROLLED
    for (int k = 0; k < kPartials; ++k) partial[k] = results[k];
    PTO_UNROLLED
    for (int width = kPartials / 2; width > 0; width /= 2) {
      PTO_UNROLLED
      for (int k = 0; k < width; ++k) partial[k] = op(partial[k], partial[k + width]);
    }
    results[0] = partial[0];
  }
}
template <class C> PTO_LOOP void fill_partials(C* results, int64_t count, C value) {
  for (int64_t k = 0; k < count; ++k) results[k] = value;
}

// dst(r, 0) = op over all columns of src(r, c), whose rows are runs or in runs.
template <class Op, class DstView, class SrcView>
__attribute__((noinline)) void reduce_along_rows(Op op, const DstView& dst, const SrcView& src) {
  using C = Compute<typename SrcView::Element>;
  constexpr int kRows = smaller(StripShape<SrcView>::kRows, kStripBytes / kStripCols);
  C results[kRows * kPartials];
  Strip<SrcView> strip(src);
  for (int r = 0, m = 0; r < src.rows; r += m) {
    m = smaller(kRows, src.rows - r);
    fill_partials(results, int64_t{m} * kPartials, Op::template start<typename SrcView::Element>());
    for_each_strip<StripShape<SrcView>>(m, src.cols, [&](int, int c, int, int n) {
      const auto part = strip.read(r, c, m, n);
      reduce_runs(op, results, part.base, part.row.step(), m, n);
    });
    combine_partials(op, results, m);
    for (int i = 0; i < m; ++i) dst.at(r + i, 0) = store<typename DstView::Element>(results[i * kPartials]);
  }
}
// dst(0, c) = op over all rows of src(r, c), whose rows are runs or in runs.
template <class Op, class DstView, class SrcView>
__attribute__((noinline)) void reduce_along_cols(Op op, const DstView& dst, const SrcView& src) {
  using C = Compute<typename SrcView::Element>;
  C results[kStripCols];
  Strip<SrcView> strip(src);
  for (int c = 0, n = 0; c < src.cols; c += n) {
    n = smaller(kStripCols, src.cols - c);
    fill_partials(results, n, Op::template start<typename SrcView::Element>());
    for_each_strip<StripShape<SrcView>>(src.rows, n, [&](int r, int, int m, int) {
      const auto part = strip.read(r, c, m, n);
      reduce_across(op, results, part.base, part.row.step(), m, n);
    });
    for (int i = 0; i < n; ++i) dst.at(0, c + i) = store<typename DstView::Element>(results[i]);
  }
}

template <class Op, class DstView, class SrcView>
PTO_INLINE void reduce(Op op, const DstView& dst, const SrcView& src) {
  static_assert(SrcView::Col::kUnit || SrcView::Row::kUnit, "tiles are contiguous along one axis, at least in boxes");
  if constexpr (SrcView::Col::kUnit)
    reduce_along_rows(op, dst, src);
  else
    reduce_along_cols(op, transposed(dst), transposed(src));
}

template <class Op, class Dst, class Src>
PTO_INLINE RecordEvent reduce_rows(const char* name, Op op, Dst& dst, Src& src) {
  static_assert(std::is_same<typename Dst::DType, typename Src::DType>::value, "all operands have one element type");
  const auto from = source(src, name);
  const auto to = view(dst, from.rows, 1, name);
  reduce(op, to, from);
  order_memory();
  return wrote(dst, to);
}
template <class Op, class Dst, class Src>
PTO_INLINE RecordEvent reduce_cols(const char* name, Op op, Dst& dst, Src& src) {
  static_assert(std::is_same<typename Dst::DType, typename Src::DType>::value, "all operands have one element type");
  const auto from = source(src, name);
  const auto to = view(dst, 1, from.cols, name);
  reduce(op, transposed(to), transposed(from));
  order_memory();
  return wrote(dst, to);
}

}  // namespace tile_detail

namespace tile_detail {

// dst(r, 0) = the column of the first value that none goes beyond; 0 if all are NaN. Max and Min drop NaNs.
template <class Op, class DstView, class SrcView> PTO_LOOP void reduce_to_index(Op op, DstView dst, SrcView src) {
  using S = typename SrcView::Element;
  for (int r = 0; r < src.rows; ++r) {
    Compute<S> best = Op::template start<S>();
    int index = -1;
    for (int c = 0; c < src.cols; ++c) {
      const Compute<S> value = load(src.at(r, c)), next = op(best, value);
      // The first number counts even if it is the value that reductions start from.
      if (next != best || (index < 0 && value == value)) index = c;
      best = next;
    }
    dst.at(r, 0) = static_cast<typename DstView::Element>(index < 0 ? 0 : index);
  }
  order_memory();
}
template <class Dst, class Src> constexpr void check_index_tiles() {
  static_assert(kVectorTiles<Dst, Src>, "tiles lie in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_integral<typename Dst::DType>::value && sizeof(typename Dst::DType) >= 2,
                "indices are integers of at least 16 bits");
}

}  // namespace tile_detail

// dst(r, 0) of row reductions, dst(0, c) of column reductions. What follows the source (a scratch tile, and for sums
// how the chip adds) is not needed here.
#define PTO_REDUCTION(NAME, OP)                                                                            \
  template <class Dst, class Src, class... Scratch>                                                        \
  PTO_INLINE RecordEvent TROW##NAME(Dst& dst, Src& src, Scratch&&...) {                                    \
    static_assert(tile_detail::kVectorTiles<Dst, Src>,                                                     \
                  "TROW" #NAME " takes tiles in vector memory (TileType::Vec); TMOV brings others there"); \
    return tile_detail::reduce_rows("TROW" #NAME, tile_detail::OP(), dst, src);                            \
  }                                                                                                        \
  template <class Dst, class Src, class... Scratch>                                                        \
  PTO_INLINE RecordEvent TCOL##NAME(Dst& dst, Src& src, Scratch&&...) {                                    \
    static_assert(tile_detail::kVectorTiles<Dst, Src>,                                                     \
                  "TCOL" #NAME " takes tiles in vector memory (TileType::Vec); TMOV brings others there"); \
    return tile_detail::reduce_cols("TCOL" #NAME, tile_detail::OP(), dst, src);                            \
  }
PTO_REDUCTION(SUM, SumOf)
PTO_REDUCTION(PROD, ProductOf)
PTO_REDUCTION(MAX, MaxOf)
PTO_REDUCTION(MIN, MinOf)
#undef PTO_REDUCTION

// The place of the largest or smallest element instead of its value.
#define PTO_INDEX_REDUCTION(NAME, OP)                                                                            \
  template <class Dst, class Src, class... Scratch>                                                              \
  PTO_INLINE RecordEvent TROW##NAME(Dst& dst, Src& src, Scratch&&...) {                                          \
    tile_detail::check_index_tiles<Dst, Src>();                                                                  \
    const auto from = tile_detail::source(src, "TROW" #NAME);                                                    \
    const auto to = tile_detail::view(dst, from.rows, 1, "TROW" #NAME);                                          \
    tile_detail::reduce_to_index(tile_detail::OP(), to, from);                                                   \
    return tile_detail::wrote(dst, to);                                                                          \
  }                                                                                                              \
  template <class Dst, class Src, class... Scratch>                                                              \
  PTO_INLINE RecordEvent TCOL##NAME(Dst& dst, Src& src, Scratch&&...) {                                          \
    tile_detail::check_index_tiles<Dst, Src>();                                                                  \
    const auto from = tile_detail::source(src, "TCOL" #NAME);                                                    \
    const auto to = tile_detail::view(dst, 1, from.cols, "TCOL" #NAME);                                          \
    tile_detail::reduce_to_index(tile_detail::OP(), tile_detail::transposed(to), tile_detail::transposed(from)); \
    return tile_detail::wrote(dst, to);                                                                          \
  }
PTO_INDEX_REDUCTION(ARGMAX, MaxOf)
PTO_INDEX_REDUCTION(ARGMIN, MinOf)
#undef PTO_INDEX_REDUCTION

}  // namespace pto
