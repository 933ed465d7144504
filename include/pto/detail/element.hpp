// Element types of tiles: half and bfloat16_t, their conversions, and how values of a type are computed with.
// Conversions are branch-free integer arithmetic, so that loops over them vectorise on any instruction set.
#pragma once

#include <limits>
#include <type_traits>

#include "float8.hpp"
#include "prelude.hpp"

namespace pto {
namespace tile_detail {

template <class To, class From> PTO_INLINE constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "a bit pattern keeps its size");
  return __builtin_bit_cast(To, from);
}

// Chooses between two values that are both computed already; unlike ?: on expressions it never keeps a loop scalar.
template <class T> PTO_INLINE constexpr T select(bool condition, T yes, T no) { return condition ? yes : no; }

// binary16 -> binary32, exact. Scaling by 2^112 re-biases the exponent and normalises subnormals in one step.
PTO_INLINE constexpr float float_from_half_bits(uint16_t half) {
  const uint32_t shifted = (static_cast<uint32_t>(half) & 0x7fffu) << 13;
  const uint32_t scaled = bit_cast<uint32_t>(bit_cast<float>(shifted) * bit_cast<float>(0x77800000u));
  const uint32_t special = shifted | 0x7f800000u;  // infinity and NaN keep their fraction
  const uint32_t magnitude = select((half & 0x7c00u) == 0x7c00u, special, scaled);
  return bit_cast<float>(magnitude | (static_cast<uint32_t>(half & 0x8000u) << 16));
}

// binary32 -> binary16, nearest even, overflow to infinity, NaN stays NaN.
PTO_INLINE constexpr uint16_t half_bits_from_float(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const uint32_t rounded = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t normal = select(magnitude >= 0x477ff000u, 0x7c00u, rounded);
  // Below 2^-14: adding 0.5 leaves the fraction in units of 2^-24, rounded by the addition itself.
  const uint32_t tiny = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t number = select(magnitude < 0x38800000u, tiny, normal);
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  return static_cast<uint16_t>(select(magnitude > 0x7f800000u, nan, number) | ((bits >> 16) & 0x8000u));
}

PTO_INLINE constexpr float float_from_bfloat_bits(uint16_t bits) {
  return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// binary32 -> bfloat16, nearest even, NaN stays NaN (made quiet).
PTO_INLINE constexpr uint16_t bfloat_bits_from_float(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>(select((bits & 0x7fffffffu) > 0x7f800000u, nan, rounded));
}

}  // namespace tile_detail
}  // namespace pto

// 8 exponent and 7 fraction bits: the upper half of a float. A class, because compilers from g++ 12 on have to agree on
// it and the older ones have no such type. Arithmetic goes through float.
struct bfloat16_t {
  uint16_t bits;

  bfloat16_t() = default;
  constexpr bfloat16_t(float value)
      : bits(pto::tile_detail::bfloat_bits_from_float(value)) {}  // NOLINT: implicit like float
  constexpr operator float() const { return pto::tile_detail::float_from_bfloat_bits(bits); }  // NOLINT
  constexpr bfloat16_t& operator+=(float value) { return *this = *this + value; }
  constexpr bfloat16_t& operator-=(float value) { return *this = *this - value; }
  constexpr bfloat16_t& operator*=(float value) { return *this = *this * value; }
  constexpr bfloat16_t& operator/=(float value) { return *this = *this / value; }
};
static_assert(sizeof(bfloat16_t) == 2 && std::is_trivially_copyable<bfloat16_t>::value,
              "bfloat16_t is two plain bytes");

#if defined(__FLT16_MANT_DIG__) && (defined(__clang__) || __GNUC__ >= 13 || defined(__x86_64__))
typedef _Float16 half;
#else
struct half {
  uint16_t bits;

