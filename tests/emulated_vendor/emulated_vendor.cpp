// The vendor's libraries, emulated: the functions of driver/cann/vendor_api.h over the software device.
//
// What      One shared object stands for all of the vendor's libraries of one chip, under their names. What the board's control
//           processors and cores do, the software device does: device binaries are those of this library, orchestrations
//           and kernels are shared objects made by the host's compiler. Kernels are called by their address in device
//           memory, as on the board: the code found there is loaded when a run is launched.
// Limits    It checks what the vendor documents, and knows no more of the board than that. It has as many clusters as the
//           simulator (SIMPLER_SIM_CLUSTERS), and one chip's memory is the host's.
// Threads   Any. Fork: a child begins with fresh devices.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "abi/run_image.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status.h"
#include "base/virtual_memory.h"
#include "driver/cann/vendor_api.h"
#include "driver/soft/soft_driver.h"
#include "emulated_vendor/emulated_kernels.h"
#include "emulated_vendor/emulation_control.h"
#include "executor/arch_profile.h"
#include "host/sim_options.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace simpler::test {
extern const char* const kEmulatedChip;  // emulated_chip.cpp
}

namespace {

using namespace simpler;
using namespace simpler::driver;
using namespace simpler::driver::vendor;

constexpr int kNotSupported = 0xFFFE;  // of the driver's codes
constexpr std::string_view kExecute = "simpler_aicpu_exec", kInit = "simpler_aicpu_init";

struct Function {
  CpuFunction* function;
  std::string symbol;
};
struct Module {
  CpuModule* module = nullptr;
  std::map<std::string, std::string> symbols;  // by the name in the file
  std::map<std::string, std::unique_ptr<Function>> functions;
};

thread_local std::string recent;  // text of the thread's last failures
thread_local int current_device = -1;

// ---- the process's devices ------------------------------------------------------------------------------------------

SoftChip chip_of_environment() {
  SoftChip chip{};
  const executor::ArchProfile& arch = *executor::find_arch(test::kEmulatedChip);
  // Without options there is nothing to refuse: what the environment has wrong is ignored with a warning.
  static_cast<void>(host::resolve_sim_options({}, arch, &chip));
  chip.arch = arch.name;
  return chip;
}

class Emulation {
 public:
  Emulation()
      : chip(chip_of_environment()), soft_(chip, {.always_resets = true}), driver(soft_.table()), kernels(driver) {}

  // Made at the first call, and again in a forked child: the threads of the parent's do not exist there.
  static Emulation& of_process() {
    Emulation* known = instance_.load();
    if (known != nullptr) return *known;
    pthread_once(&once_, [] { pthread_atfork(nullptr, nullptr, [] { instance_.store(nullptr); }); });
    auto fresh = std::make_unique<Emulation>();
    if (instance_.compare_exchange_strong(known, fresh.get())) return *fresh.release();
    return *known;
  }

