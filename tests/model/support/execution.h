// Execution: runs a program on graph, executor and many threads, and compares with the model what it does.
//
// What      run() submits the program step by step; its kernels do what the model says. Reported as test failures: an
//           edge that is missing or too many; a lane of a block that runs not once, before its producers have finished, or
//           elsewhere than it should; lanes that wait for each other and do not meet; a core or a cluster's memory that two
//           blocks use at once; a descriptor that changes under its task; and memory that ends otherwise than the model's.
// Lifetime  One execution, one run. It borrows the program.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/support/random_program.h"
#include "model/support/sequential_model.h"
#include "model/support/submission.h"
#include "unit/support/run_rig.h"

namespace simpler::model {

using executor::test::RunRig;
using graph::Shape;
using graph::test::Answer;

// One task as its kernel sees it. Atomics are relaxed throughout, so that only the runtime orders tasks: TSAN then
// reports an edge that orders nothing.
struct Running {
  int task = 0;
  const Step* step = nullptr;
  std::vector<ChipTensor> given;  // descriptors as submitted; of outputs only the shape is known
  std::vector<const Running*> producers;
  bool runs = false;
  std::deque<std::atomic<int>> times;     // by block and lane
  std::deque<std::atomic<int>> clusters;  // by block: where its first lane ran, -1 at first
  std::deque<std::atomic<int>> arrived;   // by block, or of the whole cohort
  std::atomic<int> begun{0};
  std::atomic<int> finished{0};

  // Kernels that will have ended when the task is complete.
  int kernels() const { return runs ? step->runs() : 0; }
};

class Execution {
 public:
  Execution(const Program& program, int threads)
      : program_(program),
        memory_(initial_memory(program)),
        expected_memory_(memory_),
        model_(program, memory_),
        users_(static_cast<std::size_t>(program.clusters * executor::kLanes)),
        rig_(program.clusters, threads, program.window, program.heap, program.dep_pool) {}

  // Returns how many tasks were submitted: all of them, unless the program does not fit into its rings.
  int run() {
    Submissions done(program_, memory_);
    const bool ok = rig_.run([&] {
      for (const Step& step : program_.steps) {
        if (!submit(step, &done)) break;
      }
    });
    EXPECT_TRUE(ok) << rig_.latch.text();
    for (const std::string& problem : problems_) ADD_FAILURE() << problem;
    for (const Running& task : tasks_) {
      for (std::size_t b = 0; b < task.times.size(); ++b) {
        EXPECT_EQ(task.times[b].load(), task.runs ? 1 : 0)
            << "task " << task.task << ", block " << b / executor::kLanes << ", lane " << b % executor::kLanes;
      }
    }
    EXPECT_TRUE(rig_.rig.graph.all_reclaimed());
    for (std::size_t b = 0; b < memory_.size(); ++b) EXPECT_EQ(memory_[b], expected_memory_[b]) << "buffer " << b;
    return static_cast<int>(tasks_.size());
  }

 private:
  // False if there will never be room for it.
  bool submit(const Step& step, Submissions* done) {
    graph::Scopes& scopes = rig_.rig.graph.scopes();
    if (step.kind == Step::kClose) {
      scopes.close();
    } else if (!step.submits()) {
      scopes.open(step.kind == Step::kOpenManual ? PTO2ScopeMode::MANUAL : PTO2ScopeMode::AUTO);
    } else {
      return submit_task(step, done);
    }
    model_.submit(step);
    return true;
  }

  bool submit_task(const Step& step, Submissions* done) {
    if (rig_.rig.graph.scopes().task_count() >= program_.window - 1) return false;
    Submission submission(step, *done);
    model_.submit(step);  // what the task will do must be known before it can start
    const SequentialModel::TaskFacts& facts = model_.tasks().back();
    Running& task = tasks_.emplace_back();
    task.task = static_cast<int>(tasks_.size()) - 1;
    task.step = &step;
    task.runs = facts.runs;
    for (const auto& [producer, kind] : facts.edges)
      task.producers.push_back(&tasks_[static_cast<std::size_t>(producer)]);
    for (int b = 0; b < step.runs(); ++b) task.times.emplace_back(0);
    for (int b = 0; b < step.blocks; ++b) task.clusters.emplace_back(-1);
    for (int b = 0; b < step.blocks; ++b) task.arrived.emplace_back(0);
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      task.given.push_back(submission.given(i) != nullptr ? *submission.given(i) : ChipTensor());
    }

