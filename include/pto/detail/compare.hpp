// Comparisons to bit masks, and selection by them.
//
// What      A mask has one bit per element: bit c % 8 of byte c / 8 of the mask's row, for every row. Comparisons write
//           whole bytes; the bits behind the last column are 0. NaN compares as in C++: only NE is true.
#pragma once

#include "elementwise.hpp"

namespace pto {
namespace tile_detail {

template <CmpMode kMode, class C> PTO_INLINE bool compare(C a, C b) {
  if constexpr (kMode == CmpMode::EQ)
    return a == b;
  else if constexpr (kMode == CmpMode::NE)
    return !(a == b);
  else if constexpr (kMode == CmpMode::LT)
    return a < b;
  else if constexpr (kMode == CmpMode::LE)
    return a <= b;
  else if constexpr (kMode == CmpMode::GT)
    return a > b;
  else
    return a >= b;
}

// The bytes of a mask's row.
template <class Mask> constexpr int kMaskRowBytes = Mask::Cols * int(sizeof(typename Mask::DType));
template <class Mask> PTO_INLINE uint8_t* mask_row(Mask& mask, int row, int cols, const char* name) {
  static_assert(Mask::isRowMajor && !Mask::isBoxedLayout, "a mask is a row-major tile");
  constexpr int kRowBytes = kMaskRowBytes<Mask>;
  if (cols > kRowBytes * 8 || row >= Mask::Rows)
    fail("%s: a mask of %d rows of %d bytes has no bits for row %d of %d columns", name, Mask::Rows, kRowBytes, row,
         cols);
  return reinterpret_cast<uint8_t*>(TilePlace::of(mask)) + Offset{row} * kRowBytes;
}

// The bits of rows x cols elements: for the simulator's books of written elements.
template <class Mask> constexpr SimplerTileKind kMaskKind =
    kind_of<Mask>(SIMPLER_TILE_ACCESS_MASK, 1, {kMaskRowBytes<Mask>, 0, 0, 0}, kUnitAxis);
template <class Mask> PTO_INLINE void need_bits(Mask& mask, int rows, int cols, const char* name) {
  if (!watches_memory() || rows <= 0 || cols <= 0) return;
  mask_row(mask, rows - 1, cols, name);
  sim_state.hooks.tile_read(&kMaskKind<Mask>, TilePlace::of(mask), 0, 0, rows, (cols + 7) / 8, name);
}
template <class Mask> PTO_INLINE void wrote_bits(Mask& mask, int rows, int cols) {
  if (watches_memory() && rows > 0 && cols > 0)
    sim_state.hooks.tile_written(&kMaskKind<Mask>, TilePlace::of(mask), 0, 0, rows, (cols + 7) / 8);
}

template <CmpMode kMode, class RowA, class RowB>
PTO_LOOP void compare_row(uint8_t* bits, int64_t cols, RowA a, RowB b) {
  for (int64_t c = 0; c < cols; c += 8) {
    const int64_t n = cols - c < 8 ? cols - c : 8;
    uint8_t byte = 0;
    for (int64_t k = 0; k < n; ++k)
      byte = static_cast<uint8_t>(byte | (compare<kMode>(a[c + k], b[c + k]) ? 1u << k : 0u));
    bits[c / 8] = byte;
  }
}

template <class V> PTO_INLINE auto row_of_view(const V& v, int r) { return source_of(v).row(r); }

template <CmpMode kMode, class Mask, class A, class B>
PTO_INLINE RecordEvent compare_rows(const char* name, Mask& mask, const A& a, const B& b) {
  Strip<A> left(a);
  Strip<B> right(b);
  for_each_strip<StripShape<A, B>>(a.rows, a.cols, [&](int r, int c, int m, int n) {
    const auto x = left.read(r, c, m, n);
    const auto y = right.read(r, c, m, n);
    for (int i = 0; i < m; ++i)
      compare_row<kMode>(mask_row(mask, r + i, a.cols, name) + c / 8, n, row_of_view(x, i), row_of_view(y, i));
  });
  wrote_bits(mask, a.rows, a.cols);
  order_memory();
  return {};
}

template <class Mask, class A, class B>
PTO_INLINE RecordEvent compare_views(const char* name, Mask& mask, const A& a, const B& b, CmpMode mode) {
  view(mask, 0, 0, name);  // has to have an address
  switch (mode) {
    case CmpMode::EQ: return compare_rows<CmpMode::EQ>(name, mask, a, b);
    case CmpMode::NE: return compare_rows<CmpMode::NE>(name, mask, a, b);
    case CmpMode::LT: return compare_rows<CmpMode::LT>(name, mask, a, b);
    case CmpMode::LE: return compare_rows<CmpMode::LE>(name, mask, a, b);
    case CmpMode::GT: return compare_rows<CmpMode::GT>(name, mask, a, b);
    case CmpMode::GE: return compare_rows<CmpMode::GE>(name, mask, a, b);
  }
  fail("%s: compare mode %d does not exist; modes are EQ, NE, LT, LE, GT and GE", name, static_cast<int>(mode));
}

template <class D, class RowA, class RowB>
PTO_LOOP void select_row(D* dst, int64_t cols, const uint8_t* bits, RowA a, RowB b) {
  for (int64_t c = 0; c < cols; ++c) {
    const auto yes = a[c], no = b[c];
    dst[c] = store<D>((bits[c >> 3] >> (c & 7)) & 1 ? yes : no);
  }
}

template <class Dst, class Mask, class A, class B>
PTO_INLINE void select_views(const char* name, const Dst& dst, Mask& mask, const A& a, const B& b) {
  view(mask, 0, 0, name);
  need_bits(mask, dst.rows, dst.cols, name);
  Strip<Dst> result(dst);
  Strip<A> yes(a);
  Strip<B> no(b);
  for_each_strip<StripShape<Dst, A, B>>(dst.rows, dst.cols, [&](int r, int c, int m, int n) {
    const auto to = result.place(r, c, m, n);
    const auto x = yes.read(r, c, m, n);
    const auto y = no.read(r, c, m, n);
    for (int i = 0; i < m; ++i)
      select_row(&to.at(i, 0), n, mask_row(mask, r + i, dst.cols, name) + c / 8, row_of_view(x, i), row_of_view(y, i));
    result.write(r, c, m, n);
  });
  order_memory();
}

}  // namespace tile_detail

// mask bit = a(r, c) `mode` b(r, c), for a's valid region.
template <class Mask, class A, class B> PTO_INLINE RecordEvent TCMP(Mask& mask, A& a, B& b, CmpMode mode) {
  static_assert(tile_detail::kVectorTiles<Mask, A, B>,
                "TCMP takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_same<typename A::DType, typename B::DType>::value, "both sources have one element type");
  const auto left = tile_detail::source(a, "TCMP");
  return tile_detail::compare_views("TCMP", mask, left, tile_detail::source(b, left.rows, left.cols, "TCMP"), mode);
}
// mask bit = a(r, c) `mode` scalar
template <class Mask, class A> PTO_INLINE RecordEvent TCMPS(Mask& mask, A& a, typename A::DType scalar, CmpMode mode) {
  static_assert(tile_detail::kVectorTiles<Mask, A>,
                "TCMPS takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  return tile_detail::compare_views("TCMPS", mask, tile_detail::source(a, "TCMPS"), tile_detail::everywhere(scalar),
                                    mode);
}

// dst = mask bit ? a : b
template <class Dst, class Mask, class A, class B, class... Scratch>
PTO_INLINE RecordEvent TSEL(Dst& dst, Mask& mask, A& a, B& b, Scratch&...) {
  static_assert(tile_detail::kVectorTiles<Dst, Mask, A, B>,
                "TSEL takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_same<typename Dst::DType, typename A::DType>::value &&
                    std::is_same<typename Dst::DType, typename B::DType>::value,
                "all operands have one element type");
  const auto to = tile_detail::view(dst, "TSEL");
  tile_detail::select_views("TSEL", to, mask, tile_detail::source(a, to.rows, to.cols, "TSEL"),
                            tile_detail::source(b, to.rows, to.cols, "TSEL"));
  return tile_detail::wrote(dst, to);
}
// dst = mask bit ? a : scalar
template <class Dst, class Mask, class A, class Scratch>
PTO_INLINE RecordEvent TSELS(Dst& dst, Mask& mask, A& a, Scratch&, typename A::DType scalar) {
  static_assert(tile_detail::kVectorTiles<Dst, Mask, A>,
                "TSELS takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_same<typename Dst::DType, typename A::DType>::value, "all operands have one element type");
  const auto to = tile_detail::view(dst, "TSELS");
  tile_detail::select_views("TSELS", to, mask, tile_detail::source(a, to.rows, to.cols, "TSELS"),
                            tile_detail::everywhere(scalar));
  return tile_detail::wrote(dst, to);
}

}  // namespace pto
