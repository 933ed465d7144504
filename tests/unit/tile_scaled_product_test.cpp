// Products of 8-bit floats with block scales, and of one row, against double loops.
#include <set>

#include "unit/support/tile_support.h"

using namespace tile_test;

class TileScaledProduct : public TileTest {};

namespace {

// A value of an 8-bit float from its definition.
double defined(int code, int exponent_bits, int fraction_bits, bool infinities) {
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = (code >> fraction_bits) & top, fraction = code & ((1 << fraction_bits) - 1);
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  if (infinities && exponent == top) return fraction != 0 ? NAN : sign * INFINITY;
  if (!infinities && (code & 0x7f) == 0x7f) return NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                               : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits));
}
// Of all codes the nearest, the even one of two.
template <class T> void check_format(int exponent_bits, int fraction_bits, bool infinities) {
  std::vector<std::pair<double, int>> finite;
  for (int code = 0; code < 256; ++code) {
    const double value = defined(code, exponent_bits, fraction_bits, infinities);
    const float got = static_cast<float>(bits_as<T>(static_cast<uint8_t>(code)));
    ASSERT_TRUE(got == value || (std::isnan(got) && std::isnan(value))) << "code " << code;
    if (code < 128 && std::isfinite(value)) finite.emplace_back(value, code);
  }
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const float near = static_cast<float>(std::ldexp(random.in(-1, 1), random.between(-20, 18)));
    const float x = i % 2 == 0 ? random.bits<float>() : near;
    const T got(x);
    const double magnitude = std::fabs(x), largest = finite.back().first;
    const double step = largest - finite[finite.size() - 2].first;
    if (std::isnan(x) || !(magnitude < largest + step / 2)) {
      const float value = static_cast<float>(got);
      const bool over = infinities && !std::isnan(x) ? std::isinf(value) : std::isnan(value);
      ASSERT_TRUE(over || magnitude == largest + step / 2) << x;
      continue;
    }
    double best = INFINITY;
    int code = 0;
    for (const auto& [value, candidate] : finite) {
      const double distance = std::fabs(value - magnitude);
      if (distance < best || (distance == best && candidate % 2 == 0)) best = distance, code = candidate;
    }
    ASSERT_EQ(bits_as<uint8_t>(got) & 0x7f, code) << x;
    ASSERT_EQ((bits_as<uint8_t>(got) & 0x80) != 0, std::signbit(x));
  }
}

template <class L, class R, int M, int K, int N> void check_product(int rows, int inner, int cols) {
  Random random(static_cast<uint64_t>(rows * 1000 + inner));
  Tile<TileType::Left, L, M, K, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor> left(rows, inner);
  Tile<TileType::Right, R, K, N, BLayout::RowMajor, DYNAMIC, DYNAMIC, SLayout::ColMajor> right(inner, cols);
  TileLeftScale<float8_e8m0_t, M, K / 32> left_scale;
  TileRightScale<float8_e8m0_t, K / 32, N> right_scale;
  AccTile<float, M, N> acc(rows, cols), in(rows, cols);
  Tile<TileType::Bias, float, 1, N> bias;
  TASSIGN(left, 0);
  TASSIGN(right, 0);
  TASSIGN(left_scale, 0);
  TASSIGN(right_scale, 0);
  TASSIGN(acc, 0);
  TASSIGN(in, 0x10000);
  TASSIGN(bias, 0);
  const auto value = [&] { return static_cast<float>(random.in(-2, 2)); };
  std::vector<double> a(M * K), b(K * N);
  std::vector<float> start(M * N), bias_values(N);
  for (int i = 0; i < M * (K / 32); ++i) left_scale.SetValue(i, float8_e8m0_t(uint8_t(random.between(124, 130))));
  for (int i = 0; i < N * (K / 32); ++i) right_scale.SetValue(i, float8_e8m0_t(uint8_t(random.between(124, 130))));
  for (int r = 0; r < M; ++r)
    for (int k = 0; k < K; ++k) {
      element(left, r, k) = L(value());
      a[r * K + k] = double(float(element(left, r, k))) * float(element(left_scale, r, k / 32));
    }
  for (int k = 0; k < K; ++k)
    for (int c = 0; c < N; ++c) {
      const R v(value());
      right.data()[k * N + c] = v;  // right operands are kept row-major
      b[k * N + c] = double(float(v)) * float(element(right_scale, k / 32, c));
    }
  for (int r = 0; r < M; ++r)
    for (int c = 0; c < N; ++c) element(in, r, c) = start[r * N + c] = value();
  for (int c = 0; c < N; ++c) bias.SetValue(c, bias_values[c] = value());
  const auto check = [&](const char* what, auto base) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        double want = base(r, c), magnitude = std::fabs(want);
        for (int k = 0; k < inner; ++k) {
          want += a[r * K + k] * b[k * N + c];
          magnitude += std::fabs(a[r * K + k] * b[k * N + c]);
        }
        ASSERT_NEAR(element(acc, r, c), want, 1e-6 * magnitude) << what << " " << r << ", " << c;
      }
  };
  TMATMUL_MX(acc, left, left_scale, right, right_scale);
  check("plain", [](int, int) { return 0.0; });
  TMATMUL_MX(acc, in, left, left_scale, right, right_scale);
  check("accumulating", [&](int r, int c) { return double(start[r * N + c]); });
  TMATMUL_MX(acc, left, left_scale, right, right_scale, bias);
  check("with bias", [&](int, int c) { return double(bias_values[c]); });
  if (rows == 1) {
    TGEMV_MX(acc, left, left_scale, right, right_scale);
    check("one row", [](int, int) { return 0.0; });
  }
}

}  // namespace

