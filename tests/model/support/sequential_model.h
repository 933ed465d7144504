// SequentialModel: what a program means. It counts bytes one by one and shares no code with the graph.
//
// What      submit() takes the steps of a program in order. For each task it says which earlier tasks the task must
//           depend on if no task has been reclaimed yet, and it computes what the task does to memory.
// Rules     See edges_of() and overlap(): the whole meaning of accesses, scopes and views is on two pages here.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "model/support/program.h"

namespace simpler::model {

// A view as arithmetic on element numbers of its buffer.
struct View {
  int buffer = -1;
  std::uint64_t buffer_bytes = 0;
  std::uint64_t width = 0;  // bytes of an element
  DataType dtype{};
  std::uint64_t first = 0;  // element number of the first element
  Extents shape, strides;
  std::int32_t version = 0;
  int creator = -1;  // task that allocated the buffer

  std::uint64_t count() const {
    std::uint64_t n = 1;
    for (std::uint32_t extent : shape) n *= extent;
    return n;
  }
  bool row_major() const { return count() == 0 || strides_matter_as(row_major_strides(shape)); }

  static Extents row_major_strides(const Extents& shape) {
    Extents strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max(shape[d], 1u);
    return strides;
  }
  void reshape(const Extents& to) {
    shape = to;
    strides = row_major_strides(to);
  }
  void apply(const ViewStep& step) {
    switch (step.kind) {
      case ViewStep::kBox:
        for (std::size_t d = 0; d < shape.size(); ++d) first += std::uint64_t{step.offsets[d]} * strides[d];
        shape = step.shape;
        break;
      case ViewStep::kSlice:
        first += std::uint64_t{step.start} * strides[step.dim];
        shape[step.dim] = (step.end - step.start + step.step - 1) / step.step;
        strides[step.dim] *= step.step;
        break;
      case ViewStep::kPermute: {
        const View before = *this;
        for (std::size_t d = 0; d < shape.size(); ++d) {
          shape[d] = before.shape[step.shape[d]];
          strides[d] = before.strides[step.shape[d]];
        }
        break;
      }
      case ViewStep::kReshape: reshape(step.shape); break;
    }
  }

  // Calls visit(element number, index) for each element, in row-major order.
  template <typename Visit> void for_each(Visit visit) const {
    Extents index(shape.size(), 0);
    for (std::uint64_t left = count(); left > 0; --left) {
      std::uint64_t element = first;
      for (std::size_t d = 0; d < shape.size(); ++d) element += std::uint64_t{index[d]} * strides[d];
      visit(element, index);
      for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
    }
  }

 private:
  // A stride of a dimension with one element names no element.
  bool strides_matter_as(const Extents& other) const {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != 1 && strides[d] != other[d]) return false;
    }
    return true;
  }
};

// The bytes of a view, sorted, and whether the view is a box of the matrix that its strides describe.
struct Footprint {
  std::vector<std::uint64_t> bytes;
  bool box = false;

  explicit Footprint(const View& view) {
    view.for_each([&](std::uint64_t element, const Extents&) {
      for (std::uint64_t b = 0; b < view.width; ++b) bytes.push_back(element * view.width + b);
    });
    std::sort(bytes.begin(), bytes.end());
    box = is_box(view);
  }
  bool empty() const { return bytes.empty(); }
  bool shares_a_byte_with(const Footprint& other) const {
    auto a = bytes.begin();
    for (auto b = other.bytes.begin(); a != bytes.end() && b != other.bytes.end();) {
      if (*a == *b) return true;
      *a < *b ? ++a : ++b;
    }
    return false;
  }
  bool includes(const Footprint& other) const {
    return std::includes(bytes.begin(), bytes.end(), other.bytes.begin(), other.bytes.end());
  }

