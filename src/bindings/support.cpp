#include "bindings/support.h"

namespace simpler::bindings {
namespace {

PyObject* builtin_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kValue: return PyExc_ValueError;
    case ErrorKind::kType: return PyExc_TypeError;
    case ErrorKind::kIndex: return PyExc_IndexError;
    case ErrorKind::kKey: return PyExc_KeyError;
    case ErrorKind::kTimeout: return PyExc_TimeoutError;
    case ErrorKind::kMemory: return PyExc_MemoryError;
    default: return PyExc_RuntimeError;
  }
}

[[noreturn]] void raise_status(ErrorKind kind, int code, const std::string& message, const char* operation) {
  // User code and damaged files put any bytes into texts, and a text may be cut inside a character.
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  try {
    nb::object error =
        nb::module_::import_("simpler.errors").attr("from_status")(static_cast<int>(kind), code, text, operation);
    PyErr_SetObject(error.type().ptr(), error.ptr());
  } catch (nb::python_error& missing) {  // the extension also works without the package; then the built-in must do
    if (!missing.matches(PyExc_ImportError)) throw;
    PyErr_SetObject(builtin_for(kind), text.ptr());
  }
  throw nb::python_error();
}

}  // namespace

void raise(ErrorKind kind, const std::string& message) { raise_status(kind, -1, message, ""); }

void check(const Status& status, const char* operation) {
  if (!status.ok()) raise_status(status.kind(), status.code(), status.message(), operation);
}

void check(const abi::Verdict& verdict, const char* what) {
  if (verdict.ok()) return;
  raise(ErrorKind::kValue, std::string(what) + ": " + verdict.text());
}

std::string kind_of(nb::handle value) { return nb::cast<nb::str>(value.type().attr("__name__")).c_str(); }

std::uint64_t u64_from(nb::handle value, const char* what) {
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    raise(ErrorKind::kType, format("%s must be an integer, not %s", what, kind_of(value).c_str()));
  }
  const std::uint64_t result = PyLong_AsUnsignedLongLong(number.ptr());
  if (result == UINT64_MAX && PyErr_Occurred()) {
    PyErr_Clear();
    raise(ErrorKind::kType, format("%s is %s; it must fit an unsigned 64-bit integer", what, nb::str(number).c_str()));
  }
  return result;
}

std::int32_t i32_from(nb::handle value, const char* what) {
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    raise(ErrorKind::kType, format("%s must be an integer, not %s", what, kind_of(value).c_str()));
  }
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || result < INT32_MIN || result > INT32_MAX) {
    raise(ErrorKind::kValue, format("%s is %s; it must fit a signed 32-bit integer", what, nb::str(number).c_str()));
  }
  return static_cast<std::int32_t>(result);
}

DataType dtype_from(nb::handle value) {
  auto type = DataType::FLOAT32;
  if (nb::try_cast<DataType>(value, type)) return type;
  if (!PyLong_Check(value.ptr())) {
    raise(ErrorKind::kType, format("dtype must be a DataType or its number, not %s", kind_of(value).c_str()));
  }
  const std::int32_t number = i32_from(value, "dtype");
  if (number < 0 || number >= static_cast<int>(DataType::DATA_TYPE_NUM) || number == static_cast<int>(DataType::BOOL)) {
    raise(ErrorKind::kValue, format("dtype is %d; that number names no DataType", number));
  }
  return static_cast<DataType>(number);
}

Dims dims_from(nb::handle value, const char* what) {
  if (PyUnicode_Check(value.ptr()) || !PySequence_Check(value.ptr())) {
    raise(ErrorKind::kType, format("%s must be a sequence of integers, not %s", what, kind_of(value).c_str()));
  }
  nb::object fast = nb::steal(PySequence_Fast(value.ptr(), "not a sequence"));
  if (!fast.is_valid()) throw nb::python_error();
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.ptr());
  if (count > MAX_TENSOR_DIMS) {
    raise(ErrorKind::kValue, format("%s has %zd dimensions; a tensor has 1 to %d", what, count, MAX_TENSOR_DIMS));
  }
  Dims dims;
  dims.count = static_cast<std::uint32_t>(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    nb::object number = nb::steal(PyNumber_Index(PySequence_Fast_GET_ITEM(fast.ptr(), i)));
    if (!number.is_valid()) {
      PyErr_Clear();
      raise(ErrorKind::kType, format("%s[%zd] must be an integer", what, i));
    }
    int overflow = 0;
    const long long dim = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0 || dim < 0 || dim > UINT32_MAX) {
      raise(ErrorKind::kValue, format("%s[%zd] is %s; allowed: 0 to %u", what, i, nb::str(number).c_str(), UINT32_MAX));
    }
    dims.values[i] = static_cast<std::uint32_t>(dim);
  }
  return dims;
}

nb::tuple dims_to_tuple(const std::uint32_t* values, std::uint32_t count) {
  nb::object tuple = nb::steal(PyTuple_New(count));
  for (std::uint32_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, PyLong_FromUnsignedLong(values[i]));
  return nb::borrow<nb::tuple>(tuple);
}

BytesView::BytesView(nb::handle value, const char* what) {
  if (PyObject_GetBuffer(value.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    raise(ErrorKind::kType,
          format("%s must be bytes or a contiguous bytes-like object, not %s", what, kind_of(value).c_str()));
  }
}

}  // namespace simpler::bindings
