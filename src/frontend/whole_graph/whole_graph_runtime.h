// WholeGraphRuntime: the front end "host_build_graph". The orchestration runs to its end first, then the graph is executed
// as a whole.
//
// What      Nothing is given back during a run, so whatever does not fit fails at once. Elements of entry tensors may be
//           read and written while no task writes them: what is written is what the tasks find.
// Graphs    rt_submit_graph calls a body at its first use in a run, and records it. Definitions are kept from run to run:
//           a recording that equals a kept one is replaced by it. Later uses that fit are replayed; all others call the
//           body. In either case the tasks go to a ring of their own, so that the task window counts a use as one task:
//           the one that ends it, whose id is the result.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "frontend/runtime.h"
#include "frontend/whole_graph/recorder.h"
#include "graph/definition.h"

namespace simpler::frontend {

class WholeGraphRuntime : public Runtime {
 public:
  static constexpr std::size_t kMostRecordings = 16;  // in one run
  static constexpr std::size_t kMostNested = 64;      // bodies that are being called
  static constexpr std::size_t kMostKept = 64;        // definitions, from run to run

  // Of the last run.
  struct GraphCounts {
    std::uint32_t recorded = 0;  // bodies
    std::uint32_t made = 0;      // definitions: recordings that equalled no kept one
    std::uint32_t replayed = 0;  // uses
    std::uint32_t plain = 0;     // uses that called the body and were not recorded
  };

  explicit WholeGraphRuntime(executor::Executor& executor) : Runtime(executor) {}

  const GraphCounts& graph_counts() const { return counts_; }

 private:
  // A body that was used in this run.
  struct Known {
    std::shared_ptr<const graph::Definition> definition;  // nullptr: unfit for replay
    bool noted = false;                                   // that a use did not fit
  };
  // A use whose body is being called.
  struct Frame {
    std::uint32_t first_node;
    std::uint64_t key;
    int scope_depth;
    bool recording;
  };

  bool configure_graph(const graph::RingSizes& sizes, const std::array<char*, graph::kRings>& heaps) override {
    return graph_.configure(sizes, heaps, graph::Lifetime::kRun);
  }
  // Callables of this runtime have no say in it: older code relies on that.
  bool checks_argument_count() const override { return false; }
  bool runs_tasks_while_submitting() const override { return false; }
  int most_lanes() const override { return INT16_MAX; }
  void begin_tasks(const abi::RunImage& image) override;
  void finish_tasks() override;
  void taken(const graph::TaskSpec& spec, const CoreTaskArgs& args, const graph::Submitted& submitted) override;
  bool make_room(const graph::Shortage& shortage, Clock::time_point* last_progress) override;
  bool settle(const ChipTensor& tensor, bool write, const char* call) override;

  SimplerGraphBlock begin_graph(std::uint64_t key, const CoreTaskArgs& boundary, bool always_ended) override;
  bool end_graph() override;
  PTO2TaskId commit_graph() override { return last_use_; }

  void note_ignored_sizes(const abi::RuntimeEnv& rings);
  // A predicate in a body is refused unless its task comes after all that write what it reads: that the boundary names
  // the tensor orders nothing.
  void require_order(const ChipTensor& operand, const graph::Task& task);
  void finish_recording(std::uint64_t key);
  std::shared_ptr<const graph::Definition> keep(graph::Recording recording);
  bool replay(const graph::Definition& definition, const CoreTaskArgs& boundary);
  // Submits the task that ends a use: it depends on all of the ids.
  void end_use(const std::vector<PTO2TaskId>& ids);
  // Why a body is called although it was called before; said once.
  void note(Known* known, const char* reason);

  const ChipTaskArgs* entry_args_ = nullptr;  // of the run
  std::vector<graph::RecordRef> roots_;       // tasks that wait for nobody
  std::vector<PTO2TaskId> accessors_;

  std::unordered_map<std::uint64_t, Known> known_;              // of the run, by key
  std::vector<std::shared_ptr<const graph::Definition>> kept_;  // used last: last
  std::vector<Frame> frames_;
  Recorder recorder_;
  GraphCounts counts_;
  bool noted_sizes_ = false;  // of the runtime's life
  bool noted_limit_ = false;  // that there are more than kMostRecordings
  PTO2TaskId last_use_ = PTO2TaskId::invalid();
  std::vector<PTO2TaskId> ends_;  // of the use that is being ended
  std::vector<bool> continued_;   // nodes that another one depends on
};

}  // namespace simpler::frontend
