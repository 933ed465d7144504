// Padding, transposing, joining, comparing, selecting, gathering, scattering, sorting.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileRearrange : public TileTest {};

// ---- padding --------------------------------------------------------------------------------------------------------

namespace {
template <class T, auto kPad> using Padded =
    Tile<TileType::Vec, T, 9, 32, BLayout::RowMajor, 9, 32, SLayout::NoneBox, 512, kPad>;

template <class T, auto kPad> void check_pad(T pad, bool in_place) {
  Random random(1);
  for (int rows : {0, 1, 4, 9})
    for (int cols : {0, 1, 13, 32}) {
      RowTile<T, 9, 32> src(rows, cols);
      Padded<T, kPad> dst;
      TASSIGN(src, 0);
      TASSIGN(dst, in_place ? 0 : 0x2000);
      const auto from = fill_random(src, random);
      if (in_place)
        TFILLPAD_INPLACE(dst, src);
      else
        TFILLPAD(dst, src);
      const auto got = contents(dst);
      for (int r = 0; r < 9; ++r)
        for (int c = 0; c < 32; ++c)
          ASSERT_TRUE(same_bits(got[r * 32 + c], r < rows && c < cols ? from[r * 32 + c] : pad))
              << "(" << r << ", " << c << ")";
    }
}
}  // namespace

TEST_F(TileRearrange, PadsWithTheValueOfTheType) {
  for (bool in_place : {false, true}) {
    check_pad<float, PadValue::Min>(-INFINITY, in_place);
    check_pad<float, PadValue::Max>(INFINITY, in_place);
    check_pad<float, PadValue::Zero>(0.0f, in_place);
    check_pad<float, PadValueCustom(-1.5f)>(-1.5f, in_place);
    check_pad<::half, PadValue::Min>(encode<::half>(-INFINITY), in_place);
    check_pad<::half, PadCustom<0x3c00>>(encode<::half>(1), in_place);
    check_pad<int32_t, PadValue::Min>(std::numeric_limits<int32_t>::min(), in_place);
    check_pad<uint8_t, PadValue::Max>(255, in_place);
    check_pad<int8_t, PadCustom<-3>>(-3, in_place);
  }
}
TEST_F(TileRearrange, PadsATileOfOneTypeWithZeroAndALargerOne) {
  RowTile<float, 2, 16> tile(2, 16);
  TASSIGN(tile, 0);
  TEXPANDS(tile, 3.0f);
  tile.SetValidShape(1, 10);
  TFILLPAD(tile, tile);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(tile.GetValue(i), i < 10 ? 3.0f : 0.0f);
  Padded<float, PadValue::Max> large;
  TASSIGN(large, 0x1000);
  TFILLPAD_EXPAND(large, tile);
  for (int i = 0; i < 9 * 32; ++i) EXPECT_EQ(large.GetValue(i), i < 10 ? 3.0f : INFINITY);
}
TEST_F(TileRearrange, PadsNothingInAnEmptyTile) {
  Tile<TileType::Vec, float, 2, 8, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Max> dst(0, 8);
  RowTile<float, 2, 8> src(2, 8);
  TASSIGN(src, 0);
  TASSIGN(dst, 256);
  TFILLPAD(dst, src);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(dst.data()[i], 0.0f);
}

// ---- transposing and joining ------------------------------------------------------------------------------------

namespace {
template <class T, int R, int C> void check_transpose(Random& random) {
  for (int rows : extents(R, random))
    for (int cols : extents(C, random)) {
      RowTile<T, R, C> src(rows, cols), tmp(rows, cols);
      RowTile<T, C, R> dst(cols, rows);
      TASSIGN(src, 0);
      TASSIGN(dst, 0x10000);
      TASSIGN(tmp, 0x20000);
      const auto from = fill_random(src, random);
      auto want = fill_random(dst, random);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) want[c * R + r] = from[r * C + c];
      TTRANS(dst, src, tmp);
      ASSERT_EQ(0, std::memcmp(contents(dst).data(), want.data(), want.size() * sizeof(T)));
    }
}
}  // namespace

