// out = a + b for one piece of at most kTile floats. Tensors: a, b (read), out (written); one-dimensional.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"

namespace {

constexpr int kTile = 8192;  // as in add_orch.cpp: three tiles of 32 KiB lie in the core's memory at once

using Piece = pto::Tile<pto::TileType::Vec, float, 1, kTile, pto::BLayout::RowMajor, 1, pto::DYNAMIC>;
using Extent = pto::Shape<1, 1, 1, 1, pto::DYNAMIC>;
using Memory = pto::GlobalTensor<float, Extent, pto::Stride<1, 1, 1, 1, 1>>;

__aicore__ Memory memory_of(__gm__ ChipTensor* tensor) {
  return Memory(tensor->data_as<float>() + tensor->start_offset, Extent(tensor->shapes[0]));
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* tensors[3];
  for (int i = 0; i < 3; ++i) tensors[i] = reinterpret_cast<__gm__ ChipTensor*>(args[i]);
  const uint32_t count = tensors[2]->shapes[0];

  Piece a(count), b(count), out(count);
  TASSIGN(a, 0);
  TASSIGN(b, kTile * sizeof(float));
  TASSIGN(out, 2 * kTile * sizeof(float));

  // Loads, arithmetic and stores are three pipes of a core; each pair of flags makes one wait for another.
  TLOAD(a, memory_of(tensors[0]));
  TLOAD(b, memory_of(tensors[1]));
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(out, a, b);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(memory_of(tensors[2]), out);
  pipe_sync();
}
