// The functions of SimplerTileKernels, on Highway's vectors, compiled once for each target below.
//
// How       foreach_target.h includes this file again for each target, each time with another HWY_NAMESPACE and with
//           code generation set to that instruction set. Only Highway's headers are used, nothing of it is linked.
// Tails     What does not fill a vector goes through a small buffer and the same code, so that the value of an element
//           does not depend on its place.
// Targets   AVX2, AVX-512, NEON. Vectors of 16 bytes are what the loops of the tile library's headers have already
//           (portable_kernels.cpp).
#include "tile/targets.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/vector_kernels.cpp"
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON

#if defined(__clang__)
#define SIMPLER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SIMPLER_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace simpler::tile::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Integers = hn::RebindToSigned<Floats>;
using Vector = hn::Vec<Floats>;
constexpr Floats kFloats{};
constexpr int kLanes = HWY_MAX_BYTES / 4;

// ---- element-wise ---------------------------------------------------------------------------------------------------

// dst[i] = f(src[i]): f reads and writes kLanes elements.
template <class D, class S, class F> HWY_INLINE void map(D* dst, const S* src, int64_t count, F f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) f(dst + i, src + i);
  if (i == count) return;
  S in[kLanes] = {};
  D out[kLanes];
  std::memcpy(in, src + i, static_cast<size_t>(count - i) * sizeof(S));
  f(out, in);
  std::memcpy(dst + i, out, static_cast<size_t>(count - i) * sizeof(D));
}

HWY_INLINE Vector scaled_power(hn::Vec<Integers> exponent) {  // 2^exponent of a normal number
  return hn::BitCast(kFloats, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(Integers(), 127))));
}

// As exp_float of pto/detail/math.hpp: 2^n * e^r with |r| <= ln(2) / 2, scaled in two steps for subnormal results.
HWY_INLINE Vector exp_of(Vector x) {
  const auto set = [](float value) { return hn::Set(kFloats, value); };
  const Vector low = hn::IfThenElse(hn::Lt(x, set(-104.5f)), set(-104.5f), x);
  const Vector bounded = hn::IfThenElse(hn::Lt(set(89.5f), low), set(89.5f), low);  // NaN passes both
  const Vector shifted = hn::MulAdd(bounded, set(1.44269504f), set(12582912.0f));
  const Vector n = hn::Sub(shifted, set(12582912.0f));
  const Vector r = hn::MulAdd(n, set(2.12194440e-4f), hn::NegMulAdd(n, set(0.693359375f), bounded));
  Vector p = hn::MulAdd(set(1.9875691500e-4f), r, set(1.3981999507e-3f));
  p = hn::MulAdd(p, r, set(8.3334519073e-3f));
  p = hn::MulAdd(p, r, set(4.1665795894e-2f));
  p = hn::MulAdd(p, r, set(1.6666665459e-1f));
  p = hn::MulAdd(p, r, set(5.0000001201e-1f));
  const Vector e = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), set(1.0f));
  const auto exponent = hn::Sub(hn::BitCast(Integers(), shifted), hn::Set(Integers(), 0x4b400000));
  const auto first = hn::ShiftRight<1>(exponent);
  return hn::Mul(hn::Mul(e, scaled_power(first)), scaled_power(hn::Sub(exponent, first)));
}

// As log_float there: m * 2^e with m in [sqrt(1/2), sqrt(2)).
HWY_INLINE Vector log_of(Vector x) {
  const auto set = [](float value) { return hn::Set(kFloats, value); };
  const auto word = [](uint32_t value) { return hn::Set(Words(), value); };
  const auto tiny = hn::Lt(x, set(1.17549435e-38f));
  const Vector normal = hn::IfThenElse(tiny, hn::Mul(x, set(8388608.0f)), x);
  const auto bits = hn::Sub(hn::BitCast(Words(), normal), word(0x3f3504f3u));
  const Vector whole = hn::ConvertTo(kFloats, hn::ShiftRight<23>(hn::BitCast(Integers(), bits)));
  const Vector e = hn::Sub(whole, hn::IfThenElseZero(tiny, set(23.0f)));
  const Vector m =
      hn::Sub(hn::BitCast(kFloats, hn::Add(hn::And(bits, word(0x007fffffu)), word(0x3f3504f3u))), set(1.0f));
  const Vector z = hn::Mul(m, m);
  Vector p = hn::MulAdd(set(7.0376836292e-2f), m, set(-1.1514610310e-1f));
  p = hn::MulAdd(p, m, set(1.1676998740e-1f));
  p = hn::MulAdd(p, m, set(-1.2420140846e-1f));
  p = hn::MulAdd(p, m, set(1.4249322787e-1f));
  p = hn::MulAdd(p, m, set(-1.6668057665e-1f));
  p = hn::MulAdd(p, m, set(2.0000714765e-1f));
  p = hn::MulAdd(p, m, set(-2.4999993993e-1f));
  p = hn::MulAdd(p, m, set(3.3333331174e-1f));
  Vector tail = hn::Mul(hn::Mul(p, m), z);
  tail = hn::MulAdd(e, set(-2.12194440e-4f), tail);
  tail = hn::NegMulAdd(set(0.5f), z, tail);
  Vector result = hn::MulAdd(e, set(0.693359375f), hn::Add(m, tail));
  const Vector infinity = hn::BitCast(kFloats, word(0x7f800000u));
  result = hn::IfThenElse(hn::Eq(x, infinity), x, result);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(kFloats)), hn::Neg(infinity), result);
  result = hn::IfThenElse(hn::Lt(x, hn::Zero(kFloats)), hn::BitCast(kFloats, word(0x7fc00000u)), result);
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

