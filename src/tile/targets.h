// What the files with tables give to the choice among them.
#pragma once
#include "tile_kernels.h"

namespace simpler::tile {

// The table compiled for a target, or null if this build has none of that name. Whether the processor can run it is not
// asked here.
const SimplerTileKernels* compiled_kernels(const char* target);

// The loops of the tile library's headers.
const SimplerTileKernels* portable_kernels();

}  // namespace simpler::tile