    Answer answer;
    if (step.kind == Step::kTask) {
      answer = rig_.wide(
          submission.args(), [this, &task](std::int64_t* args) { kernel(&task, args); }, step.lanes, step.blocks,
          step.together);
    } else {
      const Shape shape = step.kind == Step::kAlloc ? Shape::kAlloc : Shape::kDummy;
      answer = rig_.submit({shape, {-1, -1, -1}, 0, false}, submission.args());
    }
    if (!answer.taken()) {
      EXPECT_EQ(answer.outcome, graph::Outcome::kShort) << answer.refusal;
      tasks_.pop_back();
      return false;
    }
    expect_edges(task.task, facts.edges, answer, *done);
    done->ids.push_back(answer.id);
    done->tensors.emplace_back(answer.task().tensors(), answer.task().tensors() + answer.task().tensor_count);
    expected_memory_ = model_.external_memory();
    return true;
  }

  // All edges are the model's; those of the model that are missing were met. There may be more to tasks that are over: the
  // graph knows memory by its address, and a task whose turn to be reclaimed has not come may have written there before.
  void expect_edges(int task, const std::map<int, DepFlags>& expected, const Answer& answer, const Submissions& done) {
    std::vector<PTO2TaskId> listed = answer.producers();
    for (const auto& [producer, kind] : expected) {
      const PTO2TaskId id = done.ids[static_cast<std::size_t>(producer)];
      const auto at = std::find(listed.begin(), listed.end(), id);
      if (at == listed.end()) {
        EXPECT_TRUE(rig_.rig.graph.is_complete(id)) << "task " << task << " does not wait for task " << producer;
      } else {
        listed.erase(at);
      }
    }
    for (const PTO2TaskId id : listed) {
      EXPECT_TRUE(rig_.rig.graph.is_complete(id)) << "task " << task << " waits for task " << id.local() << " of ring "
                                                  << static_cast<int>(id.ring()) << ", which it need not wait for";
    }
  }

  void problem(const Running& task, const std::string& text) {
    const std::lock_guard lock(problems_mutex_);
    if (problems_.size() < 20) problems_.push_back("task " + std::to_string(task.task) + ": " + text);
  }

