// Each core of a task writes its place of a tensor of 512 floats, meets all others, and adds up what they wrote. The
// last 16 words are the workspace.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ float* places = reinterpret_cast<ChipTensor*>(args[0])->data_as<float>();
  __gm__ int32_t* workspace = reinterpret_cast<__gm__ int32_t*>(places + 496);
#if defined(__DAV_CUBE__)
  const int lane = 2;
#else
  const int lane = get_sub_block_id(args);
#endif
  const int cores = 3 * get_block_num(args), own = 3 * get_block_idx(args) + lane;
  for (int round = 1; round <= 3; ++round) {
    places[own] = static_cast<float>(round);
    SYNCALL<SyncAllMode::Soft, SyncCoreType::Mix>(workspace);
    float sum = 0;
    for (int i = 0; i < cores; ++i) sum += places[i];
    places[128 * round + own] = sum;
    SYNCALL<SyncAllMode::Soft, SyncCoreType::Mix>(workspace);
  }
}
