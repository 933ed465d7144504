// Transfers: global memory to tiles and back, tile to tile, in every pair of layouts.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileTransfer : public TileTest {};

namespace {

// Global memory seen as a matrix by the documented rules.
struct Numbers {
  int64_t shape[5], stride[5];
};
int64_t documented_place(Layout layout, const Numbers& g, int64_t r, int64_t c) {
  const int64_t* s = g.shape;
  const int64_t* d = g.stride;
  switch (layout) {
    case Layout::ND:
      return r / (s[3] * s[2] * s[1]) * d[0] + r / (s[3] * s[2]) % s[1] * d[1] + r / s[3] % s[2] * d[2] +
             r % s[3] * d[3] + c * d[4];
    case Layout::DN:
      return r * d[3] + c / (s[4] * s[2] * s[1]) * d[0] + c / (s[4] * s[2]) % s[1] * d[1] + c / s[4] % s[2] * d[2] +
             c % s[4] * d[4];
    case Layout::NZ:
      return r / s[3] * d[2] + r % s[3] * d[3] + c / s[4] / s[1] * d[0] + c / s[4] % s[1] * d[1] + c % s[4] * d[4];
    case Layout::MX_A_ZZ: return r / 16 * d[1] + c / 2 * d[2] + r % 16 * d[3] + c % 2 * d[4];
    default: return c / 16 * d[1] + r / 2 * d[2] + c % 16 * d[3] + r % 2 * d[4];
  }
}

using AnyShape = Shape<>;
using AnyStride = Stride<>;
using UnitStride = Stride<-1, -1, -1, -1, 1>;  // ND memory
using UnitRow = Stride<-1, -1, -1, 1, -1>;     // DN memory

template <class TileT, class StrideT, Layout kLayout>
void check_round_trip(const Numbers& g, size_t elements, int rows, int cols, Random& random) {
  using T = typename TileT::DType;
  TileT tile(rows, cols);
  TASSIGN(tile, 0);
  fill_random(tile, random);
  std::vector<T> memory(elements), back(elements);
  for (T& one : memory) one = random.bits<T>();
  for (T& one : back) one = random.bits<T>();
  const std::vector<T> untouched = back;
  const AnyShape shape(g.shape[0], g.shape[1], g.shape[2], g.shape[3], g.shape[4]);
  const StrideT stride(g.stride[0], g.stride[1], g.stride[2], g.stride[3], g.stride[4]);
  using Global = GlobalTensor<T, AnyShape, StrideT, kLayout>;
  Global from(memory.data(), shape, stride), to(back.data(), shape, stride);
  TLOAD(tile, from);
  for (int r = 0; r < TileT::Rows; ++r)
    for (int c = 0; c < TileT::Cols; ++c) {
      const T want = r < rows && c < cols ? memory[documented_place(kLayout, g, r, c)] : T(0);
      ASSERT_TRUE(same_bits(element(tile, r, c), want))
          << "loaded (" << r << ", " << c << ") of " << rows << " x " << cols;
    }
  TSTORE(to, tile);
  std::vector<T> want = untouched;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c)
      want[documented_place(kLayout, g, r, c)] = memory[documented_place(kLayout, g, r, c)];
  for (size_t i = 0; i < elements; ++i) ASSERT_TRUE(same_bits(back[i], want[i])) << "stored place " << i;
}

