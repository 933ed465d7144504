// One graph of 297 tasks, shaped like a layer of a decoder, used again and again: each use reads what the one before has
// written. Tensors: rows float [kRows][kWidth] (written), weights float [kWidth][16] (read), times int64 [4] (written).
// Scalars: uses, 1 to record and replay the graph, 0 to submit its tasks one by one.
// times: [0] nanoseconds from the first use to the last, [1] tasks submitted meanwhile, [2] nanoseconds of the first use.
#include <time.h>

#include "pto_orchestration_api.h"

namespace {

constexpr uint32_t kRows = 64;
constexpr uint32_t kWidth = 32;  // tasks of a stage
constexpr uint32_t kStages = 9;  // each task of a stage reads two results of the stage before, and a weight
constexpr uint32_t kJoined = 4;  // results that are joined by one task
constexpr int64_t kTasks = kWidth * kStages + kWidth / kJoined + 1;

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

ChipTensor row(const ChipTensor& matrix, uint32_t index) {
  const uint32_t shape[] = {1, matrix.shapes[1]};
  const uint32_t offset[] = {index, 0};
  return matrix.view(shape, offset);
}

void layer(const CoreTaskArgs& boundary) {
  const ChipTensor& in = boundary.tensor(0).ref();
  const ChipTensor& weights = boundary.tensor(1).ref();
  const ChipTensor& out = boundary.tensor(2).ref();
  const uint32_t shape[] = {16};
  const TensorCreateInfo info(shape, 1, DataType::FLOAT32);
  ChipTensor before[kWidth], now[kWidth];
  for (uint32_t stage = 0; stage < kStages; ++stage) {
    for (uint32_t n = 0; n < kWidth; ++n) {
      const ChipTensor weight = row(weights, n);
      CoreTaskArgs task;
      if (stage == 0)
        task.add_input(in, weight);
      else
        task.add_input(before[n], before[(n + stage) % kWidth], weight);
      task.add_output(info);
      task.add_scalar(boundary.scalar(0), stage);
      const TaskOutputTensors result = rt_submit_aiv_task(0, task);
      now[n] = result.get_ref(0);
    }
    for (uint32_t n = 0; n < kWidth; ++n) before[n] = now[n];
  }
  ChipTensor joined[kWidth / kJoined];
  CoreTaskArgs last;
  for (uint32_t n = 0; n < kWidth / kJoined; ++n) {
    CoreTaskArgs task;
    for (uint32_t k = 0; k < kJoined; ++k) task.add_input(before[n * kJoined + k]);
    task.add_output(info);
    const TaskOutputTensors result = rt_submit_aiv_task(0, task);
    joined[n] = result.get_ref(0);
    last.add_input(joined[n]);
  }
  last.add_input(in);
  last.add_output(out);
  rt_submit_aiv_task(0, last);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void bench_replays(const ChipTaskArgs& args) {
  const ChipTensor& rows = args.tensor(0).ref();
  const ChipTensor& weights = args.tensor(1).ref();
  const ChipTensor& times = args.tensor(2).ref();
  const auto uses = static_cast<uint32_t>(args.scalar(0));
  const bool recorded = args.scalar(1) != 0;
  int64_t start = now_ns(), first_use_ns = 0;
  for (uint32_t n = 0; n <= uses; ++n) {
    const ChipTensor in = row(rows, n % kRows), out = row(rows, (n + 1) % kRows);
    CoreTaskArgs boundary;
    boundary.add_input(in, weights);
    boundary.add_output(out);
    boundary.add_scalar(n);
    if (recorded)
      rt_submit_graph(&layer, boundary);
    else
      layer(boundary);
    if (n > 0) continue;
    first_use_ns = now_ns() - start;  // it calls the body; the others are what is timed
    start = now_ns();
  }
  const int64_t values[] = {now_ns() - start, kTasks * uses, first_use_ns};
  for (uint32_t k = 0; k < 3; ++k) set_tensor_data(times, 1, &k, values[k]);
}
