// Element-wise instructions, tile-scalar forms and broadcasts, against plain loops.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileElementwise : public TileTest {};

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

// Plain arithmetic of an element type: 16-bit floats in float and rounded, integers wrapping.
template <class T, class F> T in_type(T a, T b, F f) {
  if constexpr (kShortFloat<T>)
    return encode<T>(f(static_cast<float>(decode(a)), static_cast<float>(decode(b))));
  else if constexpr (std::is_floating_point_v<T>)
    return f(a, b);
  else
    return static_cast<T>(static_cast<uint64_t>(f(static_cast<int64_t>(a), static_cast<int64_t>(b))));
}
struct RefAdd {
  template <class V> V operator()(V a, V b) const { return a + b; }
};
struct RefSub {
  template <class V> V operator()(V a, V b) const { return a - b; }
};
struct RefMul {
  template <class V> V operator()(V a, V b) const { return V(a * b); }
};
struct RefDiv {
  template <class V> V operator()(V a, V b) const {
    if constexpr (std::is_integral_v<V>)
      return b == 0 ? 0 : a / b;
    else
      return a / b;
  }
};
struct RefMax {
  template <class V> V operator()(V a, V b) const { return a < b ? b : a; }
};
struct RefMin {
  template <class V> V operator()(V a, V b) const { return b < a ? b : a; }
};

// Random values with every kind of edge value mixed in.
template <class T> T edgy(Random& random) {
  if constexpr (kFloating<T>) {
    const double edges[] = {0.0, -0.0, 1.0, kInfinity, -kInfinity, kNan, 6e-8, -6e-8, 1e-41, 65504, -65504, 3.3e38};
    return random.between(0, 3) == 0 ? encode<T>(edges[random.between(0, 11)]) : random.value<T>();
  } else {
    const T edges[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    return random.between(0, 3) == 0 ? edges[random.between(0, 4)] : random.value<T>();
  }
}
template <class TileT> std::vector<typename TileT::DType> fill_edgy(TileT& tile, Random& random) {
  std::vector<typename TileT::DType> values(TileT::Numel);
  for (int r = 0; r < TileT::Rows; ++r)
    for (int c = 0; c < TileT::Cols; ++c)
      element(tile, r, c) = values[r * TileT::Cols + c] = edgy<typename TileT::DType>(random);
  return values;
}

template <class TileT>
void expect_contents(TileT& tile, const std::vector<typename TileT::DType>& want, const char* what) {
  const auto got = contents(tile);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_TRUE(same_value(got[i], want[i]))
        << what << ": place " << i << " is " << decode(got[i]) << ", not " << decode(want[i]);
}

// dst = op(a, b) on tiles of any layouts, over several valid shapes; what is not valid keeps its value.
template <class Dst, class A, class B, class Op, class Ref>
void check_binary(const char* what, Op op, Ref ref, Random& random) {
  using T = typename Dst::DType;
  for (int rows : extents(Dst::Rows, random))
    for (int cols : extents(Dst::Cols, random)) {
      Dst dst(rows, cols);
      A a(rows, cols);
      B b(rows, cols);
      TASSIGN(dst, 0);
      TASSIGN(a, 0x10000);
      TASSIGN(b, 0x20000);
      std::vector<T> want = fill_edgy(dst, random);
      const auto x = fill_edgy(a, random), y = fill_edgy(b, random);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) want[r * Dst::Cols + c] = in_type(x[r * A::Cols + c], y[r * B::Cols + c], ref);
      op(dst, a, b);
      expect_contents(dst, want, what);
    }
}

#define OP3(NAME) [](auto& d, auto& a, auto& b) { NAME(d, a, b); }
template <class T, template <class, int, int> class D, template <class, int, int> class A,
          template <class, int, int> class B, int R, int C>
void check_arithmetic(uint64_t seed) {
  Random random(seed);
  using Dst = D<T, R, C>;
  using Left = A<T, R, C>;
  using Right = B<T, R, C>;
  check_binary<Dst, Left, Right>("TADD", OP3(TADD), RefAdd(), random);
  check_binary<Dst, Left, Right>("TSUB", OP3(TSUB), RefSub(), random);
  check_binary<Dst, Left, Right>("TMUL", OP3(TMUL), RefMul(), random);
  check_binary<Dst, Left, Right>("TDIV", OP3(TDIV), RefDiv(), random);
  check_binary<Dst, Left, Right>("TMAX", OP3(TMAX), RefMax(), random);
  check_binary<Dst, Left, Right>("TMIN", OP3(TMIN), RefMin(), random);
}
}  // namespace

