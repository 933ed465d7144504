// CrashGuard: turns a fatal signal inside user code into a return value.
//
// What      call() runs a function; if it raises SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, the call ends there and
//           answers with the signal. Destructors of the abandoned frames do not run. C++ exceptions pass through.
// Threads   Signals are handled on the thread that runs the function, on a stack of its own, so that running out of stack
//           is survived too. Signals on threads outside call() go to whoever handled them before (Python's faulthandler,
//           a sanitizer), or end the process as usual.
// Lifetime  install() puts the handlers in front of those that others installed meanwhile; call it before each run.
// Cost      call: one sigsetjmp without signal mask, a few nanoseconds.
#pragma once
#include <cstdint>

namespace simpler::executor {

class CrashGuard {
 public:
  static void install();
  // Gives the calling thread its alternate stack; once per thread, before its first call().
  static void prepare_thread();

  // 0, or the signal.
  template <typename Function> static int call(Function&& function) {
    return run([](void* context) { (*static_cast<Function*>(context))(); }, &function);
  }
  // "SIGSEGV (invalid memory access, at 0x10)" and the like: of the calling thread's last call(), until its next one. The
  // address is 0 where the processor does not tell it.
  static const char* describe(int signal);

 private:
  static int run(void (*function)(void*), void* context);
};

}  // namespace simpler::executor
