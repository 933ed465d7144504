// Driver: the calls that the device runner makes of a device, as one table.
//
// What      Each entry has the meaning, and the error codes, of one call of the vendor's runtime library, which its comment
//           names. A backend is a folder that fills a table: soft/ (the simulator), cann/ (the board); fault/ wraps
//           another one. Nothing above knows which one it speaks to. There is no policy in a backend: who frees what,
//           in which order, and what a failure means is the runner's business.
// Codes     0, or a vendor code; codes.h names those that the runner acts on. recent_error() has the text.
// Threads   Entries may be called from any thread. A thread acts on the device that it called set_device for last;
//           entries marked [context] answer kNoContext on a thread that never did. Launches on one stream run in order.
// Lifetime  `self` belongs to the table's owner and outlives every call. Handles are opaque; they become invalid with what
//           made them, and when their device is reset.
#pragma once
#include <cstddef>
#include <cstdint>

#include "driver/codes.h"

namespace simpler::driver {

struct Stream;
struct Event;          // a point in a stream
struct CoreImage;      // the program of the cores
struct ChildCode;      // one kernel
struct CpuModule;      // the program of the control processors
struct CpuFunction;    // one entry of it
struct DmaWorkspaces;  // memory that DMA engines work in

// What a device can do beyond the table's core; an entry of a group that is missing answers kUnsupported.
enum Capability : std::uint32_t {
  kHostMapping = 1u << 0,       // map_host, unmap_host
  kSyncWindow = 1u << 1,        // sync_window
  kCounterRegisters = 1u << 2,  // core_registers(kCounters)
  kDmaWorkspace0 = 1u << 8,     // dma_provision for engine 0 (SDMA)
  kDmaWorkspace1 = 1u << 9,     // and for engine 1 (URMA)
};

enum class CoreRegisters : int { kControl, kCounters };
enum class CpuMask : int { kOccupied, kPhysical, kOperatingSystem };  // bit n: control processor n

// Bytes of a device program, borrowed for the call.
struct Binary {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

struct Driver {
  const char* name;  // of the backend
  void* self;
  std::uint32_t capabilities;  // of Capability

  // Process.
  int (*set_log_level)(void* self,
                       int level);  // dlog_setlevel: 0 debug, 1 info, 2 warning, 3 error, 4 none; before set_device
  int (*acl_init)(void* self);      // aclInit: kRepeatInitialize if it was called before, by anybody
  int (*acl_finalize)(void* self);  // aclFinalize: for the whole process
  // aclGetRecentErrMsg: of the calling thread's last failed call, "" if there is none; valid until its next call.
  const char* (*recent_error)(void* self);

  // Device. Every set_device takes one reference; the last reset_device gives the device's state up.
  int (*set_device)(void* self, int device);                // rtSetDevice
  int (*reset_device)(void* self, int device);              // rtDeviceReset
  int (*force_reset)(void* self, int device);               // aclrtResetDeviceForce: whatever the count
  int (*sync_device)(void* self, std::int32_t timeout_ms);  // aclrtSynchronizeDeviceWithTimeout [context]
  int (*set_op_timeout)(void* self, std::uint64_t us,
                        std::uint64_t* actual_us);  // aclrtSetOpExecuteTimeOutV2 [context]

  // Memory. Addresses are device addresses. Copies are synchronous.
  int (*alloc)(void* self, std::size_t bytes, std::uint64_t* address);  // rtMalloc [context]
  int (*free)(void* self, std::uint64_t address);                       // rtFree
  int (*copy_to_device)(void* self, std::uint64_t destination, const void* source,
                        std::size_t bytes);  // rtMemcpy [context]
  int (*copy_from_device)(void* self, void* destination, std::uint64_t source,
                          std::size_t bytes);                                          // rtMemcpy [context]
  int (*fill)(void* self, std::uint64_t address, int value, std::size_t bytes);        // aclrtMemset [context]
  int (*map_host)(void* self, std::uint64_t address, std::size_t bytes, void** host);  // halHostRegister [context]
  int (*unmap_host)(void* self, std::uint64_t address);  // halHostUnregister; before the memory is freed

  // Streams. A limit < 0 is none.
  int (*stream_create)(void* self, Stream** stream);  // rtStreamCreate [context]
  int (*stream_destroy)(void* self, Stream* stream);  // rtStreamDestroy: waits for what was launched
  int (*stream_query)(void* self, Stream* stream);    // rtStreamQuery: kStreamNotComplete if work is left
  int (*stream_sync)(void* self, Stream* stream, std::int32_t timeout_ms);  // aclrtSynchronizeStreamWithTimeout
  int (*stream_stop_on_failure)(void* self, Stream* stream);                // aclrtSetStreamFailureMode
  // aclrtGetStreamResLimit, for both kinds of cores.
  int (*stream_core_limits)(void* self, Stream* stream, std::uint32_t* cube, std::uint32_t* vector);

