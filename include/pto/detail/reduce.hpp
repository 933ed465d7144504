// The reduction engine: one value per row or per column, and the instructions on it, one row each.
//
// What      A column reduction is a row reduction of the transposed view. Floats of all widths are reduced in float;
//           integers in their own type. Sums are formed in several partial sums, so their rounding is not that of a
//           plain loop. Max and min drop NaNs; of nothing but NaNs they are the lowest or highest value.
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

// One run of contiguous elements to one value.
template <class Op, class S> PTO_LOOP Compute<S> reduce_run(Op op, const S* src, int64_t count) {
  Compute<S> partial[kPartials];
  for (int k = 0; k < kPartials; ++k) partial[k] = Op::template start<S>();
  int64_t i = 0;
  for (; i + kPartials <= count; i += kPartials)
    for (int k = 0; k < kPartials; ++k) partial[k] = op(partial[k], load(src[i + k]));
  for (int k = 0; i < count; ++i, ++k) partial[k] = op(partial[k], load(src[i]));
  for (int width = kPartials / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) partial[k] = op(partial[k], partial[k + width]);
  return partial[0];
}

// Runs that lie beside each other, element by element to one run.
template <class Op, class D, class S> PTO_LOOP void reduce_across(Op op, D* dst, Offset dst_step, const S* src,
                                                                  Offset src_step, int64_t runs, int64_t count) {
  constexpr int kBlock = 64;
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = count - i < kBlock ? count - i : kBlock;
    Compute<S> partial[kBlock];
    for (int64_t k = 0; k < n; ++k) partial[k] = Op::template start<S>();
    for (int64_t r = 0; r < runs; ++r) {
      const S* const run = src + r * src_step + i;
      for (int64_t k = 0; k < n; ++k) partial[k] = op(partial[k], load(run[k]));
    }
    for (int64_t k = 0; k < n; ++k) dst[(i + k) * dst_step] = store<D>(partial[k]);
  }
}

// dst(r, 0) = op over all columns of src(r, c)
template <class Op, class DstView, class SrcView>
PTO_INLINE void reduce(Op op, const DstView& dst, const SrcView& src) {
  using D = typename DstView::Element;
  using S = typename SrcView::Element;
  constexpr bool kRunsOfRows = SrcView::Col::kUnit && SrcView::Col::kRun == 0 && SrcView::Row::kRun == 0;
  constexpr bool kRunsOfColumns = SrcView::Row::kUnit && SrcView::Row::kRun == 0 && SrcView::Col::kRun == 0;
  if constexpr (kRunsOfColumns && !kRunsOfRows && DstView::Row::kRun == 0) {
    reduce_across(op, dst.base, dst.row.step(), src.base, src.col.step(), src.cols, src.rows);
  } else {
    for (int r = 0; r < src.rows; ++r) {
      if constexpr (kRunsOfRows) {
        dst.at(r, 0) = store<D>(reduce_run(op, &src.at(r, 0), src.cols));
      } else {
        Compute<S> value = Op::template start<S>();
        for (int c = 0; c < src.cols; ++c) value = op(value, load(src.at(r, c)));
        dst.at(r, 0) = store<D>(value);
      }
    }
  }
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