TEST_F(TileElementwise, ComputesFloats) { check_arithmetic<float, RowTile, RowTile, RowTile, 7, 40>(1); }
TEST_F(TileElementwise, ComputesHalfAndRoundsEveryResult) {
  check_arithmetic<::half, RowTile, RowTile, RowTile, 5, 48>(2);
}
TEST_F(TileElementwise, ComputesBfloatAndRoundsEveryResult) {
  check_arithmetic<::bfloat16_t, RowTile, RowTile, RowTile, 5, 48>(3);
}
TEST_F(TileElementwise, WrapsIntegers) {
  check_arithmetic<int32_t, RowTile, RowTile, RowTile, 5, 40>(4);
  check_arithmetic<int16_t, RowTile, RowTile, RowTile, 5, 48>(5);
  check_arithmetic<uint8_t, RowTile, RowTile, RowTile, 3, 64>(6);
}
TEST_F(TileElementwise, TakesColumnMajorAndMixedLayouts) {
  check_arithmetic<float, ColTile, ColTile, ColTile, 24, 5>(7);
  Random random(8);
  check_binary<RowTile<float, 24, 16>, ColTile<float, 24, 16>, RowTile<float, 24, 40>>("mixed", OP3(TSUB), RefSub(),
                                                                                       random);
  check_binary<ColTile<float, 24, 16>, RowTile<float, 24, 16>, ColTile<float, 32, 16>>("mixed", OP3(TSUB), RefSub(),
                                                                                       random);
  using Boxed = NzVectorTile<float, 32, 16>;
  check_binary<Boxed, Boxed, Boxed>("boxed", OP3(TSUB), RefSub(), random);
}
TEST_F(TileElementwise, HandlesTheLargestTiles) {
  Random random(9);
  check_binary<RowTile<float, 128, 128>, RowTile<float, 128, 128>, RowTile<float, 128, 128>>("TADD", OP3(TADD),
                                                                                             RefAdd(), random);
}

TEST_F(TileElementwise, RunsInPlace) {
  Random random(10);
  RowTile<float, 6, 24> a(6, 24), b(6, 24);
  TASSIGN(a, 0);
  TASSIGN(b, 0x1000);
  auto x = fill_random(a, random);
  auto y = fill_random(b, random);
  TSUB(a, a, b);
  TSUB(b, a, b);
  TMUL(b, b, b);
  for (int i = 0; i < 144; ++i) {
    const float first = x[i] - y[i], second = first - y[i];
    ASSERT_EQ(contents(b)[i], second * second);
  }
  RowTile<float, 6, 24> alias(6, 24);
  TASSIGN(alias, 0);
  TADD(alias, a, alias);
  for (int i = 0; i < 144; ++i) ASSERT_EQ(contents(a)[i], 2 * (x[i] - y[i]));
}

TEST_F(TileElementwise, OrdersInstructionsOnOneMemoryWhateverTheElementType) {
  RowTile<float, 1, 64> floats(1, 64);
  RowTile<int32_t, 1, 64> integers(1, 64);
  TASSIGN(floats, 0);
  TASSIGN(integers, 0);
  TEXPANDS(floats, 1.0f);
  TADDS(integers, integers, 0x00800000);  // doubles the number
  TADDS(floats, floats, 1.0f);
  for (float value : contents(floats)) ASSERT_EQ(value, 3.0f);
}

// ---- scalars --------------------------------------------------------------------------------------------------------

