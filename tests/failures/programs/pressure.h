// Shared by the orchestrations of these tests: one task in one line. Entry arguments: x int32[64], big int32[256][64],
// both read and written; scalars: v, then as many as the case needs.
#pragma once
#include "acts.h"
#include "pto_orchestration_api.h"

enum Kernel : int32_t { kAct = 0, kActOnMatrixCore = 1 };

// Declares one exported entry; failures_kit.py finds them by this macro.
#define ENTRY(name)                                                                                     \
  static void name##_body(const ChipTensor& x, const ChipTensor& big, const ChipTaskArgs& in);          \
  extern "C" __attribute__((visibility("default"))) void name(const ChipTaskArgs& in) {                 \
    name##_body(in.tensor(0).ref(), in.tensor(1).ref(), in);                                            \
  }                                                                                                     \
  static void name##_body([[maybe_unused]] const ChipTensor& x, [[maybe_unused]] const ChipTensor& big, \
                          [[maybe_unused]] const ChipTaskArgs& in)

inline void set_blocks(CoreTaskArgs& args, int16_t count) {
#if defined(SRC_A5_RUNTIME_TENSORMAP_AND_RINGBUFFER_RUNTIME_PTO_TYPES_H_)
  args.launch_spec.set_core_num(count);
#else
  args.launch_spec.set_block_num(count);
#endif
}

// Adds the kernel's scalars.
inline void ask(CoreTaskArgs& args, Act what, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0) {
  args.add_scalar(static_cast<int64_t>(what), a, b, c, d);
}
inline TaskOutputTensors act(const ChipTensor& tensor, Act what, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                             uint64_t d = 0) {
  CoreTaskArgs args;
  args.add_inout(tensor);
  ask(args, what, a, b, c, d);
  return rt_submit_aiv_task(kAct, args);
}
inline TaskOutputTensors act_untracked(const ChipTensor& tensor, Act what, uint64_t a = 0, uint64_t b = 0,
                                       uint64_t c = 0, uint64_t d = 0) {
  CoreTaskArgs args;
  args.add_no_dep(tensor);
  ask(args, what, a, b, c, d);
  return rt_submit_aiv_task(kAct, args);
}
inline TaskOutputTensors step(const ChipTensor& tensor, uint64_t a) { return act(tensor, kStep, a); }

inline ChipTensor row(const ChipTensor& tensor, uint32_t i) {
  const uint32_t shape[2] = {1, tensor.shapes[1]}, offset[2] = {i, 0};
  return tensor.view(shape, offset);
}
inline int64_t number(const ChipTaskArgs& in, int i) { return static_cast<int64_t>(in.scalar(i)); }
