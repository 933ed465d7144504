// ErrorLatch: the one failure of a run. The first writer wins; from then on every entry point is a no-op.
//
// Threads   raise() from any thread; raised() costs one relaxed load. code() and text() once raised() is true.
// Lifetime  clear() between runs, when nobody else looks.
#pragma once
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "abi/error_codes.h"

namespace simpler::graph {

class ErrorLatch {
 public:
  static constexpr std::size_t kTextBytes = 1024;  // longer texts are cut, with "..." at the end

  bool raised() const noexcept { return state_.load(std::memory_order_relaxed) != kClear; }

  // True for the call that latched. `code` is positive; 0 and negative numbers count as EXPLICIT_ORCH_FATAL.
  [[gnu::format(printf, 3, 4)]] bool raise(std::int32_t code, const char* pattern, ...) noexcept {
    va_list values;
    va_start(values, pattern);
    const bool first = raise_v(code, pattern, values);
    va_end(values);
    return first;
  }
  [[gnu::format(printf, 3, 4)]] bool raise(abi::ErrorCode code, const char* pattern, ...) noexcept {
    va_list values;
    va_start(values, pattern);
    const bool first = raise_v(static_cast<std::int32_t>(code), pattern, values);
    va_end(values);
    return first;
  }
  bool raise_v(std::int32_t code, const char* pattern, va_list values) noexcept {
    std::uint32_t expected = kClear;
    if (!state_.compare_exchange_strong(expected, kWriting, std::memory_order_relaxed)) return false;
    code_ = code > 0 ? code : static_cast<std::int32_t>(abi::ErrorCode::EXPLICIT_ORCH_FATAL);
    const int length = std::vsnprintf(text_, kTextBytes, pattern, values);
    if (length >= static_cast<int>(kTextBytes)) std::snprintf(text_ + kTextBytes - 4, 4, "...");
    state_.store(kReady, std::memory_order_release);  // pairs with the acquire in ready()
    return true;
  }

  // Whether code and text may be read. Lags raised() by the formatting of the text.
  bool ready() const noexcept { return state_.load(std::memory_order_acquire) == kReady; }
  std::int32_t code() const noexcept { return code_; }
  const char* text() const noexcept { return text_; }

  void clear() noexcept {
    code_ = 0;
    text_[0] = '\0';
    state_.store(kClear, std::memory_order_relaxed);
  }

 private:
  enum : std::uint32_t { kClear, kWriting, kReady };
  std::atomic<std::uint32_t> state_{kClear};
  std::int32_t code_ = 0;
  char text_[kTextBytes] = {};
};

}  // namespace simpler::graph