namespace {
template <class T, class Op, class Ref> void check_scalar(const char* what, Op op, Ref ref, T scalar) {
  Random random(20);
  RowTile<T, 5, 32> a(5, 27), d(5, 27);
  TASSIGN(a, 0);
  TASSIGN(d, 0x1000);
  const auto x = fill_edgy(a, random);
  auto want = fill_edgy(d, random);
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 27; ++c) want[r * 32 + c] = in_type(x[r * 32 + c], scalar, ref);
  op(d, a, scalar);
  expect_contents(d, want, what);
}
#define OPS(NAME) [](auto& d, auto& a, auto s) { NAME(d, a, s); }
template <class T> void check_scalars(T scalar) {
  check_scalar<T>("TADDS", OPS(TADDS), RefAdd(), scalar);
  check_scalar<T>("TSUBS", OPS(TSUBS), RefSub(), scalar);
  check_scalar<T>("TMULS", OPS(TMULS), RefMul(), scalar);
  check_scalar<T>("TDIVS", OPS(TDIVS), RefDiv(), scalar);
  check_scalar<T>("TMAXS", OPS(TMAXS), RefMax(), scalar);
  check_scalar<T>("TMINS", OPS(TMINS), RefMin(), scalar);
  check_scalar<T>(
      "TDIVS, scalar first", [](auto& d, auto& a, auto s) { TDIVS(d, s, a); },
      [](auto a, auto b) { return RefDiv()(b, a); }, scalar);
}
}  // namespace

TEST_F(TileElementwise, ComputesWithScalars) {
  check_scalars<float>(-1.7f);
  check_scalars<::half>(encode<::half>(0.3));
  check_scalars<::bfloat16_t>(encode<::bfloat16_t>(2.5));
  check_scalars<int32_t>(-7);
  check_scalars<int8_t>(3);
}
TEST_F(TileElementwise, ConvertsScalarsToTheElementType) {
  RowTile<float, 1, 8> f(1, 8);
  RowTile<::half, 1, 16> h(1, 16);
  RowTile<::bfloat16_t, 1, 16> b(1, 16);
  TASSIGN(f, 0);
  TASSIGN(h, 64);
  TASSIGN(b, 128);
  TEXPANDS(f, 2);
  TADDS(f, f, 1);
  TEXPANDS(h, 1.5f);
  TMULS(h, h, 2);
  TEXPANDS(b, 3);
  TMULS(b, b, 0.5);
  EXPECT_EQ(f.GetValue(7), 3.0f);
  EXPECT_EQ(decode(h.GetValue(15)), 3.0);
  EXPECT_EQ(decode(b.GetValue(15)), 1.5);
}

TEST_F(TileElementwise, ComputesBits) {
  Random random(30);
  RowTile<int32_t, 3, 16> a(3, 16), b(3, 16), d(3, 16);
  TASSIGN(a, 0);
  TASSIGN(b, 0x1000);
  TASSIGN(d, 0x2000);
  const auto x = fill_random(a, random);
  auto y = fill_random(b, random);
  const auto expect = [&](auto f, const char* what) {
    for (int i = 0; i < 48; ++i) ASSERT_EQ(contents(d)[i], f(x[i], y[i])) << what;
  };
  TAND(d, a, b);
  expect([](int32_t p, int32_t q) { return p & q; }, "and");
  TOR(d, a, b);
  expect([](int32_t p, int32_t q) { return p | q; }, "or");
  TXOR(d, a, b);
  expect([](int32_t p, int32_t q) { return p ^ q; }, "xor");
  TNOT(d, a);
  expect([](int32_t p, int32_t) { return ~p; }, "not");
  TANDS(d, a, 0xff);
  expect([](int32_t p, int32_t) { return p & 0xff; }, "and scalar");
  for (int count : {0, 1, 31, 32, 40, -1}) {
    TSHLS(d, a, count);
    expect([&](int32_t p, int32_t) { return count < 0 || count > 31 ? 0 : int32_t(uint32_t(p) << count); },
           "shift left");
    TSHRS(d, a, count);
    expect([&](int32_t p, int32_t) { return p >> (count < 0 || count > 31 ? 31 : count); }, "shift right");
  }
  RowTile<uint16_t, 1, 16> u(1, 16);
  TASSIGN(u, 0x3000);
  TEXPANDS(u, 0x8001);
  TSHRS(u, u, 1);
  EXPECT_EQ(u.GetValue(0), 0x4000);
  TSHRS(u, u, 16);
  EXPECT_EQ(u.GetValue(0), 0);
}

// ---- one operand ----------------------------------------------------------------------------------------------------

