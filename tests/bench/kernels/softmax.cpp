// Softmax of each row of a 64 x 128 tile: only compiled, to see how long that takes. Tensors: in (read), out (written).
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kRows = 64, kColumns = 128;

using Values = pto::Tile<pto::TileType::Vec, float, kRows, kColumns>;
using PerRow = pto::Tile<pto::TileType::Vec, float, kRows, 1, pto::BLayout::ColMajor>;
using Memory = pto::GlobalTensor<float, pto::Shape<1, 1, 1, kRows, kColumns>, pto::Stride<1, 1, 1, kColumns, 1>>;

__aicore__ Memory memory_of(int64_t argument) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(argument);
  return Memory(tensor->data_as<float>() + tensor->start_offset);
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Values values, scratch;
  PerRow row;
  TASSIGN(values, 0);
  TASSIGN(scratch, kRows * kColumns * sizeof(float));
  TASSIGN(row, 2 * kRows * kColumns * sizeof(float));
  TLOAD(values, memory_of(args[0]));
  TROWMAX(row, values, scratch);
  TROWEXPANDSUB(values, values, row);
  TEXP(values, values);
  TROWSUM(row, values, scratch);
  TROWEXPANDDIV(values, values, row);
  TSTORE(memory_of(args[1]), values);
  pipe_sync();
}
