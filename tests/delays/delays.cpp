// A library for LD_PRELOAD that delays a program at random where its threads and processes meet: when one begins, around
// locks, waits, wakes and waited-for ends. What depends on who comes first, and should not, is found in some runs instead
// of once in thousands. tools/soak runs the unit and fault tests with it.
//
// SIMPLER_DELAYS_SEED, a number, default 1: other delays. The same seed does not repeat a run: the system still chooses
// who runs. Threads and processes that begin sleep up to 60 ms every other time; every 17th of the other calls sleeps
// up to 0.3 ms, and every 256th up to 30 ms.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace {

// Keeps errno, which the delayed call may just have set.
void sleep_us(std::uint64_t us) {
  const int error = errno;
  const timespec time{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
  nanosleep(&time, nullptr);
  errno = error;
}

// A sequence of its own for each thread: xorshift64* (Vigna, 2016). It begins anew in a forked process.
class Draw {
 public:
  std::uint64_t operator()() {
    if (process_ != getpid()) begin();
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1D >> 16;
  }

 private:
  void begin() {
    static std::atomic<std::uint64_t> threads{0};
    const char* const text = std::getenv("SIMPLER_DELAYS_SEED");
    const std::uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
    process_ = getpid();
    state_ = (seed + 1) * 0x9E3779B97F4A7C15 + threads.fetch_add(1) * 0xD1B54A32D192ED03 +
             static_cast<std::uint64_t>(process_) * 0xBF58476D1CE4E5B9;
    if (state_ == 0) state_ = 1;
  }

  pid_t process_ = 0;
  std::uint64_t state_ = 1;
};
thread_local Draw draw;

void delay_begin() {
  if (draw() % 2 == 0) sleep_us(draw() % 60'000);
}

void delay() {
  const std::uint64_t drawn = draw() % 1024;
  if (drawn < 4) {
    sleep_us(draw() % 30'000);
  } else if (drawn < 64) {
    sleep_us(draw() % 300);
  }
}

template <class Function> Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct ThreadBody {
  void* (*routine)(void*);
  void* argument;
};

void* run_thread(void* argument) {
  const ThreadBody body = *std::unique_ptr<ThreadBody>(static_cast<ThreadBody*>(argument));
  delay_begin();
  return body.routine(body.argument);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  static auto* const real = next<decltype(pthread_create)>("pthread_create");
  auto body = std::make_unique<ThreadBody>(ThreadBody{routine, argument});
  const int error = real(thread, attributes, run_thread, body.get());
  if (error != 0) return error;
  body.release();  // the thread's
  delay_begin();
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  static auto* const real = next<decltype(pthread_join)>("pthread_join");
  delay();
  return real(thread, result);
}

pid_t fork() {
  static auto* const real = next<decltype(fork)>("fork");
  const pid_t pid = real();
  delay_begin();
  return pid;
}

pid_t waitpid(pid_t pid, int* status, int options) {
  static auto* const real = next<decltype(waitpid)>("waitpid");
  const pid_t ended = real(pid, status, options);
  delay();
  return ended;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static auto* const real = next<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
  delay();
  return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  static auto* const real = next<decltype(pthread_mutex_unlock)>("pthread_mutex_unlock");
  const int error = real(mutex);
  delay();
  return error;
}

int flock(int file, int operation) {
  static auto* const real = next<decltype(flock)>("flock");
  const int result = real(file, operation);
  delay();
  return result;
}

int sched_yield() {
  static auto* const real = next<decltype(sched_yield)>("sched_yield");
  delay();
  return real();
}

// Futexes have no function of their own.
long syscall(long number, ...) {
  static auto* const real = next<long(long, long, long, long, long, long, long)>("syscall");
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex) delay();
  const long result = real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  if (number == SYS_futex) delay();
  return result;
}

}  // extern "C"
#pragma GCC visibility pop
