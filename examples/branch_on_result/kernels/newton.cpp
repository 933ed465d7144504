// One step of Newton's method for square roots: x = (x + a / x) / 2; change = the largest |new x - old x|.
// Tensors: a (read), x (read and written), change (one float, written).
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kCount = 1024;  // as in newton_orch.cpp
constexpr int kBytes = kCount * sizeof(float);

using Values = pto::Tile<pto::TileType::Vec, float, 1, kCount>;
using One = pto::Tile<pto::TileType::Vec, float, 8, 1, pto::BLayout::ColMajor, 1, 1>;  // a tile has 32 bytes at least
template <int kLength> using Memory =
    pto::GlobalTensor<float, pto::Shape<1, 1, 1, 1, kLength>, pto::Stride<1, 1, 1, 1, 1>>;

template <int kLength> __aicore__ Memory<kLength> memory_of(int64_t argument) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(argument);
  return Memory<kLength>(tensor->data_as<float>() + tensor->start_offset);
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Values a, x, next, scratch;
  One change;
  TASSIGN(a, 0);
  TASSIGN(x, kBytes);
  TASSIGN(next, 2 * kBytes);
  TASSIGN(scratch, 3 * kBytes);
  TASSIGN(change, 4 * kBytes);

  TLOAD(a, memory_of<kCount>(args[0]));
  TLOAD(x, memory_of<kCount>(args[1]));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TDIV(next, a, x);
  TADD(next, next, x);
  TMULS(next, next, 0.5f);
  TSUB(x, next, x);
  TABS(x, x);
  TROWMAX(change, x, scratch);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(memory_of<kCount>(args[1]), next);
  TSTORE(memory_of<1>(args[2]), change);
  pipe_sync();
}
