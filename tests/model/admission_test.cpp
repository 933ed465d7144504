// Admission against a reference model, over random interleavings, and from several threads.
#include "host/admission.h"

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simpler::host {
namespace {

// The rules, written down once more and without cleverness.
struct Model {
  struct Entry {
    int owner, slot;
    bool permits;
  };
  std::vector<Entry> reserved;
  int active = -1;

  bool has(int owner) const {
    for (const Entry& entry : reserved) {
      if (entry.owner == owner) return true;
    }
    return false;
  }
  bool reserve(int owner, int slot, int bank, bool permits) {
    if (slot < 0 || slot > 1 || bank < 0 || bank > 1 || has(owner) || reserved.size() > 1) return false;
    if (reserved.size() == 1) {
      const Entry& other = reserved[0];
      if (other.slot == slot || !permits || !other.permits || active != other.owner) return false;
    }
    reserved.push_back({owner, slot, permits});
    return true;
  }
  bool acquire(int owner) {
    if (!has(owner) || active >= 0) return false;
    active = owner;
    return true;
  }
  void release(int owner) {
    if (active == owner) active = -1;
  }
  void give_back(int owner) {
    std::erase_if(reserved, [&](const Entry& entry) { return entry.owner == owner; });
  }
};

TEST(AdmissionModel, AgreesOverRandomInterleavings) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    Admission admission;
    Model model;
    char owners[4];
    for (int step = 0; step < 400; ++step) {
      const int who = draw(4);
      const void* const owner = &owners[who];
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
      switch (draw(4)) {
        case 0: {
          const int slot = draw(4) - 1, bank = draw(3);
          const bool permits = draw(4) != 0;
          ASSERT_EQ(admission.reserve(owner, slot, bank, permits), model.reserve(who, slot, bank, permits));
          break;
        }
        case 1: {
          const RunIdentity identity{static_cast<std::uint64_t>(step), 1, 2, 0};
          LaunchPermit permit;
          const bool granted = model.acquire(who);
          ASSERT_EQ(admission.acquire(owner, identity, &permit), granted);
          ASSERT_EQ(permit.redeem(identity), granted);
          ASSERT_FALSE(permit.redeem(identity)) << "a permit is good for one launch";
          break;
        }
        case 2:
          admission.release(owner);
          model.release(who);
          break;
        default:
          if (model.active == who) break;  // the claim goes first
          admission.release_reservation(owner);
          model.give_back(who);
      }
      ASSERT_EQ(admission.active(), model.active >= 0 ? &owners[model.active] : nullptr);
      ASSERT_EQ(admission.outstanding(), !model.reserved.empty());
    }
  }
}

TEST(AdmissionModel, NobodyOwnsNothing) {
  Admission admission;
  LaunchPermit permit;
  EXPECT_FALSE(admission.reserve(nullptr, 0, 0, true));
  EXPECT_FALSE(admission.acquire(nullptr, {}, &permit));
  admission.release(nullptr);
  admission.release_reservation(nullptr);
  EXPECT_FALSE(admission.outstanding());
}

TEST(AdmissionRace, AtMostOneRunIsActiveWhateverTheThreadsDo) {
  Admission admission;
  std::atomic<int> inside{0}, launches{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const char owner = 0;
      for (int i = 0; i < 20'000; ++i) {
        if (!admission.reserve(&owner, (t + i) % 2, 0, true)) continue;
        LaunchPermit permit;
        if (admission.acquire(&owner, {}, &permit)) {
          EXPECT_EQ(inside.fetch_add(1), 0);
          launches.fetch_add(1);
          inside.fetch_sub(1);
          admission.release(&owner);
        }
        admission.release_reservation(&owner);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(launches.load(), 0);
  EXPECT_FALSE(admission.outstanding());
  EXPECT_EQ(admission.active(), nullptr);
}

// ---- the launch itself --------------------------------------------------------------------------------------------------

class LaunchTransaction : public testing::Test {
 protected:
  template <class Cores, class Control> LaunchOutcome launch(Cores cores, Control control) {
    return launch_transaction(identity, LaunchPermit(identity), cores, control);
  }
  static constexpr RunIdentity identity{1, 2, 3, 0};
  int calls = 0;
};

TEST_F(LaunchTransaction, APermitOfAnotherRunSubmitsNothing) {
  const auto counted = [&] { return ++calls, 0; };
  for (const RunIdentity& other :
       {RunIdentity{2, 2, 3, 0}, RunIdentity{1, 1, 3, 0}, RunIdentity{1, 2, 4, 0}, RunIdentity{1, 2, 3, 1}}) {
    const LaunchOutcome outcome = launch_transaction(identity, LaunchPermit(other), counted, counted);
    EXPECT_EQ(outcome.progress, LaunchProgress::kNotStarted);
    EXPECT_EQ(outcome.code, -1);
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(LaunchTransaction, CoresThatRefuseAreARollBackAndWhateverFollowsThemIsHalfALaunch) {
  const auto good = [&] { return ++calls, 0; };
  const auto bad = [&] { return ++calls, 7; };
  const auto throws = [&]() -> int { throw std::runtime_error("no"); };
  LaunchOutcome outcome = launch(bad, good);
  EXPECT_EQ(outcome.progress, LaunchProgress::kNotStarted);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(calls, 1) << "the control processors were not asked";
  EXPECT_FALSE(outcome.receipt.redeem(identity));
  EXPECT_EQ(launch(throws, good).progress, LaunchProgress::kPartial);
  EXPECT_EQ(launch(good, throws).progress, LaunchProgress::kPartial);
  outcome = launch(good, bad);
  EXPECT_EQ(outcome.progress, LaunchProgress::kPartial);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_FALSE(outcome.receipt.redeem(identity));
}

TEST_F(LaunchTransaction, BothSubmittedGiveAReceiptForThatRunAlone) {
  const auto good = [] { return 0; };
  LaunchOutcome outcome = launch(good, good);
  EXPECT_EQ(outcome.progress, LaunchProgress::kComplete);
  LaunchReceipt moved = std::move(outcome.receipt);
  EXPECT_FALSE(outcome.receipt.redeem(identity)) << "moved away";
  EXPECT_TRUE(moved.redeem(identity));
  EXPECT_FALSE(moved.redeem(identity)) << "used";
  outcome = launch(good, good);
  EXPECT_FALSE(outcome.receipt.redeem({9, 2, 3, 0})) << "another run's";
}

}  // namespace
}  // namespace simpler::host
