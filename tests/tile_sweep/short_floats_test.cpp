// Every instruction on elements, see support/sweep.h: half, bfloat16_t.
#include "tile_sweep/support/all_cases.h"

using namespace tile_test;

namespace {
const bool registered_half = register_cases<::half>();
const bool registered_bfloat16_t = register_cases<::bfloat16_t>();
}  // namespace

class TileSweepShortFloats : public TileTest {};

TEST_F(TileSweepShortFloats, TakesHalf) { run_sweep("half"); }
TEST_F(TileSweepShortFloats, TakesBfloat) { run_sweep("bfloat16_t"); }
