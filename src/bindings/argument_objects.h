// TaskArgs: the arguments of one task as Python builds them, and WireTensor, the tensor that it is made of.
//
// What      Tensors (wire tensors or ChipTensors) with tags, then scalars. Unbounded; the limits of the target apply
//           when the arguments are bound to it.
// Lifetime  Holds a reference to every object whose memory its tensors name, until clear().
// Threads   Python objects: the GIL.
#pragma once
#include <variant>
#include <vector>

#include "abi/wire_tensor.h"
#include "bindings/support.h"
#include "task_args.h"

namespace simpler::bindings {

// A wire tensor with the object that owns the memory it names (None if the caller keeps it).
struct WireTensor {
  abi::Tensor wire{};
  nb::object owner;
};

struct TaskArgs {
  struct Entry {
    std::variant<abi::Tensor, ChipTensor> tensor;
    TensorArgType tag = TensorArgType::INPUT;
    bool read_only = false;  // host memory that a run must not write
  };
  std::vector<Entry> tensors;
  std::vector<std::uint64_t> scalars;
  std::vector<nb::object> keep;
};

// The fixed block that an orchestration receives, with the objects that own the memory it names.
struct ChipArgs {
  ChipStorageTaskArgs pod;     // tensors and scalars past the counts are uninitialised
  std::vector<int> read_only;  // tensors of host memory that a run must not write
  std::vector<nb::object> keep;

  ChipArgs() { pod.clear(); }
};

ChipTensor make_chip_tensor(std::uint64_t address, const Dims& shapes, DataType dtype, bool device);
void set_strides(ChipTensor& tensor, const Dims& strides);

// The wire tensor over memory that starts at `base`; raises RuntimeError if it cannot be expressed.
ChipTensor chip_tensor_from_wire(const abi::Tensor& wire, std::uint64_t base, bool device);

}  // namespace simpler::bindings
