// StreamCalls: the software device's part of the Driver table that is about streams and events, and the limit for
// operations.
//
// What      Whoever waits for a stream or asks about it also looks whether cores were held for longer than the limit; then
//           their device is in error.
// Lifetime  A device's streams and events go with end_generation(), the rest with the object.
// Threads   Any; no lock is held during work or waiting.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/driver.h"
#include "driver/soft/soft_devices.h"
#include "driver/soft/soft_driver.h"
#include "driver/soft/soft_handles.h"
#include "driver/soft/soft_stream.h"

namespace simpler::driver {

class StreamCalls {
 public:
  using Clock = SoftStream::Clock;

  StreamCalls(SoftDevices& devices, SoftChip chip);

  // Of the table.
  int set_op_timeout(std::uint64_t us, std::uint64_t* actual_us);
  int stream_create(Stream** handle);
  int stream_destroy(Stream* handle);
  int stream_query(Stream* handle);
  int stream_sync(Stream* handle, std::int32_t timeout_ms);
  int stream_stop_on_failure(Stream* handle);
  int stream_core_limits(Stream* handle, std::uint32_t* cube, std::uint32_t* vector);
  int event_create(Event** handle);
  int event_destroy(Event* handle);
  int event_record(Event* handle, Stream* on);
  int event_sync(Event* handle, std::int32_t timeout_ms);
  int event_timestamp(Event* handle, std::uint64_t* micros);

  // The stream, if its device is not in error.
  int find_launchable(Stream* handle, std::shared_ptr<SoftStream>* stream, int* ordinal) const;
  // Waits for everything on a device; its first failure. A limit < 0 is none.
  int wait_all(int ordinal, std::int32_t timeout_ms);
  // Gives work that is about to end the time for it, holds aside.
  void await_idle(int ordinal, std::chrono::seconds limit) const;
  // The same for all devices; whether all work has ended.
  bool all_idle(std::chrono::seconds limit) const;
  bool works(int ordinal) const;

  // Takes everything of a device, after waiting for its work; how much there was.
  std::size_t end_generation(int ordinal);
  // What a program that does not return may still use, for the caller to keep.
  void leave_behind(int ordinal, std::vector<std::shared_ptr<void>>* kept);
  void count(SoftCensus* census) const;

 private:
  struct SoftEvent {
    Stream* stream = nullptr;  // nullptr until recorded
    std::shared_ptr<SoftStream::Mark> mark;
  };

  int find_recorded(Event* handle, std::shared_ptr<SoftStream>* stream, std::shared_ptr<SoftStream::Mark>* mark,
                    int* ordinal) const;
  void reap(int ordinal);
  Clock::time_point reap_time(int ordinal, Clock::time_point now) const;
  int wait(int ordinal, SoftStream& stream, std::uint64_t target, std::int64_t timeout_ms);

  SoftDevices& devices_;
  const int clusters_;
  std::atomic<std::int64_t> op_limit_us_{0};  // 0: none; relaxed, nothing else hangs on it
  HandleTable<SoftStream, Stream> streams_;
  HandleTable<SoftEvent, Event> events_;
  mutable std::mutex mutex_;  // what is in the events
};

}  // namespace simpler::driver