TEST_F(TileRearrange, Transposes) {
  Random random(2);
  check_transpose<float, 24, 40>(random);
  check_transpose<::half, 48, 32>(random);
  check_transpose<int8_t, 64, 96>(random);
  check_transpose<int64_t, 12, 20>(random);
}
TEST_F(TileRearrange, JoinsColumns) {
  Random random(3);
  RowTile<::half, 5, 48> a(4, 37);
  RowTile<::half, 5, 16> b(4, 11);
  RowTile<::half, 5, 64> d(4, 48);
  TASSIGN(a, 0);
  TASSIGN(b, 0x1000);
  TASSIGN(d, 0x2000);
  const auto x = fill_random(a, random), y = fill_random(b, random);
  auto want = fill_random(d, random);
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 48; ++c) want[r * 64 + c] = c < 37 ? x[r * 48 + c] : y[r * 16 + c - 37];
  TCONCAT(d, a, b);
  EXPECT_EQ(0, std::memcmp(contents(d).data(), want.data(), want.size() * 2));
}

// ---- comparing and selecting --------------------------------------------------------------------------------------

namespace {
bool compared(double a, double b, CmpMode mode) {
  switch (mode) {
    case CmpMode::EQ: return a == b;
    case CmpMode::NE: return a != b;
    case CmpMode::LT: return a < b;
    case CmpMode::LE: return a <= b;
    case CmpMode::GT: return a > b;
    default: return a >= b;
  }
}
template <class T> void check_compare() {
  Random random(4);
  constexpr int R = 4, C = 64;
  for (int cols : {1, 8, 21, 64})
    for (CmpMode mode : {CmpMode::EQ, CmpMode::NE, CmpMode::LT, CmpMode::LE, CmpMode::GT, CmpMode::GE}) {
      RowTile<T, R, C> a(R, cols), b(R, cols), d(R, cols), tmp(R, C);
      RowTile<uint8_t, R, 32> mask(R, 32);
      TASSIGN(a, 0);
      TASSIGN(b, 0x1000);
      TASSIGN(d, 0x2000);
      TASSIGN(tmp, 0x3000);
      TASSIGN(mask, 0x4000);
      for (int i = 0; i < R * C; ++i) {
        a.data()[i] = encode<T>(random.between(-2, 2));
        b.data()[i] = encode<T>(random.between(-2, 2));
        if (kFloating<T> && random.between(0, 5) == 0) a.data()[i] = encode<T>(NAN);
        if (kFloating<T> && random.between(0, 5) == 0) b.data()[i] = encode<T>(1e-10);  // nearly equal is not equal
      }
      TCMP(mask, a, b, mode);
      TSEL(d, mask, a, b, tmp);
      for (int r = 0; r < R; ++r)
        for (int c = 0; c < (cols + 7) / 8 * 8; ++c) {
          const bool bit = (mask.data()[r * 32 + c / 8] >> (c % 8)) & 1;
          const T x = a.data()[r * C + c], y = b.data()[r * C + c];
          ASSERT_EQ(bit, c < cols && compared(decode(x), decode(y), mode));
          ASSERT_TRUE(c >= cols || same_value(d.data()[r * C + c], bit ? x : y));
        }
      TCMPS(mask, a, encode<T>(1), mode);
      TSELS(d, mask, a, tmp, encode<T>(5));
      for (int r = 0; r < R; ++r)
        for (int c = 0; c < cols; ++c) {
          const T x = a.data()[r * C + c];
          ASSERT_TRUE(same_value(d.data()[r * C + c], compared(decode(x), 1, mode) ? x : encode<T>(5)));
        }
    }
}
}  // namespace

