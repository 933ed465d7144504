// Every instruction on elements, see support/sweep.h: int16_t, uint16_t.
#include "tile_sweep/support/all_cases.h"

using namespace tile_test;

namespace {
const bool registered_int16_t = register_cases<int16_t>();
const bool registered_uint16_t = register_cases<uint16_t>();
}  // namespace

class TileSweepShorts : public TileTest {};

TEST_F(TileSweepShorts, TakesInt16) { run_sweep("int16_t"); }
TEST_F(TileSweepShorts, TakesUint16) { run_sweep("uint16_t"); }
