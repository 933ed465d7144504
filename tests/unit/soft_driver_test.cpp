// The software device through its driver table: bounds, life times, stream order, events, code.
#include "driver/soft/soft_driver.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "abi/run_image.h"
#include "driver/soft/soft_stream.h"
#include "unit/support/compiled_code.h"

namespace simpler::driver {
namespace {

constexpr std::uint64_t kFingerprint = 7;

class SoftDriverTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(d.set_device(d.self, 0), kOk); }
  std::uint64_t alloc(std::size_t bytes) {
    std::uint64_t address = 0;
    EXPECT_EQ(d.alloc(d.self, bytes, &address), kOk);
    return address;
  }
  std::string error() { return d.recent_error(d.self); }
  // The bytes in device memory.
  std::uint64_t upload(const std::string& bytes) {
    const std::uint64_t address = alloc(bytes.size());
    EXPECT_EQ(d.copy_to_device(d.self, address, bytes.data(), bytes.size()), kOk);
    return address;
  }

  SoftDriver soft{{2, 2}};
  const Driver& d = soft.table();
};

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST_F(SoftDriverTest, CopiesRoundTripAtAnyOffset) {
  const std::uint64_t address = alloc(1000);
  std::vector<char> out(1000), in(1000, 0);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 7);
  ASSERT_EQ(d.copy_to_device(d.self, address, out.data(), 1000), kOk);
  ASSERT_EQ(d.copy_from_device(d.self, in.data(), address + 333, 667), kOk);
  EXPECT_EQ(std::memcmp(in.data(), out.data() + 333, 667), 0);
}

TEST_F(SoftDriverTest, CopiesOutsideALiveAllocationAreRefusedWithTheirNumbers) {
  const std::uint64_t address = alloc(1000);
  char bytes[1001] = {};
  EXPECT_EQ(d.copy_to_device(d.self, address, bytes, 1001), kInvalidParameter);
  EXPECT_NE(error().find("1001 bytes reach past the allocation, which ends 1000 bytes from there"), std::string::npos)
      << error();
  EXPECT_EQ(d.copy_from_device(d.self, bytes, address + 999, 2), kInvalidParameter);
  EXPECT_EQ(d.copy_from_device(d.self, bytes, address + 1000, 1), kInvalidParameter);
  EXPECT_NE(error().find("no live allocation"), std::string::npos) << error();
  EXPECT_EQ(d.copy_to_device(d.self, reinterpret_cast<std::uint64_t>(bytes), bytes, 1), kInvalidParameter)
      << "host memory";
  EXPECT_EQ(d.copy_to_device(d.self, 0, bytes, 0), kOk) << "nothing to copy";
  EXPECT_EQ(d.free(d.self, address), kOk);
  EXPECT_EQ(d.copy_from_device(d.self, bytes, address, 1), kInvalidParameter) << "freed";
}

TEST_F(SoftDriverTest, FreeingTwiceOrInTheMiddleIsRefused) {
  const std::uint64_t address = alloc(100);
  EXPECT_EQ(d.free(d.self, address + 8), kInvalidParameter);
  EXPECT_EQ(d.free(d.self, address), kOk);
  EXPECT_EQ(d.free(d.self, address), kInvalidParameter);
  EXPECT_NE(error().find("freed already"), std::string::npos) << error();
  EXPECT_EQ(soft.census().allocations, 0u);
}

TEST_F(SoftDriverTest, TooMuchMemoryIsItsOwnCode) {
  std::uint64_t address = 0;
  EXPECT_EQ(d.alloc(d.self, std::size_t{1} << 62, &address), kOutOfMemory);
  EXPECT_NE(error().find(std::to_string(std::size_t{1} << 62)), std::string::npos) << error();
}

