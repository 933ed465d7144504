// TaskArgs and ChipStorageTaskArgs, and the ways from one to the other.
#include "bindings/argument_objects.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bindings/callables.h"

namespace simpler::bindings {
namespace {

const char* tag_name(TensorArgType tag) {
  static constexpr const char* kNames[] = {"INPUT", "OUTPUT", "INOUT", "OUTPUT_EXISTING", "NO_DEP"};
  return kNames[static_cast<int>(tag)];
}

const char* access_name(std::uint8_t access) {
  static constexpr const char* kNames[] = {"READ", "WRITE", "READWRITE"};
  return kNames[access];
}

// What a task may do with a tensor under a tag. OUTPUT memory is the runtime's own, NO_DEP is unchecked by contract.
struct TagNeeds {
  bool read, write;
};
TagNeeds needs_of(TensorArgType tag) {
  static constexpr TagNeeds kNeeds[] = {{true, false}, {false, false}, {true, true}, {false, true}, {false, false}};
  return kNeeds[static_cast<int>(tag)];
}

void check_access(const abi::Tensor& tensor, TensorArgType tag) {
  const auto access = static_cast<abi::Access>(tensor.buffer.access);
  const TagNeeds needs = needs_of(tag);
  const bool granted = (!needs.read || access != abi::Access::kWrite) && (!needs.write || access != abi::Access::kRead);
  if (!granted) {
    raise(ErrorKind::kValue,
          format("access not granted: tag %s needs %s%s%s, but the %s buffer grants %s", tag_name(tag),
                 needs.read ? "READ" : "", needs.read && needs.write ? "+" : "", needs.write ? "WRITE" : "",
                 abi::backend_name(tensor.buffer.backend_kind), access_name(tensor.buffer.access)));
  }
}

// An array of another library, described by simpler.host_array.
struct HostArray {
  ChipTensor tensor;
  bool writable;
  nb::object owner;
};
HostArray describe_array(nb::handle array) {
  nb::object described = nb::module_::import_("simpler.host_array").attr("describe")(array);
  nb::tuple fields = nb::cast<nb::tuple>(described);  // (address, shape, dtype, writable, owner)
  return {make_chip_tensor(u64_from(fields[0], "address"), dims_from(fields[1], "shape"), dtype_from(fields[2]), false),
          nb::cast<bool>(fields[3]), nb::object(fields[4])};
}

[[noreturn]] void tensor_after_scalar() {
  raise(ErrorKind::kState, "a tensor cannot be added after a scalar: add all tensors first, then the scalars");
}

template <class Sequence> auto& at(Sequence& items, int i, const char* what) {
  if (i < 0 || static_cast<std::size_t>(i) >= items.size()) {
    raise(ErrorKind::kIndex, format("%s %d is out of range; there are %zu", what, i, items.size()));
  }
  return items[static_cast<std::size_t>(i)];
}

// ---- TaskArgs ----

void add_tensor(TaskArgs& args, nb::handle value, TensorArgType tag) {
  if (!args.scalars.empty()) tensor_after_scalar();
  TaskArgs::Entry entry;
  entry.tag = tag;
  nb::object owner;
  const WireTensor* wire = nullptr;
  const ChipTensor* chip = nullptr;
  if (nb::try_cast<const WireTensor*>(value, wire) && wire != nullptr) {
    check_access(wire->wire, tag);
    entry.tensor = wire->wire;
    entry.read_only = wire->wire.buffer.access == static_cast<std::uint8_t>(abi::Access::kRead);
    owner = wire->owner;
  } else if (nb::try_cast<const ChipTensor*>(value, chip) && chip != nullptr) {
    entry.tensor = *chip;
  } else {
    HostArray array = describe_array(value);
    if (!array.writable && (needs_of(tag).write || tag == TensorArgType::OUTPUT)) {
      raise(ErrorKind::kValue, format("access not granted: tag %s writes, but the array is read-only", tag_name(tag)));
    }
    entry.tensor = array.tensor;
    entry.read_only = !array.writable;
    owner = std::move(array.owner);
  }
  args.tensors.push_back(std::move(entry));
  if (owner.is_valid() && !owner.is_none()) args.keep.push_back(std::move(owner));
}

nb::object tensor_object(const TaskArgs::Entry& entry) {
  if (const auto* chip = std::get_if<ChipTensor>(&entry.tensor)) return nb::cast(*chip);
  WireTensor wire;
  wire.wire = std::get<abi::Tensor>(entry.tensor);
  wire.owner = nb::none();
  return nb::cast(std::move(wire));
}

void set_tag(TaskArgs& args, int i, TensorArgType tag) { at(args.tensors, i, "tensor").tag = tag; }

// Descriptors of backings that only the process can resolve (shared memory by name, remote ones), each once.
nb::list unresolved(const TaskArgs& args) {
  nb::list found;
  std::vector<abi::CanonicalIdentity> seen;
  for (const TaskArgs::Entry& entry : args.tensors) {
    const auto* wire = std::get_if<abi::Tensor>(&entry.tensor);
    if (wire == nullptr || wire->buffer.has_address()) continue;
    if (std::find(seen.begin(), seen.end(), wire->buffer.identity) != seen.end()) continue;
    seen.push_back(wire->buffer.identity);
    found.append(wire->buffer);
  }
  return found;
}

TaskArgs read_args_from_blob(std::uintptr_t blob, std::size_t capacity) {
  if (blob == 0 || capacity < sizeof(abi::ArgsBlobHeader)) {
    throw std::runtime_error("argument blob: it is shorter than its header of 8 bytes");
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(blob);
  abi::ArgsBlobHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.tensor_count < 0 || header.scalar_count < 0) {
    throw std::runtime_error(format("argument blob: counts are negative (%d tensors, %d scalars)", header.tensor_count,
                                    header.scalar_count));
  }
  const std::size_t tensors = static_cast<std::size_t>(header.tensor_count);
  const std::size_t scalars = static_cast<std::size_t>(header.scalar_count);
  const std::size_t needed = sizeof(header) + tensors * sizeof(abi::Tensor) + scalars * sizeof(std::uint64_t);
  if (needed > capacity) {
    throw std::runtime_error(format("argument blob: %zu tensors and %zu scalars need %zu bytes, but it has %zu",
                                    tensors, scalars, needed, capacity));
  }
  TaskArgs args;
  const std::uint8_t* next = bytes + sizeof(header);
  for (std::size_t i = 0; i < tensors; ++i, next += sizeof(abi::Tensor)) {
    abi::Tensor wire;
    std::memcpy(&wire, next, sizeof(wire));
    if (const abi::Verdict verdict = abi::check_tensor(wire); !verdict.ok()) {
      throw std::runtime_error(format("argument blob: tensor %zu: %s", i, verdict.text()));
    }
    args.tensors.push_back({wire, TensorArgType::INPUT, false});
  }
  args.scalars.resize(scalars);
  if (scalars != 0) std::memcpy(args.scalars.data(), next, scalars * sizeof(std::uint64_t));
  return args;
}

// ---- to the chip ----

// Finds base and space of a wire tensor's backing: in `resolved`, else (if allowed) in its own descriptor.
ChipTensor resolve(const abi::Tensor& wire, nb::handle resolved, bool trust_addresses) {
  const abi::BufferDescriptor& d = wire.buffer;
  if (resolved.is_valid() && !resolved.is_none()) {
    nb::object key = nb::cast(d.identity);
    PyObject* found = PyDict_GetItemWithError(resolved.ptr(), key.ptr());
    if (found != nullptr) {
      nb::tuple pair = nb::cast<nb::tuple>(nb::handle(found));
      return chip_tensor_from_wire(wire, u64_from(pair[0], "base"), nb::cast<int>(nb::int_(nb::object(pair[1]))) != 0);
    }
    if (PyErr_Occurred()) throw nb::python_error();
  }
  if (trust_addresses && d.has_address()) {
    return chip_tensor_from_wire(wire, d.address(), d.address_space == static_cast<std::uint8_t>(abi::Space::kDevice));
  }
  throw std::runtime_error(
      format("no memory is known for the %s buffer %llu; it was released, or belongs to another worker",
             abi::backend_name(d.backend_kind), static_cast<unsigned long long>(d.identity.buffer_id)));
}

ChipArgs* to_chip_args(const TaskArgs& args, nb::handle resolved, bool trust_addresses) {
  if (args.tensors.size() > CHIP_MAX_TENSOR_ARGS || args.scalars.size() > CHIP_MAX_SCALAR_ARGS) {
    raise(ErrorKind::kIndex,
          format("a chip callable takes at most %d tensors and %d scalars, not %zu and %zu", CHIP_MAX_TENSOR_ARGS,
                 CHIP_MAX_SCALAR_ARGS, args.tensors.size(), args.scalars.size()));
  }
  auto chip = std::make_unique<ChipArgs>();
  for (const TaskArgs::Entry& entry : args.tensors) {
    const auto* direct = std::get_if<ChipTensor>(&entry.tensor);
    if (entry.read_only) chip->read_only.push_back(chip->pod.tensor_count());
    chip->pod.add_tensor(direct != nullptr ? *direct
                                           : resolve(std::get<abi::Tensor>(entry.tensor), resolved, trust_addresses));
  }
  for (std::uint64_t scalar : args.scalars) chip->pod.add_scalar(scalar);
  chip->keep = args.keep;
  return chip.release();
}

struct Range {
  std::uint64_t begin, end;
};
Range touched_range(const ChipTensor& tensor) {  // first to past the last byte that the view reaches
  const std::uint64_t element = get_element_size(tensor.dtype);
  const std::uint64_t begin = tensor.buffer.addr + tensor.start_offset * element;
  return {begin, begin + tensor.extent_elem_cache * element};
}

// Gives host tensors that overlap one common buffer, and every other one a buffer of exactly what it touches. The run
// stages buffer by buffer: so arguments that share memory still share it on the device, and a small view of a large
// array costs a small copy.
void join_overlapping_host_tensors(ChipStorageTaskArgs& args) {
  std::vector<std::pair<Range, ChipTensor*>> views;
  for (int i = 0; i < args.tensor_count(); ++i) {
    ChipTensor& tensor = args.tensor(i);
    if (tensor.is_device_memory() || tensor.ndims == 0 || tensor.numel() == 0) continue;
    views.emplace_back(touched_range(tensor), &tensor);
  }
  std::sort(views.begin(), views.end(), [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  for (std::size_t first = 0, next = 0; first < views.size(); first = next) {
    Range joined = views[first].first;
    for (next = first + 1; next < views.size() && views[next].first.begin < joined.end; ++next) {
      joined.end = std::max(joined.end, views[next].first.end);
    }
    for (std::size_t i = first; i < next; ++i) {
      ChipTensor& tensor = *views[i].second;
      const std::uint64_t offset = views[i].first.begin - joined.begin;
      const std::uint64_t element = get_element_size(tensor.dtype);
      if (offset % element != 0) {
        raise(ErrorKind::kValue,
              format("two tensors overlap at an odd distance: one begins %llu bytes into the other, which is no "
                     "multiple of its element size %llu",
                     static_cast<unsigned long long>(offset), static_cast<unsigned long long>(element)));
      }
      tensor.buffer = {joined.begin, joined.end - joined.begin};
      tensor.start_offset = offset / element;
    }
  }
}

// Of the callable's tensors, in order: entries for scalars pair with nothing.
std::vector<ArgDirection> directions_of(const ChipCallableBlob& chip) {
  std::vector<ArgDirection> directions;
  for (int i = 0; i < chip.header().sig_count; ++i) {
    const auto direction = static_cast<ArgDirection>(chip.header().signature[i]);
    if (direction != ArgDirection::SCALAR) directions.push_back(direction);
  }
  return directions;
}

// A run writes back every tensor that its callable does not declare IN. For read-only memory of which it declares nothing
// a copy stands in.
void spare_read_only_memory(ChipArgs& args, const ChipCallableBlob* chip) {
  if (args.read_only.empty()) return;
  const std::vector<ArgDirection> directions = chip != nullptr ? directions_of(*chip) : std::vector<ArgDirection>();
  for (const int i : args.read_only) {
    const bool declared = static_cast<std::size_t>(i) < directions.size();
    const ArgDirection direction = declared ? directions[static_cast<std::size_t>(i)] : ArgDirection::INOUT;
    if (direction == ArgDirection::IN) continue;
    if (declared) {
      raise(ErrorKind::kValue, format("tensor %d is read-only, but the callable's signature says %s", i,
                                      direction == ArgDirection::OUT ? "OUT" : "INOUT"));
    }
    ChipTensor& tensor = args.pod.tensor(i);
    if (tensor.is_device_memory() || tensor.numel() == 0) continue;
    const Range range = touched_range(tensor);
    nb::bytearray copy(reinterpret_cast<const void*>(range.begin), range.end - range.begin);
    tensor.buffer.addr = reinterpret_cast<std::uint64_t>(copy.data()) - (range.begin - tensor.buffer.addr);
    args.keep.push_back(std::move(copy));
  }
}

// Whether `next` touches host memory that a run of `chip` with `running` may still write when finalized.
bool writes_host_memory_of(const ChipArgs& running, const ChipCallableBlob& chip, const ChipArgs& next) {
  const std::vector<ArgDirection> directions = directions_of(chip);
  for (int i = 0; i < running.pod.tensor_count(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (index < directions.size() && directions[index] == ArgDirection::IN) continue;
    const ChipTensor& written = running.pod.tensor(i);
    if (written.is_device_memory()) continue;  // runs execute in order; only copies to the host can come too late
    for (int j = 0; j < next.pod.tensor_count(); ++j) {
      const ChipTensor& touched = next.pod.tensor(j);
      if (touched.is_device_memory()) continue;
      if (std::max(written.buffer.addr, touched.buffer.addr) <
          std::min(written.buffer.addr + written.buffer.size, touched.buffer.addr + touched.buffer.size)) {
        return true;
      }
    }
  }
  return false;
}

// Whether arguments name memory in [begin, end), as a tensor of any space or as an address in a scalar.
bool names_memory(const ChipArgs& args, std::uint64_t begin, std::uint64_t end) {
  for (int i = 0; i < args.pod.tensor_count(); ++i) {
    const ChipTensor& t = args.pod.tensor(i);
    if (t.buffer.addr < end && t.buffer.addr + std::max<std::uint64_t>(t.buffer.size, 1) > begin) return true;
  }
  for (int i = 0; i < args.pod.scalar_count(); ++i) {
    if (args.pod.scalar(i) >= begin && args.pod.scalar(i) < end) return true;
  }
  return false;
}

// A copy for one run of the callable, which later changes of the original do not reach. Only what is used is copied.
ChipArgs* snapshot(const ChipArgs& args, const ChipCallableBlob* chip) {
  auto copy = std::make_unique<ChipArgs>();
  for (int i = 0; i < args.pod.tensor_count(); ++i) copy->pod.add_tensor(args.pod.tensor(i));
  for (int i = 0; i < args.pod.scalar_count(); ++i) copy->pod.add_scalar(args.pod.scalar(i));
  copy->keep = args.keep;
  copy->read_only = args.read_only;
  spare_read_only_memory(*copy, chip);
  join_overlapping_host_tensors(copy->pod);
  return copy.release();
}

// ---- reference cycles through the kept objects ----

template <class T> int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    for (const nb::object& object : nb::inst_ptr<T>(self)->keep) Py_VISIT(object.ptr());
  }
  return 0;
}

template <class T> int clear(PyObject* self) {
  if (nb::inst_ready(self)) {
    std::vector<nb::object> dropped;
    nb::inst_ptr<T>(self)->keep.swap(dropped);
  }
  return 0;
}

template <class T> PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<T>)},
                                          {Py_tp_clear, reinterpret_cast<void*>(clear<T>)},
                                          {0, nullptr}};

