// GraphRig: a Graph with output memory of its own, and submission in one call, for tests that drive it by hand.
//
// What      Four rings of equal sizes; one automatic scope is open from the start, as in a run. Nothing runs: a test
//           completes tasks itself.
// Lifetime  Tensors made by external() live as long as the rig.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace simpler::graph::test {

// What one submission answered.
struct Answer {
  Outcome outcome = Outcome::kRefused;
  Submitted submitted;
  Shortage shortage;
  const char* refusal = nullptr;
  PTO2TaskId id = PTO2TaskId::invalid();

  bool taken() const { return outcome == Outcome::kTaken; }
  bool ready() const { return submitted.ready; }
  Task& task() const { return *submitted.task; }
  // A copy: the record may be reused once the task is reclaimed.
  ChipTensor output(int argument = 0) const { return submitted.task->tensors()[argument]; }
  std::vector<PTO2TaskId> producers() const {
    return {submitted.task->producers(), submitted.task->producers() + submitted.task->edge_count};
  }
};

class GraphRig {
 public:
  explicit GraphRig(std::uint32_t window = 64, std::uint64_t heap = 64 * 1024, std::uint32_t dep_pool = 1024) {
    const std::uint64_t step = (heap + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment;
    EXPECT_TRUE(memory_.reserve(kRings * step));
    RingSizes sizes;
    std::array<char*, kRings> bases;
    for (int r = 0; r < kRings; ++r) {
      sizes.window[r] = window;
      sizes.heap[r] = heap;
      sizes.dep_pool[r] = dep_pool;
      bases[r] = memory_.as<char>() + r * step;
    }
    EXPECT_TRUE(graph.configure(sizes, bases));
    begin();
  }
  void begin() {
    graph.begin();
    graph.scopes().open(PTO2ScopeMode::AUTO);
  }

  Answer submit(const CoreTaskArgs& args, Shape shape = Shape::kAiv, int blocks = 1) {
    const TaskSpec spec{shape, {-1, static_cast<std::int16_t>(shape == Shape::kAiv ? 0 : -1), -1}, blocks, false};
    Answer answer;
    answer.outcome = graph.submit(spec, args, &answer.submitted, &answer.shortage, &answer.refusal);
    if (answer.taken()) answer.id = answer.submitted.task->id;
    return answer;
  }
  // A task without arguments.
  Answer plain() { return submit(CoreTaskArgs()); }
  // A task with one output of that many bytes; `initial` fills it, byte by byte, unless negative.
  Answer producer(std::uint32_t bytes, Shape shape = Shape::kAiv, int initial = -1) {
    CoreTaskArgs args;
    TensorCreateInfo info(&bytes, 1, DataType::UINT8);
    if (initial >= 0) info.set_initial_value(static_cast<std::uint8_t>(initial));
    args.add_output(info);
    return submit(args, shape);
  }
  Answer reader(const ChipTensor& tensor) {
    CoreTaskArgs args;
    args.add_input(tensor);
    return submit(args);
  }
  Answer updater(const ChipTensor& tensor) {
    CoreTaskArgs args;
    args.add_inout(tensor);
    return submit(args);
  }
  Answer writer(const ChipTensor& tensor) {
    CoreTaskArgs args;
    args.add_output(tensor);
    return submit(args);
  }
  // A task that depends on others explicitly, all with the same kind.
  Answer after(const std::vector<PTO2TaskId>& ids, DepFlags kind = DEP_WAIT | DEP_RETAIN) {
    const std::vector<DepFlags> kinds(ids.size(), kind);
    CoreTaskArgs args;
    args.set_dependencies_with_kinds(ids.data(), kinds.data(), static_cast<std::uint32_t>(ids.size()));
    return submit(args);
  }

  // The ids of the tasks that became ready.
  std::vector<PTO2TaskId> complete(const Answer& answer) {
    std::vector<PTO2TaskId> ready;
    graph.complete(answer.task(), [&](RecordRef record) { ready.push_back(graph.task(record).id); });
    return ready;
  }

  // A tensor over memory from outside the run.
  ChipTensor external(std::initializer_list<std::uint32_t> shape, DataType type = DataType::INT32) {
    std::uint64_t bytes = get_element_size(type);
    for (std::uint32_t extent : shape) bytes *= extent;
    memories_.push_back(std::make_unique<std::vector<std::uint64_t>>((bytes + 7) / 8));
    return make_tensor_external(memories_.back()->data(), shape.begin(), static_cast<std::uint32_t>(shape.size()),
                                type);
  }

  Graph graph;

 private:
  VirtualMemory memory_;
  std::vector<std::unique_ptr<std::vector<std::uint64_t>>> memories_;
};

}  // namespace simpler::graph::test