TEST_F(TileRearrange, ComparesToBitsAndSelectsByThem) {
  check_compare<float>();
  check_compare<::half>();
  check_compare<int32_t>();
}
TEST_F(TileRearrange, RefusesMasksThatAreTooSmall) {
  RowTile<float, 4, 512> a(4, 512);
  RowTile<uint8_t, 4, 32> narrow(4, 32);
  RowTile<uint8_t, 2, 64> flat(2, 64);
  TASSIGN(a, 0);
  TASSIGN(narrow, 0x4000);
  TASSIGN(flat, 0x5000);
  TEXPANDS(a, 1.0f);
  EXPECT_NE(failure_of([&] { TCMP(narrow, a, a, CmpMode::EQ); }).find("a mask of 4 rows of 32 bytes"),
            std::string::npos);
  EXPECT_NE(failure_of([&] { TCMP(flat, a, a, CmpMode::EQ); }).find("row 2"), std::string::npos);
  EXPECT_NE(failure_of([&] { TCMP(flat, a, a, static_cast<CmpMode>(9)); }).find("compare mode 9"), std::string::npos);
}

// ---- gathering and scattering ---------------------------------------------------------------------------------------

TEST_F(TileRearrange, GathersByIndexAndPattern) {
  Random random(5);
  using Src = RowTile<float, 4, 24>;
  Src src(4, 24);
  RowTile<float, 3, 16> dst(3, 13);
  RowTile<int32_t, 3, 16> index(3, 13);
  TASSIGN(src, 0);
  TASSIGN(dst, 0x1000);
  TASSIGN(index, 0x2000);
  const auto from = fill_random(src, random);
  auto want = fill_random(dst, random);
  for (int i = 0; i < 48; ++i) index.data()[i] = random.between(-10, 105);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 13; ++c) {
      const int i = index.data()[r * 16 + c];
      want[r * 16 + c] = i >= 0 && i < 96 ? from[i] : 0.0f;
    }
  TGATHER(dst, src, index, dst);
  EXPECT_EQ(contents(dst), want);

  using Packed = RowTile<float, 4, 24>;
  Packed packed(4, 24);
  TASSIGN(packed, 0x3000);
  const auto check = [&](auto gather, int period, int column) {
    const auto before = fill_random(packed, random);
    gather();
    size_t next = 0;
    for (int r = 0; r < 4; ++r)
      for (int c = column; c < 24; c += period) ASSERT_EQ(packed.data()[next++], from[r * 24 + c]);
    for (; next < before.size(); ++next) ASSERT_EQ(packed.data()[next], before[next]);
  };
  check([&] { TGATHER<Packed, Src, MaskPattern::P0101>(packed, src); }, 2, 0);
  check([&] { TGATHER<Packed, Src, MaskPattern::P1010>(packed, src); }, 2, 1);
  check([&] { TGATHER<Packed, Src, MaskPattern::P0001>(packed, src); }, 4, 0);
  check([&] { TGATHER<Packed, Src, MaskPattern::P0100>(packed, src); }, 4, 2);
  check([&] { TGATHER<Packed, Src, MaskPattern::P1000>(packed, src); }, 4, 3);
  check([&] { TGATHER<Packed, Src, MaskPattern::P1111>(packed, src); }, 1, 0);
}
TEST_F(TileRearrange, ScattersWithinATile) {
  RowTile<int16_t, 1, 16> src(1, 4), dst(1, 16);
  RowTile<int32_t, 1, 8> index(1, 4);
  TASSIGN(src, 0);
  TASSIGN(dst, 64);
  TASSIGN(index, 128);
  const int32_t places[4] = {9, 2, 9, 15};
  for (int i = 0; i < 4; ++i) src.data()[i] = int16_t(10 + i), index.data()[i] = places[i];
  TSCATTER(dst, src, index);
  EXPECT_EQ(dst.GetValue(9), 12) << "the last one wins";
  EXPECT_EQ(dst.GetValue(2), 11);
  EXPECT_EQ(dst.GetValue(15), 13);
  index.data()[0] = 16;
  EXPECT_NE(failure_of([&] { TSCATTER(dst, src, index); }).find("index 16 at (0, 0)"), std::string::npos);
}

