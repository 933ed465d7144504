// The extension module _task_interface: constants here, the rest by topic in the other files of this folder.
#include "abi/call_config.h"
#include "abi/chip_callable.h"
#include "abi/wire_tensor.h"
#include "base/log.h"
#include "bindings/support.h"
#include "host/simpler_host.h"

#ifndef SIMPLER_BUILD_COMMIT
#define SIMPLER_BUILD_COMMIT ""  // unknown: then the package does not compare it with the checkout
#endif

namespace simpler::bindings {
namespace {

// The message frame between a worker and its children, in bytes.
constexpr int kMailboxFrameBytes = 65536;
constexpr int kMailboxFrames = 3;  // one for control, two for tasks
constexpr int kMailboxErrorBytes = 256;

struct Constant {
  const char* name;
  std::uint64_t value;
};
constexpr Constant kConstants[] = {
    {"MAX_TENSOR_DIMS", MAX_TENSOR_DIMS},
    {"CONTINUOUS_TENSOR_MAX_DIMS", MAX_TENSOR_DIMS},
    {"MAX_REGISTERED_CALLABLE_IDS", 64},
    {"RUNTIME_ENV_RING_COUNT", abi::kRuntimeEnvRingCount},
    {"DEFAULT_LOG_THRESHOLD", 25},
    {"OWNER_INSTANCE_ID_BYTES", abi::kOwnerInstanceIdBytes},
    {"CHIP_TENSOR_STRIDE_BYTES", sizeof(ChipTensor)},
    {"CHIP_TENSOR_ADDRESS_SPACE_OFFSET", offsetof(ChipTensor, address_space)},
    {"DEFAULT_HEAP_RING_SIZE", std::uint64_t{1} << 30},
    {"MAILBOX_FRAME_SIZE", kMailboxFrameBytes},
    {"MAILBOX_SIZE", kMailboxFrames* kMailboxFrameBytes},
    {"MAILBOX_OFF_ERROR_MSG", kMailboxFrameBytes - kMailboxErrorBytes},
    {"MAILBOX_ERROR_MSG_SIZE", kMailboxErrorBytes},
    {"PTO_PIPELINE_MAX_DEPTH", SIMPLER_PIPELINE_MAX_DEPTH},
    {"MAX_RING_DEPTH", abi::kRuntimeEnvRingCount},
    {"MAX_SCOPE_DEPTH", 64},
};

constexpr const char* kMailboxStates[] = {
    "IDLE",        "TASK_READY",   "TASK_DONE",     "SHUTDOWN",    "CONTROL_REQUEST", "CONTROL_DONE", "INIT_READY",
    "INIT_FAILED", "FRAME_STAGED", "TASK_LAUNCHED", "TASK_FAILED", "ACTIVATE",        "PREPARE_READY"};
constexpr const char* kDispositions[] = {"NONE", "VALIDATED_ONLY", "NATIVE_PREPARED"};

template <std::size_t N> nb::dict numbered(const char* const (&names)[N]) {
  nb::dict values;
  for (std::size_t i = 0; i < N; ++i) values[names[i]] = i;
  return values;
}

}  // namespace
}  // namespace simpler::bindings

NB_MODULE(_task_interface, m) {
  using namespace simpler::bindings;
  nanobind::set_leak_warnings(false);  // objects still referenced at exit are no defect; the text confuses users
  m.doc() = "Native part of simpler. Use it through simpler.task_interface and simpler.worker.";
  bind_enums(m);
  bind_callables(m);
  bind_call_config(m);
  bind_chip_tensor(m);
  bind_wire_tensor(m);
  bind_task_args(m);
  bind_array_import(m);
  bind_chip_worker(m);
  for (const Constant& constant : kConstants) m.attr(constant.name) = constant.value;
  m.def("_set_log_threshold", simpler::log::set_threshold, nanobind::arg("level"),
        "Native messages below the level are dropped; for the whole process.");
  m.def("_log_threshold", simpler::log::threshold);
  m.attr("HOST_STRACE_ENABLED") = true;
  m.attr("MAILBOX_STATE_VALUES") = numbered(kMailboxStates);
  m.attr("MAILBOX_PREPARATION_DISPOSITION_VALUES") = numbered(kDispositions);
  m.attr("ContinuousTensor") = m.attr("ChipTensor");
  m.attr("__build_commit__") = SIMPLER_BUILD_COMMIT;
}
