// The dependencies that the graph finds are exactly those of the model: one more fails as one less does.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/support/random_program.h"
#include "model/support/sequential_model.h"
#include "model/support/submission.h"
#include "unit/support/graph_rig.h"

namespace simpler::model {
namespace {

using graph::Shape;
using graph::test::Answer;
using graph::test::GraphRig;

std::string text_of(const std::map<int, DepFlags>& edges) {
  std::string text;
  for (const auto& [task, kind] : edges) text += std::to_string(task) + (kind & DEP_RETAIN ? "(retained) " : " ");
  return text;
}

bool is_live(const graph::Graph& graph, PTO2TaskId id) {
  bool found = false;
  graph.for_each_live(id.ring(), [&](PTO2TaskId live, const graph::Task&) { found = found || live == id; });
  return found;
}

// Submits the whole program and completes nothing, so that dependencies stay unmet. Only allocations, which are complete
// from the start, can be reclaimed, and are no dependency from then on.
void expect_model_edges(const Program& program) {
  std::vector<std::vector<std::uint8_t>> memory = initial_memory(program);
  SequentialModel model(program, memory);
  GraphRig rig(program.window, program.heap, program.dep_pool);
  Submissions done(program, memory);
  std::map<std::uint64_t, int> task_of;
  std::vector<bool> is_alloc;
  for (const Step& step : program.steps) {
    model.submit(step);
    if (step.kind == Step::kClose) {
      rig.graph.scopes().close();
    } else if (!step.submits()) {
      const PTO2ScopeMode mode = step.kind == Step::kOpenManual ? PTO2ScopeMode::MANUAL : PTO2ScopeMode::AUTO;
      ASSERT_EQ(rig.graph.scopes().open(mode), graph::Scopes::Refusal::kNone);
    } else {
      const int task = static_cast<int>(done.ids.size());
      const SequentialModel::TaskFacts& facts = model.tasks().back();
      Submission submission(step, done);
      const Shape shape = step.kind == Step::kAlloc   ? Shape::kAlloc
                          : step.kind == Step::kDummy ? Shape::kDummy
                                                      : Shape::kAiv;
      const Answer answer = rig.submit(submission.args(), shape, step.blocks);
      ASSERT_TRUE(answer.taken()) << "task " << task;
      ASSERT_EQ(answer.id.ring(), std::min(facts.depth, graph::kRings - 1)) << "task " << task;

      std::map<int, DepFlags> edges;
      const std::vector<PTO2TaskId> producers = answer.producers();
      for (std::size_t i = 0; i < producers.size(); ++i) {
        ASSERT_TRUE(task_of.count(producers[i].raw))
            << "task " << task << " depends on a task that was never submitted";
        const DepFlags kind = i < answer.task().retained_count ? DEP_WAIT | DEP_RETAIN : DEP_WAIT;
        ASSERT_TRUE(edges.emplace(task_of[producers[i].raw], kind).second)
            << "task " << task << " names a producer twice";
      }
      std::map<int, DepFlags> expected = facts.edges;
      for (const auto& [producer, kind] : facts.edges) {
        if (is_alloc[producer] && !is_live(rig.graph, done.ids[producer])) expected.erase(producer);
      }
      ASSERT_EQ(text_of(edges), text_of(expected)) << "task " << task << " (first: the graph, second: the model)";

      const bool met = std::all_of(edges.begin(), edges.end(), [&](const auto& edge) { return is_alloc[edge.first]; });
      ASSERT_EQ(answer.ready(), shape != Shape::kAlloc && met) << "task " << task;
      is_alloc.push_back(shape == Shape::kAlloc);
      task_of[answer.id.raw] = task;
      done.ids.push_back(answer.id);
      done.tensors.emplace_back(answer.task().tensors(), answer.task().tensors() + answer.task().tensor_count);
      for (std::size_t i = 0; i < step.arguments.size(); ++i) {  // the views themselves
        const ChipTensor& tensor = done.tensors.back()[i];
        const View& view = facts.views[i];
        if (view.count() == 0) continue;
        ASSERT_EQ(Extents(tensor.shapes, tensor.shapes + tensor.ndims), view.shape)
            << "task " << task << ", argument " << i;
        ASSERT_EQ(Extents(tensor.strides, tensor.strides + tensor.ndims), view.strides)
            << "task " << task << ", argument " << i;
        ASSERT_EQ(tensor.start_offset, view.first) << "task " << task << ", argument " << i;
      }
    }
  }
}

TEST(ModelEdges, OfRandomProgramsAreExactlyThoseOfTheModel) {
  test::for_each_seed(250, [](std::uint64_t seed) {
    test::Random random(seed);
    expect_model_edges(random_program(random, {}));
  });
}

TEST(ModelEdges, OfLongRandomProgramsAreExactlyThoseOfTheModelSlow) {
  test::for_each_seed(8, [](std::uint64_t seed) {
    test::Random random(seed);
    ProgramOptions options;
    options.tasks = 600;
    expect_model_edges(random_program(random, options));
  });
}

// The generator is worth something only if its programs contain what the rules speak of.
TEST(ModelEdges, RandomProgramsMeetEveryRule) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    test::Random random(seed);
    const Program program = random_program(random, {});
    SequentialModel model(program, initial_memory(program));
    struct Write {
      View view;
      Footprint footprint;
    };
    std::vector<Write> earlier;
    for (const Step& step : program.steps) {
      model.submit(step);
      seen["step kind " + std::to_string(step.kind)]++;
      if (!step.submits()) continue;
      const auto& facts = model.tasks().back();
      for (std::size_t i = 0; i < step.arguments.size(); ++i) {
        const Argument& argument = step.arguments[i];
        const View& view = facts.views[i];
        const Footprint& bytes = facts.footprints[i];
        seen["tag " + std::to_string(static_cast<int>(argument.tag))]++;
        if (argument.manual_dep) seen["manual_dep"]++;
        if (facts.manual && view.creator >= 0) seen["runtime memory in a manual scope"]++;
        if (bytes.empty()) seen["empty view"]++;
        if (argument.tag != TensorArgType::INPUT && argument.tag != TensorArgType::INOUT) continue;
        for (const Write& write : earlier) {
          if (write.view.buffer != view.buffer) continue;
          const Verdict verdict = overlap(view, bytes, write.view, write.footprint);
          const bool shared = bytes.shares_a_byte_with(write.footprint);
          if (verdict == Verdict::kCovers) seen["covered"]++;
          if (verdict == Verdict::kOverlap && !shared)
            seen[view.dtype == write.view.dtype ? "interleaved" : "interleaved types"]++;
          if (verdict == Verdict::kOverlap && shared) seen["partial"]++;
          if (verdict == Verdict::kApart && !bytes.empty() && bytes.bytes.back() > write.footprint.bytes.front() &&
              write.footprint.bytes.back() > bytes.bytes.front()) {
            seen["disjoint boxes within one range"]++;
          }
          if (view.version > write.view.version) seen["newer version"]++;
        }
      }
      for (std::size_t i = 0; i < step.arguments.size(); ++i) {
        if (writes(step.arguments[i].tag) && !facts.footprints[i].empty())
          earlier.push_back({facts.views[i], facts.footprints[i]});
      }
    }
  }
  const char* const wanted[] = {"step kind 0",
                                "step kind 1",
                                "step kind 2",
                                "step kind 3",
                                "step kind 4",
                                "step kind 5",
                                "tag 0",
                                "tag 1",
                                "tag 2",
                                "tag 3",
                                "tag 4",
                                "manual_dep",
                                "runtime memory in a manual scope",
                                "empty view",
                                "covered",
                                "interleaved",
                                "interleaved types",
                                "partial",
                                "disjoint boxes within one range",
                                "newer version"};
  for (const char* rule : wanted) EXPECT_GE(seen[rule], 20) << rule;
}

}  // namespace
}  // namespace simpler::model
