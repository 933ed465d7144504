// One entry for each way in which a run is refused or stopped. v: the size of the case, where it has one.
#include "pressure.h"

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {
const uint32_t kVector[1] = {64};
const TensorCreateInfo kInfo(kVector, 1, DataType::INT32);
}  // namespace

ENTRY(good) {
  for (int i = 0; i < 150; ++i) step(x, static_cast<uint64_t>(i));
}
ENTRY(nothing) {}

// ---- argument objects -----------------------------------------------------------------------------------------------

ENTRY(tensor_after_scalar) {
  CoreTaskArgs args;
  args.add_scalar(1);
  args.add_inout(x);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(thirty_three_tensors) {
  CoreTaskArgs args;
  for (int i = 0; i < 33; ++i) args.add_input(x);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(seventeen_scalars) {
  CoreTaskArgs args;
  args.add_inout(x);
  for (int i = 0; i < 17; ++i) args.add_scalar(i);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(scalars_copied_from_outside) {
  CoreTaskArgs source, args;
  source.add_scalar(1, 2, 3);
  args.add_inout(x);
  args.copy_scalars_from(source, 2, 2);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(scalar_offset_that_overflows) {
  CoreTaskArgs source, args;
  source.add_scalar(1, 2, 3);
  args.add_inout(x);
  args.copy_scalars_from(source, 0x7FFFFFFF, 1);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dependencies_without_array) {
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_dependencies(nullptr, 4);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dependency_kinds_without_array) {
  const PTO2TaskId id = step(x, 1).task_id();
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_dependencies_with_kinds(&id, nullptr, 1);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dependencies_set_twice) {
  const PTO2TaskId id = step(x, 1).task_id();
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_dependencies(&id, 1);
  args.set_dependencies(&id, 1);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(too_many_bundled_dependencies) {
  CoreTaskArgsWithDeps<4> args;
  args.add_inout(x);
  args.add_scalar(int64_t{kStep}, 0, 0, 0, 0);
  for (int i = 0; i < 5; ++i) args.add_dep(step(x, 1).task_id());
  rt_submit_aiv_task(kAct, args);
}
ENTRY(timing_slot) {
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_task_timing_slot(static_cast<int32_t>(number(in, 0)));
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dump_of_a_foreign_tensor) {
  CoreTaskArgs args;
  args.add_inout(x);
  args.dump(big);
  ask(args, kStep);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dump_of_a_foreign_create_info) {
  CoreTaskArgs args;
  args.add_inout(x);
  args.dump(kInfo);
  ask(args, kStep);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dump_of_a_foreign_scalar) {
  CoreTaskArgs args;
  const int own = 1, foreign = 1;
  args.add_inout(x);
  args.add_scalar(own);
  args.dump(foreign);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dump_of_an_empty_object) {
  CoreTaskArgs args;
  args.dump();
  rt_submit_dummy_task(args);
}
ENTRY(error_of_the_user) {
  CoreTaskArgs args;
  args.add_inout(x);
  args.set_error("refused by the caller, model 17");
  args.set_error("a second message");
  rt_submit_aiv_task(kAct, args);
}
ENTRY(faulty_dummy) {
  CoreTaskArgs args;
  args.add_scalar(1);
  args.add_inout(x);
  rt_submit_dummy_task(args);
}
ENTRY(reset_forgives) {
  CoreTaskArgs args;
  args.add_scalar(1);
  args.add_inout(x);
  args.reset();
  args.add_inout(x);
  ask(args, kStep, 7);
  rt_submit_aiv_task(kAct, args);
}

// ---- alloc ----------------------------------------------------------------------------------------------------------

ENTRY(alloc_of_nothing) {
  CoreTaskArgs args;
  alloc_tensors(args);
}
ENTRY(alloc_with_scalar) {
  CoreTaskArgs args;
  args.add_output(kInfo);
  args.add_scalar(1);
  alloc_tensors(args);
}
ENTRY(alloc_of_an_existing_tensor) {
  CoreTaskArgs args;
  args.add_output(kInfo);
  args.add_output(x);
  alloc_tensors(args);
}
ENTRY(faulty_alloc) {
  CoreTaskArgs args;
  for (int i = 0; i < 33; ++i) args.add_output(kInfo);
  alloc_tensors(args);
}

// ---- scopes and dependencies ----------------------------------------------------------------------------------------

ENTRY(automatic_in_manual_scope) {
  PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
    PTO2_SCOPE() { step(x, 1); }
  }
}
ENTRY(scope_end_without_begin) {
  rt_scope_end();
  step(x, 1);
}
ENTRY(scopes_too_deep) {
  for (int i = 0; i < 70; ++i) rt_scope_begin();
}
ENTRY(invalid_dependency) {
  const PTO2TaskId id = PTO2TaskId::invalid();
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_dependencies(&id, 1);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dependency_on_a_later_task) {
  const PTO2TaskId id = PTO2TaskId::make(0, 1000);
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_dependencies(&id, 1);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(dependency_without_wait) {
  const PTO2TaskId id = step(x, 1).task_id();
  const DepFlags kind = DEP_RETAIN;
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_dependencies_with_kinds(&id, &kind, 1);
  rt_submit_aiv_task(kAct, args);
}

// ---- what to run ----------------------------------------------------------------------------------------------------

ENTRY(no_kernel) {
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  rt_submit_task(MixedKernels{}, args);
}
ENTRY(unknown_kernel) {
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  rt_submit_aiv_task(static_cast<int32_t>(number(in, 0)), args);
}
ENTRY(block_count) {
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  set_blocks(args, static_cast<int16_t>(number(in, 0)));
  rt_submit_aiv_task(kAct, args);
}
ENTRY(uninitialised_descriptor) {
  ChipTensor garbage;
  __builtin_memset(static_cast<void*>(&garbage), 0xA5, sizeof garbage);
  step(garbage, 1);
}
ENTRY(uninitialised_create_info) {
  alignas(64) unsigned char bytes[sizeof(TensorCreateInfo)];
  __builtin_memset(bytes, 0xA5, sizeof bytes);
  alloc_tensors(reinterpret_cast<const TensorCreateInfo*>(bytes), 1);
}
ENTRY(predicate_on_no_memory) {
  const uint32_t shape[1] = {4};
  const ChipTensor nowhere = make_tensor_external(reinterpret_cast<void*>(in.scalar(0)), shape, 1, DataType::INT32);
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  CoreTaskPredicate predicate;
  predicate.operand.tensor = &nowhere;
  predicate.operand.ndims = 1;
  predicate.op = PredicateOp::EQ;
  args.set_predicate(predicate);
  rt_submit_aiv_task(kAct, args);
}
// A predicate that compares an element which does not exist. What: 0 the index, 1 the rank, 2 the comparison, 3 the
// descriptor, 4 where the view begins.
ENTRY(faulty_predicate) {
  ChipTensor tensor = x;
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  CoreTaskPredicate predicate;
  predicate.operand.tensor = &tensor;
  predicate.operand.ndims = 1;
  predicate.op = PredicateOp::EQ;
  switch (number(in, 0)) {
    case 0: predicate.operand.indices[0] = 64; break;
    case 1: predicate.operand.ndims = 700000; break;
    case 2: predicate.op = static_cast<PredicateOp>(77); break;
    case 3: tensor.dtype = static_cast<DataType>(99); break;
    default: tensor.start_offset = 1 << 30; break;
  }
  args.set_predicate(predicate);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(get_behind_the_buffer) {
  ChipTensor tensor = x;
  tensor.start_offset = 1 << 30;
  const uint32_t first[1] = {0};
  get_tensor_data<int32_t>(tensor, 1, first);
}
ENTRY(argument_that_was_not_added) {
  CoreTaskArgs args;
  args.add_inout(x);
  args.add_scalar(1);
  if (number(in, 1) != 0) {
    step(x, args.scalar(static_cast<int32_t>(number(in, 0))));
  } else {
    step(args.tensor(static_cast<int32_t>(number(in, 0))).ref(), 1);
  }
}
ENTRY(vector_cohort) {
  CoreTaskArgs args;
  args.add_inout(big);
  ask(args, kMarkBlock);
  set_blocks(args, static_cast<int16_t>(number(in, 0)));
  args.launch_spec.set_require_sync_start(true);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(matrix_cohort) {
  CoreTaskArgs args;
  args.add_inout(big);
  ask(args, kMarkBlock);
  set_blocks(args, static_cast<int16_t>(number(in, 0)));
  args.launch_spec.set_require_sync_start(true);
  rt_submit_aic_task(kActOnMatrixCore, args);
}

// ---- elements and results -------------------------------------------------------------------------------------------

ENTRY(get_outside) {
  const uint32_t at[1] = {64};
  static_cast<void>(get_tensor_data<int32_t>(x, 1, at));
}
ENTRY(set_outside) {
  const uint32_t at[2] = {255, 64};
  set_tensor_data<int32_t>(big, 2, at, 5);
}
ENTRY(get_with_too_many_indices) {
  const uint32_t at[2] = {0, 0};
  static_cast<void>(get_tensor_data<int32_t>(x, 2, at));
}
ENTRY(element_of_no_memory) {  // logged, not fatal
  const uint32_t shape[1] = {4}, at[1] = {0};
  const ChipTensor nowhere = make_tensor_external(nullptr, shape, 1, DataType::INT32);
  set_tensor_data<int32_t>(nowhere, 1, at, 5);
  const int32_t value = get_tensor_data<int32_t>(nowhere, 1, at);
  step(x, static_cast<uint64_t>(value));
}
ENTRY(get_ref_past_the_outputs) {
  const TaskOutputTensors out = alloc_tensors(kInfo);
  static_cast<void>(out.get_ref(1).ndims);
  step(x, 1);
}
ENTRY(get_ref_after_failure) {
  rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "stopped at %d", 17);
  const TaskOutputTensors out = alloc_tensors(kInfo);
  if (!out.empty() || out.size() != 0 || out.task_id().is_valid()) std::abort();
  static_cast<void>(out.get_ref(0).ndims);
}
ENTRY(calls_after_failure) {
  rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "the first of %d", 2);
  rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "the second");
  if (!rt_is_fatal()) std::abort();
  const uint32_t at[1] = {0};
  if (!step(x, 1).empty()) std::abort();
  if (get_tensor_data<int32_t>(x, 1, at) != 0) std::abort();
  set_tensor_data<int32_t>(x, 1, at, 5);
  PTO2_SCOPE() { alloc_tensors(kInfo); }
  for (int i = 0; i < 100; ++i) rt_scope_end();
  for (int i = 0; i < 100; ++i) rt_scope_begin();
  if (rt_available_cluster_count() < 1 || rt_available_aiv_count() < 2) std::abort();
}

// ---- capacity -------------------------------------------------------------------------------------------------------

ENTRY(tasks_in_one_scope) {
  for (int64_t i = 0; i < number(in, 0); ++i) step(x, 1);
}
ENTRY(one_output) {
  const uint32_t shape[1] = {static_cast<uint32_t>(number(in, 0))};
  const TensorCreateInfo info(shape, 1, DataType::INT32);
  alloc_tensors(info);
}
ENTRY(outputs_of_one_scope) {
  PTO2_SCOPE() {
    for (int64_t i = 0; i < number(in, 0); ++i) alloc_tensors(kInfo);
  }
}
static void nest(const ChipTensor& x, int64_t levels) {
  PTO2_SCOPE() {
    for (int i = 0; i < 3; ++i) step(x, 1);
    if (levels > 1) nest(x, levels - 1);
  }
}
ENTRY(nested_scopes) { nest(x, number(in, 0)); }
ENTRY(many_producers) {
  for (int64_t i = 0; i < number(in, 0); ++i) {
    const ChipTensor part = row(big, static_cast<uint32_t>(i));
    step(part, 1);
  }
  step(big, 1);
}
ENTRY(tracked_writes) {
  ChipTensor rows[32];
  for (uint32_t j = 0; j < 32; ++j) rows[j] = row(big, j);
  for (int64_t i = 0; i < number(in, 0) && !rt_is_fatal(); ++i) {
    CoreTaskArgs args;
    for (const ChipTensor& r : rows) args.add_output(r);
    rt_submit_dummy_task(args);
  }
}

// ---- the orchestration itself ---------------------------------------------------------------------------------------

ENTRY(explicit_failure) {
  step(x, 1);
  rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "stopped on purpose, value %d", static_cast<int>(number(in, 0)));
}
ENTRY(failure_with_a_code) { rt_report_fatal(static_cast<int32_t>(number(in, 0)), "the model is %s", "bad"); }
ENTRY(failure_with_a_long_text) { rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "%0*d", 4000, 7); }
ENTRY(failure_with_a_text_in_latin_1) { rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "%s", "caf\xe9 17"); }
ENTRY(failure_with_a_text_cut_inside_a_character) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xe4\xb8\xad";
  rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "%s%s",
                  number(in, 0) == 0   ? ""
                  : number(in, 0) == 1 ? "-"
                                       : "--",
                  text.c_str());
}
ENTRY(orchestration_throws) { throw std::runtime_error("no plan for 17 experts"); }
ENTRY(orchestration_throws_a_number) { throw 42; }
ENTRY(orchestration_asserts) {
  step(x, 1);
  const int experts = 17;
  always_assert(experts == 16);
}
ENTRY(orchestration_reshapes_wrongly) {
  const uint32_t shape[1] = {63};
  static_cast<void>(x.reshape(shape, 1));
}
ENTRY(orchestration_reads_a_missing_argument) { static_cast<void>(in.tensor(2).ndims); }
ENTRY(orchestration_crashes) {
  step(x, 1);
  *reinterpret_cast<volatile int*>(number(in, 0)) = 1;
}