namespace {
// Relative to the last place of a float result of this size.
double ulps(double got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : kInfinity;
  if (std::isinf(want) || std::isinf(got)) return got == want ? 0 : kInfinity;
  int exponent;
  std::frexp(want, &exponent);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}
template <class Op, class Ref> double worst(Op op, Ref ref, const std::vector<float>& inputs) {
  RowTile<float, 1, 1024> a(1, 1024), d(1, 1024);
  TASSIGN(a, 0);
  TASSIGN(d, 0x2000);
  double most = 0;
  for (size_t at = 0; at < inputs.size(); at += 1024) {
    const int n = static_cast<int>(std::min<size_t>(1024, inputs.size() - at));
    a.SetValidCol(n);
    d.SetValidCol(n);
    for (int i = 0; i < n; ++i) a.data()[i] = inputs[at + i];
    op(d, a);
    for (int i = 0; i < n; ++i) {
      const double error =
          ulps(d.GetValue(i), static_cast<double>(static_cast<float>(ref(static_cast<double>(inputs[at + i])))));
      EXPECT_LT(error, 1e6) << "f(" << inputs[at + i] << ") = " << d.GetValue(i) << ", not " << ref(inputs[at + i]);
      most = std::max(most, error);
    }
  }
  return most;
}
// All magnitudes, both signs, and the special values.
std::vector<float> all_kinds_of_floats() {
  std::vector<float> all = {0.0f,  -0.0f,  INFINITY, -INFINITY,      NAN,          1.0f,
                            -1.0f, 1e-45f, -1e-45f,  1.1754942e-38f, 3.4028235e38f};
  Random random(40);
  for (int i = 0; i < 40000; ++i) all.push_back(random.bits<float>());
  for (int i = 0; i < 40000; ++i) all.push_back(static_cast<float>(random.in(-110, 100)));
  for (int i = 0; i < 20000; ++i) all.push_back(static_cast<float>(random.in(0.5, 2)));
  return all;
}
#define OP2(NAME) [](auto& d, auto& a) { NAME(d, a); }
}  // namespace

TEST_F(TileElementwise, ComputesFunctionsToTheLastPlaces) {
  const auto inputs = all_kinds_of_floats();
  EXPECT_LE(worst(
                OP2(TEXP), [](double v) { return std::exp(v); }, inputs),
            2.0);
  EXPECT_LE(worst(
                OP2(TLOG), [](double v) { return std::log(v); }, inputs),
            2.0);
  EXPECT_EQ(worst(
                OP2(TSQRT), [](double v) { return std::sqrt(v); }, inputs),
            0.0);
  EXPECT_LE(worst(
                OP2(TRSQRT), [](double v) { return 1 / std::sqrt(v); }, inputs),
            1.0);
  EXPECT_EQ(worst(
                OP2(TRECIP), [](double v) { return 1 / v; }, inputs),
            0.0);
  EXPECT_EQ(worst(
                OP2(TABS), [](double v) { return std::fabs(v); }, inputs),
            0.0);
  EXPECT_EQ(worst(
                OP2(TNEG), [](double v) { return -v; }, inputs),
            0.0);
}
TEST_F(TileElementwise, RoundsFunctionsOfHalfOnce) {
  RowTile<::half, 1, 1024> a(1, 1024), d(1, 1024);
  TASSIGN(a, 0);
  TASSIGN(d, 0x1000);
  int off = 0;
  for (int code = 0; code < 0x10000; code += 1024) {
    for (int i = 0; i < 1024; ++i) a.data()[i] = bits_as<::half>(static_cast<uint16_t>(code + i));
    TEXP(d, a);
    for (int i = 0; i < 1024; ++i) {
      const ::half want = encode<::half>(std::exp(decode(a.GetValue(i))));
      if (!same_value(d.GetValue(i), want)) {
        ++off;  // a float exponential that is one place off may decide a near tie
        ASSERT_LE(std::abs(int(bits_as<uint16_t>(d.GetValue(i))) - int(bits_as<uint16_t>(want))), 1)
            << decode(a.GetValue(i));
      }
    }
  }
  EXPECT_LE(off, 20);
}
TEST_F(TileElementwise, KeepsOrDropsTheSign) {
  RowTile<int16_t, 1, 16> a(1, 16), d(1, 16);
  TASSIGN(a, 0);
  TASSIGN(d, 64);
  const int16_t in[4] = {-32768, -5, 0, 7};
  for (int i = 0; i < 16; ++i) a.data()[i] = in[i % 4];
  const auto first = [&] { return std::vector<int16_t>(d.data(), d.data() + 4); };
  TABS(d, a);
  EXPECT_EQ(first(), (std::vector<int16_t>{-32768, 5, 0, 7}));
  TNEG(d, a);
  EXPECT_EQ(first(), (std::vector<int16_t>{-32768, 5, 0, -7}));
  TRELU(d, a);
  EXPECT_EQ(first(), (std::vector<int16_t>{0, 0, 0, 7}));
  RowTile<float, 1, 8> f(1, 8), s(1, 8);
  TASSIGN(f, 128);
  TASSIGN(s, 256);
  TEXPANDS(f, -2.0f);
  TEXPANDS(s, 0.25f);
  TLRELU(f, f, 0.5f);
  EXPECT_EQ(f.GetValue(3), -1.0f);
  TPRELU(f, f, s);
  EXPECT_EQ(f.GetValue(3), -0.25f);
}

