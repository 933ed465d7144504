// What vector_kernels.cpp gives to the choice among its targets.
#pragma once
#include "tile_kernels.h"

namespace simpler::tile {

// The table compiled for a target, or null if this build has none of that name. Whether the processor can run it is not
// asked here.
const SimplerTileKernels* compiled_kernels(const char* target);

}  // namespace simpler::tile