ENTRY(orchestration_passes_a_wild_tensor) {
  CoreTaskArgs args;
  args.add_inout(*reinterpret_cast<const ChipTensor*>(number(in, 0)));
  rt_submit_aiv_task(kAct, args);
}
ENTRY(orchestration_passes_wild_dependencies) {
  for (int i = 0; i < 5; ++i) step(x, 1);
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, kStep);
  args.set_dependencies(reinterpret_cast<const PTO2TaskId*>(number(in, 0)), 3);
  rt_submit_aiv_task(kAct, args);
}
ENTRY(orchestration_reads_wild_memory) {
  const uint32_t shape[1] = {4}, at[1] = {0};
  const ChipTensor nowhere = make_tensor_external(reinterpret_cast<void*>(in.scalar(0)), shape, 1, DataType::INT32);
  static_cast<void>(get_tensor_data<int32_t>(nowhere, 1, at));
}

// ---- kernels --------------------------------------------------------------------------------------------------------

ENTRY(kernel) {  // scalars: act, a, b, c, d; between two ordinary tasks
  step(x, 1);
  act(x, static_cast<Act>(number(in, 0)), in.scalar(1), in.scalar(2), in.scalar(3), in.scalar(4));
  step(x, 1);
}
ENTRY(kernel_on_matrix_core) {
  CoreTaskArgs args;
  args.add_inout(x);
  ask(args, static_cast<Act>(number(in, 0)), in.scalar(1), in.scalar(2), in.scalar(3), in.scalar(4));
  rt_submit_aic_task(kActOnMatrixCore, args);
}
ENTRY(kernel_beside_others) {  // the act in one row while all others work
  for (uint32_t i = 0; i < 200; ++i) {
    const ChipTensor part = row(big, i);
    act(part, i == 100 ? static_cast<Act>(number(in, 0)) : kStep, in.scalar(1), in.scalar(2), in.scalar(3),
        in.scalar(4));
  }
}

// ---- arguments of the entry -----------------------------------------------------------------------------------------

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig wants_five(const ChipTaskArgs&) {
  return PTO2OrchestrationConfig{.expected_arg_count = 5};
}
extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig configuration_crashes(const ChipTaskArgs&) {
  std::raise(SIGSEGV);
  return {};
}
extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig configuration_throws(
    const ChipTaskArgs& args) {
  return {static_cast<int>(args.scalar(100))};
}