template <class TileT> void check_layouts(uint64_t seed) {
  constexpr int R = TileT::Rows, C = TileT::Cols;
  Random random(seed);
  for (int rows : extents(R, random))
    for (int cols : extents(C, random)) {
      const int64_t pitch = C + random.between(0, 7), tall = R + random.between(0, 7);
      const size_t wide = size_t(R) * pitch, high = size_t(C) * tall;
      const Numbers nd = {{1, 1, 1, R, C}, {1, 1, 1, pitch, 1}}, dn = {{1, 1, 1, R, C}, {1, 1, 1, 1, tall}};
      check_round_trip<TileT, UnitStride, Layout::ND>(nd, wide, rows, cols, random);
      check_round_trip<TileT, UnitRow, Layout::DN>(dn, high, rows, cols, random);
    }
  // Five dimensions with gaps, in each layout.
  const int64_t r = R / 8, c = C / 8;
  const Numbers deep = {{2, 2, 2, r, C},
                        {4 * (r * (C + 3) + 5) + 40, 2 * (r * (C + 3) + 5) + 7, r * (C + 3) + 5, C + 3, 1}};
  check_round_trip<TileT, UnitStride, Layout::ND>(deep, 2 * deep.stride[0], R, C, random);
  const Numbers flat = {{2, 2, 2, R, c},
                        {4 * (c * (R + 3) + 5) + 40, 2 * (c * (R + 3) + 5) + 7, c * (R + 3) + 5, 1, R + 3}};
  check_round_trip<TileT, UnitRow, Layout::DN>(flat, 2 * flat.stride[0], R, C, random);
  const int64_t box_cols = 32 / int64_t{sizeof(typename TileT::DType)};
  const Numbers boxes = {{1, C / box_cols, R / 16, 16, box_cols}, {R * C, R * box_cols, 16 * box_cols, box_cols, 1}};
  check_round_trip<TileT, UnitStride, Layout::NZ>(boxes, size_t(R) * C, R, C, random);
  const Numbers apart = {
      {2, C / box_cols / 2, R / 16, 16, box_cols},
      {C / box_cols / 2 * (R + 16) * (box_cols + 2), (R + 16) * (box_cols + 2), 17 * (box_cols + 2), box_cols + 2, 1}};
  check_round_trip<TileT, UnitStride, Layout::NZ>(apart, 2 * apart.stride[0], R, C - 1, random);
}

// All strides given at run time: with columns side by side, rows side by side, and neither.
template <class TileT> void check_dynamic_strides(uint64_t seed) {
  constexpr int R = TileT::Rows, C = TileT::Cols;
  Random random(seed);
  for (int rows : extents(R, random))
    for (int cols : extents(C, random)) {
      check_round_trip<TileT, AnyStride, Layout::ND>({{1, 1, 1, R, C}, {1, 1, 1, C + 3, 1}}, R * (C + 3), rows, cols,
                                                     random);
      check_round_trip<TileT, AnyStride, Layout::ND>({{1, 1, 1, R, C}, {1, 1, 1, 1, R + 3}}, C * (R + 3), rows, cols,
                                                     random);
      check_round_trip<TileT, AnyStride, Layout::ND>({{1, 1, 1, R, C}, {1, 1, 1, 2 * C, 2}}, 2 * R * C, rows, cols,
                                                     random);
    }
}

template <class T, int R, int C> void check_all_tiles(uint64_t seed) {
  check_layouts<RowTile<T, R, C>>(seed);
  check_layouts<ColTile<T, R, C>>(seed + 1);
  check_layouts<NzTile<T, R, C>>(seed + 2);
  check_layouts<ZnTile<T, R, C>>(seed + 3);
  check_layouts<ZzTile<T, R, C>>(seed + 4);
  check_layouts<NnTile<T, R, C>>(seed + 5);
}

}  // namespace

TEST_F(TileTransfer, LoadsAndStoresFloatInEveryLayout) { check_all_tiles<float, 32, 48>(10); }
TEST_F(TileTransfer, LoadsAndStoresHalf) {
  check_layouts<RowTile<::half, 48, 32>>(20);
  check_layouts<ZnTile<::half, 48, 32>>(21);
}
TEST_F(TileTransfer, LoadsAndStoresBytes) {
  check_layouts<NzTile<int8_t, 32, 64>>(30);
  check_layouts<ZnTile<int8_t, 32, 64>>(31);
}
TEST_F(TileTransfer, TakesStridesAtRunTime) {
  check_dynamic_strides<RowTile<float, 16, 40>>(34);
  check_dynamic_strides<NzTile<::half, 32, 48>>(35);
}
TEST_F(TileTransfer, LoadsAndStoresWideIntegers) { check_layouts<RowTile<int64_t, 16, 16>>(40); }

