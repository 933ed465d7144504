#include "executor/gang_queue.h"

namespace simpler::executor {
namespace {

std::uint8_t lanes_of(const graph::Task& task) {
  std::uint8_t mask = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    mask = static_cast<std::uint8_t>(mask | (task.kernels[lane] >= 0 ? 1 << lane : 0));
  return mask;
}
constexpr std::uint8_t kFirstVectorLane = 2;  // the mask of a task with one vector kernel: any vector core will do

}  // namespace

int GangQueue::admit(const graph::Graph& graph, graph::RecordRef record) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({record, 0, nullptr});
  update_counts();  // before the pool is asked: whoever frees a core after that sees that somebody waits
  return place_locked(graph);
}

bool GangQueue::take(Lane* lane) {
  const std::lock_guard lock(mutex_);
  if (lanes_.empty()) return false;
  *lane = std::move(lanes_.front());
  lanes_.pop_front();
  update_counts();
  return true;
}

int GangQueue::finish(const graph::Graph& graph, Core* core) {
  const std::lock_guard lock(mutex_);
  cores_.release(core);
  outstanding_.fetch_sub(1, std::memory_order_relaxed);
  return place_locked(graph);
}

int GangQueue::place(const graph::Graph& graph) {
  const std::lock_guard lock(mutex_);
  return place_locked(graph);
}

void GangQueue::discard() {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) {
    if (lane.rendezvous != nullptr) lane.rendezvous->abandon();
    cores_.release(lane.core);
    outstanding_.fetch_sub(1, std::memory_order_relaxed);
  }
  for (Pending& pending : pending_) {
    if (pending.rendezvous != nullptr) pending.rendezvous->abandon();
  }
  lanes_.clear();
  pending_.clear();
  cores_.hold_back(false);
  update_counts();
}

int GangQueue::place_locked(const graph::Graph& graph) {
  const std::size_t before = lanes_.size();
  while (!pending_.empty()) {
    Pending& head = pending_.front();
    const graph::Task& task = graph.task(head.record);
    if (task.sync_start && head.rendezvous == nullptr) {
      const std::uint8_t mask = lanes_of(task);
      if (cores_.count_free(mask, mask == kFirstVectorLane) < task.block_count) break;
      head.rendezvous = std::make_shared<Rendezvous>(task.block_count * __builtin_popcount(mask));
    }
    // A single core may be taken between count and placing; then the placed lanes wait for the rest, which is next in line.
    while (head.next_block < task.block_count && place_block(task, head.record, head.next_block, head.rendezvous))
      ++head.next_block;
    if (head.next_block < task.block_count) break;
    pending_.pop_front();
  }
  cores_.hold_back(!pending_.empty());
  update_counts();
  return static_cast<int>(lanes_.size() - before);
}

bool GangQueue::place_block(const graph::Task& task, graph::RecordRef record, std::int32_t block,
                            const std::shared_ptr<Rendezvous>& rendezvous) {
  const std::uint8_t mask = lanes_of(task);
  Core* cores[kLanes] = {};
  if (mask == kFirstVectorLane) {
    if (!cores_.acquire_vector(&cores[1])) return false;
  } else if (!cores_.acquire_lanes(mask, cores)) {
    return false;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (cores[lane] == nullptr) continue;
    lanes_.push_back({record, block, lane, cores[lane], rendezvous});
    outstanding_.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

void GangQueue::update_counts() {
  lanes_waiting_.store(static_cast<int>(lanes_.size()), std::memory_order_relaxed);
  pending_count_.store(static_cast<int>(pending_.size()), std::memory_order_relaxed);
}

}  // namespace simpler::executor
