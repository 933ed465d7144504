#include "base/log.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace simpler::log {
namespace {

constexpr std::size_t kRecordBytes = 2048;  // longer records are cut

State own_state;
std::atomic<State*> current{&own_state};

// Fields of a state that other libraries may write too. (C++17: the field itself is the atomic, by its layout.)
std::atomic<std::int32_t>& shared(std::int32_t& field) {
  static_assert(sizeof(std::atomic<std::int32_t>) == sizeof field && std::atomic<std::int32_t>::is_always_lock_free);
  return reinterpret_cast<std::atomic<std::int32_t>&>(field);
}

const char* name_of(Level level) {
  switch (level) {
    case Level::kDebug: return "DEBUG";
    case Level::kInfo: return "INFO";
    case Level::kTiming: return "TIMING";
    case Level::kWarn: return "WARN";
    case Level::kError: return "ERROR";
    case Level::kNul: break;
  }
  return "NUL";
}

// Appends to a record; what does not fit is cut, and room for `reserved` bytes and the newline is kept.
struct Record {
  char text[kRecordBytes];
  std::size_t length = 0;
  std::size_t reserved = 0;

  [[gnu::format(printf, 2, 3)]] void add(const char* pattern, ...) {
    va_list values;
    va_start(values, pattern);
    add_v(pattern, values);
    va_end(values);
  }
  void add_v(const char* pattern, va_list values) {
    const std::size_t room = kRecordBytes - 1 - reserved - length;
    const int wanted = std::vsnprintf(text + length, room, pattern, values);
    if (wanted > 0) length += static_cast<std::size_t>(wanted) < room ? static_cast<std::size_t>(wanted) : room - 1;
  }
  void write() {
    if (length == 0 || text[length - 1] != '\n') text[length++] = '\n';
    const char* at = text;
    while (length > 0) {
      const ssize_t written = ::write(STDERR_FILENO, at, length);
      if (written < 0) {
        if (errno == EINTR) continue;
        return;
      }
      at += written;
      length -= static_cast<std::size_t>(written);
    }
  }
};

}  // namespace

void bind(State* state) { current.store(state, std::memory_order_release); }
bool is_level(int number) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kTiming, Level::kWarn, Level::kError, Level::kNul}) {
    if (static_cast<int>(level) == number) return true;
  }
  return false;
}
void set_threshold(int level) {
  shared(current.load(std::memory_order_acquire)->threshold).store(level, std::memory_order_relaxed);
}
int threshold() { return shared(current.load(std::memory_order_acquire)->threshold).load(std::memory_order_relaxed); }
bool claim_clock_anchor() {
  const std::int32_t self = getpid();
  return shared(current.load(std::memory_order_acquire)->clock_anchor_pid).exchange(self, std::memory_order_relaxed) !=
         self;
}

void host(Level level, const char* function, const char* pattern, ...) {
  if (!enabled(level)) return;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  Record record;
  record.add("[mono_ns=%lld][T0x%llx][%s] %s: ", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec,
             static_cast<unsigned long long>(pthread_self()), name_of(level), function);
  va_list values;
  va_start(values, pattern);
  record.add_v(pattern, values);
  va_end(values);
  record.write();
}

void device_v(Level level, const Origin& origin, const char* function, const char* pattern, va_list values) {
  if (!enabled(level)) return;
  Record where;
  where.add(" [thread=0x%llx", static_cast<unsigned long long>(pthread_self()));
  const struct {
    const char* name;
    std::int64_t value;
  } facts[] = {
      {"device", origin.device}, {"submitted", origin.submitted}, {"ring", origin.ring}, {"task", origin.task},
      {"kernel", origin.kernel}, {"block", origin.block},         {"core", origin.core},
  };
  for (const auto& fact : facts) {
    if (fact.value >= 0) where.add(" %s=%lld", fact.name, static_cast<long long>(fact.value));
  }
  where.add("]");
  Record record;
  record.reserved = where.length;
  record.add("[%s] %s: ", name_of(level), function);
  record.add_v(pattern, values);
  while (record.length > 0 && record.text[record.length - 1] == '\n') --record.length;
  record.reserved = 0;
  record.add("%s", where.text);
  record.write();
}

void device(Level level, const Origin& origin, const char* function, const char* pattern, ...) {
  va_list values;
  va_start(values, pattern);
  device_v(level, origin, function, pattern, values);
  va_end(values);
}

}  // namespace simpler::log
