// Driver: the calls that the device runner makes of a device, as one table.
//
// What      Each entry has the meaning, and the error codes, of one call of the vendor's runtime library. A backend is a
//           folder that fills a table: soft/ (the simulator). Nothing above knows which one it speaks to.
// Codes     0, or a vendor code; the ones that the runner acts on are named below. recent_error() has the text.
// Threads   Entries may be called from any thread; set_device binds the calling thread, as on the board. Launches on one
//           stream run in order, one at a time.
// Lifetime  `self` belongs to the table's owner and outlives every call. Handles become invalid with what made them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace simpler::driver {

constexpr int kOk = 0;
constexpr int kInvalidParameter = 107000;  // an address, size or handle that names nothing
constexpr int kNotComplete = 107003;       // event_query: work is left
constexpr int kOutOfMemory = 207001;
constexpr int kSyncTimeout = 507046;  // a sync's limit passed, the work goes on
constexpr int kDeviceProgramFailed = 507018;
constexpr int kCodeInvalid = 107017;  // child_code_resolve: the bytes are not code with the wanted entry

struct Stream;  // opaque
struct Event;   // a point in a stream
struct ChildCode;
struct DeviceModule;  // a device program

// The entries of a device program that cpu_launch can run; payloads are the structs of abi/run_image.h.
enum class DeviceFunction : int {
  kInit,                // InitArgs
  kRegisterCallable,    // RegisterCallableArgs
  kUnregisterCallable,  // std::int32_t
  kExecute,             // std::uint64_t: device address of a RunImage
};

struct Driver {
  const char* name;
  void* self;

  // Device.
  int (*set_device)(void* self, int device);
  int (*reset_device)(void* self, int device);
  const char* (*recent_error)(void* self);  // of the calling thread's last failed call; valid until its next call

  // Memory. Addresses are device addresses.
  int (*alloc)(void* self, std::size_t bytes, std::uint64_t* address);
  int (*free)(void* self, std::uint64_t address);
  int (*copy_to_device)(void* self, std::uint64_t destination, const void* source, std::size_t bytes);
  int (*copy_from_device)(void* self, void* destination, std::uint64_t source, std::size_t bytes);

  // Streams.
  int (*stream_create)(void* self, Stream** stream);
  int (*stream_destroy)(void* self, Stream* stream);                        // waits for what was launched
  int (*stream_sync)(void* self, Stream* stream, std::int64_t timeout_ms);  // < 0: no limit
  int (*event_create)(void* self, Event** event);
  int (*event_destroy)(void* self, Event* event);
  int (*event_record)(void* self, Event* event, Stream* stream);  // after what was launched up to now
  int (*event_query)(void* self, Event* event);
  int (*event_sync)(void* self, Event* event, std::int64_t timeout_ms);

  // Kernels: code that lies in device memory becomes callable.
  int (*child_code_resolve)(void* self, std::uint64_t address, std::size_t bytes, const char* label,
                            std::uint64_t* entry, ChildCode** code);
  int (*child_code_release)(void* self, ChildCode* code);

  // Device programs.
  int (*cpu_load)(void* self, const char* runtime, DeviceModule** module);
  int (*cpu_unload)(void* self, DeviceModule* module);
  // Queues one entry; `payload` is copied. Its failure is the stream's, reported once, by the next stream_sync, event_query or
  // event_sync that finds its work done.
  int (*cpu_launch)(void* self, DeviceModule* module, DeviceFunction function, const void* payload, std::size_t bytes,
                    Stream* stream);
};

}  // namespace simpler::driver
