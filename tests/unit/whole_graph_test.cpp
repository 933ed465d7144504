// The front end host_build_graph: what it allows before the graph runs, its limits, and when graphs are recorded.
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "abi/error_codes.h"
#include "frontend/streaming/streaming_runtime.h"
#include "frontend/whole_graph/whole_graph_runtime.h"
#include "unit/support/front_end_rig.h"

namespace simpler::frontend {
namespace {

using abi::ErrorCode;
using test::FrontEndRig;
using test::Ops;

constexpr int kElements = 8;

// Kernel 0 adds its scalar to the elements of its tensor; kernel 1 does nothing.
class WholeGraph : public testing::Test {
 protected:
  WholeGraph() {
    rig.kernels.functions[0] = [](std::int64_t* args) {
      const auto& tensor = *reinterpret_cast<const ChipTensor*>(args[0]);
      for (std::uint32_t k = 0; k < tensor.shapes[0]; ++k)
        tensor.data_as<std::int32_t>()[tensor.start_offset + k] += static_cast<std::int32_t>(args[1]);
    };
    rig.kernels.functions[1] = [](std::int64_t*) {};
    const std::uint32_t shape[] = {kElements};
    for (std::size_t t = 0; t < memory.size(); ++t) {
      memory[t].assign(kElements, 0);
      tensors.push_back(make_tensor_external(memory[t].data(), shape, 1, DataType::INT32));
      rig.args().add_tensor(tensors.back());
    }
  }

  // tensor += value
  static PTO2TaskId add(const Ops& ops, const ChipTensor& tensor, std::uint64_t value) {
    CoreTaskArgs args;
    args.add_inout(tensor);
    args.add_scalar(value);
    return ops.vector(0, args).task_id();
  }
  static void count_and_add(const Ops& ops, const CoreTaskArgs& boundary, int* calls) {
    ++*calls;
    CoreTaskArgs args;
    args.add_inout(boundary.tensor(0).ref());
    args.add_scalars(boundary.scalars(), 1);
    ops.vector(0, args);
  }
  // A use of a graph that adds a scalar to a tensor.
  SimplerGraphBlock use(const Ops& ops, const ChipTensor& tensor, std::uint64_t value, std::uint64_t key = 1) {
    CoreTaskArgs boundary;
    boundary.add_inout(tensor);
    boundary.add_scalar(value);
    return ops.graph(key, boundary, [&] { count_and_add(ops, boundary, &calls); });
  }
  void expect_failure(ErrorCode code, const std::string& words, const std::function<void(const Ops&)>& body) {
    EXPECT_EQ(rig.run(body), static_cast<int>(code));
    EXPECT_NE(std::string(rig.text()).find(words), std::string::npos) << rig.text();
    memory[0].assign(kElements, 0);
    EXPECT_EQ(rig.run([&](const Ops& ops) { add(ops, tensors[0], 3); }), 0) << "after the failure: " << rig.text();
    EXPECT_EQ(memory[0][0], 3);
  }

  FrontEndRig<WholeGraphRuntime> rig;
  std::array<std::vector<std::int32_t>, 3> memory;
  std::vector<ChipTensor> tensors;
  int calls = 0;
};

TEST_F(WholeGraph, NothingRunsBeforeTheOrchestrationEnds) {
  std::atomic<bool> ended{false};
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    CoreTaskArgs args;
    args.add_inout(tensors[0]);
    args.add_scalar(reinterpret_cast<std::uint64_t>(&ended));
    ops.vector(2, args);
    EXPECT_TRUE(ops.failed());  // kernel 2 does not exist
  }),
            static_cast<int>(ErrorCode::INVALID_ARGS));
  static std::atomic<bool> early{false};
  rig.kernels.functions[2] = [](std::int64_t* args) {
    if (!reinterpret_cast<std::atomic<bool>*>(args[1])->load()) early = true;
  };
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    CoreTaskArgs args;
    args.add_inout(tensors[0]);
    args.add_scalar(reinterpret_cast<std::uint64_t>(&ended));
    for (int n = 0; n < 100; ++n) ops.vector(2, args);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time enough to be early
    ended = true;
  }),
            0);
  EXPECT_FALSE(early);
}

