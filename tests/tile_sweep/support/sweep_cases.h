// The cases of the sweep: what each instruction computes, and one driver for each form of operands.
#pragma once

#include "tile_sweep/support/sweep.h"

namespace tile_test {

// ---- operations -----------------------------------------------------------------------------------------------------

// The low bits of a product that does not fit are all that an integer element keeps.
inline int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline double product(double a, double b) { return a * b; }
inline int64_t divided(int64_t a, int64_t b) { return b == 0 ? 0 : a / b; }
inline double divided(double a, double b) { return a / b; }
inline int64_t modulo(int64_t a, int64_t b) { return b == 0 ? 0 : a % b; }
inline double modulo(double a, double b) { return std::fmod(a, b); }
template <class V> V remainder_of(V a, V b) {
  const V left = modulo(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}
inline int64_t in_float(int64_t value) { return value; }
inline double in_float(double value) { return static_cast<float>(value); }
// Counts are those of the element type: 8 * sizeof(T) bits, and a negative count is a large one.
template <class T> int64_t shifted_left(int64_t a, int64_t b) {
  return b < 0 || b >= int64_t{8 * sizeof(T)} ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
template <class T> int64_t shifted_right(int64_t a, int64_t b) {
  const bool all = b < 0 || b >= int64_t{8 * sizeof(T)};
  return all ? (a < 0 ? -1 : 0) : a >> b;
}

// kWorst: units of the last place that the result may be off.
#define SWEEP_OP(NAME, WORST, CALL, PARAMETERS, EXPRESSION)                        \
  struct NAME##Sweep {                                                             \
    static constexpr const char* name = #NAME;                                     \
    static constexpr int kWorst = WORST;                                           \
    template <class... Tiles> static void run(Tiles&... tiles) { CALL(tiles...); } \
    template <class T, class V> static V ref PARAMETERS { return EXPRESSION; }     \
  };
#define SWEEP_BINARY(NAME, EXPRESSION) SWEEP_OP(NAME, 0, NAME, (V x, V y), EXPRESSION)
#define SWEEP_FORMS(OP, EXPRESSION)        \
  SWEEP_BINARY(T##OP, EXPRESSION)          \
  SWEEP_BINARY(T##OP##S, EXPRESSION)       \
  SWEEP_BINARY(TROWEXPAND##OP, EXPRESSION) \
  SWEEP_BINARY(TCOLEXPAND##OP, EXPRESSION)
#define SWEEP_TWO(OP, EXPRESSION) \
  SWEEP_BINARY(T##OP, EXPRESSION) \
  SWEEP_BINARY(T##OP##S, EXPRESSION)
SWEEP_FORMS(ADD, x + y)
SWEEP_FORMS(SUB, x - y)
SWEEP_FORMS(MUL, product(x, y))
SWEEP_FORMS(DIV, divided(x, y))
SWEEP_FORMS(MAX, x < y ? y : x)
SWEEP_FORMS(MIN, y < x ? y : x)
SWEEP_TWO(FMOD, modulo(x, y))
SWEEP_TWO(REM, remainder_of(x, y))
SWEEP_TWO(AND, x& y)
SWEEP_TWO(OR, x | y)
SWEEP_TWO(XOR, x ^ y)
SWEEP_TWO(SHL, shifted_left<T>(x, y))
SWEEP_TWO(SHR, shifted_right<T>(x, y))
SWEEP_BINARY(TPRELU, x > 0 ? x : product(x, y))
SWEEP_BINARY(TLRELU, x > 0 ? x : product(x, y))
SWEEP_OP(TADDC, 0, TADDC, (V x, V y, V z), in_float(in_float(x + y) + z))
SWEEP_OP(TADDSC, 0, TADDSC, (V x, V y, V z), in_float(in_float(x + y) + z))
SWEEP_OP(TSUBC, 0, TSUBC, (V x, V y, V z), in_float(in_float(x - y) + z))
SWEEP_OP(TSUBSC, 0, TSUBSC, (V x, V y, V z), in_float(in_float(x - y) + z))
SWEEP_OP(TABS, 0, TABS, (V x), x < 0 || (x == 0 && std::signbit(double(x))) ? -x : x)
SWEEP_OP(TNEG, 0, TNEG, (V x), -x)
SWEEP_OP(TNOT, 0, TNOT, (V x), ~x)
SWEEP_OP(TRELU, 0, TRELU, (V x), x > 0 ? x : V(0))
SWEEP_OP(TEXP, 2, TEXP, (V x), std::exp(x))
SWEEP_OP(TLOG, 2, TLOG, (V x), std::log(x))
SWEEP_OP(TSQRT, 0, TSQRT, (V x), std::sqrt(x))
SWEEP_OP(TRSQRT, 1, TRSQRT, (V x), 1 / std::sqrt(x))
SWEEP_OP(TRECIP, 0, TRECIP, (V x), 1 / x)
SWEEP_OP(TROWEXPANDEXPDIF, 2, TROWEXPANDEXPDIF, (V x, V y), std::exp(in_float(x - y)))
SWEEP_OP(TCOLEXPANDEXPDIF, 2, TCOLEXPANDEXPDIF, (V x, V y), std::exp(in_float(x - y)))

// ---- drivers --------------------------------------------------------------------------------------------------------

constexpr int kSweepRounds = 6;

// The operand for an operation: shift counts are small.
template <class Op, class T> T operand_value(Random& random) {
  const bool shifts = Op::name[1] == 'S' && Op::name[2] == 'H';
  return shifts ? static_cast<T>(random.between(-2, 8 * int(sizeof(T)) + 2)) : sweep_value<T>(random);
}
template <class Op, class TileT> void fill_operand(TileT& tile, Random& random) {
  for (int r = 0; r < TileT::Rows; ++r)
    for (int c = 0; c < TileT::Cols; ++c) element(tile, r, c) = operand_value<Op, typename TileT::DType>(random);
}
// A tile's expected contents: what it holds now, changed in its valid region.
template <class TileT> struct Expected {
  std::vector<Wide<typename TileT::DType>> values;
  std::vector<int> places;
  explicit Expected(TileT& tile) : values(widened(contents(tile))), places(TileT::Numel, 0) {}
  void set(int r, int c, Wide<typename TileT::DType> value, int worst) {
    values[r * TileT::Cols + c] = value;
    places[r * TileT::Cols + c] = worst;
  }
};

// dst = op(a, b, c ...) on kSources tiles; in turn dst is none of them, the first, the last, all are one.
template <class Op, class T, class L, int kSources> void sweep_tiles(Random& random) {
  using TileT = typename L::template Of<T>;
  for (int round = 0; round < kSweepRounds; ++round) {
    const int rows = extents(kSweepRows, random)[(round + 2) % 5], cols = extents(kSweepCols, random)[(round + 3) % 5];
    TileT dst(rows, cols);
    std::vector<TileT> src;
    for (int i = 0; i < kSources; ++i) {
      src.emplace_back(rows, cols);
      TASSIGN(src[i], round % 4 == 3 ? 0x8000 : 0x8000 * (i + 1));
      if (i == 0) fill_sweep(src[i], random);
      if (i > 0) fill_operand<Op>(src[i], random);
    }
    TASSIGN(dst, 0);
    if (round % 4 == 1 || round % 4 == 3) TASSIGN(dst, src[0].data());
    if (round % 4 == 2) TASSIGN(dst, src[kSources - 1].data());
    if (round % 4 == 0) fill_sweep(dst, random);
    Expected<TileT> want(dst);
    std::vector<std::vector<T>> in;
    for (TileT& one : src) in.push_back(contents(one));
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        const int i = r * kSweepCols + c;
        if constexpr (kSources == 1)
          want.set(r, c, Op::template ref<T>(widen(in[0][i])), Op::kWorst);
        else if constexpr (kSources == 2)
          want.set(r, c, Op::template ref<T>(widen(in[0][i]), widen(in[1][i])), Op::kWorst);
        else
          want.set(r, c, Op::template ref<T>(widen(in[0][i]), widen(in[1][i]), widen(in[2][i])), Op::kWorst);
      }
    if constexpr (kSources == 1)
      Op::run(dst, src[0]);
    else if constexpr (kSources == 2)
      Op::run(dst, src[0], src[1]);
    else
      Op::run(dst, src[0], src[1], src[2]);
    ASSERT_NO_FATAL_FAILURE(expect_tile(dst, want.values, want.places)) << "aliasing " << round % 4;
  }
}
template <class Op, class T, class L> void sweep_scalar(Random& random) {
  using TileT = typename L::template Of<T>;
  for (int round = 0; round < kSweepRounds; ++round) {
    const int rows = extents(kSweepRows, random)[(round + 2) % 5], cols = extents(kSweepCols, random)[(round + 3) % 5];
    TileT dst(rows, cols), src(rows, cols);
    T scalar = operand_value<Op, T>(random);
    TASSIGN(src, 0x8000);
    TASSIGN(dst, round % 2 == 0 ? 0x8000 : 0);
    fill_sweep(dst, random);
    const auto in = fill_sweep(src, random);
    Expected<TileT> want(dst);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c)
        want.set(r, c, Op::template ref<T>(widen(in[r * kSweepCols + c]), widen(scalar)), Op::kWorst);
    Op::run(dst, src, scalar);
    ASSERT_NO_FATAL_FAILURE(expect_tile(dst, want.values, want.places));
  }
}
// dst = op(a, scalar, c)
template <class Op, class T, class L> void sweep_middle_scalar(Random& random) {
  using TileT = typename L::template Of<T>;
  for (int round = 0; round < kSweepRounds; ++round) {
    const int rows = extents(kSweepRows, random)[(round + 2) % 5], cols = extents(kSweepCols, random)[(round + 3) % 5];
    TileT dst(rows, cols), a(rows, cols), c(rows, cols);
    T scalar = sweep_value<T>(random);
    TASSIGN(a, 0x8000);
    TASSIGN(c, 0x10000);
    TASSIGN(dst, 0x8000 * (round % 3));
    fill_sweep(dst, random);
    fill_sweep(a, random);
    fill_sweep(c, random);
    const auto x = contents(a), z = contents(c);
    Expected<TileT> want(dst);
    for (int i = 0; i < TileT::Numel; ++i)
      if (i / kSweepCols < rows && i % kSweepCols < cols)
        want.set(i / kSweepCols, i % kSweepCols, Op::template ref<T>(widen(x[i]), widen(scalar), widen(z[i])), 0);
    Op::run(dst, a, scalar, c);
    ASSERT_NO_FATAL_FAILURE(expect_tile(dst, want.values, want.places));
  }
}
// One operand has a value per row (or column): as a column, or as 32 bytes that repeat; before or behind the other.
template <class Op, class T, class L, bool kPerRow> void sweep_broadcast(Random& random) {
  using TileT = typename L::template Of<T>;
  constexpr int kBlock = 32 / int(sizeof(T));
  ColTile<T, kSweepRows, 1> column;
  RowTile<T, kSweepRows, kBlock> block;
  RowTile<T, 1, kSweepCols> row;
  TASSIGN(column, 0x10000);
  TASSIGN(block, 0x10000);
  TASSIGN(row, 0x10000);
  for (int round = 0; round < 8; ++round) {
    const int rows = extents(kSweepRows, random)[(round + 2) % 5], cols = extents(kSweepCols, random)[(round + 3) % 5];
    const bool first = round % 2 == 1, blocks = kPerRow && round % 4 >= 2 && cols != kBlock;
    TileT dst(rows, cols), src(rows, cols);
    TASSIGN(src, 0x8000);
    TASSIGN(dst, round < 4 ? 0x8000 : 0);
    fill_sweep(dst, random);
    const auto in = fill_sweep(src, random);
    Expected<TileT> want(dst);
    column.SetValidShape(rows, 1);
    block.SetValidShape(rows, kBlock);
    row.SetValidShape(1, cols);
    std::vector<T> values = blocks    ? fill_sweep(block, random)
                            : kPerRow ? fill_sweep(column, random)
                                      : fill_sweep(row, random);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        const auto x = widen(in[r * kSweepCols + c]);
        const auto y = widen(values[blocks ? r * kBlock + c % kBlock : kPerRow ? r : c]);
        want.set(r, c, first ? Op::template ref<T>(y, x) : Op::template ref<T>(x, y), Op::kWorst);
      }
    const auto call = [&](auto& other) { first ? Op::run(dst, other, src) : Op::run(dst, src, other); };
    if (blocks)
      call(block);
    else if (kPerRow)
      call(column);
    else
      call(row);
    ASSERT_NO_FATAL_FAILURE(expect_tile(dst, want.values, want.places)) << "round " << round;
  }
}
// Sources with valid regions of their own.
template <class Op, class T, class L> void sweep_partial(Random& random) {
  using TileT = typename L::template Of<T>;
  for (int round = 0; round < 2 * kSweepRounds; ++round) {
    const auto extent = [&] { return extents(kSweepRows, random)[random.between(0, 4)]; };
    TileT dst(extent(), extent()), a(extent(), extent()), b(extent(), extent());
    TASSIGN(dst, 0);
    TASSIGN(a, round % 3 == 1 ? 0 : 0x8000);
    TASSIGN(b, 0x10000);
    const auto y = fill_sweep(b, random);
    fill_sweep(a, random);
    if (round % 3 != 1) fill_sweep(dst, random);
    const auto x = contents(a);
    Expected<TileT> want(dst);
    for (int r = 0; r < dst.GetValidRow(); ++r)
      for (int c = 0; c < dst.GetValidCol(); ++c) {
        const int i = r * kSweepCols + c;
        const bool in_a = r < a.GetValidRow() && c < a.GetValidCol(), in_b = r < b.GetValidRow() && c < b.GetValidCol();
        if (in_a || in_b)
          want.set(r, c, in_a && in_b ? Op::template ref<T>(widen(x[i]), widen(y[i])) : widen(in_a ? x[i] : y[i]), 0);
      }
    Op::run(dst, a, b);
    ASSERT_NO_FATAL_FAILURE(expect_tile(dst, want.values, want.places));
  }
}
SWEEP_BINARY(TPARTADD, x + y)
SWEEP_BINARY(TPARTMUL, product(x, y))
SWEEP_BINARY(TPARTMAX, x < y ? y : x)
SWEEP_BINARY(TPARTMIN, y < x ? y : x)

// ---- fills, reductions, masks ---------------------------------------------------------------------------------------

// dst from few values: a scalar, the first column or row of a source, a count.
#define SWEEP_FILL(NAME, CALL, VALUE)                                      \
  template <class T, class L> void sweep_##NAME(Random& random) {          \
    using TileT = typename L::template Of<T>;                              \
    for (int round = 0; round < kSweepRounds; ++round) {                   \
      const int rows = extents(kSweepRows, random)[(round + 2) % 5];       \
      const int cols = extents(kSweepCols, random)[(round + 3) % 5];       \
      TileT dst(rows, cols), src(rows, cols);                              \
      T scalar = sweep_value<T>(random);                                   \
      TASSIGN(dst, 0);                                                     \
      TASSIGN(src, round % 3 == 1 ? 0 : 0x8000);                           \
      fill_sweep(dst, random);                                             \
      fill_sweep(src, random);                                             \
      const auto in = contents(src);                                       \
      Expected<TileT> want(dst);                                           \
      for (int r = 0; r < rows; ++r)                                       \
        for (int c = 0; c < cols; ++c) want.set(r, c, VALUE, 0);           \
      CALL;                                                                \
      (void)scalar;                                                        \
      ASSERT_NO_FATAL_FAILURE(expect_tile(dst, want.values, want.places)); \
    }                                                                      \
  }
SWEEP_FILL(TEXPANDS, TEXPANDS(dst, scalar), widen(scalar))
SWEEP_FILL(TROWEXPAND, TROWEXPAND(dst, src), widen(in[r * kSweepCols]))
SWEEP_FILL(TCOLEXPAND, TCOLEXPAND(dst, src), widen(in[c]))
SWEEP_FILL(TCI, (TCI<TileT, T, 1>(dst, scalar)), r == 0 ? widen(scalar) - Wide<T>(c) : want.values[r * kSweepCols + c])
SWEEP_FILL(TTRI, (TTRI<TileT, 1>(dst, 3)), Wide<T>(c - r >= 3 ? 1 : 0))

template <class T> bool close_sum(T got, Wide<T> want, Wide<T> magnitude) {
  if constexpr (kFloating<T>)
    return close_to(got, want, 1) || std::fabs(decode(got) - want) <= 2e-6 * magnitude;
  else
    return got == narrow<T>(want);
}
// Integers wrap at every step; products of 64 of them would leave 64 bits.
template <class T> Wide<T> wrapped(Wide<T> value) { return kFloating<T> ? value : widen(narrow<T>(value)); }
template <class T> Wide<T> least() {
  if constexpr (kFloating<T>)
    return -INFINITY;
  else
    return std::numeric_limits<T>::min();
}
template <class T> Wide<T> most() {
  if constexpr (kFloating<T>)
    return INFINITY;
  else
    return std::numeric_limits<T>::max();
}
// kSpecial: also of infinities and NaN.
#define SWEEP_REDUCTION(NAME, SPECIAL, START, NEXT)                                             \
  struct NAME##Sweep {                                                                          \
    static constexpr bool kSpecial = SPECIAL;                                                   \
    template <class D, class S> static void rows(D& dst, S& src) { TROW##NAME(dst, src, src); } \
    template <class D, class S> static void columns(D& dst, S& src) { TCOL##NAME(dst, src); }   \
    template <class T> static Wide<T> start() { return START; }                                 \
    template <class T> static Wide<T> next(Wide<T> v, Wide<T> x) { return wrapped<T>(NEXT); }   \
  };
SWEEP_REDUCTION(SUM, false, 0, v + x)
SWEEP_REDUCTION(PROD, false, 1, v* x)
SWEEP_REDUCTION(MAX, true, least<T>(), v < x ? x : v)
SWEEP_REDUCTION(MIN, true, most<T>(), x < v ? x : v)

// Row k (or column k) of `in`, reduced, in place k of dst.
template <class Op, bool kRows, class Dst, class T>
void expect_reduced(Dst& dst, const std::vector<T>& in, int count, int length) {
  for (int k = 0; k < count; ++k) {
    Wide<T> want = Op::template start<T>(), magnitude = 0;
    for (int j = 0; j < length; ++j) {
      const Wide<T> x = widen(kRows ? in[k * kSweepCols + j] : in[j * kSweepCols + k]);
      want = Op::template next<T>(want, x);
      magnitude += x < 0 ? -x : x;
    }
    if (std::is_same_v<Op, PRODSweep>) magnitude = 10 * (want < 0 ? -want : want);
    const T got = kRows ? element(dst, k, 0) : element(dst, 0, k);
    ASSERT_TRUE(decode(got) == double(want) || (!Op::kSpecial && close_sum(got, want, magnitude)))
        << "place " << k << ": " << decode(got) << ", not " << double(want);
  }
}
// Row reductions into a column and into the first column of rows, column reductions into a row.
template <class Op, class T, class L, bool kRows> void sweep_reduction(Random& random) {
  using TileT = typename L::template Of<T>;
  for (int round = 0; round < kSweepRounds; ++round) {
    const int rows = 1 + random.between(0, kSweepRows - 1), cols = 1 + random.between(0, kSweepCols - 1);
    TileT src(rows, cols);
    ColTile<T, kSweepRows, 1> column(rows, 1);
    RowTile<T, kSweepRows, 32> first(rows, 1);
    RowTile<T, 1, kSweepCols> row(1, cols);
    TASSIGN(src, 0x8000);
    TASSIGN(column, 0);
    TASSIGN(first, 0);
    TASSIGN(row, 0);
    fill_sweep(src, random);
    for (int i = 0; !Op::kSpecial && i < TileT::Numel; ++i)
      element(src, i / kSweepCols, i % kSweepCols) = narrow<T>(static_cast<Wide<T>>(random.between(1, 15)) / 7);
    const auto in = contents(src);
    if constexpr (kRows) {
      Op::rows(column, src);
      expect_reduced<Op, true>(column, in, rows, cols);
      Op::rows(first, src);
      expect_reduced<Op, true>(first, in, rows, cols);
    } else {
      Op::columns(row, src);
      expect_reduced<Op, false>(row, in, cols, rows);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

template <class T, class L, bool kRows, bool kMax> void sweep_index(Random& random) {
  using TileT = typename L::template Of<T>;
  for (int round = 0; round < kSweepRounds; ++round) {
    const int rows = 1 + random.between(0, kSweepRows - 1), cols = 1 + random.between(0, kSweepCols - 1);
    TileT src(rows, cols);
    TASSIGN(src, 0x8000);
    fill_sweep(src, random);
    const auto in = contents(src);
    ColTile<int32_t, kSweepRows, 1> column(rows, 1);
    RowTile<uint32_t, 1, kSweepCols> row(1, cols);
    TASSIGN(column, 0);
    TASSIGN(row, 0);
    if constexpr (kRows)
      kMax ? TROWARGMAX(column, src, src) : TROWARGMIN(column, src, src);
    else
      kMax ? TCOLARGMAX(row, src) : TCOLARGMIN(row, src);
    for (int k = 0; k < (kRows ? rows : cols); ++k) {
      int best = -1;
      double held = 0;
      for (int j = 0; j < (kRows ? cols : rows); ++j) {
        const double x = decode(kRows ? in[k * kSweepCols + j] : in[j * kSweepCols + k]);
        if (std::isnan(x) || (best >= 0 && !(kMax ? held < x : x < held))) continue;
        best = j;
        held = x;
      }
      ASSERT_EQ(kRows ? int(column.GetValue(k)) : int(row.GetValue(k)), std::max(best, 0)) << "place " << k;
    }
  }
}

template <class T> bool compares(T a, T b, CmpMode mode) {
  const double x = decode(a), y = decode(b);
  switch (mode) {
    case CmpMode::EQ: return x == y;
    case CmpMode::NE: return x != y;
    case CmpMode::LT: return x < y;
    case CmpMode::LE: return x <= y;
    case CmpMode::GT: return x > y;
    default: return x >= y;
  }
}
constexpr CmpMode kAllCompares[] = {CmpMode::EQ, CmpMode::NE, CmpMode::LT, CmpMode::LE, CmpMode::GT, CmpMode::GE};
template <class T, class L, bool kScalar> void sweep_compare(Random& random) {
  using TileT = typename L::template Of<T>;
  for (CmpMode mode : kAllCompares) {
    const int rows = 1 + random.between(0, kSweepRows - 1), cols = 1 + random.between(0, kSweepCols - 1);
    TileT a(rows, cols), b(rows, cols);
    RowTile<uint8_t, kSweepRows, 32> mask(rows, (cols + 7) / 8);
    TASSIGN(a, 0x8000);
    TASSIGN(b, 0x10000);
    TASSIGN(mask, 0);
    const auto x = fill_sweep(a, random);
    auto y = fill_sweep(b, random);
    for (int i = 0; i < TileT::Numel; i += 3) element(b, i / kSweepCols, i % kSweepCols) = y[i] = x[i];
    fill_random(mask, random);
    const T scalar = x[5];
    if constexpr (kScalar)
      TCMPS(mask, a, scalar, mode);
    else
      TCMP(mask, a, b, mode);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < (cols + 7) / 8 * 8; ++c) {
        const int i = r * kSweepCols + c;
        const bool want = c < cols && compares(x[i], kScalar ? scalar : y[i], mode);
        ASSERT_EQ((element(mask, r, c / 8) >> (c % 8)) & 1, int(want)) << r << ", " << c << " mode " << int(mode);
      }
  }
}
template <class T, class L, bool kScalar> void sweep_select(Random& random) {
  using TileT = typename L::template Of<T>;
  for (int round = 0; round < kSweepRounds; ++round) {
    const int rows = extents(kSweepRows, random)[(round + 2) % 5], cols = extents(kSweepCols, random)[(round + 3) % 5];
    TileT dst(rows, cols), a(rows, cols), b(rows, cols);
    RowTile<uint8_t, kSweepRows, 32> mask(rows, 32);
    TASSIGN(dst, round % 3 == 1 ? 0x8000 : round % 3 == 2 ? 0x10000 : 0);
    TASSIGN(a, 0x8000);
    TASSIGN(b, 0x10000);
    TASSIGN(mask, 0x18000);
    if (round % 3 == 0) fill_sweep(dst, random);
    const auto x = fill_sweep(a, random), y = fill_sweep(b, random);
    const auto bits = fill_random(mask, random);
    const T scalar = sweep_value<T>(random);
    Expected<TileT> want(dst);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        const int i = r * kSweepCols + c;
        want.set(r, c, widen((bits[r * 32 + c / 8] >> (c % 8)) & 1 ? x[i] : kScalar ? scalar : y[i]), 0);
      }
    if constexpr (kScalar)
      TSELS(dst, mask, a, b, scalar);
    else
      TSEL(dst, mask, a, b);
    ASSERT_NO_FATAL_FAILURE(expect_tile(dst, want.values, want.places));
  }
}

}  // namespace tile_test
