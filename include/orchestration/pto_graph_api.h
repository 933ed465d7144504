// Graphs: a function that submits tasks is recorded at its first use in a run; later uses replay what it submitted, with
// other tensors and scalars, without calling it. Comes with pto_orchestration_api.h; host_build_graph only.
//
// What      rt_submit_graph(body, args, config...) gives the same result as body(args, config...). `args` is the graph's
//           boundary: the tensors (1..32, existing ones) and scalars that differ from use to use. The configuration is
//           part of the graph's identity, and so is `body`; an id of the caller's choice (GRAPH_KEY("name")) comes on top.
// Rules     The body's effects are the tasks that it submits, and they depend on nothing but its arguments. It uses
//           boundary tensors and views of them, and what its own tasks allocate. A scalar that it hands on as it is
//           (add_scalar(args.scalar(i)), copy_scalars_from) is that of each use. What it computes from a scalar, a shape
//           or anything else is the recorded value; a scalar that it has looked at is compared by value, as far as
//           reading can be told from handing on.
// Fallback  A use that differs from the recorded one in shape, type, direction or overlap of its tensors, or that cannot
//           be recorded, calls the body. Nothing else changes: not the result, nor the edges between tasks.
// Result    task_id completes when all tasks of the use have.
// Limits    16 recorded graphs in a run, 1024 tasks in each; more are submitted plainly. To the task window one use counts
//           as one task.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include "pto_orchestration_api.h"

using GraphScopeResult = SimplerGraphBlock;
using GraphSubmitResult = GraphScopeResult;
using GraphFunction = void (*)(const CoreTaskArgs&);
template <typename... C> using GraphFunctionWithConfig = void (*)(const CoreTaskArgs&, C...);

namespace simpler_graph {

constexpr uint64_t kFnvOffset = 1469598103934665603ull, kFnvPrime = 1099511628211ull;
constexpr uint64_t hash_byte(uint64_t hash, uint8_t byte) { return (hash ^ byte) * kFnvPrime; }
constexpr uint64_t hash_bytes(uint64_t hash, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) hash = hash_byte(hash, static_cast<uint8_t>(value >> 8 * i));
  return hash;
}
// A value counts with its kind and width: 1, 1u, 1.0f and true are different configurations.
template <typename T> uint64_t hash_value(uint64_t hash, T value) {
  static_assert(is_supported_scalar_arg_v<T> && sizeof(T) <= 8, "a graph's configuration is made of numbers");
  constexpr uint8_t kKind = std::is_same_v<T, bool>       ? 'b'
                            : std::is_floating_point_v<T> ? 'f'
                            : std::is_enum_v<T>           ? 'e'
                            : std::is_signed_v<T>         ? 'i'
                                                          : 'u';
  return hash_bytes(hash_byte(hash_byte(hash, kKind), sizeof(T)), to_u64(value), sizeof(T));
}

}  // namespace simpler_graph

// The identity of a name.
constexpr uint64_t GRAPH_KEY(const char* name) {
  uint64_t hash = simpler_graph::kFnvOffset;
  for (; *name != '\0'; ++name) hash = simpler_graph::hash_byte(hash, static_cast<uint8_t>(*name));
  return hash;
}

template <typename... C> static inline uint64_t rt_graph_make_key(uint64_t id, C... config) {
  uint64_t hash = simpler_graph::hash_bytes(simpler_graph::kFnvOffset, id, 8);
  ((hash = simpler_graph::hash_value(hash, config)), ...);
  return hash;
}
template <typename... C> static inline uint64_t rt_graph_function_id(void (*body)(const CoreTaskArgs&, C...)) {
  return reinterpret_cast<uint64_t>(body);
}
// Whether these arguments can be a graph's boundary.
static inline bool rt_graph_args_cacheable(const CoreTaskArgs& args) {
  if (args.has_error || args.tensor_count() < 1 || args.explicit_dep_count() > 0 || args.scalars_exposed())
    return false;
  for (int32_t i = 0; i < args.tensor_count(); ++i) {
    if (args.tag(i) == TensorArgType::OUTPUT) return false;
  }
  return true;
}

// The parts of rt_submit_graph. Where begin answers execute_block, the caller submits the body's tasks; if it answers
// `recording` too, it calls rt_graph_end (true: all is well) and rt_graph_commit, which tells the id that completes when
// the tasks have.
static inline GraphScopeResult rt_graph_begin(uint64_t key, const CoreTaskArgs& args) {
  return current_runtime()->ops->graph_begin(current_runtime(), key, args, false);
}
static inline bool rt_graph_end() { return current_runtime()->ops->graph_end(current_runtime()); }
static inline PTO2TaskId rt_graph_commit() { return current_runtime()->ops->graph_commit(current_runtime()); }

namespace simpler_graph {

template <typename Body> GraphSubmitResult submit(uint64_t key, const CoreTaskArgs& args, Body body) {
  PTO2Runtime* const runtime = current_runtime();
  GraphSubmitResult result = runtime->ops->graph_begin(runtime, key, args, true);
  if (!result.execute_block) return result;
  body();
  runtime->ops->graph_end(runtime);
  result.task_id = runtime->ops->graph_commit(runtime);
  return result;
}

}  // namespace simpler_graph

static inline GraphSubmitResult rt_submit_graph(GraphFunction body, const CoreTaskArgs& args) {
  return simpler_graph::submit(rt_graph_make_key(rt_graph_function_id(body)), args, [&] { body(args); });
}
static inline GraphSubmitResult rt_submit_graph(uint64_t id, GraphFunction body, const CoreTaskArgs& args) {
  return simpler_graph::submit(rt_graph_make_key(id, rt_graph_function_id(body)), args, [&] { body(args); });
}
template <typename... C, typename... V>
static inline std::enable_if_t<(sizeof...(C) > 0 && sizeof...(C) == sizeof...(V)), GraphSubmitResult> rt_submit_graph(
    void (*body)(const CoreTaskArgs&, C...), const CoreTaskArgs& args, V... config) {
  return simpler_graph::submit(rt_graph_make_key(rt_graph_function_id(body), static_cast<std::decay_t<C>>(config)...),
                               args, [&] { body(args, static_cast<std::decay_t<C>>(config)...); });
}
template <typename... C, typename... V>
static inline std::enable_if_t<(sizeof...(C) > 0 && sizeof...(C) == sizeof...(V)), GraphSubmitResult> rt_submit_graph(
    uint64_t id, void (*body)(const CoreTaskArgs&, C...), const CoreTaskArgs& args, V... config) {
  return simpler_graph::submit(
      rt_graph_make_key(id, rt_graph_function_id(body), static_cast<std::decay_t<C>>(config)...), args,
      [&] { body(args, static_cast<std::decay_t<C>>(config)...); });
}
