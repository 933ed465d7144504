// The fault decorator: which calls its rules hit, what they do, what the log tells.
#include "driver/fault/fault_driver.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "driver/soft/soft_driver.h"

namespace simpler::driver {
namespace {

class FaultDriverTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(d.set_device(d.self, 0), kOk); }
  int alloc() { return d.alloc(d.self, 64, &address); }

  SoftDriver soft{{1, 1}};
  FaultDriver fault{soft.table()};
  const Driver& d = fault.table();
  std::uint64_t address = 0;
};

TEST_F(FaultDriverTest, WithoutRulesItChangesNothingAndLogsEverything) {
  ASSERT_EQ(alloc(), kOk);
  EXPECT_EQ(d.free(d.self, address + 1), kInvalidParameter);
  EXPECT_NE(std::string(d.recent_error(d.self)).find("not the start of a live allocation"), std::string::npos);
  EXPECT_EQ(d.free(d.self, address), kOk);
  const std::vector<CallRecord> log = fault.log();
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[0].call, Call::k_set_device);
  EXPECT_EQ(log[2].code, kInvalidParameter);
  for (const CallRecord& record : log) {
    EXPECT_EQ(record.device, 0);
    EXPECT_FALSE(record.injected);
    EXPECT_EQ(record.thread, log[0].thread);
  }
  EXPECT_EQ(fault.calls("free"), 2u);
  EXPECT_EQ(fault.injected(), 0u);
}

TEST_F(FaultDriverTest, ARuleHitsTheNthCallThatFitsItAndAsManyAsItSays) {
  fault.set_rules({{.call = "alloc", .nth = 2, .times = 2, .code = kOutOfMemory}});
  const int wanted[] = {kOk, kOutOfMemory, kOutOfMemory, kOk};
  for (int code : wanted) EXPECT_EQ(alloc(), code);
  EXPECT_EQ(soft.census().allocations, 2u) << "the failed ones did nothing";
  EXPECT_EQ(fault.injected(), 2u);
  fault.set_rules({{.nth = 3}});
  EXPECT_EQ(alloc(), kOk);
  EXPECT_EQ(d.acl_init(d.self), kOk);
  EXPECT_EQ(d.acl_finalize(d.self), kInternalError) << "any third call";
  EXPECT_STREQ(d.recent_error(d.self), "acl_finalize fails on request");
}

TEST_F(FaultDriverTest, ARuleMayBeForOneDevice) {
  fault.set_rules({{.device = 1, .times = -1}});
  EXPECT_EQ(alloc(), kOk);
  EXPECT_EQ(d.set_device(d.self, 1), kInternalError);
  EXPECT_EQ(alloc(), kOk) << "the thread is still on device 0";
}

TEST_F(FaultDriverTest, ASeedDrawsTheSameCallsAgain) {
  const auto draw = [&](std::uint64_t seed) {
    fault.set_rules({{.call = "alloc", .nth = 0, .probability = 0.3, .seed = seed}});
    std::string hits;
    for (int i = 0; i < 64; ++i) hits += alloc() == kOk ? '.' : 'x';
    return hits;
  };
  const std::string first = draw(7);
  EXPECT_EQ(draw(7), first);
  EXPECT_NE(draw(8), first);
  EXPECT_NE(first.find('x'), std::string::npos);
}

TEST_F(FaultDriverTest, AfterTheEffectMeansDoneForCallsAndTakenBackForCreations) {
  fault.set_rules({{.fault = Fault::kAfter, .nth = 1, .times = -1}});
  EXPECT_EQ(alloc(), kInternalError);
  Stream* stream = nullptr;
  Event* event = nullptr;
  EXPECT_EQ(d.stream_create(d.self, &stream), kInternalError);
  EXPECT_EQ(d.event_create(d.self, &event), kInternalError);
  EXPECT_TRUE(soft.census().empty());
  fault.set_rules({});
  ASSERT_EQ(alloc(), kOk);
  fault.set_rules({{.fault = Fault::kAfter, .nth = 1, .times = -1}});
  EXPECT_EQ(d.free(d.self, address), kInternalError);
  EXPECT_EQ(soft.census().allocations, 0u) << "freed all the same";
}

TEST_F(FaultDriverTest, AHangingWaitUsesItsLimitUp) {
  Stream* stream = nullptr;
  ASSERT_EQ(d.stream_create(d.self, &stream), kOk);
  fault.set_rules({{.fault = Fault::kHang, .call = "stream_sync", .times = -1},
                   {.fault = Fault::kHang, .call = "alloc", .code = kOutOfMemory}});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(d.stream_sync(d.self, stream, 20), kSyncTimeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_EQ(d.stream_sync(d.self, stream, -1), kInternalError) << "it has no limit to use up";
  EXPECT_EQ(alloc(), kOutOfMemory);
}

TEST_F(FaultDriverTest, AStickyErrorLastsUntilTheDeviceIsResetByForce) {
  fault.set_rules({{.fault = Fault::kSticky, .call = "alloc"}});
  EXPECT_EQ(alloc(), kInternalError);
  EXPECT_EQ(alloc(), kDriverInternal);
  Stream* stream = nullptr;
  EXPECT_EQ(d.stream_create(d.self, &stream), kDriverInternal);
  EXPECT_EQ(d.reset_device(d.self, 0), kOk);
  EXPECT_EQ(d.set_device(d.self, 0), kOk);
  EXPECT_EQ(alloc(), kDriverInternal);
  EXPECT_EQ(d.force_reset(d.self, 0), kOk);
  EXPECT_EQ(d.set_device(d.self, 0), kOk);
  EXPECT_EQ(alloc(), kOk);
}

TEST_F(FaultDriverTest, AShortCopyMovesHalfAndFails) {
  ASSERT_EQ(alloc(), kOk);
  ASSERT_EQ(d.fill(d.self, address, 0, 64), kOk);
  const std::string ones(64, '1');
  fault.set_rules({{.fault = Fault::kShortCopy}});
  EXPECT_EQ(d.copy_to_device(d.self, address, ones.data(), 64), kInternalError);
  EXPECT_EQ(std::memcmp(reinterpret_cast<const char*>(address), ones.data(), 32), 0);
  EXPECT_EQ(reinterpret_cast<const char*>(address)[32], 0);
}

TEST(FaultNames, EveryEntryHasItsName) {
  EXPECT_STREQ(name_of(Call::k_set_log_level), "set_log_level");
  EXPECT_STREQ(name_of(static_cast<Call>(kCallCount - 1)), "dma_release");
  for (const Fault fault : kAllFaults) EXPECT_STRNE(name_of(fault), "");
}

}  // namespace
}  // namespace simpler::driver
