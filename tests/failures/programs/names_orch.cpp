// Mentions every name of the orchestration interface, in the ways in which programs use them. Compiled, not run.
#include "pto_arg_with_deps.h"
#include "pto_orchestration_api.h"
#include "runtime.h"  // some programs include it first

#include "aicpu/cache_maintenance.h"
#include "aicpu/device_time.h"
#include "aicpu/worker_chip_message_queue.h"
#include "aicpu/worker_chip_orch_endpoint.h"
#include "arg_direction.h"
#include "common.h"
#include "common/core_type.h"
#include "common/dma_workspace.h"
#include "common/worker_chip_orch_comm.h"
#include "data_type.h"
#include "platform_comm/comm_context.h"
#include "pto_runtime2_types.h"
#include "pto_runtime_status.h"
#include "pto_submit_types.h"
#include "pto_task_id.h"
#include "pto_types.h"
#include "task_args.h"
#include "tensor_arg.h"
#include "tensor_create_info.h"

#include <type_traits>

// ---- value types ----------------------------------------------------------------------------------------------------

static_assert(static_cast<int>(DataType::FLOAT32) == 0 && static_cast<int>(DataType::FLOAT16) == 1 &&
              static_cast<int>(DataType::INT32) == 2 && static_cast<int>(DataType::INT16) == 3 &&
              static_cast<int>(DataType::INT8) == 4 && static_cast<int>(DataType::UINT8) == 5 &&
              static_cast<int>(DataType::BFLOAT16) == 6 && static_cast<int>(DataType::INT64) == 7 &&
              static_cast<int>(DataType::UINT64) == 8 && static_cast<int>(DataType::UINT16) == 9 &&
              static_cast<int>(DataType::UINT32) == 10 && static_cast<int>(DataType::BOOL) == 11 &&
              static_cast<int>(DataType::FP8E4M3FN) == 12 && static_cast<int>(DataType::FP8E8M0) == 13 &&
              static_cast<int>(DataType::FP4E2M1) == 14 && static_cast<int>(DataType::DATA_TYPE_NUM) == 15);
static_assert(std::is_same_v<std::underlying_type_t<DataType>, uint8_t> && get_element_size(DataType::BFLOAT16) == 2);
static_assert(dtype_of<float>() == 0 && dtype_of<double>() == 0 && dtype_of<const int32_t&>() == 2 &&
              dtype_of<bool>() == 11);
static_assert(is_supported_scalar_arg_v<const int&> && is_supported_scalar_arg_v<DataType> &&
              !is_supported_scalar_arg_v<ChipTensor>);
static_assert(MAX_TENSOR_DIMS == 5 && RUNTIME_MAX_TENSOR_DIMS == 5 && CONTINUOUS_TENSOR_MAX_DIMS == 5);
static_assert(static_cast<int>(AddressSpace::HOST) == 0 && static_cast<int>(AddressSpace::DEVICE) == 1 &&
              sizeof(AddressSpace) == 1);
static_assert(static_cast<int>(TensorArgType::INPUT) == 0 && static_cast<int>(TensorArgType::OUTPUT) == 1 &&
              static_cast<int>(TensorArgType::INOUT) == 2 && static_cast<int>(TensorArgType::OUTPUT_EXISTING) == 3 &&
              static_cast<int>(TensorArgType::NO_DEP) == 4);
static_assert(static_cast<int>(ArgDirection::SCALAR) == 0 && static_cast<int>(ArgDirection::IN) == 1 &&
              static_cast<int>(ArgDirection::OUT) == 2 && static_cast<int>(ArgDirection::INOUT) == 3);
static_assert(static_cast<int>(CoreType::AIC) == 0 && static_cast<int>(CoreType::AIV) == 1);
static_assert(sizeof(PTOBufferHandle) == 16 && std::is_aggregate_v<PTOBufferHandle>);

static_assert(sizeof(PTO2TaskId) == 8 && std::is_aggregate_v<PTO2TaskId> &&
              std::is_trivially_default_constructible_v<PTO2TaskId>);
static_assert(PTO2TaskId::make(3, 7).raw == (uint64_t{3} << 32 | 7) && PTO2TaskId::make(3, 7).ring() == 3 &&
              PTO2TaskId::make(3, 7).local() == 7);