// ---- broadcasts -----------------------------------------------------------------------------------------------------

namespace {
template <class T, class Ref> T expected(T a, T b, Ref ref) { return in_type(a, b, ref); }
// The vector has a value per row, given as a column, as the first column of rows, or as a repeated block of 32 bytes.
template <class T, class Vector, class Op, class Ref>
void check_row_broadcast(const char* what, Op op, Ref ref, int width, bool vector_first) {
  Random random(50);
  constexpr int R = 16, C = 64;
  for (int rows : {1, 9, 16})
    for (int cols : {1, 50, 64}) {
      RowTile<T, R, C> a(rows, cols), d(rows, cols);
      Vector v(rows, width);
      TASSIGN(a, 0);
      TASSIGN(d, 0x4000);
      TASSIGN(v, 0x8000);
      const auto x = fill_edgy(a, random);
      const auto y = fill_edgy(v, random);
      auto want = fill_edgy(d, random);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
          const T full = x[r * C + c], part = y[r * Vector::Cols + c % width];
          want[r * C + c] = vector_first ? expected(part, full, ref) : expected(full, part, ref);
        }
      if (vector_first && cols == width) continue;  // two operands of one shape: the second is the vector
      if (vector_first)
        op(d, v, a);
      else
        op(d, a, v);
      expect_contents(d, want, what);
    }
}
}  // namespace

