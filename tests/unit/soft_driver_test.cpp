// The software device through its driver table: bounds, life times, stream order, events, code.
#include "driver/soft/soft_driver.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "driver/soft/soft_stream.h"
#include "frontend/device_program.h"
#include "unit/support/compiled_code.h"

namespace simpler::driver {
namespace {

class SoftDriverTest : public testing::Test {
 protected:
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
  EXPECT_EQ(soft.live_allocations(), 0u);
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
  EXPECT_EQ(d.set_device(d.self, -1), kInvalidParameter);
}

// ---- streams --------------------------------------------------------------------------------------------------------

TEST(SoftStream, RunsWorkInOrderAndDestructionWaitsForIt) {
  std::vector<int> order;
  {
    Stream stream;
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
  Stream stream;
  std::atomic<bool> first{false}, second{false};
  const auto wait = [](std::atomic<bool>& flag) {
    return [&flag](std::string*) {
      flag.wait(false);
      return kOk;
    };
  };
  const auto open = [](std::atomic<bool>& flag) {
    flag = true;
    flag.notify_all();
  };
  std::string text;
  EXPECT_EQ(stream.query(stream.pushed(), &text), kOk) << "nothing was pushed";
  stream.push(wait(first));
  const std::uint64_t target = stream.pushed();
  stream.push(wait(second));
  EXPECT_EQ(stream.query(target, &text), kNotComplete);
  EXPECT_EQ(stream.sync(target, 0, &text), kSyncTimeout);
  EXPECT_EQ(stream.sync(target, 5, &text), kSyncTimeout) << "the limit passed, the work goes on";
  open(first);
  EXPECT_EQ(stream.sync(target, -1, &text), kOk);
  EXPECT_EQ(stream.query(target, &text), kOk);
  EXPECT_EQ(stream.query(stream.pushed(), &text), kNotComplete);
  open(second);
  EXPECT_EQ(stream.sync(stream.pushed(), -1, &text), kOk);
}

TEST(SoftStream, AFailureIsReportedOnceAndTheFirstOneWins) {
  Stream stream;
  stream.push([](std::string* text) {
    *text = "first";
    return 7;
  });
  stream.push([](std::string* text) {
    *text = "second";
    return 8;
  });
  std::string text;
  EXPECT_EQ(stream.sync(stream.pushed(), -1, &text), 7);
  EXPECT_EQ(text, "first");
  EXPECT_EQ(stream.sync(stream.pushed(), -1, &text), kOk);
  EXPECT_EQ(text, "");
}

TEST_F(SoftDriverTest, AnEventThatWasNeverRecordedIsRefused) {
  Event* event = nullptr;
  ASSERT_EQ(d.event_create(d.self, &event), kOk);
  EXPECT_EQ(d.event_query(d.self, event), kInvalidParameter);
  EXPECT_EQ(d.event_sync(d.self, event, -1), kInvalidParameter);
  EXPECT_EQ(d.event_destroy(d.self, event), kOk);
}

TEST_F(SoftDriverTest, ADeviceProgramsFailureReachesTheStreamWithItsText) {
  DeviceModule* module = nullptr;
  EXPECT_EQ(d.cpu_load(d.self, "no_such_runtime", &module), kInvalidParameter);
  EXPECT_NE(error().find("no_such_runtime"), std::string::npos);
  ASSERT_EQ(d.cpu_load(d.self, "tensormap_and_ringbuffer", &module), kOk);
  Stream* stream = nullptr;
  Event* event = nullptr;
  ASSERT_EQ(d.stream_create(d.self, &stream), kOk);
  ASSERT_EQ(d.event_create(d.self, &event), kOk);
  abi::RegisterCallableArgs args{};
  args.id = abi::kMaxCallables;
  ASSERT_EQ(d.cpu_launch(d.self, module, DeviceFunction::kRegisterCallable, &args, sizeof args, stream), kOk)
      << "queued";
  ASSERT_EQ(d.event_record(d.self, event, stream), kOk);
  EXPECT_EQ(d.event_sync(d.self, event, -1), kDeviceProgramFailed);
  EXPECT_NE(error().find("callable id 64 is outside 0..63"), std::string::npos) << error();
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kOk) << "reported once";

  const std::uint64_t garbage = upload(std::string(256, 'x'));
  args.id = 0;
  args.code_address = garbage;
  args.code_bytes = 256;
  ASSERT_EQ(d.cpu_launch(d.self, module, DeviceFunction::kRegisterCallable, &args, sizeof args, stream), kOk);
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kDeviceProgramFailed);
  EXPECT_NE(error().find("does not load"), std::string::npos) << error();
  d.event_destroy(d.self, event);
  d.stream_destroy(d.self, stream);
  d.cpu_unload(d.self, module);
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
  EXPECT_EQ(d.child_code_resolve(d.self, garbage, 100, "my label", &entry, &handle), kCodeInvalid);
  EXPECT_NE(error().find("my label does not load"), std::string::npos) << error();
  EXPECT_EQ(d.child_code_resolve(d.self, garbage, 101, "my label", &entry, &handle), kInvalidParameter)
      << "out of bounds";
  const std::string code = test::compiled("extern \"C\" void another_entry() {}\n");
  EXPECT_EQ(d.child_code_resolve(d.self, upload(code), code.size(), "my label", &entry, &handle), kCodeInvalid);
  EXPECT_NE(error().find("does not export kernel_entry"), std::string::npos) << error();
}

}  // namespace
}  // namespace simpler::driver
