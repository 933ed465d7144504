#include "graph/graph.h"

#include <cstdio>
#include <cstring>
#include <new>

#include "graph/output_memory.h"

namespace simpler::graph {
namespace {

constexpr std::uint32_t kReclaimEvery = 32;  // submissions between two attempts to reclaim although nothing is short
constexpr std::uint64_t kTypicalNodeBytes = 1024;  // of the record of a task of a recorded graph

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

// Bytes that an output takes in its task's block; saturates, so that absurd shapes look too large instead of small.
std::uint64_t output_bytes(const TensorCreateInfo& info) {
  std::uint64_t bytes = get_element_size(info.dtype);
  for (std::uint32_t d = 0; d < info.ndims; ++d) {
    if (__builtin_mul_overflow(bytes, std::uint64_t{info.shapes[d]}, &bytes)) return UINT64_MAX / 64;
  }
  return bytes > UINT64_MAX / 64 ? UINT64_MAX / 64 : round_up(bytes, kOutputAlignment);
}

bool is_tracked(const CoreTaskArgs& args, int i) {
  const TensorArgType tag = args.tag(i);
  return tag != TensorArgType::OUTPUT && tag != TensorArgType::NO_DEP && !args.tensors()[i].ref().manual_dep;
}
bool writes(TensorArgType tag) { return tag == TensorArgType::INOUT || tag == TensorArgType::OUTPUT_EXISTING; }

// Written in place: a descriptor that is built elsewhere and copied stalls on its own stores.
void materialize(const TensorCreateInfo& info, char* address, PTO2TaskId owner, ChipTensor& tensor) {
  tensor.init_external(address, info.buffer_size_bytes(), info.shapes, info.ndims, info.dtype, info.version,
                       info.manual_dep);
  tensor.owner_task_id = owner;
  if (info.has_initial_value) fill(address, tensor.buffer.size, info.initial_value, get_element_size(info.dtype));
}

}  // namespace

bool Graph::configure(const RingSizes& sizes, const std::array<char*, kRings>& heaps, Lifetime lifetime) {
  const bool whole = lifetime == Lifetime::kRun;
  sizes_ = sizes;
  if (whole) {
    sizes_.window = {sizes.window[0], kNodeWindow, 4, 4};
    sizes_.dep_pool = {};
  }
  lifetime_ = lifetime;
  kept_flags_ = whole ? DEP_WAIT : DEP_WAIT | DEP_RETAIN;
  scopes_.configure(lifetime);
  std::uint64_t total = 0, edges = 0;
  for (int r = 0; r < kRings; ++r) {
    rings_[r].mask = sizes_.window[r] - 1;
    rings_[r].first_slot = static_cast<std::uint32_t>(total);
    rings_[r].heap_base = heaps[whole ? 0 : r];
    total += sizes_.window[r];
    edges += std::uint64_t{2} * sizes_.dep_pool[r];
  }
  if (total > UINT32_MAX) return false;
  slot_count_ = static_cast<std::uint32_t>(total);
  // Every task at its largest, plus the edges that the budgets allow beyond those; twice, since chunks fill unevenly.
  // Tasks of recorded graphs are so many that a plausible size must do.
  std::uint64_t largest_count = total, typical = 0;
  if (whole) {
    largest_count = sizes_.window[0];
    edges = std::uint64_t{kMaxFanIn} * sizes_.window[0];
    typical = std::uint64_t{kNodeWindow} * kTypicalNodeBytes;
  }
  const std::uint64_t largest = Task::bytes(kInlineEdges, CORE_MAX_TENSOR_ARGS, CORE_MAX_SCALAR_ARGS, true);
  const std::uint64_t bytes = 2 * (largest_count * largest + typical + edges * (sizeof(Edge) + sizeof(PTO2TaskId))) +
                              16 * RecordArena::kChunkBytes;
  return slot_memory_.reserve(total * sizeof(Slot)) && book_memory_.reserve(total * sizeof(SlotBook)) &&
         records_.reserve(bytes);
}

void Graph::begin() {
  for (int r = 0; r < kRings; ++r) {
    Ring& ring = rings_[r];
    ring.head = ring.next = 0;
    ring.edges_charged = ring.spill_charged = 0;
    ring.heap.reset(sizes_.heap[r]);
  }
  records_.clear();
  scopes_.clear();
  map_.clear();
  submitted_ = 0;
}

void Graph::add_dependency(PTO2TaskId id, DepFlags flags) {
  flags = flags & kept_flags_;
  SlotBook& book = books()[slot_of(id)];
  if (book.mark_epoch == epoch_) {
    Dependency& known = dependencies_[book.mark_position];
    if ((flags & DEP_RETAIN) && !(known.flags & DEP_RETAIN)) ++retained_dependencies_;
    known.flags |= flags;
    return;
  }
  book.mark_epoch = epoch_;
  book.mark_position = static_cast<std::uint32_t>(dependencies_.size());
  dependencies_.push_back({id, flags});
  if (flags & DEP_RETAIN) ++retained_dependencies_;
}

void Graph::next_epoch() {
  dependencies_.clear();
  covered_.clear();
  retained_dependencies_ = write_count_ = 0;
  if (++epoch_ != 0) return;
  for (std::uint32_t s = 0; s < slot_count_; ++s)
    books()[s].mark_epoch = 0;  // marks of 2^32 submissions ago would look fresh
  epoch_ = 1;
}

void Graph::add_creator(const ChipTensor& tensor, DepFlags flags) {
  const PTO2TaskId owner = tensor.owner_task_id;
  if (owner.raw >> 32 < kRings && live(owner)) add_dependency(owner, flags);
}

// Fills dependencies_, covered_, accesses_ and the counts that go with them. Returns why it refuses, or nullptr.
const char* Graph::refuse(const char* what, std::uint32_t dependency, const CoreTaskArgs& args) {
  std::snprintf(refusal_, sizeof refusal_, "explicit dependency %u of %u (task id 0x%llx, kind %u) %s", dependency,
                args.explicit_dep_count(), static_cast<unsigned long long>(args.explicit_dep(dependency).raw),
                static_cast<unsigned>(args.explicit_dep_kind(dependency)), what);
  return refusal_;
}

const char* Graph::collect_dependencies(const CoreTaskArgs& args) {
  next_epoch();
  map_.tidy();
  for (std::uint32_t i = 0; i < args.explicit_dep_count(); ++i) {
    const PTO2TaskId id = args.explicit_dep(i);
    if (id.raw >> 32 >= kRings) return refuse("is not a task id of this run", i, args);
    if ((args.explicit_dep_kind(i) & DEP_WAIT) == 0) return refuse("has a kind without DEP_WAIT", i, args);
    // Ids count up: what is not live is either reclaimed, hence met, or was never given out.
    if (static_cast<std::int32_t>(id.local() - rings_[id.ring()].next) >= 0) {
      return refuse("names a task that does not exist yet", i, args);
    }
    if (live(id)) add_dependency(id, args.explicit_dep_kind(i));
  }
  if (scopes_.manual()) return nullptr;

  for (int i = 0; i < args.tensor_count(); ++i) {
    const TensorArgType tag = args.tag(i);
    if (tag == TensorArgType::OUTPUT) continue;
    const ChipTensor& tensor = args.tensors()[i].ref();
    add_creator(tensor, DEP_WAIT | DEP_RETAIN);
    if (!is_tracked(args, i)) continue;
    if (!writes(tag) && !map_.knows(tensor.buffer.addr)) continue;
    map_.begin_access(tensor, accesses_[i]);
    if (writes(tag)) ++write_count_;
    if (tag == TensorArgType::OUTPUT_EXISTING) continue;  // write-only: no earlier writer but the creator matters
    map_.find(accesses_[i], [&](PTO2TaskId producer, std::uint32_t writer, Overlap overlap) {
      add_dependency(producer, DEP_WAIT);
      if (overlap == Overlap::kCovered && tag == TensorArgType::INOUT) covered_.push_back(writer);
    });
  }
  return nullptr;
}

bool Graph::all_dependencies_complete() const {
  for (const Dependency& dependency : dependencies_) {
    if (!is_complete(dependency.id)) return false;
  }
  return true;
}

bool Graph::has_room(int r, std::uint64_t heap_bytes, Shortage* shortage) {
  Ring& ring = rings_[r];
  if (ring.next - ring.head >= ring.mask && !reclaim(r)) {
    *shortage = {Resource::kWindow, r, 1, ring.next - ring.head, ring.mask};
    return false;
  }
  HeapRing& heap = memory_of(r).heap;
  if (heap_bytes > 0 && heap.place(heap_bytes) == HeapRing::kDoesNotFit) {
    reclaim(r);
    if (heap.place(heap_bytes) == HeapRing::kDoesNotFit) {
      *shortage = {Resource::kHeap, r, heap_bytes, heap.used(), heap.capacity()};
      return false;
    }
  }
  return true;
}

bool Graph::has_room_for_dependencies(int r, bool joins, Shortage* shortage) const {
  const Ring& ring = rings_[r];
  const std::uint32_t capacity = sizes_.dep_pool[r], edges = static_cast<std::uint32_t>(dependencies_.size());
  if (lifetime_ == Lifetime::kRun) {
    if (edges > kMaxFanIn && !joins) {
      *shortage = {Resource::kFanIn, r, edges, 0, kMaxFanIn};
      return false;
    }
  } else if (ring.spill_charged + spill_of(edges) > capacity && spill_of(edges) > 0) {
    *shortage = {Resource::kSpill, r, spill_of(edges), ring.spill_charged, capacity};
    return false;
    // A task whose producers have all completed is never wired, and is charged nothing but spill.
  } else if (ring.edges_charged + edges > capacity && edges > 0 && !all_dependencies_complete()) {
    *shortage = {Resource::kDependencies, r, edges, ring.edges_charged, capacity};
    return false;
  }
  if (!map_.room_for(write_count_)) {
    *shortage = {Resource::kRegions, r, write_count_, map_.live(), TensorMap::kCapacity};
    return false;
  }
  return true;
}

Outcome Graph::submit(const TaskSpec& spec, const CoreTaskArgs& args, Submitted* submitted, Shortage* shortage,
                      const char** refusal) {
  const int r = scopes_.ring();
  Ring& ring = rings_[r];
  if (ring.next % kReclaimEvery == 0) reclaim(r);

  // Is there room for everything? Until all answers are yes, nothing is changed.
  std::uint64_t heap_bytes = 0;
  for (int i = 0; i < args.tensor_count(); ++i) {
    if (args.tag(i) == TensorArgType::OUTPUT) heap_bytes += output_bytes(args.tensors()[i].create_info());
  }
  if (!has_room(r, heap_bytes, shortage)) return Outcome::kShort;
  *refusal = collect_dependencies(args);
  if (*refusal != nullptr) return Outcome::kRefused;
  if (spec.shape == Shape::kAlloc) dependencies_.clear();  // complete from the start: there is nothing to wait for
  if (!has_room_for_dependencies(r, spec.joins, shortage)) return Outcome::kShort;
  const bool has_predicate = spec.shape <= Shape::kMix && args.predicate().op != PredicateOp::NONE &&
                             args.predicate().operand.tensor != nullptr &&
                             args.predicate().operand.tensor->buffer.addr != 0;
  const RecordRef record =
      records_.allocate(r, Task::bytes(dependencies_.size(), static_cast<std::size_t>(args.tensor_count()),
                                       static_cast<std::size_t>(args.scalar_count()), has_predicate));
  if (record == kNoRecord) {
    *shortage = {Resource::kRecords, r, 1, ring.next - ring.head, ring.mask};
    return Outcome::kShort;
  }

  // Take slot and heap.
  const PTO2TaskId id = PTO2TaskId::make(static_cast<std::uint8_t>(r), ring.next);
  const std::uint32_t index = slot_of(id);
  Slot& slot = slots()[index];
  if (ring.next <= ring.mask) new (&slot) Slot;  // first lap of this run: whatever the last run left is void
  SlotBook& book = books()[index];
  ++ring.next;
  ++submitted_;
  scopes_.enter(id.local());
  char* output = ring.heap_base;
  book.owns_heap = heap_bytes > 0;
  if (book.owns_heap) {
    const std::uint64_t offset = memory_of(r).heap.allocate(heap_bytes);
    output += offset;
    book.heap_end = offset + heap_bytes;
  }
  book.retained = 1;
  book.edges = static_cast<std::uint32_t>(dependencies_.size());
  book.wired = false;
  book.first_writer = TensorMap::kNone;

  Task& task = *records_.at(record);
  task.id = id;
  task.slot = index;
  task.has_predicate = has_predicate;
  submitted->task = &task;
  submitted->record = record;
  submitted->outputs = write_record(task, spec, args, output);

  // Register its writes, now that all its reads have been looked up.
  for (std::uint32_t writer : covered_) map_.remove(writer);
  if (write_count_ > 0) {
    for (int i = 0; i < args.tensor_count(); ++i) {
      if (writes(args.tag(i)) && is_tracked(args, i)) map_.insert(accesses_[i], id, &book.first_writer);
    }
  }

  slot.record = record;
  if (spec.shape == Shape::kAlloc) {
    slot.released.store(1, std::memory_order_relaxed);  // its wake list stays closed
    submitted->ready = false;
  } else {
    slot.released.store(0, std::memory_order_relaxed);
    slot.wake.reopen(generation_of(id));
    submitted->ready = link(task, record);
  }
  return Outcome::kTaken;
}

// Fills all of the record but its identity and its edges. Returns which tensor arguments are the task's own memory.
std::uint32_t Graph::write_record(Task& task, const TaskSpec& spec, const CoreTaskArgs& args, char* output) {
  task.next_block.store(0, std::memory_order_relaxed);
  std::int32_t lanes = 0;
  for (const std::int16_t kernel : spec.kernels) lanes += kernel >= 0;
  task.blocks_left.store(spec.block_count * lanes, std::memory_order_relaxed);
  task.block_count = spec.block_count;
  task.edge_count = static_cast<std::uint32_t>(dependencies_.size());
  task.retained_count = dependencies_.empty() ? 0 : retained_dependencies_;
  std::memcpy(task.kernels, spec.kernels, sizeof task.kernels);
  task.shape = spec.shape;
  task.tensor_count = static_cast<std::uint8_t>(args.tensor_count());
  task.scalar_count = static_cast<std::uint8_t>(args.scalar_count());
  task.sync_start = spec.sync_start;
  task.packed = false;
  task.timing_slot = static_cast<std::int8_t>(args.task_timing_slot());
  ChipTensor* tensors = task.tensors();
  std::uint32_t outputs = 0;
  for (int i = 0; i < args.tensor_count(); ++i) {
    if (args.tag(i) != TensorArgType::OUTPUT) {
      std::memcpy(static_cast<void*>(&tensors[i]), &args.tensors()[i].ref(), sizeof(ChipTensor));
      continue;
    }
    const TensorCreateInfo& info = args.tensors()[i].create_info();
    materialize(info, output, task.id, tensors[i]);
    output += output_bytes(info);
    outputs |= 1u << i;
  }
  if (args.scalar_count() > 0)
    std::memcpy(task.scalars(), args.scalars(), static_cast<std::size_t>(args.scalar_count()) * 8);
  if (task.has_predicate) {
    const CorePredicateOperand& operand = args.predicate().operand;
    const std::uint64_t width = get_element_size(operand.tensor->dtype);
    const char* address =
        operand.tensor->data_as<char>() + operand.tensor->compute_flat_offset(operand.indices, operand.ndims) * width;
    *task.predicate() = {address, args.predicate().target, args.predicate().op, static_cast<std::uint8_t>(width)};
  }
  return outputs;
}

// Links the task to its producers. True if none of them is running any more.
bool Graph::link(Task& task, RecordRef record) {
  const std::uint32_t count = task.edge_count;
  // The guard (+ 1) keeps the task from becoming ready before its last edge is linked.
  task.remaining.store(static_cast<std::int32_t>(count) + 1, std::memory_order_relaxed);
  if (count == 0) return true;
  PTO2TaskId* producers = task.producers();
  std::uint32_t retained = 0, waiting = task.retained_count;
  for (const Dependency& dependency : dependencies_) {
    const bool retain = (dependency.flags & DEP_RETAIN) != 0;
    producers[retain ? retained++ : waiting++] = dependency.id;
    if (retain) ++books()[slot_of(dependency.id)].retained;
  }
  Edge* edges = records_.edges();
  const bool alone = lifetime_ == Lifetime::kRun;
  std::uint32_t satisfied = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t edge = RecordArena::edge_of(record, i);
    edges[edge].consumer = record;
    WakeList& list = slots()[slot_of(producers[i])].wake;
    const Link link = alone ? list.link_alone(edges, edge) : list.link(edges, edge, generation_of(producers[i]));
    satisfied += link == Link::kProducerDone;
  }
  Ring& ring = rings_[task.id.ring()];
  ring.spill_charged += spill_of(count);
  if (satisfied == count) return true;
  books()[task.slot].wired = true;
  ring.edges_charged += count;
  const std::int32_t settled = static_cast<std::int32_t>(satisfied) + 1;
  return task.remaining.fetch_sub(settled, std::memory_order_acq_rel) == settled;
}

