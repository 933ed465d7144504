// One way to read elements that nothing has written per value of the scalar from 101 on, one legal use of tile memory
// per value from 1 on; 0 writes all over the vector memory. Tensor: 16 x 32 floats, read and written.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

namespace {
using Whole = GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>>;
using Vec = Tile<TileType::Vec, float, 16, 32>;
using Part = Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
using Column = Tile<TileType::Vec, float, 16, 8, BLayout::RowMajor, 16, 1>;
using Statistics = Tile<TileType::Vec, float, 32, 1, BLayout::ColMajor, DYNAMIC, 1>;
using Row = Tile<TileType::Vec, float, 1, 32>;
using Mask = Tile<TileType::Vec, uint8_t, 16, 32>;
using Index = Tile<TileType::Vec, int32_t, 16, 32>;
using Boxes = Tile<TileType::Mat, float, 16, 32, BLayout::ColMajor, 16, 32, SLayout::RowMajor>;
using Square = Tile<TileType::Mat, float, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor>;
}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Whole whole(reinterpret_cast<ChipTensor*>(args[0])->data_as<float>());
  Vec tile, other, out;
  Part part(16, 32), upper(8, 32);
  Column column;
  Row row;
  Mask mask;
  Index index;
  Boxes boxes;
  Square square;
  TileLeft<float, 16, 32> left;
  TileRight<float, 32, 32> right;
  TileAcc<float, 16, 32> acc;
  TASSIGN(tile, 0x0);
  TASSIGN(other, 0x1000);
  TASSIGN(part, 0x1000);   // aliases `other`
  TASSIGN(upper, 0x1000);  // so does this
  TASSIGN(out, 0x2000);
  TASSIGN(column, 0x3000);
  TASSIGN(row, 0x4000);
  TASSIGN(mask, 0x5000);
  TASSIGN(index, 0x6000);
  TASSIGN(boxes, 0x0);
  TASSIGN(square, 0x1000);
  TASSIGN(left, 0x0);
  TASSIGN(right, 0x0);
  TASSIGN(acc, 0x0);
  TLOAD(tile, whole);
  const auto operands = [&] {
    TLOAD(boxes, whole);
    TEXPANDS(square, 0.0f);
    TMOV(left, boxes);
    TMOV(right, square);
  };
  switch (args[1]) {
    case 0:
      for (int place = 0x800; place < 0x8000; place += 0x800) {
        TASSIGN(out, place);
        TEXPANDS(out, 0.0f);
      }
      break;

    case 101: TADD(out, tile, other); break;
    case 102: TSTORE(whole, other); break;
    case 103: TADDS(other, other, 1.0f); break;  // in place
    case 104:
      part.SetValidShape(9, 24);
      TEXPANDS(part, 1.0f);
      TROWMAX(column, other, out);
      break;
    case 105: TROWEXPANDMUL(out, tile, column); break;
    case 106: TCOLEXPANDADD(out, tile, row); break;
    case 107: TSEL(out, mask, tile, tile); break;
    case 108:
      TCMPS(mask, tile, 1.0f, CmpMode::GT);
      TSEL(out, mask, tile, other);
      break;
    case 109: TGATHER(out, tile, index); break;
    case 110:
      TEXPANDS(index, 40);
      TGATHER(out, other, index);
      break;
    case 111: TCVT(index, other, RoundMode::CAST_RINT); break;
    case 112: TMATMUL(acc, left, right); break;
    case 113:
      operands();
      TMATMUL_ACC(acc, left, right);
      break;
    case 114: TMOV(left, boxes); break;
    case 115: other.GetValue(100); break;
    case 116:
      other.SetValue(0, 1.0f);
      other.GetValue(8);
      break;
    case 117: TSORT32(out, tile, index); break;
    case 118: TTRANS(out, other); break;

    case 1:  // an alias writes
      TEXPANDS(other, 2.0f);
      TADD(tile, tile, part);
      break;
    case 2:  // half by half, through two tiles
      TEXPANDS(upper, 2.0f);
      TASSIGN(upper, 0x1000 + 8 * 32 * 4);
      TEXPANDS(upper, 2.0f);
      TADD(tile, tile, other);
      break;
    case 3:  // padding is read along: outside of the source's valid region
      TEXPANDS(upper, 2.0f);
      TASSIGN(upper, 0x1000);
      TEXPANDS(upper, 2.0f);
      TADD(out, tile, upper);
      TROWMAX(column, upper, out);
      TEXPANDS(other, 2.0f);
      TADD(tile, tile, other);
      break;
    case 4: {  // through the pointer, which was taken before
      float* const raw = other.data();
      TASSIGN(out, 0x0);
      for (int i = 0; i < 512; ++i) raw[i] = 2.0f;
      TADD(tile, tile, other);
      break;
    }
    case 5:  // element by element
      for (int i = 0; i < 512; ++i) other.SetValue(i, 2.0f);
      TADD(tile, tile, other);
      break;
    case 6:  // a product on top of nothing, then on top of itself
      operands();
      TMATMUL(acc, left, right);
      TMATMUL_ACC(acc, left, right);
      TMOV(out, acc);
      TADD(tile, tile, out);
      TADDS(tile, tile, 2.0f);
      break;
    case 7:  // reductions, and what they leave, one value per row
      TROWMAX(column, tile, out);
      TROWEXPANDSUB(out, tile, column);
      TCOLMAX(row, tile);
      TCOLEXPANDSUB(out, tile, row);
      TCMPS(mask, tile, 0.0f, CmpMode::GE);
      TADDS(other, tile, 2.0f);
      TSEL(tile, mask, other, tile);
      break;
    case 8: {  // a value for some of the rows, computed with through a view of all
      Statistics statistics(5);
      TASSIGN(statistics, 0x3000);
      part.SetValidShape(5, 32);
      TEXPANDS(part, 2.0f);
      TROWMAX(statistics, part, out);
      TRESHAPE(row, statistics);
      TMULS(row, row, 0.5f);
      TASSIGN(part, 0x0);
      TROWEXPANDADD(part, part, statistics);
      TROWEXPANDADD(part, part, statistics);
      part.SetValidShape(11, 32);
      TASSIGN(part, 5 * 32 * 4);
      TADDS(part, part, 2.0f);
      break;
    }
    default: break;
  }
  TSTORE(whole, tile);
}
