#include "driver/soft/stream_calls.h"

#include <algorithm>
#include <optional>
#include <string>

#include "executor/arch_profile.h"

namespace simpler::driver {
namespace {

// Leaves the text of a stream's failure in last_error().
template <typename Call> int report(Call call) {
  std::string text;
  const int code = call(&text);
  if (code != kOk) last_error() = std::move(text);
  return code;
}

}  // namespace

StreamCalls::StreamCalls(SoftDevices& devices, SoftChip chip)
    : devices_(devices), clusters_(chip.clusters), streams_(devices, "stream"), events_(devices, "event") {}

int StreamCalls::set_op_timeout(std::uint64_t us, std::uint64_t* actual_us) {
  int ordinal = 0;
  if (const int code = devices_.context(&ordinal); code != kOk) return code;
  if (actual_us == nullptr) return fail(kBadArgument, "set_op_timeout: no place for the actual limit");
  op_limit_us_.store(static_cast<std::int64_t>(std::min<std::uint64_t>(us, INT64_MAX / 2000)),
                     std::memory_order_relaxed);
  *actual_us = us;
  return kOk;
}

int StreamCalls::stream_create(Stream** handle) { return streams_.add(std::make_shared<SoftStream>(), handle); }

int StreamCalls::stream_destroy(Stream* handle) {
  std::shared_ptr<SoftStream> stream;  // its destructor waits
  return streams_.take(handle, &stream);
}

int StreamCalls::stream_query(Stream* handle) {
  std::shared_ptr<SoftStream> stream;
  int ordinal = 0;
  if (const int code = streams_.find(handle, &stream, &ordinal); code != kOk) return code;
  reap(ordinal);
  return report([&](std::string* text) { return stream->query(stream->pushed(), text); });
}

int StreamCalls::stream_sync(Stream* handle, std::int32_t timeout_ms) {
  if (timeout_ms < -1) return fail(kInvalidParameter, format("a limit of %d ms", timeout_ms));
  std::shared_ptr<SoftStream> stream;
  int ordinal = 0;
  if (const int code = streams_.find(handle, &stream, &ordinal); code != kOk) return code;
  return wait(ordinal, *stream, stream->pushed(), timeout_ms);
}

int StreamCalls::stream_stop_on_failure(Stream* handle) {
  std::shared_ptr<SoftStream> stream;
  int ordinal = 0;
  return streams_.find(handle, &stream, &ordinal);
}

int StreamCalls::stream_core_limits(Stream* handle, std::uint32_t* cube, std::uint32_t* vector) {
  std::shared_ptr<SoftStream> stream;
  int ordinal = 0;
  if (const int code = streams_.find(handle, &stream, &ordinal); code != kOk) return code;
  *cube = static_cast<std::uint32_t>(clusters_);
  *vector = static_cast<std::uint32_t>(clusters_ * executor::kVectorLanes);
  return kOk;
}

int StreamCalls::event_create(Event** handle) { return events_.add(std::make_shared<SoftEvent>(), handle); }

int StreamCalls::event_destroy(Event* handle) {
  std::shared_ptr<SoftEvent> event;
  return events_.take(handle, &event);
}

int StreamCalls::event_record(Event* handle, Stream* on) {
  std::shared_ptr<SoftEvent> event;
  std::shared_ptr<SoftStream> stream;
  int ordinal = 0, other = 0;
  if (const int code = events_.find(handle, &event, &ordinal); code != kOk) return code;
  if (const int code = streams_.find(on, &stream, &other); code != kOk) return code;
  if (ordinal != other) return fail(kWrongContext, "event and stream belong to different devices");
  auto mark = std::make_shared<SoftStream::Mark>();
  stream->push_mark(mark);
  const std::lock_guard lock(mutex_);
  *event = {on, std::move(mark)};
  return kOk;
}

int StreamCalls::event_sync(Event* handle, std::int32_t timeout_ms) {
  std::shared_ptr<SoftStream> stream;
  std::shared_ptr<SoftStream::Mark> mark;
  int ordinal = 0;
  if (const int code = find_recorded(handle, &stream, &mark, &ordinal); code != kOk) return code;
  const int code = wait(ordinal, *stream, stream->target_of(*mark), timeout_ms);
  return code == kSyncTimeout ? kEventSyncTimeout : code;
}

int StreamCalls::event_timestamp(Event* handle, std::uint64_t* micros) {
  std::shared_ptr<SoftStream> stream;
  std::shared_ptr<SoftStream::Mark> mark;
  int ordinal = 0;
  if (const int code = find_recorded(handle, &stream, &mark, &ordinal); code != kOk) return code;
  const std::optional<Clock::time_point> time = stream->time_of(*mark);
  if (!time) return fail(kEventNotRecorded, "the stream has not reached the event yet");
  *micros = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time->time_since_epoch()).count());
  return kOk;
}

