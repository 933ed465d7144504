// CallConfig and RuntimeEnv.
#include "bindings/call_config.h"

#include <cstring>

#include "bindings/support.h"

namespace simpler::bindings {
namespace {

using RingArray = std::uint64_t[abi::kRuntimeEnvRingCount];

std::uint64_t ring_entry(nb::handle value, const char* name) {
  if (PyBool_Check(value.ptr())) raise(ErrorKind::kType, format("%s takes integers, not bool", name));
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    raise(ErrorKind::kType, format("%s takes an integer or a list of %d integers, not %s", name,
                                   abi::kRuntimeEnvRingCount, kind_of(value).c_str()));
  }
  const std::uint64_t result = PyLong_AsUnsignedLongLong(number.ptr());
  if (result == UINT64_MAX && PyErr_Occurred()) {
    PyErr_Clear();
    raise(ErrorKind::kValue, format("%s is %s; it must fit an unsigned 64-bit integer", name, nb::str(number).c_str()));
  }
  return result;
}

// One integer for all rings, or exactly one for each.
void set_ring(RingArray& ring, nb::handle value, const char* name) {
  if (PyIndex_Check(value.ptr())) {
    const std::uint64_t all = ring_entry(value, name);
    for (std::uint64_t& entry : ring) entry = all;
    return;
  }
  if (PyUnicode_Check(value.ptr()) || !PySequence_Check(value.ptr())) ring_entry(value, name);  // raises
  nb::object items = nb::steal(PySequence_Fast(value.ptr(), "not a sequence"));
  if (!items.is_valid()) throw nb::python_error();
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  if (count != abi::kRuntimeEnvRingCount) {
    raise(ErrorKind::kValue, format("%s has %zd entries; it takes one integer or a list of exactly %d", name, count,
                                    abi::kRuntimeEnvRingCount));
  }
  RingArray parsed;
  for (Py_ssize_t i = 0; i < count; ++i)
    parsed[i] = ring_entry(nb::handle(PySequence_Fast_GET_ITEM(items.ptr(), i)), name);
  std::memcpy(ring, parsed, sizeof(parsed));  // all or nothing
}

nb::list get_ring(const RingArray& ring) {
  nb::list list;
  for (std::uint64_t entry : ring) list.append(entry);
  return list;
}

struct RingRow {
  const char* name;
  RingArray abi::RuntimeEnv::*member;
};
constexpr RingRow kRings[] = {{"ring_task_window", &abi::RuntimeEnv::ring_task_window},
                              {"ring_heap", &abi::RuntimeEnv::ring_heap},
                              {"ring_dep_pool", &abi::RuntimeEnv::ring_dep_pool}};

// A level given as bool or as an int that is clamped to the legal range.
std::int32_t level_from(nb::handle value, std::int32_t when_true, std::int32_t max, const char* name) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True ? when_true : 0;
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    raise(ErrorKind::kType, format("%s takes a bool or an integer, not %s", name, kind_of(value).c_str()));
  }
  int overflow = 0;
  const long long level = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow > 0 || level > max) return max;
  return overflow < 0 || level < 0 ? 0 : static_cast<std::int32_t>(level);
}

std::int32_t flag_from(nb::handle value, const char* name) {
  if (!PyBool_Check(value.ptr())) {
    raise(ErrorKind::kType, format("%s takes True or False, not %s", name, kind_of(value).c_str()));
  }
  return value.ptr() == Py_True;
}