TEST_F(TileTransfer, LoadsScaleLayouts) {
  Random random(50);
  using Left = Tile<TileType::Mat, uint8_t, 32, 8, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 32>;
  check_round_trip<Left, AnyStride, Layout::MX_A_ZZ>({{1, 2, 4, 16, 2}, {0, 128, 32, 2, 1}}, 256, 32, 8, random);
  check_round_trip<Left, AnyStride, Layout::MX_A_ZZ>({{1, 2, 4, 16, 2}, {0, 128, 32, 2, 1}}, 256, 19, 7, random);
  using Right = Tile<TileType::Mat, uint8_t, 8, 32, BLayout::ColMajor, -1, -1, SLayout::ColMajor, 32>;
  check_round_trip<Right, AnyStride, Layout::MX_B_NN>({{1, 2, 4, 16, 2}, {0, 128, 32, 2, 1}}, 256, 8, 32, random);
  check_round_trip<Right, AnyStride, Layout::MX_B_NN>({{1, 2, 4, 16, 2}, {0, 128, 32, 2, 1}}, 256, 5, 21, random);
}

TEST_F(TileTransfer, FillsAroundTheLoadedRegionWithThePadValue) {
  float memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  GlobalTensor<float, Shape<1, 1, 1, 1, 8>, Stride<8, 8, 8, 8, 1>> global(memory);
  Tile<TileType::Vec, float, 2, 8, BLayout::RowMajor, 1, 5, SLayout::NoneBox, 512, PadValue::Max> most;
  Tile<TileType::Vec, int16_t, 1, 16, BLayout::RowMajor, 1, 1, SLayout::NoneBox, 512, PadValue::Min> least;
  Tile<TileType::Vec, float, 2, 8, BLayout::RowMajor, 1, 5, SLayout::NoneBox, 512, PadValueCustom(-2.5f)> custom;
  Tile<TileType::Vec, int32_t, 1, 8, BLayout::RowMajor, 1, 5, SLayout::NoneBox, 512, PadCustom<77>> pattern;
  TASSIGN(most, 0);
  TASSIGN(least, 256);
  TASSIGN(custom, 512);
  TASSIGN(pattern, 1024);
  TLOAD(most, global);
  EXPECT_EQ(most.GetValue(4), 5.0f);
  EXPECT_EQ(most.GetValue(5), std::numeric_limits<float>::infinity());
  EXPECT_EQ(most.GetValue(15), std::numeric_limits<float>::infinity());
  int16_t words[1] = {3};
  GlobalTensor<int16_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>> one(words);
  TLOAD(least, one);
  EXPECT_EQ(least.GetValue(0), 3);
  EXPECT_EQ(least.GetValue(1), -32768);
  TLOAD(custom, global);
  EXPECT_EQ(custom.GetValue(7), -2.5f);
  GlobalTensor<float, Shape<1, 1, 1, 1, 8>, Stride<8, 8, 8, 8, 1>> raw(memory);
  TLOAD(pattern, raw);
  EXPECT_EQ(pattern.GetValue(0), bits_as<int32_t>(1.0f)) << "a load moves bits";
  EXPECT_EQ(pattern.GetValue(6), 77);
}

// ---- tile to tile -------------------------------------------------------------------------------------------------