int StreamCalls::find_launchable(Stream* handle, std::shared_ptr<SoftStream>* stream, int* ordinal) const {
  const int code = streams_.find(handle, stream, ordinal);
  return code != kOk ? code : devices_.check(*ordinal);
}

int StreamCalls::find_recorded(Event* handle, std::shared_ptr<SoftStream>* stream,
                               std::shared_ptr<SoftStream::Mark>* mark, int* ordinal) const {
  std::shared_ptr<SoftEvent> event;
  if (const int code = events_.find(handle, &event, ordinal); code != kOk) return code;
  Stream* on = nullptr;
  {
    const std::lock_guard lock(mutex_);
    on = event->stream;
    *mark = event->mark;
  }
  if (on == nullptr) return fail(kEventNotRecorded, "the event was never recorded");
  return streams_.find(on, stream, ordinal);
}

int StreamCalls::wait_all(int ordinal, std::int32_t timeout_ms) {
  int first = kOk;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (const auto& stream : streams_.all(ordinal)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int code = wait(ordinal, *stream, stream->pushed(), timeout_ms < 0 ? -1 : std::max<std::int64_t>(left, 0));
    if (first == kOk) first = code;
  }
  return first;
}

void StreamCalls::await_idle(int ordinal, std::chrono::seconds limit) const {
  for (const auto& stream : streams_.all(ordinal)) stream->idle_by(Clock::now() + limit);
}

bool StreamCalls::all_idle(std::chrono::seconds limit) const {
  const auto streams = streams_.all();
  return std::all_of(streams.begin(), streams.end(),
                     [&](const auto& stream) { return stream->idle_by(Clock::now() + limit); });
}

bool StreamCalls::works(int ordinal) const {
  const auto streams = streams_.all(ordinal);
  return std::any_of(streams.begin(), streams.end(), [](const auto& stream) { return stream->working(); });
}

std::size_t StreamCalls::end_generation(int ordinal) {
  return streams_.take_all(ordinal).size() + events_.take_all(ordinal).size();
}

void StreamCalls::leave_behind(int ordinal, std::vector<std::shared_ptr<void>>* kept) {
  for (auto& stream : streams_.take_all(ordinal)) kept->push_back(std::move(stream));
}

void StreamCalls::count(SoftCensus* census) const {
  census->streams = streams_.size();
  census->events = events_.size();
}

// Fails cores that were busy for too long, which puts their device in error.
void StreamCalls::reap(int ordinal) {
  const std::chrono::microseconds limit(op_limit_us_.load(std::memory_order_relaxed));
  if (limit.count() == 0) return;
  for (const auto& stream : streams_.all(ordinal)) {
    if (!stream->reap(limit)) continue;
    devices_.put_in_error(ordinal, format("a program of device %d ran past the limit for operations", ordinal));
  }
}

// When a hold on the device may have to be reaped at the earliest.
StreamCalls::Clock::time_point StreamCalls::reap_time(int ordinal, Clock::time_point now) const {
  const std::chrono::microseconds limit(op_limit_us_.load(std::memory_order_relaxed));
  if (limit.count() == 0) return Clock::time_point::max();
  Clock::time_point first = now + limit;
  for (const auto& stream : streams_.all(ordinal)) {
    if (const auto begin = stream->held_since()) first = std::min(first, *begin + limit);
  }
  return first;
}

int StreamCalls::wait(int ordinal, SoftStream& stream, std::uint64_t target, std::int64_t timeout_ms) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point deadline =
      timeout_ms < 0 ? Clock::time_point::max() : start + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const Clock::time_point now = Clock::now();
    const Clock::time_point reap_at = reap_time(ordinal, now);
    const Clock::time_point until = std::min(deadline, reap_at);
    const int code = report([&](std::string* text) { return stream.sync(target, until, text); });
    if (code != kSyncTimeout) return code;
    if (until == deadline)
      return fail(kSyncTimeout, format("the stream has work left after %lld ms", static_cast<long long>(timeout_ms)));
    reap(ordinal);
  }
}

}  // namespace simpler::driver