void Graph::retire(int r) {
  Ring& ring = rings_[r];
  const std::uint32_t index = ring.first_slot + (ring.head & ring.mask);
  const SlotBook& book = books()[index];
  const RecordRef record = slots()[index].record;
  if (book.wired) ring.edges_charged -= book.edges;
  ring.spill_charged -= spill_of(book.edges);
  if (book.owns_heap) ring.heap.release(book.heap_end);
  if (book.first_writer != TensorMap::kNone) map_.drop(book.first_writer);
  records_.release(r, record);
  ++ring.head;
}

bool Graph::reclaim(int r, std::uint32_t at_most) {
  if (lifetime_ == Lifetime::kRun) return false;
  Ring& ring = rings_[r];
  std::uint32_t limit = ring.next, oldest = 0;
  if (scopes_.oldest_owned(r, &oldest)) limit = oldest;
  std::uint32_t count = 0;
  while (ring.head != limit && count < at_most) {
    if (!reclaimable(ring.first_slot + (ring.head & ring.mask))) break;
    retire(r);
    ++count;
  }
  return count > 0;
}

bool Graph::reclaim_all() {
  bool any = false;
  for (int r = 0; r < kRings; ++r) any = reclaim(r) || any;
  return any;
}

bool Graph::all_reclaimed() const {
  for (const Ring& ring : rings_) {
    if (ring.head != ring.next) return false;
  }
  return true;
}

