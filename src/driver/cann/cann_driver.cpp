#include "driver/cann/cann_driver.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/cann/vendor_api.h"
#include "driver/table.h"

namespace simpler::driver {
namespace {

using namespace vendor;

constexpr std::int32_t kBootstrapLimitMs = 50'000;
constexpr int kMapAttempts = 4;  // of mapping a window while the driver answers that it is busy
constexpr std::chrono::milliseconds kBusyPause{50};

// ---- libraries ------------------------------------------------------------------------------------------------------

struct LibraryRow {
  const char* names[2];  // the second is its older name; nullptr: none
  const char* variable;  // that holds the folder of its package; nullptr: none
  const char* folder;    // below that, or absolute
  const char* package;
};
constexpr LibraryRow kLibraries[kLibraryCount] = {
    {{"libruntime.so", nullptr}, "ASCEND_HOME_PATH", "lib64", "the CANN toolkit"},
    {{"libacl_rt.so", "libascendcl.so"}, "ASCEND_HOME_PATH", "lib64", "the CANN toolkit"},
    {{"libascend_hal.so", nullptr}, nullptr, "/usr/local/Ascend/driver/lib64/driver", "the Ascend driver"},
    {{"libunified_dlog.so", "libascendalog.so"}, "ASCEND_HOME_PATH", "lib64", "the CANN toolkit"},
};
constexpr const char* kInstall =
    "Install the CANN toolkit 8.5 or newer and the Ascend driver, and source the toolkit's set_env.sh in this shell";

std::vector<std::string> places(const LibraryRow& row, const std::string& folder) {
  std::vector<std::string> found;
  for (const char* name : row.names) {
    if (name == nullptr) continue;
    if (!folder.empty()) {
      found.push_back(folder + "/" + name);
      continue;
    }
    found.emplace_back(name);
    const char* const base = row.variable != nullptr ? std::getenv(row.variable) : "";
    if (row.variable == nullptr) found.push_back(std::string(row.folder) + "/" + name);
    if (base != nullptr && *base != '\0') found.push_back(std::string(base) + "/" + row.folder + "/" + name);
  }
  return found;
}

// The vendor's functions, all of them found.
struct Vendor {
#define SIMPLER_VENDOR_POINTER(library, name, result, arguments) result(*name) arguments = nullptr;
  SIMPLER_VENDOR_CALLS(SIMPLER_VENDOR_POINTER)
#undef SIMPLER_VENDOR_POINTER
};

// The toolkit has libraries of the same names to link with, in a folder of that name.
bool is_stub(void* library, std::string* path) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return false;
  std::error_code unknown;
  *path = std::filesystem::canonical(map->l_name, unknown).string();
  return path->find("/devlib/") != std::string::npos;
}

Status open_library(const LibraryRow& row, const std::string& folder, void** handle) {
  std::string tried;
  for (const std::string& place : places(row, folder)) {
    *handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (*handle == nullptr) {
      const char* const why = dlerror();
      tried += format("\n  %s", why != nullptr ? why : place.c_str());
      continue;
    }
    std::string path;
    if (!is_stub(*handle, &path)) return Status();
    return fail(ErrorKind::kDevice, format("%s is a stub for linking, which does nothing: take devlib out of "
                                           "LD_LIBRARY_PATH",
                                           path.c_str()));
  }
  return fail(ErrorKind::kDevice, format("the library %s of %s cannot be loaded. %s. Tried:%s", row.names[0],
                                         row.package, kInstall, tried.c_str()));
}

Status find_functions(const std::string& folder, Vendor* functions) {
  void* handles[kLibraryCount] = {};
  for (int i = 0; i < kLibraryCount; ++i) {
    if (Status status = open_library(kLibraries[i], folder, &handles[i]); !status.ok()) return status;
  }
  std::string missing;
#define SIMPLER_VENDOR_FIND(library, name, result, arguments)                                                         \
  functions->name = reinterpret_cast<result(*) arguments>(dlsym(handles[static_cast<int>(Library::library)], #name)); \
  if (functions->name == nullptr)                                                                                     \
    missing += format("%s%s of %s", missing.empty() ? "" : ", ", #name,                                               \
                      kLibraries[static_cast<int>(Library::library)].names[0]);
  SIMPLER_VENDOR_CALLS(SIMPLER_VENDOR_FIND)
#undef SIMPLER_VENDOR_FIND
  if (missing.empty()) return Status();
  return fail(ErrorKind::kDevice,
              format("the vendor's libraries lack %s: they are too old. %s", missing.c_str(), kInstall));
}

// ---- codes ----------------------------------------------------------------------------------------------------------

// The runtime's code for one of the driver's, as the runtime itself translates them.
int runtime_code(int driver_code) {
  struct Row {
    int driver, runtime;
  };
  static constexpr Row kRows[] = {
      {1, 207004},  {2, 107001},  {3, 107000},  {4, 107017},      {6, 207001},
      {14, 207005}, {16, 507012}, {25, 507901}, {33, 507010},     {40, 207005},
      {43, 507000}, {46, 207006}, {48, 207008}, {0xFFFE, 207000}, {74, 507052},
  };
  if (driver_code == kDriverOk) return kOk;
  for (const Row& row : kRows) {
    if (row.driver == driver_code) return row.runtime;
  }
  return kDriverInternal;
}

std::string& last_error() {
  thread_local std::string text;
  return text;
}

// "simpler_aicpu_init" on the device is "simpler_aicpu_init_<fingerprint>" to the vendor's loader.
std::string loader_name(const char* symbol, std::uint64_t fingerprint) {
  return format("%s_%016llx", symbol, static_cast<unsigned long long>(fingerprint));
}
std::string program_file(std::uint64_t fingerprint, int device) {
  return format("simpler_inner_%016llx_%d.so", static_cast<unsigned long long>(fingerprint), device);
}

// The file that tells the vendor's loader about a program that is on the device already. False if it cannot be written.
bool write_description(std::uint64_t fingerprint, int device, const char* const* symbols, int count,
                       std::string* path) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) {
    text += format(
        "%s\n  \"%s\": {\"opInfo\": {\"functionName\": \"%s\", \"kernelSo\": \"%s\", \"opKernelLib\": \"AICPUKernel\", "
        "\"computeCost\": \"100\", \"engine\": \"DNN_VM_AICPU\", \"flagAsync\": \"False\", \"flagPartial\": \"False\", "
        "\"userDefined\": \"False\"}}",
        i == 0 ? "" : ",", loader_name(symbols[i], fingerprint).c_str(), symbols[i],
        program_file(fingerprint, device).c_str());
  }
  text += "\n}\n";
  const char* const folder = std::getenv("TMPDIR");
  *path = format("%s/simpler_inner_%016llx_%d_XXXXXX.json", folder != nullptr && *folder != '\0' ? folder : "/tmp",
                 static_cast<unsigned long long>(fingerprint), static_cast<int>(getpid()));
  const int file = mkstemps(path->data(), 5);
  if (file < 0) return false;
  const bool whole = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(file) == 0 && whole) return true;
  unlink(path->c_str());
  return false;
}

