// Wide tasks, cohorts and narrow tasks beside each other: nobody starves, nobody waits for what is held back because of
// him, and blocks that follow each other in one cluster do not meet in its memory.
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "unit/support/run_rig.h"

namespace simpler::executor {
namespace {

using graph::Shape;
using test::RunRig;
using Clock = std::chrono::steady_clock;

constexpr std::uint8_t kMatrix = 1, kVector = 2, kMatrixAndVector = 3, kAllLanes = 7;

std::chrono::nanoseconds processor_time() {  // of this thread
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
// In processor time: while the machine is busy with something else, nothing is done here.
void work_for(std::chrono::microseconds time) {
  const auto end = processor_time() + time;
  while (processor_time() < end) {
  }
}
template <typename Done> void spin_until(Done done) {
  while (!done()) std::this_thread::yield();
}

class WideTasks : public testing::TestWithParam<int> {
 protected:
  // Blocks or tasks of kTime each, until what is to be let in has run: seconds of them, however slow the machine is.
  static constexpr int kMany = 200'000;
  static constexpr std::chrono::microseconds kTime{100};

  // A wide task, and something that is submitted once it runs: expects that this begins long before the wide task ends.
  template <typename Submit> void expect_let_in(Submit submit_other) {
    RunRig rig(2, GetParam());
    std::atomic<int> blocks{0}, seen{-1};
    EXPECT_TRUE(rig.run([&] {
      rig.task(
          [&](std::int64_t*) {
            if (seen.load() < 0) work_for(kTime);
            ++blocks;
          },
          Shape::kAiv, kMany);
      spin_until([&] { return blocks.load() > 0; });
      submit_other(rig, [&](std::int64_t*) {
        int none = -1;
        seen.compare_exchange_strong(none, blocks.load());
      });
    }));
    EXPECT_EQ(blocks.load(), kMany);
    EXPECT_GE(seen.load(), 0);
    EXPECT_LT(seen.load(), kMany / 2);
  }
};
INSTANTIATE_TEST_SUITE_P(Threads, WideTasks, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(WideTasks, LetANarrowTaskOfTheirOwnKindIn) {
  expect_let_in([](RunRig& rig, RunRig::Body body) { rig.task(std::move(body)); });
}

TEST_P(WideTasks, LetANarrowTaskOfTheOtherKindIn) {
  expect_let_in([](RunRig& rig, RunRig::Body body) { rig.task(std::move(body), Shape::kAic); });
}

TEST_P(WideTasks, LetABlockOfSeveralLanesIn) {
  expect_let_in([](RunRig& rig, RunRig::Body body) {
    CoreTaskArgs args;
    rig.wide(args, std::move(body), kAllLanes, 1);
  });
}

TEST_P(WideTasks, LetACohortOfTheWholeChipIn) {
  expect_let_in([](RunRig& rig, RunRig::Body body) {
    CoreTaskArgs args;
    rig.wide(args, std::move(body), kVector, 4, true);
  });
}

// A worker that completes a task goes on with what that made ready, so a chain could keep it for good.
TEST_P(WideTasks, AreLetInByChainsThatWouldKeepEveryWorker) {
  constexpr int kLinks = 100'000;
  RunRig rig(2, GetParam(), 1 << 17, 64 * 1024, 1 << 17);
  const ChipTensor tensors[] = {rig.rig.external({1}), rig.rig.external({1}), rig.rig.external({1}),
                                rig.rig.external({1})};
  const int chains = std::min(GetParam(), 4);  // as many as there are vector cores
  std::atomic<int> links{0}, seen{-1};
  setenv("SIMPLER_TMR_SERIAL_ORCH_SCHED_ENABLE", "1", 1);  // the chains begin when all of them are there, and the task
  EXPECT_TRUE(rig.run([&] {
    unsetenv("SIMPLER_TMR_SERIAL_ORCH_SCHED_ENABLE");
    for (int i = 0; i < kLinks; ++i) {
      CoreTaskArgs args;
      args.add_inout(tensors[i % chains]);
      const auto link = [&](std::int64_t*) {
        if (seen.load() < 0) work_for(kTime);
        ++links;
      };
      ASSERT_TRUE(rig.task(args, link).taken());
    }
    rig.task(
        [&](std::int64_t*) {
          int none = -1;
          seen.compare_exchange_strong(none, links.load());
        },
        Shape::kAiv, 64);
  }));
  EXPECT_EQ(links.load(), kLinks);
  EXPECT_GE(seen.load(), 0);
  EXPECT_LT(seen.load(), kLinks / 2);
}

TEST_P(WideTasks, CohortsAndNarrowTasksInAStreamAllEnd) {
  RunRig rig(3, GetParam(), 256);
  std::atomic<int> cohorts{0}, narrow{0};
  EXPECT_TRUE(rig.run([&] {
    for (int i = 0; i < 300; ++i) {
      rig.rig.graph.scopes().open(PTO2ScopeMode::AUTO);
      CoreTaskArgs args;
      rig.wide(
          args, [&](std::int64_t*) { ++cohorts; }, i % 2 == 0 ? kVector : kAllLanes, 3, true);
      rig.task([&](std::int64_t*) { ++narrow; }, i % 3 == 0 ? Shape::kAic : Shape::kAiv);
      rig.rig.graph.scopes().close();
    }
  }));
  EXPECT_EQ(cohorts.load(), 150 * 3 + 150 * 9);
  EXPECT_EQ(narrow.load(), 300);
}

// The cohort waits for the cores that the first task holds, and holds back the core that the last task needs.
TEST_P(WideTasks, AKernelMayWaitForATaskThatIsHeldBackByACohort) {
  setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "2000", 1);
  RunRig rig(2, GetParam());
  unsetenv("SIMPLER_SCHEDULER_TIMEOUT_MS");
  std::atomic<bool> holds{false}, flag{false};
  std::atomic<int> cohort{0};
  EXPECT_TRUE(rig.run([&] {
    rig.task([&](std::int64_t*) {
      holds = true;
      spin_until([&] { return flag.load(); });
    });
    spin_until([&] { return holds.load(); });
    CoreTaskArgs args;
    rig.wide(
        args, [&](std::int64_t*) { ++cohort; }, kVector, 4, true);
    spin_until([&] { return rig.executor.active(); });
    rig.task([&](std::int64_t*) { flag = true; });
  })) << rig.latch.text();
  EXPECT_EQ(cohort.load(), 4);
}

// One cluster: the second block gets the two lanes that have ended while the third lane of the first still runs.
TEST_P(WideTasks, TheNextBlockOfAClusterDoesNotClearMemoryThatALaneStillUses) {
  RunRig rig(1, GetParam());
  std::atomic<bool> second_ran{false};
  std::atomic<int> left_behind{-1}, found{-1};
  EXPECT_TRUE(rig.run([&] {
    CoreTaskArgs first, second;
    rig.wide(
        first,
        [&](std::int64_t*) {
          Core& core = *current_core();
          auto& arrived = *static_cast<std::atomic<int>*>(core.shared().piece(7, sizeof(int)));
          ++arrived;
          spin_until([&] { return arrived.load() == 3; });
          if (core.type() == CoreType::AIC || core.lane() == 0) return;
          spin_until([&] { return second_ran.load(); });
          left_behind = arrived.load();
        },
        kAllLanes, 1);
    rig.wide(
        second,
        [&](std::int64_t*) {
          Core& core = *current_core();
          if (core.type() == CoreType::AIV) return;
          found = static_cast<std::atomic<int>*>(core.shared().piece(7, sizeof(int)))->load();
          second_ran = true;
        },
        kMatrixAndVector, 1);
  }));
  EXPECT_EQ(left_behind.load(), 3);
  EXPECT_EQ(found.load(), 0) << "a block starts with cleared memory";
}

TEST_P(WideTasks, ABlockOfOneLaneHasClearedMemoryOfItsOwn) {
  RunRig rig(1, GetParam());
  std::atomic<int> wrong{0};
  EXPECT_TRUE(rig.run([&] {
    rig.task(
        [&](std::int64_t*) {
          auto& count = *static_cast<std::atomic<int>*>(current_core()->shared().piece(7, sizeof(int)));
          wrong += count.fetch_add(1) != 0;
          auto& again = *static_cast<std::atomic<int>*>(current_core()->shared().piece(7, sizeof(int)));
          wrong += again.load() != 1;
        },
        Shape::kAiv, 50);
  }));
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(WideTasks, AnExecutorEndsRightAfterTheLastLane) {
  for (int i = 0; i < 100; ++i) {
    RunRig rig(2, GetParam());
    std::atomic<int> lanes{0};
    EXPECT_TRUE(rig.run([&] {
      CoreTaskArgs args;
      rig.wide(
          args, [&](std::int64_t*) { ++lanes; }, kAllLanes, 2, i % 2 == 0);
    }));
    ASSERT_EQ(lanes.load(), 6);
  }
}

// Younger tasks are over while the oldest still runs: the submitter sleeps, instead of looking again and again.
TEST(SeededOrder, RunsWideTasksAmongNarrowOnes) {
  for (const char* seed : {"1", "5", "77"}) {
    setenv("SIMPLER_SIM_SEED", seed, 1);
    RunRig rig(2, 2);
    unsetenv("SIMPLER_SIM_SEED");
    std::atomic<int> lanes{0}, narrow{0};
    EXPECT_TRUE(rig.run([&] {
      for (int n = 0; n < 20; ++n) {
        CoreTaskArgs args;
        rig.wide(
            args, [&](std::int64_t*) { ++lanes; }, kAllLanes, 2);
        rig.task([&](std::int64_t*) { ++narrow; }, Shape::kAiv, 3);
        rig.task([&](std::int64_t*) { ++narrow; }, Shape::kAic);
      }
    })) << "seed "
        << seed;
    EXPECT_EQ(lanes.load(), 20 * 2 * 3) << "seed " << seed;
    EXPECT_EQ(narrow.load(), 20 * 4) << "seed " << seed;
  }
}

TEST(WaitingSubmitter, UsesNoProcessorWhileTheOldestTaskRuns) {
  constexpr std::chrono::milliseconds kLong{200};
  RunRig rig(2, 2);
  std::chrono::nanoseconds before{0};
  Clock::time_point begin;
  std::atomic<int> quick{0};
  EXPECT_TRUE(rig.run([&] {
    rig.task([&](std::int64_t*) {
      spin_until([&] { return quick.load() == 40; });
      std::this_thread::sleep_for(kLong);
    });
    for (int i = 0; i < 40; ++i) rig.task([&](std::int64_t*) { ++quick; });
    before = processor_time();
    begin = Clock::now();
  }));
  // A share: on a busy machine the time gets longer, and with it the monitor wakes the submitter more often.
  const auto used = processor_time() - before;
  EXPECT_LT(used.count(), std::chrono::nanoseconds(Clock::now() - begin).count() / 4);
}

}  // namespace
}  // namespace simpler::executor
