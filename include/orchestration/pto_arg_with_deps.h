// CoreTaskArgsWithDeps: task arguments that carry their own list of up to N explicit dependencies.
// May be submitted again; reset() clears both arguments and dependencies. Comes with pto_orchestration_api.h too.
#pragma once
#include <cstddef>
#include <type_traits>

#include "pto_types.h"

template <std::size_t N = 16> class CoreTaskArgsWithDeps : private CoreTaskArgs {
  using Base = CoreTaskArgs;

 public:
  using Base::add_inout;
  using Base::add_input;
  using Base::add_no_dep;
  using Base::add_output;
  using Base::add_scalar;
  using Base::add_scalars;
  using Base::add_scalars_i32;
  using Base::allow_early_resolve;
  using Base::error_msg;
  using Base::has_error;
  using Base::launch_spec;
  using Base::set_allow_early_resolve;
  using Base::set_error;
  using Base::set_task_timing_slot;
  using Base::task_timing_slot;

  void copy_scalars_from(const CoreTaskArgs& source, int offset, int count) {
    Base::copy_scalars_from(source, offset, count);
  }
  template <std::size_t M> void copy_scalars_from(const CoreTaskArgsWithDeps<M>& source, int offset, int count) {
    Base::copy_scalars_from(source.arguments(), offset, count);
  }

  template <typename... Ids> void add_dep(Ids... ids) {
    static_assert((std::is_same_v<Ids, PTO2TaskId> && ...), "add_dep takes task ids");
    (append(ids, DEP_WAIT | DEP_RETAIN), ...);
  }
#if !defined(SIMPLER_RUNTIME_WHOLE_GRAPH)
  // Orders without keeping the producer's memory alive.
  template <typename... Ids> void add_dep_wait(Ids... ids) {
    static_assert((std::is_same_v<Ids, PTO2TaskId> && ...), "add_dep_wait takes task ids");
    (append(ids, DEP_WAIT), ...);
  }
#endif
  void reset() {
    Base::reset();
    count_ = 0;
  }
  // Binds the dependencies to the arguments; the submit overloads call it. Idempotent.
  CoreTaskArgs& finalize_for_submit() {
    Base::set_dependencies(nullptr, 0);
#if !defined(SIMPLER_RUNTIME_WHOLE_GRAPH)
    Base::set_dependencies_with_kinds(ids_, kinds_, count_);
#else
    Base::set_dependencies(ids_, count_);
#endif
    return *this;
  }
  const CoreTaskArgs& arguments() const { return *this; }

 private:
  void append(PTO2TaskId id, DepFlags kind) {
    if (count_ >= N) {
      Base::format_error("add_dep: dependency %u was added, and CoreTaskArgsWithDeps<%u> has no room for it: raise N",
                         count_ + 1, static_cast<uint32_t>(N));
      return;
    }
    ids_[count_] = id;
    kinds_[count_++] = kind;
  }

  uint32_t count_ = 0;
  PTO2TaskId ids_[N];
  DepFlags kinds_[N];
};

// The older interface's name.
template <std::size_t N = 16> using ArgWithDeps = CoreTaskArgsWithDeps<N>;