namespace {
using Flat = GlobalTensor<float, Shape<1, 1, 1, 1, 40>, Stride<40, 40, 40, 40, 1>>;
using Table = GlobalTensor<float, Shape<1, 1, 1, 5, 8>, Stride<80, 80, 80, 16, 2>>;
struct Places {
  RowTile<float, 2, 8> data{2, 7};
  RowTile<int32_t, 2, 8> index{2, 7};
  std::vector<float> from;
  Places() {
    TASSIGN(data, 0);
    TASSIGN(index, 0x400);
    Random random(6);
    from = fill_random(data, random);
    for (int i = 0; i < 16; ++i) index.data()[i] = random.between(-50, 90);
  }
};
int bounded(int i, int count, int rule) {  // 0 skip, 1 clamp, 2 wrap
  if (i >= 0 && i < count) return i;
  return rule == 0 ? -1 : rule == 1 ? std::clamp(i, 0, count - 1) : ((i % count) + count) % count;
}
}  // namespace

TEST_F(TileRearrange, ScattersElementsToGlobalMemory) {
  Places p;
  const auto check = [&](auto scatter, int rule, auto combine) {
    std::vector<float> memory(40, 0.5f), want = memory;
    Flat global(memory.data());
    scatter(global);
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < 7; ++c) {
        const int at = bounded(p.index.data()[r * 8 + c], 40, rule);
        if (at >= 0) want[at] = combine(want[at], p.from[r * 8 + c]);
      }
    ASSERT_EQ(memory, want);
  };
  const auto last = [](float, float b) { return b; };
  check([&](Flat& g) { MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Skip>(g, p.data, p.index); }, 0,
        last);
  check([&](Flat& g) { MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Clamp>(g, p.data, p.index); }, 1,
        last);
  check([&](Flat& g) { MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Wrap>(g, p.data, p.index); }, 2,
        last);
  check([&](Flat& g) { MSCATTER<Coalesce::Elem, ScatterAtomicOp::Add, ScatterOOB::Wrap>(g, p.data, p.index); }, 2,
        [](float a, float b) { return a + b; });
  check([&](Flat& g) { MSCATTER<Coalesce::Elem, ScatterAtomicOp::Max, ScatterOOB::Clamp>(g, p.data, p.index); }, 1,
        [](float a, float b) { return std::max(a, b); });
  check([&](Flat& g) { MSCATTER<Coalesce::Elem, ScatterAtomicOp::Min, ScatterOOB::Clamp>(g, p.data, p.index); }, 1,
        [](float a, float b) { return std::min(a, b); });
  std::vector<float> memory(40);
  Flat global(memory.data());
  EXPECT_NE(failure_of([&] { MSCATTER<Coalesce::Elem>(global, p.data, p.index); }).find("outside the 40 places"),
            std::string::npos);
}
TEST_F(TileRearrange, ScattersAndGathersRows) {
  Places p;
  p.index.SetValidShape(1, 2);
  p.index.data()[0] = 3;
  p.index.data()[1] = -1;
  std::vector<float> memory(80, 0.25f), want = memory;
  Table table(memory.data());
  MSCATTER<Coalesce::Row, ScatterAtomicOp::Max, ScatterOOB::Clamp>(table, p.data, p.index);
  for (int c = 0; c < 7; ++c) {
    want[3 * 16 + c * 2] = std::max(0.25f, p.from[c]);
    want[c * 2] = std::max(0.25f, p.from[8 + c]);
  }
  EXPECT_EQ(memory, want);
  RowTile<float, 2, 8> back(2, 7);
  TASSIGN(back, 0x800);
  MGATHER<Coalesce::Row, GatherOOB::Zero>(back, table, p.index);
  for (int c = 0; c < 7; ++c) {
    EXPECT_EQ(back.data()[c], want[3 * 16 + c * 2]);
    EXPECT_EQ(back.data()[8 + c], 0.0f);
  }
  ColTile<int32_t, 8, 1> column(2, 1);
  TASSIGN(column, 0xc00);
  column.data()[0] = 4;
  column.data()[1] = 0;
  MGATHER<Coalesce::Row>(back, table, column);
  for (int c = 0; c < 7; ++c) EXPECT_EQ(back.data()[8 + c], want[c * 2]);
  column.SetValidRow(1);
  EXPECT_NE(failure_of([&] { MGATHER<Coalesce::Row>(back, table, column); }).find("give one index per row"),
            std::string::npos);
}
TEST_F(TileRearrange, GathersElementsFromGlobalMemory) {
  Places p;
  std::vector<float> memory(40);
  for (int i = 0; i < 40; ++i) memory[i] = 100.0f + i;
  Flat global(memory.data());
  const auto check = [&](auto gather, int rule) {
    gather();
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < 7; ++c) {
        const int at = bounded(p.index.data()[r * 8 + c], 40, rule);
        ASSERT_EQ(p.data.data()[r * 8 + c], at < 0 ? 0.0f : memory[at]);
      }
  };
  check([&] { MGATHER<Coalesce::Elem, GatherOOB::Zero>(p.data, global, p.index); }, 0);
  check([&] { MGATHER<Coalesce::Elem, GatherOOB::Clamp>(p.data, global, p.index); }, 1);
  check([&] { MGATHER<Coalesce::Elem, GatherOOB::Wrap>(p.data, global, p.index); }, 2);
  EXPECT_NE(failure_of([&] { MGATHER<Coalesce::Elem>(p.data, global, p.index); }), "");
}

