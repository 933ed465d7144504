#include "model/support/random_program.h"

#include <numeric>

#include "model/support/sequential_model.h"

namespace simpler::model {
namespace {

using test::Random;

constexpr DataType kTypes[] = {DataType::INT8, DataType::INT16, DataType::INT32, DataType::INT64};

std::uint32_t last(const Extents& items) { return static_cast<std::uint32_t>(items.size()) - 1; }

Extents random_shape(Random& random, std::uint64_t most_elements) {
  Extents shape;
  std::uint64_t left = most_elements;
  for (std::uint32_t rank = random.number(1, MAX_TENSOR_DIMS); rank > 0; --rank) {
    shape.push_back(random.number(1, static_cast<std::uint32_t>(std::min<std::uint64_t>(left, rank == 1 ? 12 : 6))));
    left /= shape.back();
  }
  return shape;
}

std::vector<ViewStep> random_views(Random& random, View view) {
  std::vector<ViewStep> steps;
  for (std::uint32_t n = random.chance(35) ? 0 : random.number(1, 3); n > 0 && view.count() > 0; --n) {
    ViewStep step{};
    step.kind = random.chance(55) ? ViewStep::kBox
                                  : static_cast<ViewStep::Kind>(random.number(ViewStep::kSlice, ViewStep::kReshape));
    const std::uint32_t dim = random.number(0, last(view.shape));
    switch (step.kind) {
      case ViewStep::kBox:
        for (std::uint32_t extent : view.shape) {
          step.shape.push_back(random.chance(40) ? extent : random.number(1, extent));
          step.offsets.push_back(random.number(0, extent - step.shape.back()));
        }
        break;
      case ViewStep::kSlice:
        step.dim = dim;
        step.step = random.number(1, 3);
        step.start = random.number(0, view.shape[dim] - 1);
        step.end = random.chance(97) ? random.number(step.start + 1, view.shape[dim]) : step.start;  // seldom: empty
        if (random.chance(30)) {  // one of `step` interleaved views that make up the whole
          step.start = random.number(0, std::min(step.step, view.shape[dim]) - 1);
          step.end = view.shape[dim];
        }
        break;
      case ViewStep::kPermute:
        step.shape.resize(view.shape.size());
        std::iota(step.shape.begin(), step.shape.end(), 0);
        random.shuffle(step.shape);
        break;
      case ViewStep::kReshape:
        if (!view.row_major()) continue;
        step.shape = view.shape;
        if (random.chance(50) && view.shape.size() > 1) {  // fold two dimensions
          const std::uint32_t d = random.number(0, last(view.shape) - 1);
          step.shape[d] *= step.shape[d + 1];
          step.shape.erase(step.shape.begin() + d + 1);
        } else if (view.shape.size() < MAX_TENSOR_DIMS) {  // split one
          const std::uint32_t part = view.shape[dim] % 3 == 0 ? 3 : view.shape[dim] % 2 == 0 ? 2 : 1;
          step.shape[dim] /= part;
          step.shape.insert(step.shape.begin() + dim, part);
        }
        break;
    }
    view.apply(step);
    steps.push_back(step);
  }
  return steps;
}

class Generator {
 public:
  Generator(Random& random, const ProgramOptions& options) : random_(random), options_(options) {
    const std::uint32_t buffers = random.number(1, 3);
    for (std::uint32_t b = 0; b < buffers; ++b) {
      std::uint64_t bytes = 0;
      for (std::uint32_t n = random.number(1, 3); n > 0; --n) {
        External external{static_cast<int>(b), random_shape(random, 200), pick_type(), random.chance(4) ? 1 : 0};
        std::uint64_t own = get_element_size(external.dtype);
        for (std::uint32_t extent : external.shape) own *= extent;
        bytes = std::max(bytes, own);
        program_.externals.push_back(external);
      }
      program_.buffer_bytes.push_back(bytes);
    }
    if (options.runnable) {
      const std::uint32_t windows[] = {4, 8, 16};
      program_.window = windows[random.number(0, 2)];
      program_.heap = 1024 * random.number(2, 20);
      program_.dep_pool = random.chance(20) ? random.number(8, 40) : 512;
      program_.clusters = static_cast<int>(random.chance(90) ? random.number(1, 5) : random.number(6, 36));
    }
    open_scope();
  }

