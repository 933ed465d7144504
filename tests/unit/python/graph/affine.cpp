// out = in * scale + shift, element by element. Tensors: in, out. Scalars: scale, shift (floats).
#include "intrinsic.h"
#include "tensor.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* in = reinterpret_cast<__gm__ ChipTensor*>(args[0]);
  __gm__ ChipTensor* out = reinterpret_cast<__gm__ ChipTensor*>(args[1]);
  const float scale = from_u64<float>(static_cast<uint64_t>(args[2]));
  const float shift = from_u64<float>(static_cast<uint64_t>(args[3]));
  for (uint64_t i = 0; i < out->numel(); ++i) {
    out->data_as<float>()[out->start_offset + i] = in->data_as<float>()[in->start_offset + i] * scale + shift;
  }
}
