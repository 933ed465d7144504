// TCVT against conversions from the definition of the formats, in every rounding mode.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileConvert : public TileTest {};

namespace {

const std::vector<RoundMode> kModes = {RoundMode::CAST_NONE,  RoundMode::CAST_RINT, RoundMode::CAST_ROUND,
                                       RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL, RoundMode::CAST_TRUNC,
                                       RoundMode::CAST_ODD};

template <class D, class S>
std::vector<D> converted(const std::vector<S>& in, RoundMode mode, SaturationMode saturation) {
  constexpr int kCols = 512;
  RowTile<S, 1, kCols> s(1, kCols);
  RowTile<D, 1, kCols> d(1, kCols);
  TASSIGN(s, 0);
  TASSIGN(d, 0x4000);
  std::vector<D> out;
  for (size_t at = 0; at < in.size(); at += kCols) {
    const int n = static_cast<int>(std::min<size_t>(kCols, in.size() - at));
    s.SetValidCol(n);
    d.SetValidCol(n);
    std::memcpy(static_cast<void*>(s.data()), &in[at], n * sizeof(S));
    TCVT(d, s, mode, saturation);
    out.insert(out.end(), d.data(), d.data() + n);
  }
  return out;
}

double rounded_to_integer(double v, RoundMode mode) {
  const double below = std::floor(std::fabs(v)), part = std::fabs(v) - below;
  bool up = false;
  switch (mode) {
    case RoundMode::CAST_RINT: up = part > 0.5 || (part == 0.5 && std::fmod(below, 2) != 0); break;
    case RoundMode::CAST_ROUND: up = part >= 0.5; break;
    case RoundMode::CAST_FLOOR: up = v < 0 && part > 0; break;
    case RoundMode::CAST_CEIL: up = v > 0 && part > 0; break;
    case RoundMode::CAST_ODD: up = part > 0 && std::fmod(below, 2) == 0; break;
    default: break;
  }
  return std::copysign(below + (up ? 1 : 0), v);
}

// All magnitudes, ties of both formats, neighbours of the limits, special values.
std::vector<float> interesting_floats() {
  std::vector<float> all = {0.0f,          -0.0f,         INFINITY,      -INFINITY,     NAN,           65504.0f,
                            65519.0f,      65519.996f,    65520.0f,      65536.0f,      1e-40f,        -1e-45f,
                            3.3895314e38f, 3.3961776e38f, 3.4028235e38f, 2147483520.0f, 2147483648.0f, -2147483648.0f,
                            8388607.5f,    8388608.0f,    16777217.0f,   127.5f,        -128.5f,       32767.5f,
                            255.5f,        0.49999997f,   6.1035156e-5f, 6.0975552e-5f};
  Random random(1);
  for (int i = 0; i < 6000; ++i) all.push_back(random.bits<float>());
  for (int i = 0; i < 4000; ++i) all.push_back(static_cast<float>(random.in(-300, 300)));
  for (int i = -400; i < 400; ++i) all.push_back(i * 0.25f);
  for (int i = 0; i < 4000; ++i) {  // ties: a short float and half a place more
    all.push_back(bits_as<float>((random.bits<uint32_t>() & 0xffff0000u) | 0x8000u));
    all.push_back(bits_as<float>((random.bits<uint32_t>() & 0x8fffe000u) | 0x30001000u));
    all.push_back(static_cast<float>(std::ldexp(random.between(0, 2048) + 0.5, -24)));  // half's subnormals
  }
  for (float& v : all)
    if (random.between(0, 1) == 0) v = -v;
  return all;
}

template <class D> const ShortFloat& format_of() { return std::is_same_v<D, ::half> ? kHalfFormat : kBfloatFormat; }
template <class D, class S> void check_to_short_float(const std::vector<S>& in) {
  const double largest = decode(std::numeric_limits<D>::max());
  for (RoundMode mode : kModes)
    for (SaturationMode saturation : {SaturationMode::OFF, SaturationMode::ON}) {
      const auto got = converted<D>(in, mode, saturation);
      for (size_t i = 0; i < in.size(); ++i) {
        const double value = decode(in[i]);
        D want = bits_as<D>(format_of<D>().encode(value, mode));
        if (saturation == SaturationMode::ON && std::isinf(decode(want)))
          want = encode<D>(std::copysign(largest, value));
        ASSERT_TRUE(same_value(got[i], want))
            << value << " in mode " << int(mode) << " gives " << decode(got[i]) << ", not " << decode(want);
      }
    }
}
template <class D, class S> void check_to_integer(const std::vector<S>& in) {
  for (RoundMode mode : kModes)
    for (SaturationMode saturation : {SaturationMode::OFF, SaturationMode::ON}) {
      const auto got = converted<D>(in, mode, saturation);
      for (size_t i = 0; i < in.size(); ++i) {
        const double value = decode(in[i]), whole = rounded_to_integer(value, mode);
        D want;
        if (std::isnan(value))
          want = 0;
        else if (whole < double(std::numeric_limits<D>::min()))
          want = std::numeric_limits<D>::min();
        else if (whole > double(std::numeric_limits<D>::max()))
          want = std::numeric_limits<D>::max();
        else
          want = static_cast<D>(whole);
        ASSERT_EQ(got[i], want) << value << " in mode " << int(mode);
      }
    }
}
template <class T> std::vector<T> all_codes() {
  std::vector<T> all;
  for (int code = 0; code < 0x10000; ++code) all.push_back(bits_as<T>(static_cast<uint16_t>(code)));
  return all;
}
template <class S> std::vector<S> integers() {
  std::vector<S> all = {0, 1, static_cast<S>(-1), std::numeric_limits<S>::min(), std::numeric_limits<S>::max()};
  Random random(2);
  for (int i = 0; i < 3000; ++i)
    all.push_back(static_cast<S>(random.bits<uint64_t>() >> random.between(64 - 8 * int(sizeof(S)), 63)));
  // Ties of bfloat16_t, and their neighbours, which a float cannot tell apart.
  for (int i = 0; i < 3000; ++i)
    all.push_back(
        static_cast<S>(((random.between(128, 255) << 1 | 1) << random.between(0, 22)) + random.between(-1, 1)));
  return all;
}
template <class D, class S> void check_from_integer() {
  const auto in = integers<S>();
  const auto plain = converted<D>(in, RoundMode::CAST_RINT, SaturationMode::OFF);
  const auto clamped = converted<D>(in, RoundMode::CAST_RINT, SaturationMode::ON);
  for (size_t i = 0; i < in.size(); ++i) {
    if constexpr (std::is_integral_v<D>) {
      ASSERT_EQ(plain[i], static_cast<D>(in[i]));
      const double bounded =
          std::clamp(double(in[i]), double(std::numeric_limits<D>::min()), double(std::numeric_limits<D>::max()));
      ASSERT_EQ(double(clamped[i]), bounded) << double(in[i]);
    } else {
      ASSERT_TRUE(same_value(plain[i], encode<D>(double(in[i])))) << double(in[i]) << " gives " << decode(plain[i]);
      ASSERT_FALSE(std::isinf(decode(clamped[i])));
    }
  }
}

}  // namespace