// What distinguishes the chips.
struct Chip {
  std::string_view name;
  std::uint32_t capabilities;
  int cores;         // physical ones, of three each
  int group;         // of which physical ids count matrix cores first, then vector cores
  bool one_mapping;  // the windows of all cores are mapped at once
};
// DMA workspaces come with a library of the vendor's that has no public interface.
constexpr Chip kChips[] = {
    {"a2a3", kHostMapping | kSyncWindow | kCounterRegisters, kCoresA2A3, kCoresA2A3, true},
    {"a5", 0, kCoresA5, kCoresPerDieA5, false},
};

struct Module {
  Handle handle = nullptr;
  std::uint64_t fingerprint = 0;
  std::string description;  // path; removed with the module
};

}  // namespace

int visible_device(const char* list, int device) {
  if (list == nullptr) return device;
  std::vector<long> ids;
  for (const char* at = list; *at >= '0' && *at <= '9';) {
    char* end = nullptr;
    const long id = std::strtol(at, &end, 10);
    if (*end != ',' && *end != '\0') break;
    if (!ids.empty() && id <= ids.back()) return -1;
    ids.push_back(id);
    at = *end == ',' ? end + 1 : end;
  }
  return device >= 0 && device < static_cast<int>(ids.size()) ? static_cast<int>(ids[static_cast<std::size_t>(device)])
                                                              : -1;
}