TEST_F(WholeGraph, ARunWithoutTasksEnds) {
  EXPECT_EQ(rig.run([](const Ops&) {}), 0);
  EXPECT_EQ(rig.run([&](const Ops& ops) { ops.set(tensors[0], {2}, 7); }), 0);
  EXPECT_EQ(memory[0][2], 7);
  EXPECT_EQ(rig.run([](const Ops& ops) { ops.dummy(CoreTaskArgs()); }), 0);
}

TEST_F(WholeGraph, DummiesThatAreReadyFromTheStartReleaseTheirConsumers) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    CoreTaskArgs first;
    PTO2TaskId before = ops.dummy(first).task_id();
    for (int n = 0; n < 50; ++n) {
      CoreTaskArgs args;
      args.set_dependencies(&before, 1);
      if (n % 2 == 0) args.add_inout(tensors[0]);
      before = ops.dummy(args).task_id();
    }
    CoreTaskArgs last;
    last.add_inout(tensors[0]);
    last.add_scalar(std::uint64_t{4});
    last.set_dependencies(&before, 1);
    ops.vector(0, last);
  }),
            0);
  EXPECT_EQ(memory[0][0], 4);
}

TEST_F(WholeGraph, ElementsOfEntryTensorsAreWhatTasksFind) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    memory[0][1] = 10;
    EXPECT_EQ(ops.get(tensors[0], {1}), 10u);
    add(ops, tensors[1], 5);
    ops.set(tensors[0], {1}, 20);
    CoreTaskArgs args;
    args.add_input(tensors[0]);
    ops.vector(1, args);
    ops.set(tensors[0], {1}, 30);  // only read by tasks: still allowed
    add(ops, tensors[0], 1);
  }),
            0)
      << rig.text();
  EXPECT_EQ(memory[0][1], 31);
}

TEST_F(WholeGraph, ElementsThatATaskWritesAreRefusedAtOnce) {
  expect_failure(ErrorCode::INVALID_ARGS, "has not run yet", [&](const Ops& ops) {
    add(ops, tensors[0], 1);
    ops.get(tensors[0], {0});
  });
  expect_failure(ErrorCode::INVALID_ARGS, "set_tensor_data: task 0", [&](const Ops& ops) {
    add(ops, tensors[0], 1);
    ops.set(tensors[0], {0}, 1);
  });
}

TEST_F(WholeGraph, OtherElementsAreRefusedAtOnce) {
  const std::uint32_t shape[] = {kElements};
  expect_failure(ErrorCode::INVALID_ARGS, "only entry tensors", [&](const Ops& ops) {
    CoreTaskArgs args;
    const TensorCreateInfo info(shape, 1, DataType::INT32);
    args.add_output(info);
    const TaskOutputTensors out = ops.alloc(args);
    ops.get(out.get_ref(0), {0});
  });
  std::int32_t outside[kElements] = {};
  expect_failure(ErrorCode::INVALID_ARGS, "no entry tensor",
                 [&](const Ops& ops) { ops.get(make_tensor_external(outside, shape, 1, DataType::INT32), {0}); });
  ChipTensor device = make_tensor_external(outside, shape, 1, DataType::INT32, false, 0, AddressSpace::DEVICE);
  rig.args().add_tensor(device);
  expect_failure(ErrorCode::INVALID_ARGS, "device memory", [&](const Ops& ops) { ops.get(device, {0}); });
}

TEST_F(WholeGraph, WhatDoesNotFitFailsAtOnceWithItsCode) {
  rig.rings().ring_task_window[0] = 16;
  rig.rings().ring_heap[0] = 16 * 1024;
  expect_failure(ErrorCode::SCOPE_DEADLOCK, "window of 16", [&](const Ops& ops) {
    for (int n = 0; n < 20; ++n) add(ops, tensors[0], 1);
  });
  expect_failure(ErrorCode::FLOW_CONTROL_DEADLOCK, "task window", [&](const Ops& ops) {
    for (int n = 0; n < 20; ++n) {
      ops.open(PTO2ScopeMode::AUTO);  // closing a scope gives nothing back
      add(ops, tensors[0], 1);
      ops.close();
    }
  });
  expect_failure(ErrorCode::HEAP_RING_DEADLOCK, "output heap has no room", [&](const Ops& ops) {
    const std::uint32_t shape[] = {4000};
    const TensorCreateInfo info(shape, 1, DataType::UINT8);
    for (int n = 0; n < 8; ++n) {
      CoreTaskArgs args;
      args.add_output(info);
      ops.vector(1, args);
    }
  });
}