void exp_run(float* dst, const float* src, int64_t count) {
  map(dst, src, count,
      [](float* to, const float* from) HWY_ATTR { hn::StoreU(exp_of(hn::LoadU(kFloats, from)), kFloats, to); });
}
void log_run(float* dst, const float* src, int64_t count) {
  map(dst, src, count,
      [](float* to, const float* from) HWY_ATTR { hn::StoreU(log_of(hn::LoadU(kFloats, from)), kFloats, to); });
}

// ---- element types --------------------------------------------------------------------------------------------------

// kLanes elements as floats. Half and bfloat are given as their bits.
struct Float {
  using Element = float;
  static HWY_INLINE Vector load(const float* src) { return hn::LoadU(kFloats, src); }
};
struct Half {
  using Element = uint16_t;
  using Tag = hn::Rebind<hwy::float16_t, Floats>;
  static HWY_INLINE Vector load(const uint16_t* src) {
    return hn::PromoteTo(kFloats, hn::LoadU(Tag(), reinterpret_cast<const hwy::float16_t*>(src)));
  }
  static HWY_INLINE void store(Vector value, uint16_t* dst) {
    hn::StoreU(hn::DemoteTo(Tag(), value), Tag(), reinterpret_cast<hwy::float16_t*>(dst));
  }
};
struct Bfloat {
  using Element = uint16_t;
  using Tag = hn::Rebind<uint16_t, Floats>;
  static HWY_INLINE Vector load(const uint16_t* src) {
    return hn::BitCast(kFloats, hn::ShiftLeft<16>(hn::PromoteTo(Words(), hn::LoadU(Tag(), src))));
  }
  static HWY_INLINE void store(Vector value, uint16_t* dst) {  // nearest even; Highway's own conversion truncates
    const auto bits = hn::BitCast(Words(), value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Words(), 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(Words(), 0x7fffu))));
    const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(Words(), 0x40u));
    const auto number = hn::RebindMask(Words(), hn::Eq(value, value));
    const auto result = hn::BitCast(Integers(), hn::IfThenElse(number, rounded, quiet));
    hn::StoreU(hn::DemoteTo(Tag(), result), Tag(), dst);
  }
};
struct Int8 {
  using Element = int8_t;
  using Tag = hn::Rebind<int8_t, Floats>;
  static HWY_INLINE Vector load(const int8_t* src) {
    return hn::ConvertTo(kFloats, hn::PromoteTo(Integers(), hn::LoadU(Tag(), src)));
  }
};

template <class Type> HWY_INLINE void to_floats(float* dst, const typename Type::Element* src, int64_t count) {
  map(dst, src, count,
      [](float* to, const typename Type::Element* from) HWY_ATTR { hn::StoreU(Type::load(from), kFloats, to); });
}
template <class Type> HWY_INLINE void from_floats(uint16_t* dst, const float* src, int64_t count) {
  map(dst, src, count, [](uint16_t* to, const float* from) HWY_ATTR { Type::store(hn::LoadU(kFloats, from), to); });
}
void from_half(float* dst, const uint16_t* src, int64_t count) { to_floats<Half>(dst, src, count); }
void to_half(uint16_t* dst, const float* src, int64_t count) { from_floats<Half>(dst, src, count); }
void from_bfloat(float* dst, const uint16_t* src, int64_t count) { to_floats<Bfloat>(dst, src, count); }
void to_bfloat(uint16_t* dst, const float* src, int64_t count) { from_floats<Bfloat>(dst, src, count); }

