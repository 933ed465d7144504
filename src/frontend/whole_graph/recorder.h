// Recorder: watches the tasks of one graph body as they are submitted, and makes a Recording of them.
//
// What      The tasks are submitted as any others; the recorder only looks at what the graph has taken. It finds out where
//           each tensor and scalar comes from. What it cannot trace back to the boundary or to the body itself makes the
//           body unfit for replay, with a reason; nothing else happens then.
// Lifetime  The boundary arguments are borrowed from begin() to finish() or give_up().
// Threads   One.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace simpler::frontend {

class Recorder {
 public:
  // The body's tasks will be those on kNodeRing from `first_node` on; their memory will begin at `heap_top`.
  void begin(const CoreTaskArgs& boundary, std::uint32_t first_node, std::uint64_t heap_top);
  bool active() const { return boundary_ != nullptr; }
  // Why the body is unfit for replay; nullptr if it is fit up to now. A literal.
  const char* unfit() const { return unfit_; }
  void give_up(const char* reason) {
    if (unfit_ == nullptr) unfit_ = reason;
  }

  // A task of the body was taken.
  void add(const graph::TaskSpec& spec, const CoreTaskArgs& args, const graph::Submitted& submitted, bool manual);

  // The body has ended, and it is fit.
  graph::Recording finish(const graph::Graph& graph);
  // The body has ended, unfit, or the run has failed.
  void abandon();
  // The run has failed in the middle of the body: the boundary may be gone.
  void forget() { boundary_ = nullptr; }

 private:
  bool is_node(PTO2TaskId id) const {
    return id.is_valid() && id.ring() == graph::kNodeRing && id.local() >= first_node_;
  }
  // The boundary tensor that this is a view of; -1 if there is none.
  int boundary_of(const ChipTensor& tensor) const;
  bool trace(const ChipTensor& tensor, ChipTensor* recorded, graph::TensorSource* source);
  void add_tensor(const CoreTaskArgs& args, const graph::Submitted& submitted, int i, bool manual, graph::Node* node);

  graph::Recording recording_;
  const CoreTaskArgs* boundary_ = nullptr;
  std::vector<ChipTensor> tensors_;       // of the boundary
  std::vector<std::uint32_t> handed_on_;  // by boundary scalar: how often
  // The tracked writes by node, in the order of its arguments: an access, or kOwnMemory.
  static constexpr std::uint32_t kOwnMemory = 0xFFFFFFFF;
  std::vector<std::uint32_t> writes_;
  std::vector<std::size_t> write_ends_;
  std::uint32_t first_node_ = 0;
  std::uint64_t heap_top_ = 0;
  const char* unfit_ = nullptr;
};

}  // namespace simpler::frontend
