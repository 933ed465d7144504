// WrittenTiles against one byte per byte of memory: random regions in all the layouts that tiles have.
#include "executor/written_tiles.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace simpler::executor {
namespace {

alignas(64) unsigned char memory[SIMPLER_TILE_MEMORY_COUNT][1 << 20];  // for its addresses: nothing is touched

struct Layout {
  SimplerTileAxis row, col;
};
// Row-major, column-major, columns of row-major boxes, rows of column-major boxes; 32 x 32 elements of 4 bytes.
constexpr Layout kLayouts[] = {{{32, 0, 0, 0}, {1, 0, 0, 0}},
                               {{1, 0, 0, 0}, {32, 0, 0, 0}},
                               {{8, 0, 0, 0}, {1, 32 * 8, 8, 0}},
                               {{1, 16 * 32, 16, 0}, {16, 0, 0, 0}}};

std::int64_t place(const SimplerTileAxis& axis, std::int64_t i) {
  return axis.run == 0 ? i * axis.step
                       : (axis.first + i) / axis.run * axis.block + (axis.first + i) % axis.run * axis.step;
}
TileRegion region(std::uint32_t location, std::int64_t at, const Layout& layout, int rows, int cols) {
  return {memory[location] + at, layout.row, layout.col, rows, cols, 4};
}

TEST(WrittenTiles, KnowsEachUnitThatARegionTouches) {
  WrittenTiles tiles;
  std::set<std::int64_t> units;  // of location 0
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int found = 0, complete = 0;
  for (int round = 0; round < 20000; ++round) {
    if (round % 40 == 0) {  // more often than a block number has values
      tiles.begin_block();
      units.clear();
    }
    Layout layout = kLayouts[below(4)];
    layout.row.first = layout.row.run != 0 ? below(8) : 0;
    layout.col.first = layout.col.run != 0 ? below(4) : 0;
    const int rows = 1 + below(16), cols = 1 + below(16);
    const TileRegion tile = region(0, below(8) * 1024 + below(16) * 4, layout, rows, cols);
    const std::int64_t base = static_cast<const unsigned char*>(tile.base) - memory[0];
    const auto unit = [&](int r, int c) {
      return (base + 4 * (place(layout.row, r) + place(layout.col, c))) / WrittenTiles::kUnit;
    };
    if (below(2) == 0) {
      tiles.write(0, memory[0], tile);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) units.insert(unit(r, c));
      continue;
    }
    int first_row = -1, first_col = -1;
    for (int r = 0; r < rows && first_row < 0; ++r)
      for (int c = 0; c < cols && first_row < 0; ++c)
        if (units.count(unit(r, c)) == 0) first_row = r, first_col = c;
    std::int32_t row = -1, col = -1;
    ASSERT_EQ(tiles.find_unwritten(0, memory[0], tile, &row, &col), first_row >= 0) << "round " << round;
    ASSERT_EQ(row, first_row) << "round " << round;
    ASSERT_EQ(col, first_col) << "round " << round;
    ++(first_row >= 0 ? found : complete);
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(complete, 1000);
}

TEST(WrittenTiles, ABlockKnowsNothingOfThoseBeforeIt) {
  WrittenTiles tiles;
  const TileRegion tile = region(2, 0, kLayouts[0], 8, 32);
  std::int32_t row = 0, col = 0;
  EXPECT_TRUE(tiles.find_unwritten(2, memory[2], tile, &row, &col)) << "the first block, without begin_block";
  tiles.write(2, memory[2], tile);
  EXPECT_FALSE(tiles.find_unwritten(2, memory[2], tile, &row, &col));
  EXPECT_TRUE(tiles.find_unwritten(1, memory[1], region(1, 0, kLayouts[0], 8, 32), &row, &col)) << "another memory";
  for (int block = 0; block < 600; ++block) {
    tiles.begin_block();
    ASSERT_TRUE(tiles.find_unwritten(2, memory[2], tile, &row, &col)) << "block " << block;
  }
}

TEST(WrittenTiles, IgnoresWhatIsNotInTheMemory) {
  WrittenTiles tiles;
  std::int32_t row = 0, col = 0;
  for (std::int64_t at : {std::int64_t{-4096}, std::int64_t{kTileMemoryBytes[1]}}) {
    const TileRegion outside = region(1, at, kLayouts[0], 8, 32);
    tiles.write(1, memory[1], outside);
    EXPECT_FALSE(tiles.find_unwritten(1, memory[1], outside, &row, &col));
  }
  const TileRegion last = region(1, kTileMemoryBytes[1] - 1024, kLayouts[0], 8, 32);
  EXPECT_TRUE(tiles.find_unwritten(1, memory[1], last, &row, &col));
  const TileRegion nowhere = region(0, 0, kLayouts[0], 8, 32);
  tiles.write(SIMPLER_TILE_MEMORY_COUNT, memory[0], nowhere);
  EXPECT_FALSE(tiles.find_unwritten(SIMPLER_TILE_MEMORY_COUNT, memory[0], nowhere, &row, &col));
}

}  // namespace
}  // namespace simpler::executor
