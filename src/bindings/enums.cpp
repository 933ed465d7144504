// Enumerations and the free functions about them.
#include "abi/wire_tensor.h"
#include "arg_direction.h"
#include "bindings/support.h"

namespace simpler::bindings {
namespace {

enum class WorkerType : int { kNextLevel = 0, kSub = 1 };
enum class TaskState : int { kFree, kPending, kReady, kRunning, kCompleted, kFailed, kConsumed, kBuilding };
enum class Disposition : int { kValidatedOnly = 1, kNativePrepared = 2 };

}  // namespace

void bind_enums(nb::module_& m) {
  nb::enum_<DataType> data_type(m, "DataType");
  for (int i = 0; i < static_cast<int>(DataType::DATA_TYPE_NUM); ++i) {
    const auto type = static_cast<DataType>(i);
    if (type != DataType::BOOL) data_type.value(get_dtype_name(type), type);  // BOOL is a scalar's type only
  }
  nb::enum_<ArgDirection>(m, "ArgDirection")
      .value("SCALAR", ArgDirection::SCALAR)
      .value("IN", ArgDirection::IN)
      .value("OUT", ArgDirection::OUT)
      .value("INOUT", ArgDirection::INOUT);
  nb::enum_<TensorArgType>(m, "TensorArgType")
      .value("INPUT", TensorArgType::INPUT)
      .value("OUTPUT", TensorArgType::OUTPUT)
      .value("INOUT", TensorArgType::INOUT)
      .value("OUTPUT_EXISTING", TensorArgType::OUTPUT_EXISTING)
      .value("NO_DEP", TensorArgType::NO_DEP);
  nb::enum_<abi::Space>(m, "AddressSpace", nb::is_arithmetic())
      .value("HOST", abi::Space::kHost)
      .value("DEVICE", abi::Space::kDevice);
  nb::enum_<abi::Access>(m, "AccessMode", nb::is_arithmetic())
      .value("READ", abi::Access::kRead)
      .value("WRITE", abi::Access::kWrite)
      .value("READWRITE", abi::Access::kReadWrite);
  nb::enum_<abi::Backend> backend(m, "BackendKind", nb::is_arithmetic());
  for (std::uint8_t i = 0; i < abi::kBackendCount; ++i)
    backend.value(abi::backend_name(i), static_cast<abi::Backend>(i));
  nb::enum_<WorkerType>(m, "WorkerType").value("NEXT_LEVEL", WorkerType::kNextLevel).value("SUB", WorkerType::kSub);
  nb::enum_<TaskState>(m, "TaskState")
      .value("FREE", TaskState::kFree)
      .value("PENDING", TaskState::kPending)
      .value("READY", TaskState::kReady)
      .value("RUNNING", TaskState::kRunning)
      .value("COMPLETED", TaskState::kCompleted)
      .value("FAILED", TaskState::kFailed)
      .value("CONSUMED", TaskState::kConsumed)
      .value("BUILDING", TaskState::kBuilding);
  nb::enum_<Disposition>(m, "_ChipRunPreparationDisposition")
      .value("VALIDATED_ONLY", Disposition::kValidatedOnly)
      .value("NATIVE_PREPARED", Disposition::kNativePrepared);

  m.def(
      "get_element_size", [](nb::handle dtype) { return get_element_size(dtype_from(dtype)); }, nb::arg("dtype"),
      "Bytes of one element.");
  m.def(
      "get_dtype_name", [](nb::handle dtype) { return get_dtype_name(dtype_from(dtype)); }, nb::arg("dtype"),
      "The member's name.");
  m.def(
      "arg_direction_name",
      [](ArgDirection direction) {
        static constexpr const char* kNames[] = {"SCALAR", "IN", "OUT", "INOUT"};
        return kNames[static_cast<int>(direction)];
      },
      nb::arg("direction"), "The member's name.");
}

}  // namespace simpler::bindings
