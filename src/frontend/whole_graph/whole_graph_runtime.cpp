#include "frontend/whole_graph/whole_graph_runtime.h"

#include "base/log.h"

namespace simpler::frontend {

using graph::Shortage;

void WholeGraphRuntime::begin_tasks(const abi::RunImage& image) {
  entry_args_ = &image.args;
  roots_.clear();
  known_.clear();
  frames_.clear();
  last_use_ = PTO2TaskId::invalid();
  if (recorder_.active()) recorder_.forget();
  counts_ = {};
  noted_limit_ = false;
  if (!noted_sizes_) note_ignored_sizes(image.rings);
}

// Once: there is one ring, and nothing that is given back. Sizes that are alike for all rings were not meant for one.
void WholeGraphRuntime::note_ignored_sizes(const abi::RuntimeEnv& rings) {
  bool alike = true;
  for (int r = 1; r < graph::kRings; ++r) {
    alike = alike && rings.ring_task_window[r] == rings.ring_task_window[0] && rings.ring_heap[r] == rings.ring_heap[0];
  }
  for (const std::uint64_t pool : rings.ring_dep_pool) alike = alike && pool == abi::kDefaultDepPool;
  if (alike) return;
  noted_sizes_ = true;
  log::device(
      log::Level::kWarn, log_origin(), "host_build_graph",
      "ring_dep_pool and the sizes of rings 1 to 3 are ignored: a graph that is built ahead has one ring, and a "
      "task at most %u predecessors",
      graph::kMaxFanIn);
}

void WholeGraphRuntime::taken(const graph::TaskSpec& spec, const CoreTaskArgs& args,
                              const graph::Submitted& submitted) {
  if (submitted.ready) roots_.push_back(submitted.record);
  if (frames_.empty()) return;
  if (submitted.task->has_predicate) require_order(*args.predicate().operand.tensor, *submitted.task);
  if (recorder_.active()) recorder_.add(spec, args, submitted, graph_.scopes().manual());
}

// Newest first: when the last tasks are done, most of the others are.
void WholeGraphRuntime::finish_tasks() {
  if (!latch_.raised() && !frames_.empty())
    refuse("the orchestration has ended between rt_graph_begin and rt_graph_end");
  if (counts_.recorded + counts_.plain > 0) {
    log::device(
        log::Level::kInfo, log_origin(), "rt_submit_graph",
        "%u graphs recorded, %u of them unlike any of earlier runs; %u uses replayed, %u submitted by their bodies",
        counts_.recorded, counts_.made, counts_.replayed, counts_.plain);
  }
  for (const graph::RecordRef root : roots_) {
    if (latch_.raised()) return;
    executor_.push(root);
  }
  for (int ring : {0, graph::kNodeRing}) {
    for (std::uint32_t local = graph_.task_count(ring); local-- > 0;) {
      const std::uint32_t slot = graph_.slot_of(PTO2TaskId::make(static_cast<std::uint8_t>(ring), local));
      while (!graph_.reclaimable(slot)) {
        if (latch_.raised()) return;
        executor_.wait_for(slot, Clock::now() + kForever, [&] { return graph_.reclaimable(slot); });
      }
    }
  }
}

bool WholeGraphRuntime::make_room(const Shortage& shortage, Clock::time_point*) {
  const bool nodes = shortage.ring == graph::kNodeRing && shortage.resource == graph::Resource::kWindow;
  fail(shortage, nodes ? "it has this size whatever ring_task_window is: spread the uses of graphs over several runs"
                       : "a graph that is built ahead must fit as a whole");
  return false;
}

bool WholeGraphRuntime::settle(const ChipTensor& tensor, bool, const char* call) {
  if (recorder_.active()) recorder_.give_up("the body reads or writes elements");
  if (tensor.owner_task_id.is_valid()) {
    refuse("%s: the tensor is memory of task %u, which has not run yet: only entry tensors can be accessed", call,
           tensor.owner_task_id.local());
    return false;
  }
  const ChipTensor* entry = nullptr;
  for (int i = 0; i < entry_args_->tensor_count() && entry == nullptr; ++i) {
    const PTOBufferHandle& buffer = entry_args_->tensor(i).buffer;
    if (tensor.buffer.addr - buffer.addr < buffer.size) entry = &entry_args_->tensor(i);
  }
  if (entry == nullptr || entry->is_device_memory()) {
    refuse("%s: the tensor at 0x%llx is %s: only entry tensors of the host can be accessed before the graph runs", call,
           static_cast<unsigned long long>(tensor.buffer.addr),
           entry == nullptr ? "no entry tensor" : "device memory of the caller");
    return false;
  }
  graph_.find_accessors(tensor, false, &accessors_);
  if (!accessors_.empty()) {
    refuse("%s: task %u, which writes the tensor, has not run yet: the graph is executed after the orchestration", call,
           accessors_.front().local());
    return false;
  }
  return true;
}

}  // namespace simpler::frontend
