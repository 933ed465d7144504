// The exponentials of a tensor of 16 x 32 floats, in place.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>> memory(
      reinterpret_cast<ChipTensor*>(args[0])->data_as<float>());
  Tile<TileType::Vec, float, 16, 32> tile;
  TASSIGN(tile, 0x0);
  TLOAD(tile, memory);
  TEXP(tile, tile);
  TSTORE(memory, tile);
}
