// RunRig: a graph, an executor and kernels that are C++ closures, for tests that run tasks.
//
// What      run(submit) begins a run, calls submit() on this thread, closes all scopes and waits for the end. task() and
//           the others submit, waiting for room as a front end does. A kernel is any callable that takes the argument
//           array; it is borrowed by pointer, so it outlives the run: bodies are kept by the rig until the next run.
// Threads   One thread submits; bodies run on the executor's.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "executor/executor.h"
#include "unit/support/graph_rig.h"

namespace simpler::executor::test {

using graph::Shape;
using graph::test::Answer;
using graph::test::GraphRig;

class RunRig {
 public:
  using Body = std::function<void(std::int64_t* args)>;
  static constexpr int kMostTensors = 4;

  RunRig(int clusters, int threads, std::uint32_t window = 64, std::uint64_t heap = 64 * 1024,
         std::uint32_t dep_pool = 1024)
      : rig(window, heap, dep_pool), executor(clusters, threads) {
    fill_table(std::make_integer_sequence<int, kMostTensors + 1>());
    EXPECT_TRUE(executor.reserve(rig.graph.capacity()));
  }

  // True if the run succeeded. The failure is in `latch`.
  template <typename Submit> bool run(Submit submit) {
    bodies_.clear();
    latch.clear();
    rig.begin();
    executor.begin_run(rig.graph, latch, kernels_);
    submit();
    while (rig.graph.scopes().any()) rig.graph.scopes().close();
    drain();
    EXPECT_TRUE(executor.end_run()) << "a kernel does not return";
    while (latch.raised() && !latch.ready()) std::this_thread::yield();
    return !latch.raised();
  }

  Answer task(Body body, Shape shape = Shape::kAiv, int blocks = 1) {
    CoreTaskArgs args;
    return task(args, std::move(body), shape, blocks);
  }
  // `args` holds tensors only.
  Answer task(CoreTaskArgs& args, Body body, Shape shape = Shape::kAiv, int blocks = 1) {
    bodies_.push_back(std::move(body));
    const int kernel = args.tensor_count();
    EXPECT_LE(kernel, kMostTensors);
    args.add_scalar(reinterpret_cast<std::uint64_t>(&bodies_.back()));
    const auto id = static_cast<std::int16_t>(kernel);
    const graph::TaskSpec aic{Shape::kAic, {id, -1, -1}, blocks, false}, aiv{Shape::kAiv, {-1, id, -1}, blocks, false};
    return submit(shape == Shape::kAic ? aic : aiv, args);
  }
  // A task whose blocks take several lanes of a cluster (`lanes`: bit 0 AIC, 1 AIV0, 2 AIV1), or a cohort.
  Answer wide(CoreTaskArgs& args, Body body, std::uint8_t lanes, int blocks, bool together = false) {
    bodies_.push_back(std::move(body));
    const auto id = static_cast<std::int16_t>(args.tensor_count());
    EXPECT_LE(id, kMostTensors);
    args.add_scalar(reinterpret_cast<std::uint64_t>(&bodies_.back()));
    graph::TaskSpec spec{Shape::kMix, {-1, -1, -1}, blocks, together && blocks > 1};
    for (int lane = 0; lane < kLanes; ++lane) {
      if (lanes >> lane & 1) spec.kernels[lane] = id;
    }
    if (!spec.sync_start && lanes == 1) spec.shape = Shape::kAic;
    if (!spec.sync_start && lanes == 2) spec.shape = Shape::kAiv;
    return submit(spec, args);
  }
  Answer dummy(const CoreTaskArgs& args) { return submit({Shape::kDummy, {-1, -1, -1}, 0, false}, args); }

  // Waits for room; not taken if the run has failed or there will never be room.
  Answer submit(const graph::TaskSpec& spec, const CoreTaskArgs& args) {
    for (;;) {
      Answer answer;
      if (latch.raised()) return answer;
      answer.outcome = rig.graph.submit(spec, args, &answer.submitted, &answer.shortage, &answer.refusal);
      if (answer.taken()) {
        answer.id = answer.submitted.task->id;
        if (answer.submitted.ready) executor.push(answer.submitted.record);
      }
      if (answer.outcome != graph::Outcome::kShort || !wait_for_room(answer.shortage)) return answer;
    }
  }

  GraphRig rig;
  graph::ErrorLatch latch;
  Executor executor;

 private:
  template <int Tensors> static void kernel(std::int64_t* args) {
    (*reinterpret_cast<const Body*>(args[Tensors]))(args);
  }
  template <int... Tensors> void fill_table(std::integer_sequence<int, Tensors...>) {
    ((kernels_.functions[Tensors] = &kernel<Tensors>), ...);
  }

  bool wait_for_room(const graph::Shortage& shortage) {
    if (rig.graph.reclaim_all()) return true;
    if (shortage.hopeless() || rig.graph.held_by_open_scope(shortage.ring)) return false;
    wait_for_oldest(shortage.ring);
    return true;
  }
  void drain() {
    while (!latch.raised()) {
      rig.graph.reclaim_all();
      if (rig.graph.all_reclaimed()) return;
      wait_for_oldest(0);
    }
  }
  void wait_for_oldest(int first_ring) {
    for (int i = 0; i < graph::kRings; ++i) {
      std::uint32_t slot;
      if (!rig.graph.oldest_pending((first_ring + i) % graph::kRings, 16, &slot)) continue;
      executor.wait_for(slot, Executor::Clock::now() + std::chrono::hours(1),
                        [&] { return rig.graph.reclaimable(slot); });
      return;
    }
  }

  KernelTable kernels_;
  std::deque<Body> bodies_;
};

}  // namespace simpler::executor::test
