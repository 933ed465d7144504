// Graph::replay: the tasks of a recorded graph, made from its definition. Nothing runs meanwhile, so a record is written and
// linked with plain stores; only accesses to boundary tensors go through the table of writes.
#include <cstring>
#include <new>

#include "graph/graph.h"
#include "graph/output_memory.h"

namespace simpler::graph {
namespace {

// The view of an access, with the boundary tensor of this use in place of the recorded one.
void rebase(ChipTensor& tensor, const ChipTensor& boundary) {
  tensor.buffer = boundary.buffer;
  tensor.owner_task_id = boundary.owner_task_id;
  tensor.start_offset += boundary.start_offset;
  tensor.version += boundary.version;
  tensor.address_space = boundary.address_space;
}

}  // namespace

void Graph::begin_view(const ChipTensor& recorded, const ChipTensor& boundary, View* view) {
  if (view->begun) return;
  view->begun = true;
  view->tensor = recorded;
  rebase(view->tensor, boundary);
  map_.begin_access(view->tensor, view->access);
}

// Fills the view's part of found_ with the tasks outside whose writes it overlaps. What was found before still holds,
// unless something was taken out of the table meanwhile.
void Graph::find_outside(View* view) {
  if (view->removals == removals_) return;
  view->removals = removals_;
  view->first_found = static_cast<std::uint32_t>(found_.size());
  map_.find(view->access, [&](PTO2TaskId producer, std::uint32_t writer, Overlap overlap) {
    found_.push_back({producer, writer, overlap == Overlap::kCovered});
  });
  view->found_count = static_cast<std::uint32_t>(found_.size()) - view->first_found;
}

Outcome Graph::replay(const Definition& definition, const CoreTaskArgs& boundary, std::uint32_t* first_node,
                      std::vector<RecordRef>* ready, Shortage* shortage) {
  const Recording& recording = definition.recording();
  Ring& ring = rings_[kNodeRing];
  HeapRing& heap = memory_of(kNodeRing).heap;
  const auto count = static_cast<std::uint32_t>(recording.nodes.size());
  if (ring.mask - ring.next < count) {
    *shortage = {Resource::kWindow, kNodeRing, count, ring.next, ring.mask};
    return Outcome::kShort;
  }
  if (recording.heap_bytes > 0 && heap.place(recording.heap_bytes) == HeapRing::kDoesNotFit) {
    *shortage = {Resource::kHeap, 0, recording.heap_bytes, heap.used(), heap.capacity()};
    return Outcome::kShort;
  }
  if (!map_.room_for(definition.survivors())) {
    *shortage = {Resource::kRegions, kNodeRing, definition.survivors(), map_.live(), TensorMap::kCapacity};
    return Outcome::kShort;
  }
  const std::uint64_t memory = reinterpret_cast<std::uint64_t>(ring.heap_base) +
                               (recording.heap_bytes > 0 ? heap.allocate(recording.heap_bytes) : 0);

  const ChipTensor* outside[CORE_MAX_TENSOR_ARGS];
  std::uint32_t owned = 0, known = 0;  // bit b: boundary tensor b has a creator; its buffer has been written
  for (std::uint32_t b = 0; b < recording.boundary.size(); ++b) {
    outside[b] = &boundary.tensors()[b].ref();
    owned |= static_cast<std::uint32_t>(outside[b]->owner_task_id.is_valid()) << b;
    known |= static_cast<std::uint32_t>(map_.knows(outside[b]->buffer.addr)) << b;
  }
  views_.resize(definition.view_count());
  for (View& view : views_) {
    view.removals = kNotSearched;
    view.begun = false;
  }
  map_.tidy();
  found_.clear();
  removals_ = 0;

  const std::uint32_t first = *first_node = ring.next, first_slot = ring.first_slot;
  const std::uint32_t* inner_producer = recording.producers.data();
  const std::uint64_t* scalar = recording.scalars.data();
  const std::int8_t* scalar_source = recording.scalar_sources.data();
  const InitialValue* initial = recording.initial_values.data();
  const InitialValue* const last_initial = initial + recording.initial_values.size();
  Edge* const edges = records_.edges();
  std::size_t access = 0;
  std::uint32_t tensor_number = 0, described = 0;
  descriptors_.resize(definition.descriptor_count());

  for (std::uint32_t n = 0; n < count; ++n) {
    const Node& node = recording.nodes[n];
    dependencies_.clear();
    const std::size_t first_access = access;
    access += node.access_count;
    if (((node.creators & owned) | known) != 0 && (node.access_count | node.creators) != 0) {
      next_epoch();
      for (std::uint32_t left = node.creators & owned; left != 0; left &= left - 1)
        add_creator(*outside[__builtin_ctz(left)], DEP_WAIT);
      for (std::size_t a = first_access; a < access; ++a) {
        const Access& one = recording.accesses[a];
        const std::uint32_t b = recording.sources[one.tensor].index;
        if (!one.looks_up || (known >> b & 1) == 0) continue;
        View& view = views_[definition.views()[a]];
        begin_view(recording.tensors[one.tensor], *outside[b], &view);
        find_outside(&view);
        for (std::uint32_t f = view.first_found; f < view.first_found + view.found_count; ++f) {
          add_dependency(found_[f].producer, DEP_WAIT);
          if (one.covers && found_[f].covered) covered_.push_back(found_[f].writer);
        }
      }
      if (!covered_.empty()) {
        for (const std::uint32_t writer : covered_) map_.remove(writer);
        ++removals_;
      }
    }
    const auto from_outside = static_cast<std::uint32_t>(dependencies_.size());
    const std::uint32_t edge_count = node.producer_count + from_outside;
    if (edge_count > kMaxFanIn && !node.joins) {
      *shortage = {Resource::kFanIn, kNodeRing, edge_count, 0, kMaxFanIn};
      return Outcome::kShort;
    }
    const RecordRef record =
        records_.allocate(kNodeRing, Task::packed_bytes(edge_count, std::size_t{node.tensor_count} + node.scalar_count,
                                                        definition.own_descriptors()[n]));
    if (record == kNoRecord) {
      *shortage = {Resource::kRecords, kNodeRing, 1, ring.next, ring.mask};
      return Outcome::kShort;
    }

    const PTO2TaskId id = PTO2TaskId::make(kNodeRing, first + n);
    const std::uint32_t index = first_slot + first + n;  // the ring never wraps in one run
    Task& task = *records_.at(record);
    task.next_block.store(0, std::memory_order_relaxed);
    const std::int32_t lanes = (node.kernels[0] >= 0) + (node.kernels[1] >= 0) + (node.kernels[2] >= 0);
    task.blocks_left.store(node.block_count * lanes, std::memory_order_relaxed);
    task.id = id;
    task.slot = index;
    task.block_count = node.block_count;
    task.edge_count = edge_count;
    task.retained_count = 0;
    std::memcpy(task.kernels, node.kernels, sizeof task.kernels);
    task.shape = node.shape;
    task.tensor_count = node.tensor_count;
    task.scalar_count = node.scalar_count;
    task.has_predicate = false;
    task.sync_start = node.sync_start != 0;
    task.timing_slot = node.timing_slot;

    task.packed = true;

    std::uint64_t* words = task.words();
    ChipTensor* own = task.own_tensors();
    for (std::uint32_t t = 0; t < node.tensor_count; ++t, ++tensor_number) {
      const std::uint32_t descriptor = definition.descriptors()[tensor_number];
      if (descriptor == described) {  // its first use
        const TensorSource source = recording.sources[tensor_number];
        std::memcpy(static_cast<void*>(own), &recording.tensors[tensor_number], sizeof *own);
        if (source.kind == TensorSource::kBoundary) {
          rebase(*own, *outside[source.index]);
        } else {
          own->buffer.addr += memory;
          own->owner_task_id = PTO2TaskId::make(kNodeRing, first + source.index);
        }
        descriptors_[described++] = own++;
      }
      words[t] = reinterpret_cast<std::uint64_t>(descriptors_[descriptor]);
    }
    for (; initial != last_initial && initial->tensor < tensor_number; ++initial) {
      const ChipTensor& tensor = *descriptors_[definition.descriptors()[initial->tensor]];
      fill(tensor.data_as<char>(), tensor.buffer.size, initial->value, initial->width);
    }
    words += node.tensor_count;
    for (std::uint32_t s = 0; s < node.scalar_count; ++s, ++scalar, ++scalar_source)
      words[s] = *scalar_source >= 0 ? boundary.scalars()[*scalar_source] : *scalar;

    SlotBook& book = books()[index];
    book.retained = 1;
    book.first_writer = TensorMap::kNone;
    book.edges = edge_count;
    book.owns_heap = book.wired = false;
    Slot& slot = *new (&slots()[index]) Slot;
    slot.record = record;
    if (node.shape == Shape::kAlloc) {
      slot.released.store(1, std::memory_order_relaxed);  // its wake list stays closed
      task.remaining.store(0, std::memory_order_relaxed);
      continue;
    }
    slot.wake.reopen(generation_of(id));
    PTO2TaskId* producers = task.producers();
    std::uint32_t waiting = 0;
    for (std::uint32_t e = 0; e < edge_count; ++e) {
      const PTO2TaskId from = e < node.producer_count ? PTO2TaskId::make(kNodeRing, first + *inner_producer++)
                                                      : dependencies_[e - node.producer_count].id;
      producers[e] = from;
      const std::uint32_t edge = RecordArena::edge_of(record, e);
      edges[edge].consumer = record;
      waiting += slots()[slot_of(from)].wake.link_alone(edges, edge) == Link::kWaiting;
    }
    task.remaining.store(static_cast<std::int32_t>(waiting), std::memory_order_relaxed);
    if (waiting == 0) ready->push_back(record);
  }
  ring.next += count;
  submitted_ += count;

  if (definition.survivors() > 0) {
    for (std::uint32_t n = 0, a = 0; n < count; ++n) {
      for (const std::uint32_t end = a + recording.nodes[n].access_count; a < end; ++a) {
        const Access& one = recording.accesses[a];
        if (!one.survives) continue;
        View& view = views_[definition.views()[a]];
        begin_view(recording.tensors[one.tensor], *outside[recording.sources[one.tensor].index], &view);
        const PTO2TaskId id = PTO2TaskId::make(kNodeRing, first + n);
        map_.insert(view.access, id, &books()[first_slot + first + n].first_writer);
      }
    }
  }
  return Outcome::kTaken;
}

}  // namespace simpler::graph