TEST_F(SoftDriverTest, ErrorTextsBelongToTheThreadThatFailed) {
  EXPECT_EQ(d.free(d.self, 1), kInvalidParameter);
  std::string other;
  std::thread([&] { other = error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_NE(error(), "");
}

TEST_F(SoftDriverTest, NegativeDevicesAreRefused) {
  EXPECT_EQ(d.set_device(d.self, 0), kOk);
  EXPECT_EQ(d.set_device(d.self, -1), kInvalidDevice);
}

// ---- streams --------------------------------------------------------------------------------------------------------

// Runs until it is opened.
class Gate {
 public:
  SoftStream::Work work() {
    return [this](std::string*) {
      open_.wait(false);
      return kOk;
    };
  }
  void open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

constexpr SoftStream::Clock::time_point kForever = SoftStream::Clock::time_point::max();
SoftStream::Clock::time_point in_ms(int ms) { return SoftStream::Clock::now() + std::chrono::milliseconds(ms); }

TEST(SoftStream, RunsWorkInOrderAndDestructionWaitsForIt) {
  std::vector<int> order;
  {
    SoftStream stream;
    for (int i = 0; i < 200; ++i) {
      stream.push([&order, i](std::string*) {
        order.push_back(i);
        return kOk;
      });
    }
  }
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[i], i);
}

TEST(SoftStream, ATargetIsDoneWhenTheWorkBeforeItIsWhateverFollows) {
  Gate first, second;
  SoftStream stream;
  std::string text;
  EXPECT_EQ(stream.query(stream.pushed(), &text), kOk) << "nothing was pushed";
  stream.push(first.work());
  const std::uint64_t target = stream.pushed();
  stream.push(second.work());
  EXPECT_EQ(stream.query(target, &text), kStreamNotComplete);
  EXPECT_EQ(stream.sync(target, in_ms(0), &text), kSyncTimeout);
  EXPECT_EQ(stream.sync(target, in_ms(5), &text), kSyncTimeout) << "the limit passed, the work goes on";
  first.open();
  EXPECT_EQ(stream.sync(target, kForever, &text), kOk);
  EXPECT_EQ(stream.query(target, &text), kOk);
  EXPECT_EQ(stream.query(stream.pushed(), &text), kStreamNotComplete);
  second.open();
  EXPECT_EQ(stream.sync(stream.pushed(), kForever, &text), kOk);
}

TEST(SoftStream, AFailureIsReportedOnceAndTheFirstOneWins) {
  SoftStream stream;
  stream.push([](std::string* text) {
    *text = "first";
    return 7;
  });
  const auto hold = stream.push_hold();
  stream.end(*hold, 8, "second");
  std::string text;
  EXPECT_EQ(stream.sync(stream.pushed(), kForever, &text), 7);
  EXPECT_EQ(text, "first");
  EXPECT_EQ(stream.sync(stream.pushed(), kForever, &text), kOk);
  EXPECT_EQ(text, "");
}

TEST(SoftStream, AHoldKeepsWhatFollowsUntilItEndsAndTimeCountsFromWhereItIsFirst) {
  Gate gate;
  SoftStream stream;
  std::string text;
  stream.push(gate.work());
  const auto hold = stream.push_hold();
  auto mark = std::make_shared<SoftStream::Mark>();
  stream.push_mark(mark);
  EXPECT_FALSE(stream.reap(std::chrono::microseconds(1))) << "work is first, not the hold";
  EXPECT_TRUE(stream.working());
  gate.open();
  EXPECT_TRUE(stream.idle_by(kForever));
  EXPECT_TRUE(stream.held_since().has_value());
  EXPECT_FALSE(stream.time_of(*mark).has_value());
  EXPECT_FALSE(stream.reap(std::chrono::hours(1))) << "within its limit";
  EXPECT_FALSE(stream.reap(std::chrono::microseconds(0))) << "there is no limit";
  stream.end(*hold, kOk, "");
  stream.end(*hold, 9, "too late");
  EXPECT_EQ(stream.sync(stream.target_of(*mark), kForever, &text), kOk);
  EXPECT_TRUE(stream.time_of(*mark).has_value());

  stream.push_hold();
  EXPECT_EQ(stream.sync(stream.pushed(), in_ms(2), &text), kSyncTimeout);
  EXPECT_TRUE(stream.reap(std::chrono::microseconds(1)));
  EXPECT_EQ(stream.query(stream.pushed(), &text), kCoreTimeout);
}

// ---- devices --------------------------------------------------------------------------------------------------------

TEST_F(SoftDriverTest, AThreadActsOnTheDeviceThatItSetAndOnNoneWithoutThat) {
  std::thread([&] {
    std::uint64_t address = 0;
    Stream* stream = nullptr;
    std::uint64_t actual = 0;
    char byte = 0;
    EXPECT_EQ(d.alloc(d.self, 16, &address), kNoContext);
    EXPECT_NE(error().find("has not called set_device"), std::string::npos) << error();
    EXPECT_EQ(d.stream_create(d.self, &stream), kNoContext);
    EXPECT_EQ(d.copy_from_device(d.self, &byte, 0, 0), kNoContext);
    EXPECT_EQ(d.sync_device(d.self, -1), kNoContext);
    EXPECT_EQ(d.set_op_timeout(d.self, 1, &actual), kNoContext);
    ASSERT_EQ(d.set_device(d.self, 5), kOk);
    EXPECT_EQ(d.alloc(d.self, 16, &address), kOk);
    EXPECT_EQ(d.reset_device(d.self, 5), kOk);
    EXPECT_EQ(d.alloc(d.self, 16, &address), kNoContext) << "the device is gone";
  }).join();
  EXPECT_EQ(soft.census().allocations, 0u) << "a reset device has no memory";
  EXPECT_EQ(soft.census().left_at_reset, 1u) << "and tells what was left behind";
}

TEST_F(SoftDriverTest, TheLastOfItsReferencesResetsADeviceAndStaleHandlesAreRefused) {
  ASSERT_EQ(d.set_device(d.self, 0), kOk);
  Stream* stream = nullptr;
  Event* event = nullptr;
  ASSERT_EQ(d.stream_create(d.self, &stream), kOk);
  ASSERT_EQ(d.event_create(d.self, &event), kOk);
  const std::uint64_t address = alloc(8);
  EXPECT_EQ(d.reset_device(d.self, 0), kOk);
  EXPECT_EQ(d.stream_query(d.self, stream), kOk) << "one reference is left";
  EXPECT_EQ(d.reset_device(d.self, 0), kOk);
  EXPECT_EQ(d.reset_device(d.self, 0), kContextReleased);
  EXPECT_EQ(soft.census().left_at_reset, 3u);
  ASSERT_EQ(d.set_device(d.self, 0), kOk);
  EXPECT_EQ(soft.generation(0), 2);
  EXPECT_EQ(d.stream_query(d.self, stream), kInvalidHandle);
  EXPECT_EQ(d.stream_destroy(d.self, stream), kInvalidHandle);
  EXPECT_EQ(d.event_record(d.self, event, stream), kInvalidHandle);
  EXPECT_EQ(d.free(d.self, address), kInvalidParameter);
  Stream* fresh = nullptr;
  ASSERT_EQ(d.stream_create(d.self, &fresh), kOk);
  EXPECT_NE(fresh, stream);
}

TEST_F(SoftDriverTest, DevicesShareNothing) {
  Stream* stream = nullptr;
  ASSERT_EQ(d.stream_create(d.self, &stream), kOk);
  const std::uint64_t address = alloc(8);
  ASSERT_EQ(d.set_device(d.self, 1), kOk);
  Event* event = nullptr;
  ASSERT_EQ(d.event_create(d.self, &event), kOk);
  EXPECT_EQ(d.event_record(d.self, event, stream), kWrongContext);
  EXPECT_EQ(d.force_reset(d.self, 1), kOk);
  EXPECT_EQ(d.stream_query(d.self, stream), kOk);
  EXPECT_EQ(d.free(d.self, address), kOk);
}

TEST_F(SoftDriverTest, TheProcessIsInitialisedAndFinalisedOnce) {
  EXPECT_EQ(d.acl_finalize(d.self), kRepeatFinalize);
  EXPECT_EQ(d.acl_init(d.self), kOk);
  EXPECT_EQ(d.acl_init(d.self), kRepeatInitialize);
  EXPECT_EQ(d.acl_finalize(d.self), kOk);
  EXPECT_EQ(d.set_log_level(d.self, 4), kOk);
  EXPECT_EQ(d.set_log_level(d.self, 5), kBadArgument);
}

// ---- events ---------------------------------------------------------------------------------------------------------

TEST_F(SoftDriverTest, AnEventThatWasNeverRecordedIsRefusedAndTimeGrowsFromEventToEvent) {
  Event* events[2] = {};
  Stream* stream = nullptr;
  std::uint64_t times[2] = {};
  ASSERT_EQ(d.stream_create(d.self, &stream), kOk);
  for (Event*& event : events) ASSERT_EQ(d.event_create(d.self, &event), kOk);
  EXPECT_EQ(d.event_sync(d.self, events[0], -1), kEventNotRecorded);
  EXPECT_EQ(d.event_timestamp(d.self, events[0], &times[0]), kEventNotRecorded);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(d.event_record(d.self, events[i], stream), kOk);
    ASSERT_EQ(d.event_sync(d.self, events[i], -1), kOk);
    ASSERT_EQ(d.event_timestamp(d.self, events[i], &times[i]), kOk);
  }
  EXPECT_LE(times[0], times[1]);
  for (Event* event : events) EXPECT_EQ(d.event_destroy(d.self, event), kOk);
  EXPECT_EQ(d.event_destroy(d.self, events[0]), kInvalidHandle);
}

// ---- programs -------------------------------------------------------------------------------------------------------

class SoftProgram : public SoftDriverTest {
 protected:
  void SetUp() override {
    SoftDriverTest::SetUp();
    const std::string text = builtin_program("tensormap_and_ringbuffer");
    ASSERT_EQ(d.stream_create(d.self, &stream), kOk);
    ASSERT_EQ(d.stream_create(d.self, &cores), kOk);
    ASSERT_EQ(d.core_image_load(d.self, {"x", 1}, &image), kOk);
    ASSERT_EQ(d.cpu_bootstrap(d.self, {"x", 1}, {text.data(), text.size()}, kFingerprint, 0, stream), kOk);
    const char* symbols[] = {"simpler_aicpu_exec", "simpler_aicpu_register_callable"};
    ASSERT_EQ(d.cpu_load(d.self, kFingerprint, 0, symbols, 2, &module), kOk) << error();
    ASSERT_EQ(d.cpu_function(d.self, module, symbols[0], &execute), kOk);
    ASSERT_EQ(d.cpu_function(d.self, module, symbols[1], &enroll), kOk);
  }
  // Device address of arguments that name run memory of the size of an image.
  std::uint64_t kernel_args() {
    run = alloc(sizeof(abi::RunImage));
    EXPECT_EQ(d.fill(d.self, run, 0, sizeof(abi::RunImage)), kOk);
    const std::uint64_t args = alloc(sizeof run);
    EXPECT_EQ(d.copy_to_device(d.self, args, &run, sizeof run), kOk);
    return args;
  }

  Stream *stream = nullptr, *cores = nullptr;
  CoreImage* image = nullptr;
  CpuModule* module = nullptr;
  CpuFunction *execute = nullptr, *enroll = nullptr;
  std::uint64_t run = 0;
};

TEST_F(SoftProgram, IsFoundByItsFingerprintAndDeviceAndHasItsEntries) {
  CpuModule* other = nullptr;
  CpuFunction* function = nullptr;
  const char* missing[] = {"simpler_aicpu_missing"};
  EXPECT_EQ(d.cpu_load(d.self, kFingerprint + 1, 0, missing, 0, &other), kInvalidParameter);
  EXPECT_EQ(d.cpu_load(d.self, kFingerprint, 1, missing, 0, &other), kInvalidParameter);
  EXPECT_EQ(d.cpu_load(d.self, kFingerprint, 0, missing, 1, &other), kInvalidParameter);
  EXPECT_NE(error().find("no entry simpler_aicpu_missing"), std::string::npos) << error();
  EXPECT_EQ(d.cpu_function(d.self, module, missing[0], &function), kInvalidParameter);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(d.cpu_bootstrap(d.self, {}, {"x", 1}, 1, 0, stream), kInvalidParameter) << "no dispatcher";
  ASSERT_EQ(d.cpu_bootstrap(d.self, {"x", 1}, {"garbage", 7}, 1, 0, stream), kOk);
  EXPECT_EQ(d.cpu_load(d.self, 1, 0, missing, 0, &other), kInvalidFunction);
  const std::string unknown = builtin_program("no_such_runtime");
  ASSERT_EQ(d.cpu_bootstrap(d.self, {"x", 1}, {unknown.data(), unknown.size()}, 1, 0, stream), kOk);
  EXPECT_EQ(d.cpu_load(d.self, 1, 0, missing, 0, &other), kInvalidParameter);
  EXPECT_NE(error().find("no_such_runtime"), std::string::npos);
  EXPECT_EQ(d.cpu_unload(d.self, module), kOk);
  std::int32_t payload = 0;
  EXPECT_EQ(d.cpu_launch(d.self, execute, 1, &payload, sizeof payload, stream), kInvalidHandle) << "unloaded";
}

TEST_F(SoftProgram, ItsFailureReachesTheStreamWithItsText) {
  abi::RegisterCallableArgs args{};
  args.id = abi::kMaxCallables;
  ASSERT_EQ(d.cpu_launch(d.self, enroll, 1, &args, sizeof args, stream), kOk) << "queued";
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kCpuException);
  EXPECT_NE(error().find("callable id 64 is outside 0..63"), std::string::npos) << error();
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kOk) << "reported once";

  args.id = 0;
  args.code_address = upload(std::string(256, 'x'));
  args.code_bytes = 256;
  ASSERT_EQ(d.cpu_launch(d.self, enroll, 1, &args, sizeof args, stream), kOk);
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kCpuException);
  EXPECT_NE(error().find("does not load"), std::string::npos) << error();
  EXPECT_EQ(d.cpu_launch(d.self, enroll, 1, &args, sizeof args - 1, stream), kInvalidParameter);
  EXPECT_EQ(d.cpu_launch(d.self, enroll, 0, &args, sizeof args, stream), kInvalidParameter);
}

