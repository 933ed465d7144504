// Operations on single values, written so that loops over them vectorise: no branches, no calls, no error flags.
// T is the type values are computed in (see Compute): float for all floating element types, integers as they are.
#pragma once

#include "element.hpp"

namespace pto {
namespace tile_detail {

template <class T> constexpr bool kInteger = std::is_integral<T>::value;

// Integers wrap: computed in an unsigned type of at least 32 bits, where that is defined.
template <class T> using Wrapping =
    typename std::conditional<kInteger<T>, typename std::conditional<(sizeof(T) > 4), uint64_t, uint32_t>::type,
                              T>::type;

struct Add {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Sub {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Mul {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
// Integers: towards zero; x / 0 is 0, and the one overflow wraps, so that unused elements cannot end the kernel.
struct Div {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    if constexpr (kInteger<T>) {
      if (b == 0) return 0;
      if (std::is_signed<T>::value && b == static_cast<T>(-1)) return Sub()(T(0), a);
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};
// What a division leaves, exact: Fmod with the sign of a, as C++ has it, Rem with that of b. Integers: x by 0 leaves 0.
struct Fmod {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    if constexpr (kInteger<T>) {
      if (b == 0 || (std::is_signed<T>::value && b == static_cast<T>(-1))) return 0;
      return static_cast<T>(a % b);
    } else {
      return __builtin_fmodf(a, b);
    }
  }
};
struct Rem {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    const T left = Fmod()(a, b);
    return left != T(0) && (left < T(0)) != (b < T(0)) ? Add()(left, b) : left;
  }
};
// a + b + c, a - b + c
struct AddBoth {
  template <class T> PTO_INLINE T operator()(T a, T b, T c) const { return Add()(Add()(a, b), c); }
};
struct SubAdd {
  template <class T> PTO_INLINE T operator()(T a, T b, T c) const { return Add()(Sub()(a, b), c); }
};
// A NaN in b is dropped, one in a stays.
struct Max {
  template <class T> PTO_INLINE T operator()(T a, T b) const { return a < b ? b : a; }
};
struct Min {
  template <class T> PTO_INLINE T operator()(T a, T b) const { return b < a ? b : a; }
};

// Created at the start of an operation: so this sentence comes before what the compiler says of the operator.
template <class T> struct NeedIntegers {
  static_assert(kInteger<T>, "bitwise instructions take integer tiles");
};
struct And {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    NeedIntegers<T>();
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    NeedIntegers<T>();
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    NeedIntegers<T>();
    return static_cast<T>(a ^ b);
  }
};
// Counts of the width and more shift everything out; negative counts are such counts.
struct ShiftLeft {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    NeedIntegers<T>();
    const Wrapping<T> count = static_cast<Wrapping<T>>(b), width = sizeof(T) * 8;
    return static_cast<T>(count < width ? static_cast<Wrapping<T>>(a) << (count & (sizeof(Wrapping<T>) * 8 - 1)) : 0);
  }
};
struct ShiftRight {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    NeedIntegers<T>();
    const Wrapping<T> count = static_cast<Wrapping<T>>(b), last = sizeof(T) * 8 - 1;
    const T half_way = static_cast<T>(a >> (count < last ? count : last));  // signed: all sign bits from here on
    return std::is_signed<T>::value || count <= last ? half_way : T(0);
  }
};

struct Identity {
  template <class T> PTO_INLINE T operator()(T a) const { return a; }
};
struct Abs {
  template <class T> PTO_INLINE T operator()(T a) const {
    if constexpr (kInteger<T>)
      return a < T(0) ? Sub()(T(0), a) : a;
    else
      return bit_cast<float>(bit_cast<uint32_t>(a) & 0x7fffffffu);
  }
};
struct Neg {
  template <class T> PTO_INLINE T operator()(T a) const {
    if constexpr (kInteger<T>)
      return Sub()(T(0), a);
    else
      return -a;
  }
};
struct Not {
  template <class T> PTO_INLINE T operator()(T a) const {
    NeedIntegers<T>();
    return static_cast<T>(~a);
  }
};
struct Relu {
  template <class T> PTO_INLINE T operator()(T a) const { return a > T(0) ? a : T(0); }
};
// a, or a times a slope where it is negative.
struct LeakyRelu {
  template <class T> PTO_INLINE T operator()(T a, T slope) const {
    const T scaled = Mul()(a, slope);
    return a > T(0) ? a : scaled;
  }
};

// ---- transcendental functions, float ----------------------------------------------------------------------------

// Nearest integer, ties to even: beyond 2^23 the sum with 1.5 * 2^23 has no fraction bits left to round.
PTO_INLINE float round_even(float x) {
  const float magnitude = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float rounded = (magnitude + 8388608.0f) - 8388608.0f;
  const float result = magnitude < 8388608.0f ? rounded : magnitude;  // NaN and infinity stay
  return bit_cast<float>(bit_cast<uint32_t>(result) | (bit_cast<uint32_t>(x) & 0x80000000u));
}

// 2^n * e^r with |r| <= ln(2) / 2; relative error below 2e-7. Subnormal results are exact to their last bit or two.
PTO_INLINE float exp_float(float x) {
  const float low = x < -104.5f ? -104.5f : x, bounded = 89.5f < low ? 89.5f : low;  // NaN passes both
  const float shifted = bounded * 1.44269504f + 12582912.0f;                         // integer part in the last bits
  const float n = shifted - 12582912.0f;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float e = (p * (r * r) + r) + 1.0f;
  // In two factors, so that neither leaves the range of normal numbers.
  const int32_t exponent = static_cast<int32_t>(bit_cast<uint32_t>(shifted) - 0x4b400000u);
  const int32_t first = exponent >> 1, second = exponent - first;
  const float scale = bit_cast<float>(static_cast<uint32_t>(first + 127) << 23);
  return e * scale * bit_cast<float>(static_cast<uint32_t>(second + 127) << 23);
}

// m * 2^e with m in [sqrt(1/2), sqrt(2)); relative error below 2e-7 away from 1, absolute below 1e-8 around 1.
PTO_INLINE float log_float(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float normal = tiny ? x * 8388608.0f : x;
  const uint32_t bits = bit_cast<uint32_t>(normal) - 0x3f3504f3u;  // sqrt(1/2): exponent 0 from there
  const int32_t exponent = static_cast<int32_t>(bits) >> 23;
  const float m = bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float e = static_cast<float>(exponent) - (tiny ? 23.0f : 0.0f);
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float tail = p * m * z + e * -2.12194440e-4f - 0.5f * z;
  float result = m + tail + e * 0.693359375f;
  result = x == std::numeric_limits<float>::infinity() ? x : result;
  result = x == 0.0f ? -std::numeric_limits<float>::infinity() : result;
  return x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : x == x ? result : x;
}

template <class T> PTO_INLINE constexpr void need_floats() {
  static_assert(std::is_same<T, float>::value, "this instruction takes tiles of float, half or bfloat16_t");
}
struct Exp {
  template <class T> PTO_INLINE T operator()(T a) const {
    need_floats<T>();
    return exp_float(a);
  }
};
struct Log {
  template <class T> PTO_INLINE T operator()(T a) const {
    need_floats<T>();
    return log_float(a);
  }
};
struct Sqrt {
  template <class T> PTO_INLINE T operator()(T a) const {
    need_floats<T>();
    return __builtin_sqrtf(a);
  }
};
struct Rsqrt {
  template <class T> PTO_INLINE T operator()(T a) const {
    need_floats<T>();
    return 1.0f / __builtin_sqrtf(a);
  }
};
struct Recip {
  template <class T> PTO_INLINE T operator()(T a) const {
    need_floats<T>();
    return 1.0f / a;
  }
};
// e^(a - b): one instruction for shifted exponentials.
struct ExpDif {
  template <class T> PTO_INLINE T operator()(T a, T b) const {
    need_floats<T>();
    return exp_float(a - b);
  }
};

}  // namespace tile_detail
}  // namespace pto