TEST_F(WholeGraph, ATaskHasAtMost128ProducersAnd32767Lanes) {
  const auto readers_of = [&](const Ops& ops, int producers) {
    std::vector<PTO2TaskId> ids;
    for (int n = 0; n < producers; ++n) ids.push_back(ops.vector(1, CoreTaskArgs()).task_id());
    CoreTaskArgs args;
    args.set_dependencies(ids.data(), static_cast<std::uint32_t>(ids.size()));
    ops.vector(1, args);
  };
  EXPECT_EQ(rig.run([&](const Ops& ops) { readers_of(ops, 128); }), 0);
  expect_failure(ErrorCode::DEP_POOL_OVERFLOW, "129 more are needed", [&](const Ops& ops) { readers_of(ops, 129); });
  const auto wide = [&](const Ops& ops, int blocks) {
    CoreTaskArgs args;
    args.launch_spec.block_count_ = static_cast<std::int16_t>(blocks);
    ops.submit({1, 1, 1}, args);
  };
  EXPECT_EQ(rig.run([&](const Ops& ops) { wide(ops, 10922); }), 0);
  expect_failure(ErrorCode::INVALID_ARGS, "at most 32767", [&](const Ops& ops) { wide(ops, 10923); });
  expect_failure(ErrorCode::INVALID_ARGS, "at least one block", [&](const Ops& ops) { wide(ops, 0); });
}

TEST_F(WholeGraph, AnEarlierRunLeavesNothingBehind) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(rig.run([&](const Ops& ops) {
      for (int n = 0; n < 500; ++n) add(ops, tensors[0], 1);
    }),
              0);
    EXPECT_EQ(memory[0][0], 500 * (round + 1));
  }
}

// ---- recorded graphs ------------------------------------------------------------------------------------------------

TEST_F(WholeGraph, AGraphIsCalledOnceInARunAndReplayedWithOtherTensorsAndScalars) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    const SimplerGraphBlock first = use(ops, tensors[0], 1);
    EXPECT_TRUE(first.execute_block && first.recording && first.task_id.is_valid());
    const SimplerGraphBlock second = use(ops, tensors[1], 20);
    EXPECT_TRUE(!second.execute_block && !second.recording && second.task_id.is_valid());
    use(ops, tensors[1], 300);
  }),
            0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(memory[0][0], 1);
  EXPECT_EQ(memory[1][kElements - 1], 320);
}

TEST_F(WholeGraph, ADefinitionIsKeptFromRunToRunAndMadeOnce) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(rig.run([&](const Ops& ops) {
      for (int n = 0; n < 4; ++n) use(ops, tensors[0], 1);
    }),
              0);
    EXPECT_EQ(calls, round + 1);
    const auto& counts = rig.front_end().graph_counts();
    EXPECT_EQ(counts.made, round == 0 ? 1u : 0u);
    EXPECT_EQ(counts.recorded, 1u);
    EXPECT_EQ(counts.replayed, 3u);
  }
  EXPECT_EQ(memory[0][0], 12);
}

TEST_F(WholeGraph, AUseCountsAsOneTaskOfTheWindow) {
  rig.rings().ring_task_window[0] = 16;
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_inout(tensors[0]);
    for (int n = 0; n < 15; ++n) {
      ops.graph(1, boundary, [&] {
        for (int t = 0; t < 40; ++t) add(ops, boundary.tensor(0).ref(), 1);
      });
    }
  }),
            0)
      << rig.text();
  EXPECT_EQ(memory[0][0], 600);
  expect_failure(ErrorCode::SCOPE_DEADLOCK, "window of 16", [&](const Ops& ops) {
    for (int n = 0; n < 16; ++n) use(ops, tensors[0], 1);
  });
}