void bind_plain_task_args(nb::module_& m) {
  nb::class_<TaskArgs>(m, "TaskArgs", nb::type_slots(slots<TaskArgs>), nb::is_weak_referenceable(),
                       "Arguments of one task: tensors with tags, then scalars.")
      .def(nb::init<>())
      .def("add_tensor", add_tensor, nb::arg("t"), nb::arg("tag") = TensorArgType::INPUT,
           "t: a Tensor, a ChipTensor, a NumPy array, a torch tensor, or anything with __dlpack__ or the buffer "
           "protocol "
           "(then shape and type are inferred and the array is kept alive until clear()).")
      .def(
          "add_scalar", [](TaskArgs& a, nb::handle value) { a.scalars.push_back(u64_from(value, "a scalar")); },
          nb::arg("value"), "An unsigned 64-bit pattern; see scalar_to_uint64() for floats and negative numbers.")
      .def(
          "tensor", [](const TaskArgs& a, int i) { return tensor_object(at(a.tensors, i, "tensor")); }, nb::arg("i"))
      .def(
          "scalar", [](const TaskArgs& a, int i) { return at(a.scalars, i, "scalar"); }, nb::arg("i"))
      .def(
          "tag", [](const TaskArgs& a, int i) { return at(a.tensors, i, "tensor").tag; }, nb::arg("i"))
      .def("set_tag", set_tag, nb::arg("i"), nb::arg("tag"))
      .def("tensor_count", [](const TaskArgs& a) { return a.tensors.size(); })
      .def("scalar_count", [](const TaskArgs& a) { return a.scalars.size(); })
      .def(
          "clear",
          [](TaskArgs& a) {
            TaskArgs dropped;  // its objects die after `a` is empty: their destructors may run any code
            std::swap(a, dropped);
          },
          "Removes everything and drops the references to arrays.")
      .def("__len__", [](const TaskArgs& a) { return a.tensors.size() + a.scalars.size(); })
      .def("_unresolved", unresolved)
      .def("__repr__", [](const TaskArgs& a) {
        return nb::str(format("TaskArgs(tensors=%zu, scalars=%zu)", a.tensors.size(), a.scalars.size()).c_str());
      });
}

