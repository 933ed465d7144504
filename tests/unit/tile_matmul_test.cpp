// Matrix products against loops in double (floats) or 64-bit integers.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileMatmul : public TileTest {};

namespace {

template <class T, class A, int M, int K, int N, BLayout kLeftOrder = BLayout::ColMajor> struct Product {
  using Left = Tile<TileType::Left, T, M, K, kLeftOrder, DYNAMIC, DYNAMIC, SLayout::RowMajor>;
  using Right = Tile<TileType::Right, T, K, N, BLayout::RowMajor, DYNAMIC, DYNAMIC, SLayout::ColMajor>;
  using Acc = AccTile<A, M, N>;
  using Bias = Tile<TileType::Bias, A, 1, N, BLayout::RowMajor, 1, DYNAMIC>;

  int m, k, n;
  Left left;
  Right right;
  Acc acc, other;
  std::vector<T> a, b;

  Product(int m, int k, int n, Random& random, double scale = 1)
      : m(m), k(k), n(n), left(m, k), right(k, n), acc(m, n), other(m, n), a(M * K), b(K * N) {
    TASSIGN(left, 0);
    TASSIGN(right, 0);
    TASSIGN(acc, 0);
    TASSIGN(other, M * N * int(sizeof(A)));
    for (T& v : a) v = kFloating<T> ? encode<T>(random.in(-scale, scale)) : random.value<T>();
    for (T& v : b) v = kFloating<T> ? encode<T>(random.in(-scale, scale)) : random.value<T>();
    load(left, a, M, K);
    load(right, b, K, N);
    fill_random(acc, random);
    fill_random(other, random);
  }
  // Through matrix memory, whole: garbage lies around the valid region.
  template <class Operand> static void load(Operand& operand, std::vector<T>& values, int rows, int cols) {
    NzTile<T, Operand::Rows, Operand::Cols> mat(rows, cols);
    TASSIGN(mat, 0);
    GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, -1, 1>> global(
        values.data(), Shape<1, 1, 1, -1, -1>(rows, cols), Stride<1, 1, 1, -1, 1>(cols));
    TLOAD(mat, global);
    const int valid_rows = operand.GetValidRow(), valid_cols = operand.GetValidCol();
    operand.SetValidShape(rows, cols);
    TMOV(operand, mat);
    operand.SetValidShape(valid_rows, valid_cols);
  }
  double sum(int i, int j, bool magnitudes = false) const {
    double total = 0;
    for (int x = 0; x < k; ++x) {
      const double product = decode(a[i * K + x]) * decode(b[x * N + j]);
      total += magnitudes ? std::fabs(product) : product;
    }
    return total;
  }
  // acc is start + product in the valid region, and as before outside.
  void expect(Acc& got_tile, const std::vector<A>& before, const std::vector<double>& start, double factor = 1) {
    const auto got = contents(got_tile);
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        const A value = got[i * N + j];
        if (i >= m || j >= n) {
          ASSERT_TRUE(same_bits(value, before[i * N + j])) << "(" << i << ", " << j << ") lies outside";
          continue;
        }
        const double want = start[i * N + j] + factor * sum(i, j);
        if (std::is_same_v<A, int32_t>)
          ASSERT_EQ(double(value), want) << "(" << i << ", " << j << ")";
        else
          ASSERT_NEAR(double(value), want, 1e-6 * (factor * sum(i, j, true) + std::fabs(start[i * N + j])) + 1e-30)
              << "(" << i << ", " << j << ")";
      }
  }
};

template <class T, class A, int M, int K, int N, BLayout kLeftOrder = BLayout::ColMajor>
void check(int m, int k, int n, Random& random) {
  Product<T, A, M, K, N, kLeftOrder> p(m, k, n, random);
  std::vector<double> zero(M * N, 0.0), start(M * N);
  const auto before = contents(p.acc), before_other = contents(p.other);
  TMATMUL(p.acc, p.left, p.right);
  p.expect(p.acc, before, zero);
  TMATMUL_ACC(p.acc, p.acc, p.left, p.right);
  p.expect(p.acc, before, zero, 2);
  const auto doubled = contents(p.acc);
  for (int i = 0; i < M * N; ++i) start[i] = double(doubled[i]);
  TMATMUL_ACC(p.other, p.acc, p.left, p.right);
  p.expect(p.other, before_other, start);
  ASSERT_EQ(contents(p.acc), doubled) << "the input of an accumulation changed";
  typename decltype(p)::Bias bias(n);
  TASSIGN(bias, 0);
  for (int j = 0; j < N; ++j) bias.data()[j] = random.value<A>() / 1024;
  for (int i = 0; i < M * N; ++i) start[i] = double(bias.data()[i % N]);
  TMATMUL_BIAS(p.acc, p.left, p.right, bias);
  p.expect(p.acc, before, start);
}