  // The code that the call is told to fail with; kOk: none.
  int begin(const char* function, std::string line) {
    const std::lock_guard lock(mutex_);
    if (recording_) calls_ += line + "\n";
    const auto found = failures_.find(function);
    if (found == failures_.end()) return kOk;
    const int code = found->second;
    failures_.erase(found);
    return code;
  }
  bool recording() const { return recording_; }
  void record() { recording_ = true; }
  std::string take_calls() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, "");
  }
  void fail_next(const char* function, int code) {
    const std::lock_guard lock(mutex_);
    failures_[function] = code;
  }
  std::size_t alive() const {
    const SoftCensus census = soft_.census();
    return census.allocations + census.streams + census.events + census.modules + census.child_codes + census.mappings;
  }

  Module* add(std::unique_ptr<Module> module) {
    const std::lock_guard lock(mutex_);
    Module* const handle = module.get();
    modules_[handle] = std::move(module);
    return handle;
  }
  // nullptr: there is no such module, or function, any more.
  Module* module(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = modules_.find(static_cast<Module*>(handle));
    return found == modules_.end() ? nullptr : found->second.get();
  }
  void remove(Module* module) {
    const std::lock_guard lock(mutex_);
    modules_.erase(module);
  }
  const Function* function(Handle handle) {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, module] : modules_) {
      for (const auto& [name, function] : module->functions) {
        if (function.get() == handle) return function.get();
      }
    }
    return nullptr;
  }
  // The window over the registers of the cores of a device, or of one core: room without contents.
  std::uint64_t window(std::uint32_t device, std::uint32_t kind, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    VirtualMemory& window = windows_[{device, kind}];
    if (window.bytes() < bytes && !window.reserve(bytes)) return 0;
    return reinterpret_cast<std::uint64_t>(window.as<char>());
  }

  const SoftChip chip;

 private:
  SoftDriver soft_;

 public:
  const Driver& driver;
  test::EmulatedKernels kernels;

 private:
  static inline std::atomic<Emulation*> instance_{nullptr};  // reachable to the end of the process
  static inline pthread_once_t once_ = PTHREAD_ONCE_INIT;

  std::mutex mutex_;  // all below
  std::atomic<bool> recording_{false};
  std::string calls_;
  std::map<std::string, int> failures_;
  std::map<Module*, std::unique_ptr<Module>> modules_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, VirtualMemory> windows_;
};

// One call of a function: on record, and failed if that was asked for.
class Call {
 public:
  explicit Call(const char* function) : Call(function, "%s", "") {}
  [[gnu::format(printf, 3, 4)]] Call(const char* function, const char* pattern, ...)
      : function_(function), all(Emulation::of_process()) {
    std::string line;
    if (all.recording()) {
      char text[512];
      va_list values;
      va_start(values, pattern);
      std::vsnprintf(text, sizeof text, pattern, values);
      va_end(values);
      line = std::string(function) + (*text != '\0' ? " " : "") + text;
    }
    code_ = all.begin(function, std::move(line));
  }

  int fail(int code, const std::string& why) const {
    recent = std::string(function_) + ": " + why;
    return code;
  }
  // kOk, or the code that it was told to fail with.
  int told() const { return code_ == kOk ? kOk : fail(code_, "told to fail"); }
  // An entry of the software device's table, unless the call was told to fail.
  template <class... Args, class... Given> int run(int (*Driver::*entry)(void*, Args...), Given... given) const {
    if (code_ != kOk) return told();
    const int code = (all.driver.*entry)(all.driver.self, static_cast<Args>(given)...);
    return code == kOk || code == kStreamNotComplete ? code : fail(code, all.driver.recent_error(all.driver.self));
  }
  int bad(const std::string& why) const { return fail(kInvalidParameter, why); }

 private:
  const char* function_;
  int code_;

 public:
  Emulation& all;
};

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
template <class T> T* as(Handle handle) { return static_cast<T*>(handle); }
unsigned long long wide(std::uint64_t value) { return value; }

// A copy of device memory, checked.
template <class T> int read(const Call& call, std::uint64_t address, T* value) {
  return call.run(&Driver::copy_from_device, value, address, sizeof *value);
}

}  // namespace

// ---- control --------------------------------------------------------------------------------------------------------

EXPORT void simpler_emulation_record() { Emulation::of_process().record(); }
EXPORT const char* simpler_emulation_calls() {
  thread_local std::string kept;
  kept = Emulation::of_process().take_calls();
  return kept.c_str();
}
EXPORT void simpler_emulation_fail(const char* function, int code) {
  Emulation::of_process().fail_next(function, code);
}
EXPORT std::size_t simpler_emulation_alive() { return Emulation::of_process().alive(); }

// ---- log, process, device -------------------------------------------------------------------------------------------