// ---- bytes of rows to columns ---------------------------------------------------------------------------------------
// Squares of 16 x 16 bytes, one in each block of 16 bytes of a vector: each step interleaves the first half of the
// vectors with the second; after four steps vector i holds byte i of all.

// 16 bytes of each of a vector's blocks, from rows 16 apart.
template <class D> HWY_INLINE hn::Vec<D> load_blocks(D d, const uint8_t* src, int64_t src_step) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, src);
  } else {
    const hn::Half<D> half;
    const int64_t upper = static_cast<int64_t>(hn::MaxLanes(half)) * src_step;
    return hn::Combine(d, load_blocks(half, src + upper, src_step), load_blocks(half, src, src_step));
  }
}
template <class D>
void transpose_squares(D d, uint8_t* dst, int64_t dst_step, const uint8_t* src, int64_t src_step, int64_t cols) {
  for (int64_t c = 0; c < cols; c += 16) {
    hn::Vec<D> a[16], b[16];
    SIMPLER_UNROLL
    for (int i = 0; i < 16; ++i) a[i] = load_blocks(d, src + i * src_step + c, src_step);
    SIMPLER_UNROLL
    for (int step = 0; step < 4; ++step) {
      SIMPLER_UNROLL
      for (int i = 0; i < 8; ++i) {
        b[2 * i] = hn::InterleaveLower(d, a[i], a[i + 8]);
        b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + 8]);
      }
      SIMPLER_UNROLL
      for (int i = 0; i < 16; ++i) a[i] = b[i];
    }
    SIMPLER_UNROLL
    for (int i = 0; i < 16; ++i) hn::StoreU(a[i], d, dst + (c + i) * dst_step);
  }
}
void transpose_bytes(uint8_t* dst, int64_t dst_step, const uint8_t* src, int64_t src_step, int64_t rows, int64_t cols) {
  constexpr int kBytes = HWY_MAX_BYTES < 32 ? HWY_MAX_BYTES : 32;  // twice as many interleave twice as slowly
  const hn::FixedTag<uint8_t, kBytes> whole;
  const hn::FixedTag<uint8_t, 16> block;
  const int64_t squares = cols / 16 * 16;
  int64_t r = 0;
  for (; r + kBytes <= rows; r += kBytes)
    transpose_squares(whole, dst + r, dst_step, src + r * src_step, src_step, squares);
  for (; r + 16 <= rows; r += 16) transpose_squares(block, dst + r, dst_step, src + r * src_step, src_step, squares);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = i < r ? squares : 0; c < cols; ++c) dst[c * dst_step + i] = src[i * src_step + c];
}

// ---- products -------------------------------------------------------------------------------------------------------
// Register tiles of kTileRows x kPanel: enough sums to cover the latency of the fused multiply-add, and few enough for
// the registers (32 vectors, of AVX2 16).
constexpr int kPanel = kLanes * 2 < 16 ? 16 : kLanes * 2;
constexpr int kVectors = kPanel / kLanes;
constexpr int kTileRows = HWY_TARGET == HWY_AVX3 ? 8 : 4;
constexpr int kInner = 128;  // products per sum; int8: exact in a float up to 1024
constexpr int kLeftRows = 128;
constexpr int kLeftPitch = kInner + 16;  // rows a power of two apart would share few lines of the cache

int64_t offset(const SimplerTileAxis& axis, int64_t i) {
  if (axis.run == 0) return i * axis.step;
  const int64_t p = axis.first + i;
  return p / axis.run * axis.block + p % axis.run * axis.step;
}
// How many of the `wanted` elements from i on are `step` apart.
int run_left(const SimplerTileAxis& axis, int i, int wanted) {
  if (axis.run == 0) return wanted;
  const int left = axis.run - (axis.first + i) % axis.run;
  return left < wanted ? left : wanted;
}

