// One slip per value of the scalar; 0 is none. Tensor: 16 x 32 floats, read and written.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

namespace {
using Whole = GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>>;
using Half = GlobalTensor<float, Shape<1, 1, 1, 8, 32>, Stride<256, 256, 256, 32, 1>>;
using Narrow = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<512, 512, 512, 32, 1>>;
}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  float* memory = reinterpret_cast<ChipTensor*>(args[0])->data_as<float>();
  Whole whole(memory);
  Half half_of_it(memory);
  Narrow narrow(memory);
  Tile<TileType::Vec, float, 16, 32> tile, alias, lost;
  Tile<TileType::Vec, float, 8, 32> small;
  Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, DYNAMIC, DYNAMIC> dynamic(16, 32);
  TASSIGN(tile, 0x0);
  TASSIGN(alias, 0x0);  // on purpose
  TASSIGN(dynamic, 0x1000);
  TASSIGN(small, 0x2000);
  TLOAD(tile, whole);
  TADDS(alias, alias, 1.0f);
  switch (args[1]) {
    case 1: dynamic.SetValidShape(17, 32); break;
    case 2: TLOAD(alias, half_of_it); break;
    case 3: TSTORE(narrow, tile); break;
    case 4: TASSIGN(lost, 0x7ff00); break;
    case 5: TADD(tile, tile, lost); break;
    case 6: TADD(tile, tile, small); break;
    case 7: TEXTRACT(small, tile, 9, 0); break;
    case 8: TLOAD(tile, Whole(nullptr)); break;
    default: break;
  }
  TSTORE(whole, tile);
}
