// Recorded graphs: replaying a body gives the tasks, the edges and the results of calling it.
//
// A program is a list of random bodies, and a list of steps: plain tasks, and uses of the bodies with random boundaries.
// It is run with the uses as graphs, and with the bodies called as plain functions.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frontend/whole_graph/whole_graph_runtime.h"
#include "unit/support/front_end_rig.h"
#include "unit/support/seed.h"

namespace simpler::model {
namespace {

using frontend::WholeGraphRuntime;
using frontend::test::FrontEndRig;
using frontend::test::Ops;

constexpr std::uint32_t kSide = 8;  // of the matrices that buffers hold
constexpr int kBuffers = 4;         // from outside; the first half is only read in programs whose results are compared
constexpr int kRuntimeBuffers = 2;  // allocated by the program's first task
constexpr int kViews = 6;
const std::vector<TensorArgType> kTags = {TensorArgType::INPUT, TensorArgType::INOUT, TensorArgType::OUTPUT_EXISTING,
                                          TensorArgType::NO_DEP};

// One tensor argument of a task: a view of a boundary tensor, or of what an earlier task of the body allocated; or memory
// to allocate.
struct Operand {
  TensorArgType tag;
  int boundary = -1;
  int task = -1, output = -1;
  int view = 0;
  bool manual_dep = false;
  bool initial = false;
};

struct BodyTask {
  enum Kind { kVector, kMatrix, kDummy, kAlloc } kind = kVector;
  std::vector<Operand> operands;
  std::vector<int> after;    // explicit dependencies on tasks of the body
  std::vector<int> scalars;  // boundary scalar; -1: a constant
  int blocks = 1;
  bool manual = false;  // in a manual scope of its own
};

struct Body {
  int tensors = 1, scalars = 0;
  std::vector<TensorArgType> tags;  // of the boundary
  std::vector<BodyTask> tasks;
  bool looks_at_scalar = false;  // computes with scalar 0, which replay cannot know
};

// Where a boundary tensor of a use lies: rows or columns of a matrix.
struct Place {
  int buffer;
  std::uint32_t first;
  bool rows = true;
};

struct Step {
  int body = -1;  // -1: a plain task
  std::vector<Place> places;
  std::vector<std::uint64_t> scalars;
  std::vector<TensorArgType> tags;  // of a plain task's operands
  bool after_last_use = false;      // a plain task that depends on the id of the use before
  bool manual = false;
};

struct Program {
  std::vector<Body> bodies;
  std::vector<Step> steps;
};

// `ordered`: tasks that touch what others write do so with INOUT, so that results do not depend on the order of execution.
Body random_body(test::Random& random, bool ordered) {
  Body body;
  body.tensors = static_cast<int>(random.number(1, 4));
  body.scalars = static_cast<int>(random.number(0, 3));
  for (int b = 0; b < body.tensors; ++b) body.tags.push_back(random.pick(kTags));
  body.looks_at_scalar = body.scalars > 0 && random.chance(10);
  struct Own {
    int task, output;
    bool updated;  // by INOUT only, ever
  };
  std::vector<Own> own;
  const int count = static_cast<int>(random.number(1, 12));
  for (int t = 0; t < count; ++t) {
    BodyTask task;
    const std::uint32_t kind = random.number(1, 20);
    task.kind = kind <= 12   ? BodyTask::kVector
                : kind <= 16 ? BodyTask::kMatrix
                : kind <= 18 ? BodyTask::kDummy
                             : BodyTask::kAlloc;
    task.manual = !ordered && random.chance(8);
    if (task.kind == BodyTask::kVector && random.chance(15)) task.blocks = 3;
    std::vector<Own> fresh;
    const int operands = static_cast<int>(random.number(task.kind == BodyTask::kAlloc ? 1 : 0, 4));
    for (int o = 0; o < operands; ++o) {
      Operand operand{};
      const std::uint32_t source = task.kind == BodyTask::kAlloc ? 100 : random.number(1, 100);
      if (source > 70) {
        operand.tag = TensorArgType::OUTPUT;
        operand.initial = random.chance(30);
        fresh.push_back({t, o, random.chance(30)});
      } else if (source > 40 && !own.empty()) {
        const Own& tensor = random.pick(own);
        operand.task = tensor.task;
        operand.output = tensor.output;
        operand.tag = ordered ? (tensor.updated ? TensorArgType::INOUT : TensorArgType::INPUT) : random.pick(kTags);
        operand.view = static_cast<int>(random.number(0, kViews - 1));
      } else {
        operand.boundary = static_cast<int>(random.number(0, static_cast<std::uint32_t>(body.tensors) - 1));
        // The place decides whether it may be written: even boundary tensors lie in read-only buffers.
        operand.tag =
            ordered ? (operand.boundary % 2 == 0 ? TensorArgType::INPUT : TensorArgType::INOUT) : random.pick(kTags);
        operand.view = static_cast<int>(random.number(0, kViews - 1));
        operand.manual_dep = !ordered && random.chance(8);
      }
      if (operand.tag == TensorArgType::INOUT && task.blocks > 1) task.blocks = 1;
      task.operands.push_back(operand);
    }
    own.insert(own.end(), fresh.begin(), fresh.end());
    if (t > 0 && task.kind != BodyTask::kAlloc && random.chance(30))
      task.after.push_back(static_cast<int>(random.number(0, static_cast<std::uint32_t>(t) - 1)));
    if (task.kind == BodyTask::kVector || task.kind == BodyTask::kMatrix) {
      for (std::uint32_t s = random.number(0, 2); s > 0; --s)
        task.scalars.push_back(static_cast<int>(random.number(0, static_cast<std::uint32_t>(body.scalars))) - 1);
    }
    body.tasks.push_back(task);
  }
  return body;
}

Place random_place(test::Random& random, int boundary, bool ordered, bool runtime_memory) {
  Place place{};
  const int half = kBuffers / 2;
  if (ordered) {
    place.buffer =
        static_cast<int>(random.number(0, static_cast<std::uint32_t>(half) - 1)) + (boundary % 2 == 0 ? 0 : half);
    if (boundary % 2 != 0 && runtime_memory && random.chance(30)) place.buffer = kBuffers;
  } else {
    place.buffer = static_cast<int>(random.number(0, kBuffers + (runtime_memory ? kRuntimeBuffers : 0) - 1));
  }
  place.first = random.number(0, kSide / 2);
  place.rows = !random.chance(8);
  return place;
}

Program random_program(test::Random& random, bool ordered) {
  Program program;
  for (std::uint32_t b = random.number(1, 3); b > 0; --b) program.bodies.push_back(random_body(random, ordered));
  for (std::uint32_t s = random.number(4, 16); s > 0; --s) {
    Step step;
    step.manual = !ordered && random.chance(6);
    if (random.chance(70)) {
      step.body = static_cast<int>(random.number(0, static_cast<std::uint32_t>(program.bodies.size()) - 1));
      const Body& body = program.bodies[static_cast<std::size_t>(step.body)];
      for (int b = 0; b < body.tensors; ++b) step.places.push_back(random_place(random, b, ordered, true));
      for (int v = 0; v < body.scalars; ++v) step.scalars.push_back(random.number(1, 3));
    } else {
      for (std::uint32_t o = random.number(0, 3); o > 0; --o) {
        const int parity = static_cast<int>(random.number(0, 1));
        step.places.push_back(random_place(random, parity, ordered, true));
        step.tags.push_back(ordered ? (parity == 0 ? TensorArgType::INPUT : TensorArgType::INOUT) : random.pick(kTags));
      }
      step.after_last_use = random.chance(25);
    }
    program.steps.push_back(step);
  }
  return program;
}

ChipTensor view_of(const ChipTensor& tensor, int view) {
  const std::uint32_t rows = tensor.shapes[0], columns = tensor.shapes[1];
  switch (view) {
    case 1: {
      const std::uint32_t shape[] = {1, columns}, offset[] = {rows - 1, 0};
      return tensor.view(shape, offset);
    }
    case 2: {
      const std::uint32_t shape[] = {rows, columns / 2}, offset[] = {0, columns / 2};
      return tensor.view(shape, offset);
    }
    case 3: return tensor.transpose(0, 1);
    case 4: return tensor.slice(1, 1, columns, 2);
    case 5: {
      const std::uint32_t flat[] = {rows * columns};
      return tensor.is_contiguous ? tensor.reshape(flat, 1) : tensor;
    }
    default: return tensor;
  }
}

// What a kernel needs to know of its task; the same for every use.
struct TaskCode {
  std::vector<TensorArgType> tags;
  int scalars = 0;
  std::uint64_t number = 0;
};

template <typename Visit> void for_each_element(const ChipTensor& tensor, Visit visit) {
  std::uint32_t index[MAX_TENSOR_DIMS] = {};
  for (std::uint64_t left = tensor.numel(); left > 0; --left) {
    visit(tensor.data_as<std::int32_t>()[tensor.compute_flat_offset(index, tensor.ndims)]);
    for (std::uint32_t d = tensor.ndims; d-- > 0 && ++index[d] == tensor.shapes[d];) index[d] = 0;
  }
}

// Reads what it may read and writes what it may write, so that every byte depends on all that came before it. Block 0 does
// the work: other blocks would only repeat it.
template <int kTensors> void kernel(std::int64_t* args) {
  const auto& code = *reinterpret_cast<const TaskCode*>(args[kTensors]);
  if (get_block_idx(args) != 0) return;
  std::uint32_t digest = static_cast<std::uint32_t>(code.number);
  for (int s = 0; s < code.scalars; ++s) digest = digest * 31 + static_cast<std::uint32_t>(args[kTensors + 1 + s]);
  for (int t = 0; t < kTensors; ++t) {
    if (code.tags[static_cast<std::size_t>(t)] != TensorArgType::INPUT) continue;
    for_each_element(*reinterpret_cast<const ChipTensor*>(args[t]),
                     [&](std::int32_t& value) { digest = digest * 31 + static_cast<std::uint32_t>(value); });
  }
  for (int t = 0; t < kTensors; ++t) {
    const TensorArgType tag = code.tags[static_cast<std::size_t>(t)];
    if (tag != TensorArgType::INOUT && tag != TensorArgType::OUTPUT) continue;
    for_each_element(*reinterpret_cast<const ChipTensor*>(args[t]), [&](std::int32_t& value) {
      const std::uint32_t before = tag == TensorArgType::INOUT ? static_cast<std::uint32_t>(value) : 0;
      value = static_cast<std::int32_t>(before * 31 + ++digest);
    });
  }
}
void idle(std::int64_t*) {}

// One way to run a program.
class Execution {
 public:
  Execution(const Program& program, bool graphs, bool ordered) : program_(program), graphs_(graphs) {
    void (*const works[])(std::int64_t*) = {kernel<0>, kernel<1>, kernel<2>, kernel<3>, kernel<4>};
    for (int t = 0; t <= 4; ++t) rig_.kernels.functions[t] = ordered ? works[t] : idle;
    codes_.resize(program.bodies.size() + 1);
    for (std::size_t b = 0; b < program.bodies.size(); ++b) {
      for (const BodyTask& task : program.bodies[b].tasks) {
        TaskCode code;
        for (const Operand& operand : task.operands) code.tags.push_back(operand.tag);
        code.scalars = static_cast<int>(task.scalars.size());
        code.number = b * 100 + codes_[b].size();
        codes_[b].push_back(code);
      }
    }
    for (const Step& step : program.steps) codes_.back().push_back({step.tags, 0, 7});
  }

