// Where tiles lie: storage order, addresses, valid regions, aliases, and what is refused.
#include "unit/support/tile_support.h"

using namespace tile_test;

class TileLayout : public TileTest {};

namespace {
// Stores element by element through a view and looks at the documented place.
template <class TileT> void check_storage_order() {
  TileT tile(TileT::Rows, TileT::Cols);
  TASSIGN(tile, 0);
  const auto all = pto::tile_detail::view(tile, "test");
  for (int r = 0; r < TileT::Rows; ++r)
    for (int c = 0; c < TileT::Cols; ++c)
      ASSERT_EQ(&all.at(r, c) - all.base, documented_offset<TileT>(r, c)) << "(" << r << ", " << c << ")";
}
template <class T, int R, int C> void check_storage_orders() {
  check_storage_order<RowTile<T, R, C>>();
  check_storage_order<ColTile<T, R, C>>();
  check_storage_order<NzTile<T, R, C>>();
  check_storage_order<ZnTile<T, R, C>>();
  check_storage_order<ZzTile<T, R, C>>();
  check_storage_order<NnTile<T, R, C>>();
  check_storage_order<AccTile<T, R, C>>();
}
}  // namespace

TEST_F(TileLayout, StoresElementsWhereTheDocumentationSays) {
  check_storage_orders<float, 32, 48>();
  check_storage_orders<::half, 48, 32>();
  check_storage_orders<int8_t, 64, 96>();
  check_storage_order<Tile<TileType::ScaleLeft, uint8_t, 32, 8, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 32>>();
  check_storage_order<Tile<TileType::ScaleRight, uint8_t, 8, 32, BLayout::ColMajor, -1, -1, SLayout::ColMajor, 32>>();
}

TEST_F(TileLayout, KeepsTheSameTransformOfAddressForAllTilesOfOneOffset) {
  RowTile<float, 4, 16> a(4, 16), b(4, 16);
  TASSIGN(a, 256);
  TASSIGN(b, reinterpret_cast<uintptr_t>(a.data()));
  EXPECT_EQ(a.data(), b.data());
  TASSIGN<256>(b);
  EXPECT_EQ(a.data(), b.data());
  TASSIGN(b, a.data() + 16);
  EXPECT_EQ(b.data(), a.data() + 16);
}

TEST_F(TileLayout, RefusesATileThatReachesBeyondItsMemory) {
  RowTile<float, 16, 64> tile(16, 64);
  const uint64_t last = Core::kBytes[SIMPLER_TILE_MEMORY_UB] - 16 * 64 * 4;
  EXPECT_EQ(failure_of([&] { TASSIGN(tile, last); }), "");
  const std::string text = failure_of([&] { TASSIGN(tile, last + 32); });
  EXPECT_NE(text.find("Vec tile of 16 x 64"), std::string::npos) << text;
  EXPECT_NE(text.find("ends at 0x80000"), std::string::npos) << text;
  EXPECT_NE(failure_of([&] { TASSIGN(tile, -4); }), "") << "negative offsets are beyond any memory";
  TileAcc<float, 256, 256> accumulator;
  EXPECT_EQ(failure_of([&] { TASSIGN(accumulator, 0); }), "") << "the largest accumulator memory is 256 KiB";
}

TEST_F(TileLayout, RefusesTilesWithoutAnAddressAndNullGlobals) {
  RowTile<float, 4, 16> tile(4, 16), placed(4, 16);
  TASSIGN(placed, 0);
  GlobalTensor<float, Shape<1, 1, 1, 4, 16>, Stride<64, 64, 64, 16, 1>> nowhere;
  EXPECT_NE(failure_of([&] { TADD(tile, placed, placed); }).find("TADD: a Vec tile of 4 x 16 has no address"),
            std::string::npos);
  EXPECT_NE(failure_of([&] { TADD(placed, placed, tile); }).find("TADD"), std::string::npos);
  EXPECT_NE(failure_of([&] { tile.GetValue(0); }).find("TASSIGN"), std::string::npos);
  EXPECT_NE(failure_of([&] { TLOAD(placed, nowhere); }).find("TLOAD: the global tensor has a null address"),
            std::string::npos);
  EXPECT_NE(failure_of([&] { TSTORE(nowhere, placed); }).find("TSTORE"), std::string::npos);
}

TEST_F(TileLayout, RefusesValidRegionsThatDoNotFit) {
  RowTile<float, 4, 16> tile(4, 16);
  EXPECT_NE(failure_of([&] { tile.SetValidShape(5, 1); }).find("5 valid rows, but the tile holds 0 to 4"),
            std::string::npos);
  EXPECT_NE(failure_of([&] { tile.SetValidCol(-1); }).find("-1 valid columns"), std::string::npos);
  Tile<TileType::Vec, float, 4, 16> fixed;
  EXPECT_EQ(failure_of([&] { fixed.SetValidShape(4, 16); }), "");
  EXPECT_NE(failure_of([&] { fixed.SetValidRow(3); }).find("DYNAMIC"), std::string::npos);
}

