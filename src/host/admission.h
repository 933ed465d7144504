// Admission: which runs may be prepared, and which one may execute.
//
// What      A run first reserves a place: a pipeline slot and an arena bank. There are two places; the second is for a
//           successor, and only while the one run that executes permits it. The right to execute is a claim, held by one
//           reserved run at a time, until it is given back; with it comes a permit, which is good for one launch.
//           Reserved first, then claimed, then released, then the place is given back.
// Launch    launch_transaction submits cores, then control processors, and says how far it came. Only a complete launch
//           has a receipt.
// Threads   Any; one lock. active() is lock-free.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "host/arenas.h"

namespace simpler::host {

// Which launch a permit and a receipt belong to. run_epoch is unique in the process.
struct RunIdentity {
  std::uint64_t run_epoch = 0, generation = 0, dispatch_id = 0;
  std::int32_t slot = 0;
  bool operator==(const RunIdentity& other) const {
    return run_epoch == other.run_epoch && generation == other.generation && dispatch_id == other.dispatch_id &&
           slot == other.slot;
  }
};

// Both move, do not copy, and are good for one use.
class RunToken {
 public:
  RunToken() = default;
  explicit RunToken(const RunIdentity& identity) : identity_(identity), valid_(true) {}
  RunToken(RunToken&& other) noexcept : identity_(other.identity_), valid_(std::exchange(other.valid_, false)) {}
  RunToken& operator=(RunToken&& other) noexcept {
    identity_ = other.identity_;
    valid_ = std::exchange(other.valid_, false);
    return *this;
  }
  // Whether it is still good for that run; it is not good for anything afterwards.
  bool redeem(const RunIdentity& identity) { return std::exchange(valid_, false) && identity_ == identity; }

 private:
  RunIdentity identity_;
  bool valid_ = false;
};
class LaunchPermit : public RunToken {
  using RunToken::RunToken;
};
class LaunchReceipt : public RunToken {
  using RunToken::RunToken;
};

class Admission {
 public:
  bool reserve(const void* owner, int slot, int bank, bool permits_successor) {
    const std::lock_guard lock(mutex_);
    if (owner == nullptr || slot < 0 || slot >= kSlots || bank < 0 || bank >= kBanks) return false;
    Place* free = nullptr;
    const Place* other = nullptr;
    for (Place& place : places_) {
      if (place.owner == nullptr) {
        free = &place;
      } else {
        if (place.owner == owner || place.slot == slot) return false;
        other = &place;
      }
    }
    if (free == nullptr) return false;
    if (other != nullptr && !(permits_successor && other->permits_successor && other->owner == active())) return false;
    *free = {owner, slot, permits_successor};
    return true;
  }
  bool acquire(const void* owner, const RunIdentity& identity, LaunchPermit* permit) {
    const std::lock_guard lock(mutex_);
    if (!reserved(owner)) return false;
    const void* nobody = nullptr;
    if (!active_.compare_exchange_strong(nobody, owner)) return false;
    *permit = LaunchPermit(identity);
    return true;
  }
  void release(const void* owner) {
    const void* expected = owner;
    if (owner != nullptr) active_.compare_exchange_strong(expected, nullptr);
  }
  void release_reservation(const void* owner) {
    const std::lock_guard lock(mutex_);
    for (Place& place : places_) {
      if (place.owner == owner) place = {};
    }
  }
  bool outstanding() const {
    const std::lock_guard lock(mutex_);
    return places_[0].owner != nullptr || places_[1].owner != nullptr;
  }
  const void* active() const { return active_.load(); }

 private:
  struct Place {
    const void* owner = nullptr;
    int slot = 0;
    bool permits_successor = false;
  };
  bool reserved(const void* owner) const {
    return owner != nullptr && (places_[0].owner == owner || places_[1].owner == owner);
  }

  mutable std::mutex mutex_;
  Place places_[kSlots];
  std::atomic<const void*> active_{nullptr};
};

enum class LaunchProgress {
  kNotStarted,  // nothing runs; the run may be rolled back
  kPartial,     // something may run: the device is in doubt
  kComplete,
};

struct LaunchOutcome {
  LaunchProgress progress = LaunchProgress::kNotStarted;
  int code = -1;
  LaunchReceipt receipt;
};

// `cores` and `control` return a driver's code; an exception counts as one. A permit for another run submits nothing.
template <class Cores, class Control>
LaunchOutcome launch_transaction(const RunIdentity& identity, LaunchPermit permit, Cores cores, Control control) {
  LaunchOutcome outcome;
  if (!permit.redeem(identity)) return outcome;
  try {
    outcome.code = cores();
  } catch (...) {
    outcome.progress = LaunchProgress::kPartial;
    outcome.code = -1;
    return outcome;
  }
  if (outcome.code != 0) return outcome;
  outcome.progress = LaunchProgress::kPartial;
  try {
    outcome.code = control();
  } catch (...) {
    outcome.code = -1;
  }
  if (outcome.code != 0) return outcome;
  outcome.progress = LaunchProgress::kComplete;
  outcome.receipt = LaunchReceipt(identity);
  return outcome;
}

}  // namespace simpler::host
