// Row and column reductions against loops in double or in the integer type.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileReduce : public TileTest {};

namespace {

enum class Kind { kSum, kProduct, kMax, kMin };

template <class T> T reference(Kind kind, const std::vector<T>& values) {
  if constexpr (kFloating<T>) {
    double result = kind == Kind::kSum ? 0 : kind == Kind::kProduct ? 1 : kind == Kind::kMax ? -INFINITY : INFINITY;
    for (T one : values) {
      const double v = decode(one);
      if (kind == Kind::kSum)
        result += v;
      else if (kind == Kind::kProduct)
        result *= v;
      else if (kind == Kind::kMax)
        result = v > result ? v : result;  // NaN is dropped
      else
        result = v < result ? v : result;
    }
    return encode<T>(result);
  } else {
    using U = std::make_unsigned_t<T>;
    T result = kind == Kind::kSum       ? 0
               : kind == Kind::kProduct ? 1
               : kind == Kind::kMax     ? std::numeric_limits<T>::min()
                                        : std::numeric_limits<T>::max();
    for (T v : values) {
      if (kind == Kind::kSum)
        result = static_cast<T>(U(result) + U(v));
      else if (kind == Kind::kProduct)
        result = static_cast<T>(uint64_t(U(result)) * U(v));
      else
        result = kind == Kind::kMax ? std::max(result, v) : std::min(result, v);
    }
    return result;
  }
}

template <class T> void expect_close(Kind kind, T got, T want, double scale) {
  if (!kFloating<T> || kind == Kind::kMax || kind == Kind::kMin) {
    ASSERT_TRUE(same_value(got, want)) << decode(got) << " is not " << decode(want);
    return;
  }
  const double place = std::is_same_v<T, float> ? 1e-6 : std::is_same_v<T, ::half> ? 1.0 / 1024 : 1.0 / 128;
  ASSERT_NEAR(decode(got), decode(want), place * scale + 1e-30);
}

template <class Src, class Dst, class Op> void check_rows(Kind kind, Op op, Random& random) {
  using T = typename Src::DType;
  for (int rows : extents(Src::Rows, random))
    for (int cols : extents(Src::Cols, random)) {
      Src src(rows, cols);
      Dst dst(rows, 1);
      TASSIGN(src, 0);
      TASSIGN(dst, 0x20000);
      const auto from = fill_random(src, random);
      const auto before = fill_random(dst, random);
      op(dst, src);
      const auto got = contents(dst);
      for (int r = 0; r < Dst::Rows; ++r) {
        for (int c = r < rows ? 1 : 0; c < Dst::Cols; ++c)
          ASSERT_TRUE(same_bits(got[r * Dst::Cols + c], before[r * Dst::Cols + c])) << "written outside of the result";
        if (r >= rows) continue;
        const std::vector<T> row(from.begin() + r * Src::Cols, from.begin() + r * Src::Cols + cols);
        double scale = 0, product = 1;
        for (T v : row) scale += std::fabs(decode(v)), product *= decode(v);
        expect_close(kind, got[r * Dst::Cols], reference(kind, row),
                     kind == Kind::kProduct ? 100 * std::fabs(product) : scale);
      }
    }
}
template <class Src, class Dst, class Op> void check_cols(Kind kind, Op op, Random& random) {
  using T = typename Src::DType;
  for (int rows : extents(Src::Rows, random))
    for (int cols : extents(Src::Cols, random)) {
      Src src(rows, cols);
      Dst dst(1, cols);
      TASSIGN(src, 0);
      TASSIGN(dst, 0x20000);
      const auto from = fill_random(src, random);
      op(dst, src);
      for (int c = 0; c < cols; ++c) {
        std::vector<T> col;
        double scale = 0, product = 1;
        for (int r = 0; r < rows; ++r) col.push_back(from[r * Src::Cols + c]);
        for (T v : col) scale += std::fabs(decode(v)), product *= decode(v);
        expect_close(kind, element(dst, 0, c), reference(kind, col),
                     kind == Kind::kProduct ? 100 * std::fabs(product) : scale);
      }
    }
}

#define ROW_OP(NAME)     \
  [](auto& d, auto& s) { \
    auto tmp = s;        \
    NAME(d, s, tmp);     \
  }
#define COL_OP(NAME) [](auto& d, auto& s) { NAME(d, s); }
template <class Src, class Column, class Line> void check_all(uint64_t seed) {
  Random random(seed);
  check_rows<Src, Column>(Kind::kSum, ROW_OP(TROWSUM), random);
  check_rows<Src, Column>(Kind::kMax, ROW_OP(TROWMAX), random);
  check_rows<Src, Column>(Kind::kMin, ROW_OP(TROWMIN), random);
  check_rows<Src, Column>(Kind::kProduct, ROW_OP(TROWPROD), random);
  check_cols<Src, Line>(Kind::kSum, COL_OP(TCOLSUM), random);
  check_cols<Src, Line>(Kind::kMax, COL_OP(TCOLMAX), random);
  check_cols<Src, Line>(Kind::kMin, COL_OP(TCOLMIN), random);
  check_cols<Src, Line>(Kind::kProduct, COL_OP(TCOLPROD), random);
}

}  // namespace

