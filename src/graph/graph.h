// Graph: tasks, their order and their memory. It has no threads and no platform: a submitter feeds it, executors complete
// its tasks.
//
// What      submit() finds the producers of a task (explicit ones, creators of its tensors, writers that overlap its
//           accesses), takes a slot of the ring that belongs to the scope's depth and a block of that ring's heap, and
//           links the task to those producers that are still running. complete() reports the tasks that thereby become
//           ready. Nothing here waits: when a resource is used up, submit() says which one, and has changed nothing.
// Threads   submit, scopes, reclaim, find_*: one submitter thread. complete, task: any thread, for tasks that became
//           ready and are not complete yet. What the two sides share is Slot and the counters of Task.
// Lifetime  configure() while nothing runs, begin() before each run. A task's record stays valid until the submitter
//           reclaims it, which needs its completion, the completion of consumers that retain it, and its scope's end.
// Order     A task's completion happens before its consumers become ready, and before the submitter reclaims it.
// Memory    Heap and records are address space that costs nothing until touched.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "base/virtual_memory.h"
#include "graph/definition.h"
#include "graph/heap_ring.h"
#include "graph/record_arena.h"
#include "graph/scopes.h"
#include "graph/task.h"
#include "graph/tensor_map.h"
#include "pto_types.h"

namespace simpler::graph {

constexpr std::uint64_t kOutputAlignment = 1024;  // bytes: each output of a task starts on such a boundary
constexpr std::uint32_t kInlineEdges = 64;        // edges of one task beyond these are charged to the spill budget
// Lifetime::kRun:
constexpr std::uint32_t kMaxFanIn = 128;         // producers of one task
constexpr std::uint32_t kNodeWindow = 1u << 20;  // tasks of recorded graphs in one run

// Sizes of the four rings, by scope depth. Windows are powers of two >= 4, heaps >= 1024 bytes. With Lifetime::kRun only
// window and heap of the first one count.
struct RingSizes {
  std::array<std::uint32_t, kRings> window;    // tasks
  std::array<std::uint64_t, kRings> heap;      // bytes
  std::array<std::uint32_t, kRings> dep_pool;  // edges
};

// What is to run. Kernels: func ids of AIC, AIV0, AIV1; -1 for an unused lane.
struct TaskSpec {
  Shape shape;
  std::int16_t kernels[3];
  std::int32_t block_count;
  bool sync_start;
  bool joins = false;  // stands for the end of a recorded graph: any number of producers
};

enum class Resource : std::uint8_t { kNone, kWindow, kHeap, kDependencies, kSpill, kRegions, kRecords, kFanIn };

// Why a task could not be taken now.
struct Shortage {
  Resource resource = Resource::kNone;
  int ring = 0;
  std::uint64_t requested = 0;
  std::uint64_t used = 0;
  std::uint64_t capacity = 0;

  bool hopeless() const { return requested > capacity; }
};

struct Submitted {
  Task* task = nullptr;
  RecordRef record = kNoRecord;
  bool ready = false;         // no producer is running: hand it to an executor
  std::uint32_t outputs = 0;  // bit i: tensor argument i is memory that the task allocated
};

enum class Outcome { kTaken, kShort, kRefused };

class Graph {
 public:
  // False if the system refuses the address space. `heaps` are the bases of the rings' output memory, as tasks see them.
  bool configure(const RingSizes& sizes, const std::array<char*, kRings>& heaps, Lifetime lifetime = Lifetime::kScopes);
  // Forgets the last run.
  void begin();

  Scopes& scopes() { return scopes_; }

  // kTaken fills *submitted; kShort fills *shortage; kRefused fills *refusal with a text
  // that stays until the next call.
  Outcome submit(const TaskSpec& spec, const CoreTaskArgs& args, Submitted* submitted, Shortage* shortage,
                 const char** refusal);

  // Lifetime::kRun, for recorded graphs, whose tasks are on kNodeRing: submits all tasks of a graph at once. `boundary`
  // fits the definition. *first_node receives the local id of the first task; `ready` the tasks that wait for nobody.
  Outcome replay(const Definition& definition, const CoreTaskArgs& boundary, std::uint32_t* first_node,
                 std::vector<RecordRef>* ready, Shortage* shortage);
  // Calls visit(present) for the tracked writes of a task; see TensorMap.
  template <typename Visit> void for_each_write(PTO2TaskId id, Visit visit) const {
    map_.for_each_of_task(books()[slot_of(id)].first_writer, visit);
  }
  const Task& task_of(PTO2TaskId id) const { return *records_.at(slots()[slot_of(id)].record); }
  // Lifetime::kRun: where the next output is allocated.
  std::uint64_t heap_top() const {
    return reinterpret_cast<std::uint64_t>(rings_[0].heap_base) + rings_[0].heap.used();
  }

  // On the thread that finished the task's last block. Calls ready(record) for each task that became ready; ready must
  // not complete tasks itself. Afterwards the task must not be touched.
  template <typename Ready> void complete(Task& task, Ready ready) noexcept {
    const std::uint32_t self = task.slot, generation = generation_of(task.id), retained = task.retained_count;
    const PTO2TaskId* producers = task.producers();
    slots()[self].wake.complete(records_.edges(), generation, [&](RecordRef consumer) {
      if (records_.at(consumer)->remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) ready(consumer);
    });
    for (std::uint32_t i = 0; i < retained; ++i) release(slot_of(producers[i]));
    release(self);
  }

  // Gives back what finished tasks of closed scopes held. True if anything was given back.
  bool reclaim(int ring, std::uint32_t at_most = UINT32_MAX);
  bool reclaim_all();
  bool all_reclaimed() const;
  // Nothing of the ring can be given back before the submitter closes a scope.
  bool held_by_open_scope(int ring) const;
  // Of the ring's oldest task and the `ahead` after it the last one that is not done; the oldest if all are. False if the
  // ring is empty or held by an open scope.
  bool oldest_pending(int ring, std::uint32_t ahead, std::uint32_t* slot) const;

