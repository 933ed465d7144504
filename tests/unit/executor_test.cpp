// Running: every block once, on a core of its kind, after what it waits for; whatever the number of threads.
#include "executor/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/run_rig.h"

namespace simpler::executor {

struct test::ExecutorProbe {
  // No worker is awake any more, or will be in this run: what is ready from now on stays so. Nothing of the run is active.
  static void keep_workers_asleep(Executor& executor) {
    {
      const std::lock_guard lock(executor.monitor_mutex_);
      executor.stuck_.store(0);  // what the monitor saw of kernels that are over would let it raise the limit again
      executor.gate_.set_limit(0);
    }
    while (executor.gate_.counts().awake() > 0) std::this_thread::yield();
  }
  // How long the watchdog waits from now on, for kernels and for the orchestration. For the submitter: what is to be
  // noticed is there first, and what is to end well has all the time that it takes.
  static void set_limit(Executor& executor, std::chrono::milliseconds limit) {
    const std::lock_guard lock(executor.monitor_mutex_);
    executor.scheduler_timeout_ = executor.orchestration_timeout_ = limit;
  }
};

namespace {

using graph::Shape;
using test::Answer;
using test::RunRig;

constexpr int code(abi::ErrorCode error) { return static_cast<int>(error); }

// Spins like a kernel that waits for another one.
template <typename Done> void spin_until(Done done) {
  while (!done()) std::this_thread::yield();
}

class ExecutorThreads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ExecutorThreads, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(ExecutorThreads, RunsEveryIndependentTaskOnce) {
  constexpr int kTasks = 5000;
  RunRig rig(8, GetParam());
  std::vector<std::atomic<int>> times(kTasks);
  const bool ok = rig.run([&] {
    for (int i = 0; i < kTasks; ++i) {
      rig.rig.graph.scopes().open(PTO2ScopeMode::AUTO);
      ASSERT_TRUE(
          rig.task([&, i](std::int64_t*) { times[i].fetch_add(1); }, i % 3 == 0 ? Shape::kAic : Shape::kAiv).taken());
      rig.rig.graph.scopes().close();
    }
  });
  EXPECT_TRUE(ok);
  for (int i = 0; i < kTasks; ++i) ASSERT_EQ(times[i].load(), 1) << "task " << i;
  EXPECT_EQ(rig.executor.completed(), static_cast<std::uint64_t>(kTasks));
}

// The counter is plain memory: TSAN reports an edge that orders nothing.
TEST_P(ExecutorThreads, RunsAChainInOrderAcrossCoreTypes) {
  constexpr int kTasks = 3000;
  RunRig rig(2, GetParam());
  const ChipTensor tensor = rig.rig.external({4});
  int counter = 0, wrong = 0;
  const bool ok = rig.run([&] {
    for (int i = 0; i < kTasks; ++i) {
      rig.rig.graph.scopes().open(PTO2ScopeMode::AUTO);
      CoreTaskArgs args;
      args.add_inout(tensor);
      rig.task(
          args, [&, i](std::int64_t*) { wrong += counter++ != i; }, i % 2 == 0 ? Shape::kAic : Shape::kAiv);
      rig.rig.graph.scopes().close();
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(counter, kTasks);
  EXPECT_EQ(wrong, 0);
}

TEST_P(ExecutorThreads, RunsEachBlockOfATaskOnceAndCompletesItAfterTheLast) {
  constexpr int kTasks = 60;
  RunRig rig(4, GetParam());
  struct Blocks {
    int count;
    std::vector<std::atomic<int>> times;
    std::atomic<int> finished{0}, early{0};
    explicit Blocks(int n) : count(n), times(static_cast<std::size_t>(n)) {}
  };
  std::vector<std::unique_ptr<Blocks>> tasks;
  for (int i = 0; i < kTasks; ++i) tasks.push_back(std::make_unique<Blocks>(1 + i * 7 % 50));
  std::atomic<int> wrong_count{0};
  const bool ok = rig.run([&] {
    PTO2TaskId previous = PTO2TaskId::invalid();
    for (int i = 0; i < kTasks; ++i) {
      rig.rig.graph.scopes().open(PTO2ScopeMode::AUTO);
      Blocks& mine = *tasks[i];
      Blocks* before = i % 3 == 2 ? tasks[i - 1].get() : nullptr;  // every third waits for the one before
      CoreTaskArgs args;
      if (before != nullptr) args.set_dependencies(&previous, 1);
      const Answer answer = rig.task(
          args,
          [&, before](std::int64_t* kernel_args) {
            const int block = get_block_idx(kernel_args);
            wrong_count += get_block_num(kernel_args) != mine.count || block < 0 || block >= mine.count;
            mine.times[static_cast<std::size_t>(block)].fetch_add(1);
            if (before != nullptr && before->finished.load() != before->count) ++mine.early;
            mine.finished.fetch_add(1);
          },
          i % 2 == 0 ? Shape::kAiv : Shape::kAic, mine.count);
      previous = answer.id;
      rig.rig.graph.scopes().close();
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(wrong_count.load(), 0);
  for (int i = 0; i < kTasks; ++i) {
    EXPECT_EQ(tasks[i]->early.load(), 0) << "task " << i << " started before its producer's last block";
    for (int b = 0; b < tasks[i]->count; ++b)
      ASSERT_EQ(tasks[i]->times[b].load(), 1) << "task " << i << ", block " << b;
  }
}

TEST_P(ExecutorThreads, NeverUsesMoreCoresThanTheChipHas) {
  RunRig rig(1, GetParam());  // one matrix core, two vector cores
  std::atomic<int> running[2] = {}, most[2] = {}, wrong{0};
  std::atomic<int> inside[3] = {};  // by core
  const auto body = [&](int type) {
    return [&, type](std::int64_t*) {
      const Core* core = current_core();
      wrong += core == nullptr || static_cast<int>(core->type()) != type || core->cluster() != 0;
      wrong += inside[core->index()].fetch_add(1) != 0;
      const int now = running[type].fetch_add(1) + 1;
      for (int seen = most[type].load(); seen < now && !most[type].compare_exchange_weak(seen, now);) {
      }
      for (int i = 0; i < 3; ++i) std::this_thread::yield();
      running[type].fetch_sub(1);
      inside[core->index()].fetch_sub(1);
    };
  };
  const bool ok = rig.run([&] {
    for (int i = 0; i < 400; ++i) {
      rig.rig.graph.scopes().open(PTO2ScopeMode::AUTO);
      rig.task(body(0), Shape::kAic, 1 + i % 3);
      rig.task(body(1), Shape::kAiv, 1 + i % 5);
      rig.rig.graph.scopes().close();
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LE(most[0].load(), 1);
  EXPECT_LE(most[1].load(), 2);
  EXPECT_EQ(current_core(), nullptr) << "the submitter runs on no core";
}

TEST_P(ExecutorThreads, KernelsThatWaitForEachOtherAllGetAThread) {
  RunRig rig(4, GetParam());  // 8 vector cores, so 8 kernels may wait for each other
  std::atomic<int> arrived{0};
  const bool ok = rig.run([&] {
    for (int i = 0; i < 8; ++i) {
      rig.task([&](std::int64_t*) {
        ++arrived;
        spin_until([&] { return arrived.load() == 8; });
      });
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(arrived.load(), 8);
}

TEST_P(ExecutorThreads, BlocksOfOneTaskThatWaitForEachOtherAllGetAThread) {
  RunRig rig(3, GetParam());
  std::atomic<int> arrived{0};
  const bool ok = rig.run([&] {
    rig.task(
        [&](std::int64_t*) {
          ++arrived;
          spin_until([&] { return arrived.load() >= 6; });
        },
        Shape::kAiv, 6);
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(arrived.load(), 6);
}

TEST_P(ExecutorThreads, AKernelMayWaitForATaskThatIsSubmittedLater) {
  RunRig rig(2, GetParam());
  std::atomic<bool> started{false}, flag{false};
  const bool ok = rig.run([&] {
    rig.task([&](std::int64_t*) {
      started = true;
      spin_until([&] { return flag.load(); });
    });
    spin_until([&] { return started.load(); });
    for (int i = 0; i < 200; ++i) {  // the submitter counts as busy by now
      rig.rig.graph.scopes().open(PTO2ScopeMode::AUTO);
      rig.task([](std::int64_t*) {}, Shape::kAic);
      rig.rig.graph.scopes().close();
    }
    rig.task([&](std::int64_t*) { flag = true; });
  });
  EXPECT_TRUE(ok);
}

TEST_P(ExecutorThreads, WaitingKernelsOfOneKindDoNotKeepTheOtherKindFromRunning) {
  RunRig rig(1, GetParam());
  std::atomic<int> waiting{0};
  std::atomic<bool> flag{false};
  const bool ok = rig.run([&] {
    for (int i = 0; i < 2; ++i) {
      rig.task([&](std::int64_t*) {
        ++waiting;
        spin_until([&] { return flag.load(); });
      });
    }
    spin_until([&] { return waiting.load() == 2; });  // both vector cores are taken
    rig.task([](std::int64_t*) {});                   // has to wait for one of them
    rig.task([&](std::int64_t*) { flag = true; }, Shape::kAic);
  });
  EXPECT_TRUE(ok);
}

TEST_P(ExecutorThreads, AFailedRunStartsNothingMoreAndTheNextOneWorks) {
  RunRig rig(2, GetParam());
  for (int round = 0; round < 20; ++round) {
    const ChipTensor tensor = rig.rig.external({4});
    std::atomic<int> after{0}, ran{0};
    EXPECT_FALSE(rig.run([&] {
      CoreTaskArgs first;
      first.add_inout(tensor);
      rig.task(
          first, [&](std::int64_t*) { throw std::runtime_error("boom"); }, Shape::kAiv, 1 + round % 3);
      for (int i = 0; i < 40; ++i) {
        CoreTaskArgs args;
        args.add_inout(tensor);
        rig.task(args, [&](std::int64_t*) { ++after; });
        rig.task([&](std::int64_t*) { ++ran; }, Shape::kAic, 3);
      }
    }));
    EXPECT_EQ(rig.latch.code(), code(abi::ErrorCode::KERNEL_CRASHED));
    EXPECT_NE(std::string(rig.latch.text()).find("boom"), std::string::npos) << rig.latch.text();
    EXPECT_EQ(after.load(), 0) << "its consumers never run";
    spin_until([&] { return !rig.executor.active(); });  // nothing is left; a worker may still look for it in vain

    std::atomic<int> good{0};
    EXPECT_TRUE(rig.run([&] {
      for (int i = 0; i < 40; ++i) rig.task([&](std::int64_t*) { ++good; }, i % 2 == 0 ? Shape::kAic : Shape::kAiv, 2);
    }));
    EXPECT_EQ(good.load(), 80) << "round " << round;
  }
}

TEST_P(ExecutorThreads, DummiesJoinAndReleaseWithoutACore) {
  RunRig rig(1, GetParam());
  std::atomic<int> before{0}, early{0}, after{0};
  const bool ok = rig.run([&] {
    CoreTaskArgs nothing;
    rig.dummy(nothing);  // ready at once
    std::vector<PTO2TaskId> ids;
    for (int i = 0; i < 10; ++i) ids.push_back(rig.task([&](std::int64_t*) { ++before; }).id);
    CoreTaskArgs join;
    join.set_dependencies(ids.data(), 10);
    PTO2TaskId last = rig.dummy(join).id;
    for (int i = 0; i < 5; ++i) {  // dummies behind dummies
      CoreTaskArgs args;
      args.set_dependencies(&last, 1);
      last = rig.dummy(args).id;
    }
    for (int i = 0; i < 10; ++i) {
      CoreTaskArgs args;
      args.set_dependencies(&last, 1);
      rig.task(args, [&](std::int64_t*) {
        early += before.load() != 10;
        ++after;
      });
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(early.load(), 0);
  EXPECT_EQ(after.load(), 10);
}

TEST_P(ExecutorThreads, RunsFollowEachOtherWithoutLosingOrKeepingAnything) {
  RunRig rig(2, GetParam());
  for (int run = 0; run < 500; ++run) {
    std::atomic<int> ran{0};
    ASSERT_TRUE(rig.run([&] {
      for (int i = 0; i < run % 5; ++i) rig.task([&](std::int64_t*) { ++ran; });
    }));
    ASSERT_EQ(ran.load(), run % 5);
  }
}

// ---- predicates -----------------------------------------------------------------------------------------------------

struct PredicateCase {
  const char* name;
  PredicateOp op;
  std::int64_t target;
  bool runs;  // for an element of -3
};
constexpr PredicateCase kPredicates[] = {
    {"equal", PredicateOp::EQ, -3, true},
    {"equal to another", PredicateOp::EQ, 3, false},
    {"not equal", PredicateOp::NE, -3, false},
    {"not equal to another", PredicateOp::NE, 253, true},
    {"greater", PredicateOp::GT, -4, true},
    {"not greater", PredicateOp::GT, -3, false},
    {"less", PredicateOp::LT, 0, true},
    {"not less", PredicateOp::LT, -3, false},
    {"greater or equal", PredicateOp::GE, -3, true},
    {"less than wanted", PredicateOp::GE, -2, false},
    {"less or equal", PredicateOp::LE, -3, true},
    {"more than wanted", PredicateOp::LE, -4, false},
    {"none", PredicateOp::NONE, 77, true},
};

template <typename T> void expect_predicates(DataType type) {
  RunRig rig(1, 2);
  const ChipTensor flags = rig.rig.external({4}, type);
  for (const PredicateCase& c : kPredicates) {
    flags.data_as<T>()[2] = 0;
    int ran = 0, after = 0;
    ASSERT_TRUE(rig.run([&] {
      CoreTaskArgs write;
      write.add_inout(flags);
      rig.task(write, [&](std::int64_t*) { flags.data_as<T>()[2] = static_cast<T>(-3); });
      CoreTaskArgs guarded;
      guarded.add_inout(flags);
      guarded.set_predicate({{&flags, 1, {2}}, c.op, c.target});
      rig.task(guarded, [&](std::int64_t*) { ++ran; });
      CoreTaskArgs next;
      next.add_inout(flags);
      rig.task(next, [&](std::int64_t*) { ++after; });
    }));
    EXPECT_EQ(ran, c.runs ? 1 : 0) << c.name << ", " << sizeof(T) << " bytes";
    EXPECT_EQ(after, 1) << c.name << ": consumers of a skipped task run";
  }
}

TEST(ExecutorPredicate, IsReadWhenTheProducersAreDoneAndComparesSigned) {
  expect_predicates<std::int8_t>(DataType::INT8);
  expect_predicates<std::int16_t>(DataType::INT16);
  expect_predicates<std::int32_t>(DataType::INT32);
  expect_predicates<std::int64_t>(DataType::INT64);
}

// ---- failures -------------------------------------------------------------------------------------------------------

TEST(ExecutorFailure, NamesTaskBlockAndCore) {
  RunRig rig(1, 1);
  EXPECT_FALSE(rig.run([&] {
    rig.task([](std::int64_t*) {});
    rig.task(
        [](std::int64_t* args) {
          if (get_block_idx(args) == 2) throw std::runtime_error("index 7 of 5");
        },
        Shape::kAic, 3);
  }));
  EXPECT_STREQ(rig.latch.text(), "kernel 0 of task 1 in ring 0, block 2, on core 0: index 7 of 5");
}

TEST(ExecutorFailure, AnExceptionOfAnyTypeIsCaught) {
  RunRig rig(1, 2);
  EXPECT_FALSE(rig.run([&] { rig.task([](std::int64_t*) { throw 5; }); }));
  EXPECT_EQ(rig.latch.code(), code(abi::ErrorCode::KERNEL_CRASHED));
}

TEST(ExecutorFailure, AConditionWithoutAnAddressFailsTheRunAndIsForgotten) {
  RunRig rig(1, 1);
  EXPECT_FALSE(rig.run([&] {
    rig.task([](std::int64_t* args) {
      AsyncCtx& context = reinterpret_cast<LocalContext*>(args[SPMD_LOCAL_CONTEXT_INDEX])->async_ctx;
      context.completion_entries[0].addr = 0;
      *context.completion_count = 1;
    });
  }));
  EXPECT_EQ(rig.latch.code(), code(abi::ErrorCode::ASYNC_COMPLETION_INVALID));
  EXPECT_TRUE(rig.run([&] { rig.task([](std::int64_t*) {}); }));
}

TEST(ExecutorFailure, TheSubmittersFailureEndsTheRunWhileKernelsFinish) {
  RunRig rig(2, 2);
  std::atomic<bool> started{false}, failed{false}, finished{false};
  EXPECT_FALSE(rig.run([&] {
    rig.task([&](std::int64_t*) {
      started = true;
      spin_until([&] { return failed.load(); });
      finished = true;
    });
    spin_until([&] { return started.load(); });
    rig.latch.raise(abi::ErrorCode::EXPLICIT_ORCH_FATAL, "enough");
    failed = true;
  }));
  EXPECT_TRUE(finished.load()) << "end_run returns when no kernel runs any more";
  EXPECT_EQ(rig.latch.code(), code(abi::ErrorCode::EXPLICIT_ORCH_FATAL));
}

class ExecutorTimeLimit : public testing::Test {
 protected:
  void expect_that_the_next_run_works() {
    test::ExecutorProbe::set_limit(rig.executor, std::chrono::hours(1));
    EXPECT_TRUE(rig.run([&] { rig.task([](std::int64_t*) {}); }));
  }
  void set_short_limit() { test::ExecutorProbe::set_limit(rig.executor, std::chrono::milliseconds(60)); }

  RunRig rig{1, 2};
};

TEST_F(ExecutorTimeLimit, AKernelThatDoesNotReturnIsReported) {
  std::atomic<bool> started{false};
  EXPECT_FALSE(rig.run([&] {
    rig.task(
        [&](std::int64_t*) {
          started = true;
          spin_until([&] { return rig.latch.raised(); });
        },
        Shape::kAic);
    spin_until([&] { return started.load(); });
    set_short_limit();
    spin_until([&] { return rig.latch.raised(); });
    spin_until([&] { return !rig.executor.active(); });  // it returns, however slowly, before the run is ended
  }));
  EXPECT_EQ(rig.latch.code(), code(abi::ErrorCode::SCHEDULER_TIMEOUT));
  EXPECT_NE(std::string(rig.latch.text())
                .find("no kernel returned for 60 ms; kernel 0 of task 0 in ring 0, block 0, runs on core 0"),
            std::string::npos)
      << rig.latch.text();
  expect_that_the_next_run_works();
}

// What never happens unless the runtime itself is broken still ends the run.
TEST_F(ExecutorTimeLimit, ReadyTasksThatNobodyTakesEndTheRun) {
  expect_that_the_next_run_works();
  EXPECT_FALSE(rig.run([&] {
    spin_until([&] { return !rig.executor.active(); });
    test::ExecutorProbe::keep_workers_asleep(rig.executor);
    for (int i = 0; i < 3; ++i) rig.task([](std::int64_t*) {});
    set_short_limit();
  }));
  EXPECT_EQ(rig.latch.code(), code(abi::ErrorCode::SCHEDULER_TIMEOUT));
  EXPECT_EQ(std::string(rig.executor.stall().sub_class), "S3:ready-but-all-idle");
  EXPECT_EQ(rig.executor.stall().ready, 3u);
  EXPECT_NE(std::string(rig.latch.text()).find("60 ms: 3 tasks are ready"), std::string::npos) << rig.latch.text();
}

TEST_F(ExecutorTimeLimit, ARunThatIsNotOverAndHasNothingToDoEnds) {
  EXPECT_FALSE(rig.run([&] {
    set_short_limit();
    spin_until([&] { return rig.latch.raised(); });
  }));
  EXPECT_EQ(std::string(rig.executor.stall().sub_class), "unknown:accounting/corruption");
  expect_that_the_next_run_works();
}

TEST_F(ExecutorTimeLimit, AnOrchestrationThatDoesNotReturnIsGivenUpOnceAndIsTold) {
  std::atomic<int> given_up{0};
  const auto give_up = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
  EXPECT_TRUE(rig.run([&] {
    rig.executor.orchestration_begins(give_up, &given_up);
    rig.task([](std::int64_t*) {});
    EXPECT_TRUE(rig.executor.orchestration_returned());
  }));
  EXPECT_EQ(given_up, 0);
  EXPECT_FALSE(rig.run([&] {
    rig.executor.orchestration_begins(give_up, &given_up);
    set_short_limit();
    spin_until([&] { return given_up.load() != 0; });
    EXPECT_FALSE(rig.executor.orchestration_returned());
  }));
  EXPECT_EQ(given_up, 1);
  EXPECT_EQ(std::string(rig.executor.stall().sub_class), "S5:orchestrator-starvation");
}

// ---- cores ----------------------------------------------------------------------------------------------------------

TEST(ExecutorCores, AreNumberedMatrixCoresFirstThenTheVectorPairsOfEachCluster) {
  CorePool pool(3);
  EXPECT_EQ(pool.core_count(), 9);
  std::set<int> seen;
  for (int c = 0; c < 3; ++c) {
    const Core* core = pool.acquire(CoreType::AIC);
    ASSERT_NE(core, nullptr);
    EXPECT_EQ(core->index(), core->cluster());
    seen.insert(core->index());
  }
  EXPECT_EQ(pool.acquire(CoreType::AIC), nullptr);
  EXPECT_FALSE(pool.any_free(CoreType::AIC));
  Core* last = nullptr;
  for (int v = 0; v < 6; ++v) {
    last = pool.acquire(CoreType::AIV);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(last->index(), 3 + 2 * last->cluster() + last->lane());
    EXPECT_EQ(get_sub_block_id(last->args()), last->lane());
    seen.insert(last->index());
  }
  EXPECT_EQ(seen.size(), 9u) << "no core is given out twice";
  EXPECT_EQ(*seen.rbegin(), 8);
  EXPECT_EQ(pool.acquire(CoreType::AIV), nullptr);
  pool.release(last);
  EXPECT_TRUE(pool.any_free(CoreType::AIV));
  EXPECT_EQ(pool.acquire(CoreType::AIV), last);
}

TEST(ExecutorCores, TileMemoryBelongsToTheCoreAndStartsZeroed) {
  CorePool pool(1);
  Core* first = pool.acquire(CoreType::AIV);
  Core* second = pool.acquire(CoreType::AIV);
  std::uint64_t bytes = 0;
  for (std::uint32_t kind = 0; kind < SIMPLER_TILE_MEMORY_COUNT; ++kind) {
    char* mine = static_cast<char*>(first->tile_memory(kind, &bytes));
    ASSERT_NE(mine, nullptr);
    EXPECT_GE(bytes, kTileMemoryBytes[kind]);
    EXPECT_EQ(mine[bytes - 1], 0);
    mine[0] = 1;
    EXPECT_EQ(first->tile_memory(kind, &bytes), mine);
    EXPECT_EQ(static_cast<char*>(second->tile_memory(kind, &bytes))[0], 0);
  }
  EXPECT_EQ(first->tile_memory(SIMPLER_TILE_MEMORY_COUNT, &bytes), nullptr);
}

TEST(ExecutorCores, AKernelReceivesDescriptorsThenScalars) {
  RunRig rig(1, 1);
  const ChipTensor a = rig.rig.external({4}), b = rig.rig.external({2, 3});
  std::string problem = "did not run";
  EXPECT_TRUE(rig.run([&] {
    CoreTaskArgs args;
    args.add_input(a);
    args.add_inout(b);
    rig.task(args, [&](std::int64_t* kernel_args) {
      const auto* first = reinterpret_cast<const ChipTensor*>(kernel_args[0]);
      const auto* second = reinterpret_cast<const ChipTensor*>(kernel_args[1]);
      problem = first->buffer.addr != a.buffer.addr    ? "first"
                : second->buffer.addr != b.buffer.addr ? "second"
                : second->shapes[1] != 3               ? "shape"
                                                       : "";
    });
  }));
  EXPECT_EQ(problem, "");
}

// ---- life -----------------------------------------------------------------------------------------------------------

TEST(ExecutorLife, IsCreatedAndDestroyedAtOnceOrAfterARun) {
  for (int i = 0; i < 40; ++i) {
    RunRig rig(1 + i % 3, 1 + i % 4);
    if (i % 2 == 0) {
      std::atomic<int> ran{0};
      EXPECT_TRUE(rig.run([&] { rig.task([&](std::int64_t*) { ++ran; }, Shape::kAiv, 4); }));
      EXPECT_EQ(ran.load(), 4);
    }
  }
}

TEST(ExecutorLife, AnIdleExecutorIsInactiveAndAWaitEndsAtItsDeadline) {
  RunRig rig(1, 2);
  std::atomic<bool> go{false};
  EXPECT_TRUE(rig.run([&] {
    EXPECT_FALSE(rig.executor.active());
    rig.executor.wait_for(0, Executor::Clock::now(), [] { return false; });
    rig.executor.wait_for(0, Executor::Clock::now() + std::chrono::hours(1), [] { return true; });
    rig.task([&](std::int64_t*) { spin_until([&] { return go.load(); }); });
    EXPECT_TRUE(rig.executor.active());
    go = true;
  }));
  spin_until([&] { return !rig.executor.active(); });  // the worker may still be on its way from the task to its search
}

TEST(ExecutorLife, TakesAWindowLargerThanItsFirstReservation) {
  RunRig rig(1, 2, 1024);
  std::atomic<int> ran{0};
  std::atomic<bool> go{false};
  EXPECT_TRUE(rig.run([&] {
    rig.task([&](std::int64_t*) { spin_until([&] { return go.load(); }); }, Shape::kAic);
    for (int i = 0; i < 1000; ++i) rig.task([&](std::int64_t*) { ++ran; }, Shape::kAic);  // all queue up behind it
    go = true;
  }));
  EXPECT_EQ(ran.load(), 1000);
}

}  // namespace
}  // namespace simpler::executor
