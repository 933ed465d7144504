// CoreCallable and ChipCallable: build, read back, inspect.
#include "bindings/callables.h"

#include <vector>

#include "arg_direction.h"
#include "bindings/support.h"

namespace simpler::bindings {
namespace {

std::size_t round_up(std::size_t value) {
  return (value + abi::kCallableAlignment - 1) / abi::kCallableAlignment * abi::kCallableAlignment;
}

// Reads a signature into a header's array; returns the number of entries.
std::int32_t read_signature(nb::handle signature, std::int32_t* out, int max, const char* what) {
  nb::object items = nb::steal(PySequence_Fast(signature.ptr(), "not a sequence"));
  if (!items.is_valid()) {
    PyErr_Clear();
    raise(ErrorKind::kType,
          format("%s: signature must be a list of ArgDirection, not %s", what, kind_of(signature).c_str()));
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  if (count > max) {
    raise(ErrorKind::kValue, format("%s: the signature has %zd tensors; supported are at most %d", what, count, max));
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    auto direction = ArgDirection::SCALAR;
    if (!nb::try_cast<ArgDirection>(nb::handle(PySequence_Fast_GET_ITEM(items.ptr(), i)), direction)) {
      raise(ErrorKind::kType, format("%s: signature[%zd] must be an ArgDirection", what, i));
    }
    out[i] = static_cast<std::int32_t>(direction);
  }
  return static_cast<std::int32_t>(count);
}

void check_size(std::size_t bytes, const char* what) {
  if (bytes > UINT32_MAX) {
    raise(ErrorKind::kValue, format("%s: %zu bytes; the layout counts offsets in 32 bits", what, bytes));
  }
}

// Copies a name; longer ones are cut to 63 bytes.
std::uint32_t store_name(const char* name, char* out) {
  const std::size_t length = strnlen(name, abi::kCallableNameBytes - 1);
  std::memcpy(out, name, length);
  return static_cast<std::uint32_t>(length);
}

int checked_index(int index, int count, const char* what) {
  if (index < 0 || index >= count) {
    raise(ErrorKind::kIndex, format("%s: index %d; there are %d", what, index, count));
  }
  return index;
}

CoreCallableBlob build_core(nb::handle signature, nb::handle binary, nb::handle /*arg_index*/) {
  const BytesView code(binary, "CoreCallable.build: binary");
  check_size(abi::kCoreCodeOffset + code.size(), "CoreCallable.build");
  CoreCallableBlob core{Block(abi::kCoreCodeOffset + code.size())};
  auto* header = reinterpret_cast<abi::CoreCallable*>(core.block.data());
  header->sig_count = read_signature(signature, header->signature, abi::kCoreMaxTensors, "CoreCallable.build");
  header->binary_size = static_cast<std::uint32_t>(code.size());
  if (code.size() != 0) std::memcpy(core.block.data() + abi::kCoreCodeOffset, code.data(), code.size());
  return core;
}

struct Child {
  std::int32_t func_id;
  const CoreCallableBlob* core;
};

std::vector<Child> read_children(const nb::object& items) {
  std::vector<Child> children;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  if (count > abi::kChipMaxChildren) {
    raise(ErrorKind::kValue,
          format("ChipCallable.build: %zd children; supported are at most %d", count, abi::kChipMaxChildren));
  }
  std::vector<bool> seen(abi::kChipMaxChildren);
  for (Py_ssize_t i = 0; i < count; ++i) {
    nb::handle item(PySequence_Fast_GET_ITEM(items.ptr(), i));
    if (!PySequence_Check(item.ptr()) || PySequence_Size(item.ptr()) != 2) {
      PyErr_Clear();
      raise(ErrorKind::kType, format("ChipCallable.build: children[%zd] must be a pair (func_id, CoreCallable)", i));
    }
    const std::int32_t func_id = i32_from(nb::object(item[0]), "ChipCallable.build: func_id");
    if (func_id < 0 || func_id >= abi::kChipMaxChildren) {
      raise(ErrorKind::kValue, format("ChipCallable.build: func_id %d of children[%zd]; allowed: 0 to %d", func_id, i,
                                      abi::kChipMaxChildren - 1));
    }
    if (seen[static_cast<std::size_t>(func_id)]) {
      raise(ErrorKind::kValue, format("ChipCallable.build: func_id %d is given twice", func_id));
    }
    seen[static_cast<std::size_t>(func_id)] = true;
    nb::object core = item[1];
    const CoreCallableBlob* blob = nullptr;
    if (!nb::try_cast<const CoreCallableBlob*>(core, blob) || blob == nullptr) {
      raise(ErrorKind::kType,
            format("ChipCallable.build: children[%zd][1] must be a CoreCallable, not %s", i, kind_of(core).c_str()));
    }
    children.push_back({func_id, blob});
  }
  return children;
}

ChipCallableBlob build_chip(nb::handle signature, const char* func_name, nb::handle binary, nb::handle children_in,
                            const char* config_name) {
  const BytesView code(binary, "ChipCallable.build: binary");
  nb::object items = nb::steal(PySequence_Fast(children_in.ptr(), "not a sequence"));
  if (!items.is_valid()) {
    PyErr_Clear();
    raise(ErrorKind::kType, format("ChipCallable.build: children must be a list of (func_id, CoreCallable), not %s",
                                   kind_of(children_in).c_str()));
  }
  const std::vector<Child> children = read_children(items);  // borrows the CoreCallables from `items`
  std::vector<std::size_t> offsets;
  std::size_t end = code.size();
  for (const Child& child : children) {
    offsets.push_back(round_up(end));
    end = offsets.back() + child.core->block.size();
  }
  check_size(end, "ChipCallable.build");

  ChipCallableBlob chip{Block(sizeof(abi::ChipCallable) + end)};
  auto* header = reinterpret_cast<abi::ChipCallable*>(chip.block.data());
  std::uint8_t* storage = chip.block.data() + sizeof(abi::ChipCallable);
  header->sig_count = read_signature(signature, header->signature, abi::kChipMaxTensors, "ChipCallable.build");
  header->binary_size = static_cast<std::uint32_t>(code.size());
  header->func_name_len = store_name(func_name, header->func_name);
  header->config_name_len = store_name(config_name, header->config_name);
  header->child_count = static_cast<std::int32_t>(children.size());
  if (code.size() != 0) std::memcpy(storage, code.data(), code.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    header->child_func_ids[i] = children[i].func_id;
    header->child_offsets[i] = static_cast<std::uint32_t>(offsets[i]);
    std::memcpy(storage + offsets[i], children[i].core->block.data(), children[i].core->block.size());
  }
  return chip;
}

CoreCallableBlob core_from_bytes(nb::handle raw) {
  const BytesView bytes(raw, "CoreCallable.from_bytes: raw");
  CoreCallableBlob core{Block(bytes.size())};
  if (bytes.size() != 0) std::memcpy(core.block.data(), bytes.data(), bytes.size());
  check(abi::check_core_callable(core.block.data(), bytes.size()), "CoreCallable.from_bytes");
  return core;
}

ChipCallableBlob chip_from_bytes(nb::handle raw) {
  const BytesView bytes(raw, "ChipCallable.from_bytes: raw");
  ChipCallableBlob chip{Block(bytes.size())};
  if (bytes.size() != 0) std::memcpy(chip.block.data(), bytes.data(), bytes.size());
  check(abi::check_chip_callable(chip.block.data(), bytes.size()), "ChipCallable.from_bytes");
  return chip;
}

// A name that was cut inside a UTF-8 sequence still reads.
nb::object name_text(const char* name, std::uint32_t length) {
  return nb::steal(PyUnicode_DecodeUTF8(name, static_cast<Py_ssize_t>(length), "replace"));
}

nb::bytes to_bytes(const Block& block) { return nb::bytes(reinterpret_cast<const char*>(block.data()), block.size()); }

// What both kinds of blob have in common.
template <class Blob> void bind_common(nb::class_<Blob>& cls, Blob (*from_bytes)(nb::handle)) {
  cls.def_prop_ro("sig_count", [](const Blob& b) { return b.header().sig_count; })
      .def_prop_ro("binary_size", [](const Blob& b) { return b.header().binary_size; })
      .def(
          "sig",
          [](const Blob& b, int i) {
            const auto& h = b.header();
            return static_cast<ArgDirection>(h.signature[checked_index(i, h.sig_count, "signature")]);
          },
          nb::arg("i"), "Direction of entry i; IndexError out of range.")
      .def("buffer_ptr", [](const Blob& b) { return reinterpret_cast<std::uintptr_t>(b.block.data()); })
      .def("buffer_size", [](const Blob& b) { return b.block.size(); })
      .def_static("from_bytes", from_bytes, nb::arg("raw"),
                  "The inverse of bytes(callable); checks every count and offset.")
      .def("__bytes__", [](const Blob& b) { return to_bytes(b.block); })
      .def("__getstate__", [](const Blob& b) { return to_bytes(b.block); })
      .def("__setstate__", [from_bytes](Blob& b, nb::bytes state) { new (&b) Blob(from_bytes(state)); });
}

}  // namespace

void bind_callables(nb::module_& m) {
  nb::class_<CoreCallableBlob> core(m, "CoreCallable", "One compiled kernel with its signature.");
  bind_common(core, core_from_bytes);
  core.def_static(
          "build", build_core, nb::arg("signature"), nb::arg("binary"), nb::arg("arg_index") = nb::none(),
          "Entry i of the signature describes tensor i of the kernel. arg_index is accepted and has no effect: the "
          "position in the signature is the argument index.")
      .def("__repr__", [](const CoreCallableBlob& b) {
        const std::string text =
            format("CoreCallable(sig_count=%d, binary_size=%u)", b.header().sig_count, b.header().binary_size);
        return nb::str(text.c_str());
      });

  nb::class_<ChipCallableBlob> chip(m, "ChipCallable", nb::is_weak_referenceable(),
                                    "An orchestration with its kernels, as one block of bytes.");
  bind_common(chip, chip_from_bytes);
  chip.def_static("build", build_chip, nb::arg("signature"), nb::arg("func_name"), nb::arg("binary"),
                  nb::arg("children"), nb::arg("config_name") = "", "Names are cut to 63 bytes.")
      .def_prop_ro("func_name",
                   [](const ChipCallableBlob& b) { return name_text(b.header().func_name, b.header().func_name_len); })
      .def_prop_ro(
          "config_name",
          [](const ChipCallableBlob& b) { return name_text(b.header().config_name, b.header().config_name_len); })
      .def_prop_ro("child_count", [](const ChipCallableBlob& b) { return b.header().child_count; })
      .def(
          "child",
          [](const ChipCallableBlob& b, int i) {
            const abi::CoreCallable* child = b.header().child(checked_index(i, b.header().child_count, "child"));
            CoreCallableBlob copy{Block(child->total_bytes())};
            std::memcpy(copy.block.data(), child, copy.block.size());
            return copy;
          },
          nb::arg("i"), "A copy of child i.")
      .def(
          "child_func_id",
          [](const ChipCallableBlob& b, int i) {
            return b.header().child_func_ids[checked_index(i, b.header().child_count, "child")];
          },
          nb::arg("i"))
      .def(
          "child_offset",
          [](const ChipCallableBlob& b, int i) {
            return b.header().child_offsets[checked_index(i, b.header().child_count, "child")];
          },
          nb::arg("i"), "Bytes from the start of the storage; a multiple of 64.")
      .def("__repr__", [](const ChipCallableBlob& b) {
        const std::string rest = format("', sig_count=%d, binary_size=%u, child_count=%d)", b.header().sig_count,
                                        b.header().binary_size, b.header().child_count);
        return nb::str("ChipCallable(func_name='") + name_text(b.header().func_name, b.header().func_name_len) +
               nb::str(rest.c_str());
      });
}

}  // namespace simpler::bindings
