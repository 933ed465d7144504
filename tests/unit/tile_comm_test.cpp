// Signals and one-sided copies.
#include "unit/support/tile_support.h"

#include <pto/comm/pto_comm_inst.hpp>

#include "backend/sdma/sdma_completion_kernel.h"
#include "backend/urma/urma_completion_kernel.h"

using namespace tile_test;

class TileComm : public TileTest {};

TEST_F(TileComm, WaitsForEveryElementOfAGrid) {
  alignas(64) int32_t grid[2 * 3] = {};
  std::atomic<bool> released{false};
  std::thread waiter([&] {
    comm::Signal2D<2, 3> all(grid);
    comm::TWAIT(all, 5, comm::WaitCmp::GE);
    released = true;
  });
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(released);
    comm::Signal one(&grid[i]);
    comm::TNOTIFY(one, 2, comm::NotifyOp::Set);
    comm::TNOTIFY(one, 3, comm::NotifyOp::AtomicAdd);
  }
  waiter.join();
  EXPECT_TRUE(released);
}
TEST_F(TileComm, ComparesInSixWays) {
  int32_t word = -3;
  comm::Signal signal(&word);
  const struct {
    comm::WaitCmp compare;
    bool below, equal, above;
  } rows[] = {{comm::WaitCmp::EQ, false, true, false}, {comm::WaitCmp::NE, true, false, true},
              {comm::WaitCmp::GT, false, false, true}, {comm::WaitCmp::GE, false, true, true},
              {comm::WaitCmp::LT, true, false, false}, {comm::WaitCmp::LE, true, true, false}};
  for (const auto& row : rows) {
    EXPECT_EQ(comm::TTEST(signal, -2, row.compare), row.below);
    EXPECT_EQ(comm::TTEST(signal, -3, row.compare), row.equal);
    EXPECT_EQ(comm::TTEST(signal, -4, row.compare), row.above);
  }
  EXPECT_NE(failure_of([&] { comm::TTEST(signal, 0, static_cast<comm::WaitCmp>(9)); }).find("comparison 9"),
            std::string::npos);
}
TEST_F(TileComm, LosesNoConcurrentNotification) {
  alignas(64) int32_t word = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      comm::Signal signal(&word);
      for (int i = 0; i < 2000; ++i) comm::TNOTIFY(signal, i % 2 == 0 ? 3 : -1, comm::NotifyOp::AtomicAdd);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(word, 4 * 2000);
}

namespace {
template <class T, class SrcStride, class DstStride>
void check_copy(Random& random, const int64_t (&shape)[5], const int64_t (&from)[5], const int64_t (&to)[5], bool add) {
  using Any = Shape<>;
  std::vector<T> src = random.values<T>(4000), dst = random.values<T>(4000), want = dst;
  const Any extent(shape[0], shape[1], shape[2], shape[3], shape[4]);
  GlobalTensor<T, Any, SrcStride> source(src.data(), extent, SrcStride(from[0], from[1], from[2], from[3], from[4]));
  GlobalTensor<T, Any, DstStride> target(dst.data(), extent, DstStride(to[0], to[1], to[2], to[3], to[4]));
  for (int a = 0; a < shape[0]; ++a)
    for (int b = 0; b < shape[1]; ++b)
      for (int c = 0; c < shape[2]; ++c)
        for (int d = 0; d < shape[3]; ++d)
          for (int e = 0; e < shape[4]; ++e) {
            T& place = want[a * to[0] + b * to[1] + c * to[2] + d * to[3] + e * to[4]];
            const T value = src[a * from[0] + b * from[1] + c * from[2] + d * from[3] + e * from[4]];
            place = add ? encode<T>(static_cast<float>(decode(place)) + static_cast<float>(decode(value))) : value;
          }
  RowTile<T, 1, 32> stage(1, 32), second(1, 32);
  if (add)
    comm::TPUT<AtomicType::AtomicAdd>(target, source, stage);
  else if (shape[0] == 1)
    comm::TGET(target, source, stage);
  else
    comm::TPUT(target, source, stage, second);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(same_value(dst[i], want[i])) << i;
}
}  // namespace

