// A 128 x 128 x 128 product of floats, `repeats` times over tiles that stay in the core's memory.
// Tensors: a, b (read), c (written). Scalar: repeats.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kSide = 128;

using Loaded =
    pto::Tile<pto::TileType::Mat, float, kSide, kSide, pto::BLayout::ColMajor, kSide, kSide, pto::SLayout::RowMajor>;
using Memory = pto::GlobalTensor<float, pto::Shape<1, 1, 1, kSide, kSide>, pto::Stride<1, 1, 1, kSide, 1>>;

__aicore__ Memory memory_of(int64_t argument) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(argument);
  return Memory(tensor->data_as<float>() + tensor->start_offset);
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Loaded a_loaded, b_loaded;
  pto::TileLeft<float, kSide, kSide> a;
  pto::TileRight<float, kSide, kSide> b;
  pto::TileAcc<float, kSide, kSide> c;
  TASSIGN(a_loaded, 0);
  TASSIGN(b_loaded, kSide * kSide * sizeof(float));
  TASSIGN(a, 0);
  TASSIGN(b, 0);
  TASSIGN(c, 0);
  TLOAD(a_loaded, memory_of(args[0]));
  TLOAD(b_loaded, memory_of(args[1]));
  TMOV(a, a_loaded);
  TMOV(b, b_loaded);
  for (int64_t n = 0; n < args[3]; ++n) TMATMUL(c, a, b);
  TSTORE(memory_of(args[2]), c);
  pipe_sync();
}
