// Every instruction on elements, see support/sweep.h: int8_t, uint8_t.
#include "tile_sweep/support/all_cases.h"

using namespace tile_test;

namespace {
const bool registered_int8_t = register_cases<int8_t>();
const bool registered_uint8_t = register_cases<uint8_t>();
}  // namespace

class TileSweepBytes : public TileTest {};

TEST_F(TileSweepBytes, TakesInt8) { run_sweep("int8_t"); }
TEST_F(TileSweepBytes, TakesUint8) { run_sweep("uint8_t"); }