  Program make() {
    SequentialModel model(program_, initial_memory(program_));
    while (static_cast<int>(model.tasks().size()) < options_.tasks) {
      Step step = next_step(model);
      if (step.submits() && options_.runnable) make_runnable(model, &step);
      account(step, model);
      model.submit(step);
      program_.steps.push_back(std::move(step));
    }
    for (; depth() > 0; close_scope()) program_.steps.push_back(Step{Step::kClose, {}, {}, {}});
    return program_;
  }

 private:
  struct Source {  // an output that may be used
    int task, output;
    std::size_t depth;  // of its scope
  };

  DataType pick_type() { return kTypes[random_.number(0, 3)]; }

  // What the open scopes of the innermost one's ring hold.
  struct Held {
    std::uint32_t tasks = 0;
    std::uint64_t bytes = 0;
  };
  Held held() const {
    Held sum;
    for (std::size_t d = std::min<std::size_t>(depth(), 3); d <= depth(); ++d) {
      sum.tasks += scopes_[d].tasks;
      sum.bytes += scopes_[d].bytes;
    }
    return sum;
  }
  std::size_t depth() const { return scopes_.size() - 1; }
  void open_scope() { scopes_.emplace_back(); }
  void close_scope() { scopes_.pop_back(); }

  Step next_step(const SequentialModel& model) {
    const std::uint32_t what = random_.number(0, 99);
    const bool full = held().tasks >= program_.window - 1;
    // A full scope is left inwards, so that the program goes on, or closed.
    if (depth() < 6 && (what < 12 || (full && (depth() == 0 || (depth() < 3 && what < 60))))) {
      return Step{model.manual() || random_.chance(20) ? Step::kOpenManual : Step::kOpenAuto, {}, {}, {}};
    }
    if (depth() > 0 && (what < 24 || full)) return Step{Step::kClose, {}, {}, {}};
    return submission(model, what);
  }

  Step submission(const SequentialModel& model, std::uint32_t what) {
    Step step{};
    step.kind = what > 94 ? Step::kAlloc : what > 88 ? Step::kDummy : Step::kTask;
    if (step.kind == Step::kTask) {
      choose_width(&step);
    }
    const std::uint32_t arguments = random_.number(step.kind == Step::kAlloc ? 1 : 0, 4);
    // Outputs take 1 KiB each. Half of the heap is enough wherever a block would straddle the end; now and then the program
    // asks for more, which may never fit.
    const std::uint64_t most_bytes = random_.chance(2) ? UINT64_MAX : program_.heap / 2;
    std::uint64_t bytes = held().bytes;
    for (std::uint32_t i = 0; i < arguments; ++i) {
      const bool room = bytes + 1024 <= most_bytes;
      if (room && (step.kind == Step::kAlloc || random_.chance(15))) {
        step.arguments.push_back(output());
        bytes += 1024;
      } else if (step.kind != Step::kAlloc) {
        step.arguments.push_back(existing(model));
      }
    }
    if (step.kind == Step::kAlloc && step.arguments.empty()) step.kind = Step::kDummy;
    const int tasks = static_cast<int>(model.tasks().size());
    for (std::uint32_t n = random_.chance(25) && tasks > 0 ? random_.number(1, 4) : 0; n > 0; --n) {
      const int task = random_.chance(60) ? std::max(0, tasks - 1 - static_cast<int>(random_.number(0, 5)))
                                          : static_cast<int>(random_.number(0, static_cast<std::uint32_t>(tasks) - 1));
      step.deps.push_back({task, random_.chance(50) ? DEP_WAIT : DEP_WAIT | DEP_RETAIN});
    }
    return step;
  }