class CannDriver::Impl {
 public:
  Impl(const Chip& chip, const Vendor& vendor) : chip_(chip), v_(vendor) {}
  ~Impl() {
    for (const auto& [handle, module] : modules_) unlink(module->description.c_str());
  }

  std::uint32_t capabilities() const { return chip_.capabilities; }
  const char* recent_error() { return last_error().c_str(); }

  // ---- process and device ----

  int set_log_level(int level) {
    if (level < 0 || level > 4) return refuse(kBadArgument, format("log level %d is outside 0..4", level));
    const int code = v_.dlog_setlevel(kAllLogModules, level, 0);
    return code == 0 ? kOk : refuse(kInternalError, format("dlog_setlevel answered %d", code));
  }
  int acl_init() { return done("aclInit", v_.aclInit(nullptr)); }
  int acl_finalize() { return done("aclFinalize", v_.aclFinalize()); }
  int set_device(int device) { return done("rtSetDevice", v_.rtSetDevice(device)); }
  int reset_device(int device) { return done("rtDeviceReset", v_.rtDeviceReset(device)); }
  int force_reset(int device) { return done("aclrtResetDeviceForce", v_.aclrtResetDeviceForce(device)); }
  int sync_device(std::int32_t timeout_ms) {
    return done("aclrtSynchronizeDeviceWithTimeout", v_.aclrtSynchronizeDeviceWithTimeout(limit(timeout_ms)));
  }
  int set_op_timeout(std::uint64_t us, std::uint64_t* actual_us) {
    return done("aclrtSetOpExecuteTimeOutV2", v_.aclrtSetOpExecuteTimeOutV2(us, actual_us));
  }

  // ---- memory ----

