// CanonicalIdentity, BufferDescriptor and Tensor: buffers and views as they travel between processes.
#include <cstring>
#include <mutex>
#include <vector>

#include "bindings/argument_objects.h"
#include "bindings/support.h"

namespace simpler::bindings {
namespace {

// Worker paths are short texts that many descriptors share; descriptors carry a number that is valid in this process.
class PathTable {
 public:
  std::uint32_t intern(const std::string& path) {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (paths_[i] == path) return static_cast<std::uint32_t>(i);
    }
    paths_.push_back(path);
    return static_cast<std::uint32_t>(paths_.size() - 1);
  }
  std::string text(std::uint32_t id) {
    const std::lock_guard<std::mutex> guard(mutex_);
    return id < paths_.size() ? paths_[id] : format("<path#%u>", id);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> paths_{""};  // 0: no path
};

PathTable& paths() {
  static PathTable table;
  return table;
}

abi::CanonicalIdentity make_identity(nb::handle owner, nb::handle buffer_id, nb::handle generation) {
  const BytesView nonce(owner, "owner_instance_id");
  if (nonce.size() != abi::kOwnerInstanceIdBytes) {
    raise(ErrorKind::kValue,
          format("owner_instance_id has %zu bytes; it needs exactly %d", nonce.size(), abi::kOwnerInstanceIdBytes));
  }
  abi::CanonicalIdentity identity{};
  std::memcpy(identity.owner_instance_id, nonce.data(), nonce.size());
  identity.buffer_id = u64_from(buffer_id, "buffer_id");
  const std::uint64_t wide = u64_from(generation, "generation");
  if (wide > UINT32_MAX) raise(ErrorKind::kValue, "generation must fit 32 bits");
  identity.generation = static_cast<std::uint32_t>(wide);
  return identity;
}

nb::tuple identity_key(const abi::CanonicalIdentity& identity) {
  return nb::make_tuple(
      nb::bytes(reinterpret_cast<const char*>(identity.owner_instance_id), abi::kOwnerInstanceIdBytes),
      identity.buffer_id, identity.generation);
}

std::uint8_t small_enum(nb::handle value, const char* what) {
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    raise(ErrorKind::kType, format("%s must be a member of its enumeration, not %s", what, kind_of(value).c_str()));
  }
  const std::uint64_t wide = u64_from(number, what);
  if (wide > 255)
    raise(ErrorKind::kValue, format("%s: %llu is out of range", what, static_cast<unsigned long long>(wide)));
  return static_cast<std::uint8_t>(wide);
}

abi::BufferDescriptor make_descriptor(const abi::CanonicalIdentity& identity, nb::handle address_space,
                                      nb::handle access, nb::handle backend, nb::handle nbytes, nb::handle body,
                                      nb::handle path_id) {
  abi::BufferDescriptor d{};
  d.magic = abi::kBufferMagic;
  d.identity = identity;
  d.address_space = small_enum(address_space, "address_space");
  d.access = small_enum(access, "access");
  d.backend_kind = small_enum(backend, "backend_kind");
  d.nbytes = u64_from(nbytes, "nbytes");
  d.owner_worker_path_id = static_cast<std::uint32_t>(u64_from(path_id, "owner_worker_path_id"));
  const BytesView bytes(body, "body");
  if (bytes.size() > abi::kBufferBodyBytes) {
    raise(ErrorKind::kValue, format("body: %zu bytes; allowed: at most %d", bytes.size(), abi::kBufferBodyBytes));
  }
  d.body_len = static_cast<std::uint16_t>(bytes.size());
  if (bytes.size() != 0) std::memcpy(d.body, bytes.data(), bytes.size());
  check(abi::check_buffer_descriptor(d), "BufferDescriptor");
  return d;
}

WireTensor make_tensor(const abi::BufferDescriptor& buffer, nb::handle byte_offset, nb::handle shapes_in,
                       nb::handle strides_in, nb::handle dtype, nb::object owner) {
  const Dims shapes = dims_from(shapes_in, "shapes");
  const Dims strides = dims_from(strides_in, "strides");
  if (shapes.count != strides.count) {
    raise(ErrorKind::kValue, format("Tensor: %u shapes but %u strides", shapes.count, strides.count));
  }
  WireTensor tensor;
  tensor.wire.buffer = buffer;
  tensor.wire.byte_offset = u64_from(byte_offset, "byte_offset");
  tensor.wire.ndims = shapes.count;
  std::memcpy(tensor.wire.shapes, shapes.values, sizeof(tensor.wire.shapes));
  std::memcpy(tensor.wire.strides, strides.values, sizeof(tensor.wire.strides));
  tensor.wire.dtype = static_cast<std::uint8_t>(dtype_from(dtype));
  check(abi::check_tensor(tensor.wire), "Tensor");
  tensor.owner = std::move(owner);
  return tensor;
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<WireTensor>(self)->owner.ptr());
  return 0;
}

