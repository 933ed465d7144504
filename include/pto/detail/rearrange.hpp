// Padding, transposing and joining tiles.
#pragma once

#include "copy.hpp"

namespace pto {
namespace tile_detail {

// Element (r, c) of dst is src's where src is valid, `pad` elsewhere in the physical tile.
template <class Dst, class Src> PTO_INLINE RecordEvent fill_pad(Dst& dst, Src& src, PadValue pad, const char* name) {
  if (dst.GetValidRow() <= 0 || dst.GetValidCol() <= 0) return {};
  const auto from = source(src, name);
  const auto to = view(dst, Dst::Rows, Dst::Cols, name);
  const int rows = from.rows < Dst::Rows ? from.rows : Dst::Rows, cols = from.cols < Dst::Cols ? from.cols : Dst::Cols;
  using Element = typename decltype(to)::Element;
  const Element value = pad_value<Element>(pad);
  if (static_cast<const void*>(to.base) != static_cast<const void*>(from.base))
    transfer(window(to, 0, 0, rows, cols), window(from, 0, 0, rows, cols), PutSame());
  if (cols < Dst::Cols && rows > 0) fill(window(to, 0, cols, rows, Dst::Cols - cols), value);
  if (rows < Dst::Rows) fill(window(to, rows, 0, Dst::Rows - rows, Dst::Cols), value);
  order_memory();
  return wrote(dst, to);
}

template <class Dst, class Src> constexpr PadValue pad_of() {
  static_assert(sizeof(typename Dst::DType) == sizeof(typename Src::DType),
                "TFILLPAD: both tiles have elements of one size");
  static_assert(std::is_same<Dst, Src>::value || Dst::PadVal != PadValue::Null,
                "TFILLPAD: the destination's type says what to pad with (PadValue::Zero, Min, Max or PadCustom)");
  return Dst::PadVal == PadValue::Null ? PadValue::Zero : Dst::PadVal;
}

}  // namespace tile_detail

// Copies src and pads the rest of dst with dst's pad value.
template <class Dst, class Src> PTO_INLINE RecordEvent TFILLPAD(Dst& dst, Src& src) {
  static_assert(Dst::Rows == Src::Rows && Dst::Cols == Src::Cols, "TFILLPAD: both tiles have one shape");
  return tile_detail::fill_pad(dst, src, tile_detail::pad_of<Dst, Src>(), "TFILLPAD");
}
// The same where dst and src share their storage: only the padding is written.
template <class Dst, class Src> PTO_INLINE RecordEvent TFILLPAD_INPLACE(Dst& dst, Src& src) {
  static_assert(Dst::Rows == Src::Rows && Dst::Cols == Src::Cols, "TFILLPAD_INPLACE: both tiles have one shape");
  return tile_detail::fill_pad(dst, src, tile_detail::pad_of<Dst, Src>(), "TFILLPAD_INPLACE");
}
// The same for a dst that is larger than src.
template <class Dst, class Src> PTO_INLINE RecordEvent TFILLPAD_EXPAND(Dst& dst, Src& src) {
  static_assert(Dst::Rows >= Src::Rows && Dst::Cols >= Src::Cols, "TFILLPAD_EXPAND: dst is at least as large as src");
  return tile_detail::fill_pad(dst, src, tile_detail::pad_of<Dst, Src>(), "TFILLPAD_EXPAND");
}

// dst(c, r) = src(r, c) for src's valid region.
template <class Dst, class Src, class... Scratch> PTO_INLINE RecordEvent TTRANS(Dst& dst, Src& src, Scratch&...) {
  static_assert(tile_detail::kVectorTiles<Dst, Src>,
                "TTRANS takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(sizeof(typename Dst::DType) == sizeof(typename Src::DType),
                "TTRANS: both tiles have elements of one size");
  const auto from = tile_detail::source(src, "TTRANS");
  const auto to = tile_detail::view(dst, from.cols, from.rows, "TTRANS");
  tile_detail::transfer(to, tile_detail::transposed(from), tile_detail::PutSame());
  tile_detail::order_memory();
  return tile_detail::wrote(dst, to);
}

// The columns of a, then those of b.
template <class Dst, class A, class B> PTO_INLINE RecordEvent TCONCAT(Dst& dst, A& a, B& b) {
  static_assert(tile_detail::kVectorTiles<Dst, A, B>,
                "TCONCAT takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(std::is_same<typename Dst::DType, typename A::DType>::value &&
                    std::is_same<typename Dst::DType, typename B::DType>::value,
                "all operands have one element type");
  const auto left = tile_detail::source(a, "TCONCAT");
  const auto right = tile_detail::source(b, left.rows, b.GetValidCol(), "TCONCAT");
  const auto to = tile_detail::view(dst, left.rows, left.cols + right.cols, "TCONCAT");
  tile_detail::transfer(tile_detail::window(to, 0, 0, left.rows, left.cols), left, tile_detail::PutSame());
  tile_detail::transfer(tile_detail::window(to, 0, left.cols, left.rows, right.cols), right, tile_detail::PutSame());
  tile_detail::order_memory();
  return tile_detail::wrote(dst, to);
}

}  // namespace pto