  void run() {
    order.clear();
    ends_.clear();
    memory.assign(kBuffers, std::vector<std::int32_t>(kSide * kSide));
    for (std::size_t b = 0; b < kBuffers; ++b) {
      for (std::uint32_t k = 0; k < kSide * kSide; ++k) memory[b][k] = static_cast<std::int32_t>(b * 1000 + k);
    }
    ASSERT_EQ(rig_.run([this](const Ops& ops) { submit(ops); }), 0) << rig_.text();
  }

  // By task, in the order of submission: the tasks it depends on; -1: the end of a use.
  std::vector<std::set<int>> edges() const {
    std::map<std::uint64_t, int> place;
    for (std::size_t n = 0; n < order.size(); ++n) place[order[n].raw] = static_cast<int>(n);
    std::vector<std::set<int>> result;
    for (const PTO2TaskId id : order) {
      const graph::Task& task = rig_.graph().task_of(id);
      std::set<int>& producers = result.emplace_back();
      for (std::uint32_t e = 0; e < task.edge_count; ++e) {
        const auto at = place.find(task.producers()[e].raw);
        producers.insert(at != place.end() ? at->second : -1);
      }
    }
    return result;
  }
  // The end of each use comes after all its tasks.
  void expect_complete_ends() const {
    for (const auto& [end, tasks] : ends_) {
      std::set<std::uint64_t> before;
      std::vector<PTO2TaskId> open{end};
      while (!open.empty()) {
        const graph::Task& task = rig_.graph().task_of(open.back());
        open.pop_back();
        for (std::uint32_t e = 0; e < task.edge_count; ++e) {
          if (before.insert(task.producers()[e].raw).second) open.push_back(task.producers()[e]);
        }
      }
      for (const PTO2TaskId id : tasks)
        EXPECT_TRUE(before.count(id.raw)) << "a use ends before its task " << id.local();
    }
  }
  const WholeGraphRuntime::GraphCounts& counts() { return rig_.front_end().graph_counts(); }