void set_output_prefix(abi::CallConfig& wire, nb::handle value) {
  nb::object path = nb::steal(PyOS_FSPath(value.ptr()));
  if (!path.is_valid()) throw nb::python_error();
  if (!PyUnicode_Check(path.ptr())) {
    raise(ErrorKind::kType, format("output_prefix takes a str or a text path, not %s", kind_of(path).c_str()));
  }
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(path.ptr(), &length);
  if (text == nullptr) throw nb::python_error();
  if (length >= abi::kOutputPrefixBytes) {
    raise(ErrorKind::kValue,
          format("output_prefix has %zd bytes; allowed: at most %d", length, abi::kOutputPrefixBytes - 1));
  }
  if (std::strlen(text) != static_cast<std::size_t>(length)) {
    raise(ErrorKind::kValue, "output_prefix holds a zero character");
  }
  std::memset(wire.output_prefix, 0, sizeof(wire.output_prefix));
  std::memcpy(wire.output_prefix, text, static_cast<std::size_t>(length));
}

std::string rings_text(const abi::RuntimeEnv& env) {
  std::string text;
  for (const RingRow& row : kRings) {
    const RingArray& r = env.*row.member;
    text += format("%s%s=[%llu, %llu, %llu, %llu]", text.empty() ? "" : ", ", row.name,
                   static_cast<unsigned long long>(r[0]), static_cast<unsigned long long>(r[1]),
                   static_cast<unsigned long long>(r[2]), static_cast<unsigned long long>(r[3]));
  }
  return text;
}

nb::str config_repr(const PyCallConfig& config) {
  const abi::CallConfig& w = config.wire;
  std::string text = format(
      "CallConfig(aicpu_thread_num=%d, enable_chip_swimlane=%d, enable_dump_args=%d, enable_pmu=%d, enable_dep_gen=%s, "
      "enable_scope_stats=%s",
      w.aicpu_thread_num, w.enable_chip_swimlane, w.enable_dump_args, w.enable_pmu, w.enable_dep_gen ? "True" : "False",
      w.enable_scope_stats ? "True" : "False");
  const abi::RuntimeEnv none{};
  if (std::memcmp(&w.runtime_env, &none, sizeof(none)) != 0) text += ", " + rings_text(w.runtime_env);
  if (w.output_prefix[0] != '\0') text += std::string(", output_prefix='") + w.output_prefix + "'";
  return nb::str((text + ")").c_str());
}

PyCallConfig copy_of(const PyCallConfig& config) { return config; }

// The clamped levels differ in numbers only; the older name of each is an alias.
struct LevelRow {
  const char* name;
  const char* older_name;
  std::int32_t abi::CallConfig::*member;
  std::int32_t when_true;
  std::int32_t max;
};
constexpr LevelRow kSwimlane = {"enable_chip_swimlane", "enable_l2_swimlane", &abi::CallConfig::enable_chip_swimlane,
                                abi::kSwimlaneLevelMax, abi::kSwimlaneLevelMax};
constexpr LevelRow kDump = {"enable_dump_args", "enable_dump_tensor", &abi::CallConfig::enable_dump_args, 1,
                            abi::kDumpLevelMax};

// Setters take any object, None too: they refuse it themselves, with the name of the field.
const auto kAnyValue = nb::for_setter(nb::arg("value").none());

template <const LevelRow& row> void bind_level(nb::class_<PyCallConfig>& cls) {
  const auto get = [](const PyCallConfig& c) { return c.wire.*row.member; };
  const auto set = [](PyCallConfig& c, nb::handle v) {
    c.wire.*row.member = level_from(v, row.when_true, row.max, row.name);
  };
  cls.def_prop_rw(row.name, get, set, kAnyValue).def_prop_rw(row.older_name, get, set, kAnyValue);
}

template <const RingRow& row> void bind_ring(nb::class_<abi::RuntimeEnv>& cls) {
  cls.def_prop_rw(
      row.name, [](const abi::RuntimeEnv& env) { return get_ring(env.*row.member); },
      [](abi::RuntimeEnv& env, nb::handle value) { set_ring(env.*row.member, value, row.name); }, kAnyValue);
}

}  // namespace

