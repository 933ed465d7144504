// Sizes at their ends: many blocks, huge outputs, tiny rings, outputs used after their scope.
#include "pressure.h"

#include <chrono>
#include <cstdlib>

namespace {
TensorCreateInfo vector_of(uint32_t count) {
  const uint32_t shape[1] = {count};
  return TensorCreateInfo(shape, 1, DataType::INT32);
}
}  // namespace

// Without waiting: does the task begin within v milliseconds? The answer goes to the matrix's first element.
ENTRY(looks_at_memory_before_it_waits) {
  step(x, 7);
  const volatile int32_t* first = x.data_as<int32_t>();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(number(in, 0));
  while (*first != 7 && std::chrono::steady_clock::now() < end) {
  }
  const uint32_t at[2] = {0, 0};
  set_tensor_data<int32_t>(big, 2, at, *first == 7 ? 1 : 0);
  if (get_tensor_data<int32_t>(x, 1, at) != 7) rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "read too early");
  step(x, 1);
}
ENTRY(blocks) {  // big[0][0] counts the blocks
  CoreTaskArgs args;
  args.add_inout(big);
  ask(args, kCount, 1);
  set_blocks(args, static_cast<int16_t>(number(in, 0)));
  rt_submit_aiv_task(kAct, args);
  CoreTaskArgs matrix;
  const ChipTensor second = row(big, 1);
  matrix.add_inout(second);
  ask(matrix, kCount, 1);
  set_blocks(matrix, static_cast<int16_t>(number(in, 0)));
  rt_submit_aic_task(kActOnMatrixCore, matrix);
}
ENTRY(marked_blocks) {  // element i of big gets the block count, for each block i
  CoreTaskArgs args;
  args.add_inout(big);
  ask(args, kMarkBlock);
  set_blocks(args, static_cast<int16_t>(number(in, 0)));
  rt_submit_aiv_task(kAct, args);
}
ENTRY(untouched_outputs) {  // v outputs of w bytes each, never written; the last one's last element is
  const uint32_t shape[2] = {static_cast<uint32_t>(number(in, 1) >> 20), 1 << 18};
  const TensorCreateInfo info(shape, 2, DataType::INT32);
  CoreTaskArgs args;
  for (int64_t i = 0; i < number(in, 0); ++i) args.add_output(info);
  const TaskOutputTensors out = alloc_tensors(args);
  if (rt_is_fatal()) return;
  const ChipTensor& last = out.get_ref(static_cast<uint32_t>(number(in, 0)) - 1);
  const uint32_t at[2] = {last.shapes[0] - 1, last.shapes[1] - 1};
  set_tensor_data<int32_t>(last, 2, at, 4711);
  const int32_t back = get_tensor_data<int32_t>(last, 2, at);
  const uint32_t first[1] = {0};
  set_tensor_data<int32_t>(x, 1, first, back);
}
ENTRY(stream) {  // v rounds of two tasks in a scope of their own, each with an output of w int32
  const TensorCreateInfo info = vector_of(static_cast<uint32_t>(number(in, 1)));
  for (int64_t i = 0; i < number(in, 0); ++i) {
    PTO2_SCOPE() {
      CoreTaskArgs first;
      first.add_inout(x);
      first.add_output(info);
      ask(first, kStep, 1);
      rt_submit_dummy_task(first);
      step(x, static_cast<uint64_t>(i));
    }
  }
}
ENTRY(chains_with_a_small_pool) {
  for (int64_t i = 0; i < number(in, 0); ++i) {
    PTO2_SCOPE() { step(x, static_cast<uint64_t>(i)); }
  }
}
ENTRY(output_after_its_scope) {
  // The descriptor is copied out of the scope of its task. Nothing keeps the memory: reading it is unspecified, but the run
  // ends in order, and everything else is right.
  const TensorCreateInfo info = vector_of(64);
  ChipTensor stale;
  PTO2TaskId id;
  PTO2_SCOPE() {
    const TaskOutputTensors out = alloc_tensors(info);
    stale = out.get_ref(0);
    id = out.task_id();
  }
  for (int64_t i = 0; i < number(in, 0); ++i) {
    PTO2_SCOPE() {
      alloc_tensors(info);
      step(x, static_cast<uint64_t>(i));
    }
  }
  CoreTaskArgs args;
  args.add_inout(stale);
  ask(args, kStep, 1);
  args.set_dependencies(&id, 1);
  rt_submit_aiv_task(kAct, args);
  const uint32_t at[1] = {0};
  static_cast<void>(get_tensor_data<int32_t>(stale, 1, at));
}
ENTRY(descriptor_of_another_run) {  // scalars: ring and local id of an owner that this run never had
  ChipTensor foreign = x;
  foreign.owner_task_id = PTO2TaskId{in.scalar(0)};
  step(foreign, 5);
  const uint32_t at[1] = {0};
  set_tensor_data<int32_t>(foreign, 1, at, get_tensor_data<int32_t>(foreign, 1, at) + 1);
}
ENTRY(elements_only) {  // no task at all, but elements are read and written
  const uint32_t from[1] = {5}, to[1] = {6};
  set_tensor_data<int32_t>(x, 1, to, get_tensor_data<int32_t>(x, 1, from) * 10);
}
ENTRY(empty_scopes) {
  for (int i = 0; i < 1000; ++i) {
    PTO2_SCOPE() {
      PTO2_SCOPE(PTO2ScopeMode::MANUAL) {}
    }
  }
}
ENTRY(zero_elements) {
  const uint32_t none[2] = {0, 64}, at[2] = {0, 0};
  const ChipTensor empty = big.view(none, at);
  const TensorCreateInfo info(none, 2, DataType::INT32);
  CoreTaskArgs args;
  args.add_inout(empty);
  args.add_output(info);
  rt_submit_dummy_task(args);
  step(empty, 1);
  step(x, 1);
}
ENTRY(many_arguments) {  // 32 tensors and 16 scalars
  CoreTaskArgs args;
  ChipTensor rows[32];
  for (uint32_t i = 0; i < 32; ++i) rows[i] = row(big, i);
  for (const ChipTensor& r : rows) args.add_inout(r);
  for (int i = 0; i < 16; ++i) args.add_scalar(i);
  if (args.has_error) std::abort();
  rt_submit_dummy_task(args);
  step(x, 1);
}
ENTRY(element_write_after_a_long_task) {  // scalar: milliseconds that the task takes
  act(x, kSleep, in.scalar(0));
  const uint32_t at[1] = {0};
  set_tensor_data<int32_t>(x, 1, at, 5);
}
ENTRY(fan_out) {  // after one task of w milliseconds v others become ready at once; each counts a row of big up
  const PTO2TaskId first = act(x, kSleep, in.scalar(1)).task_id();
  for (int64_t i = 0; i < number(in, 0); ++i) {
    const ChipTensor part = row(big, static_cast<uint32_t>(i % 256));
    CoreTaskArgs args;
    args.add_no_dep(part);
    ask(args, kCount, 1);
    args.set_dependencies(&first, 1);
    rt_submit_aiv_task(kAct, args);
  }
}