static_assert(PTO2TaskId::invalid().is_invalid() && !PTO2TaskId::invalid().is_valid() &&
              PTO2TaskId::invalid() == PTO2TaskId{UINT64_MAX} && PTO2TaskId::make(0, 0) != PTO2TaskId::invalid());

static_assert(INVALID_KERNEL_ID == -1 && MixedKernels{}.aic_kernel_id == -1 && MixedKernels{}.aiv0_kernel_id == -1 &&
              MixedKernels{}.aiv1_kernel_id == -1);
static_assert(static_cast<int>(PTO2ScopeMode::AUTO) == 0 && static_cast<int>(PTO2ScopeMode::MANUAL) == 1);
static_assert(static_cast<int>(PredicateOp::NONE) == 0 && static_cast<int>(PredicateOp::EQ) == 1 &&
              static_cast<int>(PredicateOp::NE) == 2 && static_cast<int>(PredicateOp::GT) == 3 &&
              static_cast<int>(PredicateOp::LT) == 4 && static_cast<int>(PredicateOp::GE) == 5 &&
              static_cast<int>(PredicateOp::LE) == 6);
static_assert(ASYNC_ENGINE_SDMA == 0 && ASYNC_ENGINE_ROCE == 1 && ASYNC_ENGINE_URMA == 2 && ASYNC_ENGINE_CCU == 3 &&
              NUM_ASYNC_ENGINES == 4);
static_assert(static_cast<int>(CompletionType::COUNTER) == 0);
static_assert(std::is_base_of_v<std::runtime_error, AssertionError>);

// ---- layouts --------------------------------------------------------------------------------------------------------

static_assert(sizeof(ChipTensor) == 128 && alignof(ChipTensor) == 64 && std::is_trivially_copyable_v<ChipTensor>);
static_assert(sizeof(TensorCreateInfo) == 64 && alignof(TensorCreateInfo) == 64 &&
              std::is_copy_constructible_v<TensorCreateInfo>);
static_assert(sizeof(CommContext) == 1056 && COMM_MAX_RANK_NUM == 64 && sizeof(WorkerChipOrchRegionDesc) == 48);
static_assert(std::is_same_v<TaskSubmitResult, TaskOutputTensors>);
static_assert(std::is_same_v<ChipStorageTaskArgs, ChipTaskArgs> && std::is_same_v<Tensor, ChipTensor> &&
              std::is_same_v<Arg, CoreTaskArgs> && std::is_same_v<ContinuousTensor, ChipTensor>);
static_assert(!std::is_copy_constructible_v<CoreTaskArgs> && !std::is_move_constructible_v<CoreTaskArgs> &&
              std::is_default_constructible_v<CoreTaskArgs>);
static_assert(MAX_TENSOR_ARGS == 32 && MAX_SCALAR_ARGS == 16 && CORE_MAX_TENSOR_ARGS == 32 &&
              CORE_MAX_SCALAR_ARGS == 16 && CHIP_MAX_TENSOR_ARGS == 256 && CHIP_MAX_SCALAR_ARGS == 128);
static_assert(DMA_WORKSPACE_SDMA == 0 && DMA_WORKSPACE_URMA == 1 && DMA_WORKSPACE_KIND_COUNT == 2);

// Exactly one spelling of the block count exists.
template <typename T> auto set_count(T& spec, int16_t n, int) -> decltype(spec.set_core_num(n)) {
  spec.set_core_num(n);
}
template <typename T> auto set_count(T& spec, int16_t n, int) -> decltype(spec.set_block_num(n)) {
  spec.set_block_num(n);
}
template <typename T> auto get_count(const T& spec) -> decltype(spec.core_num()) { return spec.core_num(); }
template <typename T> auto get_count(const T& spec) -> decltype(spec.block_num()) { return spec.block_num(); }
#if defined(SIMPLER_ARCH_A5) && defined(SIMPLER_RUNTIME_STREAMING)
#if !defined(SRC_A5_RUNTIME_TENSORMAP_AND_RINGBUFFER_RUNTIME_PTO_TYPES_H_)
#error "programs choose set_core_num by this macro"
#endif
#elif defined(SRC_A5_RUNTIME_TENSORMAP_AND_RINGBUFFER_RUNTIME_PTO_TYPES_H_)
#error "programs choose set_block_num where this macro is missing"
#endif