  std::vector<PTO2TaskId> order;
  std::vector<std::vector<std::int32_t>> memory;

 private:
  ChipTensor tensor_at(const Place& place) {
    const std::uint32_t whole[] = {kSide, kSide};
    const ChipTensor matrix =
        place.buffer < kBuffers
            ? make_tensor_external(memory[static_cast<std::size_t>(place.buffer)].data(), whole, 2, DataType::INT32)
            : runtime_memory_[static_cast<std::size_t>(place.buffer - kBuffers)];
    const std::uint32_t by_rows[] = {kSide / 2, kSide}, by_columns[] = {kSide, kSide / 2};
    const std::uint32_t rows[] = {place.first, 0}, columns[] = {0, place.first};
    return place.rows ? matrix.view(by_rows, rows) : matrix.view(by_columns, columns);
  }

  void submit(const Ops& ops) {
    const std::uint32_t whole[] = {kSide, kSide};
    TensorCreateInfo info(whole, 2, DataType::INT32);
    info.set_initial_value(5);
    CoreTaskArgs first;
    for (int b = 0; b < kRuntimeBuffers; ++b) first.add_output(info);
    const TaskOutputTensors allocated = ops.alloc(first);
    order.push_back(allocated.task_id());
    runtime_memory_ = {allocated.get_ref(0), allocated.get_ref(1)};
    PTO2TaskId last_use = PTO2TaskId::invalid();
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      std::vector<ChipTensor> tensors;
      for (const Place& place : step.places) tensors.push_back(tensor_at(place));
      if (step.manual) ops.open(PTO2ScopeMode::MANUAL);
      if (step.body < 0) {
        CoreTaskArgs args;
        for (std::size_t o = 0; o < tensors.size(); ++o) add(args, step.tags[o], tensors[o]);
        args.add_scalar(reinterpret_cast<std::uint64_t>(&codes_.back()[s]));
        if (step.after_last_use && last_use.is_valid()) args.set_dependencies(&last_use, 1);
        order.push_back(ops.vector(args.tensor_count(), args).task_id());
      } else {
        const Body& body = program_.bodies[static_cast<std::size_t>(step.body)];
        CoreTaskArgs boundary;
        for (std::size_t b = 0; b < tensors.size(); ++b) add(boundary, body.tags[b], tensors[b]);
        for (const std::uint64_t& scalar : step.scalars) boundary.add_scalar(scalar);
        const std::uint32_t first_node = rig_.graph().task_count(graph::kNodeRing);
        if (!graphs_) {
          call(ops, step.body, boundary);
        } else {
          last_use =
              ops.graph(static_cast<std::uint64_t>(step.body) + 1, boundary, [&] { call(ops, step.body, boundary); })
                  .task_id;
          for (std::uint32_t n = first_node; n < rig_.graph().task_count(graph::kNodeRing); ++n) {
            order.push_back(PTO2TaskId::make(graph::kNodeRing, n));
            ends_[last_use].push_back(order.back());
          }
        }
      }
      if (step.manual) ops.close();
    }
  }