namespace {
template <class Dst, class Src> void check_windows(Random& random) {
  using D = typename Dst::DType;
  using S = typename Src::DType;
  Src src(Src::Rows, Src::Cols);
  TASSIGN(src, 0);
  const std::vector<S> from = fill_random(src, random);
  for (int repeat = 0; repeat < 6; ++repeat) {
    Dst dst(random.between(0, Dst::Rows), random.between(0, Dst::Cols));
    TASSIGN(dst, 0x10000);
    std::vector<D> want = fill_random(dst, random);
    const int row = random.between(0, Src::Rows - dst.GetValidRow()),
              col = random.between(0, Src::Cols - dst.GetValidCol());
    TEXTRACT(dst, src, row, col);
    for (int r = 0; r < dst.GetValidRow(); ++r)
      for (int c = 0; c < dst.GetValidCol(); ++c)
        want[r * Dst::Cols + c] = encode<D>(decode(from[(row + r) * Src::Cols + col + c]));
    const std::vector<D> got = contents(dst);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(same_bits(got[i], want[i])) << "extract at " << row << ", " << col << " place " << i;
  }
}
template <class Dst, class Src> void check_insert_and_move(Random& random) {
  using D = typename Dst::DType;
  Dst dst(Dst::Rows, Dst::Cols);
  Src src(random.between(1, std::min(Src::Rows, Dst::Rows)), random.between(1, std::min(Src::Cols, Dst::Cols)));
  TASSIGN(src, 0);
  TASSIGN(dst, 0x10000);
  const auto from = fill_random(src, random);
  std::vector<D> want = fill_random(dst, random);
  const int row = random.between(0, Dst::Rows - src.GetValidRow()),
            col = random.between(0, Dst::Cols - src.GetValidCol());
  TINSERT(dst, src, row, col);
  for (int r = 0; r < src.GetValidRow(); ++r)
    for (int c = 0; c < src.GetValidCol(); ++c)
      want[(row + r) * Dst::Cols + col + c] = encode<D>(decode(from[r * Src::Cols + c]));
  ASSERT_EQ(0, std::memcmp(contents(dst).data(), want.data(), want.size() * sizeof(D)));
  dst.SetValidShape(src.GetValidRow(), src.GetValidCol());
  TMOV(dst, src);
  for (int r = 0; r < src.GetValidRow(); ++r)
    for (int c = 0; c < src.GetValidCol(); ++c) want[r * Dst::Cols + c] = encode<D>(decode(from[r * Src::Cols + c]));
  ASSERT_EQ(0, std::memcmp(contents(dst).data(), want.data(), want.size() * sizeof(D)));
}
template <class T, template <class, int, int> class D, template <class, int, int> class S>
void check_pair(Random& random) {
  check_windows<D<T, 32, 32>, S<T, 64, 96>>(random);
  check_insert_and_move<D<T, 64, 64>, S<T, 32, 32>>(random);
}
template <class T, template <class, int, int> class S> void check_from(Random& random) {
  check_pair<T, RowTile, S>(random);
  check_pair<T, ColTile, S>(random);
  check_pair<T, NzTile, S>(random);
  check_pair<T, ZnTile, S>(random);
}
}  // namespace

TEST_F(TileTransfer, MovesWindowsBetweenAllLayouts) {
  Random random(60);
  check_from<float, RowTile>(random);
  check_from<float, ColTile>(random);
  check_from<float, NzTile>(random);
  check_from<float, ZnTile>(random);
  check_pair<float, ZzTile, NnTile>(random);
  check_pair<float, NnTile, ZzTile>(random);
  check_from<int8_t, NzTile>(random);
}

TEST_F(TileTransfer, ConvertsWhatItMoves) {
  Random random(70);
  check_windows<NzTile<::bfloat16_t, 32, 32>, AccTile<float, 48, 64>>(random);
  check_windows<ZnTile<::half, 32, 32>, AccTile<float, 48, 64>>(random);
  check_windows<RowTile<float, 32, 32>, AccTile<float, 48, 64>>(random);
  check_windows<RowTile<float, 32, 32>, NzTile<::half, 48, 64>>(random);
}

