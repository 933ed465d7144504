// What the device runner is made of, part by part: memory, arenas, streams, shape, times, limits, recovery.
#include <cstdlib>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "abi/phase_buffer.h"
#include "host/arenas.h"
#include "host/clock_session.h"
#include "host/collector.h"
#include "host/launch_shape.h"
#include "host/phase_times.h"
#include "host/recovery.h"
#include "host/run_streams.h"
#include "host/timeouts.h"
#include "unit/support/faulty_device.h"

namespace simpler::host {
namespace {

using driver::Fault;
using test::FaultyDevice;

const executor::ArchProfile& a2a3() { return *executor::find_arch("a2a3"); }

// ---- device and memory --------------------------------------------------------------------------------------------------

TEST(RunnerDevice, AThreadIsAttachedOnceAndEveryReferenceIsGivenBack) {
  FaultyDevice d;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(d.device.attach().ok());
  EXPECT_EQ(d.calls("set_device"), 0) << "the fixture has attached this thread";
  std::thread([&] {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(d.device.attach().ok());
  }).join();
  EXPECT_EQ(d.calls("set_device"), 1);
  EXPECT_EQ(d.device.detach_all(), driver::kOk);
  EXPECT_EQ(d.calls("reset_device"), 2);
  EXPECT_EQ(d.device.detach_all(), driver::kOk);
  EXPECT_EQ(d.calls("reset_device"), 2) << "there is nothing to give back";
}

TEST(RunnerDevice, PoisonMakesItUnusableWhereverItShowsAndOtherFailuresDoNot) {
  for (const int code : {driver::kOutOfMemory, driver::kCpuException, driver::kSyncTimeout}) {
    FaultyDevice d;
    EXPECT_NE(d.device.failure("call", code).message().find("call failed: " + std::to_string(code)), std::string::npos);
    EXPECT_EQ(d.device.state(), Device::State::kReady) << code;
  }
  for (const int code : {driver::kDriverInternal, driver::kTaskAbort, driver::kCoreTimeout, driver::kCoreException}) {
    FaultyDevice d;
    static_cast<void>(d.device.failure("call", code));
    EXPECT_EQ(d.device.state(), Device::State::kUnusable) << code;
    EXPECT_NE(d.device.why_unusable().find("call failed"), std::string::npos);
  }
}

TEST(RunnerDevice, StatesChangeOnlyForward) {
  FaultyDevice d;
  d.device.mark_unusable("x");
  d.device.mark_unusable("y");
  EXPECT_EQ(d.device.why_unusable(), "x") << "the first reason counts";
  EXPECT_DEATH(d.device.become(Device::State::kReady), "from Unusable to Ready");
  d.device.become(Device::State::kFinalized);
  EXPECT_DEATH(d.device.become(Device::State::kUnusable), "from Finalized to Unusable");
}

TEST(RunnerMemory, FreeingWhatIsUnknownIsNoErrorAndWhatTheDriverKeepsStaysKnown) {
  FaultyDevice d;
  std::uint64_t a = 0, b = 0;
  EXPECT_TRUE(d.allocator.free(0).ok());
  EXPECT_TRUE(d.allocator.free(4711).ok());
  ASSERT_TRUE(d.allocator.allocate(100, &a).ok());
  ASSERT_TRUE(d.allocator.allocate(50, &b).ok());
  EXPECT_EQ(d.allocator.bytes(), 150u) << "as requested";
  d.fail_call(1, "free");
  EXPECT_FALSE(d.allocator.free(a).ok());
  EXPECT_TRUE(d.allocator.knows(a));
  EXPECT_TRUE(d.allocator.free(a).ok());
  EXPECT_EQ(d.allocator.bytes(), 50u);
  d.fail_call(1, "free");
  EXPECT_FALSE(d.allocator.free_all().ok());
  EXPECT_EQ(d.allocator.count(), 0u) << "it is over for the runner";
  d.fail_call(1, "alloc");
  EXPECT_EQ(d.allocator.allocate(8, &a).code(), driver::kOutOfMemory);
}

TEST(RunnerMemory, OnADeviceInDoubtEveryOwnerForgets) {
  FaultyDevice d;
  DeviceBlock block;
  OwnedStream stream(d.device);
  ASSERT_TRUE(block.grow(d.allocator, 64).ok());
  ASSERT_TRUE(d.device.run("stream_create", &driver::Driver::stream_create, stream.receive()).ok());
  d.device.mark_unusable("test");
  d.fault.clear_log();
  EXPECT_TRUE(block.release().ok());
  EXPECT_EQ(stream.release(), driver::kOk);
  EXPECT_TRUE(d.allocator.free_all().ok());
  EXPECT_EQ(d.fault.calls(""), 0u) << "nothing is asked of it";
}

// ---- arenas -------------------------------------------------------------------------------------------------------------

TEST(RunnerArenas, GrowOneRegionAndLeaveItsSiblingsWhereTheyAre) {
  FaultyDevice d;
  Arenas arenas(d.allocator);
  EXPECT_EQ(arenas.setup(2, {}).kind(), ErrorKind::kIndex);
  EXPECT_EQ(arenas.base(0, Arenas::kHeap), 0u);
  ASSERT_TRUE(arenas.setup(0, {1000, 2000, 3000}).ok());
  const std::uint64_t heap = arenas.base(0, Arenas::kHeap), shared = arenas.base(0, Arenas::kShared);
  EXPECT_EQ(heap % Arenas::kAlignment, 0u);
  ASSERT_TRUE(arenas.setup(0, {500, 2000, 9000}).ok());
  EXPECT_EQ(arenas.base(0, Arenas::kHeap), heap) << "large enough";
  EXPECT_EQ(arenas.bytes(0, Arenas::kHeap), 1000u);
  EXPECT_EQ(arenas.base(0, Arenas::kShared), shared);
  EXPECT_EQ(arenas.bytes(0, Arenas::kRuntime), 9000u);
  EXPECT_TRUE(arenas.fits(0, {1000, 2000, 9000}));
  EXPECT_FALSE(arenas.fits(0, {1001, 2000, 9000}));
  EXPECT_FALSE(arenas.fits(1, {1, 0, 0}));
  ASSERT_TRUE(arenas.setup(0, {1000, 0, 9000}).ok());
  EXPECT_EQ(arenas.base(0, Arenas::kShared), 0u) << "given back";
  ASSERT_TRUE(arenas.setup(1, {64, 0, 0}).ok());
  EXPECT_EQ(d.live_allocations(), 3u);
  arenas.release();
  EXPECT_EQ(d.live_allocations(), 0u);
}

TEST(RunnerArenas, IfOneRegionCannotBeHadTheWholeBankIsGivenUpAndTheOtherOneIsNot) {
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    FaultyDevice d;
    Arenas arenas(d.allocator);
    ASSERT_TRUE(arenas.setup(1, {64, 64, 64}).ok());
    d.fail_call(nth, "alloc");
    EXPECT_FALSE(arenas.setup(0, {64, 64, 64}).ok());
    for (const auto region : {Arenas::kHeap, Arenas::kShared, Arenas::kRuntime}) {
      EXPECT_EQ(arenas.base(0, region), 0u);
      EXPECT_NE(arenas.base(1, region), 0u);
    }
    EXPECT_TRUE(arenas.setup(0, {64, 64, 64}).ok());
  }
}

TEST(RunnerArenas, ThePrebuiltImageIsFoundByItsExactKeyUntilItsBankChanges) {
  FaultyDevice d;
  Arenas arenas(d.allocator);
  PrebuiltImage& prebuilt = arenas.prebuilt();
  ASSERT_TRUE(arenas.setup(0, {64, 64, 64}).ok());
  PrebuiltImage::View view, found;
  view.runtime_offset = 5;
  view.image = "image";
  EXPECT_FALSE(prebuilt.lookup(0, 1, "key", &found));
  prebuilt.mark(1, 1, "key", view);
  EXPECT_FALSE(prebuilt.lookup(1, 1, "key", &found)) << "bank 0 alone has one";
  prebuilt.mark(0, 1, "key", view);
  ASSERT_TRUE(prebuilt.lookup(0, 1, "key", &found));
  EXPECT_EQ(found.image, "image");
  EXPECT_NE(found.image.data(), view.image.data()) << "a copy";
  EXPECT_EQ(found.runtime_offset, 5u);
  EXPECT_FALSE(prebuilt.lookup(0, 2, "key", &found));
  EXPECT_FALSE(prebuilt.lookup(0, 1, "kez", &found)) << "the same hash, another key";
  EXPECT_FALSE(prebuilt.lookup(0, 1, "key", nullptr));
  ASSERT_TRUE(arenas.setup(1, {64, 64, 64}).ok());
  EXPECT_TRUE(prebuilt.lookup(0, 1, "key", &found)) << "the other bank's business";
  ASSERT_TRUE(arenas.setup(0, {64, 64, 64}).ok());
  EXPECT_TRUE(prebuilt.lookup(0, 1, "key", &found)) << "nothing changed";
  ASSERT_TRUE(arenas.setup(0, {65, 64, 64}).ok());
  EXPECT_FALSE(prebuilt.lookup(0, 1, "key", &found));
}

TEST(RunnerGraphBuffers, AreKeptZeroedWhenMadeAndSurviveAFailedGrowth) {
  FaultyDevice d;
  GraphBuffers graphs(d.allocator);
  EXPECT_EQ(graphs.acquire(2, 1, 64, 64), 0u);
  EXPECT_EQ(graphs.acquire(0, 1, 0, 64), 0u);
  EXPECT_EQ(graphs.acquire(0, 1, 64, 0), 0u);
  EXPECT_EQ(graphs.acquire(0, 1, 64, 48), 0u);
  EXPECT_EQ(graphs.acquire(0, 1, SIZE_MAX, 64), 0u) << "overflow";
  const std::uint64_t first = graphs.acquire(0, 1, 100, 4096);
  ASSERT_NE(first, 0u);
  EXPECT_EQ(first % 4096, 0u);
  char* const bytes = reinterpret_cast<char*>(first);
  EXPECT_EQ(bytes[0] + bytes[99], 0);
  bytes[0] = 7;
  EXPECT_EQ(graphs.acquire(0, 1, 50, 64), first);
  EXPECT_EQ(bytes[0], 7) << "contents stay";
  EXPECT_NE(graphs.acquire(1, 1, 50, 64), first) << "slots are apart";
  d.fail_call(1, "fill");
  EXPECT_EQ(graphs.acquire(0, 1, 200, 64), 0u);
  EXPECT_EQ(graphs.acquire(0, 1, 100, 64), first) << "the old one is still there";
  const std::uint64_t larger = graphs.acquire(0, 1, 200, 64);
  EXPECT_EQ(reinterpret_cast<char*>(larger)[0], 0);
  EXPECT_EQ(d.live_allocations(), 2u);
  graphs.release();
  EXPECT_EQ(d.live_allocations(), 0u);
}

// ---- streams ------------------------------------------------------------------------------------------------------------

TEST(RunnerStreams, TheCoresStreamIsReplacedAfterAnUploadAndAfterARunThatIsNotProven) {
  FaultyDevice d;
  RunStreams streams(d.device);
  int code = 0;
  EXPECT_EQ(streams.poll(&code), RunStreams::Poll::kError) << "nothing was submitted";
  ASSERT_TRUE(streams.ensure(false).ok());
  driver::Stream *const cpu = streams.cpu(), *core = streams.core();
  ASSERT_TRUE(streams.ensure(false).ok());
  EXPECT_EQ(streams.core(), core);
  streams.mark_stale();
  ASSERT_TRUE(streams.ensure(false).ok());
  EXPECT_NE(streams.core(), core);
  EXPECT_EQ(streams.cpu(), cpu);
  EXPECT_EQ(streams.created(), 2u);
  streams.mark_submitted(7);
  EXPECT_EQ(streams.ensure(false).kind(), ErrorKind::kState) << "they are run 7's";
  EXPECT_EQ(streams.poll(&code), RunStreams::Poll::kComplete);
  EXPECT_TRUE(streams.retire(RunStreams::Retired::kComplete, 8).ok());
  EXPECT_FALSE(streams.ensure(false).ok()) << "run 8 has no say";
  core = streams.core();
  EXPECT_TRUE(streams.retire(RunStreams::Retired::kComplete, 7).ok());
  ASSERT_TRUE(streams.ensure(false).ok());
  EXPECT_EQ(streams.core(), core);
  streams.mark_submitted(9);
  EXPECT_TRUE(streams.retire(RunStreams::Retired::kUnproven, 9).ok());
  ASSERT_TRUE(streams.ensure(false).ok());
  EXPECT_NE(streams.core(), core);
  EXPECT_EQ(streams.destroy(), driver::kOk);
  EXPECT_EQ(d.soft.census().streams, 0u);
}

TEST(RunnerStreams, AFailedCreationLeavesWhatThereWas) {
  FaultyDevice d;
  RunStreams streams(d.device);
  d.fail_call(2, "stream_create");
  EXPECT_FALSE(streams.ensure(false).ok());
  EXPECT_TRUE(streams.ensure(false).ok());
  EXPECT_EQ(d.soft.census().streams, 2u);
  streams.mark_submitted(1);
  d.fail_call(2, "stream_query");
  int code = 0;
  EXPECT_EQ(streams.poll(&code), RunStreams::Poll::kError) << "either stream's error counts";
  EXPECT_EQ(code, driver::kOutOfMemory);
  EXPECT_EQ(d.calls("stream_query"), 2) << "both are asked";
}

// The one thread retires a run, which takes as long as the driver likes; the other one only asks.
std::latch* reached = nullptr;
std::latch* released = nullptr;

TEST(RunnerStreams, APollDoesNotWaitForWhoeverRetiresTheRun) {
  FaultyDevice d;
  driver::Driver table = d.soft.table();
  static int (*destroy)(void*, driver::Stream*) = table.stream_destroy;
  table.stream_destroy = [](void* self, driver::Stream* stream) {
    if (reached != nullptr) {
      reached->count_down();
      released->wait();
    }
    return destroy(self, stream);
  };
  Device device(table, 0);
  ASSERT_TRUE(device.attach().ok());
  RunStreams streams(device);
  ASSERT_TRUE(streams.ensure(false).ok());
  streams.mark_submitted(1);
  std::latch began(1), go_on(1);
  reached = &began;
  released = &go_on;
  std::thread other([&] { EXPECT_TRUE(streams.retire(RunStreams::Retired::kUnproven, 1).ok()); });
  began.wait();
  int code = 0;
  EXPECT_EQ(streams.poll(&code), RunStreams::Poll::kNotReady);
  go_on.count_down();
  other.join();
  reached = nullptr;
  EXPECT_EQ(streams.poll(&code), RunStreams::Poll::kError) << "nobody's streams";
  EXPECT_EQ(streams.destroy(), driver::kOk);
  EXPECT_EQ(device.detach_all(), driver::kOk);
}

TEST(RunnerStreams, StopOnFailureIsSetOnEachStreamIfThereAreDmaWorkspaces) {
  FaultyDevice d;
  RunStreams streams(d.device);
  ASSERT_TRUE(streams.ensure(true).ok());
  EXPECT_EQ(d.calls("stream_stop_on_failure"), 2);
}

// ---- shape --------------------------------------------------------------------------------------------------------------

TEST(RunnerShape, ThreadsAndBlocksFollowWhatIsAskedForAndWhatThereIs) {
  for (const int good : {0, 2, 3, 4}) EXPECT_TRUE(check_thread_count(good, a2a3(), "a2a3").ok()) << good;
  for (const int bad : {-1, 1, 5}) EXPECT_EQ(check_thread_count(bad, a2a3(), "a2a3").kind(), ErrorKind::kValue) << bad;
  EXPECT_EQ(resolve_thread_count(0, 4, 4), 4);
  EXPECT_EQ(resolve_thread_count(3, 4, 4), 3);
  EXPECT_EQ(resolve_thread_count(4, 3, 4), 3);
  EXPECT_EQ(resolve_thread_count(0, 1, 4), -1);
  EXPECT_EQ(resolve_blocks(0), -1);
  EXPECT_EQ(resolve_blocks(24), 24);
  abi::LaunchShape shape;
  EXPECT_FALSE(resolve_launch_shape(0, 0, 0, a2a3(), &shape).ok());
  ASSERT_TRUE(resolve_launch_shape(3, 24, 0, a2a3(), &shape).ok());
  EXPECT_EQ(shape.worker_count, 72);
  EXPECT_EQ(shape.thread_count, 3);
  EXPECT_EQ(shape.allowed_count, 0) << "nothing is known of the processors";
}

TEST(RunnerShape, ThreadsGoToTheHighestGroupOfProcessorsThatHoldsThemAll) {
  struct Case {
    std::uint64_t mask;
    int threads;
    std::vector<int> cpus;
  };
  const Case cases[] = {
      {0xFF, 4, {4, 5, 6, 7}}, {0xFF, 2, {4, 5}}, {0x3F, 4, {0, 1, 2, 3}}, {0x3F, 2, {4, 5}}, {0x3C, 4, {2, 3, 4, 5}},
  };
  for (const Case& c : cases) {
    abi::LaunchShape shape;
    ASSERT_TRUE(resolve_launch_shape(c.threads, 1, c.mask, a2a3(), &shape).ok());
    EXPECT_EQ(std::vector<int>(shape.allowed_cpus, shape.allowed_cpus + shape.allowed_count), c.cpus) << c.mask;
    EXPECT_LE(shape.launch_count, a2a3().launch_threads);
  }
  abi::LaunchShape shape;
  EXPECT_FALSE(resolve_launch_shape(2, 1, 1, a2a3(), &shape).ok()) << "one processor";
}

TEST(RunnerShape, SpreadingThreadsIsAWarningOnlyIfOneGroupCouldHoldThem) {
  const auto said = [](int threads, std::uint64_t mask, const executor::ArchProfile& arch) {
    abi::LaunchShape shape;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(resolve_launch_shape(threads, 1, mask, arch, &shape).ok());
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said(3, 0x33, a2a3()).find("no group of control processors has 3 free ones"), std::string::npos);
  EXPECT_EQ(said(0, 0xFF, *executor::find_arch("a5")), "") << "a5 has more threads than a group has processors";
}

// ---- times --------------------------------------------------------------------------------------------------------------

TEST(RunnerPhases, AreReducedOverThreadsAndCountFromTheFirstPhase) {
  constexpr int kThreads = 2;
  std::vector<std::uint64_t> words(abi::phase_buffer_bytes(kThreads) / 8, 0);
  auto* const spans = reinterpret_cast<abi::PhaseSpan*>(words.data() + 2);
  for (int i = 0; i < kThreads * (abi::kPhases + abi::kPhaseSlots); ++i) spans[i] = {abi::PhaseSpan::kUnset, 0};
  const auto set = [&](int thread, abi::Phase phase, std::uint64_t start, std::uint64_t end) {
    spans[thread * abi::kPhases + static_cast<int>(phase)] = {start, end};
  };
  set(0, abi::Phase::kRunWall, 1000, 1500);
  set(1, abi::Phase::kRunWall, 1010, 1600);
  set(0, abi::Phase::kPreamble, 1020, 1040);
  set(1, abi::Phase::kSchedWindow, 1100, 1100);  // ended when it started: none
  set(0, abi::Phase::kOrchWindow, 1050, 1200);
  auto* const slots = spans + kThreads * abi::kPhases;
  slots[3] = {1060, 1070};
  slots[abi::kPhaseSlots + 3] = {1065, 1090};
  PhaseTimes times = reduce_phases(words.data(), kThreads, 1'000'000'000);
  const auto span = [&](abi::Phase phase) { return times.phases[static_cast<std::size_t>(phase)]; };
  EXPECT_EQ(span(abi::Phase::kRunWall).length_ns, 600);
  EXPECT_EQ(span(abi::Phase::kRunWall).start_ns, 0);
  EXPECT_EQ(span(abi::Phase::kPreamble).start_ns, 0) << "the first phase is the origin";
  EXPECT_EQ(span(abi::Phase::kOrchWindow).start_ns, 30);
  EXPECT_EQ(span(abi::Phase::kOrchWindow).length_ns, 150);
  EXPECT_EQ(span(abi::Phase::kSchedWindow).length_ns, 0);
  EXPECT_EQ(times.slots[3].length_ns, 0) << "the slots were not used";
  words[0] = 1;
  times = reduce_phases(words.data(), kThreads, 50'000'000);
  EXPECT_EQ(times.slots[3].start_ns, 40 * 20) << "counts of 20 ns";
  EXPECT_EQ(times.slots[3].length_ns, 30 * 20);
}

TEST(RunnerClock, TakesThreeSamplesAtEachEndAndAFailedOneSaysWhere) {
  FaultyDevice d;
  OwnedStream stream(d.device);
  ASSERT_TRUE(d.device.run("stream_create", &driver::Driver::stream_create, stream.receive()).ok());
  ClockSession session(d.device);
  session.finish(stream.get(), true);
  EXPECT_TRUE(session.samples().empty()) << "there was none";
  d.fail_call(2, "event_timestamp");
  session.begin(stream.get());
  session.finish(stream.get(), true);
  session.finish(stream.get(), true);
  ASSERT_EQ(session.samples().size(), 6u);
  EXPECT_STREQ(session.samples()[1].failed_step, "timestamp");
  EXPECT_EQ(session.samples()[1].code, driver::kOutOfMemory);
  for (const int good : {0, 2, 3, 4, 5}) {
    EXPECT_EQ(session.samples()[static_cast<std::size_t>(good)].code, driver::kOk);
    EXPECT_LE(session.samples()[static_cast<std::size_t>(good)].host_before_ns,
              session.samples()[static_cast<std::size_t>(good)].host_after_ns);
  }
  session.begin(stream.get());
  session.finish(stream.get(), false);
  EXPECT_EQ(session.samples().size(), 3u) << "a run that failed has no closing samples";
  EXPECT_EQ(d.soft.census().events, 0u);
}

// ---- limits -------------------------------------------------------------------------------------------------------------

class RunnerTimeouts : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
  }
  Timeouts with(const char* op, const char* sync, const char* scheduler, bool simulated = false) {
    const char* const values[] = {op, sync, scheduler};
    for (int i = 0; i < 3; ++i) {
      if (values[i] == nullptr) {
        unsetenv(kNames[i]);
      } else {
        setenv(kNames[i], values[i], 1);
      }
    }
    return resolve_timeouts(simulated);
  }
  static constexpr const char* kNames[] = {"SIMPLER_OP_EXECUTE_TIMEOUT_US", "SIMPLER_STREAM_SYNC_TIMEOUT_MS",
                                           "SIMPLER_SCHEDULER_TIMEOUT_MS"};
};

