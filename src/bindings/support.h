// Shared pieces of the bindings: raising typed errors, and reading Python values into plain ones.
//
// What      Every failure leaves as an exception of simpler.errors (a subclass of the built-in one that fits), with a
//           text that names the argument, its value and what is allowed.
// Threads   All functions need the GIL.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "abi/verdict.h"
#include "base/status.h"
#include "tensor.h"

namespace simpler::bindings {

namespace nb = nanobind;

// Raises the exception class of simpler.errors that belongs to the kind.
[[noreturn]] void raise(ErrorKind kind, const std::string& message);

// Raises if the status is a failure. `operation` names what was attempted: "run", "register_callable", "malloc".
void check(const Status& status, const char* operation);

// Raises ArgumentError (a ValueError) if the verdict is not ok; `what` comes first in the text.
void check(const abi::Verdict& verdict, const char* what);

// An integer of 64 bits; anything with __index__. TypeError for other types and for values that do not fit.
std::uint64_t u64_from(nb::handle value, const char* what);

// An int32; TypeError for what is no integer, ValueError for what does not fit.
std::int32_t i32_from(nb::handle value, const char* what);

// A DataType member or its number.
DataType dtype_from(nb::handle value);

// Up to five dimensions out of any sequence of integers (tuple, list, torch.Size). ValueError for more, for negative
// ones and for ones beyond 32 bits.
struct Dims {
  std::uint32_t count = 0;
  std::uint32_t values[MAX_TENSOR_DIMS] = {};
};
Dims dims_from(nb::handle value, const char* what);

nb::tuple dims_to_tuple(const std::uint32_t* values, std::uint32_t count);

// The bytes of a bytes-like object; released with the GIL held. TypeError if `value` has no contiguous buffer.
class BytesView {
 public:
  BytesView(nb::handle value, const char* what);
  ~BytesView() { PyBuffer_Release(&view_); }
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;
  const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_;
};

std::string kind_of(nb::handle value);

// One function per topic; each adds its names to the module.
void bind_enums(nb::module_& m);
void bind_callables(nb::module_& m);
void bind_call_config(nb::module_& m);
void bind_chip_tensor(nb::module_& m);
void bind_wire_tensor(nb::module_& m);
void bind_task_args(nb::module_& m);
void bind_array_import(nb::module_& m);
void bind_chip_worker(nb::module_& m);

}  // namespace simpler::bindings