  int alloc(std::size_t bytes, std::uint64_t* address) {
    void* pointer = nullptr;
    const int code = done("rtMalloc", v_.rtMalloc(&pointer, bytes, kMemoryHbm, 0));
    *address = reinterpret_cast<std::uint64_t>(pointer);
    return code;
  }
  int free(std::uint64_t address) { return done("rtFree", v_.rtFree(at(address))); }
  int copy_to_device(std::uint64_t destination, const void* source, std::size_t bytes) {
    return done("rtMemcpy", v_.rtMemcpy(at(destination), bytes, source, bytes, kHostToDevice));
  }
  int copy_from_device(void* destination, std::uint64_t source, std::size_t bytes) {
    return done("rtMemcpy", v_.rtMemcpy(destination, bytes, at(source), bytes, kDeviceToHost));
  }
  int fill(std::uint64_t address, int value, std::size_t bytes) {
    return done("aclrtMemset", v_.aclrtMemset(at(address), bytes, value, bytes));
  }
  int map_host(std::uint64_t address, std::size_t bytes, void** host) {
    if (const int code = need(kHostMapping, "mapping of device memory for the host"); code != kOk) return code;
    std::uint32_t device = 0;
    if (const int code = hal_device(&device); code != kOk) return code;
    const int code = v_.halHostRegister(at(address), bytes, kMapDeviceToHost, device, host);
    if (code != kDriverOk) return hal_failure("halHostRegister", code);
    const std::lock_guard lock(mutex_);
    mappings_[address] = device;
    return kOk;
  }
  int unmap_host(std::uint64_t address) {
    if (const int code = need(kHostMapping, "mapping of device memory for the host"); code != kOk) return code;
    std::uint32_t device = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = mappings_.find(address);
      if (found == mappings_.end())
        return refuse(kInvalidParameter, format("0x%llx is not mapped", static_cast<unsigned long long>(address)));
      device = found->second;
      mappings_.erase(found);
    }
    const int code = v_.halHostUnregister(at(address), device);
    return code == kDriverOk ? kOk : hal_failure("halHostUnregister", code);
  }

  // ---- streams and events ----

  int stream_create(Stream** stream) { return done("rtStreamCreate", v_.rtStreamCreate(out(stream), 0)); }
  int stream_destroy(Stream* stream) { return done("rtStreamDestroy", v_.rtStreamDestroy(stream)); }
  int stream_query(Stream* stream) { return done("rtStreamQuery", v_.rtStreamQuery(stream)); }
  int stream_sync(Stream* stream, std::int32_t timeout_ms) {
    if (timeout_ms == 0) {
      const int code = stream_query(stream);
      return code == kStreamNotComplete ? kSyncTimeout : code;
    }
    return done("aclrtSynchronizeStreamWithTimeout", v_.aclrtSynchronizeStreamWithTimeout(stream, limit(timeout_ms)));
  }
  int stream_stop_on_failure(Stream* stream) {
    return done("aclrtSetStreamFailureMode", v_.aclrtSetStreamFailureMode(stream, kStopOnFailure));
  }
  int stream_core_limits(Stream* stream, std::uint32_t* cube, std::uint32_t* vector) {
    const int code = done("aclrtGetStreamResLimit", v_.aclrtGetStreamResLimit(stream, kCubeCores, cube));
    if (code != kOk) return code;
    return done("aclrtGetStreamResLimit", v_.aclrtGetStreamResLimit(stream, kVectorCores, vector));
  }
  int event_create(Event** event) {
    return done("aclrtCreateEventExWithFlag", v_.aclrtCreateEventExWithFlag(out(event), kEventTimeLine));
  }
  int event_destroy(Event* event) { return done("aclrtDestroyEvent", v_.aclrtDestroyEvent(event)); }
  int event_record(Event* event, Stream* stream) {
    return done("aclrtRecordEvent", v_.aclrtRecordEvent(event, stream));
  }
  int event_sync(Event* event, std::int32_t timeout_ms) {
    return done("aclrtSynchronizeEventWithTimeout", v_.aclrtSynchronizeEventWithTimeout(event, limit(timeout_ms)));
  }
  int event_timestamp(Event* event, std::uint64_t* micros) {
    return done("aclrtEventGetTimestamp", v_.aclrtEventGetTimestamp(event, micros));
  }

  // ---- cores ----

  int core_image_load(Binary image, CoreImage** handle) {
    const DevBinary binary{kMagicElf, 0, image.data, image.bytes};
    return done("rtRegisterAllKernel", v_.rtRegisterAllKernel(&binary, out(handle)));
  }
  int core_launch(CoreImage* image, int blocks, std::uint64_t arguments, Stream* stream) {
    CoreArgs args{};
    args.args = &arguments;
    args.bytes = sizeof arguments;
    TaskConfig config{};
    config.scheme = kBatchScheduling;
    return done(
        "rtKernelLaunchWithHandleV2",
        v_.rtKernelLaunchWithHandleV2(image, 0, static_cast<std::uint32_t>(blocks), &args, nullptr, stream, &config));
  }
  // Code is called where it lies.
  int child_code_resolve(std::uint64_t address, std::size_t, const char*, std::uint64_t* entry, ChildCode** code) {
    *entry = address;
    *code = reinterpret_cast<ChildCode*>(address);
    return kOk;
  }
  int child_code_release(ChildCode*) { return kOk; }

  // ---- control processors ----

  int cpu_bootstrap(Binary dispatcher, Binary program, std::uint64_t, int device, Stream* stream) {
    if (dispatcher.bytes == 0 || program.bytes == 0)
      return refuse(kInvalidParameter, dispatcher.bytes == 0 ? "the dispatcher is empty" : "the program is empty");
    BootstrapBinaries binaries{};
    binaries.device = static_cast<std::uint64_t>(device);
    binaries.dispatcher_bytes = dispatcher.bytes;
    binaries.program_bytes = program.bytes;
    std::uint64_t block = 0;
    int code = upload(dispatcher.data, dispatcher.bytes, &binaries.dispatcher);
    if (code == kOk) code = upload(program.data, program.bytes, &binaries.program);
    if (code == kOk) code = upload(&binaries, sizeof binaries, &block);
    if (code == kOk) code = launch_bootstrap(block, stream);
    if (code == kOk) code = stream_sync(stream, kBootstrapLimitMs);
    // How it went is known; memory that cannot be given back now would not be given back later either.
    const std::string text = last_error();
    for (const std::uint64_t address : {block, binaries.program, binaries.dispatcher}) {
      if (address != 0) static_cast<void>(free(address));
    }
    if (code != kOk) last_error() = text;
    return code;
  }
  int cpu_load(std::uint64_t fingerprint, int device, const char* const* symbols, int count, CpuModule** handle) {
    auto module = std::make_unique<Module>();
    module->fingerprint = fingerprint;
    if (!write_description(fingerprint, device, symbols, count, &module->description))
      return refuse(kInternalError,
                    format("%s cannot be written: %s", module->description.c_str(), std::strerror(errno)));
    LoadOption option{kCpuKernelMode, {}};
    const LoadConfig config{&option, 1};
    int code =
        done("rtsBinaryLoadFromFile", v_.rtsBinaryLoadFromFile(module->description.c_str(), &config, &module->handle));
    const bool loaded = code == kOk;
    for (int i = 0; code == kOk && i < count; ++i) {
      CpuFunction* function = nullptr;
      code = find_function(*module, symbols[i], &function);
    }
    if (code != kOk) {
      const std::string text = last_error();
      if (loaded) static_cast<void>(v_.rtsBinaryUnload(module->handle));
      unlink(module->description.c_str());
      last_error() = text;
      return code;
    }
    *handle = reinterpret_cast<CpuModule*>(module.get());
    const std::lock_guard lock(mutex_);
    modules_.emplace(*handle, std::move(module));
    return kOk;
  }
  int cpu_unload(CpuModule* handle) {
    std::unique_ptr<Module> module;
    {
      const std::lock_guard lock(mutex_);
      const auto found = modules_.find(handle);
      if (found == modules_.end()) return refuse(kInvalidHandle, "the program was unloaded already");
      module = std::move(found->second);
      modules_.erase(found);
    }
    unlink(module->description.c_str());
    return done("rtsBinaryUnload", v_.rtsBinaryUnload(module->handle));
  }
  int cpu_function(CpuModule* handle, const char* symbol, CpuFunction** function) {
    const std::lock_guard lock(mutex_);
    const auto found = modules_.find(handle);
    if (found == modules_.end()) return refuse(kInvalidHandle, "the program was unloaded already");
    return find_function(*found->second, symbol, function);
  }
  int cpu_launch(CpuFunction* function, int threads, const void* payload, std::size_t bytes, Stream* stream) {
    CpuKernelArgs args{};
    args.base.args = const_cast<void*>(payload);  // copied before the call returns
    args.base.bytes = static_cast<std::uint32_t>(bytes);
    return done("rtsLaunchCpuKernel",
                v_.rtsLaunchCpuKernel(function, static_cast<std::uint32_t>(threads), stream, nullptr, &args));
  }

  // ---- topology, DMA ----

  int cpu_mask(CpuMask kind, std::uint64_t* mask) {
    std::uint32_t device = 0;
    if (const int code = hal_device(&device); code != kOk) return code;
    const int info = kind == CpuMask::kOccupied   ? kOccupied
                     : kind == CpuMask::kPhysical ? kPhysicalOccupied
                                                  : kSystemCpus;
    std::int64_t value = 0;
    const int code = v_.halGetDeviceInfo(device, kCpuModule, info, &value);
    if (code != kDriverOk) return hal_failure("halGetDeviceInfo", code);
    *mask = static_cast<std::uint64_t>(value);
    return kOk;
  }
  int core_registers(CoreRegisters kind, std::uint64_t* addresses, int* count) {
    const int cores = chip_.cores;
    if (*count < cores * kSubCores)
      return refuse(kInvalidParameter, format("room for %d of %d cores", *count, cores * kSubCores));
    if (kind == CoreRegisters::kCounters) {
      if (const int code = need(kCounterRegisters, "window for counters"); code != kOk) return code;
    }
    std::uint32_t device = 0;
    if (const int code = hal_device(&device); code != kOk) return code;
    std::vector<std::uint64_t> windows(static_cast<std::size_t>(cores), 0);
    const int code = chip_.one_mapping ? map_all(device, kind, windows) : map_each(device, windows);
    if (code != kOk) return code;
    *count = cores * kSubCores;
    const int group = chip_.group;
    for (int core = 0; core < cores; ++core) {
      std::uint64_t* const first = addresses + core / group * group * kSubCores;
      const std::uint64_t window = windows[static_cast<std::size_t>(core)];
      const auto sub_core = [&](int i) {
        return window == 0 ? 0 : window + static_cast<std::uint64_t>(i) * kSubCoreStride;
      };
      first[core % group] = sub_core(0);
      for (int lane = 1; lane < kSubCores; ++lane)
        first[group + core % group * (kSubCores - 1) + lane - 1] = sub_core(lane);
    }
    return kOk;
  }
  int sync_window(std::uint64_t* address) {
    if (const int code = need(kSyncWindow, "window for synchronising cores"); code != kOk) return code;
    std::uint32_t bytes = 0;
    return done("rtGetC2cCtrlAddr", v_.rtGetC2cCtrlAddr(address, &bytes));
  }
  int dma_provision(std::uint32_t, std::uint64_t[2], DmaWorkspaces**) {
    return unsupported("DMA workspaces need a library of the vendor's that this version does not use");
  }
  int dma_release(DmaWorkspaces*) { return refuse(kInvalidHandle, "there are no DMA workspaces"); }

 private:
  // ---- failures ----

  int refuse(int code, std::string text) {
    last_error() = std::move(text);
    return code;
  }
  int unsupported(std::string text) { return refuse(kUnsupported, std::move(text)); }
  int need(Capability capability, const char* what) {
    return (chip_.capabilities & capability) != 0 ? kOk : unsupported(format("%s has no %s", chip_.name.data(), what));
  }
  // The result of a runtime or acl call. A poll that finds work left is no failure: it has no text.
  int done(const char* function, int code) {
    if (code == kOk || code == kStreamNotComplete) return code;
    const char* const text = v_.aclGetRecentErrMsg();
    last_error() =
        format("%s answered %d%s%s", function, code, text != nullptr ? ": " : "", text != nullptr ? text : "");
    return code;
  }
  int hal_failure(const char* function, int code) {
    return refuse(runtime_code(code), format("%s answered %d of the driver's codes", function, code));
  }

  // ---- arguments ----

  static void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }
  template <class T> static void** out(T** handle) { return reinterpret_cast<void**>(handle); }
  // The vendor knows -1 for no limit, and no limit of 0.
  static std::int32_t limit(std::int32_t timeout_ms) { return timeout_ms < 0 ? -1 : timeout_ms == 0 ? 1 : timeout_ms; }

  // The calling thread's device, as hal calls number them.
  int hal_device(std::uint32_t* device) {
    std::int32_t current = 0;
    if (const int code = done("aclrtGetDevice", v_.aclrtGetDevice(&current)); code != kOk) return code;
    const char* const list = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
    const int visible = visible_device(list, current);
    if (visible < 0)
      return refuse(kInvalidDevice, format("ASCEND_RT_VISIBLE_DEVICES=%s does not name device %d", list, current));
    *device = static_cast<std::uint32_t>(visible);
    return kOk;
  }

  // ---- parts of entries ----

  int upload(const void* bytes, std::size_t count, std::uint64_t* address) {
    const int code = alloc(count, address);
    return code == kOk ? copy_to_device(*address, bytes, count) : code;
  }
  int launch_bootstrap(std::uint64_t binaries, Stream* stream) {
    BootstrapArgs payload{};
    payload.front[kBootstrapFront] = binaries;
    std::strcpy(payload.kernel_name, "DynTileFwkKernelServerInit");
    std::strcpy(payload.library_name, "libaicpu_extend_kernels.so");
    std::strcpy(payload.operation_name, "AST_DYN_AICPU");
    CpuArgs args{};
    args.args = &payload;
    args.bytes = sizeof payload;
    args.kernel_name_offset = offsetof(BootstrapArgs, kernel_name);
    args.library_name_offset = offsetof(BootstrapArgs, library_name);
    return done("rtAicpuKernelLaunchExWithArgs",
                v_.rtAicpuKernelLaunchExWithArgs(kCpuKernelKfc, payload.operation_name, 1, &args, nullptr, stream, 0));
  }
  int find_function(const Module& module, const char* symbol, CpuFunction** function) {
    *function = nullptr;
    const std::string name = loader_name(symbol, module.fingerprint);
    return done("rtsFuncGetByName", v_.rtsFuncGetByName(module.handle, name.c_str(), out(function)));
  }
  // One mapping over all cores; a core that the device lacks keeps 0.
  int map_all(std::uint32_t device, CoreRegisters kind, std::vector<std::uint64_t>& windows) {
    AddressMapIn in{kind == CoreRegisters::kControl ? kCoreControl : kCoreCounters, device};
    AddressMapOut out{};
    int code = kDriverBusy;
    for (int attempt = 0; attempt < kMapAttempts && code == kDriverBusy; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(kBusyPause);  // the driver has no way to wait for it
      std::size_t bytes = sizeof out;
      code = v_.halMemCtl(kAddressMap, &in, sizeof in, &out, &bytes);
    }
    if (code != kDriverOk) return hal_failure("halMemCtl", code);
    const std::uint64_t needed = (windows.size() - 1) * kCoreStride + kSubCores * kSubCoreStride;
    if (out.bytes < needed) {
      return refuse(kInternalError, format("halMemCtl mapped %llu bytes of registers; %zu cores have %llu",
                                           static_cast<unsigned long long>(out.bytes), windows.size(),
                                           static_cast<unsigned long long>(needed)));
    }
    std::uint64_t usable[2] = {};
    std::int32_t bytes = sizeof usable;
    const bool known = v_.halGetDeviceInfoByBuff(device, kCoreModule, kOccupied, usable, &bytes) == kDriverOk;
    for (std::size_t core = 0; core < windows.size(); ++core) {
      if (!known || (usable[core / 64] >> core % 64 & 1) != 0) windows[core] = out.address + core * kCoreStride;
    }
    return kOk;
  }
  int map_each(std::uint32_t device, std::vector<std::uint64_t>& windows) {
    for (std::size_t core = 0; core < windows.size(); ++core) {
      ResourceMap resource{};
      resource.id = static_cast<std::uint32_t>(core);
      unsigned long address = 0;
      unsigned bytes = 0;
      const int code = v_.halResMap(device, &resource, &address, &bytes);
      if (code != kDriverOk) return hal_failure("halResMap", code);
      if (bytes < kSubCores * kSubCoreStride)
        return refuse(kInternalError, format("halResMap mapped %u bytes of the registers of core %zu", bytes, core));
      windows[core] = address;
    }
    return kOk;
  }

  const Chip& chip_;
  const Vendor v_;
  std::mutex mutex_;                                 // all below
  std::map<std::uint64_t, std::uint32_t> mappings_;  // address -> device, as hal calls number them
  std::map<CpuModule*, std::unique_ptr<Module>> modules_;
};

Status CannDriver::open(std::string_view arch, const std::string& folder, std::unique_ptr<CannDriver>* driver) {
  const Chip* const chip =
      std::find_if(std::begin(kChips), std::end(kChips), [&](const Chip& c) { return c.name == arch; });
  if (chip == std::end(kChips))
    return fail(ErrorKind::kValue, format("there is no board \"%s\": use a2a3 or a5", std::string(arch).c_str()));
  Vendor vendor;
  if (Status status = find_functions(folder, &vendor); !status.ok()) return status;
  driver->reset(new CannDriver(std::make_unique<Impl>(*chip, vendor)));
  return Status();
}

CannDriver::CannDriver(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)), table_(make_table("cann", impl_.get(), impl_->capabilities())) {}
CannDriver::~CannDriver() = default;
const Driver& CannDriver::table() const { return table_; }

}  // namespace simpler::driver