TEST_F(TileComm, CopiesFiveDimensions) {
  Random random(1);
  for (bool add : {false, true}) {
    check_copy<float, Stride<>, Stride<>>(random, {2, 2, 3, 4, 8}, {1000, 400, 110, 24, 2}, {800, 390, 100, 17, 1},
                                          add);
    check_copy<::half, Stride<>, Stride<-1, -1, -1, -1, 1>>(random, {1, 1, 2, 5, 40}, {0, 0, 500, 80, 1},
                                                            {0, 0, 400, 64, 1}, add);
  }
}
TEST_F(TileComm, CompletesAsynchronousCopiesAtOnce) {
  float src[8] = {1, 2, 3, 4, 5, 6, 7, 8}, dst[8] = {}, back[8] = {};
  using Global = GlobalTensor<float, Shape<1, 1, 1, 1, 8>, Stride<8, 8, 8, 8, 1>>;
  Global s(src), d(dst), b(back);
  comm::AsyncSession session;
  EXPECT_TRUE(comm::TPUT_ASYNC(d, s, session).Wait(session));
  EXPECT_TRUE(comm::TGET_ASYNC(b, d, session).Test(session));
  EXPECT_EQ(back[7], 8.0f);
  PrefetchAsyncContext context(src);
  EXPECT_TRUE(TPREFETCH_ASYNC(s, context).Wait(context.session));
  RowTile<float, 1, 8> tile(1, 8);
  TPREFETCH(tile, s);
  EXPECT_EQ(tile.data(), nullptr);
}
// Three ranks with tensors of 2 x 4 x 8; a tensor with a gap after each row holds all of them, one after the other.
class TileCollective : public TileComm {
 protected:
  using Rank = GlobalTensor<::half, Shape<1, 1, 2, 4, 8>, Stride<64, 64, 32, 8, 1>>;
  using All = GlobalTensor<::half, Shape<1, 1, 2, 12, 8>, Stride<240, 240, 120, 10, 1>>;
  TileCollective() {
    for (int r = 0; r < 3; ++r) {
      ranks_[r] = random_.values<::half>(64);
      tensors_[r] = Rank(ranks_[r].data());
    }
  }
  static int in_all(int rank, int i) { return i / 32 * 120 + (rank * 4 + i % 32 / 8) * 10 + i % 8; }

  Random random_{11};
  std::vector<::half> ranks_[3], all_ = random_.values<::half>(240);
  Rank tensors_[3];
  comm::ParallelGroup<Rank> group_{tensors_, 3, 1};
  RowTile<::half, 4, 16> stage_, second_;
};
TEST_F(TileCollective, BroadcastsTheRootsDataToAllRanks) {
  auto data = random_.values<::half>(64);
  Rank source(data.data());
  comm::TBROADCAST(group_, source, stage_);
  for (const auto& rank : ranks_)
    for (int i = 0; i < 64; ++i) ASSERT_TRUE(same_bits(rank[i], data[i]));
}
TEST_F(TileCollective, GathersAndScattersAlongTheRows) {
  const auto before = all_;
  All all(all_.data());
  comm::TGATHER(group_, all, stage_);
  auto want = before;
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 64; ++i) want[in_all(r, i)] = ranks_[r][i];
  for (int i = 0; i < 240; ++i) ASSERT_TRUE(same_bits(all_[i], want[i])) << i;
  all_ = random_.values<::half>(240);
  All source(all_.data());
  comm::TSCATTER(group_, source, stage_, second_);
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 64; ++i) ASSERT_TRUE(same_bits(ranks_[r][i], all_[in_all(r, i)]));
}
TEST_F(TileCollective, ReducesElementByElementAlsoIntoOneOfTheRanks) {
  for (comm::ReduceOp op : {comm::ReduceOp::Sum, comm::ReduceOp::Max, comm::ReduceOp::Min}) {
    std::vector<::half> want(64);
    for (int i = 0; i < 64; ++i) {
      float value = static_cast<float>(decode(ranks_[0][i]));
      for (int r = 1; r < 3; ++r) {
        const float next = static_cast<float>(decode(ranks_[r][i]));
        value = op == comm::ReduceOp::Sum   ? value + next
                : op == comm::ReduceOp::Max ? std::max(value, next)
                                            : std::min(value, next);
      }
      want[i] = encode<::half>(value);
    }
    comm::TREDUCE(group_, tensors_[1], stage_, second_, op);
    for (int i = 0; i < 64; ++i) ASSERT_TRUE(same_value(ranks_[1][i], want[i])) << i;
  }
}
TEST_F(TileCollective, RefusesGroupsWithoutARootAndTensorsThatAreTooSmall) {
  comm::ParallelGroup<Rank> rootless(tensors_, 3, 3);
  EXPECT_EQ(failure_of([&] { comm::TBROADCAST(rootless, tensors_[0], stage_); }),
            "TBROADCAST: a group of 3 ranks with root 3; it needs tensors of at least one rank, and a root among them");
  EXPECT_EQ(failure_of([&] { comm::TGATHER(group_, tensors_[0], stage_); }),
            "TGATHER: a tensor of 4 rows for 3 ranks of 4 rows each");
}

