// Every instruction on elements, see support/sweep.h: int32_t, uint32_t.
#include "tile_sweep/support/all_cases.h"

using namespace tile_test;

namespace {
const bool registered_int32_t = register_cases<int32_t>();
const bool registered_uint32_t = register_cases<uint32_t>();
}  // namespace

class TileSweepWords : public TileTest {};

TEST_F(TileSweepWords, TakesInt32) { run_sweep("int32_t"); }
TEST_F(TileSweepWords, TakesUint32) { run_sweep("uint32_t"); }
