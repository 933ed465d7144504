#include "host/collector.h"

#include <algorithm>
#include <future>

#include "base/log.h"

namespace simpler::host {

std::thread CollectorContext::make_thread(std::function<void()> function) const {
  std::promise<void> attached;
  std::future<void> is_attached = attached.get_future();
  std::thread thread([&device = device(), function = std::move(function), attached = std::move(attached)]() mutable {
    if (const Status status = device.attach(); !status.ok())
      log::host(log::Level::kWarn, "make_thread", "a collector's thread has no device: %s", status.message().c_str());
    attached.set_value();
    function();
  });
  is_attached.wait();  // else its first call would fall before or after the launch by chance
  return thread;
}

bool Collectors::want_clock() const {
  return std::any_of(collectors_.begin(), collectors_.end(), [](const Collector* c) { return c->wants_clock(); });
}

Status Collectors::prepare() {
  while (prepared_ < collectors_.size()) {
    Collector* const collector = collectors_[prepared_++];
    if (Status status = collector->prepare(context_); !status.ok()) {
      release();
      return status;
    }
  }
  return Status();
}

Status Collectors::start() {
  while (started_ < prepared_) {
    Collector* const collector = collectors_[started_++];
    if (Status status = collector->start(context_); !status.ok()) {
      stop(false);
      return status;
    }
  }
  return Status();
}

void Collectors::stop(bool complete) {
  for (std::size_t i = 0; i < started_; ++i) collectors_[i]->stop(context_, complete);
  started_ = 0;
}

void Collectors::release() {
  stop(false);
  for (std::size_t i = 0; i < prepared_; ++i) collectors_[i]->release(context_);
  prepared_ = 0;
}

}  // namespace simpler::host
