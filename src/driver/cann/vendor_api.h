// The vendor's C interface (CANN), as far as it is used: types, constants, and one row for each function.
//
// What      Written down from public headers, so that neither building nor testing needs an SDK. Only this folder, and the
//           emulated library of the tests, which exports the same functions, know these layouts.
// Status    Never compiled against an SDK nor run on a board: docs/board.md.
#pragma once
#include <cstddef>
#include <cstdint>

namespace simpler::driver::vendor {

using Handle = void*;  // streams, events, images, modules, functions

// ---- constants ------------------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kMemoryHbm = 2;              // rtMalloc: type, with the default page policy
inline constexpr int kHostToDevice = 1, kDeviceToHost = 2;  // rtMemcpy
inline constexpr std::uint32_t kEventTimeLine = 8;          // aclrtCreateEventExWithFlag
inline constexpr std::uint64_t kStopOnFailure = 1;          // aclrtSetStreamFailureMode
inline constexpr int kCubeCores = 0, kVectorCores = 1;      // aclrtGetStreamResLimit
inline constexpr std::uint32_t kMagicElf = 0x43554245;      // DevBinary::magic
inline constexpr std::uint8_t kBatchScheduling = 1;         // TaskConfig::scheme
inline constexpr std::uint32_t kCpuKernelKfc = 5;           // rtAicpuKernelLaunchExWithArgs: kernelType
inline constexpr std::int32_t kCpuKernelMode = 3;  // LoadOption::id; value 0: the file names what is on the device
inline constexpr int kAllLogModules = -1;          // dlog_setlevel

inline constexpr std::uint32_t kMapDeviceToHost = 2;                          // halHostRegister: flag
inline constexpr int kAddressMap = 0;                                         // halMemCtl: type
inline constexpr std::uint32_t kCoreControl = 2, kCoreCounters = 3;           // AddressMapIn::kind
inline constexpr int kCpuModule = 1, kCoreModule = 4;                         // halGetDeviceInfo: moduleType
inline constexpr int kSystemCpus = 5, kOccupied = 8, kPhysicalOccupied = 21;  // and infoType

// Codes of the driver (hal*), which are not those of the runtime.
inline constexpr int kDriverOk = 0, kDriverBusy = 13;

// ---- layouts --------------------------------------------------------------------------------------------------------
// All-zero is the vendor's default for every field.

struct DevBinary {  // rtDevBinary_t
  std::uint32_t magic, version;
  const void* data;
  std::uint64_t length;
};
static_assert(sizeof(DevBinary) == 24 && offsetof(DevBinary, data) == 8 && offsetof(DevBinary, length) == 16);

struct CoreArgs {  // rtArgsEx_t
  void* args;
  void* host_input_info;
  std::uint32_t bytes;
  std::uint32_t tiling_address_offset, tiling_data_offset;
  std::uint16_t host_input_count;
  std::uint8_t has_tiling, no_copy;
  std::uint8_t reserved[4];
};
static_assert(sizeof(CoreArgs) == 40 && offsetof(CoreArgs, bytes) == 16 && offsetof(CoreArgs, host_input_count) == 28 &&
              offsetof(CoreArgs, no_copy) == 31 && offsetof(CoreArgs, reserved) == 32);

struct TaskConfig {  // rtTaskCfgInfo_t
  std::uint8_t qos, part, scheme;
  bool cross_device;
  std::uint32_t block_offset;
  std::uint8_t dump, never_timeout, profiling, reserved;
  std::uint32_t local_memory_bytes;
};
static_assert(sizeof(TaskConfig) == 16 && offsetof(TaskConfig, scheme) == 2 &&
              offsetof(TaskConfig, block_offset) == 4 && offsetof(TaskConfig, local_memory_bytes) == 12);

struct CpuArgs {  // rtAicpuArgsEx_t; offsets of names count from the start of args
  void* args;
  void* host_input_info;
  void* kernel_offset_info;
  std::uint32_t bytes;
  std::uint16_t host_input_count, kernel_offset_count;
  std::uint32_t library_name_offset, kernel_name_offset;
  bool no_copy;
  std::uint16_t timeout_s;
  std::uint8_t reserved;
};
static_assert(sizeof(CpuArgs) == 48 && offsetof(CpuArgs, bytes) == 24 && offsetof(CpuArgs, library_name_offset) == 32 &&
              offsetof(CpuArgs, kernel_name_offset) == 36 && offsetof(CpuArgs, timeout_s) == 42 &&
              offsetof(CpuArgs, reserved) == 44);

struct CpuKernelArgs {  // rtCpuKernelArgs_t; without names those of the file count
  CpuArgs base;
  std::size_t head_offset;
  std::uint32_t reserved[4];
};
static_assert(sizeof(CpuKernelArgs) == 72 && offsetof(CpuKernelArgs, head_offset) == 48);

struct LoadOption {  // rtLoadBinaryOption_t
  std::int32_t id;
  std::uint32_t value[4];
};
static_assert(sizeof(LoadOption) == 20 && offsetof(LoadOption, value) == 4);
struct LoadConfig {  // rtLoadBinaryConfig_t
  LoadOption* options;
  std::size_t count;
};
static_assert(sizeof(LoadConfig) == 16);

struct AddressMapIn {  // AddrMapInPara
  std::uint32_t kind, device;
};
struct AddressMapOut {  // AddrMapOutPara
  std::uint64_t address, bytes;
};
static_assert(sizeof(AddressMapIn) == 8 && sizeof(AddressMapOut) == 16);

struct ResourceMap {  // res_map_info; zeros: the scheduler's process, windows of cores
  std::int32_t process, kind;
  std::uint32_t id, flag, reserved;
};
static_assert(sizeof(ResourceMap) == 20 && offsetof(ResourceMap, id) == 8);

// What the bootstrap launches: a kernel of the vendor's that loads our dispatcher and hands it the program.
struct BootstrapArgs {
  std::uint64_t front[26];  // front[5]: device address of a BootstrapBinaries
  char kernel_name[32], library_name[32], operation_name[32];
};
static_assert(sizeof(BootstrapArgs) == 304 && offsetof(BootstrapArgs, kernel_name) == 208);
inline constexpr int kBootstrapFront = 5;
struct BootstrapBinaries {
  std::uint64_t unused[12];
  std::uint64_t dispatcher, dispatcher_bytes;  // device addresses
  std::uint64_t device;
  std::uint64_t program, program_bytes;
  std::uint64_t unused_too[3];
};
static_assert(sizeof(BootstrapBinaries) == 160 && offsetof(BootstrapBinaries, dispatcher) == 96 &&
              offsetof(BootstrapBinaries, device) == 112 && offsetof(BootstrapBinaries, program) == 120);

// Where the windows of cores lie. Not in the vendor's public headers: to be confirmed on a board.
inline constexpr std::uint64_t kCoreStride = 8 << 20, kSubCoreStride = 1 << 20;
inline constexpr int kSubCores = 3;                       // one for matrices, two for vectors
inline constexpr int kCoresA2A3 = 25;                     // one window over all of them
inline constexpr int kCoresA5 = 36, kCoresPerDieA5 = 18;  // a window for each

// ---- functions ------------------------------------------------------------------------------------------------------

enum class Library { kRuntime, kAcl, kHal, kLog };
inline constexpr int kLibraryCount = 4;

// X(library, name, result, (arguments)). All are needed.
#define SIMPLER_VENDOR_CALLS(X)                                                                                        \
  X(kLog, dlog_setlevel, std::int32_t, (std::int32_t module, std::int32_t level, std::int32_t enable_event))           \
  X(kAcl, aclInit, int, (const char* config_path))                                                                     \
  X(kAcl, aclFinalize, int, ())                                                                                        \
  X(kAcl, aclGetRecentErrMsg, const char*, ())                                                                         \
  X(kRuntime, rtSetDevice, std::int32_t, (std::int32_t device))                                                        \
  X(kRuntime, rtDeviceReset, std::int32_t, (std::int32_t device))                                                      \
  X(kAcl, aclrtGetDevice, int, (std::int32_t * device))                                                                \
  X(kAcl, aclrtResetDeviceForce, int, (std::int32_t device))                                                           \
  X(kAcl, aclrtSynchronizeDeviceWithTimeout, int, (std::int32_t timeout_ms))                                           \
  X(kAcl, aclrtSetOpExecuteTimeOutV2, int, (std::uint64_t us, std::uint64_t * actual_us))                              \
  X(kRuntime, rtMalloc, std::int32_t, (void** address, std::uint64_t bytes, std::uint32_t type, std::uint16_t module)) \
  X(kRuntime, rtFree, std::int32_t, (void* address))                                                                   \
  X(kRuntime, rtMemcpy, std::int32_t,                                                                                  \
    (void* destination, std::uint64_t room, const void* source, std::uint64_t bytes, int kind))                        \
  X(kAcl, aclrtMemset, int, (void* address, std::size_t room, std::int32_t value, std::size_t bytes))                  \
  X(kHal, halHostRegister, int,                                                                                        \
    (void* address, unsigned long long bytes, std::uint32_t flag, std::uint32_t device, void** host))                  \
  X(kHal, halHostUnregister, int, (void* address, std::uint32_t device))                                               \
  X(kRuntime, rtStreamCreate, std::int32_t, (Handle * stream, std::int32_t priority))                                  \
  X(kRuntime, rtStreamDestroy, std::int32_t, (Handle stream))                                                          \
  X(kRuntime, rtStreamQuery, std::int32_t, (Handle stream))                                                            \
  X(kAcl, aclrtSynchronizeStreamWithTimeout, int, (Handle stream, std::int32_t timeout_ms))                            \
  X(kAcl, aclrtSetStreamFailureMode, int, (Handle stream, std::uint64_t mode))                                         \
  X(kAcl, aclrtGetStreamResLimit, int, (Handle stream, int type, std::uint32_t* value))                                \
  X(kAcl, aclrtCreateEventExWithFlag, int, (Handle * event, std::uint32_t flag))                                       \
  X(kAcl, aclrtDestroyEvent, int, (Handle event))                                                                      \
  X(kAcl, aclrtRecordEvent, int, (Handle event, Handle stream))                                                        \
  X(kAcl, aclrtSynchronizeEventWithTimeout, int, (Handle event, std::int32_t timeout_ms))                              \
  X(kAcl, aclrtEventGetTimestamp, int, (Handle event, std::uint64_t * micros))                                         \
  X(kRuntime, rtRegisterAllKernel, std::int32_t, (const DevBinary* binary, void** handle))                             \
  X(kRuntime, rtKernelLaunchWithHandleV2, std::int32_t,                                                                \
    (void* handle, std::uint64_t key, std::uint32_t blocks, CoreArgs* args, void* unused, Handle stream,               \
     const TaskConfig* config))                                                                                        \
  X(kRuntime, rtAicpuKernelLaunchExWithArgs, std::int32_t,                                                             \
    (std::uint32_t type, const char* operation, std::uint32_t blocks, const CpuArgs* args, void* unused,               \
     Handle stream, std::uint32_t flags))                                                                              \
  X(kRuntime, rtsBinaryLoadFromFile, std::int32_t, (const char* path, const LoadConfig* config, Handle* module))       \
  X(kRuntime, rtsBinaryUnload, std::int32_t, (Handle module))                                                          \
  X(kRuntime, rtsFuncGetByName, std::int32_t, (Handle module, const char* name, Handle* function))                     \
  X(kRuntime, rtsLaunchCpuKernel, std::int32_t,                                                                        \
    (Handle function, std::uint32_t blocks, Handle stream, const void* config, CpuKernelArgs* args))                   \
  X(kHal, halGetDeviceInfo, int, (std::uint32_t device, std::int32_t module, std::int32_t info, std::int64_t * value)) \
  X(kHal, halGetDeviceInfoByBuff, int,                                                                                 \
    (std::uint32_t device, std::int32_t module, std::int32_t info, void* buffer, std::int32_t* bytes))                 \
  X(kHal, halMemCtl, int, (int type, void* in, std::size_t in_bytes, void* out, std::size_t* out_bytes))               \
  X(kHal, halResMap, int, (unsigned device, ResourceMap* resource, unsigned long* address, unsigned* bytes))           \
  X(kRuntime, rtGetC2cCtrlAddr, std::int32_t, (std::uint64_t * address, std::uint32_t * bytes))

}  // namespace simpler::driver::vendor
