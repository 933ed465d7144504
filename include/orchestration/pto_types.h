// The argument object of a task, and what a submission returns.
//
// Lifetime  Arguments are pointers to the caller's tensors, create-infos, dependency ids and predicate operand: these must
//           live until the submit call returns, which copies what it needs.
// Threads   One orchestration thread; nothing here is shared.
// Errors    A misuse never throws: the first one is recorded in the object and reported by the submit call.
#pragma once
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "arg_direction.h"
#include "pto_submit_types.h"
#include "tensor.h"
#include "tensor_create_info.h"

constexpr int CORE_MAX_TENSOR_ARGS = 32;
constexpr int CORE_MAX_SCALAR_ARGS = 16;
constexpr int MAX_TENSOR_ARGS = CORE_MAX_TENSOR_ARGS;
constexpr int MAX_SCALAR_ARGS = CORE_MAX_SCALAR_ARGS;
constexpr int MAX_TASK_TIMING_SLOTS = 16;

// User code tells the two spellings of the block count apart by this macro, so it exists exactly where core_num does.
#if defined(SIMPLER_ARCH_A5) && defined(SIMPLER_RUNTIME_STREAMING)
#define SRC_A5_RUNTIME_TENSORMAP_AND_RINGBUFFER_RUNTIME_PTO_TYPES_H_
#endif

// How many blocks a task has and whether they must all start together.
class PTO2LaunchSpec {
 public:
#if defined(SRC_A5_RUNTIME_TENSORMAP_AND_RINGBUFFER_RUNTIME_PTO_TYPES_H_)
  int16_t core_num() const { return block_count_; }
  void set_core_num(int16_t count) { block_count_ = count; }
#else
  int16_t block_num() const { return block_count_; }
  void set_block_num(int16_t count) { block_count_ = count; }
#endif
  bool require_sync_start() const { return sync_start_; }
  void set_require_sync_start(bool on) { sync_start_ = on; }

  int16_t block_count_ = 1;  // read by the runtime, which knows one name for both spellings
  bool sync_start_ = false;
};

// The task runs only if `tensor[indices] op target` holds once its producers are done; integers are compared signed.
struct CorePredicateOperand {
  const ChipTensor* tensor = nullptr;
  uint32_t ndims = 0;
  uint32_t indices[MAX_TENSOR_DIMS] = {};
};
struct CoreTaskPredicate {
  CorePredicateOperand operand;
  PredicateOp op = PredicateOp::NONE;
  int64_t target = 0;
};

// One tensor argument: a borrowed pointer to a ChipTensor or a TensorCreateInfo, told apart by the argument's tag.
class TensorRef {
 public:
  TensorRef() = default;
  TensorRef(const TensorRef&) = delete;
  TensorRef& operator=(const TensorRef&) = delete;
  TensorRef& operator=(const ChipTensor* tensor) {
    pointer_ = tensor;
    return *this;
  }
  TensorRef& operator=(const TensorCreateInfo* info) {
    pointer_ = info;
    return *this;
  }
  const ChipTensor& ref() const { return *static_cast<const ChipTensor*>(pointer_); }
  const TensorCreateInfo& create_info() const { return *static_cast<const TensorCreateInfo*>(pointer_); }
  bool refers_to(const void* pointer) const { return pointer_ == pointer; }

 private:
  const void* pointer_;
};