 private:
  // The strides describe a matrix: dense in its last dimension, each stride a multiple of the next, as many rows as the
  // buffer has. The view is a box of it if every element lies at the first one's coordinates plus its own index.
  static bool is_box(const View& view) {
    const std::size_t rank = view.shape.size();
    const std::uint64_t elements = view.buffer_bytes / view.width;
    if (view.strides[rank - 1] != 1 || elements % view.strides[0] != 0) return false;
    Extents matrix(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t outer = d == 0 ? elements : view.strides[d - 1];
      if (outer % view.strides[d] != 0) return false;
      matrix[d] = static_cast<std::uint32_t>(outer / view.strides[d]);
    }
    const auto coordinate = [&](std::uint64_t element, std::size_t d) { return element / view.strides[d] % matrix[d]; };
    bool box = true;
    view.for_each([&](std::uint64_t element, const Extents& index) {
      for (std::size_t d = 0; d < rank; ++d)
        box = box && coordinate(element, d) == coordinate(view.first, d) + index[d];
    });
    return box;
  }
};

enum class Verdict { kApart, kOverlap, kCovers };

// How a later access meets an earlier write of the same buffer. Boxes of one matrix are compared byte by byte; anything
// else by the ranges from first to last byte, so that interleaved views count as overlapping.
inline Verdict overlap(const View& later, const Footprint& later_bytes, const View& earlier,
                       const Footprint& earlier_bytes) {
  if (later.buffer != earlier.buffer || later_bytes.empty() || earlier_bytes.empty()) return Verdict::kApart;
  if (later.version > earlier.version) return Verdict::kOverlap;
  if (later_bytes.bytes.back() < earlier_bytes.bytes.front() ||
      earlier_bytes.bytes.back() < later_bytes.bytes.front()) {
    return Verdict::kApart;
  }
  const bool same_matrix = later.dtype == earlier.dtype && later.strides == earlier.strides;
  if (!same_matrix || !later_bytes.box || !earlier_bytes.box) return Verdict::kOverlap;
  if (!later_bytes.shares_a_byte_with(earlier_bytes)) return Verdict::kApart;
  return later_bytes.includes(earlier_bytes) ? Verdict::kCovers : Verdict::kOverlap;
}

inline std::uint64_t mix(std::uint64_t digest, std::uint64_t value) {
  return (digest ^ value) * 0x9E3779B97F4A7C15ull + 0x165667B1;
}

// What one block of a task does to byte b of element k of an argument that it writes, if it does anything: an update
// keeps what was there in a way that depends on the order of updates.
inline std::uint8_t written_byte(TensorArgType tag, std::uint8_t before, std::uint64_t digest, std::uint64_t k,
                                 std::uint64_t b) {
  const std::uint64_t fresh = digest + 7 * k + 3 * b;
  return static_cast<std::uint8_t>(tag == TensorArgType::INOUT ? before * 31 + fresh : fresh);
}
inline bool writes(TensorArgType tag) { return tag == TensorArgType::INOUT || tag == TensorArgType::OUTPUT_EXISTING; }
inline bool compares(std::int64_t value, PredicateOp op, std::int64_t target) {
  switch (op) {
    case PredicateOp::EQ: return value == target;
    case PredicateOp::NE: return value != target;
    case PredicateOp::GT: return value > target;
    case PredicateOp::LT: return value < target;
    case PredicateOp::GE: return value >= target;
    case PredicateOp::LE: return value <= target;
    case PredicateOp::NONE: break;
  }
  return true;
}

class SequentialModel {
 public:
  // One task as the model sees it.
  struct TaskFacts {
    int depth = 0;            // of its scope; 0 is the outermost
    bool manual = false;      // in a manual scope
    std::vector<View> views;  // of its arguments
    std::vector<Footprint> footprints;
    std::vector<bool> writes;       // by argument: changes its memory, which an output does too
    std::map<int, DepFlags> edges;  // what it must depend on, by task
    bool runs = false;              // it has a kernel, and its guard holds
  };

