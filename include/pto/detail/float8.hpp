// Element types of one byte: what block-scaled products multiply, and their scales.
//
//   float8_e4m3_t   4 exponent and 3 fraction bits, largest 448, no infinity, one NaN
//   float8_e5m2_t   5 and 2, largest 57344, infinities and NaNs as IEEE
//   float8_e8m0_t   a power of two, 2^-127 to 2^127, or NaN
//
// From float to nearest even; beyond the largest value e4m3 becomes NaN, e5m2 infinity.
#pragma once

#include <limits>

#include "prelude.hpp"

namespace pto {
namespace tile_detail {

// kLargest: the code of the largest finite value; kOver: what is beyond it.
template <int kFraction, int kBias, uint8_t kLargest, uint8_t kOver, uint8_t kNan> struct Float8Format {
  static constexpr int kMinExponent = 1 - kBias;

  static constexpr float power(int exponent) {  // of normal floats
    return __builtin_bit_cast(float, static_cast<uint32_t>(exponent + 127) << 23);
  }
  static constexpr float decode(uint8_t code) {
    const int magnitude = code & 0x7f, field = magnitude >> kFraction, fraction = magnitude & ((1 << kFraction) - 1);
    float value = 0;
    if (magnitude > kLargest)
      value = magnitude == kOver && kOver != kNan ? std::numeric_limits<float>::infinity()
                                                  : std::numeric_limits<float>::quiet_NaN();
    else if (field == 0)
      value = static_cast<float>(fraction) * power(kMinExponent - kFraction);
    else
      value = static_cast<float>((1 << kFraction) + fraction) * power(field - kBias - kFraction);
    return (code & 0x80) != 0 ? -value : value;
  }
  static constexpr uint8_t encode(float value) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value), magnitude = bits & 0x7fffffffu;
    const uint8_t sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
    if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | kNan);
    if (magnitude >= 0x7f800000u - 0x00800000u) return static_cast<uint8_t>(sign | kOver);
    const int own = static_cast<int>(magnitude >> 23) - 127, exponent = own < kMinExponent ? kMinExponent : own;
    const float scaled = __builtin_bit_cast(float, magnitude) * power(kFraction - exponent);  // below 2^(kFraction + 1)
    const int whole = static_cast<int>((scaled + 8388608.0f) - 8388608.0f);                   // nearest even
    const int code = ((exponent - kMinExponent) << kFraction) + whole;
    return static_cast<uint8_t>(sign | (code > kLargest ? kOver : code));
  }
};
using E4M3 = Float8Format<3, 7, 0x7e, 0x7f, 0x7f>;
using E5M2 = Float8Format<2, 15, 0x7b, 0x7c, 0x7e>;

}  // namespace tile_detail
}  // namespace pto

struct float8_e4m3_t {
  uint8_t bits;

  float8_e4m3_t() = default;
  constexpr float8_e4m3_t(float value) : bits(pto::tile_detail::E4M3::encode(value)) {}  // NOLINT: like float
  constexpr operator float() const { return pto::tile_detail::E4M3::decode(bits); }      // NOLINT
  static constexpr float largest() { return 448.0f; }
};
struct float8_e5m2_t {
  uint8_t bits;

  float8_e5m2_t() = default;
  constexpr float8_e5m2_t(float value) : bits(pto::tile_detail::E5M2::encode(value)) {}  // NOLINT: like float
  constexpr operator float() const { return pto::tile_detail::E5M2::decode(bits); }      // NOLINT
  static constexpr float largest() { return 57344.0f; }
};
// Made from its bits, 127 + exponent: 255 is NaN.
struct float8_e8m0_t {
  uint8_t bits;

  float8_e8m0_t() = default;
  explicit constexpr float8_e8m0_t(uint8_t code) : bits(code) {}
  constexpr operator float() const {  // NOLINT
    if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
    return __builtin_bit_cast(float, bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
  }
};

namespace pto {
using ::float8_e4m3_t;
using ::float8_e5m2_t;
using ::float8_e8m0_t;
}  // namespace pto