TEST_F(TileLayout, RefusesSourcesThatAreSmallerThanTheDestination) {
  RowTile<float, 8, 16> big(8, 16);
  RowTile<float, 4, 16> small(4, 16);
  TASSIGN(big, 0);
  TASSIGN(small, 1024);
  EXPECT_NE(failure_of([&] { TMUL(big, big, small); }).find("TMUL: 8 x 16 elements needed of a Vec tile of 4 x 16"),
            std::string::npos);
  EXPECT_NE(failure_of([&] { TEXTRACT(small, big, 6, 0); }).find("TEXTRACT"), std::string::npos);
  EXPECT_NE(failure_of([&] { TINSERT(small, big, 0, 0); }).find("TINSERT"), std::string::npos);
}

TEST_F(TileLayout, ReadsAndWritesSingleElementsByPlace) {
  RowTile<int32_t, 2, 8> tile(2, 8);
  TASSIGN(tile, 64);
  tile.SetValue(9, 41.0);
  EXPECT_EQ(tile.GetValue(9), 41);
  EXPECT_EQ(tile.data()[9], 41);
  EXPECT_NE(failure_of([&] { tile.GetValue(16); }).find("element 16 of a Vec tile of 2 x 8"), std::string::npos);
  EXPECT_NE(failure_of([&] { tile.SetValue(-1, 0); }), "");
}

TEST_F(TileLayout, ReshapesToAnAlias) {
  ColTile<float, 16, 1> column(16, 1);
  Tile<TileType::Vec, float, 1, 16> row;
  TASSIGN(column, 128);
  TRESHAPE(row, column);
  EXPECT_EQ(row.data(), column.data());
}

TEST_F(TileLayout, BelongsToTheCoreThatRunsOnTheThread) {
  Core other;
  RowTile<float, 1, 8> here(1, 8), there(1, 8);
  TASSIGN(here, 0);
  Core::current = &other;
  TASSIGN(there, 0);
  Core::current = &core_;
  EXPECT_NE(here.data(), there.data());
  EXPECT_NE(failure_of([&] { TASSIGN(here, there.data()); }), "") << "an address in another core's memory";
}

TEST(TileStandAlone, GivesEveryThreadItsOwnMemory) {
  RowTile<float, 1, 8> mine(1, 8);
  TASSIGN(mine, 0);
  TEXPANDS(mine, 1.0f);
  float seen = -1;
  std::thread([&] {
    RowTile<float, 1, 8> yours(1, 8);
    TASSIGN(yours, 0);
    seen = yours.GetValue(0);
    TEXPANDS(yours, 2.0f);
  }).join();
  EXPECT_EQ(seen, 0.0f) << "zero-filled";
  EXPECT_EQ(mine.GetValue(0), 1.0f);
}

TEST(TileStandAlone, AbortsWithTheSentence) {
  RowTile<float, 1, 8> tile(1, 8);
  EXPECT_DEATH(TASSIGN(tile, 1 << 30), "tile library: TASSIGN: a Vec tile of 1 x 8 elements");
}

TEST(TileStandAlone, IgnoresHooksOfAnotherVersionAndSaysSo) {
  SimplerSimHooks hooks = {};
  hooks.version = SIMPLER_SIM_HOOKS_VERSION + 1;
  hooks.size = sizeof hooks;
  hooks.sub_block_id = [] { return 7u; };
  testing::internal::CaptureStderr();
  simpler_sim_register_hooks(&hooks);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("rebuild the kernel"), std::string::npos);
  EXPECT_EQ(get_subblockid(), 0u);
}

TEST(TileStandAlone, TakesTheMembersThatAnOlderHostFills) {
  SimplerSimHooks hooks = {};
  hooks.version = SIMPLER_SIM_HOOKS_VERSION;
  hooks.size = offsetof(SimplerSimHooks, pipe_state);
  hooks.sub_block_id = [] { return 1u; };
  hooks.check_failed = [](const char*) { throw CheckFailed("not copied"); };
  simpler_sim_register_hooks(&hooks);
  EXPECT_EQ(get_subblockid(), 1u);
  EXPECT_EQ(pto::tile_detail::sim_state.hooks.check_failed, nullptr);
  hooks.sub_block_id = nullptr;
  simpler_sim_register_hooks(&hooks);
  pto_sim_register_hooks(reinterpret_cast<void*>(+[]() -> uint32_t { return 1; }), nullptr);
  EXPECT_EQ(get_subblockid(), 1u) << "the vendor's hook";
  pto_sim_register_hooks(nullptr, nullptr);
  EXPECT_EQ(get_subblockid(), 0u);
}