TEST_F(WholeGraph, TheIdOfAUseCompletesAfterAllItsTasks) {
  rig.kernels.functions[3] = [](std::int64_t* args) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough for whoever does not wait
    reinterpret_cast<std::atomic<int>*>(args[1])->fetch_add(1);
  };
  static std::atomic<int> seen{0};
  rig.kernels.functions[4] = [](std::int64_t* args) { seen = reinterpret_cast<std::atomic<int>*>(args[0])->load(); };
  std::atomic<int> done{0};
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_input(tensors[0]);
    PTO2TaskId last{};
    for (int n = 0; n < 2; ++n) {
      last = ops.graph(1, boundary,
                       [&] {
                         for (int t = 0; t < 5; ++t) {
                           CoreTaskArgs args;
                           args.add_input(boundary.tensor(0).ref());
                           args.add_scalar(reinterpret_cast<std::uint64_t>(&done));
                           ops.vector(3, args);
                         }
                       })
                 .task_id;
    }
    CoreTaskArgs reader;
    reader.add_scalar(reinterpret_cast<std::uint64_t>(&done));
    reader.set_dependencies(&last, 1);
    ops.vector(4, reader);
  }),
            0);
  EXPECT_GE(seen, 5);
  EXPECT_EQ(done, 10);
}

TEST_F(WholeGraph, ABodyWithoutTasksIsAGraphToo) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_input(tensors[0]);
    PTO2TaskId last{};
    for (int n = 0; n < 3; ++n) last = ops.graph(1, boundary, [] {}).task_id;
    CoreTaskArgs args;
    args.add_inout(tensors[0]);
    args.add_scalar(std::uint64_t{9});
    args.set_dependencies(&last, 1);
    ops.vector(0, args);
  }),
            0);
  EXPECT_EQ(memory[0][0], 9);
}

// What a body may do that makes it unfit for replay: it is called at each use, and the results are right.
class WholeGraphUnfit : public WholeGraph, public testing::WithParamInterface<int> {
 public:
  void body(const Ops& ops, const CoreTaskArgs& boundary) {
    ++calls;
    const ChipTensor& tensor = boundary.tensor(0).ref();
    switch (GetParam()) {
      case 0:  // more tasks than are recorded
        for (std::size_t n = 0; n < graph::kMaxNodes; ++n) ops.vector(1, CoreTaskArgs());
        break;
      case 1: ops.get(tensors[2], {0}); break;
      case 2: ops.set(tensors[2], {0}, 1); break;
      case 3: add(ops, tensors[1], 1); break;  // a tensor from outside the boundary
      case 4: {
        CoreTaskArgs args;
        args.set_dependencies(&before, 1);  // a task outside
        ops.vector(1, args);
        break;
      }
      case 5: {
        CoreTaskArgs args;
        CoreTaskPredicate predicate;
        predicate.operand.tensor = &tensor;
        predicate.op = PredicateOp::GE;
        args.add_inout(tensor);
        args.add_scalar(std::uint64_t{0});
        args.set_predicate(predicate);
        predicate.operand.ndims = 1;
        ops.vector(0, args);
        break;
      }
      default: break;
    }
    add(ops, tensor, 1);
  }
  PTO2TaskId before{};
};
TEST_P(WholeGraphUnfit, IsCalledAtEachUse) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    before = ops.vector(1, CoreTaskArgs()).task_id();
    CoreTaskArgs boundary;
    boundary.add_inout(tensors[0]);
    for (int n = 0; n < 3; ++n) ops.graph(1, boundary, [&] { body(ops, boundary); });
  }),
            0)
      << rig.text();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(memory[0][0], 3);
  EXPECT_EQ(rig.front_end().graph_counts().replayed, 0u);
}
INSTANTIATE_TEST_SUITE_P(Bodies, WholeGraphUnfit, testing::Range(0, 6));