void bind_chip_args(nb::module_& m) {
  nb::class_<ChipArgs>(
      m, "ChipStorageTaskArgs", nb::type_slots(slots<ChipArgs>),
      "Arguments of one chip callable as a fixed block: at most 256 tensors, then at most 128 scalars.")
      .def(nb::init<>())
      .def(
          "add_tensor",
          [](ChipArgs& a, nb::handle value) {
            if (a.pod.scalar_count() > 0) tensor_after_scalar();
            if (a.pod.tensor_count() >= CHIP_MAX_TENSOR_ARGS) {
              raise(ErrorKind::kIndex, format("a chip callable takes at most %d tensors", CHIP_MAX_TENSOR_ARGS));
            }
            const ChipTensor* chip = nullptr;
            const WireTensor* wire = nullptr;
            if (nb::try_cast<const ChipTensor*>(value, chip) && chip != nullptr) {
              a.pod.add_tensor(*chip);
              return;
            }
            if (nb::try_cast<const WireTensor*>(value, wire) && wire != nullptr) {
              const bool read_only = wire->wire.buffer.access == static_cast<std::uint8_t>(abi::Access::kRead);
              a.pod.add_tensor(resolve(wire->wire, nb::handle(), true));
              if (read_only) a.read_only.push_back(a.pod.tensor_count() - 1);
              a.keep.push_back(wire->owner);
              return;
            }
            HostArray array = describe_array(value);
            if (!array.writable) a.read_only.push_back(a.pod.tensor_count());
            a.pod.add_tensor(array.tensor);
            a.keep.push_back(std::move(array.owner));
          },
          nb::arg("t"),
          "t: a ChipTensor, a Tensor whose buffer carries an address, or an array as TaskArgs.add_tensor takes it.")
      .def(
          "add_scalar",
          [](ChipArgs& a, nb::handle value) {
            const std::uint64_t bits = u64_from(value, "a scalar");
            if (a.pod.scalar_count() >= CHIP_MAX_SCALAR_ARGS) {
              raise(ErrorKind::kIndex, format("a chip callable takes at most %d scalars", CHIP_MAX_SCALAR_ARGS));
            }
            a.pod.add_scalar(bits);
          },
          nb::arg("value"))
      .def(
          "tensor",
          [](ChipArgs& a, int i) -> ChipTensor& {
            if (i < 0 || i >= a.pod.tensor_count()) {
              raise(ErrorKind::kIndex, format("tensor %d is out of range; there are %d", i, a.pod.tensor_count()));
            }
            return a.pod.tensor(i);
          },
          nb::arg("i"), nb::rv_policy::reference_internal, "A live reference to tensor i.")
      .def(
          "scalar",
          [](const ChipArgs& a, int i) {
            if (i < 0 || i >= a.pod.scalar_count()) {
              raise(ErrorKind::kIndex, format("scalar %d is out of range; there are %d", i, a.pod.scalar_count()));
            }
            return a.pod.scalar(i);
          },
          nb::arg("i"))
      .def("tensor_count", [](const ChipArgs& a) { return a.pod.tensor_count(); })
      .def("scalar_count", [](const ChipArgs& a) { return a.pod.scalar_count(); })
      .def("clear",
           [](ChipArgs& a) {
             std::vector<nb::object> dropped;
             a.keep.swap(dropped);
             a.read_only.clear();
             a.pod.clear();
           })
      .def("__len__", [](const ChipArgs& a) { return a.pod.tensor_count() + a.pod.scalar_count(); })
      .def(
          "__ptr__", [](const ChipArgs& a) { return reinterpret_cast<std::uintptr_t>(&a.pod); },
          "Address of the block.")
      .def_static(
          "sizeof", [] { return sizeof(ChipStorageTaskArgs); }, "Bytes of the block.")
      .def("_snapshot", snapshot, nb::arg("chip").none() = nb::none(), nb::rv_policy::take_ownership,
           "A copy for one run of the callable: overlapping tensors share one buffer, and memory that is read-only is "
           "spared. ValueError if the callable declares that it writes such memory.")
      .def("_names_memory", names_memory, nb::arg("begin"), nb::arg("end"),
           "Whether a tensor or a scalar names an address in [begin, end).")
      .def(
          "_keep", [](ChipArgs& a, nb::object object) { a.keep.push_back(std::move(object)); }, nb::arg("object"),
          "Keeps an object alive as long as these arguments.")
      .def("__repr__", [](const ChipArgs& a) {
        return nb::str(
            format("ChipStorageTaskArgs(tensors=%d, scalars=%d)", a.pod.tensor_count(), a.pod.scalar_count()).c_str());
      });
}

}  // namespace

