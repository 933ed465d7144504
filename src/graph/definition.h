// Definition: what one use of a graph submitted, in a form that other uses are made from. See Graph::replay.
//
// What      Tasks are named by their place in the graph ("nodes"); tensors by where they come from: a view of a boundary
//           tensor, or memory that a node allocated; scalars by their value or by the boundary scalar that they repeat.
//           Nothing in a Recording is an address or a task id, so equal recordings of different runs are equal bytes.
// Edges     Between nodes they are part of the recording: what two accesses of one use have in common does not depend on
//           where the boundary lies, because boundary tensors that meet keep their distance (see fits). Edges to tasks
//           outside are found anew at each use, from the accesses to boundary tensors.
// Threads   Immutable once made.
// C++17, no libraries.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/task.h"
#include "pto_types.h"

namespace simpler::graph {

constexpr std::size_t kMaxNodes = 1024;

// What a boundary tensor must be like. Compared byte by byte.
struct BoundaryTensor {
  std::uint64_t bytes;  // of the buffer
  std::uint32_t shapes[MAX_TENSOR_DIMS];
  std::uint32_t strides[MAX_TENSOR_DIMS];
  std::uint32_t ndims;
  std::int32_t version;
  std::uint8_t tag;
  std::uint8_t dtype;
  std::uint8_t is_contiguous;
  std::uint8_t manual_dep;
  std::uint8_t address_space;
  std::uint8_t first_of_buffer;  // the first boundary tensor of the same buffer: itself, or an earlier one
  std::uint8_t pad[2];
  static BoundaryTensor of(const ChipTensor& tensor, TensorArgType tag);
};
static_assert(sizeof(BoundaryTensor) == 64, "no padding: compared as bytes");

// Two boundary tensors of one buffer: whether their byte ranges meet, and how far apart they begin if they do.
struct BoundaryPair {
  std::uint8_t first, second;
  bool meet;
  std::int64_t distance;  // bytes; 0 unless they meet
  bool operator==(const BoundaryPair& other) const {
    return first == other.first && second == other.second && meet == other.meet && distance == other.distance;
  }
};

struct TensorSource {
  enum Kind : std::uint16_t { kBoundary, kNode };
  Kind kind;
  std::uint16_t index;  // of the boundary tensor, or of the node that allocated it
};

struct Node {
  std::int16_t kernels[3];
  Shape shape;
  std::int8_t timing_slot;
  std::int32_t block_count;
  std::uint8_t sync_start;
  std::uint8_t joins;  // any number of producers
  std::uint8_t tensor_count;
  std::uint8_t scalar_count;
  std::uint32_t producer_count;
  std::uint32_t access_count;
  std::uint32_t creators;  // bit b: depends on the task that created boundary tensor b
};
static_assert(sizeof(Node) == 28, "no padding: compared as bytes");

// A node's access to a boundary tensor that earlier tasks outside may have to do with, or later ones.
struct Access {
  std::uint32_t tensor;  // its place in Recording::tensors
  std::uint8_t looks_up;
  std::uint8_t covers;    // takes what it covers out of the table of writes
  std::uint8_t survives;  // a write that is in the table when the graph ends
  std::uint8_t pad;
};

// Memory that a node fills before it runs.
struct InitialValue {
  std::uint32_t tensor;
  std::uint32_t width;  // bytes of an element
  std::uint64_t value;
};

struct Recording {
  std::vector<BoundaryTensor> boundary;
  std::vector<BoundaryPair> pairs;
  std::vector<std::uint64_t> scalars_seen;     // of the boundary; 0 where the value does not matter ...
  std::vector<std::uint8_t> scalars_compared;  // ... and here whether it does
  std::vector<Node> nodes;
  // By node, one after the other:
  std::vector<std::uint32_t> producers;  // nodes
  // Descriptors. Of a boundary tensor: the origin is relative to it, and so is the version. Of a node's memory: the
  // address is relative to that of the graph.
  std::vector<ChipTensor> tensors;
  std::vector<TensorSource> sources;
  std::vector<std::uint64_t> scalars;
  std::vector<std::int8_t> scalar_sources;  // boundary scalar; -1: the value
  std::vector<Access> accesses;
  std::vector<InitialValue> initial_values;
  std::uint64_t heap_bytes = 0;

  bool operator==(const Recording& other) const;
  std::uint64_t hash() const;
};

class Definition {
 public:
  explicit Definition(Recording recording);

  const Recording& recording() const { return recording_; }
  std::uint64_t hash() const { return hash_; }
  // Nodes that no other node depends on.
  const std::vector<std::uint32_t>& sinks() const { return sinks_; }
  // The distinct ones among Recording::tensors, numbered by their first use: by tensor; and how many are first used by each
  // node.
  const std::vector<std::uint32_t>& descriptors() const { return descriptors_; }
  std::size_t descriptor_count() const { return descriptor_count_; }
  const std::vector<std::uint8_t>& own_descriptors() const { return own_descriptors_; }
  // The distinct ones among those of the accesses, by access.
  const std::vector<std::uint32_t>& views() const { return views_; }
  std::size_t view_count() const { return view_count_; }
  std::uint32_t survivors() const { return survivors_; }

  // nullptr if these arguments can take the place of the recorded ones, else the first reason why not, a literal.
  const char* mismatch(const CoreTaskArgs& boundary) const;

 private:
  Recording recording_;
  std::uint64_t hash_;
  std::vector<std::uint32_t> sinks_;
  std::vector<std::uint32_t> descriptors_;
  std::vector<std::uint8_t> own_descriptors_;
  std::size_t descriptor_count_ = 0;
  std::vector<std::uint32_t> views_;
  std::size_t view_count_ = 0;
  std::uint32_t survivors_ = 0;
};

// How the boundary tensors lie to each other; sets BoundaryTensor::first_of_buffer.
std::vector<BoundaryPair> pairs_of(const ChipTensor* const* tensors, BoundaryTensor* boundary, std::size_t count);

}  // namespace simpler::graph
