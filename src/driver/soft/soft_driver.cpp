#include "driver/soft/soft_driver.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/soft/memory_calls.h"
#include "driver/soft/program_calls.h"
#include "driver/soft/soft_devices.h"
#include "driver/soft/stream_calls.h"
#include "driver/table.h"
#include "executor/arch_profile.h"

namespace simpler::driver {
namespace {

constexpr std::size_t kRegisterBytes = 0x1400;         // of one core's window
constexpr std::chrono::seconds kResetLimit{5};         // of waiting for work before a reset by force fails
constexpr std::chrono::seconds kDestructionLimit{10};  // of waiting for work before a device is left alone for good

}  // namespace

// The whole table: calls of the parts, and here those about the process, a device as a whole, and its topology. The parts
// are bases, so that one object has all calls.
class SoftDriver::Impl : public SoftDevices, public MemoryCalls, public StreamCalls, public ProgramCalls {
 public:
  Impl(SoftChip chip, SoftOptions options)
      : MemoryCalls(*this, options),
        StreamCalls(*this, chip),
        ProgramCalls(*this, *this, *this, chip),
        chip_(chip),
        options_(options) {}

  std::uint32_t capabilities() const {
    return kHostMapping | kSyncWindow | kCounterRegisters | options_.dma_engines * kDmaWorkspace0;
  }
  const char* recent_error() { return last_error().c_str(); }

  // ---- process ----

  int set_log_level(int level) {
    return level >= 0 && level <= 4 ? kOk : fail(kBadArgument, format("log level %d is outside 0..4", level));
  }
  int acl_init() {
    const std::lock_guard lock(mutex_);
    if (acl_ready_) return fail(kRepeatInitialize, "acl_init was called before");
    acl_ready_ = true;
    return kOk;
  }
  int acl_finalize() {
    const std::lock_guard lock(mutex_);
    if (!acl_ready_) return fail(kRepeatFinalize, "acl_init was not called, or acl_finalize was called before");
    acl_ready_ = false;
    return kOk;
  }

  // ---- device ----

  int set_device(int ordinal) { return set(ordinal); }
  int reset_device(int ordinal) {
    bool last = false;
    if (const int code = release(ordinal, &last); code != kOk || !last) return code;
    left_at_reset_ += end_generation(ordinal);
    return kOk;
  }
  int force_reset(int ordinal) {
    notice_abandoned();
    if (check_returns(ordinal) == kOk) await_idle(ordinal, kResetLimit);
    {
      const std::lock_guard lock(mutex_);  // one reset at a time
      if (const int code = check_held(ordinal); code != kOk) return code;
      notice_abandoned();
      if (works(ordinal)) abandon(ordinal, format("the program of device %d has not returned", ordinal));
      if (check_returns(ordinal) != kOk) {
        if (!options_.always_resets) return kInternalError;
        StreamCalls::leave_behind(ordinal, &left_behind_);
        ProgramCalls::leave_behind(ordinal, &left_behind_);
        MemoryCalls::leave_behind(ordinal);
      }
      release_all(ordinal);
    }
    end_generation(ordinal);
    return kOk;
  }
  int sync_device(std::int32_t timeout_ms) {
    if (timeout_ms < -1) return fail(kInvalidParameter, format("a limit of %d ms", timeout_ms));
    int ordinal = 0;
    const int state = context(&ordinal);
    if (state == kNoContext) return state;
    notice_abandoned();
    if (const int code = check_returns(ordinal); code != kOk) return code;
    const int first = wait_all(ordinal, timeout_ms);
    return state != kOk ? context(&ordinal) : first;
  }

  // ---- topology ----

  int cpu_mask(CpuMask kind, std::uint64_t* mask) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    if (kind != CpuMask::kOccupied) return fail(kUnsupported, "only the occupied control processors are known");
    *mask = 0xFF;  // two groups of four, as on the board
    return kOk;
  }
  int core_registers(CoreRegisters, std::uint64_t* addresses, int* count) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    const int cores = chip_.clusters * (1 + executor::kVectorLanes);
    if (*count < cores) return fail(kInvalidParameter, format("room for %d of %d cores", *count, cores));
    const std::lock_guard lock(mutex_);
    std::vector<char>& file = windows_[ordinal].registers;
    file.resize(static_cast<std::size_t>(cores) * kRegisterBytes);
    for (int i = 0; i < cores; ++i)
      addresses[i] = reinterpret_cast<std::uint64_t>(&file[static_cast<std::size_t>(i) * kRegisterBytes]);
    *count = cores;
    return kOk;
  }
  int sync_window(std::uint64_t* address) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    const std::lock_guard lock(mutex_);
    *address = reinterpret_cast<std::uint64_t>(&windows_[ordinal].sync_word);
    return kOk;
  }

  // ---- for tests and for the end ----

  SoftCensus census() const {
    SoftCensus census;
    MemoryCalls::count(&census);
    StreamCalls::count(&census);
    ProgramCalls::count(&census);
    census.left_at_reset = left_at_reset_;
    return census;
  }
  // Whether everything may be destroyed; waits for work that is about to end.
  bool ends() {
    notice_abandoned();
    return left_behind_.empty() && check_all_return() == kOk && all_idle(kDestructionLimit);
  }

 private:
  struct Windows {  // of a device, for as long as the object lives
    std::vector<char> registers;
    std::uint64_t sync_word = 0;
  };

  // Takes everything that a device has; how much there was. Streams first: they wait for their work.
  std::size_t end_generation(int ordinal) {
    forget_launches(ordinal);
    std::size_t left = StreamCalls::end_generation(ordinal);
    left += ProgramCalls::end_generation(ordinal);
    return left + MemoryCalls::end_generation(ordinal);
  }

  const SoftChip chip_;
  const SoftOptions options_;
  std::atomic<std::size_t> left_at_reset_{0};

  std::mutex mutex_;  // all below
  bool acl_ready_ = false;
  std::vector<std::shared_ptr<void>> left_behind_;
  std::map<int, Windows> windows_;
};

SoftDriver::SoftDriver(SoftChip chip, SoftOptions options)
    : impl_(std::make_unique<Impl>(chip, options)), table_(make_table("soft", impl_.get(), impl_->capabilities())) {}
SoftDriver::~SoftDriver() {
  if (!impl_->ends()) static_cast<void>(impl_.release());
}
const Driver& SoftDriver::table() const { return table_; }
SoftCensus SoftDriver::census() const { return impl_->census(); }
int SoftDriver::generation(int device) const { return impl_->generation(device); }

}  // namespace simpler::driver