  static void add(CoreTaskArgs& args, TensorArgType tag, const ChipTensor& tensor) {
    switch (tag) {
      case TensorArgType::INPUT: args.add_input(tensor); break;
      case TensorArgType::INOUT: args.add_inout(tensor); break;
      case TensorArgType::NO_DEP: args.add_no_dep(tensor); break;
      default: args.add_output(tensor); break;
    }
  }

  // The body itself.
  void call(const Ops& ops, int number, const CoreTaskArgs& boundary) {
    const Body& body = program_.bodies[static_cast<std::size_t>(number)];
    std::vector<std::vector<ChipTensor>> results(body.tasks.size());
    std::vector<PTO2TaskId> ids;
    std::uint64_t derived = 0;
    if (body.looks_at_scalar) {
      boundary.note_scalar_read(0);
      derived = boundary.scalars()[0] * 2;
    }
    const std::uint32_t shape[] = {4, 4};
    for (std::size_t t = 0; t < body.tasks.size(); ++t) {
      const BodyTask& task = body.tasks[t];
      CoreTaskArgs args;
      std::vector<ChipTensor> tensors(task.operands.size());
      std::vector<TensorCreateInfo> infos(task.operands.size(), TensorCreateInfo(shape, 2, DataType::INT32));
      for (std::size_t o = 0; o < task.operands.size(); ++o) {
        const Operand& operand = task.operands[o];
        if (operand.tag == TensorArgType::OUTPUT) {
          if (operand.initial) infos[o].set_initial_value(static_cast<std::int32_t>(t + o));
          args.add_output(infos[o]);
          continue;
        }
        tensors[o] =
            view_of(operand.boundary >= 0
                        ? boundary.tensor(operand.boundary).ref()
                        : results[static_cast<std::size_t>(operand.task)][static_cast<std::size_t>(operand.output)],
                    operand.view);
        tensors[o].manual_dep = operand.manual_dep;
        add(args, operand.tag, tensors[o]);
      }
      std::vector<PTO2TaskId> after;
      for (const int earlier : task.after) after.push_back(ids[static_cast<std::size_t>(earlier)]);
      args.set_dependencies(after.data(), static_cast<std::uint32_t>(after.size()));
      const bool runs = task.kind == BodyTask::kVector || task.kind == BodyTask::kMatrix;
      if (runs) args.add_scalar(reinterpret_cast<std::uint64_t>(&codes_[static_cast<std::size_t>(number)][t]));
      for (const int scalar : task.scalars) {
        if (scalar < 0) {
          args.add_scalar(derived);
        } else {
          boundary.note_scalar_read(scalar);
          args.add_scalars(&boundary.scalars()[scalar], 1);
        }
      }
      args.launch_spec.block_count_ = static_cast<std::int16_t>(task.blocks);
      if (task.manual) ops.open(PTO2ScopeMode::MANUAL);
      const int kernel = args.tensor_count();
      const TaskOutputTensors out = task.kind == BodyTask::kAlloc    ? ops.alloc(args)
                                    : task.kind == BodyTask::kDummy  ? ops.dummy(args)
                                    : task.kind == BodyTask::kMatrix ? ops.submit({kernel, -1, -1}, args)
                                                                     : ops.vector(kernel, args);
      if (task.manual) ops.close();
      ids.push_back(out.task_id());
      if (!graphs_) order.push_back(out.task_id());
      results[t].resize(task.operands.size());
      for (std::size_t o = 0, k = 0; o < task.operands.size(); ++o) {
        if (task.operands[o].tag == TensorArgType::OUTPUT) results[t][o] = out.get_ref(static_cast<std::uint32_t>(k++));
      }
    }
  }

