// Addresses of arrays that other libraries own: the buffer protocol and DLPack.
#include <nanobind/ndarray.h>

#include "bindings/support.h"

namespace simpler::bindings {
namespace {

// (address, bytes, writable) of a contiguous buffer. The caller keeps the exporter's memoryview as the owner.
nb::tuple buffer_info(nb::handle exporter) {
  Py_buffer view;
  bool writable = true;
  if (PyObject_GetBuffer(exporter.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) {
    PyErr_Clear();
    writable = false;
    if (PyObject_GetBuffer(exporter.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  nb::tuple result = nb::make_tuple(reinterpret_cast<std::uintptr_t>(view.buf), view.len, writable);
  PyBuffer_Release(&view);
  return result;
}

// DLPack's type code and bits as a DataType; false if there is none.
bool dtype_of_dlpack(const nb::dlpack::dtype& type, DataType* out) {
  struct Row {
    int code, bits;
    DataType type;
  };
  constexpr int kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kFloat8E4M3FN = 10, kFloat8E8M0 = 14, kFloat4E2M1 = 17;
  static constexpr Row kRows[] = {
      {kFloat, 32, DataType::FLOAT32},     {kFloat, 16, DataType::FLOAT16}, {kBfloat, 16, DataType::BFLOAT16},
      {kInt, 8, DataType::INT8},           {kInt, 16, DataType::INT16},     {kInt, 32, DataType::INT32},
      {kInt, 64, DataType::INT64},         {kUint, 8, DataType::UINT8},     {kUint, 16, DataType::UINT16},
      {kUint, 32, DataType::UINT32},       {kUint, 64, DataType::UINT64},   {kFloat8E4M3FN, 8, DataType::FP8E4M3FN},
      {kFloat8E8M0, 8, DataType::FP8E8M0},
  };
  if (type.code == kFloat4E2M1 && type.bits == 4 && type.lanes == 2) {  // packed pairs: one byte is one element here
    *out = DataType::FP4E2M1;
    return true;
  }
  for (const Row& row : kRows) {
    if (type.lanes == 1 && type.code == row.code && type.bits == row.bits) {
      *out = row.type;
      return true;
    }
  }
  return false;
}

template <class Array> bool import_array(nb::handle exporter, bool writable, nb::object* result) {
  Array array;
  if (!nb::try_cast<Array>(exporter, array, false)) {
    PyErr_Clear();
    return false;
  }
  DataType dtype;
  if (!dtype_of_dlpack(array.dtype(), &dtype)) {
    raise(ErrorKind::kValue, format("arrays of DLPack type code %d with %d bits have no DataType", array.dtype().code,
                                    array.dtype().bits));
  }
  nb::list shape, strides;
  for (std::size_t d = 0; d < array.ndim(); ++d) {
    shape.append(array.shape(d));
    strides.append(array.stride(d));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(array.data());
  const int device = array.device_type();
  // The capsule owns the exporter's lease; it dies with the array handle that the owner object holds.
  nb::object owner =
      nb::capsule(new Array(std::move(array)), [](void* held) noexcept { delete static_cast<Array*>(held); });
  *result = nb::make_tuple(address, nb::tuple(shape), nb::tuple(strides), dtype, device, writable, owner);
  return true;
}

nb::object dlpack_info(nb::handle exporter) {
  nb::object result;
  if (import_array<nb::ndarray<>>(exporter, true, &result) ||
      import_array<nb::ndarray<nb::ro>>(exporter, false, &result)) {
    return result;
  }
  raise(ErrorKind::kType, format("%s has __dlpack__, but its array could not be imported", kind_of(exporter).c_str()));
}

}  // namespace

void bind_array_import(nb::module_& m) {
  m.def("_buffer_info", buffer_info, nb::arg("exporter"), "(address, bytes, writable) of a contiguous buffer.");
  m.def("_dlpack_info", dlpack_info, nb::arg("exporter"),
        "(address, shape, element strides, DataType, DLPack device type, writable, owner) of an array.");
}

}  // namespace simpler::bindings