template <class T, class A, int M, int K, int N, BLayout kLeftOrder = BLayout::ColMajor>
void check_shapes(uint64_t seed) {
  Random random(seed);
  check<T, A, M, K, N, kLeftOrder>(M, K, N, random);
  check<T, A, M, K, N, kLeftOrder>(1, 1, 1, random);
  check<T, A, M, K, N, kLeftOrder>(M, 1, N, random);
  check<T, A, M, K, N, kLeftOrder>(M, 0, N, random);
  for (int i = 0; i < 4; ++i)
    check<T, A, M, K, N, kLeftOrder>(random.between(1, M), random.between(1, K), random.between(1, N), random);
}

}  // namespace

TEST_F(TileMatmul, MultipliesFloats) {
  check_shapes<float, float, 16, 16, 16>(1);
  check_shapes<float, float, 48, 144, 80>(2);
}
TEST_F(TileMatmul, MultipliesTheLargestOperands) {
  Random random(3);
  check<float, float, 128, 128, 128>(128, 128, 128, random);
  check<float, float, 16, 1024, 16>(13, 1021, 9, random);
  check<::half, float, 64, 64, 512>(61, 63, 505, random);
  check<int8_t, int32_t, 32, 2048, 32>(31, 2047, 29, random);
}
TEST_F(TileMatmul, MultipliesShortFloats) {
  check_shapes<::half, float, 32, 80, 48>(4);
  check_shapes<::bfloat16_t, float, 32, 80, 144>(5);
}
TEST_F(TileMatmul, MultipliesBytesExactly) { check_shapes<int8_t, int32_t, 32, 288, 64>(6); }
TEST_F(TileMatmul, TakesLeftOperandsWithRowMajorBoxes) {
  check_shapes<float, float, 32, 48, 32, BLayout::RowMajor>(7);
  check_shapes<::bfloat16_t, float, 32, 48, 32, BLayout::RowMajor>(8);
}
TEST_F(TileMatmul, KeepsTheExtremesOfBytesExact) {
  Random random(9);
  Product<int8_t, int32_t, 16, 2048, 32> p(16, 2048, 32, random);
  for (int value : {-128, 127}) {  // sums of 127 * 127 leave the integers that a float holds
    std::fill(p.a.begin(), p.a.end(), int8_t(value));
    std::fill(p.b.begin(), p.b.end(), int8_t(value));
    p.load(p.left, p.a, 16, 2048);
    p.load(p.right, p.b, 2048, 32);
    TMATMUL(p.acc, p.left, p.right);
    for (int32_t v : contents(p.acc)) ASSERT_EQ(v, 2048 * value * value);
  }
}
TEST_F(TileMatmul, PropagatesInfinityAndNanOnlyWhereTheyBelong) {
  Random random(10);
  Product<float, float, 16, 32, 32> p(5, 7, 9, random);
  p.a.assign(16 * 32, NAN);  // around the valid region too
  p.b.assign(32 * 32, NAN);
  for (int i = 0; i < 5; ++i)
    for (int x = 0; x < 7; ++x) p.a[i * 32 + x] = i == 2 && x == 3 ? INFINITY : 1.0f;
  for (int x = 0; x < 7; ++x)
    for (int j = 0; j < 9; ++j) p.b[x * 32 + j] = x == 6 && j == 4 ? NAN : 2.0f;
  p.load(p.left, p.a, 16, 32);
  p.load(p.right, p.b, 32, 32);
  TMATMUL(p.acc, p.left, p.right);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 9; ++j) {
      const float value = element(p.acc, i, j);
      if (j == 4)
        ASSERT_TRUE(std::isnan(value));
      else if (i == 2)
        ASSERT_EQ(value, INFINITY);
      else
        ASSERT_EQ(value, 14.0f);
    }
}
TEST_F(TileMatmul, ReadsTransposedRightOperands) {
  Random random(11);
  constexpr int K = 48, N = 32;
  std::vector<::half> stored(N * K);  // row n holds column n of the operand
  for (auto& v : stored) v = encode<::half>(random.in(-1, 1));
  ZnTile<::half, K, N> mat(K, N);
  Product<::half, float, 16, K, N> p(16, K, N, random);
  TASSIGN(mat, 0);
  GlobalTensor<::half, Shape<1, 1, 1, K, N>, Stride<N * K, N * K, N * K, 1, K>, Layout::DN> global(stored.data());
  TLOAD(mat, global);
  TMOV(p.right, mat);
  for (int x = 0; x < K; ++x)
    for (int j = 0; j < N; ++j) p.b[x * N + j] = stored[j * K + x];
  const auto before = contents(p.acc);
  TMATMUL(p.acc, p.left, p.right);
  p.expect(p.acc, before, std::vector<double>(16 * N, 0.0));
}
