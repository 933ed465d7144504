// One kind of task, several times. Tensors: table, arrivals (see journal.cpp), counts int32 [4] (written: clusters, vector
// cores, and what a task after the others saw: arrivals). Scalars: lanes (1 AIC, 2 AIV0, 4 AIV1), blocks, times, options.
#include "pto_orchestration_api.h"

namespace {
enum Option : uint64_t {
  kTogether = 1,
  kMeet = 2,
  kPredicateFalse = 4,
  kPredicateTrue = 8,
  kTimed = 16,
  kEarly = 32,
  kDump = 64
};
}  // namespace

extern "C" __attribute__((visibility("default"))) void journal(const ChipTaskArgs& args) {
  const ChipTensor& table = args.tensor(0).ref();
  const ChipTensor& arrivals = args.tensor(1).ref();
  const ChipTensor& counts = args.tensor(2).ref();
  const uint64_t lanes = args.scalar(0), options = args.scalar(3);
  const auto blocks = static_cast<int16_t>(args.scalar(1)),
             lane_count = static_cast<int16_t>(__builtin_popcountll(lanes));
  const uint32_t places[] = {0, 1, 2, 3};
  set_tensor_data(counts, 1, &places[0], rt_available_cluster_count());
  set_tensor_data(counts, 1, &places[1], rt_available_aiv_count());
  const MixedKernels kernels{(lanes & 1) != 0 ? 0 : INVALID_KERNEL_ID, (lanes & 2) != 0 ? 1 : INVALID_KERNEL_ID,
                             (lanes & 4) != 0 ? 1 : INVALID_KERNEL_ID};
  for (uint64_t n = 0; n < args.scalar(2); ++n) {
    CoreTaskArgs task;
    task.add_inout(table, arrivals);
    const int64_t all = (options & kMeet) != 0 ? static_cast<int64_t>(n + 1) * blocks * lane_count : 0;
    task.add_scalar(all, static_cast<int64_t>(lane_count));
#if defined(SIMPLER_ARCH_A5)
    task.launch_spec.set_core_num(blocks);
#else
    task.launch_spec.set_block_num(blocks);
#endif
    task.launch_spec.set_require_sync_start((options & kTogether) != 0);
    CoreTaskPredicate predicate;
    predicate.operand.tensor = &counts;
    predicate.operand.ndims = 1;
    predicate.operand.indices[0] = 0;
    predicate.op = (options & kPredicateFalse) != 0 ? PredicateOp::LT : PredicateOp::GT;
    predicate.target = 0;
    if ((options & (kPredicateFalse | kPredicateTrue)) != 0) {
      task.set_predicate(predicate);
    }
    if ((options & kTimed) != 0) task.set_task_timing_slot(3);
    if ((options & kEarly) != 0) task.set_allow_early_resolve();
    if ((options & kDump) != 0) task.dump(table);
    rt_submit_task(kernels, task);
  }
  set_tensor_data(counts, 1, &places[2], get_tensor_data<int32_t>(arrivals, 1, &places[0]));
}