// Part of an operand as floats: element (r, c) at out[r * pitch + c].
template <class Type>
void pack(const SimplerTileMatrix& m, int row, int col, int rows, int cols, float* out, int64_t pitch) {
  using Element = typename Type::Element;
  const Element* const base = static_cast<const Element*>(m.base);
  for (int c = 0; c < cols;) {
    const int n = run_left(m.col, col + c, cols - c);
    const Element* const start = base + offset(m.col, col + c);
    for (int r = 0; r < rows; ++r) {
      const Element* const from = start + offset(m.row, row + r);
      float* const to = out + r * pitch + c;
      if (m.col.step == 1) {
        to_floats<Type>(to, from, n);
        continue;
      }
      Element gathered[kInner];
      for (int i = 0; i < n; ++i) gathered[i] = from[i * m.col.step];
      to_floats<Type>(to, gathered, n);
    }
    c += n;
  }
}
void pack(const SimplerTileMatrix& m, int row, int col, int rows, int cols, float* out, int64_t pitch) {
  switch (m.element) {
    case SIMPLER_TILE_HALF: return pack<Half>(m, row, col, rows, cols, out, pitch);
    case SIMPLER_TILE_BFLOAT: return pack<Bfloat>(m, row, col, rows, cols, out, pitch);
    case SIMPLER_TILE_INT8: return pack<Int8>(m, row, col, rows, cols, out, pitch);
    default: return pack<Float>(m, row, col, rows, cols, out, pitch);
  }
}

// Rows of floats whose elements lie beside each other in runs, `block` apart.
struct Left {
  const float* base;
  int64_t row_step, block;
  int run;
};
// Where a register tile lies: row i, vector v at base + row[i] + vector[v]. A null base: nowhere.
struct Place {
  float* base;
  int64_t row[kTileRows], vector[kVectors];
};

// to = from + left x panel; `panel` has `inner` rows of kPanel floats.
template <int kRows> HWY_NOINLINE void multiply_panel(const Left& left, const float* HWY_RESTRICT panel, int inner,
                                                      const Place& to, const Place& from) {
  Vector sum[kRows][kVectors];
  SIMPLER_UNROLL
  for (int i = 0; i < kRows; ++i) {
    SIMPLER_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(kFloats);
  }
  const float* block = left.base;
  const int64_t row_step = left.row_step;
  for (int k0 = 0; k0 < inner; k0 += left.run, block += left.block) {
    const int n = inner - k0 < left.run ? inner - k0 : left.run;
    for (int k = 0; k < n; ++k, panel += kPanel) {
      Vector b[kVectors];
      SIMPLER_UNROLL
      for (int v = 0; v < kVectors; ++v) b[v] = hn::Load(kFloats, panel + v * kLanes);
      SIMPLER_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const Vector a = hn::Set(kFloats, block[i * row_step + k]);
        SIMPLER_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(a, b[v], sum[i][v]);
      }
    }
  }
  SIMPLER_UNROLL
  for (int i = 0; i < kRows; ++i) {
    SIMPLER_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      if (from.base != nullptr)
        sum[i][v] = hn::Add(hn::LoadU(kFloats, from.base + from.row[i] + from.vector[v]), sum[i][v]);
      hn::StoreU(sum[i][v], kFloats, to.base + to.row[i] + to.vector[v]);
    }
  }
}

// True if every panel of a matrix consists of whole vectors of floats.
bool has_vectors(const SimplerTileMatrix& m) {
  return m.element == SIMPLER_TILE_FLOAT && m.col.step == 1 &&
         (m.col.run == 0 || (m.col.run % kLanes == 0 && m.col.first % kLanes == 0));
}
Place place(const SimplerTileMatrix& m, int row, int col, int rows) {
  Place place = {static_cast<float*>(m.base), {}, {}};
  if (m.base == nullptr) return place;
  for (int i = 0; i < rows; ++i) place.row[i] = offset(m.row, row + i);
  for (int v = 0; v < kVectors; ++v) place.vector[v] = offset(m.col, col + v * kLanes);
  return place;
}

template <class A> void add_elements(const SimplerTileMatrix& out, const SimplerTileMatrix& start, int row, int col,
                                     int rows, int cols, const float* sums) {
  A* const to = static_cast<A*>(out.base);
  const A* const from = static_cast<const A*>(start.base);
  int64_t to_col[kPanel], from_col[kPanel];
  for (int j = 0; j < cols; ++j) {
    to_col[j] = offset(out.col, col + j);
    from_col[j] = from == nullptr ? 0 : offset(start.col, col + j);
  }
  for (int i = 0; i < rows; ++i) {
    A* const to_row = to + offset(out.row, row + i);
    const A* const from_row = from == nullptr ? nullptr : from + offset(start.row, row + i);
    for (int j = 0; j < cols; ++j) {
      A value = static_cast<A>(sums[i * kPanel + j]);
      if (from_row != nullptr) {
        const A held = from_row[from_col[j]];
        if constexpr (std::is_same_v<A, int32_t>)  // wraps around
          value = static_cast<A>(static_cast<uint32_t>(held) + static_cast<uint32_t>(value));
        else
          value = held + value;
      }
      to_row[to_col[j]] = value;
    }
  }
}

