// Program: an orchestration as data, so that the graph, an executor and the model can all be given the same one.
//
// Tasks are numbered by submission; tensors are named by where they come from, views by the steps that make them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "pto_types.h"

namespace simpler::model {

using Extents = std::vector<std::uint32_t>;

// One step from a tensor to a view of it.
struct ViewStep {
  enum Kind { kBox, kSlice, kPermute, kReshape };
  Kind kind;
  Extents shape;                                        // kBox: extents; kReshape: the new shape; kPermute: the order
  Extents offsets;                                      // kBox
  std::uint32_t dim = 0, start = 0, end = 0, step = 1;  // kSlice
};

// A tensor over memory from outside; several may lie over one buffer, with shapes and types of their own.
struct External {
  int buffer;
  Extents shape;
  DataType dtype;
  std::int32_t version;
};

// Memory that a task allocates.
struct Created {
  Extents shape;
  DataType dtype;
  bool manual_dep;
  std::optional<std::uint64_t> initial;  // bits of each element
};

struct Argument {
  TensorArgType tag;
  Created created;             // OUTPUT
  int external = -1;           // else: external tensor, or ...
  int task = -1, output = -1;  // ... argument `output` of an earlier task
  std::vector<ViewStep> views;
  bool manual_dep = false;
};

struct ExplicitDep {
  int task;
  DepFlags kind;
};

// The task runs if the element of one of its arguments compares true.
struct Guard {
  int argument;
  Extents index;
  PredicateOp op;
  std::int64_t target;
};

struct Step {
  enum Kind { kTask, kDummy, kAlloc, kOpenAuto, kOpenManual, kClose };
  Kind kind;
  std::vector<Argument> arguments;
  std::vector<ExplicitDep> deps;
  std::optional<Guard> guard;
  int blocks = 1;
  std::uint8_t lanes = 2;  // of each block: bit 0 AIC, 1 AIV0, 2 AIV1; one vector lane may be any vector core
  bool together = false;   // no block starts before all have their cores: a cohort, if there are two blocks or more
  bool meets = false;      // the lanes of a block, or of the whole cohort, wait for each other in their kernels

  bool submits() const { return kind <= kAlloc; }
  int lane_count() const { return __builtin_popcount(lanes); }
  int runs() const { return blocks * lane_count(); }  // of kernels
  bool cohort() const { return together && blocks > 1; }
};

struct Program {
  std::vector<std::uint64_t> buffer_bytes;
  std::vector<External> externals;
  std::vector<Step> steps;
  // Sizes of all four rings.
  std::uint32_t window = 1024;
  std::uint64_t heap = 4 << 20;
  std::uint32_t dep_pool = 65536;
  int clusters = 1;
};

}  // namespace simpler::model
