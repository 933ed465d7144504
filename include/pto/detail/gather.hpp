// Elements by index: within tiles, and between a tile and global memory.
#pragma once

#include "copy.hpp"

namespace pto {

// Which columns a gather by pattern takes: the pattern's lowest digit stands for column 0.
enum class MaskPattern { P0101 = 1, P1010 = 2, P0001 = 3, P0010 = 4, P0100 = 5, P1000 = 6, P1111 = 7 };

enum class Coalesce { Row, Elem };                       // an index addresses a row, or one element
enum class ScatterAtomicOp { None, Add, Max, Min };      // how a stored element combines with memory
enum class ScatterOOB { Undefined, Skip, Clamp, Wrap };  // what an index outside the memory does
enum class GatherOOB { Undefined, Clamp, Wrap, Zero };

namespace tile_detail {

struct Pattern {
  int period, column;
};
constexpr Pattern pattern_of(MaskPattern pattern) {
  switch (pattern) {
    case MaskPattern::P0101: return {2, 0};
    case MaskPattern::P1010: return {2, 1};
    case MaskPattern::P0001: return {4, 0};
    case MaskPattern::P0010: return {4, 1};
    case MaskPattern::P0100: return {4, 2};
    case MaskPattern::P1000: return {4, 3};
    default: return {1, 0};
  }
}

// The tile with all its physical elements, addressed by number in row-major order.
template <class TileT> struct Flat {
  TileView<TileT> all;
  explicit Flat(TileT& tile, const char* name) : all(view(tile, TileT::Rows, TileT::Cols, name)) {}
  auto& operator[](int64_t i) const { return all.at(i / TileT::Cols, i % TileT::Cols); }
  // Element i is read; it has been written.
  void need(TileT& tile, int64_t i, const char* name) const {
    need_written(tile, int(i / TileT::Cols), int(i % TileT::Cols), 1, 1, name);
  }
  void wrote_one(TileT& tile, int64_t i) const {
    wrote(tile, window(all, int(i / TileT::Cols), int(i % TileT::Cols), 1, 1));
  }
};

enum class Outside { kError, kSkip, kClamp, kWrap, kZero };
constexpr Outside outside_of(ScatterOOB rule) {
  return rule == ScatterOOB::Skip    ? Outside::kSkip
         : rule == ScatterOOB::Clamp ? Outside::kClamp
         : rule == ScatterOOB::Wrap  ? Outside::kWrap
                                     : Outside::kError;
}
constexpr Outside outside_of(GatherOOB rule) {
  return rule == GatherOOB::Zero    ? Outside::kZero
         : rule == GatherOOB::Clamp ? Outside::kClamp
         : rule == GatherOOB::Wrap  ? Outside::kWrap
                                    : Outside::kError;
}

// The place that an index addresses among `count`, or -1 for none. Negative indices are outside as well.
template <Outside kRule> PTO_INLINE int64_t place_of(int64_t index, int64_t count, const char* name) {
  if (index >= 0 && index < count) return index;
  if (kRule == Outside::kError || (count <= 0 && kRule != Outside::kSkip && kRule != Outside::kZero))
    fail("%s: index %lld is outside the %lld places of the global tensor; an OOB rule would say what to do", name,
         (long long)index, (long long)count);
  if (kRule == Outside::kClamp) return index < 0 ? 0 : count - 1;
  if (kRule == Outside::kWrap) return (index % count + count) % count;
  return -1;
}

// The index of row i: one index per row, in a row or in a column.
template <class View> PTO_INLINE int64_t row_index(const View& index, int i) {
  return static_cast<int64_t>(index.rows == 1 ? index.at(0, i) : index.at(i, 0));
}
template <class GlobalT> PTO_INLINE int64_t rows_of(const GlobalT& g) {
  return g.GetShape(0) * g.GetShape(1) * g.GetShape(2) * g.GetShape(3);
}

template <class Index, class View>
PTO_INLINE void need_row_indices(const Index& index, const View& data, const char* name) {
  if ((index.rows == 1 ? index.cols : index.rows) < data.rows)
    fail("%s: %d x %d indices for %d rows; give one index per row", name, index.rows, index.cols, data.rows);
}

template <ScatterAtomicOp kOp, class G, class T> PTO_INLINE void scatter_one(G& target, T value) {
  if constexpr (kOp == ScatterAtomicOp::None)
    target = cast<typename std::remove_cv<G>::type>(value);
  else {
    constexpr AtomicType kKind = kOp == ScatterAtomicOp::Add   ? AtomicType::AtomicAdd
                                 : kOp == ScatterAtomicOp::Max ? AtomicType::AtomicMax
                                                               : AtomicType::AtomicMin;
    combine_atomically<kKind>(target, cast<typename std::remove_cv<G>::type>(value));
  }
}

}  // namespace tile_detail

// dst(r, c) = the src element number idx(r, c), counted row by row over the whole src tile; 0 if there is none.
template <class Dst, class Src, class Index, class... Scratch, tile_detail::IfTile<Dst> = 0,
          tile_detail::IfTile<Index> = 0>
PTO_INLINE RecordEvent TGATHER(Dst& dst, Src& src, Index& index, Scratch&...) {
  static_assert(tile_detail::kVectorTiles<Dst, Src, Index>,
                "TGATHER takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_integral<typename Index::DType>::value, "TGATHER: indices are integers");
  static_assert(std::is_same<typename Dst::DType, typename Src::DType>::value, "dst and src have one element type");
  const auto to = tile_detail::view(dst, "TGATHER");
  const auto at = tile_detail::source(index, to.rows, to.cols, "TGATHER");
  const tile_detail::Flat<Src> from(src, "TGATHER");
  using Element = typename decltype(to)::Element;
  for (int r = 0; r < to.rows; ++r)
    for (int c = 0; c < to.cols; ++c) {
      const int64_t i = static_cast<int64_t>(at.at(r, c));
      const bool inside = i >= 0 && i < Src::Numel;
      if (inside) from.need(src, i, "TGATHER");
      to.at(r, c) = inside ? from[i] : Element();
    }
  tile_detail::order_memory();
  return tile_detail::wrote(dst, to);
}
// The columns of src that the pattern names, row after row, as one list into dst.
template <class Dst, class Src, MaskPattern kPattern> PTO_INLINE RecordEvent TGATHER(Dst& dst, Src& src) {
  static_assert(tile_detail::kVectorTiles<Dst, Src>,
                "TGATHER takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(sizeof(typename Dst::DType) == sizeof(typename Src::DType),
                "TGATHER: both tiles have elements of one size");
  constexpr tile_detail::Pattern pattern = tile_detail::pattern_of(kPattern);
  const auto from = tile_detail::source(src, "TGATHER");
  const tile_detail::Flat<Dst> to(dst, "TGATHER");
  int64_t next = 0;
  for (int r = 0; r < from.rows; ++r)
    for (int c = pattern.column; c < from.cols && next < Dst::Numel; c += pattern.period) {
      to.wrote_one(dst, next);
      tile_detail::PutSame()(to[next++], from.at(r, c));
    }
  tile_detail::order_memory();
  return {};
}
// The dst element number idx(r, c) = src(r, c), counted row by row over the whole dst tile; others stay.
template <class Dst, class Src, class Index, tile_detail::IfTile<Dst> = 0>
PTO_INLINE RecordEvent TSCATTER(Dst& dst, Src& src, Index& index) {
  static_assert(tile_detail::kVectorTiles<Dst, Src, Index>,
                "TSCATTER takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_integral<typename Index::DType>::value, "TSCATTER: indices are integers");
  static_assert(std::is_same<typename Dst::DType, typename Src::DType>::value, "dst and src have one element type");
  const auto from = tile_detail::source(src, "TSCATTER");
  const auto at = tile_detail::source(index, from.rows, from.cols, "TSCATTER");
  const tile_detail::Flat<Dst> to(dst, "TSCATTER");
  for (int r = 0; r < from.rows; ++r)
    for (int c = 0; c < from.cols; ++c) {
      const int64_t i = static_cast<int64_t>(at.at(r, c));
      if (i < 0 || i >= Dst::Numel)
        tile_detail::fail("TSCATTER: index %lld at (%d, %d) is outside a tile of %d x %d", (long long)i, r, c,
                          Dst::Rows, Dst::Cols);
      to[i] = from.at(r, c);
      to.wrote_one(dst, i);
    }
  tile_detail::order_memory();
  return {};
}

// Stores src's elements (or rows) to the places of global memory that idx names, in row-major order: the last wins.
template <Coalesce kUnit = Coalesce::Elem, ScatterAtomicOp kOp = ScatterAtomicOp::None,
          ScatterOOB kOutside = ScatterOOB::Undefined, class GlobalT, class Src, class Index>
PTO_INLINE RecordEvent MSCATTER(const GlobalT& dst, Src& src, Index& index) {
  using namespace tile_detail;
  constexpr Outside kRule = outside_of(kOutside);
  const auto from = source(src, "MSCATTER");
  const auto at = source(index, "MSCATTER");
  need_memory(dst, "MSCATTER");
  auto* const base = reinterpret_cast<Stored<typename GlobalT::DType>*>(dst.data());
  if constexpr (kUnit == Coalesce::Row) {
    need_row_indices(at, from, "MSCATTER");
    for (int r = 0; r < from.rows; ++r) {
      const int64_t place = place_of<kRule>(row_index(at, r), rows_of(dst), "MSCATTER");
      if (place < 0) continue;
      for (int c = 0; c < from.cols; ++c)
        scatter_one<kOp>(base[place * dst.GetStride(3) + c * dst.GetStride(4)], from.at(r, c));
    }
  } else {
    const auto cells = source(index, from.rows, from.cols, "MSCATTER");
    for (int r = 0; r < from.rows; ++r)
      for (int c = 0; c < from.cols; ++c) {
        const int64_t place =
            place_of<kRule>(static_cast<int64_t>(cells.at(r, c)), rows_of(dst) * dst.GetShape(4), "MSCATTER");
        if (place >= 0) scatter_one<kOp>(base[place], from.at(r, c));
      }
  }
  order_memory();
  return {};
}
// Loads dst's elements (or rows) from the places of global memory that idx names.
template <Coalesce kUnit = Coalesce::Elem, GatherOOB kOutside = GatherOOB::Undefined, class Dst, class GlobalT,
          class Index>
PTO_INLINE RecordEvent MGATHER(Dst& dst, const GlobalT& src, Index& index) {
  using namespace tile_detail;
  constexpr Outside kRule = outside_of(kOutside);
  const auto to = view(dst, "MGATHER");
  const auto at = source(index, "MGATHER");
  need_memory(src, "MGATHER");
  using Element = typename decltype(to)::Element;
  const auto* const base = reinterpret_cast<const Stored<typename GlobalT::RawDType>*>(src.data());
  if constexpr (kUnit == Coalesce::Row) {
    need_row_indices(at, to, "MGATHER");
    for (int r = 0; r < to.rows; ++r) {
      const int64_t place = place_of<kRule>(row_index(at, r), rows_of(src), "MGATHER");
      for (int c = 0; c < to.cols; ++c)
        to.at(r, c) = place < 0 ? Element() : cast<Element>(base[place * src.GetStride(3) + c * src.GetStride(4)]);
    }
  } else {
    const auto cells = source(index, to.rows, to.cols, "MGATHER");
    for (int r = 0; r < to.rows; ++r)
      for (int c = 0; c < to.cols; ++c) {
        const int64_t place =
            place_of<kRule>(static_cast<int64_t>(cells.at(r, c)), rows_of(src) * src.GetShape(4), "MGATHER");
        to.at(r, c) = place < 0 ? Element() : cast<Element>(base[place]);
      }
  }
  order_memory();
  return wrote(dst, to);
}

}  // namespace pto