  // Events, with time.
  int (*event_create)(void* self, Event** event);                 // aclrtCreateEventExWithFlag [context]
  int (*event_destroy)(void* self, Event* event);                 // aclrtDestroyEvent
  int (*event_record)(void* self, Event* event, Stream* stream);  // aclrtRecordEvent: after what was launched up to now
  int (*event_sync)(void* self, Event* event, std::int32_t timeout_ms);  // aclrtSynchronizeEventWithTimeout
  int (*event_timestamp)(void* self, Event* event,
                         std::uint64_t* micros);  // aclrtEventGetTimestamp: of the device's clock

  // Cores. A launch runs the image on `blocks` clusters; `arguments` is the device address of a KernelArgs.
  int (*core_image_load)(void* self, Binary image,
                         CoreImage** handle);  // rtRegisterAllKernel; there is no way to unload
  int (*core_launch)(void* self, CoreImage* image, int blocks, std::uint64_t arguments,
                     Stream* stream);  // rtKernelLaunchWithHandleV2

  // Kernels: code that lies in device memory becomes callable. On the board its address is its entry.
  int (*child_code_resolve)(void* self, std::uint64_t address, std::size_t bytes, const char* label,
                            std::uint64_t* entry, ChildCode** code);
  int (*child_code_release)(void* self, ChildCode* code);

  // Control processors. Bootstrap places the program's file on the device, under a name made of its fingerprint and the
  // device; load opens it and finds the entries.
  int (*cpu_bootstrap)(void* self, Binary dispatcher, Binary program, std::uint64_t fingerprint, int device,
                       Stream* stream);  // rtAicpuKernelLaunchExWithArgs of the dispatcher; synchronous [context]
  int (*cpu_load)(void* self, std::uint64_t fingerprint, int device, const char* const* symbols, int count,
                  CpuModule** module);               // rtsBinaryLoadFromFile [context]
  int (*cpu_unload)(void* self, CpuModule* module);  // rtsBinaryUnload: no launched function may be left
  int (*cpu_function)(void* self, CpuModule* module, const char* symbol, CpuFunction** function);  // rtsFuncGetByName
  // rtsLaunchCpuKernel: runs the entry on so many threads; `payload` is copied. If the entry fails, the stream has
  // kCpuException, which the next sync or query that finds the work done reports, once.
  int (*cpu_launch)(void* self, CpuFunction* function, int threads, const void* payload, std::size_t bytes,
                    Stream* stream);

  // Topology.
  int (*cpu_mask)(void* self, CpuMask kind, std::uint64_t* mask);  // halGetDeviceInfo [context]
  // halMemCtl or halResMap: addresses of the register windows of all cores, in the order of their physical ids. *count is
  // the room on input and the number of cores on output. [context]
  int (*core_registers)(void* self, CoreRegisters kind, std::uint64_t* addresses, int* count);
  int (*sync_window)(void* self, std::uint64_t* address);  // rtGetC2cCtrlAddr [context]

  // DMA engines: bit n of the mask asks for engine n's workspace; addresses of the others become 0.
  int (*dma_provision)(void* self, std::uint32_t mask, std::uint64_t addresses[2],
                       DmaWorkspaces** workspaces);  // [context]
  int (*dma_release)(void* self, DmaWorkspaces* workspaces);
};

// Every entry of the table that returns a code, for code that treats them alike: SIMPLER_DRIVER_CALLS(X) is X(name)...
// clang-format off
#define SIMPLER_DRIVER_CALLS(X) \
  X(set_log_level) X(acl_init) X(acl_finalize) X(set_device) X(reset_device) X(force_reset) X(sync_device) \
  X(set_op_timeout) X(alloc) X(free) X(copy_to_device) X(copy_from_device) X(fill) X(map_host) X(unmap_host) \
  X(stream_create) X(stream_destroy) X(stream_query) X(stream_sync) X(stream_stop_on_failure) \
  X(stream_core_limits) X(event_create) X(event_destroy) X(event_record) X(event_sync) X(event_timestamp) \
  X(core_image_load) X(core_launch) X(child_code_resolve) X(child_code_release) X(cpu_bootstrap) X(cpu_load) \
  X(cpu_unload) X(cpu_function) X(cpu_launch) X(cpu_mask) X(core_registers) X(sync_window) X(dma_provision) \
  X(dma_release)
// clang-format on

#define SIMPLER_DRIVER_COUNT(name) +1
inline constexpr int kCallCount = SIMPLER_DRIVER_CALLS(SIMPLER_DRIVER_COUNT);
#undef SIMPLER_DRIVER_COUNT
static_assert(sizeof(Driver) == (4 + kCallCount) * sizeof(void*), "the list above names every entry of the table");

}  // namespace simpler::driver