  void kernel(Running* task, std::int64_t* args) {
    const int block = get_block_idx(args);
    if (get_block_num(args) != task->step->blocks || block < 0 || block >= task->step->blocks) {
      return problem(*task, "wrong block " + std::to_string(block) + " of " + std::to_string(get_block_num(args)));
    }
    executor::Core& core = *executor::current_core();
    std::atomic<const Running*>& user = users_[static_cast<std::size_t>(core.index())];
    if (user.exchange(task, std::memory_order_relaxed) != nullptr) problem(*task, "two kernels run on one core");
    if (task->step->cohort() && task->step->meets && task->begun.fetch_add(1, std::memory_order_relaxed) == 0)
      check_reserved(*task);
    const int lane = check_place(task, args, core, block);
    if (lane < 0) return;
    const int place = block * task->step->lane_count() + lane;
    task->times[static_cast<std::size_t>(place)].fetch_add(1, std::memory_order_relaxed);
    for (const Running* producer : task->producers) {
      if (producer->finished.load(std::memory_order_relaxed) != producer->kernels()) {
        problem(*task, "started before task " + std::to_string(producer->task) + " had finished");
      }
    }
    check_descriptors(*task, args, "at its start");
    const std::vector<Argument>& arguments = task->step->arguments;
    std::uint64_t digest = static_cast<std::uint64_t>(task->task);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].tag != TensorArgType::INPUT && arguments[i].tag != TensorArgType::NO_DEP) continue;
      for_each_element(args, i, [&](std::uint8_t* bytes, std::uint64_t width, std::uint64_t) {
        for (std::uint64_t b = 0; b < width; ++b) digest = mix(digest, bytes[b]);
      });
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!writes(arguments[i].tag) && arguments[i].tag != TensorArgType::OUTPUT) continue;
      for_each_element(args, i, [&](std::uint8_t* bytes, std::uint64_t width, std::uint64_t k) {
        if (k % static_cast<std::uint64_t>(task->step->runs()) != static_cast<std::uint64_t>(place)) return;
        for (std::uint64_t b = 0; b < width; ++b) bytes[b] = written_byte(arguments[i].tag, bytes[b], digest, k, b);
      });
    }
    check_descriptors(*task, args, "at its end");
    user.store(nullptr, std::memory_order_relaxed);
    task->finished.fetch_add(1, std::memory_order_relaxed);
  }

  // When the first lane of a cohort begins, there are cores for all of its blocks that no other task uses. None of its lanes
  // ends meanwhile, since they all wait for this one.
  void check_reserved(const Running& task) {
    const Step& step = *task.step;
    const auto clusters = static_cast<std::size_t>(program_.clusters);
    const auto has = [&](std::size_t core) {
      const Running* user = users_[core].load(std::memory_order_relaxed);
      return user == nullptr || user == &task;
    };
    int room = 0;
    for (std::size_t c = 0; c < clusters; ++c) {
      const std::size_t vector = clusters + executor::kVectorLanes * c;
      const bool lanes[] = {has(c), has(vector), has(vector + 1)};
      if (step.lanes == 2) {
        room += lanes[1] + lanes[2];
      } else {
        bool all = true;
        for (int lane = 0; lane < executor::kLanes; ++lane) all = all && (lanes[lane] || (step.lanes >> lane & 1) == 0);
        room += all;
      }
    }
    if (room < step.blocks) problem(task, "its first block began before all had their cores");
  }

  // Returns which of the task's lanes this is, counted among those that it has, or -1 if that cannot be.
  int check_place(Running* task, std::int64_t* args, executor::Core& core, int block) {
    const Step& step = *task->step;
    const bool vector = core.type() == CoreType::AIV;
    if (get_sub_block_id(args) != (vector ? core.lane() : 0)) problem(*task, "a lane has the wrong sub block id");
    if (step.lane_count() == 1) {
      if (vector != (step.lanes == 2)) return problem(*task, "runs on a core of the wrong type"), -1;
      if (step.meets && step.cohort()) meet(task, 0, step.runs());
      return 0;
    }
    const int lane = vector ? 1 + core.lane() : 0;
    if ((step.lanes >> lane & 1) == 0) return problem(*task, "runs on a lane that it does not have"), -1;
    int cluster = -1;
    const auto b = static_cast<std::size_t>(block);
    if (!task->clusters[b].compare_exchange_strong(cluster, core.cluster(), std::memory_order_relaxed) &&
        cluster != core.cluster()) {
      problem(*task, "the lanes of a block run in different clusters");
    }
    auto* shared = static_cast<std::atomic<int>*>(core.shared().piece(1, sizeof(int)));
    const int siblings = 1 + shared->fetch_add(1, std::memory_order_relaxed);
    if (siblings > step.lane_count()) problem(*task, "the memory of its cluster was not cleared");
    if (step.cohort()) {
      if (step.meets) meet(task, 0, step.runs());
    } else if (step.meets) {
      meet(task, b, step.lane_count());
      if (shared->load(std::memory_order_relaxed) != step.lane_count()) problem(*task, "the lanes share no memory");
    }
    return __builtin_popcount(step.lanes & ((1 << lane) - 1));
  }

  // Returns when all have come; they can only if they run at the same time.
  void meet(Running* task, std::size_t place, int all) {
    std::atomic<int>& arrived = task->arrived[place];
    arrived.fetch_add(1, std::memory_order_relaxed);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (arrived.load(std::memory_order_relaxed) < all) {
      if (std::chrono::steady_clock::now() > limit) return problem(*task, "its lanes do not run together");
      std::this_thread::yield();
    }
  }

  // A record that was given away too early holds another task's descriptors.
  void check_descriptors(const Running& task, std::int64_t* args, const char* when) {
    for (std::size_t i = 0; i < task.given.size(); ++i) {
      const auto& seen = *reinterpret_cast<const ChipTensor*>(args[i]);
      const Argument& argument = task.step->arguments[i];
      const bool right = argument.tag == TensorArgType::OUTPUT
                             ? seen.ndims == argument.created.shape.size() && seen.dtype == argument.created.dtype
                             : std::memcmp(&seen, &task.given[i], offsetof(ChipTensor, pad)) == 0;
      if (!right) problem(task, std::string("argument ") + std::to_string(i) + " is not its own " + when);
    }
  }

  template <typename Visit> static void for_each_element(std::int64_t* args, std::size_t argument, Visit visit) {
    const auto& tensor = *reinterpret_cast<const ChipTensor*>(args[argument]);
    const std::uint64_t width = get_element_size(tensor.dtype);
    std::uint32_t index[MAX_TENSOR_DIMS] = {};
    const std::uint64_t count = tensor.numel();
    for (std::uint64_t k = 0; k < count; ++k) {
      visit(tensor.data_as<std::uint8_t>() + tensor.compute_flat_offset(index, tensor.ndims) * width, width, k);
      for (std::uint32_t d = tensor.ndims; d-- > 0 && ++index[d] == tensor.shapes[d];) index[d] = 0;
    }
  }

  const Program& program_;
  std::vector<std::vector<std::uint8_t>> memory_;
  std::vector<std::vector<std::uint8_t>> expected_memory_;  // after the tasks that were taken
  SequentialModel model_;                                   // of those, and of the one that did not fit, if any
  std::deque<Running> tasks_;
  std::deque<std::atomic<const Running*>> users_;  // by core: whose kernel runs there
  std::mutex problems_mutex_;
  std::vector<std::string> problems_;
  RunRig rig_;  // last: it ends before what its kernels use
};

}  // namespace simpler::model
