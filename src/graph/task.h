// Task and Slot: one submitted task, in two parts.
//
// What      A Slot is the identity: it is found by task id, takes the edges of consumers and decides when the task may be
//           reclaimed. A Task is the record that running needs: counters, kernels, edges, descriptors, scalars; a block
//           of RecordArena whose size follows from what the task uses. Edges are cells of the consumer's own record and
//           are named by their index in the arena, so any fan-in needs neither a pool nor a lock.
// Layout    Task | Edge[edges] | PTO2TaskId[edges] (retained producers first) | to 64 | ChipTensor[tensors] |
//           u64[scalars] | Predicate (if flagged)
//           Packed, as Graph::replay makes them: Task | Edge[edges] | PTO2TaskId[edges] | u64[tensors + scalars], what the
//           kernel receives | to 64 | those descriptors that no earlier task of the same replay has
// Threads   The submitter writes a record before publication; later only the fields of the first group change.
// Lifetime  Both live until the submitter reclaims the slot; see Slot::released.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "graph/wake_list.h"
#include "pto_submit_types.h"
#include "tensor.h"

namespace simpler::graph {

// What a block of a task occupies: one core, or (kMix) several at once; cohorts are kMix too, since all their blocks start
// together. Ready queues are kept for the first three.
enum class Shape : std::uint8_t { kAic = 0, kAiv = 1, kMix = 2, kDummy = 3, kAlloc = 4 };
constexpr int kQueuedShapes = 3;

// A task runs only if the element compares true; read when all producers are complete.
struct Predicate {
  const void* address;
  std::int64_t target;
  PredicateOp op;
  std::uint8_t width;  // bytes of the element: 1, 2, 4, 8
};

using RecordRef = std::uint32_t;  // offset of a Task in its arena, in units of 8 bytes; names edges too
constexpr RecordRef kNoRecord = 0xFFFFFFFF;

struct alignas(64) Task {
  // Changed after publication.
  std::atomic<std::int32_t> remaining;    // producers that have not completed, plus the submitter's guard
  std::atomic<std::int32_t> next_block;   // first block that nobody claimed
  std::atomic<std::int32_t> blocks_left;  // blocks, counted for each lane, that have not finished
  RecordRef next_open;                    // link of the list of tasks with unclaimed blocks; guarded by that list

  // Frozen at publication.
  PTO2TaskId id;
  std::uint32_t slot;
  std::int32_t block_count;
  std::uint32_t edge_count;
  std::uint32_t retained_count;  // the first of the producers, whose memory this task keeps alive
  std::int16_t kernels[3];       // func ids of AIC, AIV0, AIV1; -1: lane unused
  Shape shape;
  std::uint8_t tensor_count;
  std::uint8_t scalar_count;
  bool has_predicate;
  bool sync_start;
  std::int8_t timing_slot;  // -1: none
  bool packed;

  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  PTO2TaskId* producers() { return reinterpret_cast<PTO2TaskId*>(edges() + edge_count); }
  const PTO2TaskId* producers() const { return const_cast<Task*>(this)->producers(); }
  const ChipTensor& tensor(int i) const {
    return packed ? *reinterpret_cast<const ChipTensor*>(words()[i]) : tensors()[i];
  }
  // Not packed.
  ChipTensor* tensors() {
    return reinterpret_cast<ChipTensor*>(reinterpret_cast<char*>(this) + tensors_offset(edge_count));
  }
  const ChipTensor* tensors() const { return const_cast<Task*>(this)->tensors(); }
  // Packed.
  std::uint64_t* words() { return reinterpret_cast<std::uint64_t*>(producers() + edge_count); }
  const std::uint64_t* words() const { return const_cast<Task*>(this)->words(); }
  ChipTensor* own_tensors() {
    const std::size_t words = std::size_t{tensor_count} + scalar_count;
    return reinterpret_cast<ChipTensor*>(reinterpret_cast<char*>(this) + own_tensors_offset(edge_count, words));
  }
  // Not packed.
  std::uint64_t* scalars() { return reinterpret_cast<std::uint64_t*>(tensors() + tensor_count); }
  const std::uint64_t* scalars() const { return const_cast<Task*>(this)->scalars(); }
  Predicate* predicate() { return reinterpret_cast<Predicate*>(scalars() + scalar_count); }
  const Predicate* predicate() const { return const_cast<Task*>(this)->predicate(); }

  static constexpr std::size_t tensors_offset(std::size_t edges) {
    return (sizeof(Task) + edges * (sizeof(Edge) + sizeof(PTO2TaskId)) + 63) & ~std::size_t{63};
  }
  static constexpr std::size_t own_tensors_offset(std::size_t edges, std::size_t words) {
    return (sizeof(Task) + edges * (sizeof(Edge) + sizeof(PTO2TaskId)) + words * 8 + 63) & ~std::size_t{63};
  }
  static constexpr std::size_t packed_bytes(std::size_t edges, std::size_t words, std::size_t own_tensors) {
    return own_tensors_offset(edges, words) + own_tensors * sizeof(ChipTensor);
  }
  static constexpr std::size_t bytes(std::size_t edges, std::size_t tensors, std::size_t scalars, bool predicate) {
    return (tensors_offset(edges) + tensors * sizeof(ChipTensor) + scalars * 8 + (predicate ? sizeof(Predicate) : 0) +
            63) &
           ~std::size_t{63};
  }
};
static_assert(sizeof(Task) == 64,
              "counters and frozen fields share one line: the submitter never writes it while it runs");

// One element of a ring's task window, shared by all threads.
struct Slot {
  WakeList wake;
  // Parties that are done with the task: its own completion, and each consumer that retained it. The submitter, who
  // alone knows how many there are (SlotBook::retained), reclaims the slot when all have reported.
  std::atomic<std::uint32_t> released{0};
  RecordRef record = kNoRecord;
};
static_assert(sizeof(Slot) == 16,
              "four slots share a line: neighbours complete close in time and are reclaimed together");

// What only the submitter knows about a slot. Also what reclaiming needs of the task: its record is in a worker's cache.
struct SlotBook {
  std::uint64_t heap_end;       // offset past the task's outputs in its ring's heap; meaningful if heap_bytes != 0
  std::uint32_t retained;       // reports that Slot::released must reach
  std::uint32_t first_writer;   // the task's writes in the TensorMap, or TensorMap::kNone
  std::uint32_t mark_epoch;     // submission that found this producer last ...
  std::uint32_t mark_position;  // ... and where it stands among that submission's dependencies
  std::uint32_t edges;
  bool owns_heap;
  bool wired;  // its edges are charged to the dependency budget
};

}  // namespace simpler::graph
