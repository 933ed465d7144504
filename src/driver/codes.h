// The vendor's error codes that the runner, or a backend of ours, acts on. One row each: number, name, meaning.
#pragma once

namespace simpler::driver {

#define SIMPLER_DRIVER_CODES(X)                                                                   \
  X(0, kOk, "success")                                                                            \
  X(100000, kBadArgument, "an argument is null, zero or out of range")                            \
  X(100002, kRepeatInitialize, "the process is initialised already; harmless")                    \
  X(100037, kRepeatFinalize, "the process is finalised already")                                  \
  X(107000, kInvalidParameter, "an address, a size or a name fits nothing")                       \
  X(107001, kInvalidDevice, "there is no such device, or nobody holds it")                        \
  X(107002, kNoContext, "the thread has no current device")                                       \
  X(107003, kWrongContext, "the handle belongs to another device, or to a time before its reset") \
  X(107006, kEventNotRecorded, "the event was not recorded, or is not reached yet")               \
  X(107017, kInvalidHandle, "the handle is stale or was never given out")                         \
  X(107022, kTaskAbort, "the device aborts its tasks")                                            \
  X(107044, kInvalidFunction, "the bytes are not code with the wanted entry")                     \
  X(207000, kUnsupported, "this device or its software lacks the feature")                        \
  X(207001, kOutOfMemory, "out of device memory")                                                 \
  X(207004, kNoDevice, "there is no device")                                                      \
  X(207008, kNoStream, "out of streams")                                                          \
  X(507000, kInternalError, "internal error of the vendor's runtime")                             \
  X(507004, kStreamNotComplete, "the stream has work left")                                       \
  X(507007, kContextReleased, "the device was reset without being held")                          \
  X(507014, kCoreTimeout, "a program of the cores ran longer than the limit for operations")      \
  X(507015, kCoreException, "a program of the cores failed")                                      \
  X(507017, kCpuTimeout, "a program of the control processors ran too long")                      \
  X(507018, kCpuException, "a program of the control processors failed")                          \
  X(507046, kSyncTimeout, "the limit of waiting for a stream passed; its work goes on")           \
  X(507047, kEventSyncTimeout, "the limit of waiting for an event passed")                        \
  X(507053, kMemoryFault, "device memory was damaged")                                            \
  X(507899, kDriverInternal, "the device is in error until it is reset by force")

#define SIMPLER_DRIVER_CODE(number, name, meaning) inline constexpr int name = number;
SIMPLER_DRIVER_CODES(SIMPLER_DRIVER_CODE)
#undef SIMPLER_DRIVER_CODE

// What a code means; "" for one that is not in the list: nothing is guessed.
inline const char* meaning_of(int code) {
  switch (code) {
#define SIMPLER_DRIVER_CODE(number, name, meaning) \
  case number: return meaning;
    SIMPLER_DRIVER_CODES(SIMPLER_DRIVER_CODE)
#undef SIMPLER_DRIVER_CODE
    default: return "";
  }
}

}  // namespace simpler::driver
