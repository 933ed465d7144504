// Who is woken when work appears: as few as possible, but never nobody.
#include "executor/worker_gate.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simpler::executor {
namespace {

const auto kNoWork = [] { return false; };

// A worker that sleeps in the gate until it is woken; the object waits until it sleeps.
class Sleeper {
 public:
  explicit Sleeper(WorkerGate& gate) {
    gate.start();
    const int asleep = gate.counts().asleep;
    thread_ = std::thread([this, &gate] {
      gate.fall_asleep(bed_, kNoWork);
      awake_.store(true);
    });
    while (gate.counts().asleep == asleep) std::this_thread::yield();
  }
  ~Sleeper() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  bool awake() const { return awake_.load(); }

 private:
  WorkerGate::Bed bed_;
  std::atomic<bool> awake_{false};
  std::thread thread_;
};

TEST(WorkerGate, CountsWorkersByWhatTheyDo) {
  WorkerGate gate;
  gate.set_limit(3);
  gate.start();
  gate.start();
  EXPECT_EQ(gate.counts().searching, 2);
  EXPECT_EQ(gate.counts().busy(), 0);
  EXPECT_FALSE(gate.end_search()) << "another one searches";
  EXPECT_TRUE(gate.end_search()) << "the last one must announce what it leaves behind";
  EXPECT_EQ(gate.counts().busy(), 2);
  gate.begin_search();
  EXPECT_EQ(gate.counts().searching, 1);
  EXPECT_EQ(gate.counts().awake(), 2);
  EXPECT_EQ(gate.counts().limit, 3);
}

TEST(WorkerGate, AnnouncingWakesOneSleeperWhoCountsAsSearchingAtOnce) {
  WorkerGate gate;
  gate.set_limit(2);
  Sleeper first(gate), second(gate);
  ASSERT_EQ(gate.counts().asleep, 2);
  gate.announce();
  EXPECT_EQ(gate.counts().asleep, 1);
  EXPECT_EQ(gate.counts().searching, 1);
  gate.announce();
  EXPECT_EQ(gate.counts().asleep, 1) << "somebody searches already";
  second.join();
  EXPECT_TRUE(second.awake()) << "the one that slept last has the warmest cache";
  gate.end_search();
  gate.announce();
  EXPECT_EQ(gate.counts().asleep, 0);
}

TEST(WorkerGate, WakesNobodyBeyondTheLimit) {
  WorkerGate gate;
  gate.set_limit(1);
  gate.start();
  gate.end_search();  // one busy worker
  Sleeper sleeper(gate);
  gate.announce();
  EXPECT_FALSE(gate.wake_one(false));
  EXPECT_EQ(gate.counts().asleep, 1);
  gate.set_limit(2);
  EXPECT_TRUE(gate.wake_one(false));
  EXPECT_EQ(gate.counts().asleep, 0);
}

TEST(WorkerGate, WakesASecondSearcherOnlyWhenAskedTo) {
  WorkerGate gate;
  gate.set_limit(3);
  gate.start();  // searches
  Sleeper sleeper(gate);
  EXPECT_FALSE(gate.wake_one(true));
  EXPECT_TRUE(gate.wake_one(false));
  EXPECT_EQ(gate.counts().searching, 2);
}

TEST(WorkerGate, ASearcherThatSeesWorkAtTheLastMomentStaysAwake) {
  WorkerGate gate;
  gate.set_limit(1);
  gate.start();
  WorkerGate::Bed bed;
  gate.fall_asleep(bed, [] { return true; });
  EXPECT_EQ(gate.counts().searching, 1);
  EXPECT_EQ(gate.counts().asleep, 0);
}

TEST(WorkerGate, ASurplusWorkerSleepsUntilTheLimitRises) {
  WorkerGate gate;
  gate.set_limit(2);
  gate.start();
  gate.start();
  gate.end_search();
  gate.end_search();
  WorkerGate::Bed bed;
  EXPECT_FALSE(gate.sleep_if_surplus(bed)) << "two may be awake";
  gate.set_limit(1);
  EXPECT_TRUE(gate.surplus());
  bool slept = false;
  std::thread surplus([&] { slept = gate.sleep_if_surplus(bed); });
  while (gate.counts().asleep == 0) std::this_thread::yield();
  EXPECT_FALSE(gate.surplus());
  gate.announce();
  EXPECT_EQ(gate.counts().asleep, 1) << "the other one is awake";
  gate.set_limit(2);
  gate.announce();
  surplus.join();
  EXPECT_TRUE(slept);
  EXPECT_EQ(gate.counts().searching, 1) << "afterwards it searches";
}

TEST(WorkerGate, WakesEverybodyWhateverTheLimit) {
  WorkerGate gate;
  gate.set_limit(1);
  Sleeper a(gate), b(gate), c(gate);
  gate.wake_all();
  a.join();
  b.join();
  c.join();
  EXPECT_EQ(gate.counts().asleep, 0);
  EXPECT_EQ(gate.counts().searching, 3);
}

// One producer, several takers: if a wake-up were lost, nobody would take the last pieces and the test would not end.
TEST(WorkerGateRace, NoPieceOfWorkIsLeftWhileEverybodySleeps) {
  constexpr int kWorkers = 3, kPieces = 4000;
  WorkerGate gate;
  gate.set_limit(kWorkers);
  std::atomic<int> pieces{0}, taken{0};
  std::atomic<bool> stop{false};
  const auto take = [&] {
    int there = pieces.load(std::memory_order_relaxed);
    while (there > 0 && !pieces.compare_exchange_weak(there, there - 1, std::memory_order_relaxed)) {
    }
    return there > 0;
  };
  WorkerGate::Bed beds[kWorkers];
  std::vector<std::thread> workers;
  for (int w = 0; w < kWorkers; ++w) {
    gate.start();
    workers.emplace_back([&, w] {
      while (!stop.load()) {  // searching
        if (pieces.load(std::memory_order_relaxed) > 0) {
          const bool last = gate.end_search();
          if (take()) {
            if (last && pieces.load(std::memory_order_relaxed) > 0) gate.announce();
            taken.fetch_add(1);
            taken.notify_all();
          }
          gate.begin_search();
          continue;
        }
        gate.fall_asleep(beds[w], [&] { return stop.load() || pieces.load(std::memory_order_relaxed) > 0; });
      }
    });
  }
  for (int piece = 0; piece < kPieces; ++piece) {
    pieces.fetch_add(1, std::memory_order_relaxed);
    gate.announce();
    if (piece % 3 != 0) continue;  // bursts of three, then everybody may sleep
    for (int done = taken.load(); done < piece + 1; done = taken.load()) taken.wait(done);
  }
  for (int done = taken.load(); done < kPieces; done = taken.load()) taken.wait(done);
  stop.store(true);
  gate.set_limit(UINT16_MAX);
  gate.wake_all();
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(taken.load(), kPieces);
}

}  // namespace
}  // namespace simpler::executor