EXPORT std::int32_t dlog_setlevel(std::int32_t module, std::int32_t level, std::int32_t enable_event) {
  const Call call("dlog_setlevel", "module=%d level=%d event=%d", module, level, enable_event);
  if (module < -1 || level < 0 || level > 4 || enable_event < 0 || enable_event > 1) return -1;
  return call.run(&Driver::set_log_level, level);
}
EXPORT int aclInit(const char* config_path) {
  const Call call("aclInit", "config=%s", config_path != nullptr ? config_path : "none");
  return call.run(&Driver::acl_init);
}
EXPORT int aclFinalize() { return Call("aclFinalize").run(&Driver::acl_finalize); }
EXPORT const char* aclGetRecentErrMsg() {
  thread_local std::string kept;
  kept = std::exchange(recent, "");
  return kept.empty() ? nullptr : kept.c_str();
}
EXPORT std::int32_t rtSetDevice(std::int32_t device) {
  const int code = Call("rtSetDevice", "device=%d", device).run(&Driver::set_device, device);
  if (code == kOk) current_device = device;
  return code;
}
EXPORT std::int32_t rtDeviceReset(std::int32_t device) {
  return Call("rtDeviceReset", "device=%d", device).run(&Driver::reset_device, device);
}
EXPORT int aclrtGetDevice(std::int32_t* device) {
  const Call call("aclrtGetDevice");
  if (call.told() != kOk) return call.told();
  if (current_device < 0) return call.fail(kNoContext, "this thread has no device");
  *device = current_device;
  return kOk;
}
EXPORT int aclrtResetDeviceForce(std::int32_t device) {
  return Call("aclrtResetDeviceForce", "device=%d", device).run(&Driver::force_reset, device);
}
EXPORT int aclrtSynchronizeDeviceWithTimeout(std::int32_t timeout_ms) {
  const Call call("aclrtSynchronizeDeviceWithTimeout", "timeout=%d", timeout_ms);
  return timeout_ms == 0 ? call.bad("a limit of 0 ms") : call.run(&Driver::sync_device, timeout_ms);
}
EXPORT int aclrtSetOpExecuteTimeOutV2(std::uint64_t us, std::uint64_t* actual_us) {
  return Call("aclrtSetOpExecuteTimeOutV2", "us=%llu", wide(us)).run(&Driver::set_op_timeout, us, actual_us);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

EXPORT std::int32_t rtMalloc(void** address, std::uint64_t bytes, std::uint32_t type, std::uint16_t module) {
  const Call call("rtMalloc", "bytes=%llu type=%u module=%u", wide(bytes), type, module);
  if (address == nullptr || type != kMemoryHbm) return call.bad("no place for the address, or a type other than HBM");
  std::uint64_t made = 0;
  const int code = call.run(&Driver::alloc, bytes, &made);
  *address = reinterpret_cast<void*>(made);
  if (code == kOk) call.all.kernels.note_allocation(made, bytes);
  return code;
}
EXPORT std::int32_t rtFree(void* address) {
  const Call call("rtFree");
  if (address == nullptr) return call.bad("the address is null");
  const int code = call.run(&Driver::free, number(address));
  if (code == kOk) call.all.kernels.note_free(number(address));
  return code;
}
EXPORT std::int32_t rtMemcpy(void* destination, std::uint64_t room, const void* source, std::uint64_t bytes, int kind) {
  const Call call("rtMemcpy", "bytes=%llu room=%llu kind=%d", wide(bytes), wide(room), kind);
  if (bytes > room) return call.bad("more bytes than there is room");
  if (kind == kDeviceToHost) return call.run(&Driver::copy_from_device, destination, number(source), bytes);
  if (kind != kHostToDevice) return call.bad(format("direction %d", kind));
  const int code = call.run(&Driver::copy_to_device, number(destination), source, bytes);
  if (code == kOk) call.all.kernels.note_write(number(destination), bytes);
  return code;
}
EXPORT int aclrtMemset(void* address, std::size_t room, std::int32_t value, std::size_t bytes) {
  const Call call("aclrtMemset", "bytes=%zu room=%zu value=%d", bytes, room, value);
  if (bytes > room) return call.fail(kBadArgument, "more bytes than there is room");
  const int code = call.run(&Driver::fill, number(address), value, bytes);
  if (code == kOk) call.all.kernels.note_write(number(address), bytes);
  return code;
}
EXPORT int halHostRegister(void* address, unsigned long long bytes, std::uint32_t flag, std::uint32_t device,
                           void** host) {
  const Call call("halHostRegister", "bytes=%llu flag=%u device=%u", bytes, flag, device);
  if (call.told() != kOk) return call.told();
  if (flag != kMapDeviceToHost) return kNotSupported;
  return call.run(&Driver::map_host, number(address), bytes, host) == kOk ? kDriverOk : 3;
}
EXPORT int halHostUnregister(void* address, std::uint32_t device) {
  const Call call("halHostUnregister", "device=%u", device);
  if (call.told() != kOk) return call.told();
  return call.run(&Driver::unmap_host, number(address)) == kOk ? kDriverOk : 3;
}

// ---- streams and events ---------------------------------------------------------------------------------------------

EXPORT std::int32_t rtStreamCreate(Handle* stream, std::int32_t priority) {
  const Call call("rtStreamCreate", "priority=%d", priority);
  if (priority < 0 || priority > 7) return call.bad("a priority outside 0..7");
  return call.run(&Driver::stream_create, reinterpret_cast<Stream**>(stream));
}
EXPORT std::int32_t rtStreamDestroy(Handle stream) {
  return Call("rtStreamDestroy").run(&Driver::stream_destroy, as<Stream>(stream));
}
EXPORT std::int32_t rtStreamQuery(Handle stream) {
  return Call("rtStreamQuery").run(&Driver::stream_query, as<Stream>(stream));
}
EXPORT int aclrtSynchronizeStreamWithTimeout(Handle stream, std::int32_t timeout_ms) {
  const Call call("aclrtSynchronizeStreamWithTimeout", "timeout=%d", timeout_ms);
  if (timeout_ms == 0) return call.bad("a limit of 0 ms");
  return call.run(&Driver::stream_sync, as<Stream>(stream), timeout_ms);
}
EXPORT int aclrtSetStreamFailureMode(Handle stream, std::uint64_t mode) {
  const Call call("aclrtSetStreamFailureMode", "mode=%llu", wide(mode));
  return mode != kStopOnFailure ? call.fail(kUnsupported, "a stream does not go back")
                                : call.run(&Driver::stream_stop_on_failure, as<Stream>(stream));
}
EXPORT int aclrtGetStreamResLimit(Handle stream, int type, std::uint32_t* value) {
  const Call call("aclrtGetStreamResLimit", "type=%d", type);
  if (type != kCubeCores && type != kVectorCores) return call.fail(kBadArgument, "a type of cores that there is not");
  std::uint32_t cube = 0, vector = 0;
  const int code = call.run(&Driver::stream_core_limits, as<Stream>(stream), &cube, &vector);
  if (code == kOk) *value = type == kCubeCores ? cube : vector;
  return code;
}
EXPORT int aclrtCreateEventExWithFlag(Handle* event, std::uint32_t flag) {
  const Call call("aclrtCreateEventExWithFlag", "flag=%u", flag);
  if (flag != kEventTimeLine) return call.fail(kBadArgument, "only events with time are emulated");
  return call.run(&Driver::event_create, reinterpret_cast<Event**>(event));
}
EXPORT int aclrtDestroyEvent(Handle event) {
  return Call("aclrtDestroyEvent").run(&Driver::event_destroy, as<Event>(event));
}
EXPORT int aclrtRecordEvent(Handle event, Handle stream) {
  return Call("aclrtRecordEvent").run(&Driver::event_record, as<Event>(event), as<Stream>(stream));
}
EXPORT int aclrtSynchronizeEventWithTimeout(Handle event, std::int32_t timeout_ms) {
  const Call call("aclrtSynchronizeEventWithTimeout", "timeout=%d", timeout_ms);
  if (timeout_ms == 0) return call.bad("a limit of 0 ms");
  return call.run(&Driver::event_sync, as<Event>(event), timeout_ms);
}
EXPORT int aclrtEventGetTimestamp(Handle event, std::uint64_t* micros) {
  return Call("aclrtEventGetTimestamp").run(&Driver::event_timestamp, as<Event>(event), micros);
}

// ---- cores ----------------------------------------------------------------------------------------------------------

EXPORT std::int32_t rtRegisterAllKernel(const DevBinary* binary, void** handle) {
  const Call call("rtRegisterAllKernel", "magic=%x version=%u bytes=%llu", binary->magic, binary->version,
                  wide(binary->length));
  if (binary->magic != kMagicElf) return call.bad("a magic number other than that of ELF files");
  return call.run(&Driver::core_image_load, Binary{binary->data, binary->length},
                  reinterpret_cast<CoreImage**>(handle));
}
EXPORT std::int32_t rtKernelLaunchWithHandleV2(void* handle, std::uint64_t key, std::uint32_t blocks, CoreArgs* args,
                                               void* unused, Handle stream, const TaskConfig* config) {
  const Call call("rtKernelLaunchWithHandleV2", "key=%llu blocks=%u bytes=%u scheme=%u", wide(key), blocks, args->bytes,
                  config != nullptr ? config->scheme : 0);
  if (key != 0) return call.fail(kInternalError, "there is no kernel of that key");
  if (args->args == nullptr || args->bytes != sizeof(std::uint64_t) || unused != nullptr)
    return call.bad("the cores take one pointer");
  if (config != nullptr && config->scheme > kBatchScheduling)
    return call.bad("a scheme of scheduling that there is not");
  std::uint64_t arguments = 0;
  std::memcpy(&arguments, args->args, sizeof arguments);
  return call.run(&Driver::core_launch, static_cast<CoreImage*>(handle), static_cast<int>(blocks), arguments,
                  as<Stream>(stream));
}

// ---- control processors ---------------------------------------------------------------------------------------------

// The vendor's kernel that loads a dispatcher, and the dispatcher: it puts the program's file on the device.
EXPORT std::int32_t rtAicpuKernelLaunchExWithArgs(std::uint32_t type, const char* operation, std::uint32_t blocks,
                                                  const CpuArgs* args, void*, Handle stream, std::uint32_t flags) {
  const auto name_at = [&](std::uint32_t offset) {
    const char* const text = static_cast<const char*>(args->args) + offset;
    return offset < args->bytes ? std::string(text, strnlen(text, args->bytes - offset)) : "";
  };
  const std::string kernel = name_at(args->kernel_name_offset), library = name_at(args->library_name_offset);
  const Call call("rtAicpuKernelLaunchExWithArgs",
                  "type=%u operation=%s blocks=%u bytes=%u kernel=%s library=%s flags=%u", type, operation, blocks,
                  args->bytes, kernel.c_str(), library.c_str(), flags);
  if (call.told() != kOk) return call.told();
  if (type != kCpuKernelKfc || blocks != 1 || kernel != "DynTileFwkKernelServerInit" ||
      library != "libaicpu_extend_kernels.so" || args->bytes != sizeof(BootstrapArgs))
    return call.bad("only the bootstrap of a program is emulated");
  BootstrapBinaries binaries{};
  const auto* const payload = static_cast<const BootstrapArgs*>(args->args);
  if (const int code = read(call, payload->front[kBootstrapFront], &binaries); code != kOk) return code;
  std::string dispatcher(binaries.dispatcher_bytes, '\0'), program(binaries.program_bytes, '\0');
  for (const auto& [address, bytes] : {std::pair{binaries.dispatcher, &dispatcher}, {binaries.program, &program}}) {
    if (const int code = call.run(&Driver::copy_from_device, bytes->data(), address, bytes->size()); code != kOk)
      return code;
  }
  return call.run(&Driver::cpu_bootstrap, Binary{dispatcher.data(), dispatcher.size()},
                  Binary{program.data(), program.size()}, fnv1a(program.data(), program.size()),
                  static_cast<int>(binaries.device), as<Stream>(stream));
}
EXPORT std::int32_t rtsBinaryLoadFromFile(const char* path, const LoadConfig* config, Handle* handle) {
  const Call call("rtsBinaryLoadFromFile", "options=%zu", config != nullptr ? config->count : 0);
  if (call.told() != kOk) return call.told();
  if (config == nullptr || config->count != 1 || config->options->id != kCpuKernelMode ||
      config->options->value[0] != 0)
    return call.bad("only programs that are on the device already are emulated");
  std::string file = path;
  file.replace(std::min(file.rfind('.'), file.size()), std::string::npos, ".json");
  std::ifstream stream(file);
  const nlohmann::json description = nlohmann::json::parse(stream, nullptr, false);
  if (!description.is_object()) return call.bad(file + " cannot be read, or is no JSON object");
  auto module = std::make_unique<Module>();
  std::vector<std::string> symbols;
  std::string program;
  for (const auto& [name, entry] : description.items()) {
    const nlohmann::json info = entry.value("opInfo", nlohmann::json::object());
    if (info.value("opKernelLib", "") != "AICPUKernel") return call.bad(name + " is no kernel of control processors");
    symbols.push_back(info.value("functionName", ""));
    program = info.value("kernelSo", "");
    module->symbols[name] = symbols.back();
  }
  unsigned long long fingerprint = 0;
  int device = -1;
  if (std::sscanf(program.c_str(), "simpler_inner_%16llx_%d.so", &fingerprint, &device) != 2)
    return call.bad("\"" + program + "\" is not the file of a program");
  std::vector<const char*> names;
  for (const std::string& symbol : symbols) names.push_back(symbol.c_str());
  const int code =
      call.run(&Driver::cpu_load, fingerprint, device, names.data(), static_cast<int>(names.size()), &module->module);
  if (code == kOk) *handle = call.all.add(std::move(module));
  return code;
}
EXPORT std::int32_t rtsBinaryUnload(Handle handle) {
  const Call call("rtsBinaryUnload");
  Module* const module = call.all.module(handle);
  if (module == nullptr) return call.fail(kInvalidHandle, "the module is not loaded");
  const int code = call.run(&Driver::cpu_unload, module->module);
  if (code == kOk) call.all.remove(module);
  return code;
}
EXPORT std::int32_t rtsFuncGetByName(Handle handle, const char* name, Handle* function) {
  const Call call("rtsFuncGetByName", "%s", name);
  *function = nullptr;
  Module* const module = call.all.module(handle);
  if (module == nullptr) return call.fail(kInvalidHandle, "the module is not loaded");
  const auto symbol = module->symbols.find(name);
  if (symbol == module->symbols.end()) return call.bad(std::string("the file names no ") + name);
  CpuFunction* found = nullptr;
  const int code = call.run(&Driver::cpu_function, module->module, symbol->second.c_str(), &found);
  if (code != kOk) return code;
  std::unique_ptr<Function>& kept = module->functions[name];
  if (kept == nullptr) kept = std::make_unique<Function>(Function{found, symbol->second});
  *function = kept.get();
  return kOk;
}
EXPORT std::int32_t rtsLaunchCpuKernel(Handle handle, std::uint32_t blocks, Handle stream, const void* config,
                                       CpuKernelArgs* args) {
  const Function* const function = Emulation::of_process().function(handle);
  const Call call("rtsLaunchCpuKernel", "%s blocks=%u bytes=%u", function != nullptr ? function->symbol.c_str() : "?",
                  blocks, args->base.bytes);
  if (function == nullptr) return call.fail(kInvalidHandle, "the function's module was unloaded");
  if (args->base.args == nullptr || args->base.bytes == 0) return call.bad("there are no arguments");
  if (config != nullptr || args->base.library_name_offset != 0 || args->base.kernel_name_offset != 0)
    return call.bad("names come from the module's file, and there is no configuration");
  if (function->symbol == kExecute && call.told() == kOk) {
    std::uint64_t run = 0;
    std::memcpy(&run, args->base.args, std::min<std::size_t>(sizeof run, args->base.bytes));
    if (const int code = call.all.kernels.prepare(run); code != kOk)
      return call.fail(code, call.all.driver.recent_error(call.all.driver.self));
  }
  if (function->symbol == kInit && args->base.bytes >= sizeof(abi::InitArgs))
    log::set_threshold(static_cast<int>(static_cast<const abi::InitArgs*>(args->base.args)->log_level));
  return call.run(&Driver::cpu_launch, function->function, static_cast<int>(blocks), args->base.args, args->base.bytes,
                  as<Stream>(stream));
}

// ---- topology -------------------------------------------------------------------------------------------------------

EXPORT int halGetDeviceInfo(std::uint32_t device, std::int32_t module, std::int32_t info, std::int64_t* value) {
  const Call call("halGetDeviceInfo", "device=%u module=%d info=%d", device, module, info);
  if (call.told() != kOk) return call.told();
  if (module != kCpuModule || info != kOccupied) return kNotSupported;
  std::uint64_t mask = 0;
  const int code = call.run(&Driver::cpu_mask, CpuMask::kOccupied, &mask);
  *value = static_cast<std::int64_t>(mask);
  return code == kOk ? kDriverOk : 3;
}
EXPORT int halGetDeviceInfoByBuff(std::uint32_t device, std::int32_t module, std::int32_t info, void* buffer,
                                  std::int32_t* bytes) {
  const Call call("halGetDeviceInfoByBuff", "device=%u module=%d info=%d bytes=%d", device, module, info, *bytes);
  if (call.told() != kOk) return call.told();
  if (module != kCoreModule || info != kOccupied || *bytes < 16) return kNotSupported;
  const std::uint64_t usable[2] = {(std::uint64_t{1} << call.all.chip.clusters) - 1, 0};
  std::memcpy(buffer, usable, sizeof usable);
  return kDriverOk;
}
EXPORT int halMemCtl(int type, void* in, std::size_t in_bytes, void* out, std::size_t* out_bytes) {
  const auto& map = *static_cast<const AddressMapIn*>(in);
  const Call call("halMemCtl", "type=%d kind=%u device=%u", type, map.kind, map.device);
  if (call.told() != kOk) return call.told();
  if (type != kAddressMap || in_bytes != sizeof(AddressMapIn) || *out_bytes != sizeof(AddressMapOut)) return 3;
  const std::uint64_t bytes = kCoresA2A3 * kCoreStride;
  const AddressMapOut window{call.all.window(map.device, map.kind, bytes), bytes};
  std::memcpy(out, &window, sizeof window);
  return window.address != 0 ? kDriverOk : 6;
}
EXPORT int halResMap(unsigned device, ResourceMap* resource, unsigned long* address, unsigned* bytes) {
  const Call call("halResMap", "device=%u core=%u", device, resource->id);
  if (call.told() != kOk) return call.told();
  if (resource->process != 0 || resource->kind != 0 || resource->flag != 0) return kNotSupported;
  *bytes = kSubCores * kSubCoreStride;
  *address = call.all.window(device, 0x100 + resource->id, *bytes);
  return *address != 0 ? kDriverOk : 6;
}
EXPORT std::int32_t rtGetC2cCtrlAddr(std::uint64_t* address, std::uint32_t* bytes) {
  *bytes = sizeof(std::uint64_t);
  return Call("rtGetC2cCtrlAddr").run(&Driver::sync_window, address);
}

// Exactly the functions that the driver looks for.
#define SIMPLER_VENDOR_SAME(library, name, result, arguments) \
  static_assert(std::is_same_v<decltype(&name), result(*) arguments>);
SIMPLER_VENDOR_CALLS(SIMPLER_VENDOR_SAME)
#undef SIMPLER_VENDOR_SAME