  // `memory`: the contents of the buffers from outside.
  SequentialModel(const Program& program, std::vector<std::vector<std::uint8_t>> memory)
      : program_(program), external_buffers_(memory.size()), memory_(std::move(memory)) {}

  void submit(const Step& step) {
    switch (step.kind) {
      case Step::kOpenAuto: scopes_.push_back(manual()); return;
      case Step::kOpenManual: scopes_.push_back(true); return;
      case Step::kClose: scopes_.pop_back(); return;
      default: break;
    }
    TaskFacts facts = look_at(step);
    facts.edges = edges_of(step, facts);
    const int task = static_cast<int>(tasks_.size());
    if (step.kind != Step::kAlloc && !manual()) register_writes(step, facts, task);
    allocate(step, facts);
    facts.runs = step.kind == Step::kTask && guard_holds(step, facts);
    if (facts.runs) run(step, facts, task);
    tasks_.push_back(std::move(facts));
  }

  // What a step's arguments are, before it is submitted.
  TaskFacts look_at(const Step& step) const {
    TaskFacts facts;
    facts.depth = static_cast<int>(scopes_.size());
    facts.manual = manual();
    int fresh = static_cast<int>(memory_.size());
    for (const Argument& argument : step.arguments) {
      facts.views.push_back(argument.tag == TensorArgType::OUTPUT ? created_view(argument.created, fresh++)
                                                                  : view_of(argument));
      facts.footprints.emplace_back(facts.views.back());
      facts.writes.push_back(writes(argument.tag) || argument.tag == TensorArgType::OUTPUT);
    }
    return facts;
  }