// The interface leaves these to programs.
#if defined(PLATFORM_PROF_SYS_CNT_FREQ)
#error "programs define PLATFORM_PROF_SYS_CNT_FREQ themselves"
#endif

// Types of this name are template parameters in generated code.
template <typename ChipTensor> static uint64_t base_of(const ChipTensor& t) { return t.buffer.addr; }

static_assert(PTO2_ERROR_NONE == 0 && PTO2_ERROR_SCOPE_DEADLOCK == 1 && PTO2_ERROR_HEAP_RING_DEADLOCK == 2 &&
              PTO2_ERROR_FLOW_CONTROL_DEADLOCK == 3 && PTO2_ERROR_DEP_POOL_OVERFLOW == 4 &&
              PTO2_ERROR_INVALID_ARGS == 5 && PTO2_ERROR_DEPENDENCY_OVERFLOW == 6 &&
              PTO2_ERROR_REQUIRE_SYNC_START_INVALID == 7 && PTO2_ERROR_TENSOR_WAIT_TIMEOUT == 8 &&
              PTO2_ERROR_EXPLICIT_ORCH_FATAL == 9 && PTO2_ERROR_SCOPE_TASKS_OVERFLOW == 10 &&
              PTO2_ERROR_TENSORMAP_OVERFLOW == 11 && PTO2_ERROR_SCHEDULER_TIMEOUT == 100 &&
              PTO2_ERROR_ASYNC_COMPLETION_INVALID == 101 && PTO2_ERROR_ASYNC_WAIT_OVERFLOW == 102 &&
              PTO2_ERROR_ASYNC_REGISTRATION_FAILED == 103 && PTO2_ERROR_READY_QUEUE_OVERFLOW == 104);
#if defined(SIMPLER_RUNTIME_STREAMING)
static_assert(PTO2_STALL_DETAIL_NONE == 0 && PTO2_STALL_DETAIL_RUNNING_STALLED == 1 &&
              PTO2_STALL_DETAIL_READY_IDLE == 3 && PTO2_STALL_DETAIL_DEP_DEADLOCK == 4 &&
              PTO2_STALL_DETAIL_ORCH_STARVATION == 5 && PTO2_STALL_DETAIL_UNKNOWN == 99);
#endif

// ---- use ------------------------------------------------------------------------------------------------------------

static uint64_t tensors(const ChipTensor& t) {
  const uint32_t shape[2] = {2, 3}, strides[2] = {8, 1}, offset[2] = {1, 1}, order[2] = {1, 0}, flat[1] = {6},
                 at[2] = {0, 1};
  ChipTensor copy;
  copy.init_external(t.data_as<void>(), 64, shape, 2, DataType::FLOAT32, 0, true, AddressSpace::DEVICE);
  copy.init_from(t);
  copy.init_from_line1(t);
  copy.copy(t);
  const ChipTensor a = t.view(shape, offset), b = a.reshape(flat, 1, true), c = t.transpose(0, 1), d = t.permute(order),
                   e = t.slice(0, 0, 2, 2);
  const ChipTensor f = make_tensor_external(nullptr, shape, 2),
                   g = make_tensor_strided(nullptr, shape, strides, 2, DataType::INT8);
  const ChipTensor h = from_tensor_arg(t, true, 3);
  const bool flags =
      t.is_device_memory() || t.manual_dep || t.is_contiguous || t.valid_reshape(flat, 1) || t.valid_transpose(0, 1);
  return t.numel() + t.extent_elem() + t.nbytes() + t.compute_flat_offset(at, 2) + t.dump().size() + t.buffer.size +
         base_of(t) + t.start_offset + t.shapes[0] + t.strides[0] + t.ndims + static_cast<uint64_t>(t.version) +
         t.owner_task_id.raw + t.extent_elem_cache + static_cast<uint64_t>(t.dtype) +
         static_cast<uint64_t>(t.address_space) + a.ndims + b.ndims + c.ndims + d.ndims + e.ndims + f.ndims + g.ndims +
         h.ndims + (flags ? 1 : 0) + t.ref().ndims;
}

