#include "frontend/whole_graph/recorder.h"

#include <cstring>

namespace simpler::frontend {

using graph::Access;
using graph::Node;
using graph::TensorSource;

namespace {

bool writes(TensorArgType tag) { return tag == TensorArgType::INOUT || tag == TensorArgType::OUTPUT_EXISTING; }

// Whether the bytes of `inner` lie within those of `outer`, from first to last.
bool within(const ChipTensor& inner, const ChipTensor& outer) {
  const std::uint64_t inner_width = get_element_size(inner.dtype), outer_width = get_element_size(outer.dtype);
  return inner.start_offset * inner_width >= outer.start_offset * outer_width &&
         (inner.start_offset + inner.extent_elem_cache) * inner_width <=
             (outer.start_offset + outer.extent_elem_cache) * outer_width;
}

}  // namespace

void Recorder::begin(const CoreTaskArgs& boundary, std::uint32_t first_node, std::uint64_t heap_top) {
  recording_ = {};
  boundary_ = &boundary;
  first_node_ = first_node;
  heap_top_ = heap_top;
  unfit_ = nullptr;
  tensors_.clear();
  writes_.clear();
  write_ends_.clear();
  const auto count = static_cast<std::size_t>(boundary.tensor_count());
  const ChipTensor* pointers[CORE_MAX_TENSOR_ARGS];
  for (std::size_t b = 0; b < count; ++b) {
    const int i = static_cast<int>(b);
    tensors_.push_back(boundary.tensors()[i].ref());
    pointers[b] = &boundary.tensors()[i].ref();
    recording_.boundary.push_back(graph::BoundaryTensor::of(tensors_[b], boundary.tag(i)));
  }
  recording_.pairs = graph::pairs_of(pointers, recording_.boundary.data(), count);
  handed_on_.assign(static_cast<std::size_t>(boundary.scalar_count()), 0);
  boundary.begin_boundary();
}

int Recorder::boundary_of(const ChipTensor& tensor) const {
  int found = -1;
  for (std::size_t b = 0; b < tensors_.size(); ++b) {
    const ChipTensor& candidate = tensors_[b];
    if (candidate.buffer.addr != tensor.buffer.addr || candidate.buffer.size != tensor.buffer.size ||
        candidate.owner_task_id != tensor.owner_task_id || !within(tensor, candidate)) {
      continue;
    }
    // Any that holds it will do: boundary tensors that meet keep their distance. The tensor itself is the simplest.
    if (found < 0 ||
        (candidate.start_offset == tensor.start_offset && candidate.extent_elem_cache == tensor.extent_elem_cache)) {
      found = static_cast<int>(b);
    }
  }
  return found;
}

// Where the tensor comes from; false if that cannot be told.
bool Recorder::trace(const ChipTensor& tensor, ChipTensor* recorded, TensorSource* source) {
  std::memset(static_cast<void*>(recorded), 0, sizeof *recorded);
  recorded->start_offset = tensor.start_offset;
  recorded->version = tensor.version;
  recorded->ndims = tensor.ndims;
  recorded->dtype = tensor.dtype;
  recorded->manual_dep = tensor.manual_dep;
  recorded->is_contiguous = tensor.is_contiguous;
  recorded->extent_elem_cache = tensor.extent_elem_cache;
  for (std::uint32_t d = 0; d < tensor.ndims; ++d) {
    recorded->shapes[d] = tensor.shapes[d];
    recorded->strides[d] = tensor.strides[d];
  }
  if (is_node(tensor.owner_task_id)) {
    recorded->address_space = tensor.address_space;
    recorded->buffer = {tensor.buffer.addr - heap_top_, tensor.buffer.size};
    *source = {TensorSource::kNode, static_cast<std::uint16_t>(tensor.owner_task_id.local() - first_node_)};
    return true;
  }
  const int b = boundary_of(tensor);
  if (b < 0) return false;
  // Elements of the view's own type: a view keeps the type of what it is a view of, or lies at the buffer's origin.
  const ChipTensor& boundary = tensors_[static_cast<std::size_t>(b)];
  if (tensor.dtype != boundary.dtype) return false;
  recorded->start_offset -= boundary.start_offset;
  recorded->version -= boundary.version;
  *source = {TensorSource::kBoundary, static_cast<std::uint16_t>(b)};
  return true;
}

void Recorder::add_tensor(const CoreTaskArgs& args, const graph::Submitted& submitted, int i, bool manual, Node* node) {
  ChipTensor recorded;
  TensorSource source{};
  const ChipTensor& tensor = submitted.task->tensors()[i];
  if (!trace(tensor, &recorded, &source)) {
    give_up("a task uses a tensor that is neither a view of a boundary tensor nor memory of a task of the body");
    return;
  }
  const auto place = static_cast<std::uint32_t>(recording_.tensors.size());
  recording_.tensors.push_back(recorded);
  recording_.sources.push_back(source);
  const TensorArgType tag = args.tag(i);
  if (tag == TensorArgType::OUTPUT) {
    const TensorCreateInfo& info = args.tensors()[i].create_info();
    if (info.has_initial_value) {
      recording_.initial_values.push_back(
          {place, static_cast<std::uint32_t>(get_element_size(info.dtype)), info.initial_value});
    }
    return;
  }
  if (manual) return;
  const bool tracked = tag != TensorArgType::NO_DEP && !tensor.manual_dep;
  const bool registered = tracked && writes(tag) && tensor.extent_elem_cache > 0;
  if (source.kind == TensorSource::kNode) {
    if (registered) writes_.push_back(kOwnMemory);
    return;
  }
  node->creators |= 1u << source.index;
  if (!tracked) return;
  if (registered) writes_.push_back(static_cast<std::uint32_t>(recording_.accesses.size()));
  ++node->access_count;
  recording_.accesses.push_back({place, tag != TensorArgType::OUTPUT_EXISTING, tag == TensorArgType::INOUT, false, 0});
}

void Recorder::add(const graph::TaskSpec& spec, const CoreTaskArgs& args, const graph::Submitted& submitted,
                   bool manual) {
  if (unfit_ != nullptr) return;
  const graph::Task& task = *submitted.task;
  if (recording_.nodes.size() >= graph::kMaxNodes) return give_up("the body submits more than 1024 tasks");
  if (task.has_predicate) return give_up("a task of the body has a predicate");
  Node node{};
  std::memcpy(node.kernels, spec.kernels, sizeof node.kernels);
  node.shape = spec.shape;
  node.timing_slot = task.timing_slot;
  node.block_count = spec.block_count;
  node.sync_start = spec.sync_start;
  node.joins = spec.joins;
  node.tensor_count = task.tensor_count;
  node.scalar_count = task.scalar_count;
  for (std::uint32_t e = 0; e < task.edge_count; ++e) {
    const PTO2TaskId producer = task.producers()[e];
    if (!is_node(producer)) continue;  // found again at each use
    recording_.producers.push_back(producer.local() - first_node_);
    ++node.producer_count;
  }
  for (std::uint32_t e = 0; e < args.explicit_dep_count(); ++e) {
    const PTO2TaskId id = args.explicit_dep(e);
    if (is_node(id)) continue;
    std::uint32_t creators = 0;
    for (std::size_t b = 0; b < tensors_.size(); ++b) creators |= std::uint32_t{tensors_[b].owner_task_id == id} << b;
    if (creators == 0) return give_up("a task of the body depends on a task outside that created no boundary tensor");
    node.creators |= creators & ~(creators - 1);
  }
  for (int i = 0; i < task.tensor_count && unfit_ == nullptr; ++i) add_tensor(args, submitted, i, manual, &node);
  const std::uint64_t* outside = boundary_->scalars();
  for (int i = 0; i < task.scalar_count; ++i) {
    const auto* source = static_cast<const std::uint64_t*>(args.scalar_source(i));
    std::int8_t boundary_scalar = -1;
    for (std::size_t s = 0; s < handed_on_.size(); ++s) {
      if (source != &outside[s] || args.scalars()[i] != outside[s]) continue;
      boundary_scalar = static_cast<std::int8_t>(s);
      ++handed_on_[s];
    }
    recording_.scalars.push_back(boundary_scalar >= 0 ? 0 : args.scalars()[i]);
    recording_.scalar_sources.push_back(boundary_scalar);
  }
  recording_.nodes.push_back(node);
  write_ends_.push_back(writes_.size());
}

graph::Recording Recorder::finish(const graph::Graph& graph) {
  for (std::size_t s = 0; s < handed_on_.size(); ++s) {
    const bool compared = static_cast<std::uint32_t>(boundary_->scalar_reads(static_cast<int>(s))) > handed_on_[s];
    recording_.scalars_compared.push_back(compared);
    recording_.scalars_seen.push_back(compared ? boundary_->scalars()[s] : 0);
  }
  recording_.heap_bytes = graph.heap_top() - heap_top_;
  // Which writes later tasks can still meet: those that no later one of the body has covered.
  std::size_t begin = 0;
  for (std::uint32_t n = 0; n < recording_.nodes.size(); begin = write_ends_[n++]) {
    std::size_t write = write_ends_[n];
    if (write == begin) continue;
    graph.for_each_write(PTO2TaskId::make(graph::kNodeRing, first_node_ + n), [&](bool present) {
      SIMPLER_CHECK(write > begin, "node %u has more writes in the table than it was recorded with", n);
      if (writes_[--write] != kOwnMemory) recording_.accesses[writes_[write]].survives = present;
    });
  }
  abandon();
  return std::move(recording_);
}

void Recorder::abandon() {
  if (boundary_ != nullptr) boundary_->end_boundary();
  boundary_ = nullptr;
}

}  // namespace simpler::frontend