TEST_F(WholeGraph, AGraphInsideAGraphIsPartOfIt) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_inout(tensors[0]);
    for (int n = 0; n < 3; ++n) {
      ops.graph(7, boundary, [&] {
        use(ops, boundary.tensor(0).ref(), 10);
        add(ops, boundary.tensor(0).ref(), 1);
        use(ops, boundary.tensor(0).ref(), 100);
      });
    }
  }),
            0);
  EXPECT_EQ(memory[0][0], 333);
  EXPECT_EQ(calls, 2) << "the inner body is called for the recording of the outer one only";
}

TEST_F(WholeGraph, TheSeventeenthGraphOfARunIsNotRecorded) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    for (int round = 0; round < 2; ++round) {
      for (std::uint64_t key = 1; key <= 20; ++key) use(ops, tensors[0], key, key);
    }
  }),
            0);
  EXPECT_EQ(calls, 16 + 2 * 4);
  EXPECT_EQ(memory[0][0], 2 * 210);
  EXPECT_EQ(rig.front_end().graph_counts().replayed, 16u);
}

TEST_F(WholeGraph, ABoundaryThatCannotBeReplayedIsSubmittedByTheBody) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    const PTO2TaskId before = add(ops, tensors[0], 1);
    const std::uint32_t shape[] = {kElements};
    const TensorCreateInfo info(shape, 1, DataType::INT32);
    for (int n = 0; n < 2; ++n) {
      CoreTaskArgs none, created, waiting;
      created.add_output(info);
      waiting.add_inout(tensors[0]);
      waiting.set_dependencies(&before, 1);
      std::uint64_t key = 1;
      for (CoreTaskArgs* boundary : {&none, &created, &waiting}) {
        ops.graph(key++, *boundary, [&] {
          ++calls;
          add(ops, tensors[0], 1);
        });
      }
    }
  }),
            0);
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(memory[0][0], 7);
}

TEST_F(WholeGraph, BrokenUsesOfGraphsFailWithAReason) {
  expect_failure(ErrorCode::INVALID_ARGS, "was added after a scalar", [&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_scalar(1);
    boundary.add_inout(tensors[0]);
    ops.graph(1, boundary, [&] { ADD_FAILURE() << "the body is called"; });
  });
  expect_failure(ErrorCode::INVALID_ARGS, "without a rt_graph_begin",
                 [&](const Ops& ops) { ops.table().graph_end(ops.runtime()); });
  expect_failure(ErrorCode::INVALID_ARGS, "between rt_graph_begin and rt_graph_end", [&](const Ops& ops) {
    static CoreTaskArgs boundary;
    boundary.reset();
    boundary.add_inout(tensors[0]);
    ops.table().graph_begin(ops.runtime(), 1, boundary, false);
  });
  expect_failure(ErrorCode::INVALID_ARGS, "1 scopes more open", [&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_inout(tensors[0]);
    ops.graph(1, boundary, [&] { ops.open(PTO2ScopeMode::AUTO); });
  });
  expect_failure(ErrorCode::INVALID_ARGS, "rank 2779096485 of at most 5", [&](const Ops& ops) {
    ChipTensor tensor;
    std::memset(static_cast<void*>(&tensor), 0xA5, sizeof tensor);
    CoreTaskArgs boundary;
    boundary.add_inout(tensor);
    ops.graph(1, boundary, [&] { ADD_FAILURE() << "the body is called"; });
  });
  expect_failure(ErrorCode::INVALID_ARGS, "nested deeper than 64", [&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_inout(tensors[0]);
    std::function<void()> body = [&] { ops.graph(1, boundary, body); };
    body();
  });
  expect_failure(ErrorCode::INVALID_ARGS, "does not come after it", [&](const Ops& ops) {
    add(ops, tensors[1], 1);
    CoreTaskArgs boundary;
    boundary.add_inout(tensors[0], tensors[1]);
    ops.graph(1, boundary, [&] {
      CoreTaskArgs args;
      CoreTaskPredicate predicate;
      predicate.operand.tensor = &tensors[1];
      predicate.operand.ndims = 1;
      predicate.op = PredicateOp::GT;
      args.add_inout(tensors[0]);
      args.add_scalar(std::uint64_t{1});
      args.set_predicate(predicate);
      ops.vector(0, args);
    });
  });
}

