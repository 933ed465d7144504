// Scopes: the nesting of lifetimes. A scope keeps every task submitted directly in it, and what those allocated, until it
// is closed; it orders nothing.
//
// What      Depth d works on ring min(d, 3). Tasks of one ring are reclaimed in order, so all that reclaiming needs to know
//           of the open scopes of a ring is the oldest task that one of them owns: oldest_owned().
// Threads   The submitter only.
// Cost      Opening, closing and entering a task are constant, whatever the scope holds.
#pragma once
#include <cstdint>

#include "pto_submit_types.h"

namespace simpler::graph {

constexpr int kRings = 4;
constexpr int kMaxScopeDepth = 64;

class Scopes {
 public:
  enum class Refusal { kNone, kTooDeep, kAutoInManual };

  void clear() { depth_ = manual_depth_ = 0; }

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
  int ring() const { return ring_of(depth_ - 1); }
  // Tasks submitted directly in the innermost scope.
  std::uint32_t task_count() const { return scopes_[depth_ - 1].tasks; }

  void enter(std::uint32_t local) {
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
  static int ring_of(int depth_index) { return depth_index < kRings - 1 ? depth_index : kRings - 1; }

  Scope scopes_[kMaxScopeDepth];
  int depth_ = 0;
  int manual_depth_ = 0;  // depth of the outermost open manual scope; 0: none
};

}  // namespace simpler::graph
