// Pipes between the three cores of a cluster: each core a thread of its own, as in the simulator.
#include "unit/support/tile_support.h"

using namespace tile_test;

namespace {

constexpr int M = 32, N = 48, kTiles = 23;
using Whole = TileAcc<float, M, N>;
using Half = Tile<TileType::Vec, float, M / 2, N>;
using Side = Tile<TileType::Vec, float, M, N / 2>;
using Full = Tile<TileType::Vec, float, M, N>;
using Mat = Tile<TileType::Mat, float, M, N, BLayout::ColMajor, M, N, SLayout::RowMajor>;
using Down = TPipe<0, Direction::DIR_C2V, M * N * sizeof(float), 2>;
using Up = TPipe<2, Direction::DIR_V2C, M * N * sizeof(float), 3>;

float value_at(int tile, int r, int c) { return static_cast<float>(tile * 10000 + r * 100 + c); }

class TilePipe : public TileTest {
 protected:
  // Runs the three cores of one cluster to their ends.
  template <class Cube, class Vector> void run(Cube cube, Vector vector) {
    Cluster cluster;
    const auto on_core = [&cluster](uint32_t lane, auto kernel) {
      return std::thread([&cluster, lane, kernel] {
        Core core(lane, &cluster);
        Core::current = &core;
        kernel();
        Core::current = nullptr;
      });
    };
    std::thread cube_core = on_core(0, cube);
    std::thread first = on_core(0, [vector] { vector(0); }), second = on_core(1, [vector] { vector(1); });
    cube_core.join();
    first.join();
    second.join();
  }
};

template <class TileT> void put_values(TileT& tile, int number, int first_row = 0, int first_col = 0) {
  for (int r = 0; r < tile.GetValidRow(); ++r)
    for (int c = 0; c < tile.GetValidCol(); ++c) element(tile, r, c) = value_at(number, first_row + r, first_col + c);
}
template <class TileT> void expect_values(TileT& tile, int number, int first_row = 0, int first_col = 0) {
  for (int r = 0; r < tile.GetValidRow(); ++r)
    for (int c = 0; c < tile.GetValidCol(); ++c)
      ASSERT_EQ(element(tile, r, c), value_at(number, first_row + r, first_col + c))
          << "tile " << number << " (" << r << ", " << c << ")";
}

}  // namespace

