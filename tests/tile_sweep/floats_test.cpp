// Every instruction on elements, see support/sweep.h: float.
#include "tile_sweep/support/all_cases.h"

using namespace tile_test;

namespace {
const bool registered_float = register_cases<float>();
}  // namespace

class TileSweepFloats : public TileTest {};

TEST_F(TileSweepFloats, TakesFloat) { run_sweep("float"); }