static void arguments(const ChipTensor& t, CoreTaskArgs& args, const CoreTaskArgs& source) {
  const uint32_t shape[1] = {4};
  TensorCreateInfo info(shape, 1, DataType::FLOAT32, true), other(shape, 1), array[3];
  info.set_initial_value(1.5f);
  other.set_initial_value<int32_t>(-1);
  array[0].copy(info);
  array[1] = array[0];
  args.add_input(t, t);
  args.add_inout(t);
  args.add_output(t);
  args.add_output(info, other);
  args.add_no_dep(t);
  const int number = 3;
  args.add_scalar(1, -1, 2.5f, 2.5, true, 'c', DataType::INT8, number, uint64_t{5});
  const uint64_t raw[2] = {1, 2};
  const int32_t small[2] = {-1, 2};
  args.add_scalars(raw, 2);
  args.add_scalars_i32(small, 2);
  args.copy_scalars_from(source, 0, 1);
  const PTO2TaskId ids[2] = {PTO2TaskId::invalid(), PTO2TaskId::make(0, 1)};
  args.set_dependencies(ids, 2);
#if defined(SIMPLER_RUNTIME_STREAMING)
  DepFlags kinds[2] = {DEP_WAIT, DEP_WAIT | DEP_RETAIN};
  kinds[0] |= DEP_RETAIN;
  if ((kinds[0] & DEP_RETAIN) == DEP_NONE) return;
  args.set_dependencies_with_kinds(ids, kinds, 2);
  static_cast<void>(args.explicit_dep_kind(0));
#endif
  static_cast<void>(args.explicit_dep_count() + args.explicit_dep(0).raw);
  static_cast<void>(args.explicit_deps_data());
  set_count(args.launch_spec, 4, 0);
  args.launch_spec.set_require_sync_start(get_count(args.launch_spec) > 1 && !args.launch_spec.require_sync_start());
  args.set_allow_early_resolve();
  args.set_allow_early_resolve(!args.allow_early_resolve());
  CorePredicateOperand operand{&t, 1, {0}};
  CoreTaskPredicate predicate{operand, PredicateOp::GT, -3};
  args.set_predicate(predicate);
  static_cast<void>(args.predicate().target);
  args.set_task_timing_slot(3);
  static_cast<void>(args.task_timing_slot());
  args.dump();
  args.dump(t, info, number);
  static_cast<void>(args.dump_arg_mask() | args.dump_arg_index_ambiguous_mask());
  static_cast<void>(args.scalar_dtypes());
  static_cast<void>(args.tensor(0).ref().ndims + args.tensor(4).create_info().ndims + args.tensor_count() +
                    args.scalar_count());
  static_cast<void>(args.tensor(0).refers_to(&t));
  static_cast<void>(args.scalar(0));
  static_cast<void>(args.tag(0));
  static_cast<void>(info.buffer_size_bytes());
  if (args.has_error) args.set_error(args.error_msg);
  args.clear();
  args.reset();
}