TEST_F(SoftProgram, LaunchedCoresAreBusyUntilTheProgramWithTheirArgumentsHasEnded) {
  const std::uint64_t args = kernel_args();
  EXPECT_EQ(d.core_launch(d.self, image, 3, args, cores), kInvalidParameter) << "a chip of 2 clusters";
  EXPECT_EQ(d.core_launch(d.self, image, 2, args + 8, cores), kInvalidParameter) << "not in device memory";
  ASSERT_EQ(d.core_launch(d.self, image, 2, args, cores), kOk);
  EXPECT_EQ(d.stream_query(d.self, cores), kStreamNotComplete);
  EXPECT_EQ(d.stream_sync(d.self, cores, 2), kSyncTimeout);
  ASSERT_EQ(d.cpu_launch(d.self, execute, 1, &run, sizeof run, stream), kOk);
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kCpuException) << "no callable is registered";
  EXPECT_EQ(d.stream_sync(d.self, cores, -1), kOk) << "its cores are free";
  ASSERT_EQ(d.cpu_launch(d.self, execute, 1, &run, sizeof run, stream), kOk);
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kCpuException);
  EXPECT_NE(error().find("no cores were launched"), std::string::npos) << error();
}

TEST_F(SoftProgram, CoresPastTheirLimitFailAndPutTheDeviceInErrorUntilItIsResetByForce) {
  std::uint64_t actual = 0, address = 0;
  ASSERT_EQ(d.set_op_timeout(d.self, 2000, &actual), kOk);
  EXPECT_EQ(actual, 2000u);
  ASSERT_EQ(d.core_launch(d.self, image, 1, kernel_args(), cores), kOk);
  EXPECT_EQ(d.stream_sync(d.self, cores, -1), kCoreTimeout);
  EXPECT_EQ(d.alloc(d.self, 8, &address), kDriverInternal);
  EXPECT_NE(error().find("past the limit for operations"), std::string::npos) << error();
  Stream* another = nullptr;
  EXPECT_EQ(d.stream_create(d.self, &another), kDriverInternal);
  EXPECT_EQ(d.cpu_launch(d.self, execute, 1, &run, sizeof run, stream), kDriverInternal);
  EXPECT_EQ(d.sync_device(d.self, 10), kDriverInternal);
  ASSERT_EQ(d.reset_device(d.self, 0), kOk);
  ASSERT_EQ(d.set_device(d.self, 0), kOk);
  EXPECT_EQ(d.alloc(d.self, 8, &address), kDriverInternal) << "a plain reset does not help";
  ASSERT_EQ(d.force_reset(d.self, 0), kOk);
  ASSERT_EQ(d.set_device(d.self, 0), kOk);
  EXPECT_EQ(d.alloc(d.self, 8, &address), kOk);
}