  // Whether everybody is done with the task in this slot.
  bool reclaimable(std::uint32_t slot) const {
    return slots()[slot].released.load(std::memory_order_seq_cst) == books()[slot].retained;
  }

  // Tasks that an element access must wait for: creator and writers of the tensor; with `readers`, also the running tasks
  // that depend on those.
  void find_accessors(const ChipTensor& tensor, bool readers, std::vector<PTO2TaskId>* tasks);
  bool is_complete(PTO2TaskId id) const;
  std::uint32_t slot_of(PTO2TaskId id) const {
    return rings_[id.ring()].first_slot + (id.local() & rings_[id.ring()].mask);
  }

  Task& task(RecordRef record) const { return *records_.at(record); }
  std::uint32_t capacity() const { return slot_count_; }  // most tasks that can be live at once
  std::uint64_t submitted_count() const { return submitted_; }
  // Tasks that a ring was ever given in this run.
  std::uint32_t task_count(int ring) const { return rings_[ring].next; }
  const RingSizes& sizes() const { return sizes_; }
  Lifetime lifetime() const { return lifetime_; }

  // Calls visit(id, task) for the live tasks of a ring, oldest first.
  template <typename Visit> void for_each_live(int ring, Visit visit) const {
    const Ring& r = rings_[ring];
    for (std::uint32_t local = r.head; local != r.next; ++local) {
      const PTO2TaskId id = PTO2TaskId::make(static_cast<std::uint8_t>(ring), local);
      visit(id, task(slots()[slot_of(id)].record));
    }
  }

 private:
  struct Ring {
    std::uint32_t head = 0;  // oldest task not reclaimed
    std::uint32_t next = 0;  // id of the next task
    std::uint32_t mask = 0;
    std::uint32_t first_slot = 0;
    std::uint32_t edges_charged = 0;  // of the dependency budget
    std::uint32_t spill_charged = 0;
    HeapRing heap;
    char* heap_base = nullptr;
  };
  struct Dependency {
    PTO2TaskId id;
    DepFlags flags;
  };

  static std::uint32_t generation_of(PTO2TaskId id) { return id.local() + 1; }  // 0 is what fresh memory holds
  static std::uint32_t spill_of(std::uint32_t edges) { return edges > kInlineEdges ? edges - kInlineEdges : 0; }

  Slot* slots() const { return slot_memory_.as<Slot>(); }
  SlotBook* books() const { return book_memory_.as<SlotBook>(); }
  void release(std::uint32_t slot) { slots()[slot].released.fetch_add(1, std::memory_order_seq_cst); }
  bool live(PTO2TaskId id) const {
    const Ring& ring = rings_[id.ring()];
    return id.local() - ring.head < ring.next - ring.head;
  }

  void next_epoch();
  const char* collect_dependencies(const CoreTaskArgs& args);
  [[gnu::cold]] const char* refuse(const char* what, std::uint32_t dependency, const CoreTaskArgs& args);
  void add_dependency(PTO2TaskId id, DepFlags flags);
  void add_creator(const ChipTensor& tensor, DepFlags flags);
  bool all_dependencies_complete() const;
  // The ring whose heap the tasks of ring r allocate from.
  Ring& memory_of(int r) { return rings_[lifetime_ == Lifetime::kRun ? 0 : r]; }
  bool has_room(int ring, std::uint64_t heap_bytes, Shortage* shortage);
  bool has_room_for_dependencies(int ring, bool joins, Shortage* shortage) const;
  std::uint32_t write_record(Task& task, const TaskSpec& spec, const CoreTaskArgs& args, char* output);
  bool link(Task& task, RecordRef record);
  void retire(int ring);

  char refusal_[192] = "";
  RingSizes sizes_{};
  Lifetime lifetime_ = Lifetime::kScopes;
  DepFlags kept_flags_ = DEP_WAIT | DEP_RETAIN;  // without DEP_RETAIN where nothing is reclaimed anyway
  std::uint32_t slot_count_ = 0;
  VirtualMemory slot_memory_;
  VirtualMemory book_memory_;
  RecordArena records_;
  std::array<Ring, kRings> rings_;
  Scopes scopes_;
  TensorMap map_;
  std::uint64_t submitted_ = 0;

  // What a replay knows of a view of a boundary tensor.
  struct View {
    ChipTensor tensor;
    TensorMap::Access access;
    std::uint32_t first_found, found_count;  // in found_
    std::uint32_t removals;                  // of the replay, when it was searched for; kNotSearched: it was not
    bool begun;                              // tensor and access are filled in
  };
  static constexpr std::uint32_t kNotSearched = 0xFFFFFFFF;
  struct Found {
    PTO2TaskId producer;
    std::uint32_t writer;
    bool covered;
  };
  void begin_view(const ChipTensor& recorded, const ChipTensor& boundary, View* view);
  void find_outside(View* view);

  std::vector<View> views_;                     // by Definition::views
  std::vector<const ChipTensor*> descriptors_;  // of this replay
  std::vector<Found> found_;
  std::uint32_t removals_ = 0;

  // Of the submission in progress; kept to reuse their memory.
  std::uint32_t epoch_ = 0;
  std::uint32_t retained_dependencies_ = 0;
  std::uint32_t write_count_ = 0;
  std::vector<Dependency> dependencies_;
  std::vector<std::uint32_t> covered_;
  TensorMap::Access accesses_[CORE_MAX_TENSOR_ARGS];  // of tracked tensors
};

}  // namespace simpler::graph