static void submissions(const ChipTensor& t, const CoreTaskArgs& args) {
  const uint32_t shape[1] = {4}, at[1] = {0};
  const TensorCreateInfo info(shape, 1);
  const TensorCreateInfo infos[2] = {info, info};
  TaskSubmitResult out = rt_submit_aiv_task(0, args);
  const ChipTensor& first = out.get_ref(0);
  out = rt_submit_aic_task(0, args);
  MixedKernels mixed;
  mixed.aic_kernel_id = 0;
  mixed.aiv0_kernel_id = 1;
  mixed.aiv1_kernel_id = 1;
  static_cast<void>(mixed.to_active_mask());
  rt_submit_task(mixed, args);
  rt_submit_task(MixedKernels{0, 1, 2}, args);
  const PTO2TaskId id = rt_submit_dummy_task(args).task_id();
  out = alloc_tensors(info);
  out = alloc_tensors(info, info, info);
  out = alloc_tensors(infos, 2);
  out = alloc_tensors(args);
  if (!out.empty() && out.size() > 0 && out.task_id().is_valid()) static_cast<void>(first.ndims);
  CoreTaskArgsWithDeps<> bundled;
  CoreTaskArgsWithDeps<3> small;
  ArgWithDeps<2> older;
  bundled.add_input(t);
  bundled.add_inout(t);
  bundled.add_output(info);
  bundled.add_no_dep(t);
  bundled.add_scalar(1);
  const uint64_t raw[1] = {1};
  const int32_t numbers[1] = {1};
  bundled.add_scalars(raw, 1);
  bundled.add_scalars_i32(numbers, 1);
  bundled.copy_scalars_from(args, 0, 0);
  small.add_dep(id, id);
#if defined(SIMPLER_RUNTIME_STREAMING)
  small.add_dep_wait(id);
#endif
  older.add_dep(id);
  set_count(bundled.launch_spec, 1, 0);
  bundled.set_allow_early_resolve(!bundled.allow_early_resolve());
  bundled.set_task_timing_slot(1);
  static_cast<void>(bundled.task_timing_slot());
  if (bundled.has_error) bundled.set_error(bundled.error_msg);
  rt_submit_aiv_task(0, bundled);
  rt_submit_aic_task(0, small);
  rt_submit_task(mixed, older);
  rt_submit_dummy_task(bundled.finalize_for_submit());
  bundled.reset();
  set_tensor_data(t, 1, at, uint64_t{1});
  set_tensor_data<float>(t, 1, at, get_tensor_data<float>(t, 1, at) + static_cast<float>(get_tensor_data(t, 1, at)));
}

static bool scopes(int depth) {
  PTO2_SCOPE() {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
      if (depth == 1) return true;
    }
  }
  for (int i = 0; i < 3; ++i) {
    PTO2_SCOPE() {
      if (i == 1) continue;
      if (i == 2) break;
    }
  }
  PTO2_SCOPE_GUARD();
  PTO2_SCOPE_GUARD(PTO2ScopeMode::MANUAL);
  PTO2_SCOPE_GUARD(PTO2ScopeMode::MANUAL);
  rt_scope_begin();
  rt_scope_begin(PTO2ScopeMode::MANUAL);
  rt_scope_end();
  rt_scope_end();
  PTO2ScopeGuard guard;
  PTO2ScopeGuard manual(PTO2ScopeMode::MANUAL);
  return false;
}

static void host_side(const WorkerChipOrchRegionDesc& region) {
  const uint64_t scalars[WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT] = {};
  WorkerChipOrchEndpoint from_scalars(scalars, 6), endpoint(region);
  uint64_t address = 0;
  int32_t observed = 0;
  WorkerChipOrchPayloadView view{};
  WorkerChipOrchSignalTestResult result{};
  const bool ok = endpoint.counter_addr(0, address) && endpoint.validate_counter_addr(address) &&
                  endpoint.payload_read(0, 8, view) && endpoint.payload_write(0, &address, 8) &&
                  endpoint.signal_notify(address, 1, WorkerChipOrchNotifyOp::Add) &&
                  endpoint.signal_test(address, 1, WorkerChipOrchWaitCmp::EQ, result) &&
                  endpoint.signal_wait(address, 1, WorkerChipOrchWaitCmp::GE, 1000, observed);
  const WorkerChipEndpointError& error = endpoint.error();
  if (!ok && error.kind != WorkerChipEndpointErrorKind::NONE)
    LOG_ERROR("%s: %s", worker_chip_endpoint_op_to_string(error.op), error.message);

  WorkerChipQueueArgs args{};
  args.magic_version = scalars[0];
  args.depth = args.input_arena_bytes = args.output_arena_bytes = args.payload_bytes = args.counter_bytes = scalars[1];
  WorkerChipQueueEndpoint<> single(endpoint.descriptor(), args);
  WorkerChipQueueEndpoint<4> queue(region, args);
  WorkerChipQueueInputHandle message{};
  WorkerChipQueueOutputReservation room{};
  if (!queue.input().try_peek(message) && !queue.input().peek(1000, message) && queue.disambiguate_timeout()) return;
  if (message.opcode == WorkerChipQueueOpcode::STOP && message.payload.nbytes == message.payload_nbytes) return;
  if (!queue.output().try_reserve(8, room) && !queue.output().reserve(8, 1000, room)) return;
  if (room.valid && queue.output().publish(room, WorkerChipQueueOpcode::DATA)) queue.input().release(message);
  if (queue.error().kind != WorkerChipQueueErrorKind::NONE && queue.layout().payload_bytes > 0)
    LOG_ERROR("%s: %s", worker_chip_queue_op_to_string(queue.error().op), queue.error().message);
  static_cast<void>(single.input().drained());
}