TEST_F(TileComm, AllCoresOfATaskMeet) {
  constexpr int kCores = 3, kRounds = 300;
  int32_t workspace[4] = {};
  int values[kCores] = {};  // plain memory: the barrier alone orders it
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kCores; ++t)
    threads.emplace_back([&, t] {
      const auto core = std::make_unique<Core>();
      Core::current = core.get();
      for (int round = 1; round <= kRounds; ++round) {
        values[t] = round;
        SYNCALL<SyncAllMode::Soft, SyncCoreType::Mix>(workspace);
        for (int value : values) wrong += value != round;
        SYNCALL<SyncAllMode::Soft, SyncCoreType::Mix>(workspace);
        if (t == 0) SYNCALL<SyncAllMode::Soft, SyncCoreType::AICOnly>(workspace);  // alone: does not wait
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_NE(failure_of([] {
              SYNCALL<SyncAllMode::Soft, SyncCoreType::Mix>(static_cast<int32_t*>(nullptr));
            }).find("null address"),
            std::string::npos);
}

TEST_F(TileComm, RefusesNullAddresses) {
  comm::Signal nowhere;
  EXPECT_NE(
      failure_of([&] { comm::TNOTIFY(nowhere, 1, comm::NotifyOp::Set); }).find("TNOTIFY: the global tensor has a null"),
      std::string::npos);
  EXPECT_NE(failure_of([&] { comm::TWAIT(nowhere, 1, comm::WaitCmp::EQ); }).find("TWAIT"), std::string::npos);
}
TEST(TileStandAlone, GivesUpAWaitWithTheSignalsValue) {
  EXPECT_DEATH(
      {
        setenv("PTO_CPU_SIM_TWAIT_MAX_SPINS", "3", 1);
        int32_t word = 41;
        comm::Signal signal(&word);
        comm::TWAIT(signal, 42, comm::WaitCmp::EQ);
      },
      "TWAIT: a signal is still 41 after 3 polls; compared with 42");
}

// Copies of the engines are complete when they are sent, and leave no condition behind.
TEST_F(TileComm, RequestsToDmaEnginesAreCompleteAtOnce) {
  using Flat = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>>;
  using Square = GlobalTensor<int32_t, Shape<1, 1, 1, 4, 4>, Stride<16, 16, 16, 4, 1>>;
  int32_t near_memory[16] = {}, far_memory[16];
  for (int i = 0; i < 16; ++i) far_memory[i] = 3 * i;
  Flat near(near_memory), far(far_memory);
  Tile<TileType::Vec, uint8_t, 1, 256> scratch;
  DeferredCompletionSlab slab{};
  AsyncCtx ctx = AsyncCtx::make(PTO2TaskId::make(0, 1), &slab);
  EXPECT_TRUE(send_request_entry(ctx, SdmaTget(near, far, scratch, nullptr)));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(near_memory[i], 3 * i);
  near_memory[5] = -1;
  EXPECT_TRUE(send_request_entry(ctx, SdmaTput(far, near, scratch, nullptr, 2)));
  EXPECT_EQ(far_memory[5], -1);
  far_memory[7] = -2;
  EXPECT_TRUE(send_request_entry(ctx, UrmaTget(near, far, nullptr, 1)));
  EXPECT_EQ(near_memory[7], -2);
  near_memory[9] = -3;
  EXPECT_TRUE(send_request_entry(ctx, UrmaTput(far, near, nullptr, 1)));
  EXPECT_EQ(far_memory[9], -3);
  EXPECT_EQ(slab.count + static_cast<uint32_t>(slab.error_code), 0u);
  EXPECT_EQ(pto2::urma_backend::peer_mr_base_addr(nullptr, 1), 0u);
  EXPECT_EQ(pto2::urma_backend::peer_mr_ptr<float>(nullptr, 1, 64), nullptr);

  Square square(far_memory);
  EXPECT_FALSE(send_request_entry(ctx, UrmaTput(square, near, nullptr, 1)));
  EXPECT_EQ(slab.error_code, PTO2_ERROR_ASYNC_COMPLETION_INVALID);
}