  void choose_width(Step* step) {
    constexpr std::uint8_t kMixes[] = {3, 5, 6, 7};
    step->lanes = random_.chance(45) ? 2 : random_.chance(40) ? 1 : kMixes[random_.number(0, 3)];
    const auto cores =  // of the chip, for such blocks
        static_cast<std::uint32_t>(program_.clusters) * (step->lanes == 2 ? 2 : 1);
    step->together = random_.chance(25);
    step->meets = step->together || (step->lane_count() > 1 && random_.chance(60));
    if (random_.chance(50)) return;
    step->blocks = static_cast<int>(step->together ? random_.number(1, cores) : random_.number(2, 2 * cores + 4));
  }

  Argument output() {
    Argument argument{};
    argument.tag = TensorArgType::OUTPUT;
    argument.created = {random_shape(random_, 100), pick_type(), random_.chance(5), {}};
    if (random_.chance(60))
      argument.created.initial = (std::uint64_t{random_.number(0, UINT32_MAX)} << 32) | random_.number(0, UINT32_MAX);
    return argument;
  }

  Argument existing(const SequentialModel& model) {
    Argument argument{};
    const std::uint32_t tag = random_.number(0, 99);
    argument.tag = tag < 42   ? TensorArgType::INPUT
                   : tag < 80 ? TensorArgType::INOUT
                   : tag < 93 ? TensorArgType::OUTPUT_EXISTING
                              : TensorArgType::NO_DEP;
    if (!sources_.empty() && random_.chance(45)) {
      const Source& source = random_.chance(60) ? sources_.back() : random_.pick(sources_);
      argument.task = source.task;
      argument.output = source.output;
    } else {
      argument.external =
          static_cast<int>(random_.number(0, static_cast<std::uint32_t>(program_.externals.size()) - 1));
    }
    argument.views = random_views(random_, model.view_of(argument));
    argument.manual_dep = random_.chance(7);
    return argument;
  }

  // Drops arguments that the task could not both read and write, adds a guard, and orders the task behind every earlier
  // one that touches the same bytes, unless it is ordered already.
  void make_runnable(const SequentialModel& model, Step* step) {
    std::vector<Argument> kept;
    std::vector<View> views;
    std::vector<Footprint> footprints;
    for (const Argument& argument : step->arguments) {
      if (argument.tag == TensorArgType::OUTPUT) {
        kept.push_back(argument);
        if (step->kind != Step::kTask && !kept.back().created.initial) kept.back().created.initial = 0x5A;
        views.emplace_back();
        views.back().shape = views.back().strides = {0};  // touches nothing that exists
        views.back().width = 1;
        footprints.emplace_back(views.back());
        continue;
      }
      const View view = model.view_of(argument);
      const Footprint footprint(view);
      bool clashes = false;
      for (std::size_t i = 0; i < kept.size(); ++i) {
        const bool write = writes(argument.tag) || writes(kept[i].tag);
        clashes = clashes || (write && views[i].buffer == view.buffer && footprints[i].shares_a_byte_with(footprint));
      }
      if (clashes) continue;
      kept.push_back(argument);
      views.push_back(view);
      footprints.push_back(footprint);
    }
    step->arguments = kept;
    if (step->kind == Step::kAlloc) {
      for (Argument& argument : step->arguments) argument.created.initial = argument.created.initial.value_or(0x77);
      step->deps.clear();
      return;
    }
    if (step->kind == Step::kTask && random_.chance(20)) add_guard(model, views, step);
    for (std::size_t i = 0; i < step->arguments.size(); ++i) {
      if (step->arguments[i].task >= 0 && model.manual()) {  // nothing else keeps the memory alive
        step->deps.push_back({step->arguments[i].task, DEP_WAIT | DEP_RETAIN});
      }
    }
    std::vector<bool> before = ancestors(model.edges_of(*step, model.look_at(*step)));
    for (int earlier = static_cast<int>(model.tasks().size()) - 1; earlier >= 0; --earlier) {  // the nearest first
      if (before[static_cast<std::size_t>(earlier)] || !conflict(model, earlier, step->arguments, views, footprints))
        continue;
      step->deps.push_back({earlier, random_.chance(60) ? DEP_WAIT : DEP_WAIT | DEP_RETAIN});
      before[static_cast<std::size_t>(earlier)] = true;
      const std::vector<bool>& more = ancestors_[static_cast<std::size_t>(earlier)];
      for (std::size_t t = 0; t < more.size(); ++t) before[t] = before[t] || more[t];
    }
  }