static void errors_and_logs(int value) {
  if (rt_is_fatal()) return;
  rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "nothing else");
  rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "value %d", value);
  LOG_ERROR("plain");
  LOG_ERROR("%d", value);
  LOG_WARN("plain");
  LOG_TIMING("plain");
  LOG_INFO("plain");
  LOG_INFO("%d", value);
  LOG_DEBUG("plain");
  LOG_INFO_V0("plain");
  LOG_INFO_V1("%d", value);
  LOG_INFO_V2("plain");
  LOG_INFO_V3("plain");
  LOG_INFO_V4("plain");
  LOG_INFO_V5("plain");
  LOG_INFO_V6("plain");
  LOG_INFO_V7("plain");
  LOG_INFO_V8("plain");
  LOG_INFO_V9("plain");
  always_assert(value == 3);
  debug_assert(value == 3);
  try {
    assert_impl("value", __FILE__, __LINE__);
  } catch (const AssertionError& error) {
    LOG_ERROR("%s at %s:%d: %s", error.condition(), error.file(), error.line(), error.what());
    LOG_ERROR("%s%s", get_stacktrace().c_str(), get_stacktrace(2).c_str());
  }
  cache_invalidate_range(&value, sizeof value);
  cache_flush_range(&value, sizeof value);
  const uint64_t now = get_sys_cnt_aicpu() + device_time_now_ticks() + sys_cnt_now_ticks();
  LOG_INFO("%llu ns", static_cast<unsigned long long>(sys_cnt_elapsed_ns(0, now, get_sys_cnt_aicpu_frequency_hz()) +
                                                      sys_cnt_ticks_to_ns(now, device_time_frequency_hz())));
  LOG_INFO("%s has %d bytes", get_dtype_name(DataType::FP4E2M1), static_cast<int>(get_element_size(DataType::FP4E2M1)));
  const WorkerChipOrchRegionDesc region{};
  const WorkerChipOrchPayloadView view{region.payload_base, region.payload_bytes};
  const WorkerChipOrchSignalTestResult result{true, 1};
  static_cast<void>(view.gm_addr + view.nbytes + (result.matched ? static_cast<uint64_t>(result.observed) : 0) +
                    region.magic_version + region.region_id + region.counter_base + region.counter_bytes +
                    WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT);
  host_side(region);
  static_cast<void>(WorkerChipOrchNotifyOp::Set != WorkerChipOrchNotifyOp::Add);
  static_cast<void>(WorkerChipOrchWaitCmp::EQ != WorkerChipOrchWaitCmp::LE);
  const CommContext context{};
  static_cast<void>(context.workSpace + context.workSpaceSize + context.rankId + context.rankNum + context.winSize +
                    context.windowsIn[0] + context.windowsOut[63]);
}

extern "C" {
__attribute__((visibility("default"))) PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& args) {
  return PTO2OrchestrationConfig{.expected_arg_count = args.tensor_count() + args.scalar_count()};
}
__attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs& in) {
  CoreTaskArgs args, source;
  const ChipTensor& first = in.tensor(0).ref();
  arguments(first, args, source);
  submissions(first, args);
  errors_and_logs(static_cast<int>(tensors(first) + in.scalar(0)) + static_cast<int>(from_u64<float>(to_u64(1.5f))));
  if (scopes(1)) rt_orchestration_done();
  static_cast<void>(rt_available_cluster_count() + rt_available_aiv_count());
  static_cast<void>(in.tensor(0).data_as<float>());
  static_cast<void>(in.tensor(0).nbytes());
  static_cast<void>(current_runtime());
}
}