int tensor_clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<WireTensor>(self)->owner.reset();
  return 0;
}

PyType_Slot tensor_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
                              {0, nullptr}};

template <class T> bool same_bytes(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;  // every byte of these structs is set, padding included
}

}  // namespace

void bind_wire_tensor(nb::module_& m) {
  nb::class_<abi::CanonicalIdentity>(m, "CanonicalIdentity",
                                     "Names one backing: who made it, which one, which generation.")
      .def(
          "__init__",
          [](abi::CanonicalIdentity* self, nb::handle owner, nb::handle buffer_id, nb::handle generation) {
            new (self) abi::CanonicalIdentity(make_identity(owner, buffer_id, generation));
          },
          nb::arg("owner_instance_id"), nb::arg("buffer_id"), nb::arg("generation") = 1)
      .def_prop_ro("owner_instance_id",
                   [](const abi::CanonicalIdentity& i) {
                     return nb::bytes(reinterpret_cast<const char*>(i.owner_instance_id), abi::kOwnerInstanceIdBytes);
                   })
      .def_prop_ro("buffer_id", [](const abi::CanonicalIdentity& i) { return i.buffer_id; })
      .def_prop_ro("generation", [](const abi::CanonicalIdentity& i) { return i.generation; })
      .def(
          "__eq__",
          [](const abi::CanonicalIdentity& a, nb::handle other) -> nb::object {
            const abi::CanonicalIdentity* b = nullptr;
            if (!nb::try_cast<const abi::CanonicalIdentity*>(other, b) || b == nullptr)
              return nb::borrow(Py_NotImplemented);
            return nb::bool_(a == *b);
          },
          nb::arg("other").none())
      .def("__hash__", [](const abi::CanonicalIdentity& i) { return nb::hash(identity_key(i)); })
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(self.type(), identity_key(nb::cast<const abi::CanonicalIdentity&>(self)));
           })
      .def("__repr__", [](const abi::CanonicalIdentity& i) {
        std::string nonce;
        for (std::uint8_t byte : i.owner_instance_id) nonce += format("%02x", byte);
        const std::string text = format("CanonicalIdentity(owner=%s, buffer_id=%llu, generation=%u)", nonce.c_str(),
                                        static_cast<unsigned long long>(i.buffer_id), i.generation);
        return nb::str(text.c_str());
      });

  nb::class_<abi::BufferDescriptor>(m, "BufferDescriptor", "How to reach one backing; checked when it is built.")
      .def(
          "__init__",
          [](abi::BufferDescriptor* self, const abi::CanonicalIdentity& identity, nb::handle space, nb::handle access,
             nb::handle backend, nb::handle nbytes, nb::handle body, nb::handle path_id) {
            new (self) abi::BufferDescriptor(make_descriptor(identity, space, access, backend, nbytes, body, path_id));
          },
          nb::arg("identity"), nb::arg("address_space"), nb::arg("access"), nb::arg("backend_kind"), nb::arg("nbytes"),
          nb::arg("body") = nb::bytes("", 0), nb::arg("owner_worker_path_id") = 0)
      .def_prop_ro("identity", [](const abi::BufferDescriptor& d) { return d.identity; })
      .def_prop_ro("address_space",
                   [](const abi::BufferDescriptor& d) { return static_cast<abi::Space>(d.address_space); })
      .def_prop_ro("access", [](const abi::BufferDescriptor& d) { return static_cast<abi::Access>(d.access); })
      .def_prop_ro("backend_kind",
                   [](const abi::BufferDescriptor& d) { return static_cast<abi::Backend>(d.backend_kind); })
      .def_prop_ro("nbytes", [](const abi::BufferDescriptor& d) { return d.nbytes; })
      .def_prop_ro(
          "body",
          [](const abi::BufferDescriptor& d) { return nb::bytes(reinterpret_cast<const char*>(d.body), d.body_len); })
      .def_prop_ro("owner_worker_path_id", [](const abi::BufferDescriptor& d) { return d.owner_worker_path_id; })
      .def_prop_ro("owner_worker_path",
                   [](const abi::BufferDescriptor& d) { return nb::str(paths().text(d.owner_worker_path_id).c_str()); })
      .def(
          "__eq__",
          [](const abi::BufferDescriptor& a, nb::handle other) -> nb::object {
            const abi::BufferDescriptor* b = nullptr;
            if (!nb::try_cast<const abi::BufferDescriptor*>(other, b) || b == nullptr)
              return nb::borrow(Py_NotImplemented);
            return nb::bool_(same_bytes(a, *b));
          },
          nb::arg("other").none())
      .def("__hash__", [](const abi::BufferDescriptor& d) { return nb::hash(identity_key(d.identity)); })
      .def("__repr__", [](const abi::BufferDescriptor& d) {
        const std::string text =
            format("BufferDescriptor(backend_kind=%s, nbytes=%llu, buffer_id=%llu)", abi::backend_name(d.backend_kind),
                   static_cast<unsigned long long>(d.nbytes), static_cast<unsigned long long>(d.identity.buffer_id));
        return nb::str(text.c_str());
      });

  nb::class_<WireTensor>(m, "Tensor", nb::type_slots(tensor_slots), nb::is_weak_referenceable(),
                         "A view of a backing, without an address. Checked when it is built; immutable.")
      .def(
          "__init__",
          [](WireTensor* self, const abi::BufferDescriptor& buffer, nb::handle byte_offset, nb::handle shapes,
             nb::handle strides, nb::handle dtype, nb::object owner) {
            new (self) WireTensor(make_tensor(buffer, byte_offset, shapes, strides, dtype, std::move(owner)));
          },
          nb::arg("buffer"), nb::arg("byte_offset"), nb::arg("shapes"), nb::arg("strides"), nb::arg("dtype"),
          nb::arg("_owner") = nb::none(), "_owner: an object to keep alive as long as the tensor.")
      .def_prop_ro("buffer", [](const WireTensor& t) { return t.wire.buffer; })
      .def_prop_ro("byte_offset", [](const WireTensor& t) { return t.wire.byte_offset; })
      .def_prop_ro("ndims", [](const WireTensor& t) { return t.wire.ndims; })
      .def_prop_ro("shapes", [](const WireTensor& t) { return dims_to_tuple(t.wire.shapes, t.wire.ndims); })
      .def_prop_ro("strides", [](const WireTensor& t) { return dims_to_tuple(t.wire.strides, t.wire.ndims); })
      .def_prop_ro(
          "dtype", [](const WireTensor& t) { return t.wire.dtype; }, "The DataType's number.")
      .def(
          "nbytes",
          [](const WireTensor& t) {
            std::uint64_t count = get_element_size(static_cast<DataType>(t.wire.dtype));
            for (std::uint32_t d = 0; d < t.wire.ndims; ++d) count *= t.wire.shapes[d];
            return count;
          },
          "Bytes of the elements.")
      .def(
          "__eq__",
          [](const WireTensor& a, nb::handle other) -> nb::object {
            const WireTensor* b = nullptr;
            if (!nb::try_cast<const WireTensor*>(other, b) || b == nullptr) return nb::borrow(Py_NotImplemented);
            return nb::bool_(same_bytes(a.wire, b->wire));
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const WireTensor& t) {
             return nb::hash(nb::make_tuple(identity_key(t.wire.buffer.identity), t.wire.byte_offset));
           })
      .def("__repr__", [](const WireTensor& t) {
        const std::string text =
            format("Tensor(shapes=%s, strides=%s, dtype=%s, byte_offset=%llu, backend=%s)",
                   nb::repr(dims_to_tuple(t.wire.shapes, t.wire.ndims)).c_str(),
                   nb::repr(dims_to_tuple(t.wire.strides, t.wire.ndims)).c_str(),
                   get_dtype_name(static_cast<DataType>(t.wire.dtype)),
                   static_cast<unsigned long long>(t.wire.byte_offset), abi::backend_name(t.wire.buffer.backend_kind));
        return nb::str(text.c_str());
      });

  m.def(
      "_intern_worker_path", [](const char* path) { return paths().intern(path); }, nb::arg("path"));
  m.def(
      "_worker_path_for_id", [](std::uint32_t id) { return nb::str(paths().text(id).c_str()); }, nb::arg("id"));
}

}  // namespace simpler::bindings