TEST_F(TileScaledProduct, FormatsRoundAsTheyAreDefined) {
  check_format<float8_e4m3_t>(4, 3, false);
  check_format<float8_e5m2_t>(5, 2, true);
  EXPECT_EQ(float(float8_e8m0_t(uint8_t{127})), 1.0f);
  EXPECT_EQ(float(float8_e8m0_t(uint8_t{0})), std::ldexp(1.0f, -127));
  EXPECT_TRUE(std::isnan(float(float8_e8m0_t(uint8_t{255}))));
}
TEST_F(TileScaledProduct, ScalesEachThirtyTwoElements) {
  check_product<float8_e4m3_t, float8_e4m3_t, 32, 64, 32>(32, 64, 32);
  check_product<float8_e4m3_t, float8_e5m2_t, 32, 192, 160>(21, 170, 133);
  check_product<float8_e5m2_t, float8_e4m3_t, 96, 320, 32>(96, 320, 32);
  check_product<float8_e5m2_t, float8_e5m2_t, 16, 64, 32>(1, 33, 5);
}
TEST_F(TileScaledProduct, ConvertsToAndFromEightBitFloats) {
  RowTile<float, 1, 64> wide(1, 64);
  RowTile<float8_e4m3_t, 1, 64> narrow(1, 64);
  TASSIGN(wide, 0);
  TASSIGN(narrow, 0x1000);
  Random random(4);
  const auto in = fill_random(wide, random);
  TCVT(narrow, wide, RoundMode::CAST_RINT);
  TCVT(wide, narrow, RoundMode::CAST_RINT);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(wide.GetValue(i), float(float8_e4m3_t(in[i])));
  TEXPANDS(wide, 1e6f);
  TCVT(narrow, wide, RoundMode::CAST_RINT, SaturationMode::ON);
  EXPECT_EQ(float(narrow.GetValue(0)), 448.0f);
}

TEST_F(TileScaledProduct, MultipliesOneRow) {
  Random random(5);
  TileLeft<::half, 1, 64> left;
  TileRight<::half, 64, 32> right;
  TileAcc<float, 1, 32> acc, in;
  Tile<TileType::Bias, float, 1, 32> bias;
  TASSIGN(left, 0);
  TASSIGN(right, 0);
  TASSIGN(acc, 0);
  TASSIGN(in, 0x1000);
  TASSIGN(bias, 0);
  const auto a = fill_random(left, random);
  const auto start = fill_random(in, random);
  const auto offsets = fill_random(bias, random);
  const auto b = random.values<::half>(64 * 32);
  for (int i = 0; i < 64 * 32; ++i) right.data()[i] = b[i];
  const auto check = [&](auto base) {
    for (int c = 0; c < 32; ++c) {
      double want = base(c), magnitude = std::fabs(want);
      for (int k = 0; k < 64; ++k) {
        want += decode(a[k]) * decode(b[k * 32 + c]);
        magnitude += std::fabs(decode(a[k]) * decode(b[k * 32 + c]));
      }
      ASSERT_NEAR(element(acc, 0, c), want, 1e-6 * magnitude) << c;
    }
  };
  TGEMV(acc, left, right);
  check([](int) { return 0.0; });
  TGEMV_ACC(acc, in, left, right);
  check([&](int c) { return double(start[c]); });
  TGEMV_BIAS(acc, left, right, bias);
  check([&](int c) { return double(offsets[c]); });
  TMATMUL_ACC(acc, left, right);  // twice the product now
  for (int c = 0; c < 32; ++c) {
    double want = offsets[c], magnitude = 1;
    for (int k = 0; k < 64; ++k) {
      want += 2 * decode(a[k]) * decode(b[k * 32 + c]);
      magnitude += std::fabs(2 * decode(a[k]) * decode(b[k * 32 + c]));
    }
    ASSERT_NEAR(element(acc, 0, c), want, 1e-6 * magnitude);
  }
}
TEST_F(TileScaledProduct, RefusesAVectorOfSeveralRows) {
  TileLeft<::half, 16, 32> left;
  TileRight<::half, 32, 16> right;
  TileAcc<float, 16, 16> acc;
  TASSIGN(left, 0);
  TASSIGN(right, 0);
  TASSIGN(acc, 0);
  EXPECT_EQ(failure_of([&] { TGEMV(acc, left, right); }),
            "TGEMV: the left operand has 16 valid rows; a vector has one");
}
