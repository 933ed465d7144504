// Collector: a tool that observes runs of a device, and Collectors: those of one runner.
//
// Protocol  For each run: prepare (get memory), start (just before the launch), stop (once, after the run or after its
//           launch failed; complete: whether it ended well), release (give the memory back). A collector whose prepare or
//           start failed is stopped and released too. A run that is observed has no successor prepared beside it.
// Memory    Through the allocator that prepare got; release() must let go of all of it. On a device in doubt frees forget.
// Threads   All calls come from the runner, serialised, on attached threads. make_thread() gives a collector a thread of
//           its own that is attached too; it must have ended when stop() returns.
// Lifetime  Borrowed by the runner from open() on.
#pragma once
#include <functional>
#include <thread>
#include <vector>

#include "host/device_memory.h"

namespace simpler::host {

class CollectorContext {
 public:
  explicit CollectorContext(Allocator& allocator) : allocator_(allocator) {}
  Allocator& allocator() const { return allocator_; }
  Device& device() const { return allocator_.device(); }
  // A thread that acts on the device, attached on return; it runs even if it cannot be attached, which is logged.
  std::thread make_thread(std::function<void()> function) const;

 private:
  Allocator& allocator_;
};

class Collector {
 public:
  virtual ~Collector() = default;
  virtual const char* name() const = 0;
  virtual bool wants_clock() const { return false; }  // samples that tie the device's clock to the host's
  virtual Status prepare(const CollectorContext& context) = 0;
  virtual Status start(const CollectorContext& context) = 0;
  virtual void stop(const CollectorContext& context, bool complete) = 0;
  virtual void release(const CollectorContext& context) = 0;
};

class Collectors {
 public:
  Collectors(Allocator& allocator, std::vector<Collector*> collectors)
      : context_(allocator), collectors_(std::move(collectors)) {}
  bool any() const { return !collectors_.empty(); }
  bool want_clock() const;
  Status prepare();
  Status start();
  void stop(bool complete);  // the started ones, in the order of starting
  void release();            // the prepared ones

 private:
  CollectorContext context_;
  const std::vector<Collector*> collectors_;
  std::size_t prepared_ = 0, started_ = 0;
};

}  // namespace simpler::host
