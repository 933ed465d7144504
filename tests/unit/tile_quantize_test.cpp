// TQUANT, TDEQUANT and the forms with a scale for each column, against plain loops.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileQuantize : public TileTest {};

namespace {
template <class D> D quantized(double value) {
  const double low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
  return static_cast<D>(std::isnan(value) ? 0 : std::min(std::max(std::nearbyint(value), low), high));
}
template <class T> void check_quantize() {
  Random random(1);
  for (int rows : {0, 1, 13, 16})
    for (int cols : {1, 31, 64}) {
      RowTile<T, 16, 64> src(rows, cols), back(rows, cols);
      RowTile<int8_t, 16, 64> symmetric(rows, cols);
      RowTile<uint8_t, 16, 64> asymmetric(rows, cols);
      ColTile<float, 16, 1> scale(rows, 1), offset(rows, 1);
      TASSIGN(src, 0);
      TASSIGN(symmetric, 0x2000);
      TASSIGN(asymmetric, 0x3000);
      TASSIGN(scale, 0x4000);
      TASSIGN(offset, 0x4100);
      TASSIGN(back, 0x5000);
      const auto x = fill_random(src, random);
      const auto s = fill_random(scale, random), o = fill_random(offset, random);
      TQUANT<QuantType::INT8_SYM>(symmetric, src, scale);
      TQUANT<QuantType::INT8_ASYM>(asymmetric, src, scale, &offset);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
          const float product = static_cast<float>(decode(x[r * 64 + c])) * s[r];
          ASSERT_EQ(element(symmetric, r, c), quantized<int8_t>(product));
          ASSERT_EQ(element(asymmetric, r, c), quantized<uint8_t>(product + o[r]));
        }
      TDEQUANT(back, symmetric, scale);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c)
          ASSERT_TRUE(same_value(element(back, r, c), encode<T>(float(element(symmetric, r, c)) * s[r])));
      TDEQUANT(back, asymmetric, scale, offset);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c)
          ASSERT_TRUE(same_value(element(back, r, c), encode<T>((float(element(asymmetric, r, c)) - o[r]) * s[r])));
    }
}
}  // namespace

TEST_F(TileQuantize, ScalesRowsToBytesAndBack) {
  check_quantize<float>();
  check_quantize<::half>();
  check_quantize<::bfloat16_t>();
}
TEST_F(TileQuantize, NeedsOffsetsForTheAsymmetricForm) {
  RowTile<float, 1, 32> src(1, 32);
  RowTile<uint8_t, 1, 32> dst(1, 32);
  ColTile<float, 8, 1> scale(1, 1);
  TASSIGN(src, 0);
  TASSIGN(dst, 0x100);
  TASSIGN(scale, 0x200);
  EXPECT_NE(failure_of([&] { TQUANT<QuantType::INT8_ASYM>(dst, src, scale); }).find("needs offsets"),
            std::string::npos);
}

namespace {
template <class A, class D> void check_columns() {
  Random random(2);
  AccTile<A, 32, 48> acc(21, 37);
  NzTile<D, 32, 64> mat(21, 37);
  Tile<TileType::Scaling, uint64_t, 1, 48> scales;
  using Memory = GlobalTensor<D, pto::Shape<1, 1, 1, 32, 48>, pto::Stride<1, 1, 1, 48, 1>>;
  std::vector<D> memory(32 * 48), relu(32 * 48);
  TASSIGN(acc, 0);
  TASSIGN(mat, 0);
  TASSIGN(scales, 0);
  const auto in = fill_random(acc, random);
  std::vector<float> factor(48);
  for (int c = 0; c < 48; ++c) {
    factor[c] = static_cast<float>(random.in(-2, 2));
    scales.SetValue(c, uint64_t{0xabcd} << 32 | bits_as<uint32_t>(factor[c]));
  }
  Memory stored(memory.data()), rectified(relu.data());
  TSTORE(stored, acc, scales);
  TSTORE_FP<AccTile<A, 32, 48>, Memory, decltype(scales), ReluPreMode::NormalRelu>(rectified, acc, scales);
  TMOV_FP(mat, acc, scales);
  const auto want = [&](float value) {
    if constexpr (std::is_integral_v<D>)
      return quantized<D>(value);
    else
      return encode<D>(value);
  };
  for (int r = 0; r < 32; ++r)
    for (int c = 0; c < 48; ++c) {
      const bool valid = r < 21 && c < 37;
      const float value = static_cast<float>(in[r * 48 + c]) * factor[c];
      const float positive = in[r * 48 + c] > 0 ? value : 0.0f * factor[c];
      ASSERT_TRUE(same_value(memory[r * 48 + c], valid ? want(value) : D(0))) << r << ", " << c;
      ASSERT_TRUE(same_value(relu[r * 48 + c], valid ? want(positive) : D(0))) << r << ", " << c;
      ASSERT_TRUE(!valid || same_value(element(mat, r, c), want(value)));
    }
  TMOV(mat, acc, scales);
  ASSERT_TRUE(same_value(element(mat, 20, 36), want(static_cast<float>(in[20 * 48 + 36]) * factor[36])));
}
}  // namespace

TEST_F(TileQuantize, ScalesTheColumnsOfAccumulators) {
  check_columns<float, int8_t>();
  check_columns<float, ::half>();
  check_columns<int32_t, ::half>();
  check_columns<int32_t, int8_t>();
}
