// x = sqrt(a). Tensors: a (read), x (written).
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kCount = 1024;  // as in newton_orch.cpp

using Values = pto::Tile<pto::TileType::Vec, float, 1, kCount>;
using Memory = pto::GlobalTensor<float, pto::Shape<1, 1, 1, 1, kCount>, pto::Stride<1, 1, 1, 1, 1>>;

__aicore__ Memory memory_of(int64_t argument) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(argument);
  return Memory(tensor->data_as<float>() + tensor->start_offset);
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Values values;
  TASSIGN(values, 0);
  TLOAD(values, memory_of(args[0]));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TSQRT(values, values);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(memory_of(args[1]), values);
  pipe_sync();
}