TEST_F(TileConvert, RoundsFloatToBfloatInEveryMode) { check_to_short_float<::bfloat16_t>(interesting_floats()); }
TEST_F(TileConvert, RoundsFloatToHalfInEveryMode) { check_to_short_float<::half>(interesting_floats()); }
TEST_F(TileConvert, RoundsBetweenTheShortFormats) {
  check_to_short_float<::half>(all_codes<::bfloat16_t>());
  check_to_short_float<::bfloat16_t>(all_codes<::half>());
}
TEST_F(TileConvert, WidensExactly) {
  const auto halves = all_codes<::half>();
  const auto bfloats = all_codes<::bfloat16_t>();
  const auto a = converted<float>(halves, RoundMode::CAST_NONE, SaturationMode::OFF);
  const auto b = converted<float>(bfloats, RoundMode::CAST_ODD, SaturationMode::OFF);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(same_value(a[i], static_cast<float>(decode(halves[i])))) << i;
    ASSERT_TRUE(same_value(b[i], static_cast<float>(decode(bfloats[i])))) << i;
  }
}
TEST_F(TileConvert, RoundsToIntegersAndSaturates) {
  const auto in = interesting_floats();
  check_to_integer<int32_t>(in);
  check_to_integer<uint32_t>(in);
  check_to_integer<int16_t>(in);
  check_to_integer<int8_t>(in);
  check_to_integer<uint8_t>(in);
  check_to_integer<int8_t>(all_codes<::half>());
  check_to_integer<int32_t>(all_codes<::bfloat16_t>());
}
TEST_F(TileConvert, ConvertsIntegers) {
  check_from_integer<int16_t, int32_t>();
  check_from_integer<uint8_t, int32_t>();
  check_from_integer<int8_t, uint32_t>();
  check_from_integer<int32_t, uint32_t>();
  check_from_integer<uint32_t, int32_t>();
  check_from_integer<int32_t, int8_t>();
  check_from_integer<float, int32_t>();
  check_from_integer<::half, int32_t>();
  check_from_integer<::bfloat16_t, int32_t>();
  check_from_integer<::half, uint8_t>();
  check_from_integer<float, uint32_t>();
}
TEST_F(TileConvert, TakesAScratchTileAndOnlyTheSourcesValidRegion) {
  RowTile<float, 2, 16> s(2, 5), tmp(2, 16);
  RowTile<::bfloat16_t, 2, 32> d(2, 32);
  TASSIGN(s, 0);
  TASSIGN(tmp, 256);
  TASSIGN(d, 512);
  TEXPANDS(s, 1.5f);
  TEXPANDS(d, 9.0f);
  TCVT(d, s, tmp, RoundMode::CAST_ROUND);
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 32; ++c) EXPECT_EQ(decode(d.GetValue(r * 32 + c)), c < 5 ? 1.5 : 9.0);
}
TEST_F(TileConvert, NarrowsInPlace) {
  Random random(3);
  RowTile<float, 4, 64> s(4, 64);
  RowTile<::half, 4, 64> d(4, 64);
  TASSIGN(s, 0);
  TASSIGN(d, 0);
  const auto from = fill_random(s, random);
  TCVT(d, s, RoundMode::CAST_RINT);
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(same_bits(d.GetValue(i), encode<::half>(from[i]))) << i;
}
TEST(TileElementTypes, ConvertScalarsLikeTiles) {
  for (float v : {0.0f, -0.0f, 1.00390625f, 1.01171875f, 3.4028235e38f, 1e-40f, -7e30f}) {
    EXPECT_TRUE(same_bits(::bfloat16_t(v), encode<::bfloat16_t>(v))) << v;
    EXPECT_EQ(static_cast<float>(::bfloat16_t(v)), static_cast<float>(decode(encode<::bfloat16_t>(v))));
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(::bfloat16_t(NAN))));
  EXPECT_EQ(decode(std::numeric_limits<::bfloat16_t>::max()), std::ldexp(255, 120));
  EXPECT_EQ(decode(std::numeric_limits<::bfloat16_t>::epsilon()), std::ldexp(1, -7));
  EXPECT_EQ(static_cast<float>(::bfloat16_t(2.0f) * ::bfloat16_t(3.0f)), 6.0f);
}
TEST(TileElementTypes, KnowTheirLimits) {
  EXPECT_EQ(decode(std::numeric_limits<::half>::max()), 65504);
  EXPECT_EQ(decode(std::numeric_limits<::half>::lowest()), -65504);
  EXPECT_EQ(decode(std::numeric_limits<::half>::epsilon()), std::ldexp(1, -10));
  EXPECT_TRUE(std::isinf(decode(std::numeric_limits<::half>::infinity())));
  EXPECT_EQ(decode(std::numeric_limits<::bfloat16_t>::min()), std::ldexp(1, -126));
  EXPECT_TRUE(std::isnan(decode(std::numeric_limits<::bfloat16_t>::quiet_NaN())));
}
