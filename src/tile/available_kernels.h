// The tables of tile kernels that this processor can run (include/kernel/tile_kernels.h).
#pragma once
#include "tile_kernels.h"

namespace simpler::tile {

// Best first, ended by null: "avx512", "avx2" or "neon", as far as they were compiled and the processor has them, and
// "portable", which is always there. Never freed.
const SimplerTileKernels* const* available_kernels();

}  // namespace simpler::tile