TEST_F(TileLayout, PrintsTilesAndGlobalTensors) {
  RowTile<::half, 2, 16> tile(2, 3);
  TASSIGN(tile, 0);
  TEXPANDS(tile, 1.5f);
  const int32_t memory[] = {1, 2, 3, 4, 5, 6};
  GlobalTensor<const int32_t, Shape<1, 1, 1, 3, 2>, Stride<1, 1, 1, 1, 3>, Layout::DN> columns(memory);
  ::testing::internal::CaptureStdout();
  TPRINT(tile);
  TPRINT(columns);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "Vec tile of 2 x 16, valid 2 x 3\n 1.5 1.5 1.5\n 1.5 1.5 1.5\n"
            "global tensor of 3 x 2, layout DN\n 1 4\n 2 5\n 3 6\n");
}

// Tiles of more than one strip, in all rows and columns and in part of them: the same bits as row-major tiles give.
template <class T, class TileT> void expect_as_row_major(int rows, int cols, Random& random) {
  using Rows = RowTile<T, 80, 160>;
  Rows plain(rows, cols), result(rows, cols);
  TileT given(rows, cols), made(rows, cols);
  ColTile<T, 80, 1> column(rows, 1), column_made(rows, 1);
  RowTile<T, 1, 160> line(1, cols), line_made(1, cols);
  RowTile<uint8_t, 80, 32> mask(rows, 32), mask_made(rows, 32);
  TASSIGN(plain, 0), TASSIGN(given, 0xc800);
  TASSIGN(result, 0x19000), TASSIGN(made, 0x19000);
  TASSIGN(column, 0x26000), TASSIGN(column_made, 0x26400), TASSIGN(line, 0x26800), TASSIGN(line_made, 0x27000);
  TASSIGN(mask, 0x28000), TASSIGN(mask_made, 0x29000);
  fill_random(plain, random);
  TMOV(given, plain);
  const auto same_tiles = [&](auto&& run) {
    run(result, plain);
    const auto want = contents(result);
    run(made, given);
    const auto got = contents(made);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        const auto at = static_cast<size_t>(r * 160 + c);
        ASSERT_TRUE(same_value(got[at], want[at])) << r << ", " << c;
      }
  };
  const auto same_reductions = [&](auto&& run) {
    run(column, line, plain);
    run(column_made, line_made, given);
    for (int r = 0; r < rows; ++r) ASSERT_TRUE(same_value(column_made.GetValue(r), column.GetValue(r))) << "row " << r;
    for (int c = 0; c < cols; ++c) ASSERT_TRUE(same_value(line_made.GetValue(c), line.GetValue(c))) << "column " << c;
  };
  same_reductions([](auto& of_rows, auto& of_cols, auto& src) { TROWMAX(of_rows, src, src), TCOLMAX(of_cols, src); });
  same_tiles([&](auto& dst, auto& src) { TROWEXPANDMAX(dst, src, column); });
  same_tiles([&](auto& dst, auto& src) { TCOLEXPANDMIN(dst, src, line); });
  same_tiles([&](auto& dst, auto& src) { TMAX(dst, src, plain); });
  same_tiles([&](auto& dst, auto& src) { TMAX(dst, plain, src); });
  TCMPS(mask, plain, line.GetValue(0), CmpMode::LT);
  TCMPS(mask_made, given, line.GetValue(0), CmpMode::LT);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < (cols + 7) / 8; ++c) ASSERT_EQ(mask_made.GetValue(r * 32 + c), mask.GetValue(r * 32 + c));
  same_tiles([&](auto& dst, auto& src) { TSELS(dst, mask, src, src, line.GetValue(0)); });
}
template <class T> void expect_layouts_as_row_major(Random& random) {
  for (const int rows : {80, 67})
    for (const int cols : {160, 139}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      expect_as_row_major<T, ColTile<T, 80, 160>>(rows, cols, random);
      expect_as_row_major<T, NzVectorTile<T, 80, 160>>(rows, cols, random);
    }
}
TEST_F(TileLayout, TilesOfSeveralStripsGiveTheBitsOfRowMajorOnes) {
  Random random(29);
  expect_layouts_as_row_major<float>(random);
  expect_layouts_as_row_major<::half>(random);
  expect_layouts_as_row_major<::bfloat16_t>(random);
  expect_layouts_as_row_major<int32_t>(random);
}