  half() = default;
  constexpr half(float value) : bits(pto::tile_detail::half_bits_from_float(value)) {}  // NOLINT: implicit like float
  constexpr operator float() const { return pto::tile_detail::float_from_half_bits(bits); }  // NOLINT
  constexpr half& operator+=(float value) { return *this = *this + value; }
  constexpr half& operator-=(float value) { return *this = *this - value; }
  constexpr half& operator*=(float value) { return *this = *this * value; }
  constexpr half& operator/=(float value) { return *this = *this / value; }
};
#endif
static_assert(sizeof(half) == 2 && std::is_trivially_copyable<half>::value, "half is two plain bytes");

typedef half float16_t;
typedef half aclFloat16;
typedef float float32_t;

// Without these the standard library answers 0 to every question about the two types.
namespace std {
template <> struct numeric_limits<bfloat16_t> : numeric_limits<float> {
  static constexpr int digits = 8, digits10 = 2, max_digits10 = 4;
  static constexpr bfloat16_t from(uint32_t upper) {
    return bfloat16_t(pto::tile_detail::bit_cast<float>(upper << 16));
  }
  static constexpr bfloat16_t min() { return from(0x0080); }
  static constexpr bfloat16_t max() { return from(0x7f7f); }
  static constexpr bfloat16_t lowest() { return from(0xff7f); }
  static constexpr bfloat16_t epsilon() { return from(0x3c00); }
  static constexpr bfloat16_t round_error() { return from(0x3f00); }
  static constexpr bfloat16_t infinity() { return from(0x7f80); }
  static constexpr bfloat16_t quiet_NaN() { return from(0x7fc0); }
  static constexpr bfloat16_t signaling_NaN() { return quiet_NaN(); }  // a conversion would quiet it anyway
  static constexpr bfloat16_t denorm_min() { return from(0x0001); }
};
#if !defined(__STDCPP_FLOAT16_T__)
template <> struct numeric_limits<half> : numeric_limits<float> {
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5;
  static constexpr int min_exponent = -13, min_exponent10 = -4, max_exponent = 16, max_exponent10 = 4;
  static constexpr half min() { return half(6.103515625e-5f); }
  static constexpr half max() { return half(65504.0f); }
  static constexpr half lowest() { return half(-65504.0f); }
  static constexpr half epsilon() { return half(9.765625e-4f); }
  static constexpr half round_error() { return half(0.5f); }
  static constexpr half infinity() { return half(numeric_limits<float>::infinity()); }
  static constexpr half quiet_NaN() { return half(numeric_limits<float>::quiet_NaN()); }
  static constexpr half signaling_NaN() { return quiet_NaN(); }
  static constexpr half denorm_min() { return half(5.9604644775390625e-8f); }
};
#endif
}  // namespace std

