// Device copies of entry tensors: what moves in which direction, and where it lies.
#include "host/staging.h"

#include <unistd.h>

#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "host/comm.h"
#include "unit/support/callable_blob.h"
#include "unit/support/faulty_device.h"

namespace simpler::host {
namespace {

using abi::Direction;
using test::FaultyDevice;

// Host arrays of 16 int32, counting from 100, 200, ...
struct Host {
  explicit Host(int arrays) {
    for (int i = 0; i < arrays; ++i) {
      data.emplace_back(16);
      std::iota(data.back().begin(), data.back().end(), 100 * (i + 1));
    }
  }
  ChipTensor tensor(int i) {
    const std::uint32_t shape[] = {4, 4};
    return make_tensor_external(data[i].data(), shape, 2, DataType::INT32);
  }
  std::vector<std::vector<std::int32_t>> data;
};

// 64 bytes of device memory.
ChipTensor resident_at(std::uint64_t address) {
  const std::uint32_t shape[] = {4, 4};
  return make_tensor_external(reinterpret_cast<void*>(address), shape, 2, DataType::INT32, false, 0,
                              AddressSpace::DEVICE);
}

class StagingTest : public testing::Test {
 protected:
  // Uploads; on success *device has the device views.
  Status upload(const std::vector<ChipTensor>& tensors, const std::vector<Direction>& signature) {
    args->clear();
    for (const ChipTensor& tensor : tensors) args->add_tensor(tensor);
    std::size_t bytes = 0;
    const auto blob = test::callable_blob({.orchestration = "x", .signature = signature}, &bytes);
    return staging.upload(device_.allocator, *args, *reinterpret_cast<const abi::ChipCallable*>(blob.data()), &device);
  }
  std::int32_t* at(int i) { return device[i].data_as<std::int32_t>(); }

  FaultyDevice device_;
  std::unique_ptr<ChipStorageTaskArgs> args = std::make_unique<ChipStorageTaskArgs>();
  Staging staging;
  std::vector<ChipTensor> device;
};

TEST_F(StagingTest, TheSignatureDecidesWhatMoves) {
  Host host(4);
  ASSERT_TRUE(upload({host.tensor(0), host.tensor(1), host.tensor(2), host.tensor(3)},
                     {Direction::kIn, Direction::kOut, Direction::kInOut})
                  .ok());
  EXPECT_EQ(device_.calls("copy_to_device"), 3)
      << "not the pure output; the fourth is not described and moves both ways";
  for (int i : {0, 2, 3}) EXPECT_EQ(at(i)[5], host.data[i][5]);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(at(i)) % 1024, 0u);
    for (int k = 0; k < 16; ++k) at(i)[k] = -i - 1;
  }
  ASSERT_TRUE(staging.copy_back(device_.device).ok());
  EXPECT_EQ(device_.calls("copy_from_device"), 3);
  EXPECT_EQ(host.data[0][0], 100) << "inputs are not copied back";
  for (int i : {1, 2, 3}) EXPECT_EQ(host.data[i], std::vector<std::int32_t>(16, -i - 1));
}

TEST_F(StagingTest, ScalarEntriesOfTheSignatureDescribeNoTensor) {
  Host host(2);
  ASSERT_TRUE(upload({host.tensor(0), host.tensor(1)},
                     {Direction::kScalar, Direction::kIn, Direction::kScalar, Direction::kOut})
                  .ok());
  EXPECT_EQ(device_.calls("copy_to_device"), 1);
  ASSERT_TRUE(staging.copy_back(device_.device).ok());
  EXPECT_EQ(device_.calls("copy_from_device"), 1);
}

TEST_F(StagingTest, TheSameMemoryTwiceIsOneDeviceCopyThatMovesForEither) {
  Host host(1);
  ASSERT_TRUE(upload({host.tensor(0), host.tensor(0).slice(0, 2, 4)}, {Direction::kIn, Direction::kOut}).ok());
  EXPECT_EQ(at(0), at(1)) << "the runtime must see that they are the same";
  EXPECT_EQ(device[1].start_offset, 8u);
  EXPECT_EQ(at(0)[3], 103);
  at(1)[8] = -1;
  ASSERT_TRUE(staging.copy_back(device_.device).ok());
  EXPECT_EQ(host.data[0][8], -1);
  EXPECT_EQ(host.data[0][3], 103);
}

TEST_F(StagingTest, AnOutputThatIsPartOfItsBufferIsUploadedSoThatTheRestComesBackAsItWas) {
  Host host(1);
  ASSERT_TRUE(upload({host.tensor(0).slice(1, 0, 2)}, {Direction::kOut}).ok());
  EXPECT_EQ(device_.calls("copy_to_device"), 1);
  at(0)[0] = -1;
  ASSERT_TRUE(staging.copy_back(device_.device).ok());
  EXPECT_EQ(host.data[0][0], -1);
  EXPECT_EQ(host.data[0][15], 115);
}

