// The uses of recorded graphs: which are recorded, replayed, or submitted by calling the body.
#include <algorithm>
#include <unordered_set>

#include "base/log.h"
#include "frontend/whole_graph/whole_graph_runtime.h"

namespace simpler::frontend {

using graph::kNodeRing;

namespace {

// Edges of a body in a manual scope are others than in an automatic one.
constexpr std::uint64_t kManualKey = 0x9E3779B97F4A7C15ull;

// Whether the arguments can be a graph's boundary; nullptr, or why not.
const char* boundary_flaw(const CoreTaskArgs& args) {
  if (args.tensor_count() == 0) return "its boundary has no tensor";
  if (args.explicit_dep_count() > 0) return "its boundary has explicit dependencies";
  if (args.scalars_exposed()) return "a scalar of its boundary was accessed for writing";
  for (int i = 0; i < args.tensor_count(); ++i) {
    if (args.tag(i) == TensorArgType::OUTPUT) return "its boundary has a tensor that is to be allocated";
  }
  return nullptr;
}

}  // namespace

SimplerGraphBlock WholeGraphRuntime::begin_graph(std::uint64_t key, const CoreTaskArgs& boundary, bool always_ended) {
  constexpr SimplerGraphBlock kSkipped{false, false, PTO2TaskId::invalid()};
  if (latch_.raised()) return kSkipped;
  if (!well_formed(boundary)) return kSkipped;
  if (frames_.size() == kMostNested) {
    refuse("graphs are nested deeper than %zu: does a body submit itself?", kMostNested);
    return kSkipped;
  }
  if (graph_.scopes().manual()) key ^= kManualKey;
  const bool nested = !frames_.empty();  // the outer body, if anything, is what is recorded
  bool recording = false;
  if (!nested) {
    auto known = known_.find(key);
    const char* flaw = boundary_flaw(boundary);
    if (known == known_.end() && known_.size() < kMostRecordings) {
      known = known_.emplace(key, Known{}).first;
      if (flaw == nullptr)
        recording = true;
      else
        note(&known->second, flaw);
    } else if (known == known_.end()) {
      if (!noted_limit_) {
        log::device(log::Level::kWarn, log_origin(), "rt_submit_graph",
                    "more than %zu different graphs in one run: the others are not recorded", kMostRecordings);
        noted_limit_ = true;
      }
    } else if (known->second.definition != nullptr) {
      if (flaw == nullptr) flaw = known->second.definition->mismatch(boundary);
      if (flaw == nullptr) {
        if (!replay(*known->second.definition, boundary)) return kSkipped;
        return {false, false, last_use_};
      }
      note(&known->second, flaw);
    }
  }
  if (!recording) ++counts_.plain;
  if (!recording && !always_ended) return {true, false, PTO2TaskId::invalid()};
  const std::uint32_t first_node = graph_.task_count(kNodeRing);
  if (recording) recorder_.begin(boundary, first_node, graph_.heap_top());
  frames_.push_back({first_node, key, graph_.scopes().depth(), recording});
  graph_.scopes().divert(true);
  return {true, recording, PTO2TaskId::invalid()};
}

bool WholeGraphRuntime::end_graph() {
  last_use_ = PTO2TaskId::invalid();
  if (latch_.raised()) return false;
  if (frames_.empty()) {
    refuse("rt_graph_end without a rt_graph_begin that answered `recording`");
    return false;
  }
  const Frame frame = frames_.back();
  if (graph_.scopes().depth() != frame.scope_depth) {
    refuse("the body of a graph leaves %d scopes more open than it found", graph_.scopes().depth() - frame.scope_depth);
    return false;
  }
  // What ends the use are the tasks that no other one of the body depends on.
  const std::uint32_t last_node = graph_.task_count(kNodeRing);
  continued_.assign(last_node - frame.first_node, false);
  for (std::uint32_t n = frame.first_node; n < last_node; ++n) {
    const graph::Task& task = graph_.task_of(PTO2TaskId::make(kNodeRing, n));
    for (std::uint32_t e = 0; e < task.edge_count; ++e) {
      const PTO2TaskId producer = task.producers()[e];
      if (producer.ring() == kNodeRing && producer.local() >= frame.first_node)
        continued_[producer.local() - frame.first_node] = true;
    }
  }
  ends_.clear();
  for (std::uint32_t n = frame.first_node; n < last_node; ++n) {
    if (!continued_[n - frame.first_node]) ends_.push_back(PTO2TaskId::make(kNodeRing, n));
  }
  if (frame.recording) finish_recording(frame.key);
  frames_.pop_back();
  if (frames_.empty()) graph_.scopes().divert(false);
  end_use(ends_);
  return !latch_.raised();
}

void WholeGraphRuntime::require_order(const ChipTensor& operand, const graph::Task& task) {
  std::unordered_set<std::uint64_t> before;  // tasks that this one comes after
  std::vector<PTO2TaskId> open{task.id};
  while (!open.empty()) {
    const graph::Task& one = graph_.task_of(open.back());
    open.pop_back();
    for (std::uint32_t e = 0; e < one.edge_count; ++e) {
      if (before.insert(one.producers()[e].raw).second) open.push_back(one.producers()[e]);
    }
  }
  graph_.find_accessors(operand, false, &accessors_);
  for (const PTO2TaskId writer : accessors_) {
    if (writer == task.id || before.count(writer.raw) > 0) continue;
    refuse(
        "task %u of a graph's body has a predicate on a tensor that task %u of ring %u writes, and does not come after "
        "it: "
        "add the tensor to its arguments, or the writer to its dependencies",
        task.id.local(), writer.local(), writer.ring());
    return;
  }
}

void WholeGraphRuntime::finish_recording(std::uint64_t key) {
  Known& known = known_[key];
  if (recorder_.unfit() != nullptr) {
    note(&known, recorder_.unfit());
    ++counts_.plain;
    recorder_.abandon();
    return;
  }
  ++counts_.recorded;
  known.definition = keep(recorder_.finish(graph_));
}

// The kept definition that equals the recording, or a new one, which is kept from now on.
std::shared_ptr<const graph::Definition> WholeGraphRuntime::keep(graph::Recording recording) {
  const std::uint64_t hash = recording.hash();
  const auto same = std::find_if(kept_.begin(), kept_.end(), [&](const auto& definition) {
    return definition->hash() == hash && definition->recording() == recording;
  });
  if (same != kept_.end()) {
    std::rotate(same, same + 1, kept_.end());
  } else {
    ++counts_.made;
    if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
    kept_.push_back(std::make_shared<const graph::Definition>(std::move(recording)));
  }
  return kept_.back();
}

bool WholeGraphRuntime::replay(const graph::Definition& definition, const CoreTaskArgs& boundary) {
  std::uint32_t first_node = 0;
  graph::Shortage shortage;
  if (graph_.replay(definition, boundary, &first_node, &roots_, &shortage) != graph::Outcome::kTaken) {
    if (!shortage.hopeless()) return make_room(shortage, nullptr);
    fail(shortage, "it is too small for this one graph");
    return false;
  }
  ++counts_.replayed;
  ends_.clear();
  for (const std::uint32_t sink : definition.sinks()) ends_.push_back(PTO2TaskId::make(kNodeRing, first_node + sink));
  end_use(ends_);
  return !latch_.raised();
}

void WholeGraphRuntime::end_use(const std::vector<PTO2TaskId>& ids) {
  CoreTaskArgs args;
  args.set_dependencies(ids.data(), static_cast<std::uint32_t>(ids.size()));
  last_use_ = submit({graph::Shape::kDummy, {-1, -1, -1}, 0, false, true}, args).task_id();
}

void WholeGraphRuntime::note(Known* known, const char* reason) {
  if (known->noted) return;
  known->noted = true;
  log::device(log::Level::kWarn, log_origin(), "rt_submit_graph", "a graph is submitted by calling its body: %s",
              reason);
}

}  // namespace simpler::frontend