namespace pto {

using ::bfloat16_t;
using ::half;

namespace tile_detail {

// How half lies in memory, for the library's own loops: they move 16-bit integers, which every instruction set has in
// vectors, where a compiler may treat _Float16 one by one.
enum class HalfBits : uint16_t {};
template <class T> using Stored = typename std::conditional<
    std::is_same<T, ::half>::value, HalfBits,
    typename std::conditional<std::is_same<T, const ::half>::value, const HalfBits, T>::type>::type;

template <class T> constexpr bool kIsHalf = std::is_same<T, ::half>::value || std::is_same<T, HalfBits>::value;
template <class T> constexpr bool kIsBfloat = std::is_same<T, ::bfloat16_t>::value;
template <class T> constexpr bool kIsFloat8 =
    std::is_same<T, ::float8_e4m3_t>::value || std::is_same<T, ::float8_e5m2_t>::value;
template <class T> constexpr bool kIsFloating =
    std::is_floating_point<T>::value || kIsHalf<T> || kIsBfloat<T> || kIsFloat8<T>;

// The type that values of element type T are computed in: shorter floats in float, all others in themselves. Each
// result is rounded back to T, to nearest even.
template <class T> using Compute =
    typename std::conditional<kIsHalf<T> || kIsBfloat<T> || kIsFloat8<T>, float, T>::type;

template <class T> PTO_INLINE constexpr Compute<T> load(const T& element) {
  if constexpr (std::is_same<T, HalfBits>::value)
    return float_from_half_bits(static_cast<uint16_t>(element));
  else if constexpr (kIsHalf<T>)
    return float_from_half_bits(bit_cast<uint16_t>(element));
  else if constexpr (kIsBfloat<T>)
    return float_from_bfloat_bits(element.bits);
  else
    return element;
}

template <class T> PTO_INLINE constexpr T store(Compute<T> value) {
  if constexpr (kIsHalf<T>)
    return bit_cast<T>(half_bits_from_float(value));
  else if constexpr (kIsBfloat<T>)
    return bit_cast<T>(bfloat_bits_from_float(value));
  else
    return static_cast<T>(value);
}

// Float to integer towards zero; out of range saturates, NaN becomes 0. Never the undefined behaviour of a plain cast.
template <class I, class F> PTO_INLINE constexpr I saturate(F value) {
  constexpr F kLimit = static_cast<F>(std::numeric_limits<I>::max() / 2 + 1) * 2;  // max + 1, exact in F
  constexpr F kLowest = static_cast<F>(std::numeric_limits<I>::min());
  const F ordered = value == value ? value : F(0);
  const F above = ordered < kLowest ? kLowest : ordered;
  const bool too_large = above >= kLimit;
  const I inside = static_cast<I>(too_large ? F(0) : above);
  return too_large ? std::numeric_limits<I>::max() : inside;
}

// Long integers to bfloat16: float holds 24 of their bits, so the lost ones become one sticky bit; then the rounding to
// bfloat16 is exact.
template <class I> constexpr bool kNeedsStickyBit = std::is_integral<I>::value && sizeof(I) >= 4;
template <class I> PTO_INLINE constexpr float float_with_sticky_bit(I value) {
  using U = typename std::make_unsigned<I>::type;
  const bool negative = value < I(0);
  const U magnitude = negative ? U{0} - static_cast<U>(value) : static_cast<U>(value);
  float exact = 0;
  if constexpr (sizeof(I) == 4) {
    const U sticky = (magnitude & ~U{0xff}) | ((magnitude & 0xffu) != 0 ? 0x100u : 0u);
    exact = static_cast<float>(magnitude < (U{1} << 24) ? magnitude : sticky);
  } else {
    const int shift = magnitude >> 24 == 0 ? 0 : 40 - __builtin_clzll(magnitude);
    const U kept = magnitude >> shift;
    exact = static_cast<float>(kept | (kept << shift != magnitude ? 1u : 0u)) * static_cast<float>(U{1} << shift);
  }
  return negative ? -exact : exact;
}

// What a plain cast means between element types: floats round to nearest even, float to integer truncates (saturating),
// integers wrap.
template <class D, class S> PTO_INLINE constexpr D cast(const S& element) {
  if constexpr (std::is_same<D, S>::value)
    return element;
  else if constexpr (kIsFloating<S> && std::is_integral<D>::value)
    return saturate<D>(load(element));
  else if constexpr (kIsBfloat<D> && kNeedsStickyBit<S>)
    return store<D>(float_with_sticky_bit(element));
  else
    return store<D>(static_cast<Compute<D>>(load(element)));
}

// Smallest and largest value that padding uses: the infinities of floats, the limits of integers and of 8-bit floats.
template <class T> constexpr T lowest_value() {
  if constexpr (kIsFloat8<T>)
    return T(-T::largest());
  else if constexpr (kIsFloating<T>)
    return store<T>(-std::numeric_limits<Compute<T>>::infinity());
  else
    return std::numeric_limits<T>::min();
}
template <class T> constexpr T highest_value() {
  if constexpr (kIsFloat8<T>)
    return T(T::largest());
  else if constexpr (kIsFloating<T>)
    return store<T>(std::numeric_limits<Compute<T>>::infinity());
  else
    return std::numeric_limits<T>::max();
}

}  // namespace tile_detail
}  // namespace pto