ChipTensor chip_tensor_from_wire(const abi::Tensor& wire, std::uint64_t base, bool device) {
  const auto dtype = static_cast<DataType>(wire.dtype);
  const std::uint64_t element = get_element_size(dtype);
  if (element == 0) throw std::runtime_error(format("dtype %u names no element type", wire.dtype));
  if (wire.byte_offset % element != 0) {
    throw std::runtime_error(format("byte_offset %llu is not a multiple of the element size %llu",
                                    static_cast<unsigned long long>(wire.byte_offset),
                                    static_cast<unsigned long long>(element)));
  }
  ChipTensor tensor;
  std::memset(static_cast<void*>(&tensor), 0, sizeof(tensor));
  tensor.init_external(reinterpret_cast<void*>(base), wire.buffer.nbytes, wire.shapes, wire.ndims, dtype, 0, false,
                       device ? AddressSpace::DEVICE : AddressSpace::HOST);
  tensor.start_offset = wire.byte_offset / element;
  std::memcpy(tensor.strides, wire.strides, sizeof(tensor.strides));
  tensor.refresh_layout();
  return tensor;
}

void bind_task_args(nb::module_& m) {
  bind_plain_task_args(m);
  bind_chip_args(m);
  m.def("read_args_from_blob", read_args_from_blob, nb::arg("blob_ptr"), nb::arg("capacity"),
        "Arguments from bytes: int32 tensor count, int32 scalar count, tensors, scalars. Tags do not travel: all are "
        "INPUT.");
  m.def(
      "materialize_task_args",
      [](const TaskArgs& args, nb::dict resolved) { return to_chip_args(args, resolved, false); }, nb::arg("args"),
      nb::arg("resolved"), nb::rv_policy::take_ownership,
      "resolved maps CanonicalIdentity to (base address, AddressSpace); RuntimeError for a buffer that is not in it.");
  m.def(
      "_bind_task_args", [](const TaskArgs& args, nb::handle resolved) { return to_chip_args(args, resolved, true); },
      nb::arg("args"), nb::arg("resolved").none(), nb::rv_policy::take_ownership,
      "The same, but buffers that carry an address of this process resolve themselves.");
  m.def("_writes_host_memory_of", writes_host_memory_of, nb::arg("running"), nb::arg("chip"), nb::arg("next"));
}

}  // namespace simpler::bindings