  void add_guard(const SequentialModel& model, const std::vector<View>& views, Step* step) {
    for (std::size_t i = 0; i < step->arguments.size(); ++i) {
      const TensorArgType tag = step->arguments[i].tag;
      if ((tag != TensorArgType::INPUT && tag != TensorArgType::INOUT) || views[i].count() == 0) continue;
      Guard guard{static_cast<int>(i),
                  {},
                  static_cast<PredicateOp>(random_.number(1, 6)),
                  static_cast<std::int64_t>(random_.number(0, 20)) - 10};
      for (std::uint32_t extent : views[i].shape) guard.index.push_back(random_.number(0, extent - 1));
      const std::int64_t value = model.value_at(views[i], guard.index);
      const bool room = value > INT64_MIN && value < INT64_MAX;
      if (room && random_.chance(75)) guard.target = value - 1 + random_.number(0, 2);  // where comparisons differ
      step->guard = guard;
      for (Argument& argument : step->arguments) {  // a skipped task leaves its outputs as they were
        if (argument.tag == TensorArgType::OUTPUT) argument.created.initial = argument.created.initial.value_or(0x33);
      }
      return;
    }
  }

  static bool conflict(const SequentialModel& model, int earlier, const std::vector<Argument>& arguments,
                       const std::vector<View>& views, const std::vector<Footprint>& footprints) {
    // The outputs of the earlier task count as written by it.
    const SequentialModel::TaskFacts& other = model.tasks()[static_cast<std::size_t>(earlier)];
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      for (std::size_t j = 0; j < other.views.size(); ++j) {
        const bool write = writes(arguments[i].tag) || other.writes[j];
        if (write && views[i].buffer == other.views[j].buffer && footprints[i].shares_a_byte_with(other.footprints[j]))
          return true;
      }
    }
    return false;
  }

  std::vector<bool> ancestors(const std::map<int, DepFlags>& edges) const {
    std::vector<bool> before(ancestors_.size(), false);
    for (const auto& [task, kind] : edges) {
      before[static_cast<std::size_t>(task)] = true;
      const std::vector<bool>& more = ancestors_[static_cast<std::size_t>(task)];
      for (std::size_t t = 0; t < more.size(); ++t) before[t] = before[t] || more[t];
    }
    return before;
  }

  void account(const Step& step, const SequentialModel& model) {
    if (step.kind == Step::kClose) {
      close_scope();
      while (options_.runnable && !sources_.empty() && sources_.back().depth > depth()) sources_.pop_back();
    } else if (!step.submits()) {
      open_scope();
    } else {
      const int task = static_cast<int>(model.tasks().size());
      ancestors_.push_back(ancestors(model.edges_of(step, model.look_at(step))));
      ++scopes_.back().tasks;
      for (std::size_t i = 0; i < step.arguments.size(); ++i) {
        if (step.arguments[i].tag != TensorArgType::OUTPUT) continue;
        sources_.push_back({task, static_cast<int>(i), depth()});
        scopes_.back().bytes += 1024;
      }
    }
  }

  Random& random_;
  const ProgramOptions options_;
  Program program_;
  std::vector<Held> scopes_;  // open ones; the first is the outermost
  std::vector<Source> sources_;
  std::vector<std::vector<bool>> ancestors_;  // by task: those that are complete before it starts
};

}  // namespace

Program random_program(Random& random, const ProgramOptions& options) { return Generator(random, options).make(); }

std::vector<std::vector<std::uint8_t>> initial_memory(const Program& program) {
  std::vector<std::vector<std::uint8_t>> memory;
  for (std::uint64_t bytes : program.buffer_bytes) {
    memory.emplace_back(bytes);
    for (std::size_t b = 0; b < bytes; ++b) memory.back()[b] = static_cast<std::uint8_t>(b * 37 + memory.size());
  }
  return memory;
}

}  // namespace simpler::model