TEST_F(SoftDriverTest, MappedMemoryIsTheSameAndIsUnmappedBeforeItIsFreed) {
  const std::uint64_t address = alloc(64);
  void* host = nullptr;
  EXPECT_EQ(d.map_host(d.self, address, 65, &host), kInvalidParameter);
  ASSERT_EQ(d.map_host(d.self, address, 64, &host), kOk);
  EXPECT_EQ(d.map_host(d.self, address, 64, &host), kInvalidParameter);
  EXPECT_EQ(d.fill(d.self, address, 7, 64), kOk);
  EXPECT_EQ(static_cast<char*>(host)[63], 7);
  EXPECT_EQ(d.free(d.self, address), kInvalidParameter);
  EXPECT_EQ(d.unmap_host(d.self, address), kOk);
  EXPECT_EQ(d.unmap_host(d.self, address), kInvalidParameter);
  EXPECT_EQ(d.free(d.self, address), kOk);
}

TEST_F(SoftDriverTest, TheChipTellsItsShape) {
  Stream* stream = nullptr;
  ASSERT_EQ(d.stream_create(d.self, &stream), kOk);
  std::uint32_t cube = 0, vector = 0;
  EXPECT_EQ(d.stream_core_limits(d.self, stream, &cube, &vector), kOk);
  EXPECT_EQ(cube, 2u);
  EXPECT_EQ(vector, 4u);
  std::uint64_t windows[6] = {}, mask = 0, sync = 0;
  int count = 5;
  EXPECT_EQ(d.core_registers(d.self, CoreRegisters::kControl, windows, &count), kInvalidParameter) << "too little room";
  count = 6;
  ASSERT_EQ(d.core_registers(d.self, CoreRegisters::kControl, windows, &count), kOk);
  EXPECT_EQ(count, 6);
  for (int i = 1; i < 6; ++i) EXPECT_NE(windows[i], windows[i - 1]);
  EXPECT_EQ(d.cpu_mask(d.self, CpuMask::kOccupied, &mask), kOk);
  EXPECT_NE(mask, 0u);
  EXPECT_EQ(d.cpu_mask(d.self, CpuMask::kPhysical, &mask), kUnsupported);
  EXPECT_EQ(d.sync_window(d.self, &sync), kOk);
  EXPECT_NE(sync, 0u);
}