TEST_F(RunnerTimeouts, HaveDefaultsAndTakeWhatIsInOrder) {
  Timeouts t = with(nullptr, nullptr, nullptr);
  EXPECT_EQ(t.op_us, 45'000'000u);
  EXPECT_EQ(t.sync_ms, 50'000);
  EXPECT_EQ(t.scheduler_ms, 0) << "the device's own";
  t = with(" 3000000 ", "4000", "2000");
  EXPECT_EQ(t.op_us, 3'000'000u);
  EXPECT_EQ(t.sync_ms, 4000);
  EXPECT_EQ(t.scheduler_ms, 2000);
  EXPECT_EQ(with("2000500", "4000", "2000").op_us, 2'000'500u) << "half a millisecond later is later";
}

TEST_F(RunnerTimeouts, WhatBreaksTheOrderIsIgnoredAsAWhole) {
  const char *const scheduler = "SIMPLER_SCHEDULER_TIMEOUT_MS must be less",
                    *const op = "SIMPLER_OP_EXECUTE_TIMEOUT_US",
                    *const guard = "SIMPLER_STREAM_SYNC_TIMEOUT_MS must exceed";
  const char* const broken[][4] = {
      {"3000000", "4000", "3000", scheduler},    // scheduler = op
      {"4000000", "4000", "2000", op},           // op = sync
      {"2100000", "3500", "2000", guard},        // sync within 1.5 s of scheduler
      {nullptr, nullptr, "45000", scheduler},    // against the defaults
      {"9000000", nullptr, nullptr, scheduler},  // below the scheduler's default
      {"3000000", "2000", "3000", scheduler},    // all of them: the first one is named
  };
  for (const auto& values : broken) {
    testing::internal::CaptureStderr();
    const Timeouts t = with(values[0], values[1], values[2]);
    const std::string wanted = std::string("time limits are ignored: ") + values[3];
    EXPECT_NE(testing::internal::GetCapturedStderr().find(wanted), std::string::npos) << wanted;
    EXPECT_EQ(t.op_us, 45'000'000u);
    EXPECT_EQ(t.sync_ms, 50'000);
    EXPECT_EQ(t.scheduler_ms, 0);
  }
}

TEST_F(RunnerTimeouts, TextThatIsNoNumberInRangeIsIgnoredWithAWarning) {
  for (const char* bad : {"-1", "+5", "0", "5s", "99999999999999999999999", "2147483648", "0x10"}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(with(nullptr, bad, nullptr).sync_ms, 50'000) << bad;
    EXPECT_NE(testing::internal::GetCapturedStderr().find("is ignored: it must be a whole number"), std::string::npos);
  }
}

TEST_F(RunnerTimeouts, ASimulatedDeviceHasNoLimitThatWasNotAskedFor) {
  Timeouts t = with(nullptr, "60", nullptr, true);
  EXPECT_EQ(t.op_us, 0u);
  EXPECT_EQ(t.sync_ms, -1) << "its program watches the orchestration";
  t = with("5", nullptr, "99999", true);
  EXPECT_EQ(t.op_us, 5u) << "the order is not checked";
  EXPECT_EQ(t.scheduler_ms, 99999);
}

// ---- recovery -----------------------------------------------------------------------------------------------------------

TEST(RunnerRecovery, ResetsByForceProvesItAndUndoesItsOwnSetUp) {
  FaultyDevice d;
  d.device.mark_unusable("test");
  d.fault.clear_log();
  ASSERT_TRUE(force_reset(d.device, 3, 10).ok());
  std::string order;
  for (const driver::CallRecord& record : d.fault.log()) order += std::string(name_of(record.call)) + " ";
  EXPECT_EQ(
      order,
      "acl_init set_device sync_device force_reset set_device stream_create stream_destroy alloc free reset_device "
      "acl_finalize ");
}

TEST(RunnerRecovery, LeavesAProcessInitialisedThatWasSoBefore) {
  FaultyDevice d;
  ASSERT_EQ(d.device.call(&driver::Driver::acl_init), driver::kOk);
  ASSERT_TRUE(force_reset(d.device, 1, 10).ok());
  EXPECT_EQ(d.calls("acl_finalize"), 0);
}

TEST(RunnerRecovery, TriesAsOftenAsItMayAndThenSaysThatTheDeviceIsQuarantined) {
  for (const char* name : {"force_reset", "stream_create", "alloc", "free", "stream_destroy"}) {
    for (const int failures : {1, 2, 3}) {
      FaultyDevice d;
      d.fault.set_rules({{.call = name, .times = failures, .code = driver::kDriverInternal}});
      const Status status = force_reset(d.device, 3, 10);
      EXPECT_EQ(status.ok(), failures < 3) << name;
      EXPECT_EQ(status.message().find("stays quarantined") != std::string::npos, failures == 3) << status.message();
    }
  }
}

TEST(RunnerRecovery, GivingUpWaitsForALimitedTimeAndMarksTheDeviceWhateverCameOfIt) {
  for (const bool fails : {false, true}) {
    FaultyDevice d;
    if (fails) d.fail_call(1, "sync_device");
    give_up(d.device, "why", 10);
    EXPECT_EQ(d.calls("sync_device"), 1);
    EXPECT_EQ(d.device.state(), Device::State::kUnusable);
    give_up(d.device, "again", 10);
    EXPECT_EQ(d.calls("sync_device"), 1) << "nothing more is asked of it";
  }
}

// ---- collectors ---------------------------------------------------------------------------------------------------------

class Noted : public Collector {
 public:
  Noted(std::string* notes, char letter, bool fails) : notes_(notes), letter_(letter), fails_(fails) {}
  const char* name() const override { return "noted"; }
  Status prepare(const CollectorContext&) override { return note("p"); }
  Status start(const CollectorContext&) override {
    *notes_ += std::string("s") + letter_;
    return fails_ ? fail(ErrorKind::kDevice, "no") : Status();
  }
  void stop(const CollectorContext&, bool complete) override { static_cast<void>(note(complete ? "C" : "A")); }
  void release(const CollectorContext&) override { static_cast<void>(note("r")); }

 private:
  Status note(const char* what) {
    *notes_ += std::string(what) + letter_;
    return Status();
  }
  std::string* const notes_;
  const char letter_;
  const bool fails_;
};

TEST(RunnerCollectors, AreStartedInOrderStoppedOnceAndReleasedAlsoWhenOneOfThemFails) {
  FaultyDevice d;
  std::string notes;
  Noted a(&notes, '1', false), b(&notes, '2', false), bad(&notes, '3', true);
  Collectors good(d.allocator, {&a, &b});
  EXPECT_TRUE(good.prepare().ok() && good.start().ok());
  good.stop(true);
  good.stop(false);
  good.release();
  good.release();
  EXPECT_EQ(notes, "p1p2s1s2C1C2r1r2");
  notes.clear();
  Collectors failing(d.allocator, {&a, &bad, &b});
  EXPECT_TRUE(failing.prepare().ok());
  EXPECT_FALSE(failing.start().ok());
  failing.release();
  EXPECT_EQ(notes, "p1p3p2s1s3A1A3r1r3r2");
}

TEST(RunnerCollectors, AThreadOfACollectorIsAttachedBeforeItsMakerGoesOn) {
  FaultyDevice d;
  const CollectorContext context(d.allocator);
  for (int i = 1; i <= 50; ++i) {
    std::thread thread = context.make_thread([] {});
    EXPECT_EQ(d.calls("set_device"), i);
    thread.join();
  }
}

}  // namespace
}  // namespace simpler::host