void bind_call_config(nb::module_& m) {
  nb::class_<abi::RuntimeEnv> env(m, "RuntimeEnv",
                                  "Ring sizes of one run: an int for all rings or a list of 4; 0 is the default.");
  env.def("__init__", [](abi::RuntimeEnv* self) { new (self) abi::RuntimeEnv{}; });
  bind_ring<kRings[0]>(env);
  bind_ring<kRings[1]>(env);
  bind_ring<kRings[2]>(env);
  env.def("__repr__", [](const abi::RuntimeEnv& e) { return nb::str(("RuntimeEnv(" + rings_text(e) + ")").c_str()); });

  nb::class_<PyCallConfig> config(m, "CallConfig", "Options of one run. Checked when the run is submitted.");
  config.def("__init__", [](PyCallConfig* self) { new (self) PyCallConfig(); })
      .def_prop_rw(
          "aicpu_thread_num", [](const PyCallConfig& c) { return c.wire.aicpu_thread_num; },
          [](PyCallConfig& c, nb::handle v) { c.wire.aicpu_thread_num = i32_from(v, "aicpu_thread_num"); }, kAnyValue)
      .def_prop_rw(
          "enable_pmu", [](const PyCallConfig& c) { return c.wire.enable_pmu; },
          [](PyCallConfig& c, nb::handle v) { c.wire.enable_pmu = i32_from(v, "enable_pmu"); }, kAnyValue)
      .def_prop_rw(
          "enable_dep_gen", [](const PyCallConfig& c) { return c.wire.enable_dep_gen != 0; },
          [](PyCallConfig& c, nb::handle v) { c.wire.enable_dep_gen = flag_from(v, "enable_dep_gen"); }, kAnyValue)
      .def_prop_rw(
          "enable_scope_stats", [](const PyCallConfig& c) { return c.wire.enable_scope_stats != 0; },
          [](PyCallConfig& c, nb::handle v) { c.wire.enable_scope_stats = flag_from(v, "enable_scope_stats"); },
          kAnyValue)
      .def_prop_rw(
          "output_prefix", [](const PyCallConfig& c) { return nb::str(c.wire.output_prefix); },
          [](PyCallConfig& c, nb::handle v) { set_output_prefix(c.wire, v); }, kAnyValue)
      .def_prop_rw(
          "block_dim", [](const PyCallConfig& c) { return c.block_dim; },
          [](PyCallConfig& c, nb::handle v) { c.block_dim = i32_from(v, "block_dim"); }, kAnyValue,
          "Kept for older programs; a run takes the whole device.")
      .def_prop_rw(
          "runtime_env", [](PyCallConfig& c) -> abi::RuntimeEnv& { return c.wire.runtime_env; },
          [](PyCallConfig& c, const abi::RuntimeEnv& e) { c.wire.runtime_env = e; }, nb::rv_policy::reference_internal,
          "A live reference; assigning a whole RuntimeEnv copies it.")
      .def(
          "validate", [](const PyCallConfig& c) { check(abi::check_call_config(c.wire), "CallConfig"); },
          "Raises ValueError if fields contradict each other or a ring size is not allowed.")
      .def("__copy__", copy_of)
      .def(
          "__deepcopy__", [](const PyCallConfig& c, nb::handle) { return copy_of(c); }, nb::arg("memo"))
      .def("__getstate__",
           [](const PyCallConfig& c) {
             return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(&c.wire), sizeof(c.wire)), c.block_dim);
           })
      .def("__setstate__",
           [](PyCallConfig& c, nb::tuple state) {
             const BytesView bytes(state[0], "CallConfig state");
             if (bytes.size() != sizeof(c.wire))
               raise(ErrorKind::kValue, "CallConfig: the pickled state has the wrong size");
             new (&c) PyCallConfig();
             std::memcpy(&c.wire, bytes.data(), sizeof(c.wire));
             c.block_dim = nb::cast<int>(state[1]);
           })
      .def("__repr__", config_repr);
  bind_level<kSwimlane>(config);
  bind_level<kDump>(config);
}

}  // namespace simpler::bindings