TEST_F(StagingTest, DeviceTensorsPassThroughAndEmptyOnesHaveNoAddress) {
  Host host(1);
  DeviceBlock block;
  ASSERT_TRUE(block.grow(device_.allocator, 64).ok());
  const ChipTensor resident = resident_at(block.address());
  const ChipTensor empty = host.tensor(0).slice(0, 2, 2);
  const int before = device_.calls("alloc");
  ASSERT_TRUE(upload({resident, empty}, {Direction::kInOut, Direction::kInOut}).ok());
  EXPECT_EQ(device[0].buffer.addr, resident.buffer.addr);
  EXPECT_EQ(device[1].buffer.addr, 0u);
  EXPECT_EQ(device_.calls("alloc") - before + device_.calls("copy_to_device"), 0);
  ASSERT_TRUE(staging.copy_back(device_.device).ok());
  EXPECT_EQ(device_.calls("copy_from_device"), 0);
}

TEST_F(StagingTest, DeviceTensorsMustLieInLiveAllocations) {
  DeviceBlock block;
  ASSERT_TRUE(block.grow(device_.allocator, 128).ok());
  const std::uint64_t begin = block.address();
  EXPECT_TRUE(upload({resident_at(begin), resident_at(begin + 64)}, {}).ok());
  EXPECT_TRUE(upload({resident_at(0)}, {}).ok()) << "no memory at all is the orchestration's affair";
  for (const std::uint64_t outside : {begin - 64, begin - 1, begin + 65, begin + 128, begin + 4096}) {
    const Status status = upload({resident_at(begin), resident_at(outside)}, {});
    EXPECT_EQ(status.kind(), ErrorKind::kValue) << outside - begin;
    EXPECT_NE(status.message().find("entry tensor 1"), std::string::npos) << status.message();
  }
  ASSERT_TRUE(block.release().ok());
  EXPECT_EQ(upload({resident_at(begin)}, {}).kind(), ErrorKind::kValue) << "freed";
}

TEST_F(StagingTest, DeviceTensorsMayLieInWindowsOfSessions) {
  std::unique_ptr<CommSession> session;
  ASSERT_TRUE(CommSession::open(0, 1, format("staging of %d", getpid()).c_str(), &session).ok());
  std::uint64_t context = 0, base = 0;
  ASSERT_TRUE(session->alloc_windows(4096, &context).ok());
  ASSERT_TRUE(session->window_base(&base).ok());
  EXPECT_TRUE(upload({resident_at(base), resident_at(base + 4096 - 64)}, {}).ok());
  EXPECT_FALSE(upload({resident_at(base + 4096 - 63)}, {}).ok());
  session.reset();
  EXPECT_FALSE(upload({resident_at(base)}, {}).ok());
}

TEST_F(StagingTest, AnOwnerFromTheHostIsForgotten) {
  Host host(1);
  ChipTensor tensor = host.tensor(0);
  tensor.owner_task_id = PTO2TaskId::make(1, 2);
  ASSERT_TRUE(upload({tensor}, {}).ok());
  EXPECT_TRUE(device[0].owner_task_id.is_invalid());
}

TEST_F(StagingTest, ItsMemoryGrowsButIsNotGivenBackBetweenRuns) {
  Host host(3);
  ASSERT_TRUE(upload({host.tensor(0), host.tensor(1)}, {}).ok());
  ASSERT_TRUE(upload({host.tensor(2)}, {}).ok());
  EXPECT_EQ(at(0)[0], 300);
  EXPECT_EQ(device_.calls("alloc"), 1) << "the second run fits into what the first one left";
  ASSERT_TRUE(upload({host.tensor(0), host.tensor(1), host.tensor(2)}, {}).ok());
  EXPECT_EQ(device_.calls("alloc"), 2);
  EXPECT_EQ(device_.live_allocations(), 1u);
  staging = Staging();
}

TEST(StagingFailure, AnyCallMayFailAndNothingLeaks) {
  for (const char* name : {"alloc", "copy_to_device", "copy_from_device", "free"}) {
    bool failed = true;
    for (std::uint64_t call = 1; failed; ++call) {  // until there is no such call
      FaultyDevice device_;
      Host host(3);
      const auto args = std::make_unique<ChipStorageTaskArgs>();
      args->clear();
      for (int i = 0; i < 3; ++i) args->add_tensor(host.tensor(i));
      std::size_t bytes = 0;
      const auto blob = test::callable_blob({.orchestration = "x"}, &bytes);
      Staging staging;
      std::vector<ChipTensor> device;
      device_.fail_call(call, name);
      Status status =
          staging.upload(device_.allocator, *args, *reinterpret_cast<const abi::ChipCallable*>(blob.data()), &device);
      if (status.ok()) status = staging.copy_back(device_.device);
      staging.release();
      failed = device_.failed();
      const bool freeing = std::string(name) == "free";
      EXPECT_EQ(status.ok(), !failed || freeing) << name << " " << call;
      EXPECT_EQ(status.message().find("fails on request") != std::string::npos, failed && !freeing) << status.message();
      EXPECT_EQ(device_.allocator.count(), failed && freeing ? 1u : 0u) << "what was not freed stays known";
      EXPECT_TRUE(device_.allocator.free_all().ok());
      EXPECT_EQ(device_.live_allocations(), 0u) << name << " " << call;
    }
  }
}

}  // namespace
}  // namespace simpler::host