// ---- sorting --------------------------------------------------------------------------------------------------------

namespace {
template <class T> struct Pair {
  double score;
  uint32_t index;
};
template <class T> Pair<T> pair_at(const T* place) {
  uint32_t index;
  std::memcpy(&index, reinterpret_cast<const unsigned char*>(place) + 4, 4);
  return {decode(*place), index};
}
template <class T> void check_sort(int cols) {
  Random random(7);
  constexpr int C = 96, kWide = 8 / sizeof(T);
  RowTile<T, 2, C> scores(2, cols);
  RowTile<uint32_t, 2, C> index(2, cols);
  RowTile<T, 2, C * kWide> pairs(2, cols * kWide);
  TASSIGN(scores, 0);
  TASSIGN(index, 0x1000);
  TASSIGN(pairs, 0x2000);
  for (int i = 0; i < 2 * C; ++i) scores.data()[i] = encode<T>(random.between(-9, 9)), index.data()[i] = 1000 + i;
  TSORT32(pairs, scores, index);
  for (int r = 0; r < 2; ++r)
    for (int at = 0; at < cols; at += 32) {
      std::vector<std::pair<double, uint32_t>> want;
      for (int c = at; c < std::min(cols, at + 32); ++c)
        want.push_back({decode(scores.data()[r * C + c]), 1000u + r * C + c});
      std::stable_sort(want.begin(), want.end(), [](auto& a, auto& b) { return a.first > b.first; });
      for (size_t i = 0; i < want.size(); ++i) {
        const auto got = pair_at(pairs.data() + (r * C + at + int(i)) * kWide);
        ASSERT_EQ(got.score, want[i].first);
        ASSERT_EQ(got.index, want[i].second);
      }
    }
}
// Sorted random lists of pairs in one tile each.
template <class TileT>
std::vector<std::pair<double, uint32_t>> fill_sorted(TileT& tile, Random& random, uint32_t first_index) {
  using T = typename TileT::DType;
  constexpr int kWide = 8 / sizeof(T);
  std::vector<std::pair<double, uint32_t>> list(tile.GetValidCol() / kWide);
  for (auto& one : list) one.first = random.between(-20, 20);
  std::sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].second = first_index + uint32_t(i);
    tile.data()[i * kWide] = encode<T>(list[i].first);
    std::memcpy(reinterpret_cast<unsigned char*>(tile.data() + i * kWide) + 4, &list[i].second, 4);
  }
  return list;
}
}  // namespace