TEST_F(TileElementwise, BroadcastsAValuePerRow) {
  using Column = ColTile<float, 16, 1>;
  check_row_broadcast<float, Column>("TROWEXPANDSUB", OP3(TROWEXPANDSUB), RefSub(), 1, false);
  check_row_broadcast<float, Column>("TROWEXPANDSUB", OP3(TROWEXPANDSUB), RefSub(), 1, true);
  check_row_broadcast<float, Column>("TROWEXPANDDIV", OP3(TROWEXPANDDIV), RefDiv(), 1, true);
  check_row_broadcast<float, Column>("TROWEXPANDMUL", OP3(TROWEXPANDMUL), RefMul(), 1, false);
  check_row_broadcast<float, Column>("TROWEXPANDADD", OP3(TROWEXPANDADD), RefAdd(), 1, false);
  check_row_broadcast<float, Column>("TROWEXPANDMAX", OP3(TROWEXPANDMAX), RefMax(), 1, false);
  check_row_broadcast<float, Column>("TROWEXPANDMIN", OP3(TROWEXPANDMIN), RefMin(), 1, false);
  check_row_broadcast<float, RowTile<float, 16, 8>>("first column", OP3(TROWEXPANDSUB), RefSub(), 1, false);
  check_row_broadcast<float, RowTile<float, 16, 8>>("block", OP3(TROWEXPANDSUB), RefSub(), 8, false);
  check_row_broadcast<float, RowTile<float, 16, 8>>("block first", OP3(TROWEXPANDSUB), RefSub(), 8, true);
  check_row_broadcast<::half, ColTile<::half, 16, 1>>("half", OP3(TROWEXPANDMUL), RefMul(), 1, false);
  check_row_broadcast<int32_t, ColTile<int32_t, 16, 1>>("int32", OP3(TROWEXPANDADD), RefAdd(), 1, false);
}
TEST_F(TileElementwise, BroadcastsAValuePerColumn) {
  Random random(60);
  RowTile<float, 8, 32> a(8, 27), d(8, 27);
  RowTile<float, 1, 32> v(1, 27);
  TASSIGN(a, 0);
  TASSIGN(d, 0x1000);
  TASSIGN(v, 0x2000);
  const auto x = fill_edgy(a, random), y = fill_edgy(v, random);
  const auto check = [&](const char* what, auto op, auto ref, bool vector_first) {
    auto want = contents(d);
    for (int r = 0; r < 8; ++r)
      for (int c = 0; c < 27; ++c)
        want[r * 32 + c] = vector_first ? ref(y[c], x[r * 32 + c]) : ref(x[r * 32 + c], y[c]);
    if (vector_first)
      op(d, v, a);
    else
      op(d, a, v);
    expect_contents(d, want, what);
  };
  check("TCOLEXPANDMUL", OP3(TCOLEXPANDMUL), RefMul(), false);
  check("TCOLEXPANDADD", OP3(TCOLEXPANDADD), RefAdd(), false);
  check("TCOLEXPANDSUB", OP3(TCOLEXPANDSUB), RefSub(), false);
  check("TCOLEXPANDSUB", OP3(TCOLEXPANDSUB), RefSub(), true);
  check("TCOLEXPANDDIV", OP3(TCOLEXPANDDIV), RefDiv(), false);
  check("TCOLEXPANDMAX", OP3(TCOLEXPANDMAX), RefMax(), false);
  check("TCOLEXPANDMIN", OP3(TCOLEXPANDMIN), RefMin(), false);
}
TEST_F(TileElementwise, ExponentiatesDifferencesToABroadcast) {
  RowTile<float, 2, 8> a(2, 8), d(2, 8);
  ColTile<float, 8, 1> v(2, 1);
  RowTile<float, 1, 8> w(1, 8);
  TASSIGN(a, 0);
  TASSIGN(d, 256);
  TASSIGN(v, 512);
  TASSIGN(w, 768);
  for (int i = 0; i < 16; ++i) a.data()[i] = 0.25f * i;
  for (int i = 0; i < 8; ++i) v.data()[i] = 1.0f + i, w.data()[i] = 0.5f * i;
  TROWEXPANDEXPDIF(d, a, v);
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(d.GetValue(i), std::exp(0.25 * i - (1 + i / 8)), 1e-6);
  TCOLEXPANDEXPDIF(d, a, w);
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(d.GetValue(i), std::exp(0.25 * i - 0.5 * (i % 8)), 1e-6);
}
TEST_F(TileElementwise, CopiesRowsColumnsAndScalars) {
  Random random(70);
  RowTile<int16_t, 4, 16> d(3, 11), s(4, 16);
  TASSIGN(d, 0);
  TASSIGN(s, 0x1000);
  const auto from = fill_random(s, random);
  const auto before = fill_random(d, random);
  const auto check = [&](const char* what, auto value) {
    auto want = before;
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 11; ++c) want[r * 16 + c] = value(r, c);
    expect_contents(d, want, what);
  };
  TROWEXPAND(d, s);
  check("TROWEXPAND", [&](int r, int) { return from[r * 16]; });
  TCOLEXPAND(d, s);
  check("TCOLEXPAND", [&](int, int c) { return from[c]; });
  TEXPANDS(d, 99);
  check("TEXPANDS", [&](int, int) { return int16_t(99); });
}
TEST_F(TileElementwise, CountsFromAStart) {
  using Integers = RowTile<int32_t, 1, 32>;
  using Halves = RowTile<::half, 1, 32>;
  Integers a(1, 20);
  Halves b(1, 32);
  TASSIGN(a, 0);
  TASSIGN(b, 256);
  TCI<Integers, int32_t, 0>(a, -5);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(a.data()[i], i < 20 ? i - 5 : 0);
  TCI<Integers, int32_t, 1>(a, 7);
  EXPECT_EQ(a.GetValue(19), 7 - 19);
  TCI<Halves, ::half, 0>(b, encode<::half>(2040));
  EXPECT_EQ(decode(b.GetValue(9)), 2048) << "2049 is not a half: ties to even";
}
