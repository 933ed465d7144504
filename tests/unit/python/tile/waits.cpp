// Blocks of a cube core and two vector cores that wait for each other in the way that the scalar says. The tensor has
// 4096 words: places for a result per lane (3 per block, the cube's last), signals from word 512 on, and from word 2048 on
// tiles that all vector cores store into.
#include <pto/pto-inst.hpp>

#include <pto/comm/pto_comm_inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

namespace {

#if defined(__DAV_CUBE__)
constexpr bool kCube = true;
#else
constexpr bool kCube = false;
#endif

constexpr int kRows = 32, kCols = 16, kRounds = 9;
constexpr int kStores = 1000;  // so many that some of two cores meet
using Part = Tile<TileType::Vec, float, kRows / 2, kCols>;
using Whole = Tile<TileType::Mat, float, kRows, kCols, BLayout::ColMajor, kRows, kCols, SLayout::RowMajor>;

struct Lane {
  int block, number;  // 0 and 1: vector cores, 2: the cube core
};

// The vector cores send tiles, as many as a pipe has slots before the first comes back; the cube core sends each back.
// Each core ends after its rounds, whether the others have or not.
template <int kSlots, bool kFree, bool kOnePipe> float echo(Lane lane, int cube_rounds, int vector_rounds) {
  constexpr uint32_t kBytes = kRows * kCols * sizeof(float);
  using Up = TPipe<1, kOnePipe ? DIR_BOTH : DIR_V2C, kBytes, kSlots>;
  using Down = TPipe<kOnePipe ? 1 : 2, kOnePipe ? DIR_BOTH : DIR_C2V, kBytes, kSlots>;
  Up up(nullptr, 0, 0);
  Down down(nullptr, 0, 0);
  float sum = 0;
  if constexpr (kCube) {
    Whole whole;
    TASSIGN(whole, 0x10000);
    for (int i = 0; i < cube_rounds; ++i) {
      TPOP<Up, Whole, TILE_UP_DOWN>(up, whole);
      if constexpr (kFree) TFREE<Up, TILE_UP_DOWN>(up);
      TPUSH<Down, Whole, TILE_UP_DOWN>(down, whole);
      sum += 1;
    }
  } else {
    Part sent, back;
    TASSIGN(sent, 0x10000);
    TASSIGN(back, 0x20000);
    for (int i = 0; i < vector_rounds + kSlots; ++i) {
      if (i < vector_rounds) {
        TEXPANDS(sent, static_cast<float>(64 * lane.block + 32 * lane.number + i));
        TPUSH<Up, Part, TILE_UP_DOWN>(up, sent);
      }
      if (i < kSlots) continue;
      TPOP<Down, Part, TILE_UP_DOWN>(down, back);
      if constexpr (kFree) TFREE<Down, TILE_UP_DOWN>(down);
      sum += static_cast<float>(i - kSlots + 1) * (back.GetValue(0) + back.GetValue(Part::Numel - 1));
    }
  }
  return sum;
}

// A token goes round: cube core, first and second vector core.
float pass_token(Lane lane, __gm__ int32_t* words) {
  comm::Signal mine(words + 16 * lane.number), next(words + 16 * ((lane.number + 1) % 3));
  for (int round = 1; round <= kRounds; ++round) {
    if (lane.number != 2) comm::TWAIT(mine, round, comm::WaitCmp::GE);
    comm::TNOTIFY(next, 1, comm::NotifyOp::AtomicAdd);
    if (lane.number == 2) comm::TWAIT(mine, round, comm::WaitCmp::EQ);
  }
  return static_cast<float>(words[16 * lane.number]);
}

template <class T, AtomicType kKind> void store_into(__gm__ void* place, float value) {
  using Target = GlobalTensor<T, pto::Shape<1, 1, 1, 16, 16>, pto::Stride<256, 256, 256, 16, 1>>;
  Tile<TileType::Vec, T, 16, 16> tile;
  TASSIGN(tile, 0);
  TEXPANDS(tile, static_cast<T>(value));
  Target target(static_cast<T*>(place));
  TSTORE<decltype(tile), Target, kKind>(target, tile);
}
void store_atomically(Lane lane, __gm__ float* places) {
  if constexpr (kCube) return;
  const float value = static_cast<float>(lane.number + 1);
  for (int round = 0; round < kStores; ++round) {
    store_into<float, AtomicType::AtomicAdd>(places, value);
    if (round < kRounds) store_into<half, AtomicType::AtomicAdd>(places + 256, value);
    store_into<int32_t, AtomicType::AtomicAdd>(places + 512, value);
    store_into<float, AtomicType::AtomicMax>(places + 768, static_cast<float>(2 * lane.block + lane.number));
  }
}

void fail_check() {
  Whole whole;
  TASSIGN(whole, 1 << 30);
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ float* places = reinterpret_cast<ChipTensor*>(args[0])->data_as<float>();
  const Lane lane = {get_block_idx(args), kCube ? 2 : get_sub_block_id(args)};
  float result = 0;
  switch (args[1]) {
    case 0: result = echo<1, false, false>(lane, kRounds, kRounds); break;
    case 1: result = echo<1, true, false>(lane, kRounds, kRounds); break;
    case 2: result = echo<4, false, false>(lane, kRounds, kRounds); break;
    case 3: result = echo<4, true, true>(lane, kRounds, kRounds); break;
    case 4: result = echo<1, false, true>(lane, kRounds, kRounds); break;
    case 5: result = pass_token(lane, reinterpret_cast<__gm__ int32_t*>(places + 512 + 48 * lane.block)); break;
    case 6: store_atomically(lane, places + 2048); break;
    // The partner ends early.
    case 10: result = echo<4, false, false>(lane, kRounds / 2, kRounds); break;
    case 11: result = echo<1, true, false>(lane, kRounds, kRounds / 2); break;
    case 12:
      if (kCube && lane.block == 0) fail_check();  // while its vector cores wait
      result = echo<1, false, false>(lane, kRounds, kRounds);
      break;
    default: break;
  }
  places[3 * lane.block + lane.number] = result;
}
