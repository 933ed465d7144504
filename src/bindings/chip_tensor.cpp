// ChipTensor: a tensor at an address. The address is host memory, or device memory when child_memory is set.
#include <cstring>

#include "bindings/argument_objects.h"
#include "bindings/support.h"

namespace simpler::bindings {
namespace {

constexpr std::uint64_t kMostElements = UINT64_MAX / 16;  // bytes of any type, rounded up, still fit

void require_rank(std::uint32_t count, const char* what) {
  if (count == 0)
    raise(ErrorKind::kValue, format("%s is empty; a tensor has 1 to %d dimensions", what, MAX_TENSOR_DIMS));
}

// Descriptors hold strides in 32 bits, and byte counts in 64.
void require_row_major(const Dims& shapes) {
  for (std::uint32_t d = 0; d < shapes.count; ++d) {
    if (shapes.values[d] == 0) return;
  }
  std::uint64_t elements = 1;
  for (std::uint32_t d = shapes.count; d-- > 0; elements *= shapes.values[d]) {
    if (shapes.values[d] == 1 || elements <= UINT32_MAX) continue;
    raise(ErrorKind::kValue,
          format("shapes: two neighbours of dimension %u are %llu elements apart; allowed: at most %u", d,
                 static_cast<unsigned long long>(elements), static_cast<unsigned>(UINT32_MAX)));
  }
  if (elements > kMostElements) {
    raise(ErrorKind::kValue,
          format("shapes: %llu elements; allowed: at most %llu", static_cast<unsigned long long>(elements),
                 static_cast<unsigned long long>(kMostElements)));
  }
}

void resize(ChipTensor& tensor) { tensor.buffer.size = tensor.extent_elem_cache * get_element_size(tensor.dtype); }

}  // namespace

ChipTensor make_chip_tensor(std::uint64_t address, const Dims& shapes, DataType dtype, bool device) {
  require_rank(shapes.count, "shapes");
  require_row_major(shapes);
  ChipTensor tensor;
  std::memset(static_cast<void*>(&tensor), 0, sizeof(tensor));
  tensor.init_external(reinterpret_cast<void*>(address), 0, shapes.values, shapes.count, dtype, 0, false,
                       device ? AddressSpace::DEVICE : AddressSpace::HOST);
  resize(tensor);
  return tensor;
}

void set_strides(ChipTensor& tensor, const Dims& strides) {
  if (strides.count != tensor.ndims) {
    raise(ErrorKind::kValue, format("strides has %u entries for %u dimensions", strides.count, tensor.ndims));
  }
  bool empty = false;
  std::uint64_t extent = 0;
  for (std::uint32_t d = 0; d < tensor.ndims; ++d) {
    if (strides.values[d] == 0) raise(ErrorKind::kValue, format("strides[%u] is 0; element strides are at least 1", d));
    tensor.strides[d] = strides.values[d];
    empty = empty || tensor.shapes[d] == 0;
    const std::uint64_t steps = tensor.shapes[d] > 0 ? tensor.shapes[d] - 1 : 0, stride = strides.values[d];
    if (steps > (kMostElements - extent) / stride) {
      raise(ErrorKind::kValue, format("strides[%u] is %u: the tensor would reach over more than %llu elements", d,
                                      strides.values[d], static_cast<unsigned long long>(kMostElements)));
    }
    extent += steps * stride;
  }
  if (!empty) tensor.refresh_layout();
  resize(tensor);
}

void bind_chip_tensor(nb::module_& m) {
  nb::class_<ChipTensor> cls(m, "ChipTensor",
                             "A tensor at an address. The memory is borrowed: keep it alive while a run uses it.");
  cls.def("__init__",
          [](ChipTensor* self) {
            std::memset(static_cast<void*>(new (self) ChipTensor), 0, sizeof(*self));
            self->owner_task_id = PTO2TaskId::invalid();
            self->is_contiguous = true;
          })
      .def_static(
          "make",
          [](nb::handle data, nb::handle shapes, nb::handle dtype, bool child_memory, nb::handle strides) {
            ChipTensor tensor =
                make_chip_tensor(u64_from(data, "data"), dims_from(shapes, "shapes"), dtype_from(dtype), child_memory);
            if (!strides.is_none()) set_strides(tensor, dims_from(strides, "strides"));
            return tensor;
          },
          nb::arg("data"), nb::arg("shapes"), nb::arg("dtype"), nb::arg("child_memory") = false,
          nb::arg("strides") = nb::none(),
          "data: an address, or a device Buffer. child_memory: it is a device address, not staged by a run.")
      .def_prop_rw(
          "data", [](const ChipTensor& t) { return t.buffer.addr; },
          [](ChipTensor& t, nb::handle data) { t.buffer.addr = u64_from(data, "data"); })
      .def_prop_rw(
          "shapes", [](const ChipTensor& t) { return dims_to_tuple(t.shapes, t.ndims); },
          [](ChipTensor& t, nb::handle shapes) {
            const Dims dims = dims_from(shapes, "shapes");
            require_rank(dims.count, "shapes");
            require_row_major(dims);
            t.set_shape_row_major(dims.values, dims.count);
            resize(t);
          },
          "Setting it makes the layout row-major.")
      .def_prop_rw(
          "dtype", [](const ChipTensor& t) { return t.dtype; },
          [](ChipTensor& t, nb::handle dtype) {
            t.dtype = dtype_from(dtype);
            resize(t);
          })
      .def_prop_rw(
          "child_memory", [](const ChipTensor& t) { return t.is_device_memory(); },
          [](ChipTensor& t, bool device) { t.address_space = device ? AddressSpace::DEVICE : AddressSpace::HOST; })
      .def_prop_ro("ndims", [](const ChipTensor& t) { return t.ndims; })
      .def_prop_ro("strides", [](const ChipTensor& t) { return dims_to_tuple(t.strides, t.ndims); })
      .def_prop_ro(
          "start_offset", [](const ChipTensor& t) { return t.start_offset; },
          "Elements from data to the view's origin.")
      .def_prop_ro("is_contiguous", [](const ChipTensor& t) { return t.is_contiguous; })
      .def(
          "nbytes", [](const ChipTensor& t) { return t.ndims == 0 ? 0 : t.nbytes(); }, "Bytes of the elements.")
      .def("__copy__", [](const ChipTensor& t) { return t; })
      .def("__repr__", [](const ChipTensor& t) {
        std::string shapes;
        for (std::uint32_t d = 0; d < t.ndims; ++d) shapes += format(d ? ", %u" : "%u", t.shapes[d]);
        const std::string text =
            format("ChipTensor(data=0x%llx, shapes=(%s%s), dtype=%s%s)", static_cast<unsigned long long>(t.buffer.addr),
                   shapes.c_str(), t.ndims == 1 ? "," : "", get_dtype_name(t.dtype),
                   t.is_device_memory() ? ", child_memory=True" : "");
        return nb::str(text.c_str());
      });
}

}  // namespace simpler::bindings