TEST_F(WholeGraph, WithoutAUseThereIsNoIdOfOne) {
  EXPECT_EQ(rig.run([&](const Ops& ops) { EXPECT_TRUE(use(ops, tensors[0], 1).task_id.is_valid()); }), 0);
  EXPECT_EQ(rig.run([](const Ops& ops) { EXPECT_FALSE(ops.table().graph_commit(ops.runtime()).is_valid()); }), 0);
}

TEST_F(WholeGraph, AReplayThatDoesNotFitFailsAtOnce) {
  rig.rings().ring_heap[0] = 16 * 1024;
  expect_failure(ErrorCode::HEAP_RING_DEADLOCK, "output heap has no room", [&](const Ops& ops) {
    const std::uint32_t shape[] = {1000};
    const TensorCreateInfo info(shape, 1, DataType::INT32);
    CoreTaskArgs boundary;
    boundary.add_input(tensors[0]);
    for (int n = 0; n < 6; ++n) {
      ops.graph(1, boundary, [&] {
        CoreTaskArgs args;
        args.add_input(boundary.tensor(0).ref());
        args.add_output(info);
        ops.vector(1, args);
      });
    }
  });
  expect_failure(ErrorCode::DEP_POOL_OVERFLOW, "list of predecessors", [&](const Ops& ops) {
    CoreTaskArgs boundary;
    boundary.add_input(tensors[0]);
    const auto body = [&] {
      CoreTaskArgs args;
      args.add_input(boundary.tensor(0).ref());
      ops.vector(1, args);
    };
    ops.graph(1, boundary, body);
    for (int n = 0; n < 129; ++n) {  // write-only: none of them covers another
      CoreTaskArgs args;
      args.add_output(tensors[0]);
      ops.vector(1, args);
    }
    ops.graph(1, boundary, body);
  });
}

TEST_F(WholeGraph, TasksOfRecordedGraphsHaveALimitOfTheirOwn) {
  for (const bool replayed : {true, false}) {
    expect_failure(ErrorCode::FLOW_CONTROL_DEADLOCK, "spread the uses of graphs over several runs",
                   [&](const Ops& ops) {
                     CoreTaskArgs boundary;
                     boundary.add_input(tensors[0]);
                     const int tasks = replayed ? 1024 : 1025;  // of a use; more than 1024 are not recorded
                     for (int n = 0; n <= 1024; ++n) {
                       ops.graph(1, boundary, [&] {
                         for (int k = 0; k < tasks; ++k) ops.vector(1, CoreTaskArgs());
                       });
                     }
                   });
  }
}

TEST_F(WholeGraph, TheLowLevelCallsRecordAndReplay) {
  EXPECT_EQ(rig.run([&](const Ops& ops) {
    for (int n = 1; n <= 3; ++n) {
      CoreTaskArgs boundary;
      boundary.add_inout(tensors[0]);
      boundary.add_scalar(static_cast<std::uint64_t>(n));
      const SimplerGraphBlock block = ops.table().graph_begin(ops.runtime(), 5, boundary, false);
      EXPECT_EQ(block.execute_block, n == 1);
      if (!block.execute_block) continue;
      count_and_add(ops, boundary, &calls);
      EXPECT_TRUE(ops.table().graph_end(ops.runtime()));
      EXPECT_TRUE(ops.table().graph_commit(ops.runtime()).is_valid());
    }
  }),
            0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(memory[0][0], 6);
}

TEST(StreamingGraph, TheStreamingRuntimeSaysThatItRecordsNoGraphs) {
  FrontEndRig<StreamingRuntime> rig;
  EXPECT_EQ(rig.run([](const Ops& ops) {
    CoreTaskArgs boundary;
    ops.graph(1, boundary, [] { ADD_FAILURE() << "the body is called"; });
  }),
            static_cast<int>(ErrorCode::INVALID_ARGS));
  EXPECT_NE(std::string(rig.text()).find("host_build_graph only"), std::string::npos) << rig.text();
}

}  // namespace
}  // namespace simpler::frontend
