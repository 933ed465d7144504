// A kernel as programs of the older interface have it: out = a * scale + b, float, flat. Tensors: a, b, out.
// Scalars: scale, number of elements.
#include <cstdint>
#include <pto/pto-inst.hpp>

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__ [aicore]
#endif

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

template <int kColumns>
static __aicore__ void scale_and_add(__gm__ Tensor* a, __gm__ Tensor* b, __gm__ Tensor* out, float scale, int count) {
  __gm__ float* pa = reinterpret_cast<__gm__ float*>(a->buffer.addr) + a->start_offset;
  __gm__ float* pb = reinterpret_cast<__gm__ float*>(b->buffer.addr) + b->start_offset;
  __gm__ float* po = reinterpret_cast<__gm__ float*>(out->buffer.addr) + out->start_offset;
  using Global = GlobalTensor<float, Shape<1, 1, 1, 1, kColumns>, Stride<1, 1, 1, kColumns, 1>>;
  using Data = Tile<TileType::Vec, float, 1, kColumns, BLayout::RowMajor>;
  Data ta, tb;
  TASSIGN(ta, 0x0);
  TASSIGN(tb, 0x8000);
  for (int i = 0; i < count; i += kColumns) {
    Global ga(pa + i), gb(pb + i), go(po + i);
    TLOAD(ta, ga);
    TLOAD(tb, gb);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(ta, ta, scale);
    TADD(ta, ta, tb);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(go, ta);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
  }
  pipe_sync();
}

extern "C" __aicore__ __attribute__((always_inline)) void kernel_entry(__gm__ int64_t* args) {
  __gm__ Tensor* a = reinterpret_cast<__gm__ Tensor*>(args[0]);
  __gm__ Tensor* b = reinterpret_cast<__gm__ Tensor*>(args[1]);
  __gm__ Tensor* out = reinterpret_cast<__gm__ Tensor*>(args[2]);
  union {
    uint64_t bits;
    float value;
  } scale;
  scale.bits = static_cast<uint64_t>(args[3]);
  scale_and_add<64>(a, b, out, scale.value, static_cast<int>(args[4]));
}
