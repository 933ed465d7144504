// Scopes: the nesting of lifetimes. A scope keeps every task submitted directly in it, and what those allocated, until it
// is closed; it orders nothing.
//
// What      Depth d works on ring min(d, 3). Tasks of one ring are reclaimed in order, so all that reclaiming needs to know
//           of the open scopes of a ring is the oldest task that one of them owns: oldest_owned(). Where everything lives
//           as long as the run (Lifetime::kRun), all depths work on ring 0, but for the tasks of recorded graphs: those
//           are on a ring of their own while it is diverted(), and no scope counts them.
// Threads   The submitter only.
// Cost      Opening, closing and entering a task are constant, whatever the scope holds.
#pragma once
#include <cstdint>

#include "pto_submit_types.h"

namespace simpler::graph {

constexpr int kRings = 4;
constexpr int kMaxScopeDepth = 64;

// How long tasks and what they allocated live: until their scope is closed and everybody is done with them, or as long as
// the run.
enum class Lifetime : std::uint8_t { kScopes, kRun };
constexpr int kNodeRing = 1;  // kRun: the ring of the tasks of recorded graphs

class Scopes {
 public:
  enum class Refusal { kNone, kTooDeep, kAutoInManual };

  void configure(Lifetime lifetime) { last_ring_ = lifetime == Lifetime::kScopes ? kRings - 1 : 0; }
  void clear() {
    depth_ = manual_depth_ = 0;
    diverted_ = false;
  }

  Refusal open(PTO2ScopeMode mode) {
    if (depth_ >= kMaxScopeDepth) return Refusal::kTooDeep;
    if (mode == PTO2ScopeMode::AUTO && manual()) return Refusal::kAutoInManual;
    scopes_[depth_] = Scope{};
    ++depth_;
    if (mode == PTO2ScopeMode::MANUAL && !manual()) manual_depth_ = depth_;
    return Refusal::kNone;
  }
  void close() {
    if (manual_depth_ == depth_) manual_depth_ = 0;
    --depth_;
  }

  bool any() const { return depth_ > 0; }
  int depth() const { return depth_; }
  bool manual() const { return manual_depth_ > 0; }
  int ring() const { return diverted_ ? kNodeRing : depth_ - 1 < last_ring_ ? depth_ - 1 : last_ring_; }
  // Tasks submitted directly in the innermost scope.
  std::uint32_t task_count() const { return diverted_ ? 0 : scopes_[depth_ - 1].tasks; }
  // Whether what is submitted now are the tasks of a recorded graph.
  bool diverted() const { return diverted_; }
  void divert(bool on) { diverted_ = on; }

  void enter(std::uint32_t local) {
    if (diverted_) return;
    Scope& scope = scopes_[depth_ - 1];
    if (scope.tasks++ == 0) scope.first = local;
  }

  // The local id of the oldest task of a ring that an open scope owns; false if there is none.
  bool oldest_owned(int ring, std::uint32_t* local) const {
    const int last = ring < kRings - 1 ? (ring < depth_ ? ring + 1 : depth_) : depth_;
    for (int d = ring; d < last; ++d) {
      if (scopes_[d].tasks == 0) continue;
      *local = scopes_[d].first;
      return true;
    }
    return false;
  }

 private:
  struct Scope {
    std::uint32_t tasks = 0;
    std::uint32_t first = 0;  // local id of the first one
  };

  Scope scopes_[kMaxScopeDepth];
  int depth_ = 0;
  int last_ring_ = kRings - 1;
  bool diverted_ = false;
  int manual_depth_ = 0;  // depth of the outermost open manual scope; 0: none
};

}  // namespace simpler::graph