  // What a task must depend on: its explicit dependencies; and, outside manual scopes, for each existing tensor the task
  // that created it, and, where it reads and is tracked, every task whose tracked write it overlaps.
  std::map<int, DepFlags> edges_of(const Step& step, const TaskFacts& facts) const {
    std::map<int, DepFlags> edges;
    if (step.kind == Step::kAlloc) return edges;
    const auto add = [&](int task, DepFlags kind) { edges[task] |= kind; };
    for (const ExplicitDep& dep : step.deps) add(dep.task, dep.kind);
    if (manual()) return edges;
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      const Argument& argument = step.arguments[i];
      if (argument.tag == TensorArgType::OUTPUT) continue;
      if (facts.views[i].creator >= 0) add(facts.views[i].creator, DEP_WAIT | DEP_RETAIN);
      if (!reads_tracked(argument)) continue;
      for (const Write& write : writes_) {
        if (overlap(facts.views[i], facts.footprints[i], write.view, write.footprint) != Verdict::kApart)
          add(write.task, DEP_WAIT);
      }
    }
    return edges;
  }

  View view_of(const Argument& argument) const {
    View view;
    if (argument.external >= 0) {
      const External& external = program_.externals[static_cast<std::size_t>(argument.external)];
      view.buffer = external.buffer;
      view.dtype = external.dtype;
      view.version = external.version;
      view.reshape(external.shape);
      view.width = get_element_size(view.dtype);
      view.buffer_bytes = view.count() * view.width;
    } else {
      view = tasks_[static_cast<std::size_t>(argument.task)].views[static_cast<std::size_t>(argument.output)];
      view.creator = argument.task;
    }
    for (const ViewStep& step : argument.views) view.apply(step);
    return view;
  }

  // An element as a signed number, as the tasks up to now have left it.
  std::int64_t value_at(const View& view, const Extents& index) const {
    std::uint64_t element = view.first, bits = 0;
    for (std::size_t d = 0; d < view.shape.size(); ++d) element += std::uint64_t{index[d]} * view.strides[d];
    std::memcpy(&bits, memory_[static_cast<std::size_t>(view.buffer)].data() + element * view.width, view.width);
    const int unused = static_cast<int>(64 - 8 * view.width);
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }

  bool manual() const { return !scopes_.empty() && scopes_.back(); }
  const std::vector<TaskFacts>& tasks() const { return tasks_; }
  // The buffers from outside, as the tasks up to now have left them.
  std::vector<std::vector<std::uint8_t>> external_memory() const {
    return {memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(external_buffers_)};
  }

 private:
  struct Write {
    View view;
    Footprint footprint;
    int task;
  };

  static bool tracked(const Argument& argument) {
    return !argument.manual_dep && argument.tag != TensorArgType::NO_DEP;
  }
  static bool reads_tracked(const Argument& argument) {
    return tracked(argument) && (argument.tag == TensorArgType::INPUT || argument.tag == TensorArgType::INOUT);
  }

  View created_view(const Created& created, int buffer) const {
    View view;
    view.buffer = buffer;
    view.dtype = created.dtype;
    view.width = get_element_size(view.dtype);
    view.reshape(created.shape);
    view.buffer_bytes = view.count() * view.width;
    return view;
  }

  // A tracked update makes the writes that it covers unnecessary; then tracked writes are remembered.
  void register_writes(const Step& step, const TaskFacts& facts, int task) {
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (!tracked(step.arguments[i]) || step.arguments[i].tag != TensorArgType::INOUT) continue;
      const auto covered = [&](const Write& write) {
        return overlap(facts.views[i], facts.footprints[i], write.view, write.footprint) == Verdict::kCovers;
      };
      writes_.erase(std::remove_if(writes_.begin(), writes_.end(), covered), writes_.end());
    }
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (tracked(step.arguments[i]) && writes(step.arguments[i].tag))
        writes_.push_back({facts.views[i], facts.footprints[i], task});
    }
  }

  void allocate(const Step& step, const TaskFacts& facts) {
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (step.arguments[i].tag != TensorArgType::OUTPUT) continue;
      std::vector<std::uint8_t> bytes(facts.views[i].buffer_bytes, 0);
      const std::uint64_t initial = step.arguments[i].created.initial.value_or(0);
      for (std::size_t b = 0; b < bytes.size(); ++b)
        bytes[b] = static_cast<std::uint8_t>(initial >> 8 * (b % facts.views[i].width));
      memory_.push_back(std::move(bytes));
    }
  }

  bool guard_holds(const Step& step, const TaskFacts& facts) const {
    if (!step.guard) return true;
    const View& view = facts.views[static_cast<std::size_t>(step.guard->argument)];
    return compares(value_at(view, step.guard->index), step.guard->op, step.guard->target);
  }

  void run(const Step& step, const TaskFacts& facts, int task) {
    std::uint64_t digest = static_cast<std::uint64_t>(task);
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (step.arguments[i].tag != TensorArgType::INPUT && step.arguments[i].tag != TensorArgType::NO_DEP) continue;
      const View& view = facts.views[i];
      view.for_each([&](std::uint64_t element, const Extents&) {
        for (std::uint64_t b = 0; b < view.width; ++b) {
          digest = mix(digest, memory_[static_cast<std::size_t>(view.buffer)][element * view.width + b]);
        }
      });
    }
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      const TensorArgType tag = step.arguments[i].tag;
      if (!writes(tag) && tag != TensorArgType::OUTPUT) continue;
      const View& view = facts.views[i];
      std::uint64_t k = 0;
      view.for_each([&](std::uint64_t element, const Extents&) {
        for (std::uint64_t b = 0; b < view.width; ++b) {
          std::uint8_t& byte = memory_[static_cast<std::size_t>(view.buffer)][element * view.width + b];
          byte = written_byte(tag, byte, digest, k, b);
        }
        ++k;
      });
    }
  }

  const Program& program_;
  const std::size_t external_buffers_;
  std::vector<std::vector<std::uint8_t>> memory_;  // by buffer: from outside first, then as allocated
  std::vector<bool> scopes_;                       // of the program; true: manual
  std::vector<Write> writes_;
  std::vector<TaskFacts> tasks_;
};

}  // namespace simpler::model