TEST_F(TileTransfer, AppliesReluAndScaleOnTheWay) {
  Random random(80);
  AccTile<float, 16, 32> acc(16, 32);
  RowTile<::half, 16, 32> vec(16, 32);
  TASSIGN(acc, 0);
  TASSIGN(vec, 0);
  const auto from = fill_random(acc, random);
  std::vector<float> memory(512);
  using Global = GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>>;
  Global global(memory.data());
  TSTORE<AccTile<float, 16, 32>, Global, AtomicType::AtomicNone, ReluPreMode::NormalRelu>(global, acc);
  for (int i = 0; i < 512; ++i) ASSERT_EQ(memory[i], std::max(from[i], 0.0f));
  TMOV<RowTile<::half, 16, 32>, AccTile<float, 16, 32>, ReluPreMode::NormalRelu>(vec, acc);
  for (int i = 0; i < 512; ++i) ASSERT_TRUE(same_bits(contents(vec)[i], encode<::half>(std::max(from[i], 0.0f))));

  AccTile<int32_t, 16, 32> sums(16, 32);
  TASSIGN(sums, 0x8000);
  for (int i = 0; i < 512; ++i) sums.data()[i] = i * 1000 - 200000;
  std::vector<int8_t> bytes(512);
  GlobalTensor<int8_t, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>> quantised(bytes.data());
  const auto values = contents(sums);
  TSTORE(quantised, sums, 0.001f);
  for (int i = 0; i < 512; ++i) {
    const double scaled = std::nearbyint(values[i] * 0.001f);
    ASSERT_EQ(bytes[i], std::clamp(scaled, -128.0, 127.0)) << values[i];
  }
  TSTORE(quantised, sums, static_cast<uint64_t>(bits_as<uint32_t>(0.0005f)));
  for (int i = 0; i < 512; ++i)
    ASSERT_EQ(bytes[i], std::clamp<double>(std::nearbyint(values[i] * 0.0005f), -128.0, 127.0)) << values[i];
}

// ---- atomics -------------------------------------------------------------------------------------------------------

namespace {
template <class T, AtomicType kKind> void check_concurrent_stores() {
  constexpr int kThreads = 4, kRounds = 200, kCols = 64 / sizeof(T);
  using TileT = RowTile<T, 1, kCols>;
  using Global = GlobalTensor<T, Shape<1, 1, 1, 1, kCols>, Stride<kCols, kCols, kCols, kCols, 1>>;
  std::vector<T> memory(kCols, T(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Core core;
      Core::current = &core;
      TileT tile(1, kCols);
      TASSIGN(tile, 0);
      TEXPANDS(tile, T(t % 2));
      Global global(memory.data());
      for (int i = 0; i < kRounds; ++i) TSTORE<TileT, Global, kKind>(global, tile);
      Core::current = nullptr;
    });
  for (std::thread& thread : threads) thread.join();
  const double want = kKind == AtomicType::AtomicAdd ? kThreads / 2 * kRounds : kKind == AtomicType::AtomicMax ? 1 : 0;
  for (T value : memory) ASSERT_EQ(decode(value), decode(encode<T>(want)));
}
}  // namespace

TEST_F(TileTransfer, LosesNoAtomicStore) {
  check_concurrent_stores<float, AtomicType::AtomicAdd>();
  check_concurrent_stores<int32_t, AtomicType::AtomicAdd>();
  check_concurrent_stores<::half, AtomicType::AtomicAdd>();
  check_concurrent_stores<float, AtomicType::AtomicMax>();
  check_concurrent_stores<int32_t, AtomicType::AtomicMin>();
}
TEST_F(TileTransfer, RoundsEveryAtomicAdditionToTheTypeOfTheMemory) {
  RowTile<float, 1, 16> tile(1, 16);
  TASSIGN(tile, 0);
  TEXPANDS(tile, 1.0f);
  std::vector<::bfloat16_t> memory(16, encode<::bfloat16_t>(256));
  using Global = GlobalTensor<::bfloat16_t, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>>;
  Global global(memory.data());
  TSTORE<RowTile<float, 1, 16>, Global, AtomicType::AtomicAdd>(global, tile);
  for (auto value : memory) EXPECT_EQ(decode(value), 256) << "257 is not a bfloat16_t";
}
