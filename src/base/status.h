// Status: the outcome of an operation that can fail. A code that callers act on, and a text that explains itself.
//
// What      code 0 is success. Negative codes are those that cross the C API and reach Python (see abi/error_codes.h);
//           the message says what was wrong, the value, what is allowed and what to do.
// Threads   A value; no sharing.
// Cost      Success is one int and an empty string: no allocation.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

namespace simpler {

// printf into a std::string; the format is checked by the compiler.
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* pattern, ...) {
  va_list args, again;
  va_start(args, pattern);
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, pattern, args);
  va_end(args);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

// Which Python exception a failure becomes. One row per kind; simpler/errors.py has a class for each.
enum class ErrorKind : int {
  kRun = 0,      // RunError(RuntimeError): a run failed with a code
  kValue = 1,    // ArgumentError(ValueError)
  kType = 2,     // ArgumentTypeError(TypeError)
  kIndex = 3,    // ArgumentIndexError(IndexError)
  kKey = 4,      // UnknownHandleError(KeyError)
  kState = 5,    // StateError(RuntimeError): the object is not in a state that allows the call
  kTimeout = 6,  // WaitTimeoutError(TimeoutError)
  kDevice = 7,   // DeviceError(RuntimeError): the device or its driver refused
  kMemory = 8,   // OutOfMemoryError(MemoryError, RuntimeError)
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorKind kind, int code, std::string message) : code_(code), kind_(kind), message_(std::move(message)) {}

  bool ok() const { return code_ == 0; }
  int code() const { return code_; }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }

 private:
  int code_ = 0;
  ErrorKind kind_ = ErrorKind::kRun;
  std::string message_;
};

// Failures that are not a run's code all carry -1, the generic host-side failure.
inline Status fail(ErrorKind kind, std::string message) { return Status(kind, -1, std::move(message)); }

}  // namespace simpler