// Arguments of one task: up to MaxT tensors, then up to MaxS scalars, in the order in which the kernel receives them.
// Reusable through reset(). The constructor leaves the arrays untouched: a task pays only for what it adds.
template <std::size_t MaxT, std::size_t MaxS> struct BasicTaskArgs {
  BasicTaskArgs() = default;
  BasicTaskArgs(const BasicTaskArgs&) = delete;
  BasicTaskArgs& operator=(const BasicTaskArgs&) = delete;

  bool has_error = false;
  const char* error_msg = nullptr;
  PTO2LaunchSpec launch_spec;

  template <typename... A> void add_input(A&&... tensors) { add_tensors<A...>(TensorArgType::INPUT, tensors...); }
  template <typename... A> void add_inout(A&&... tensors) { add_tensors<A...>(TensorArgType::INOUT, tensors...); }
  template <typename... A> void add_no_dep(A&&... tensors) { add_tensors<A...>(TensorArgType::NO_DEP, tensors...); }
  // ChipTensors: existing memory is written. TensorCreateInfos: the runtime allocates.
  template <typename... A> void add_output(A&&... outputs) {
    static_assert(sizeof...(A) >= 1, "add_output needs at least one argument");
    if constexpr ((std::is_same_v<std::decay_t<A>, TensorCreateInfo> && ...)) {
      static_assert((std::is_lvalue_reference_v<A> && ...),
                    "add_output stores addresses: pass named objects, not temporaries");
      (append(TensorArgType::OUTPUT, &outputs), ...);
    } else {
      add_tensors<A...>(TensorArgType::OUTPUT_EXISTING, outputs...);
    }
  }

  // Arithmetic or enum values of any mix of types, each packed with to_u64.
  template <typename... A> void add_scalar(A&&... values) {
    static_assert(sizeof...(A) >= 1, "add_scalar needs at least one argument");
    static_assert((is_supported_scalar_arg_v<A> && ...), "a scalar argument is an arithmetic or enum value");
    (append_scalar(to_u64<std::decay_t<A>>(values), dtype_of<A>(), &values), ...);
  }
  void add_scalars(const uint64_t* values, int count) {
    for (int i = 0; i < count; ++i) append_scalar(values[i], static_cast<uint8_t>(DataType::UINT64), &values[i]);
  }
  void add_scalars_i32(const int32_t* values, int count) {
    for (int i = 0; i < count; ++i) append_scalar(to_u64(values[i]), static_cast<uint8_t>(DataType::INT32), &values[i]);
  }
  void copy_scalars_from(const BasicTaskArgs& source, int offset, int count) {
    if (offset < 0 || count < 0 || offset > source.scalar_count_ || count > source.scalar_count_ - offset) {
      format_error("copy_scalars_from: %d from offset %d are not inside the source, which has %d scalars", count,
                   offset, source.scalar_count_);
      return;
    }
    for (int i = offset; i < offset + count; ++i) {
      append_scalar(source.scalars_[i], source.scalar_dtypes_[i],
                    source.is_boundary_ ? &source.scalars_[i] : source.scalar_sources_[i]);
      source.note_scalar_read(i);
    }
  }

  // Tasks that this one waits for and whose memory it keeps alive. `ids` is borrowed until the submit call returns.
  void set_dependencies(const PTO2TaskId* ids, uint32_t count) { bind_dependencies(ids, nullptr, count); }
#if !defined(SIMPLER_RUNTIME_WHOLE_GRAPH)
  void set_dependencies_with_kinds(const PTO2TaskId* ids, const DepFlags* kinds, uint32_t count) {
    if (count > 0 && kinds == nullptr) {
      format_error("set_dependencies_with_kinds: a count of %u without an array of kinds", count);
      return;
    }
    bind_dependencies(ids, kinds, count);
  }
  DepFlags explicit_dep_kind(uint32_t i) const { return dep_kinds_ != nullptr ? dep_kinds_[i] : DEP_WAIT | DEP_RETAIN; }
#endif
  uint32_t explicit_dep_count() const { return dep_count_; }
  PTO2TaskId explicit_dep(uint32_t i) const { return deps_[i]; }
  const PTO2TaskId* explicit_deps_data() const { return deps_; }

  // A hint that consumers may be prepared before this task ends.
  void set_allow_early_resolve(bool on = true) { allow_early_resolve_ = on; }
  bool allow_early_resolve() const { return allow_early_resolve_; }

  void set_predicate(const CoreTaskPredicate& predicate) { predicate_ = predicate; }
  const CoreTaskPredicate& predicate() const { return predicate_; }

  // Tasks that share a slot are timed together: first start to last end. 0..15.
  void set_task_timing_slot(int32_t slot) {
    if (slot < 0 || slot >= MAX_TASK_TIMING_SLOTS) {
      format_error("set_task_timing_slot: slot %d is outside 0..%d", slot, MAX_TASK_TIMING_SLOTS - 1);
      return;
    }
    timing_slot_ = slot;
  }
  int32_t task_timing_slot() const { return timing_slot_; }

  // Marks arguments for the argument dump; without arguments all of them. They must have been added before.
  template <typename... A> void dump(A&&... arguments) {
    if constexpr (sizeof...(A) == 0) {
      const int count = tensor_count_ + scalar_count_;
      if (count == 0) set_error("dump: the object has no arguments to mark: 0 tensors and 0 scalars");
      dump_mask_ |= count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
    } else {
      static_assert((std::is_lvalue_reference_v<A> && ...), "dump matches addresses: pass the objects that were added");
      (mark_for_dump(&arguments), ...);
    }
  }
  uint64_t dump_arg_mask() const { return dump_mask_; }                            // bit i: argument i
  uint64_t dump_arg_index_ambiguous_mask() const { return dump_ambiguous_mask_; }  // added more than once

  // Everything but errors and launch_spec.
  void clear() {
    tensor_count_ = scalar_count_ = 0;
    deps_ = nullptr;
    dep_kinds_ = nullptr;
    dep_count_ = 0;
    allow_early_resolve_ = false;
    predicate_ = CoreTaskPredicate{};
    timing_slot_ = -1;
    scalars_exposed_ = false;
    dump_mask_ = dump_ambiguous_mask_ = 0;
  }
  void reset() {
    clear();
    has_error = false;
    error_msg = nullptr;
  }
  // The first error stays. `message` is borrowed: a literal.
  void set_error(const char* message) {
    if (has_error) return;
    has_error = true;
    error_msg = message;
  }

  // An index that the object has not got throws std::out_of_range into the orchestration, which ends the run.
  const TensorRef& tensor(int32_t i) const { return tensors_[checked(i, tensor_count_, "tensor")]; }
  const TensorRef* tensors() const { return tensors_; }
  TensorArgType tag(int32_t i) const { return static_cast<TensorArgType>(tags_[i]); }
#if defined(SIMPLER_RUNTIME_WHOLE_GRAPH)
  // By reference: where the value goes tells whether a recorded graph hands it on or computes from it.
  const uint64_t& scalar(int32_t i) const {
    note_scalar_read(checked(i, scalar_count_, "scalar"));
    return scalars_[i];
  }
  // Whoever may change it later makes the arguments no boundary of a graph.
  uint64_t& scalar(int32_t i) {
    scalar_sources_[checked(i, scalar_count_, "scalar")] = nullptr;
    scalars_exposed_ = true;
    return scalars_[i];
  }
#else
  uint64_t scalar(int32_t i) const { return scalars_[checked(i, scalar_count_, "scalar")]; }
#endif
  const uint64_t* scalars() const { return scalars_; }
  const uint8_t* scalar_dtypes() const { return scalar_dtypes_; }
  int32_t tensor_count() const { return tensor_count_; }
  int32_t scalar_count() const { return scalar_count_; }

  // For the recording of graphs. `scalar_source` is the object that a scalar was added from, maybe gone by now; for a
  // scalar copied from other arguments, that of theirs, or theirs if they are the boundary.
  const void* scalar_source(int32_t i) const { return scalar_sources_[i]; }
  bool scalars_exposed() const { return scalars_exposed_; }
  void begin_boundary() const {
    is_boundary_ = true;
    for (uint16_t& reads : scalar_reads_) reads = 0;
  }
  void end_boundary() const { is_boundary_ = false; }
  // Since begin_boundary; 65535 stands for any number above.
  int scalar_reads(int32_t i) const { return scalar_reads_[i]; }
  void note_scalar_read(int32_t i) const {
    if (is_boundary_ && scalar_reads_[i] < 65535) ++scalar_reads_[i];
  }

 protected:
  // set_error with values in the text, which the object keeps.
  [[gnu::cold, gnu::noinline, gnu::format(printf, 2, 3)]] void format_error(const char* pattern, ...) {
    if (has_error) return;
    va_list values;
    va_start(values, pattern);
    std::vsnprintf(error_text_, sizeof error_text_, pattern, values);
    va_end(values);
    set_error(error_text_);
  }

 private:
  static int32_t checked(int32_t i, int32_t count, const char* what) {
    if (i < 0 || i >= count) throw_out_of_range(i, count, what);
    return i;
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void throw_out_of_range(int32_t i, int32_t count, const char* what) {
    throw std::out_of_range("CoreTaskArgs: " + std::string(what) + " " + std::to_string(i) +
                            " was asked for, and the object has " + std::to_string(count));
  }
  template <typename... A, typename... B> void add_tensors(TensorArgType tag, B&... tensors) {
    static_assert(sizeof...(A) >= 1, "at least one tensor is needed");
    static_assert((std::is_same_v<std::decay_t<A>, ChipTensor> && ...),
                  "tensor arguments are ChipTensors, not mixed with other types");
    static_assert((std::is_lvalue_reference_v<A> && ...),
                  "tensor arguments are stored by address: pass named objects, not temporaries");
    (append(tag, &tensors), ...);
  }
  template <typename T> void append(TensorArgType tag, const T* argument) {
    if (scalar_count_ > 0) {
      format_error("tensor %d was added after a scalar, of which there are %d: add all tensors first",
                   tensor_count_ + 1, scalar_count_);
    } else if (static_cast<std::size_t>(tensor_count_) >= MaxT) {
      format_error("too many arguments: tensor %d was added, and a task takes at most %d tensors", tensor_count_ + 1,
                   static_cast<int>(MaxT));
    } else {
      tags_[tensor_count_] = static_cast<uint8_t>(tag);
      tensors_[tensor_count_++] = argument;
    }
  }
  void append_scalar(uint64_t bits, uint8_t dtype, const void* source) {
    if (static_cast<std::size_t>(scalar_count_) >= MaxS) {
      format_error("too many arguments: scalar %d was added, and a task takes at most %d scalars", scalar_count_ + 1,
                   static_cast<int>(MaxS));
      return;
    }
    scalars_[scalar_count_] = bits;
    scalar_dtypes_[scalar_count_] = dtype;
    scalar_sources_[scalar_count_++] = source;
  }
  void bind_dependencies(const PTO2TaskId* ids, const DepFlags* kinds, uint32_t count) {
    if (count == 0) {
      deps_ = nullptr;
      dep_kinds_ = nullptr;
      dep_count_ = 0;
    } else if (ids == nullptr) {
      format_error("set_dependencies: a count of %u without an array of task ids", count);
    } else if (dep_count_ > 0) {
      format_error("set_dependencies was called twice, with %u and with %u: pass all dependencies in one array",
                   dep_count_, count);
    } else {
      deps_ = ids;
      dep_kinds_ = kinds;
      dep_count_ = count;
    }
  }
  void mark_for_dump(const void* address) {
    uint64_t found = 0;
    for (int i = 0; i < tensor_count_; ++i) found |= tensors_[i].refers_to(address) ? uint64_t{1} << i : 0;
    for (int i = 0; i < scalar_count_; ++i)
      found |= scalar_sources_[i] == address ? uint64_t{1} << (tensor_count_ + i) : 0;
    if (found == 0) {
      format_error("dump: the object at %p is not an argument of this task, which has %d tensors and %d scalars",
                   address, tensor_count_, scalar_count_);
    }
    if (found & (found - 1)) dump_ambiguous_mask_ |= found;
    dump_mask_ |= found;
  }

  int32_t tensor_count_ = 0;
  int32_t scalar_count_ = 0;
  uint32_t dep_count_ = 0;
  int32_t timing_slot_ = -1;
  const PTO2TaskId* deps_ = nullptr;
  const DepFlags* dep_kinds_ = nullptr;
  uint64_t dump_mask_ = 0;
  uint64_t dump_ambiguous_mask_ = 0;
  bool allow_early_resolve_ = false;
  bool scalars_exposed_ = false;
  mutable bool is_boundary_ = false;
  CoreTaskPredicate predicate_;
  uint8_t tags_[MaxT];
  uint8_t scalar_dtypes_[MaxS];
  mutable uint16_t scalar_reads_[MaxS];  // meaningful while is_boundary_
  TensorRef tensors_[MaxT];
  uint64_t scalars_[MaxS];
  const void* scalar_sources_[MaxS];
  char error_text_[128];  // of format_error
};

using CoreTaskArgs = BasicTaskArgs<CORE_MAX_TENSOR_ARGS, CORE_MAX_SCALAR_ARGS>;
using Arg = CoreTaskArgs;  // the older interface's name

// Thrown by the API into the orchestration when it cannot go on, for instance when it uses the result of a submission
// that a failed run refused. The runtime catches it at the entry and reports the code that ended the run.
struct OrchestrationStopped {};

// What a submission returns: the task's id and the tensors that the runtime allocated, in add_output order.
// Lifetime: references from get_ref are valid inside the scope of the submission. Empty after the run failed.
class TaskOutputTensors {
 public:
  TaskOutputTensors() = default;
  // For the runtime: bit i of `outputs` says that descriptor i of the task is an output.
  TaskOutputTensors(PTO2TaskId id, const ChipTensor* descriptors, uint32_t outputs)
      : id_(id), descriptors_(descriptors), outputs_(outputs) {}

  bool empty() const { return outputs_ == 0; }
  uint32_t size() const { return static_cast<uint32_t>(__builtin_popcount(outputs_)); }
  PTO2TaskId task_id() const { return id_; }
  const ChipTensor& get_ref(uint32_t i) const& {
    uint32_t rest = outputs_;
    for (uint32_t left = i; left > 0 && rest != 0; --left) rest &= rest - 1;
    if (rest == 0) out_of_range(i);
    return descriptors_[__builtin_ctz(rest)];
  }
  const ChipTensor& get_ref(uint32_t) const&& = delete;

 private:
  [[noreturn]] void out_of_range(uint32_t index) const;  // pto_orchestration_api.h

  PTO2TaskId id_ = PTO2TaskId::invalid();
  const ChipTensor* descriptors_ = nullptr;
  uint32_t outputs_ = 0;
};
using TaskSubmitResult = TaskOutputTensors;  // the older interface's name