TEST(SoftDma, OnlyEnginesThatExistHaveWorkspaces) {
  SoftDriver soft({1, 1}, {.dma_engines = 2});
  const Driver& d = soft.table();
  EXPECT_EQ(d.capabilities & (kDmaWorkspace0 | kDmaWorkspace1), kDmaWorkspace1);
  ASSERT_EQ(d.set_device(d.self, 0), kOk);
  std::uint64_t addresses[2] = {};
  DmaWorkspaces* workspaces = nullptr;
  EXPECT_EQ(d.dma_provision(d.self, 1, addresses, &workspaces), kUnsupported);
  ASSERT_EQ(d.dma_provision(d.self, 2, addresses, &workspaces), kOk);
  EXPECT_EQ(addresses[0], 0u);
  EXPECT_NE(addresses[1], 0u);
  EXPECT_EQ(soft.census().workspaces, 1u);
  EXPECT_EQ(d.dma_release(d.self, workspaces), kOk);
  EXPECT_EQ(d.dma_release(d.self, workspaces), kInvalidHandle);
  EXPECT_TRUE(soft.census().empty());
}

// ---- code -----------------------------------------------------------------------------------------------------------

TEST_F(SoftDriverTest, CodeIsResolvedToAPrivateCopyEachTime) {
  const std::string code = test::compiled(
      "#include <cstdint>\nstatic int64_t calls;\n"
      "extern \"C\" void kernel_entry(int64_t* args) { args[0] = ++calls; }\n");
  const std::uint64_t address = upload(code);
  std::uint64_t entry[2] = {};
  ChildCode* handle[2] = {};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(d.child_code_resolve(d.self, address, code.size(), "counter", &entry[i], &handle[i]), kOk) << error();
  }
  d.free(d.self, address);  // the copy does not need it any more
  EXPECT_NE(entry[0], entry[1]);
  std::int64_t args[1] = {};
  const auto call = [&](int i) {
    reinterpret_cast<void (*)(std::int64_t*)>(entry[i])(args);
    return args[0];
  };
  EXPECT_EQ(call(0), 1);
  EXPECT_EQ(call(0), 2);
  EXPECT_EQ(call(1), 1) << "copies share no globals";
  for (ChildCode* code_handle : handle) EXPECT_EQ(d.child_code_release(d.self, code_handle), kOk);
}

TEST_F(SoftDriverTest, BytesThatAreNoKernelAreRefusedWithTheReason) {
  std::uint64_t entry = 0;
  ChildCode* handle = nullptr;
  const std::uint64_t garbage = upload(std::string(100, 'x'));
  EXPECT_EQ(d.child_code_resolve(d.self, garbage, 100, "my label", &entry, &handle), kInvalidFunction);
  EXPECT_NE(error().find("my label does not load"), std::string::npos) << error();
  EXPECT_EQ(d.child_code_resolve(d.self, garbage, 101, "my label", &entry, &handle), kInvalidParameter)
      << "out of bounds";
  const std::string code = test::compiled("extern \"C\" void another_entry() {}\n");
  EXPECT_EQ(d.child_code_resolve(d.self, upload(code), code.size(), "my label", &entry, &handle), kInvalidFunction);
  EXPECT_NE(error().find("does not export kernel_entry"), std::string::npos) << error();
}

}  // namespace
}  // namespace simpler::driver