using MultiplyPanel = void (*)(const Left&, const float*, int, const Place&, const Place&);

void multiply(const SimplerTileProduct* product) {
  const SimplerTileMatrix &out = product->out, &left = product->left, &right = product->right;
  alignas(64) float left_rows[kLeftRows * kLeftPitch];
  alignas(64) float panel[kInner * kPanel];
  alignas(64) float sums[kTileRows * kPanel];
  const int m = product->rows, n = product->cols, inner = product->inner;
  // Left operands of floats are read where they lie, if a block of kInner starts with a run.
  const bool direct = left.element == SIMPLER_TILE_FLOAT && left.col.step == 1 && left.row.run == 0 &&
                      (left.col.run == 0 || (kInner % left.col.run == 0 && left.col.first == 0));
  const bool whole = has_vectors(out) && (product->start.base == nullptr || has_vectors(product->start));

  for (int k0 = 0; k0 < inner; k0 += kInner) {
    const int length = inner - k0 < kInner ? inner - k0 : kInner;
    const SimplerTileMatrix& start = k0 == 0 ? product->start : out;
    for (int m0 = 0; m0 < m; m0 += kLeftRows) {
      const int rows = m - m0 < kLeftRows ? m - m0 : kLeftRows;
      Left a = {left_rows, kLeftPitch, 0, kInner};
      if (direct)
        a = {static_cast<const float*>(left.base) + m0 * left.row.step + offset(left.col, k0), left.row.step,
             left.col.block, left.col.run == 0 ? kInner : left.col.run};
      else
        pack(left, m0, k0, rows, length, left_rows, kLeftPitch);
      for (int c = 0; c < n; c += kPanel) {
        const int width = n - c < kPanel ? n - c : kPanel;
        if (width < kPanel) std::memset(panel, 0, sizeof panel);
        pack(right, k0, c, length, width, panel, kPanel);
        for (int r = 0; r < rows;) {
          int height = kTileRows;  // then smaller powers of two
          while (height > rows - r) height /= 2;
          const MultiplyPanel multiply_rows = height == 8   ? multiply_panel<(kTileRows > 4 ? 8 : 4)>
                                              : height == 4 ? multiply_panel<4>
                                              : height == 2 ? multiply_panel<2>
                                                            : multiply_panel<1>;
          const Left part = {a.base + r * a.row_step, a.row_step, a.block, a.run};
          if (whole && width == kPanel) {
            multiply_rows(part, panel, length, place(out, m0 + r, c, height), place(start, m0 + r, c, height));
          } else {
            Place here = {sums, {}, {}};
            for (int i = 0; i < height; ++i) here.row[i] = int64_t{i} * kPanel;
            for (int v = 0; v < kVectors; ++v) here.vector[v] = v * kLanes;
            multiply_rows(part, panel, length, here, Place{nullptr, {}, {}});
            if (out.element == SIMPLER_TILE_INT32)
              add_elements<int32_t>(out, start, m0 + r, c, height, width, sums);
            else
              add_elements<float>(out, start, m0 + r, c, height, width, sums);
          }
          r += height;
        }
      }
    }
  }
}

constexpr const char* kTarget = HWY_TARGET == HWY_AVX3 ? "avx512" : HWY_TARGET == HWY_AVX2 ? "avx2" : "neon";

}  // namespace

extern const SimplerTileKernels kKernels;
constexpr SimplerTileKernels kKernels = {sizeof(SimplerTileKernels),
                                         kTarget,
                                         multiply,
                                         exp_run,
                                         log_run,
                                         from_half,
                                         to_half,
                                         from_bfloat,
                                         to_bfloat,
                                         transpose_bytes};

}  // namespace simpler::tile::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#undef SIMPLER_UNROLL
#endif  // targets

#if HWY_ONCE
namespace simpler::tile {

const SimplerTileKernels* compiled_kernels(const char* target) {
  const SimplerTileKernels* const tables[] = {
#if HWY_TARGETS & HWY_AVX3
    &N_AVX3::kKernels,
#endif
#if HWY_TARGETS & HWY_AVX2
    &N_AVX2::kKernels,
#endif
#if HWY_TARGETS & HWY_NEON
    &N_NEON::kKernels,
#endif
    nullptr
  };
  for (const SimplerTileKernels* table : tables)
    if (table != nullptr && std::strcmp(table->target, target) == 0) return table;
  return nullptr;
}

}  // namespace simpler::tile
#endif  // HWY_ONCE