bool Graph::held_by_open_scope(int r) const {
  std::uint32_t oldest = 0;
  return scopes_.oldest_owned(r, &oldest) && oldest == rings_[r].head;
}

bool Graph::oldest_pending(int r, std::uint32_t ahead, std::uint32_t* slot) const {
  const Ring& ring = rings_[r];
  std::uint32_t limit = ring.next, oldest = 0;
  if (scopes_.oldest_owned(r, &oldest)) limit = oldest;
  if (ring.head == limit) return false;
  std::uint32_t distance = ahead < limit - ring.head ? ahead : limit - ring.head - 1;
  const auto slot_at = [&] { return ring.first_slot + ((ring.head + distance) & ring.mask); };
  while (distance > 0 && reclaimable(slot_at())) --distance;  // tasks end in any order
  *slot = slot_at();
  return true;
}

bool Graph::is_complete(PTO2TaskId id) const { return !live(id) || slots()[slot_of(id)].wake.done(generation_of(id)); }

void Graph::find_accessors(const ChipTensor& tensor, bool readers, std::vector<PTO2TaskId>* tasks) {
  next_epoch();
  add_creator(tensor, DEP_WAIT);
  if (!tensor.manual_dep) {
    TensorMap::Access access;
    map_.begin_access(tensor, access);
    map_.find(access, [&](PTO2TaskId producer, std::uint32_t, Overlap) { add_dependency(producer, DEP_WAIT); });
  }
  tasks->clear();
  for (const Dependency& dependency : dependencies_) tasks->push_back(dependency.id);
  if (!readers || tasks->empty()) return;
  // Readers are not recorded with their producers; a write from the orchestration is rare enough to look for them.
  const std::size_t writers = tasks->size();
  for (int r = 0; r < kRings; ++r) {
    for_each_live(r, [&](PTO2TaskId id, const Task& task) {
      if (is_complete(id)) return;
      for (std::uint32_t i = 0; i < task.edge_count; ++i) {
        for (std::size_t w = 0; w < writers; ++w) {
          if (task.producers()[i] == (*tasks)[w]) {
            tasks->push_back(id);
            return;
          }
        }
      }
    });
  }
}

}  // namespace simpler::graph
