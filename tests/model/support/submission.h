// Submission: turns the steps of a program into arguments of the runtime.
//
// Lifetime  args() refers to the object's own memory; keep it until the submission returned.
#pragma once
#include <deque>
#include <vector>

#include "model/support/program.h"

namespace simpler::model {

// What has been submitted up to now: ids and argument descriptors by task.
struct Submissions {
  std::vector<ChipTensor> externals;
  std::vector<PTO2TaskId> ids;
  std::vector<std::vector<ChipTensor>> tensors;

  // `memory`: the buffers of the program.
  Submissions(const Program& program, std::vector<std::vector<std::uint8_t>>& memory) {
    for (const External& external : program.externals) {
      externals.push_back(make_tensor_external(memory[static_cast<std::size_t>(external.buffer)].data(),
                                               external.shape.data(), static_cast<std::uint32_t>(external.shape.size()),
                                               external.dtype, false, external.version));
    }
  }
};

class Submission {
 public:
  Submission(const Step& step, const Submissions& earlier) {
    for (const Argument& argument : step.arguments) {
      if (argument.tag == TensorArgType::OUTPUT) {
        infos_.emplace_back(argument.created.shape.data(), static_cast<std::uint32_t>(argument.created.shape.size()),
                            argument.created.dtype, argument.created.manual_dep);
        if (argument.created.initial) infos_.back().set_initial_value(*argument.created.initial);
        args_.add_output(infos_.back());
        given_.push_back(nullptr);
        continue;
      }
      tensors_.push_back(
          argument.external >= 0
              ? earlier.externals[static_cast<std::size_t>(argument.external)]
              : earlier.tensors[static_cast<std::size_t>(argument.task)][static_cast<std::size_t>(argument.output)]);
      ChipTensor& tensor = tensors_.back();
      for (const ViewStep& view : argument.views) apply(view, &tensor);
      tensor.manual_dep = argument.manual_dep;
      given_.push_back(&tensor);
      switch (argument.tag) {
        case TensorArgType::INPUT: args_.add_input(tensor); break;
        case TensorArgType::INOUT: args_.add_inout(tensor); break;
        case TensorArgType::NO_DEP: args_.add_no_dep(tensor); break;
        default: args_.add_output(tensor); break;
      }
    }
    for (const ExplicitDep& dep : step.deps) {
      ids_.push_back(earlier.ids[static_cast<std::size_t>(dep.task)]);
      kinds_.push_back(dep.kind);
    }
    args_.set_dependencies_with_kinds(ids_.data(), kinds_.data(), static_cast<std::uint32_t>(ids_.size()));
    if (step.guard) {
      CoreTaskPredicate predicate;
      predicate.operand.tensor = given_[static_cast<std::size_t>(step.guard->argument)];
      predicate.operand.ndims = static_cast<std::uint32_t>(step.guard->index.size());
      for (std::size_t d = 0; d < step.guard->index.size(); ++d) predicate.operand.indices[d] = step.guard->index[d];
      predicate.op = step.guard->op;
      predicate.target = step.guard->target;
      args_.set_predicate(predicate);
    }
  }

  CoreTaskArgs& args() { return args_; }
  // The descriptor of an argument; nullptr for memory that the task allocates.
  const ChipTensor* given(std::size_t argument) const { return given_[argument]; }

 private:
  static void apply(const ViewStep& step, ChipTensor* tensor) {
    switch (step.kind) {
      case ViewStep::kBox: *tensor = tensor->view(step.shape.data(), step.offsets.data()); break;
      case ViewStep::kSlice: *tensor = tensor->slice(step.dim, step.start, step.end, step.step); break;
      case ViewStep::kPermute: *tensor = tensor->permute(step.shape.data()); break;
      case ViewStep::kReshape:
        *tensor = tensor->reshape(step.shape.data(), static_cast<std::uint32_t>(step.shape.size()));
        break;
    }
  }

  CoreTaskArgs args_;
  std::deque<ChipTensor> tensors_;
  std::deque<TensorCreateInfo> infos_;
  std::vector<const ChipTensor*> given_;
  std::vector<PTO2TaskId> ids_;
  std::vector<DepFlags> kinds_;
};

}  // namespace simpler::model
