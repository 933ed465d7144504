// ClockSession: samples that tie the device's clock to the host's, taken before and after a run.
//
// What      A sample is an event on a stream with the host's time before and after it. Three are taken when the session
//           begins, three when it finishes well. Whoever needs to place device times on the host's axis reads them.
// Errors    A sample that failed carries its step and code; a session never fails a run.
// Threads   The runner serialises calls.
#pragma once
#include <cstdint>
#include <vector>

#include "host/device.h"

namespace simpler::host {

struct ClockSample {
  const char* position = "";  // "pre_host_orchestration" or "post_device_execution"
  int index = 0;
  std::int64_t host_before_ns = 0, host_after_ns = 0;
  std::uint64_t device_us = 0;
  const char* failed_step = "";  // "": the sample is good
  int code = 0;
};

class ClockSession {
 public:
  static constexpr int kSamples = 3;  // at each end

  explicit ClockSession(Device& device) : device_(device) {}
  void begin(driver::Stream* stream);
  // Takes the closing samples if the run ended well, and ends the session; without one it does nothing.
  void finish(driver::Stream* stream, bool complete);
  bool open() const { return open_; }
  const std::vector<ClockSample>& samples() const { return samples_; }  // until the next begin

 private:
  void capture(driver::Stream* stream, const char* position);

  Device& device_;
  bool open_ = false;
  std::vector<ClockSample> samples_;
};

}  // namespace simpler::host