TEST_F(TilePipe, SplitsAnAccumulatorBetweenTheLanes) {
  for (bool in_global_memory : {false, true})
    for (bool free_slots : {false, true}) {
      std::vector<float> slots(2 * M * N);
      float* const memory = in_global_memory ? slots.data() : nullptr;
      run(
          [&] {
            Down pipe(memory, 0x20000, 0);
            Whole acc;
            TASSIGN(acc, 0);
            for (int t = 0; t < kTiles; ++t) {
              put_values(acc, t);
              TPUSH<Down, Whole, TileSplitAxis::TILE_UP_DOWN>(pipe, acc);
            }
          },
          [&](int lane) {
            Down pipe(memory, 0x20000, 0);
            for (int t = 0; t < kTiles; ++t) {
              Half half;
              TPOP<Down, Half, TileSplitAxis::TILE_UP_DOWN>(pipe, half);
              if (free_slots) TFREE<Down, TileSplitAxis::TILE_UP_DOWN>(pipe);
              expect_values(half, t, lane * M / 2);
            }
          });
    }
}
TEST_F(TilePipe, SplitsColumns) {
  run(
      [&] {
        Down pipe(nullptr, 0x20000, 0);
        Whole acc;
        TASSIGN(acc, 0);
        for (int t = 0; t < kTiles; ++t) {
          put_values(acc, t);
          TPUSH<Down, Whole, TileSplitAxis::TILE_LEFT_RIGHT>(pipe, acc);
        }
      },
      [&](int lane) {
        Down pipe(nullptr, 0x20000, 0);
        Side side;
        TASSIGN(side, 0x100);
        float* const place = side.data();
        for (int t = 0; t < kTiles; ++t) {
          TPOP<Down, Side, TileSplitAxis::TILE_LEFT_RIGHT>(pipe, side);
          ASSERT_EQ(side.data(), place) << "a tile with an address keeps it";
          expect_values(side, t, 0, lane * N / 2);
        }
      });
}
TEST_F(TilePipe, GivesUnsplitTilesToTheFirstLaneAndZerosToTheSecond) {
  run(
      [&] {
        Down pipe(nullptr, 0x20000, 0);
        Whole acc;
        TASSIGN(acc, 0);
        for (int t = 0; t < kTiles; ++t) {
          put_values(acc, t);
          TPUSH<Down, Whole, TileSplitAxis::TILE_NO_SPLIT>(pipe, acc);
        }
      },
      [&](int lane) {
        Down pipe(nullptr, 0x20000, 0);
        for (int t = 0; t < kTiles; ++t) {
          Full full;
          TPOP<Down, Full, TileSplitAxis::TILE_NO_SPLIT>(pipe, full);
          if (lane == 0)
            expect_values(full, t);
          else
            for (int i = 0; i < Full::Numel; ++i) ASSERT_EQ(full.GetValue(i), 0.0f);
        }
      });
}
TEST_F(TilePipe, JoinsThePartsOfBothLanes) {
  for (bool in_global_memory : {false, true}) {
    std::vector<float> slots(3 * M * N);
    float* const memory = in_global_memory ? slots.data() : nullptr;
    run(
        [&] {
          Up pipe(memory, 0, 0x10000);
          for (int t = 0; t < kTiles; ++t) {
            Mat mat;
            TPOP<Up, Mat, TileSplitAxis::TILE_NO_SPLIT>(pipe, mat);
            expect_values(mat, t);
          }
        },
        [&](int lane) {
          Up pipe(memory, 0, 0x10000);
          for (int t = 0; t < kTiles; ++t) {
            if (t % 2 == 0) {
              Half half;
              TASSIGN(half, 0);
              put_values(half, t, lane * M / 2);
              TPUSH<Up, Half, TileSplitAxis::TILE_UP_DOWN>(pipe, half);
            } else {
              Side side;
              TASSIGN(side, 0);
              put_values(side, t, 0, lane * N / 2);
              TPUSH<Up, Side, TileSplitAxis::TILE_LEFT_RIGHT>(pipe, side);
            }
          }
        });
  }
}
TEST_F(TilePipe, TakesUnsplitTilesFromTheFirstLaneOnly) {
  run(
      [&] {
        Up pipe(nullptr, 0, 0x10000);
        for (int t = 0; t < kTiles; ++t) {
          Mat mat;
          TPOP<Up, Mat, TileSplitAxis::TILE_NO_SPLIT>(pipe, mat);
          expect_values(mat, t);
        }
      },
      [&](int lane) {
        Up pipe(nullptr, 0, 0x10000);
        Full full;
        TASSIGN(full, 0);
        for (int t = 0; t < kTiles; ++t) {
          put_values(full, lane == 0 ? t : -1);
          TPUSH<Up, Full, TileSplitAxis::TILE_NO_SPLIT>(pipe, full);
        }
      });
}
TEST_F(TilePipe, RunsBothWaysThroughOnePipe) {
  using Both = TPipe<5, Direction::DIR_BOTH, M * N * sizeof(float), 2>;
  run(
      [&] {
        Both pipe(nullptr, 0x20000, 0x10000);
        Whole acc;
        TASSIGN(acc, 0);
        for (int t = 0; t < kTiles; ++t) {
          put_values(acc, t);
          TPUSH<Both, Whole, TileSplitAxis::TILE_UP_DOWN>(pipe, acc);
          Mat mat;
          TPOP<Both, Mat, TileSplitAxis::TILE_NO_SPLIT>(pipe, mat);
          for (int r = 0; r < M; ++r)
            for (int c = 0; c < N; ++c) ASSERT_EQ(element(mat, r, c), 2 * value_at(t, r, c));
        }
      },
      [&](int) {
        Both pipe(nullptr, 0x20000, 0x10000);
        for (int t = 0; t < kTiles; ++t) {
          Half half;
          TPOP<Both, Half, TileSplitAxis::TILE_UP_DOWN>(pipe, half);
          TADD(half, half, half);
          TPUSH<Both, Half, TileSplitAxis::TILE_UP_DOWN>(pipe, half);
        }
      });
}
TEST_F(TilePipe, GivesUnassignedTilesAnAddressAtThePipesBase) {
  run(
      [&] {
        Down pipe(nullptr, 0x20000, 0);
        Whole acc;
        TASSIGN(acc, 0);
        put_values(acc, 0);
        TPUSH<Down, Whole, TileSplitAxis::TILE_UP_DOWN>(pipe, acc);
      },
      [&](int) {
        Down pipe(nullptr, 0x20000, 0);
        Half half, base;
        TASSIGN(base, 0x20000);
        TPOP<Down, Half, TileSplitAxis::TILE_UP_DOWN>(pipe, half);
        ASSERT_EQ(half.data(), base.data());
      });
}
TEST_F(TilePipe, RefusesTilesThatDoNotMatch) {
  Cluster cluster;
  core_.cluster = &cluster;
  Down pipe(nullptr, 0x20000, 0);
  Whole acc;
  TASSIGN(acc, 0);
  std::fill_n(acc.data(), Whole::Numel, 1.0f);
  TPUSH<Down, Whole, TileSplitAxis::TILE_UP_DOWN>(pipe, acc);
  Full full;
  const std::string text = failure_of([&] { TPOP<Down, Full, TileSplitAxis::TILE_UP_DOWN>(pipe, full); });
  EXPECT_NE(text.find("32 x 48 elements of 4 bytes wanted, but 16 x 48"), std::string::npos) << text;
  using Tiny = TPipe<7, Direction::DIR_C2V, 64, 2>;
  Tiny tiny(nullptr, 0, 0);
  EXPECT_NE(failure_of([&] {
              TPUSH<Tiny, Whole, TileSplitAxis::TILE_UP_DOWN>(tiny, acc);
            }).find("does not fit into a slot of 128 bytes"),
            std::string::npos);
  TileAcc<float, 32, 48, 31, 48> odd;
  TASSIGN(odd, 0);
  EXPECT_NE(failure_of([&] {
              TPUSH<Down, TileAcc<float, 32, 48, 31, 48>, TileSplitAxis::TILE_UP_DOWN>(pipe, odd);
            }).find("two equal parts"),
            std::string::npos);
}
TEST_F(TilePipe, NeedsCoresThatShareMemory) {
  EXPECT_NE(failure_of([] { Down pipe(nullptr, 0, 0); }).find("run on a cube core and its vector cores together"),
            std::string::npos);
}
