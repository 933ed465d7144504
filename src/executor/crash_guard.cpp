#include "executor/crash_guard.h"

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace simpler::executor {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::size_t kSignalCount = sizeof kSignals / sizeof kSignals[0];
constexpr std::size_t kAlternateStackBytes = 64 * 1024;

thread_local sigjmp_buf* active = nullptr;  // of the call in progress on this thread
thread_local const void* fault_address = nullptr;
thread_local char description[96];

std::mutex install_mutex;
struct sigaction previous[kSignalCount];  // who handled each signal before us

void handle(int signal, siginfo_t* info, void* context) {
  if (active != nullptr) {
    fault_address = info->si_code > 0 ? info->si_addr : nullptr;  // a signal that was sent has none
    siglongjmp(*active, signal);
  }
  for (std::size_t i = 0; i < kSignalCount; ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction& next = previous[i];
    if ((next.sa_flags & SA_SIGINFO) != 0 && next.sa_sigaction != nullptr) {
      next.sa_sigaction(signal, info, context);
      return;
    }
    if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) {
      next.sa_handler(signal);
      return;
    }
    sigaction(signal, &next, nullptr);  // back to the default, which ends the process when the fault repeats
    if (info->si_code <= 0 || signal == SIGABRT) raise(signal);  // sent, not caused: it does not repeat by itself
    return;
  }
}

// The alternate stack of a thread; given back when the thread ends.
struct AlternateStack {
  std::unique_ptr<char[]> memory;
  ~AlternateStack() {
    if (memory == nullptr) return;
    stack_t off{};
    off.ss_flags = SS_DISABLE;
    sigaltstack(&off, nullptr);
  }
};
thread_local AlternateStack alternate_stack;

}  // namespace

void CrashGuard::install() {
  const std::lock_guard lock(install_mutex);
  for (std::size_t i = 0; i < kSignalCount; ++i) {
    struct sigaction current {};
    sigaction(kSignals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == handle) continue;
    previous[i] = current;
    struct sigaction ours {};
    ours.sa_sigaction = handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // NODEFER: the signal must work again after the jump
    sigemptyset(&ours.sa_mask);
    sigaction(kSignals[i], &ours, nullptr);
  }
}

void CrashGuard::prepare_thread() {
  if (alternate_stack.memory != nullptr) return;
  stack_t current{};
  if (sigaltstack(nullptr, &current) == 0 && (current.ss_flags & SS_DISABLE) == 0) return;  // a sanitizer gave it one
  alternate_stack.memory = std::make_unique<char[]>(kAlternateStackBytes);
  stack_t stack{};
  stack.ss_sp = alternate_stack.memory.get();
  stack.ss_size = kAlternateStackBytes;
  sigaltstack(&stack, nullptr);
}

int CrashGuard::run(void (*function)(void*), void* context) {
  // Restores on return, by exception or not; after a jump nothing below has run on.
  struct Activation {
    sigjmp_buf* const outer = active;
    ~Activation() { active = outer; }
  };
  sigjmp_buf here;
  const Activation activation;
  if (const int signal = sigsetjmp(here, 0); signal != 0) return signal;
  active = &here;
  function(context);
  return 0;
}

const char* CrashGuard::describe(int signal) {
  const auto text = [](const char* name, const char* at) {
    std::snprintf(description, sizeof description, "%s %s 0x%llx)", name, at,
                  static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(fault_address)));
    return description;
  };
  switch (signal) {
    case SIGSEGV: return text("SIGSEGV (invalid memory access,", "at");
    case SIGBUS: return text("SIGBUS (misaligned or missing memory,", "at");
    case SIGFPE: return text("SIGFPE (integer division by zero or overflow,", "by the code at");
    case SIGILL: return text("SIGILL (invalid instruction, or a failed assertion,", "by the code at");
    case SIGABRT: return "SIGABRT (abort was called)";
    default: return "a fatal signal";
  }
}

}  // namespace simpler::executor
