// The graphs that are timed. Tensors: cells float [kCells][16] (written), times int64 [4] (written), gate int32 [1]
// (written). Scalars: graph, count (tasks, or what the graph counts), in_scope (tasks of one scope), gated (0 or 1).
// times: [0] nanoseconds from the first to the last submission, [1] tasks submitted.
//
// Gated, nothing runs until all is submitted: with one cluster, its only matrix core waits in the gate, and all tasks
// are for matrix cores. The window must hold them all.
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "pto_orchestration_api.h"

namespace {

constexpr uint32_t kCells = 4096;
constexpr uint32_t kLanes = 16;   // floats of a cell: one cache line
constexpr uint32_t kFan = 200;    // producers of one reader
constexpr uint32_t kChains = 16;  // chains that run beside each other
constexpr uint32_t kLeaves = 512;

enum Kernel : int32_t { kEmpty = 0, kGate = 1, kEmptyOnMatrixCore = 2 };

struct Bench {
  const ChipTensor& cells;
  const ChipTensor& gate;
  uint32_t count;
  uint32_t in_scope;
  bool gated;
  int64_t submitted = 0;
};

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

ChipTensor cells_from(const Bench& bench, uint32_t first, uint32_t count = 1) {
  const uint32_t shape[] = {count, kLanes};
  const uint32_t offset[] = {first, 0};
  return bench.cells.view(shape, offset);
}

TensorCreateInfo one_cell() {
  const uint32_t shape[] = {kLanes};
  return TensorCreateInfo(shape, 1, DataType::FLOAT32);
}

TaskOutputTensors submit(Bench& bench, const CoreTaskArgs& task) {
  ++bench.submitted;
  return bench.gated ? rt_submit_aic_task(kEmptyOnMatrixCore, task) : rt_submit_aiv_task(kEmpty, task);
}

// Calls body(n) for n in [0, count), `in_scope` calls in each scope.
template <class Body> void in_scopes(uint32_t count, uint32_t in_scope, Body body) {
  for (uint32_t n = 0; n < count;) {
    PTO2_SCOPE() {
      for (const uint32_t end = std::min(count, n + in_scope); n < end; ++n) body(n);
    }
  }
}

// One empty task without arguments.
void one(Bench& bench) {
  CoreTaskArgs task;
  submit(bench, task);
}

// No task needs another; each reads one tensor and writes memory that the runtime allocates.
void independent(Bench& bench) {
  const TensorCreateInfo info = one_cell();
  in_scopes(bench.count, bench.in_scope, [&](uint32_t) {
    CoreTaskArgs task;
    task.add_input(bench.cells);
    task.add_output(info);
    submit(bench, task);
  });
}

// No task needs another; each writes its own cell.
void independent_cells(Bench& bench) {
  in_scopes(bench.count, bench.in_scope, [&](uint32_t n) {
    const ChipTensor cell = cells_from(bench, n % kCells);
    CoreTaskArgs task;
    task.add_output(cell);
    submit(bench, task);
  });
}

// Each task needs the one before it: they update one tensor in place.
void chain(Bench& bench) {
  const ChipTensor cell = cells_from(bench, 0);
  in_scopes(bench.count, bench.in_scope, [&](uint32_t) {
    CoreTaskArgs task;
    task.add_inout(cell);
    submit(bench, task);
  });
}

// kChains such chains, submitted in turn.
void chains(Bench& bench) {
  in_scopes(bench.count, bench.in_scope, [&](uint32_t n) {
    const ChipTensor cell = cells_from(bench, n % kChains);
    CoreTaskArgs task;
    task.add_inout(cell);
    submit(bench, task);
  });
}

// Binary trees of kLeaves leaves, level by level: node n reads nodes 2n and 2n + 1. One scope for each tree.
void tree(Bench& bench) {
  for (uint32_t done = 0; done < bench.count; done += 2 * kLeaves - 1) {
    PTO2_SCOPE() {
      for (uint32_t node = 2 * kLeaves; --node > 0;) {
        const ChipTensor cell = cells_from(bench, node);
        const uint32_t child = node < kLeaves ? 2 * node : 0;
        const ChipTensor left = cells_from(bench, child);
        const ChipTensor right = cells_from(bench, child + 1);
        CoreTaskArgs task;
        if (child != 0) task.add_input(left, right);
        task.add_output(cell);
        submit(bench, task);
      }
    }
  }
}

// `width` tasks write a cell each, one task reads them all; then the next cells. One scope for each group.
void fan_in_of(Bench& bench, uint32_t width) {
  uint32_t first = 0;
  for (uint32_t done = 0; done < bench.count; done += width + 1) {
    first = first + width <= kCells ? first : 0;
    PTO2_SCOPE() {
      for (uint32_t n = 0; n < width; ++n) {
        const ChipTensor cell = cells_from(bench, first + n);
        CoreTaskArgs task;
        task.add_output(cell);
        submit(bench, task);
      }
      const ChipTensor all = cells_from(bench, first, width);
      CoreTaskArgs task;
      task.add_input(all);
      submit(bench, task);
    }
    first += width;
  }
}
void fan_in(Bench& bench) { fan_in_of(bench, kFan); }

// Every cell of the buffer is written by a task of its own, then one task reads the buffer whole.
void tiles(Bench& bench) { fan_in_of(bench, kCells); }

// Four nested scopes around each task.
void nested_scopes(Bench& bench) {
  for (uint32_t n = 0; n < bench.count; ++n) {
    const ChipTensor cell = cells_from(bench, n % kCells);
    PTO2_SCOPE() {
      PTO2_SCOPE() {
        PTO2_SCOPE() {
          PTO2_SCOPE() {
            CoreTaskArgs task;
            task.add_output(cell);
            submit(bench, task);
          }
        }
      }
    }
  }
}

// Two inputs and an output that the runtime allocates; the inputs come from outside the run.
void two_inputs(Bench& bench) {
  const TensorCreateInfo info = one_cell();
  const ChipTensor left = cells_from(bench, 0);
  const ChipTensor right = cells_from(bench, 1);
  in_scopes(bench.count, bench.in_scope, [&](uint32_t) {
    CoreTaskArgs task;
    task.add_input(left, right);
    task.add_output(info);
    submit(bench, task);
  });
}

// The same, but the inputs are the outputs of the two tasks before.
void two_results(Bench& bench) {
  const TensorCreateInfo info = one_cell();
  ChipTensor left, right;
  in_scopes(bench.count, bench.in_scope, [&](uint32_t n) {
    if (n % bench.in_scope == 0) left = right = cells_from(bench, 0);
    CoreTaskArgs task;
    task.add_input(left, right);
    task.add_output(info);
    const TaskOutputTensors out = submit(bench, task);
    left = right;
    right = out.get_ref(0);
  });
}

void close_gate(Bench& bench) {
  CoreTaskArgs gate;
  gate.add_no_dep(bench.gate);
  rt_submit_aic_task(kGate, gate);
  const timespec pause = {0, 2'000'000};  // until the gate's thread is inside and asleep
  nanosleep(&pause, nullptr);
}
void open_gate(Bench& bench) {
  const uint32_t first[] = {0};
  set_tensor_data(bench.gate, 1, first, int32_t{1});
}

// Does nothing. A profiler that is told this function's name splits its counts here (instructions.py).
void split_counts() { getpgid(0); }

// As in programs.py.
constexpr void (*kGraphs[])(Bench&) = {one,    independent, independent_cells, chain,      chains,     tree,
                                       fan_in, tiles,       nested_scopes,     two_inputs, two_results};

}  // namespace

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig bench_config(const ChipTaskArgs&) {
  return PTO2OrchestrationConfig{.expected_arg_count = 7};
}

extern "C" __attribute__((visibility("default"))) void bench_graph(const ChipTaskArgs& args) {
  const uint64_t graph = args.scalar(0);
  if (graph >= sizeof(kGraphs) / sizeof(kGraphs[0])) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "there is no graph %llu", static_cast<unsigned long long>(graph));
    return;
  }
  const ChipTensor& times = args.tensor(1).ref();
  Bench bench{args.tensor(0).ref(), args.tensor(2).ref(), static_cast<uint32_t>(args.scalar(1)),
              static_cast<uint32_t>(args.scalar(2)), args.scalar(3) != 0};
  if (bench.gated) close_gate(bench);
  split_counts();
  const int64_t start = now_ns();
  kGraphs[graph](bench);
  const int64_t submit_ns = now_ns() - start;
  split_counts();
  if (bench.gated) open_gate(bench);
  const uint32_t places[] = {0, 1};
  set_tensor_data(times, 1, &places[0], submit_ns);
  set_tensor_data(times, 1, &places[1], bench.submitted);
}
