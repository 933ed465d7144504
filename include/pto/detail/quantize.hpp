// To small integers and back, with scales: one per row of a vector tile, one per column of an accumulator.
#pragma once

#include "convert.hpp"

namespace pto {

// Symmetric: int8 = x * scale. Asymmetric: uint8 = x * scale + offset. Nearest even, saturating.
enum class QuantType { MXFP8, INT8_SYM, INT8_ASYM };

namespace tile_detail {

template <class D> struct Quantize {
  template <class... Offset> PTO_INLINE D operator()(float x, float scale, Offset... offset) const {
    return saturate<D>(round_even(((x * scale) + ... + offset)));
  }
};
struct Dequantize {
  template <class S> PTO_INLINE float operator()(S x, float scale) const { return static_cast<float>(x) * scale; }
  template <class S> PTO_INLINE float operator()(S x, float scale, float offset) const {
    return (static_cast<float>(x) - offset) * scale;
  }
};

// The scale of column c: a float, or a word whose low 32 bits are one.
template <class V> PTO_INLINE float column_scale(const V& scales, int c) {
  if constexpr (sizeof(typename V::Element) == 2)
    return load(scales.at(0, c));
  else
    return scale_of(scales.at(0, c));
}

// dst = src times the scale of its column.
template <ReluPreMode kRelu, class DstView, class SrcView, class Scales>
PTO_INLINE void put_scaled_columns(const DstView& dst, const SrcView& src, const Scales& scales, int first) {
  for (int c = 0; c < dst.cols; ++c) {
    const PutScaled put = {column_scale(scales, first + c)};
    const auto to = window(dst, 0, c, dst.rows, 1);
    const auto from = window(src, 0, c, dst.rows, 1);
    if constexpr (kRelu == ReluPreMode::NormalRelu)
      put_squares(to, from, PutRelu<PutScaled>{put});
    else
      put_squares(to, from, put);
  }
}

}  // namespace tile_detail

// dst = src * scale (+ offset), with a scale (and offset) for each row.
template <QuantType kType, class Dst, class Src, class Scale>
PTO_INLINE RecordEvent TQUANT(Dst& dst, Src& src, Scale& scale, Scale* offset = nullptr) {
  using namespace tile_detail;
  using D = typename Dst::DType;
  static_assert(kVectorTiles<Dst, Src, Scale>,
                "TQUANT takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  static_assert(kType != QuantType::MXFP8, "TQUANT to block-scaled floats (QuantType::MXFP8) is not available");
  static_assert(std::is_same<D, typename std::conditional<kType == QuantType::INT8_SYM, int8_t, uint8_t>::type>::value,
                "TQUANT: dst is int8_t for INT8_SYM, uint8_t for INT8_ASYM");
  static_assert(kIsFloating<typename Src::DType> && std::is_same<typename Scale::DType, float>::value,
                "TQUANT: src is of a float type, scales are float");
  if (kType == QuantType::INT8_ASYM && offset == nullptr) fail("TQUANT: INT8_ASYM needs offsets, one for each row");
  const auto to = view(dst, "TQUANT");
  const auto from = source(src, to.rows, to.cols, "TQUANT");
  const auto factors = column_of(scale, to.rows, "TQUANT");
  if constexpr (kType == QuantType::INT8_SYM) {
    apply(to, Quantize<D>(), from, factors);
  } else {
    apply(to, Quantize<D>(), from, factors, column_of(*offset, to.rows, "TQUANT"));
  }
  return wrote(dst, to);
}
// dst = src * scale, or (src - offset) * scale, with a scale (and offset) for each row.
template <class Dst, class Src, class Scale> PTO_INLINE RecordEvent TDEQUANT(Dst& dst, Src& src, Scale& scale) {
  using namespace tile_detail;
  static_assert(kVectorTiles<Dst, Src, Scale>,
                "TDEQUANT takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  const auto to = view(dst, "TDEQUANT");
  apply(to, Dequantize(), source(src, to.rows, to.cols, "TDEQUANT"), column_of(scale, to.rows, "TDEQUANT"));
  return wrote(dst, to);
}
template <class Dst, class Src, class Scale>
PTO_INLINE RecordEvent TDEQUANT(Dst& dst, Src& src, Scale& scale, Scale& offset) {
  using namespace tile_detail;
  static_assert(kVectorTiles<Dst, Src, Scale>,
                "TDEQUANT takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  const auto to = view(dst, "TDEQUANT");
  apply(to, Dequantize(), source(src, to.rows, to.cols, "TDEQUANT"), column_of(scale, to.rows, "TDEQUANT"),
        column_of(offset, to.rows, "TDEQUANT"));
  return wrote(dst, to);
}

// TSTORE with a scale for each column.
template <class TileT, class GlobalT, class Scales, ReluPreMode kRelu = ReluPreMode::NoRelu>
PTO_INLINE RecordEvent TSTORE_FP(const GlobalT& dst, TileT& src, Scales& scales) {
  using namespace tile_detail;
  static_assert(Scales::Loc == TileType::Scaling, "TSTORE_FP: scales lie in a tile of TileType::Scaling");
  static_assert(TileT::Loc == TileType::Acc, "TSTORE_FP stores accumulators (TileType::Acc)");
  const auto from = source(src, "TSTORE_FP");
  const auto factors = source(scales, 1, from.cols, "TSTORE_FP");
  need_extent<TileT>(dst, from.rows, from.cols, "TSTORE_FP");
  for_each_piece(dst, from.rows, from.cols, [&](const auto& piece, int r, int c) {
    put_scaled_columns<kRelu>(piece, window(from, r, c, piece.rows, piece.cols), factors, c);
  });
  order_memory();
  return {};
}
template <class TileT, class GlobalT, class Scales, ReluPreMode kRelu = ReluPreMode::NoRelu,
          tile_detail::IfTile<Scales> = 0>
PTO_INLINE RecordEvent TSTORE(const GlobalT& dst, TileT& src, Scales& scales) {
  return TSTORE_FP<TileT, GlobalT, Scales, kRelu>(dst, src, scales);
}
// TMOV out of an accumulator with a scale for each column.
template <class Dst, class Src, class Scales, ReluPreMode kRelu = ReluPreMode::NoRelu>
PTO_INLINE RecordEvent TMOV_FP(Dst& dst, Src& src, Scales& scales) {
  using namespace tile_detail;
  check_way<Dst, Src>();
  static_assert(Scales::Loc == TileType::Scaling, "TMOV_FP: scales lie in a tile of TileType::Scaling");
  static_assert(Src::Loc == TileType::Acc, "TMOV_FP moves accumulators (TileType::Acc)");
  const auto to = view(dst, "TMOV_FP");
  put_scaled_columns<kRelu>(to, source(src, to.rows, to.cols, "TMOV_FP"), source(scales, 1, to.cols, "TMOV_FP"), 0);
  order_memory();
  return wrote(dst, to);
}
template <class Dst, class Src, class Scales, ReluPreMode kRelu = ReluPreMode::NoRelu, tile_detail::IfTile<Scales> = 0>
PTO_INLINE RecordEvent TMOV(Dst& dst, Src& src, Scales& scales) {
  return TMOV_FP<Dst, Src, Scales, kRelu>(dst, src, scales);
}

}  // namespace pto