TEST_F(TileReduce, ReducesFloats) {
  check_all<RowTile<float, 24, 104>, ColTile<float, 24, 1>, RowTile<float, 1, 104>>(1);
  check_all<RowTile<float, 24, 104>, RowTile<float, 24, 8>, RowTile<float, 1, 104>>(2);
}
TEST_F(TileReduce, ReducesShortFloatsInFloat) {
  check_all<RowTile<::half, 16, 80>, ColTile<::half, 16, 1>, RowTile<::half, 1, 80>>(3);
  check_all<RowTile<::bfloat16_t, 16, 80>, ColTile<::bfloat16_t, 16, 1>, RowTile<::bfloat16_t, 1, 80>>(4);
}
TEST_F(TileReduce, ReducesIntegersInTheirType) {
  check_all<RowTile<int32_t, 8, 40>, ColTile<int32_t, 8, 1>, RowTile<int32_t, 1, 40>>(5);
  check_all<RowTile<int8_t, 32, 64>, ColTile<int8_t, 32, 1>, RowTile<int8_t, 1, 64>>(6);
}
TEST_F(TileReduce, ReducesOtherLayouts) {
  check_all<ColTile<float, 40, 12>, ColTile<float, 40, 1>, RowTile<float, 1, 16>>(7);
  check_all<NzVectorTile<float, 32, 24>, ColTile<float, 32, 1>, RowTile<float, 1, 24>>(8);
}
TEST_F(TileReduce, ReducesTheLargestTile) {
  Random random(9);
  check_rows<RowTile<float, 128, 256>, ColTile<float, 128, 1>>(Kind::kSum, ROW_OP(TROWSUM), random);
}
TEST_F(TileReduce, DropsNanAndKeepsInfinity) {
  RowTile<float, 4, 24> src(4, 20);
  ColTile<float, 8, 1> dst(4, 1);
  TASSIGN(src, 0);
  TASSIGN(dst, 0x1000);
  for (int c = 0; c < 24; ++c) {
    src.data()[c] = c % 3 == 0 ? NAN : -1.0f * c;
    src.data()[24 + c] = NAN;
    src.data()[48 + c] = -INFINITY;
    src.data()[72 + c] = c == 7 ? INFINITY : 1.0f;
  }
  TROWMAX(dst, src, src);
  EXPECT_EQ(dst.GetValue(0), -1.0f);
  EXPECT_EQ(dst.GetValue(1), -INFINITY);
  EXPECT_EQ(dst.GetValue(2), -INFINITY);
  EXPECT_EQ(dst.GetValue(3), INFINITY);
  TROWMIN(dst, src, src);
  EXPECT_EQ(dst.GetValue(0), -19.0f);
  EXPECT_EQ(dst.GetValue(1), INFINITY);
  TROWSUM(dst, src, src);
  EXPECT_TRUE(std::isnan(dst.GetValue(0)));
  EXPECT_EQ(dst.GetValue(2), -INFINITY);
  EXPECT_EQ(dst.GetValue(3), INFINITY);
}
TEST_F(TileReduce, MayWriteIntoItsSource) {
  Random random(10);
  RowTile<float, 4, 16> src(4, 16);
  TASSIGN(src, 0);
  const auto from = fill_random(src, random);
  RowTile<float, 4, 16> first(4, 1);
  TASSIGN(first, 0);
  TROWMAX(first, src, src);
  for (int r = 0; r < 4; ++r)
    EXPECT_EQ(src.GetValue(r * 16), *std::max_element(from.begin() + r * 16, from.begin() + r * 16 + 16));
}