  const Program& program_;
  const bool graphs_;
  FrontEndRig<WholeGraphRuntime> rig_;
  std::vector<std::vector<TaskCode>> codes_;  // by body, then of the plain tasks
  std::vector<ChipTensor> runtime_memory_;
  struct ById {
    bool operator()(PTO2TaskId a, PTO2TaskId b) const { return a.raw < b.raw; }
  };
  std::map<PTO2TaskId, std::vector<PTO2TaskId>, ById> ends_;  // tasks by the id of their use
};

std::string text_of(const std::set<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += std::to_string(number) + " ";
  return text;
}

struct Totals {
  std::uint32_t replayed = 0, recorded = 0, plain = 0, unlike = 0;
};

// Runs the program twice as graphs: the second time, kept definitions are used.
void expect_equal(const Program& program, bool ordered, Totals* totals) {
  Execution plain(program, false, ordered), graphs(program, true, ordered);
  plain.run();
  const std::vector<std::set<int>> expected = plain.edges();
  for (int round = 0; round < 2; ++round) {
    graphs.run();
    if (testing::Test::HasFatalFailure()) return;
    graphs.expect_complete_ends();
    std::vector<std::set<int>> edges = graphs.edges();
    ASSERT_EQ(edges.size(), expected.size());
    for (std::size_t t = 0; t < edges.size(); ++t) {
      edges[t].erase(-1);  // of plain tasks that depend on a use
      ASSERT_EQ(text_of(edges[t]), text_of(expected[t]))
          << "round " << round << ", task " << t << " of " << edges.size() << " (first: as graphs, second: plain)";
    }
    if (ordered) {
      for (std::size_t b = 0; b < plain.memory.size(); ++b)
        ASSERT_EQ(graphs.memory[b], plain.memory[b]) << "round " << round << ", buffer " << b;
    }
    if (round == 1) {
      EXPECT_EQ(graphs.counts().made, 0u) << "a definition was made again";
    }
    totals->replayed += graphs.counts().replayed;
    totals->recorded += graphs.counts().recorded;
    totals->plain += graphs.counts().plain;
  }
}

TEST(ModelReplay, HasTheEdgesOfPlainSubmission) {
  Totals totals;
  test::for_each_seed(150, [&](std::uint64_t seed) {
    test::Random random(seed);
    expect_equal(random_program(random, false), false, &totals);
  });
  if (std::getenv("SIMPLER_TEST_SEED") == nullptr) {  // else a test of something else
    EXPECT_GT(totals.replayed, totals.recorded / 2);
    EXPECT_GT(totals.plain, totals.recorded / 4);
  }
}

TEST(ModelReplay, HasTheResultsOfPlainSubmission) {
  Totals totals;
  test::for_each_seed(100, [&](std::uint64_t seed) {
    test::Random random(seed);
    expect_equal(random_program(random, true), true, &totals);
  });
  if (std::getenv("SIMPLER_TEST_SEED") == nullptr) {
    EXPECT_GT(totals.replayed, totals.recorded / 2);
  }
}

}  // namespace
}  // namespace simpler::model