TEST_F(TileRearrange, SortsBlocksOfThirtyTwo) {
  for (int cols : {1, 31, 32, 64, 77, 96}) {
    check_sort<float>(cols);
    check_sort<::half>(cols);
  }
}
TEST_F(TileRearrange, MergesFourBlocksOfOneTile) {
  Random random(8);
  RowTile<float, 1, 128> src(1, 128), dst(1, 128);
  TASSIGN(src, 0);
  TASSIGN(dst, 0x1000);
  TEXPANDS(src, 0.0f);
  std::vector<std::pair<double, uint32_t>> want;
  for (int block = 0; block < 4; ++block) {
    RowTile<float, 1, 16> part(1, 16);
    TASSIGN(part, block * 64);
    const auto list = fill_sorted(part, random, 100 * block);
    want.insert(want.end(), list.begin(), list.end());
  }
  std::stable_sort(want.begin(), want.end(), [](auto& a, auto& b) { return a.first > b.first; });
  TEXPANDS(dst, 7.0f);
  TMRGSORT(dst, src, 16);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(dst.data()[2 * i], float(want[i].first));
    ASSERT_EQ(pair_at(dst.data() + 2 * i).index, want[i].second);
  }
  TEXPANDS(dst, 7.0f);
  src.SetValidCol(100);
  TMRGSORT(dst, src, 16);
  EXPECT_EQ(dst.GetValue(64), 7.0f) << "behind the last complete group of four";
  EXPECT_NE(failure_of([&] { TMRGSORT(dst, src, 15); }).find("block length 15"), std::string::npos);
}
TEST_F(TileRearrange, MergesSeveralListsAndCountsWhatItTook) {
  using List = RowTile<float, 1, 32>;
  using Out = RowTile<float, 1, 128>;
  Random random(9);
  List a(1, 20), b(1, 32), c(1, 6), d(1, 2), tmp(1, 32);
  Out out(1, 128);
  List* const lists[] = {&a, &b, &c, &d};
  std::vector<std::vector<std::pair<double, uint32_t>>> parts;
  for (int i = 0; i < 4; ++i) {
    TASSIGN(*lists[i], i * 256);
    parts.push_back(fill_sorted(*lists[i], random, 100 * i));
  }
  TASSIGN(tmp, 0x1000);
  TASSIGN(out, 0x2000);
  const auto check = [&](int count, int capacity, bool exhausted, const MrgSortExecutedNumList& executed) {
    std::vector<size_t> taken(4, 0);
    for (int written = 0;; ++written) {
      int best = -1;
      bool empty = false;
      for (int i = 0; i < count; ++i) {
        if (taken[i] == parts[i].size())
          empty = true;
        else if (best < 0 || parts[i][taken[i]].first > parts[best][taken[best]].first)
          best = i;
      }
      if (best < 0 || written == capacity || (exhausted && empty)) break;
      ASSERT_EQ(pair_at(out.data() + 2 * written).index, parts[best][taken[best]].second) << written;
      ++taken[best];
    }
    EXPECT_EQ(executed.mrgSortList0, taken[0]);
    EXPECT_EQ(executed.mrgSortList1, taken[1]);
    EXPECT_EQ(executed.mrgSortList2, taken[2]);
    EXPECT_EQ(executed.mrgSortList3, taken[3]);
  };
  MrgSortExecutedNumList executed;
  TMRGSORT<Out, List, List, List, false>(out, executed, tmp, a, b);
  check(2, 64, false, executed);
  TMRGSORT<Out, List, List, List, List, true>(out, executed, tmp, a, b, c);
  check(3, 64, true, executed);
  out.SetValidCol(24);
  TMRGSORT<Out, List, List, List, List, List, false>(out, executed, tmp, a, b, c, d);
  check(4, 12, false, executed);
}
