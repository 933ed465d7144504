// TCVT: conversion of element types, with rounding modes.
//
//   to half, bfloat16_t   from float types in the given mode; NONE and RINT are nearest even
//   to 8-bit floats       from float types, always to nearest even
//   to integers           from float types in the given mode, NONE truncates; out of range saturates, NaN becomes 0
//   between integers      wraps, or saturates if asked to
//   from integers         to nearest even
//   SaturationMode::ON    clamps to the finite range of the destination: no infinity, no wrapping
#pragma once

#include "elementwise.hpp"
#include "math.hpp"

namespace pto {
namespace tile_detail {

// The integer that x >= 0 rounds to in each direction; x is below 2^23 or an integer already.
template <RoundMode kMode> PTO_INLINE float round_magnitude(float x, bool negative) {
  const float near = round_even(x);
  if constexpr (kMode == RoundMode::CAST_RINT) return near;
  const float below = near > x ? near - 1.0f : near;
  const float above = below < x ? below + 1.0f : below;
  if constexpr (kMode == RoundMode::CAST_ROUND)
    return x - below >= 0.5f ? above : below;
  else if constexpr (kMode == RoundMode::CAST_FLOOR)
    return negative ? above : below;
  else if constexpr (kMode == RoundMode::CAST_CEIL)
    return negative ? below : above;
  else if constexpr (kMode == RoundMode::CAST_ODD) {
    const float halved = below * 0.5f;  // an integer if `below` is even
    return round_even(halved) == halved ? above : below;
  } else
    return below;
}

PTO_INLINE float magnitude_of(float x) { return bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu); }
PTO_INLINE float with_sign_of(float magnitude, float x) {
  return bit_cast<float>(bit_cast<uint32_t>(magnitude) | (bit_cast<uint32_t>(x) & 0x80000000u));
}

// True if a value beyond the largest finite one stays finite in this direction.
template <RoundMode kMode> PTO_INLINE constexpr bool overflow_is_finite(bool negative) {
  if constexpr (kMode == RoundMode::CAST_FLOOR)
    return !negative;
  else if constexpr (kMode == RoundMode::CAST_CEIL)
    return negative;
  else
    return kMode == RoundMode::CAST_TRUNC || kMode == RoundMode::CAST_ODD;
}

// x rounded to a value that half has, as a float.
template <RoundMode kMode> PTO_INLINE float round_to_half(float x) {
  if constexpr (kMode == RoundMode::CAST_RINT) return float_from_half_bits(half_bits_from_float(x));
  const float magnitude = magnitude_of(x);
  const bool negative = bit_cast<int32_t>(x) < 0;
  const uint32_t bits = bit_cast<uint32_t>(magnitude);
  const uint32_t exponent = bits < 0x38800000u ? 0x38800000u : bits & 0x7f800000u;  // subnormals share one exponent
  const uint32_t ulp = exponent - (10u << 23);
  const float scaled = magnitude * bit_cast<float>((254u << 23) - ulp);  // in units of the last place: below 2^11
  const float rounded = round_magnitude<kMode>(scaled, negative) * bit_cast<float>(ulp);
  const float largest = 65504.0f;
  const float bounded = overflow_is_finite<kMode>(negative) && rounded > largest ? largest : rounded;
  return with_sign_of(bits < 0x7f800000u ? bounded : magnitude, x);  // infinity and NaN stay
}

// x rounded to a value that bfloat16_t has, as a float. On bit patterns: one more there is one place further from zero.
template <RoundMode kMode> PTO_INLINE float round_to_bfloat(float x) {
  if constexpr (kMode == RoundMode::CAST_RINT) return float_from_bfloat_bits(bfloat_bits_from_float(x));
  const uint32_t bits = bit_cast<uint32_t>(x), kept = bits & 0xffff0000u, lost = bits & 0xffffu;
  const bool negative = static_cast<int32_t>(bits) < 0;
  bool away = false;
  if constexpr (kMode == RoundMode::CAST_ROUND)
    away = lost >= 0x8000u;
  else if constexpr (kMode == RoundMode::CAST_FLOOR)
    away = negative && lost != 0;
  else if constexpr (kMode == RoundMode::CAST_CEIL)
    away = !negative && lost != 0;
  else if constexpr (kMode == RoundMode::CAST_ODD)
    away = lost != 0 && (kept & 0x10000u) == 0;
  const uint32_t rounded = kept + (away ? 0x10000u : 0u);
  const uint32_t nan = kept | 0x400000u;
  return bit_cast<float>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

template <class D, RoundMode kMode, bool kSaturate> struct Convert {
  template <class C> PTO_INLINE Compute<D> operator()(C x) const {
    if constexpr (std::is_integral<D>::value && kInteger<C>) {
      if constexpr (kSaturate)
        return clamp_integer(x);
      else
        return static_cast<D>(x);
    } else if constexpr (std::is_integral<D>::value) {
      const float rounded = round_magnitude<kMode>(magnitude_of(x), bit_cast<int32_t>(x) < 0);
      return saturate<D>(with_sign_of(rounded, x));
    } else if constexpr (kInteger<C>) {
      if constexpr (kIsBfloat<D> && kNeedsStickyBit<C>)
        return float_with_sticky_bit(x);
      else
        return finite(static_cast<Compute<D>>(x));
    } else if constexpr (kIsHalf<D>) {
      return finite(round_to_half<kMode>(x));
    } else if constexpr (kIsBfloat<D>) {
      return finite(round_to_bfloat<kMode>(x));
    } else {
      return finite(static_cast<Compute<D>>(x));
    }
  }

 private:
  template <class C> static PTO_INLINE D clamp_integer(C x) {
    using Wide = typename std::conditional<std::is_signed<C>::value, int64_t, uint64_t>::type;
    constexpr auto kLow = std::numeric_limits<D>::min(), kHigh = std::numeric_limits<D>::max();
    if (std::is_signed<C>::value && static_cast<int64_t>(x) < static_cast<int64_t>(kLow)) return kLow;
    if (x > C(0) && static_cast<uint64_t>(static_cast<Wide>(x)) > static_cast<uint64_t>(kHigh)) return kHigh;
    return static_cast<D>(x);
  }
  // The largest finite value instead of anything beyond it; NaN stays.
  static PTO_INLINE Compute<D> finite(Compute<D> x) {
    if constexpr (!kSaturate)
      return x;
    else {
      constexpr float kLargest = kIsFloat8<D>   ? static_cast<float>(highest_value<D>())
                                 : kIsHalf<D>   ? 65504.0f
                                 : kIsBfloat<D> ? 3.38953139e38f
                                                : std::numeric_limits<float>::max();
      const float above = x > kLargest ? kLargest : x;
      return above < -kLargest ? -kLargest : above;
    }
  }
};

template <RoundMode kMode, class DstView, class SrcView>
PTO_INLINE RecordEvent convert(const DstView& dst, const SrcView& src, SaturationMode saturation) {
  using D = typename DstView::Element;
  using S = typename SrcView::Element;
  if constexpr (kMode == RoundMode::CAST_RINT && (kShortensOrWidens<D, S> || (kIsShortFloat<D> && kIsShortFloat<S>))) {
    if (saturation != SaturationMode::ON) return apply(dst, Identity(), src);  // stores round so anyway
  }
  if (saturation == SaturationMode::ON) return apply(dst, Convert<D, kMode, true>(), src);
  return apply(dst, Convert<D, kMode, false>(), src);
}

}  // namespace tile_detail

// dst = src converted, for src's valid region.
template <class Dst, class Src>
PTO_INLINE RecordEvent TCVT(Dst& dst, Src& src, RoundMode mode, SaturationMode saturation = SaturationMode::OFF) {
  static_assert(tile_detail::kVectorTiles<Dst, Src>,
                "TCVT takes tiles in vector memory (TileType::Vec); TMOV brings others there");
  using namespace tile_detail;
  using D = typename Dst::DType;
  using S = typename Src::DType;
  static_assert(!std::is_same<D, ::float8_e8m0_t>::value && !std::is_same<S, ::float8_e8m0_t>::value,
                "TCVT: scales (float8_e8m0_t) are moved and multiplied, not converted");
  // Rounding happens on the way from a float type to anything narrower.
  constexpr bool kRounds =
      kIsFloating<S> && !std::is_same<D, float>::value && !std::is_same<D, S>::value && !kIsFloat8<D>;
  const auto from = source(src, "TCVT");
  const auto to = view(dst, from.rows, from.cols, "TCVT");
  wrote(dst, to);
  if constexpr (kRounds) {
    switch (mode) {
      case RoundMode::CAST_ROUND: return convert<RoundMode::CAST_ROUND>(to, from, saturation);
      case RoundMode::CAST_FLOOR: return convert<RoundMode::CAST_FLOOR>(to, from, saturation);
      case RoundMode::CAST_CEIL: return convert<RoundMode::CAST_CEIL>(to, from, saturation);
      case RoundMode::CAST_TRUNC: return convert<RoundMode::CAST_TRUNC>(to, from, saturation);
      case RoundMode::CAST_ODD: return convert<RoundMode::CAST_ODD>(to, from, saturation);
      case RoundMode::CAST_NONE:
        if constexpr (std::is_integral<D>::value) return convert<RoundMode::CAST_TRUNC>(to, from, saturation);
        break;
      case RoundMode::CAST_RINT: break;
    }
  }
  return convert<RoundMode::CAST_RINT>(to, from, saturation);
}
// With a scratch tile, which is not needed here.
template <class Dst, class Src, class Scratch, tile_detail::IfTile<Scratch> = 0>
PTO_INLINE RecordEvent TCVT(Dst& dst, Src& src, Scratch&, RoundMode mode,
                            SaturationMode saturation = SaturationMode::OFF) {
  return TCVT(dst, src, mode, saturation);
}

}  // namespace pto
