// Storage for the arguments of a callable: fixed arrays without pointers, so that it can cross from host to device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "arg_direction.h"
#include "tensor.h"

constexpr int CHIP_MAX_TENSOR_ARGS = 256;
constexpr int CHIP_MAX_SCALAR_ARGS = 128;

// All tensors precede all scalars. Threads: a value. add_tensor throws std::logic_error after a scalar; indices and
// capacities throw std::out_of_range.
template <typename T, typename S, std::size_t MaxT, std::size_t MaxS> struct TaskArgsTpl {
  T tensors_[MaxT];
  S scalars_[MaxS];
  int32_t tensor_count_;
  int32_t scalar_count_;

  const T& tensor(int32_t i) const { return tensors_[checked(i, tensor_count_)]; }
  T& tensor(int32_t i) { return tensors_[checked(i, tensor_count_)]; }
  S scalar(int32_t i) const { return scalars_[checked(i, scalar_count_)]; }
  const T* tensor_data() const { return tensors_; }
  const S* scalar_data() const { return scalars_; }
  const S* scalars() const { return scalars_; }
  int32_t tensor_count() const { return tensor_count_; }
  int32_t scalar_count() const { return scalar_count_; }
  void clear() { tensor_count_ = scalar_count_ = 0; }

  void add_tensor(const T& tensor) {
    if (scalar_count_ > 0) throw std::logic_error("tensors must be added before scalars");
    if (static_cast<std::size_t>(tensor_count_) >= MaxT) throw std::out_of_range("too many tensor arguments");
    tensors_[tensor_count_++] = tensor;
  }
  void add_scalar(S value) {
    if (static_cast<std::size_t>(scalar_count_) >= MaxS) throw std::out_of_range("too many scalar arguments");
    scalars_[scalar_count_++] = value;
  }

 private:
  static int32_t checked(int32_t i, int32_t count) {
    if (i < 0 || i >= count)
      throw std::out_of_range("argument " + std::to_string(i) + " was asked for, and the call passed " +
                              std::to_string(count));
    return i;
  }
};

// What an orchestration entry receives.
struct ChipTaskArgs : TaskArgsTpl<ChipTensor, uint64_t, CHIP_MAX_TENSOR_ARGS, CHIP_MAX_SCALAR_ARGS> {};
using ChipStorageTaskArgs = ChipTaskArgs;  // the host's name for the same bytes

static_assert(sizeof(ChipTaskArgs) == 33856, "the host writes these bytes, the device reads them");
static_assert(offsetof(ChipTaskArgs, scalars_) == 32768 && offsetof(ChipTaskArgs, tensor_count_) == 33792 &&
                  offsetof(ChipTaskArgs, scalar_count_) == 33796,
              "the host writes these bytes, the device reads them");

// Names of the older interface: entry arguments were descriptors of another type, converted one by one.
using ContinuousTensor = ChipTensor;
constexpr int CONTINUOUS_TENSOR_MAX_DIMS = MAX_TENSOR_DIMS;
inline ChipTensor from_tensor_arg(const ContinuousTensor& argument, bool manual_dep = false, int32_t version = 0) {
  ChipTensor tensor = argument;
  tensor.manual_dep = manual_dep;
  tensor.version = version;
  return tensor;
}
