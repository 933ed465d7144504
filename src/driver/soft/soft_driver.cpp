#include "driver/soft/soft_driver.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "abi/kernel_args.h"
#include "abi/phase_buffer.h"
#include "abi/run_image.h"
#include "base/code_image.h"
#include "base/status.h"
#include "base/thread_serial.h"
#include "driver/soft/kernel_hooks.h"
#include "driver/soft/soft_handles.h"
#include "driver/soft/soft_memory.h"
#include "driver/soft/soft_stream.h"
#include "driver/table.h"
#include "executor/arch_profile.h"
#include "frontend/device_program.h"

namespace simpler::driver {
namespace {

using Clock = SoftStream::Clock;

constexpr std::string_view kProgramPrefix = "simpler program of the software device: ";
constexpr std::size_t kRegisterBytes = 0x1400;  // of one core's window
constexpr std::size_t kWorkspaceBytes = 64 * 1024;
constexpr std::chrono::seconds kResetLimit{5};         // of waiting for work before a reset by force fails
constexpr std::chrono::seconds kDestructionLimit{10};  // of waiting for work before a device is left alone for good

// The entries of a program by their symbols; payloads are the structs of abi/.
enum class EntryKind { kInit, kExecute, kRegisterCallable, kUnregisterCallable };
struct Entry {
  std::string_view symbol;
  EntryKind kind;
  std::size_t payload_bytes;  // at least
};
constexpr Entry kEntries[] = {
    {"simpler_aicpu_init", EntryKind::kInit, sizeof(abi::InitArgs)},
    {"simpler_aicpu_exec", EntryKind::kExecute, sizeof(std::uint64_t)},
    {"simpler_aicpu_register_callable", EntryKind::kRegisterCallable, sizeof(abi::RegisterCallableArgs)},
    {"simpler_aicpu_unregister_callable", EntryKind::kUnregisterCallable, sizeof(std::int32_t)},
};

const Entry* entry_named(std::string_view symbol) {
  for (const Entry& entry : kEntries) {
    if (entry.symbol == symbol) return &entry;
  }
  return nullptr;
}

std::string& last_error() {
  thread_local std::string text;
  return text;
}
int fail(int code, std::string text) {
  last_error() = std::move(text);
  return code;
}
std::string hex(std::uint64_t value) { return format("0x%llx", static_cast<unsigned long long>(value)); }

template <typename T> T read(const std::string& payload) {
  T value;
  std::memcpy(&value, payload.data(), sizeof value);
  return value;
}

using Program = frontend::DeviceProgram;
struct Function {
  std::shared_ptr<Program> program;
  const Entry* entry;
};
struct Image {};  // the simulated cores have their program built in
struct Workspaces {
  std::uint64_t addresses[2];
};

}  // namespace

class SoftDriver::Impl {
 public:
  Impl(SoftChip chip, SoftOptions options)
      : chip_(chip),
        arch_(*executor::find_arch(chip.arch)),
        options_(options),
        memory_(options.guard_bytes, options.byte_limit) {}

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

  int set_device(int ordinal) {
    if (ordinal < 0) return fail(kInvalidDevice, format("device %d: ids start at 0", ordinal));
    const std::lock_guard lock(mutex_);
    Device& device = devices_[ordinal];
    if (device.references++ == 0) ++device.generation;
    bindings_[thread_serial()] = {ordinal, device.generation};
    return kOk;
  }
  int reset_device(int ordinal) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = devices_.find(ordinal);
      if (found == devices_.end() || found->second.references == 0)
        return fail(kContextReleased, format("device %d is reset more often than it was set", ordinal));
      if (--found->second.references > 0) return kOk;
      if (found->second.abandoned) return fail(kDriverInternal, found->second.why);
    }
    end_generation(ordinal, true);
    return kOk;
  }
  int force_reset(int ordinal) {
    await_work(ordinal);
    {
      const std::lock_guard lock(mutex_);
      const auto found = devices_.find(ordinal);
      if (found == devices_.end() || found->second.references == 0)
        return fail(kContextReleased, format("device %d is not set", ordinal));
      Device& device = found->second;
      notice_abandoned(ordinal, device);
      if (!device.abandoned && works(ordinal)) {
        mark_sticky(device, format("the program of device %d has not returned", ordinal));
        device.abandoned = true;
      }
      if (device.abandoned && !options_.always_resets) return fail(kInternalError, device.why);
      if (device.abandoned) leave_behind(ordinal, device);
      device.references = 0;
      device.sticky = device.abandoned = false;
    }
    end_generation(ordinal, false);
    return kOk;
  }
  int sync_device(std::int32_t timeout_ms) {
    if (timeout_ms < -1) return fail(kInvalidParameter, format("a limit of %d ms", timeout_ms));
    int ordinal = 0;
    const int state = context(&ordinal);
    if (state == kNoContext) return state;
    std::vector<std::shared_ptr<SoftStream>> streams;
    {
      const std::lock_guard lock(mutex_);
      notice_abandoned(ordinal, devices_[ordinal]);
      if (devices_[ordinal].abandoned) return fail(kDriverInternal, devices_[ordinal].why);
      streams = streams_.all(ordinal);
    }
    int first = kOk;
    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    for (const auto& stream : streams) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      const int code = wait(ordinal, *stream, stream->pushed(), timeout_ms < 0 ? -1 : std::max<std::int64_t>(left, 0));
      if (first == kOk) first = code;
    }
    return state != kOk ? context(&ordinal) : first;
  }
  int set_op_timeout(std::uint64_t us, std::uint64_t* actual_us) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    if (actual_us == nullptr) return fail(kBadArgument, "set_op_timeout: no place for the actual limit");
    const std::lock_guard lock(mutex_);
    op_limit_ = std::chrono::microseconds(std::min<std::uint64_t>(us, INT64_MAX / 2000));
    *actual_us = us;
    return kOk;
  }

  // ---- memory ----

  int alloc(std::size_t bytes, std::uint64_t* address) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    if (memory_.allocate(bytes, address, ordinal)) return kOk;
    return fail(kOutOfMemory, format("device %d cannot provide %zu bytes of memory", ordinal, bytes));
  }
  int free(std::uint64_t address) {
    {
      const std::lock_guard lock(mutex_);
      if (mappings_.count(address) != 0) return fail(kInvalidParameter, hex(address) + " is mapped: unmap it first");
      for (const auto& [ordinal, device] : devices_) {
        if (device.abandoned) return fail(kDriverInternal, device.why);
      }
    }
    switch (memory_.free(address)) {
      case SoftMemory::Freed::kOk: return kOk;
      case SoftMemory::Freed::kDamaged:
        return fail(kMemoryFault, "somebody wrote past an end of the allocation at " + hex(address));
      case SoftMemory::Freed::kUnknown: break;
    }
    return fail(kInvalidParameter, hex(address) +
                                       " is not the start of a live allocation: it was freed already, or never "
                                       "allocated here");
  }
  int copy_to_device(std::uint64_t destination, const void* source, std::size_t bytes) {
    const int code = check_access(destination, bytes, "copy to");
    if (code == kOk && bytes > 0) std::memcpy(reinterpret_cast<void*>(destination), source, bytes);
    return code;
  }
  int copy_from_device(void* destination, std::uint64_t source, std::size_t bytes) {
    int ordinal = 0;
    int code = context(&ordinal);
    if (code == kDriverInternal && is_abandoned(ordinal)) code = kOk;  // how the run ended can still be read
    if (code == kOk) code = check_range(source, bytes, "copy from");
    if (code != kOk || bytes == 0) return code;
    if (bytes == sizeof(std::uint32_t) && source % bytes == 0) {  // one word, which the program may be writing
      const std::uint32_t word =
          std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(source)).load(std::memory_order_acquire);
      std::memcpy(destination, &word, sizeof word);
    } else {
      std::memcpy(destination, reinterpret_cast<const void*>(source), bytes);
    }
    return kOk;
  }
  int fill(std::uint64_t address, int value, std::size_t bytes) {
    const int code = check_access(address, bytes, "fill of");
    if (code == kOk && bytes > 0) std::memset(reinterpret_cast<void*>(address), value, bytes);
    return code;
  }
  int map_host(std::uint64_t address, std::size_t bytes, void** host) {
    int ordinal = 0;
    if (const int code = check_access(address, bytes, "mapping of"); code != kOk) return code;
    if (const int code = context(&ordinal); code != kOk) return code;
    const std::lock_guard lock(mutex_);
    if (!mappings_.emplace(address, ordinal).second)
      return fail(kInvalidParameter, hex(address) + " is mapped already");
    *host = reinterpret_cast<void*>(address);
    return kOk;
  }
  int unmap_host(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    return mappings_.erase(address) != 0 ? kOk : fail(kInvalidParameter, hex(address) + " is not mapped");
  }

  // ---- streams and events ----

  int stream_create(Stream** handle) {
    return create(streams_, handle, [] { return std::make_shared<SoftStream>(); });
  }
  int stream_destroy(Stream* handle) {
    std::shared_ptr<SoftStream> stream;  // waits outside of the lock
    if (const int code = destroy(streams_, handle, "stream", &stream); code != kOk) return code;
    const std::lock_guard lock(mutex_);
    std::erase_if(cores_, [&](const auto& cores) { return cores.second.stream == stream; });
    return kOk;
  }
  int stream_query(Stream* handle) {
    std::shared_ptr<SoftStream> stream;
    int ordinal = 0;
    if (const int code = find(streams_, handle, "stream", &stream, &ordinal); code != kOk) return code;
    reap(ordinal);
    return report([&](std::string* text) { return stream->query(stream->pushed(), text); });
  }
  int stream_sync(Stream* handle, std::int32_t timeout_ms) {
    if (timeout_ms < -1) return fail(kInvalidParameter, format("a limit of %d ms", timeout_ms));
    std::shared_ptr<SoftStream> stream;
    int ordinal = 0;
    if (const int code = find(streams_, handle, "stream", &stream, &ordinal); code != kOk) return code;
    return wait(ordinal, *stream, stream->pushed(), timeout_ms);
  }
  int stream_stop_on_failure(Stream* handle) {
    std::shared_ptr<SoftStream> stream;
    int ordinal = 0;
    return find(streams_, handle, "stream", &stream, &ordinal);
  }
  int stream_core_limits(Stream* handle, std::uint32_t* cube, std::uint32_t* vector) {
    std::shared_ptr<SoftStream> stream;
    int ordinal = 0;
    if (const int code = find(streams_, handle, "stream", &stream, &ordinal); code != kOk) return code;
    *cube = static_cast<std::uint32_t>(chip_.clusters);
    *vector = static_cast<std::uint32_t>(chip_.clusters * executor::kVectorLanes);
    return kOk;
  }
  int event_create(Event** handle) {
    return create(events_, handle, [] { return std::make_shared<SoftEvent>(); });
  }
  int event_destroy(Event* handle) {
    std::shared_ptr<SoftEvent> event;
    return destroy(events_, handle, "event", &event);
  }
  int event_record(Event* handle, Stream* on) {
    std::shared_ptr<SoftEvent> event;
    std::shared_ptr<SoftStream> stream;
    int ordinal = 0, other = 0;
    if (const int code = find(events_, handle, "event", &event, &ordinal); code != kOk) return code;
    if (const int code = find(streams_, on, "stream", &stream, &other); code != kOk) return code;
    if (ordinal != other) return fail(kWrongContext, "event and stream belong to different devices");
    auto mark = std::make_shared<SoftStream::Mark>();
    stream->push_mark(mark);
    const std::lock_guard lock(mutex_);
    *event = {on, std::move(mark)};
    return kOk;
  }
  int event_sync(Event* handle, std::int32_t timeout_ms) {
    std::shared_ptr<SoftStream> stream;
    std::shared_ptr<SoftStream::Mark> mark;
    int ordinal = 0;
    if (const int code = recorded(handle, &stream, &mark, &ordinal); code != kOk) return code;
    const int code = wait(ordinal, *stream, stream->target_of(*mark), timeout_ms);
    return code == kSyncTimeout ? kEventSyncTimeout : code;
  }
  int event_timestamp(Event* handle, std::uint64_t* micros) {
    std::shared_ptr<SoftStream> stream;
    std::shared_ptr<SoftStream::Mark> mark;
    int ordinal = 0;
    if (const int code = recorded(handle, &stream, &mark, &ordinal); code != kOk) return code;
    const std::optional<Clock::time_point> time = stream->time_of(*mark);
    if (!time) return fail(kEventNotRecorded, "the stream has not reached the event yet");
    *micros = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time->time_since_epoch()).count());
    return kOk;
  }

  // ---- cores ----

  int core_image_load(Binary image, CoreImage** handle) {
    if (image.data == nullptr || image.bytes == 0) return fail(kInvalidParameter, "the image of the cores is empty");
    return create(images_, handle, [] { return std::make_shared<Image>(); });
  }
  int core_launch(CoreImage* image, int blocks, std::uint64_t arguments, Stream* on) {
    std::shared_ptr<Image> loaded;
    std::shared_ptr<SoftStream> stream;
    int ordinal = 0;
    if (const int code = find(images_, image, "image", &loaded, &ordinal); code != kOk) return code;
    if (const int code = launchable(on, &stream, &ordinal); code != kOk) return code;
    if (blocks < 1 || blocks > chip_.clusters)
      return fail(kInvalidParameter, format("%d blocks on a chip of %d clusters", blocks, chip_.clusters));
    std::uint64_t run = 0;
    if (const int code = check_range(arguments, sizeof run, "arguments of the cores at"); code != kOk) return code;
    std::memcpy(&run, reinterpret_cast<const void*>(arguments), sizeof run);
    const std::lock_guard lock(mutex_);
    cores_[{ordinal, run}] = {stream, stream->push_hold()};
    return kOk;
  }
  int child_code_resolve(std::uint64_t address, std::size_t bytes, const char* label, std::uint64_t* entry,
                         ChildCode** handle) {
    if (const int code = check_range(address, bytes, "code at"); code != kOk) return code;
    auto image = std::make_shared<CodeImage>();
    const Status status = CodeImage::load(reinterpret_cast<const void*>(address), bytes, label, image.get());
    if (!status.ok()) return fail(kInvalidFunction, status.message());
    void* symbol = image->symbol("kernel_entry");
    if (symbol == nullptr) {
      return fail(
          kInvalidFunction,
          format("%s does not export kernel_entry: define extern \"C\" void kernel_entry(int64_t *args)", label));
    }
    register_kernel_hooks(*image);
    *entry = reinterpret_cast<std::uint64_t>(symbol);
    return create(codes_, handle, [&] { return std::move(image); });
  }
  int child_code_release(ChildCode* handle) {
    std::shared_ptr<CodeImage> code;
    return destroy(codes_, handle, "kernel", &code);
  }

  // ---- control processors ----

  int cpu_bootstrap(Binary dispatcher, Binary program, std::uint64_t fingerprint, int ordinal, Stream* on) {
    std::shared_ptr<SoftStream> stream;
    int of_stream = 0;
    if (dispatcher.bytes == 0 || program.bytes == 0)
      return fail(kInvalidParameter, dispatcher.bytes == 0 ? "the dispatcher is empty" : "the program is empty");
    if (const int code = launchable(on, &stream, &of_stream); code != kOk) return code;
    const std::lock_guard lock(mutex_);
    files_[{ordinal, fingerprint}].assign(static_cast<const char*>(program.data), program.bytes);
    return kOk;
  }
  int cpu_load(std::uint64_t fingerprint, int ordinal, const char* const* symbols, int count, CpuModule** handle) {
    std::string file;
    {
      const std::lock_guard lock(mutex_);
      const auto found = files_.find({ordinal, fingerprint});
      if (found == files_.end())
        return fail(kInvalidParameter, format("device %d has no program %s", ordinal, hex(fingerprint).c_str()));
      file = found->second;
    }
    if (file.compare(0, kProgramPrefix.size(), kProgramPrefix) != 0)
      return fail(kInvalidFunction, "the program is not one of the software device's");
    for (int i = 0; i < count; ++i) {
      if (entry_named(symbols[i]) == nullptr)
        return fail(kInvalidParameter, format("the program has no entry %s", symbols[i]));
    }
    const std::string runtime = file.substr(kProgramPrefix.size());
    std::shared_ptr<Program> program = frontend::load_program(runtime, {chip_.clusters, chip_.threads});
    if (program == nullptr)
      return fail(kInvalidParameter, format("there is no device program for the runtime \"%s\"", runtime.c_str()));
    return create(modules_, handle, [&] { return std::move(program); });
  }
  int cpu_unload(CpuModule* handle) {
    std::shared_ptr<Program> program;
    const std::uintptr_t module = reinterpret_cast<std::uintptr_t>(handle);
    if (const int code = destroy(modules_, handle, "program", &program); code != kOk) return code;
    const std::lock_guard lock(mutex_);
    std::erase_if(functions_, [&](const auto& entry) { return entry.second.module == module; });
    return kOk;
  }
  int cpu_function(CpuModule* handle, const char* symbol, CpuFunction** function) {
    std::shared_ptr<Program> program;
    int ordinal = 0;
    *function = nullptr;
    if (const int code = find(modules_, handle, "program", &program, &ordinal); code != kOk) return code;
    const Entry* entry = entry_named(symbol);
    if (entry == nullptr) return fail(kInvalidParameter, format("the program has no entry %s", symbol));
    const std::lock_guard lock(mutex_);
    functions_[++last_function_] = {reinterpret_cast<std::uintptr_t>(handle), {std::move(program), entry}};
    *function = reinterpret_cast<CpuFunction*>(last_function_);
    return kOk;
  }
  int cpu_launch(CpuFunction* handle, int threads, const void* payload, std::size_t bytes, Stream* on) {
    std::shared_ptr<SoftStream> stream;
    int ordinal = 0;
    if (const int code = launchable(on, &stream, &ordinal); code != kOk) return code;
    Function function;
    {
      const std::lock_guard lock(mutex_);
      const auto found = functions_.find(reinterpret_cast<std::uintptr_t>(handle));
      if (found == functions_.end()) return fail(kInvalidHandle, "the function's program was unloaded");
      function = found->second.function;
    }
    if (threads < 1) return fail(kInvalidParameter, format("a launch on %d threads", threads));
    if (payload == nullptr || bytes < function.entry->payload_bytes)
      return fail(kInvalidParameter, format("%s takes %zu bytes and got %zu", function.entry->symbol.data(),
                                            function.entry->payload_bytes, payload == nullptr ? 0 : bytes));
    std::string copy(static_cast<const char*>(payload), bytes);
    stream->push([this, ordinal, function = std::move(function), copy = std::move(copy)](std::string* text) {
      return call(ordinal, function, copy, text);
    });
    return kOk;
  }

  // ---- topology, DMA ----

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
    std::vector<char>& file = devices_[ordinal].registers;
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
    *address = reinterpret_cast<std::uint64_t>(&devices_[ordinal].sync_word);
    return kOk;
  }
  int dma_provision(std::uint32_t mask, std::uint64_t addresses[2], DmaWorkspaces** handle) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    if (mask == 0 || (mask & ~options_.dma_engines) != 0)
      return fail(kUnsupported, format("DMA engines 0x%x of 0x%x", mask, options_.dma_engines));
    auto workspaces = std::make_shared<Workspaces>();
    for (int engine = 0; engine < 2; ++engine) {
      std::uint64_t& address = workspaces->addresses[engine];
      address = 0;
      if ((mask >> engine & 1) == 0 || memory_.allocate(kWorkspaceBytes, &address, ordinal)) continue;
      if (engine == 1 && workspaces->addresses[0] != 0) memory_.free(workspaces->addresses[0]);
      return fail(kOutOfMemory, "no memory for the workspace of a DMA engine");
    }
    addresses[0] = workspaces->addresses[0];
    addresses[1] = workspaces->addresses[1];
    return create(workspaces_, handle, [&] { return std::move(workspaces); });
  }
  int dma_release(DmaWorkspaces* handle) {
    std::shared_ptr<Workspaces> workspaces;
    if (const int code = destroy(workspaces_, handle, "workspace", &workspaces); code != kOk) return code;
    for (const std::uint64_t address : workspaces->addresses) {
      if (address != 0) memory_.free(address);
    }
    return kOk;
  }

  // ---- for tests and for the end ----

  SoftCensus census() const {
    const std::lock_guard lock(mutex_);
    return {memory_.count(), memory_.total(),  streams_.size(),    events_.size(), modules_.size(),
            codes_.size(),   mappings_.size(), workspaces_.size(), left_at_reset_};
  }
  int generation(int ordinal) const {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(ordinal);
    return found == devices_.end() ? -1 : static_cast<int>(found->second.generation);
  }
  // Whether everything may be destroyed; waits for work that is about to end.
  bool ends() {
    if (!left_behind_.empty()) return false;
    for (auto& [ordinal, device] : devices_) {
      notice_abandoned(ordinal, device);
      if (device.abandoned) return false;
      for (const auto& stream : streams_.all(ordinal)) {
        if (!stream->idle_by(Clock::now() + kDestructionLimit)) return false;
      }
    }
    return true;
  }

 private:
  struct SoftEvent {
    Stream* stream = nullptr;  // nullptr until recorded
    std::shared_ptr<SoftStream::Mark> mark;
  };
  struct Device {
    int references = 0;
    std::uint64_t generation = 0;
    bool sticky = false;     // kDriverInternal for everything
    bool abandoned = false;  // a kernel or an orchestration runs in it for good
    std::set<abi::RunImage*> executing;
    std::string why;
    std::vector<char> registers;
    std::uint64_t sync_word = 0;
  };
  struct Binding {
    int ordinal = 0;
    std::uint64_t generation = 0;
  };
  struct Cores {
    std::shared_ptr<SoftStream> stream;
    std::shared_ptr<SoftStream::Hold> hold;
  };
  struct FunctionEntry {
    std::uintptr_t module;
    Function function;
  };

  template <typename Call> static int report(Call call) {
    std::string text;
    const int code = call(&text);
    if (code != kOk) last_error() = std::move(text);
    return code;
  }

  // The device that the calling thread acts on. *ordinal is set for kDriverInternal too.
  int context(int* ordinal) {
    const std::lock_guard lock(mutex_);
    const auto found = bindings_.find(thread_serial());
    if (found == bindings_.end()) return fail(kNoContext, "this thread has not called set_device");
    const Device& device = devices_[found->second.ordinal];
    *ordinal = found->second.ordinal;
    if (device.references == 0 || device.generation != found->second.generation)
      return fail(kNoContext, "the device was reset after this thread had set it");
    return device.sticky ? fail(kDriverInternal, device.why) : kOk;
  }

  template <class Table, class Handle, class Make> int create(Table& table, Handle** handle, Make make) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    auto object = make();
    const std::lock_guard lock(mutex_);
    *handle = table.add(ordinal, std::move(object));
    return kOk;
  }
  template <class Table, class Handle, class Object> int find(const Table& table, const Handle* handle,
                                                              const char* what, std::shared_ptr<Object>* object,
                                                              int* ordinal) const {
    const std::lock_guard lock(mutex_);
    *object = table.find(handle, ordinal);
    return *object != nullptr
               ? kOk
               : fail(kInvalidHandle, format("the handle names no live %s: destroyed, or its device was reset", what));
  }
  // The caller lets the object go, outside of the lock. What a device in error may still use stays.
  template <class Table, class Handle, class Object>
  int destroy(Table& table, const Handle* handle, const char* what, std::shared_ptr<Object>* object) {
    int ordinal = 0;
    if (const int code = find(table, handle, what, object, &ordinal); code != kOk) return code;
    const std::lock_guard lock(mutex_);
    if (devices_[ordinal].abandoned) {
      object->reset();
      return fail(kDriverInternal, devices_[ordinal].why);
    }
    table.erase(handle);
    return kOk;
  }
  int launchable(Stream* handle, std::shared_ptr<SoftStream>* stream, int* ordinal) {
    if (const int code = find(streams_, handle, "stream", stream, ordinal); code != kOk) return code;
    const std::lock_guard lock(mutex_);
    const Device& device = devices_[*ordinal];
    return device.sticky ? fail(kDriverInternal, device.why) : kOk;
  }
  int recorded(Event* handle, std::shared_ptr<SoftStream>* stream, std::shared_ptr<SoftStream::Mark>* mark,
               int* ordinal) {
    std::shared_ptr<SoftEvent> event;
    if (const int code = find(events_, handle, "event", &event, ordinal); code != kOk) return code;
    Stream* on = nullptr;
    {
      const std::lock_guard lock(mutex_);
      on = event->stream;
      *mark = event->mark;
    }
    if (on == nullptr) return fail(kEventNotRecorded, "the event was never recorded");
    return find(streams_, on, "stream", stream, ordinal);
  }

  int check_range(std::uint64_t address, std::size_t bytes, const char* what) const {
    if (bytes == 0) return kOk;
    std::size_t room = 0;
    if (!memory_.find(address, &room))
      return fail(kInvalidParameter,
                  format("%s %s: no live allocation holds that address", what, hex(address).c_str()));
    if (bytes > room) {
      return fail(kInvalidParameter,
                  format("%s %s: %zu bytes reach past the allocation, which ends %zu bytes from there", what,
                         hex(address).c_str(), bytes, room));
    }
    return kOk;
  }
  int check_access(std::uint64_t address, std::size_t bytes, const char* what) {
    int ordinal = 0;
    if (const int code = context(&ordinal); code != kOk) return code;
    return check_range(address, bytes, what);
  }

  // ---- time limits ----

  // Fails cores that were busy for too long, which puts their device in error.
  void reap(int ordinal) {
    std::vector<std::shared_ptr<SoftStream>> streams;
    std::chrono::microseconds limit;
    {
      const std::lock_guard lock(mutex_);
      limit = op_limit_;
      if (limit.count() == 0) return;
      streams = streams_.all(ordinal);
    }
    for (const auto& stream : streams) {
      if (!stream->reap(limit)) continue;
      const std::lock_guard lock(mutex_);
      mark_sticky(devices_[ordinal], format("a program of device %d ran past the limit for operations", ordinal));
    }
  }
  // When a hold on the device may have to be reaped at the earliest.
  Clock::time_point reap_time(int ordinal, Clock::time_point now) const {
    const std::lock_guard lock(mutex_);
    if (op_limit_.count() == 0) return Clock::time_point::max();
    Clock::time_point first = now + op_limit_;
    for (const auto& stream : streams_.all(ordinal)) {
      if (const auto begin = stream->held_since()) first = std::min(first, *begin + op_limit_);
    }
    return first;
  }
  int wait(int ordinal, SoftStream& stream, std::uint64_t target, std::int64_t timeout_ms) {
    const Clock::time_point start = Clock::now();
    const Clock::time_point deadline =
        timeout_ms < 0 ? Clock::time_point::max() : start + std::chrono::milliseconds(timeout_ms);
    for (;;) {
      const Clock::time_point now = Clock::now();
      const Clock::time_point reap_at = reap_time(ordinal, now);
      const Clock::time_point until = std::min(deadline, reap_at);
      const int code = report([&](std::string* text) { return stream.sync(target, until, text); });
      if (code != kSyncTimeout) return code;
      if (until == deadline)
        return fail(kSyncTimeout, format("the stream has work left after %lld ms", static_cast<long long>(timeout_ms)));
      reap(ordinal);
    }
  }

  bool is_abandoned(int ordinal) {
    const std::lock_guard lock(mutex_);
    return devices_[ordinal].abandoned;
  }

  // Gives work that is about to end the time for it, unless it is known that it never does.
  void await_work(int ordinal) {
    std::vector<std::shared_ptr<SoftStream>> streams;
    {
      const std::lock_guard lock(mutex_);
      notice_abandoned(ordinal, devices_[ordinal]);
      if (devices_[ordinal].abandoned) return;
      streams = streams_.all(ordinal);
    }
    for (const auto& stream : streams) stream->idle_by(Clock::now() + kResetLimit);
  }

  // ---- under the lock ----

  static void mark_sticky(Device& device, std::string why) {
    if (device.sticky) return;
    device.sticky = true;
    device.why = std::move(why);
  }
  // The program says so in a run's result, perhaps while the run's orchestration still runs.
  static void notice_abandoned(int ordinal, Device& device) {
    for (abi::RunImage* image : device.executing) {
      if (std::atomic_ref<std::uint32_t>(image->result.abandoned).load(std::memory_order_acquire) == 0) continue;
      mark_sticky(device,
                  format("a kernel or the orchestration of a failed run on device %d has not returned", ordinal));
      device.abandoned = true;
    }
  }
  bool works(int ordinal) const {
    const auto streams = streams_.all(ordinal);
    return std::any_of(streams.begin(), streams.end(), [](const auto& stream) { return stream->working(); });
  }

  // ---- the program ----

  // Runs an entry, on the stream's thread.
  int call(int ordinal, const Function& function, const std::string& payload, std::string* text) {
    Program& program = *function.program;
    int result = 0;
    switch (function.entry->kind) {
      case EntryKind::kInit: result = program.init(read<abi::InitArgs>(payload)); break;
      case EntryKind::kRegisterCallable:
        result = program.register_callable(read<abi::RegisterCallableArgs>(payload));
        break;
      case EntryKind::kUnregisterCallable: result = program.unregister_callable(read<std::int32_t>(payload)); break;
      case EntryKind::kExecute: return execute(ordinal, program, payload, text);
    }
    if (result == 0) return kOk;
    *text = program.last_error();
    return kCpuException;
  }
  // `args`: a KernelArgs; its first word is the address of the run's image.
  int execute(int ordinal, Program& program, const std::string& args, std::string* text) {
    const std::uint64_t run = read<std::uint64_t>(args);
    Cores cores;
    {
      const std::lock_guard lock(mutex_);
      auto launched = cores_.extract({ordinal, run});
      if (launched.empty()) {
        *text = "no cores were launched for run " + hex(run);
        return kCpuException;
      }
      cores = std::move(launched.mapped());
      devices_[ordinal].executing.insert(reinterpret_cast<abi::RunImage*>(run));
    }
    auto& image = *reinterpret_cast<abi::RunImage*>(run);
    const std::uint64_t begin = counts_of(Clock::now().time_since_epoch());
    const int result = program.execute(image);
    leave_phases(args, image.result, begin);
    {
      const std::lock_guard lock(mutex_);
      notice_abandoned(ordinal, devices_[ordinal]);
      devices_[ordinal].executing.erase(&image);
    }
    cores.stream->end(*cores.hold, kOk, "");
    if (result == 0) return kOk;
    *text = program.last_error();
    return kCpuException;
  }

  std::uint64_t counts_of(std::chrono::nanoseconds time) const {
    return static_cast<std::uint64_t>(static_cast<double>(time.count()) * static_cast<double>(arch_.counter_hz) / 1e9);
  }
  // Writes the run's times where its arguments want them.
  void leave_phases(const std::string& args, const abi::RunResult& result, std::uint64_t begin) const {
    std::uint64_t buffer = 0;
    if (args.size() < arch_.kernel_args.bytes) return;
    std::memcpy(&buffer, args.data() + arch_.kernel_args.device_wall, sizeof buffer);
    if (buffer == 0) return;
    const auto at = [&](std::int64_t ns) { return begin + counts_of(std::chrono::nanoseconds(ns)); };
    char* const bytes = reinterpret_cast<char*>(buffer);
    abi::PhaseHeader header{};
    const abi::PhaseSpan wall{begin, at(static_cast<std::int64_t>(result.wall_ns))};
    std::memcpy(bytes + sizeof header, &wall, sizeof wall);
    for (int slot = 0; slot < MAX_TASK_TIMING_SLOTS; ++slot) {
      const abi::TimingWindow& window = result.timing_slots[slot];
      if (window.end_ns <= window.begin_ns) continue;
      header.tail_used = 1;
      const abi::PhaseSpan span{at(window.begin_ns), at(window.end_ns)};
      std::memcpy(bytes + abi::phase_tail_offset(arch_.launch_threads) + static_cast<std::size_t>(slot) * sizeof span,
                  &span, sizeof span);
    }
    std::memcpy(bytes, &header, sizeof header);
  }

  // Keeps what a program that does not return may still use, for good.
  void leave_behind(int ordinal, Device& device) {
    for (auto& stream : streams_.take_all(ordinal)) left_behind_.push_back(std::move(stream));
    for (auto& program : modules_.take_all(ordinal)) left_behind_.push_back(std::move(program));
    for (auto& code : codes_.take_all(ordinal)) left_behind_.push_back(std::move(code));
    memory_.leave_behind(ordinal);
    device.executing.clear();
  }

  // Takes everything that a device has. Streams first: they wait for their work.
  void end_generation(int ordinal, bool count) {
    std::vector<std::shared_ptr<SoftStream>> streams;
    std::vector<std::shared_ptr<Program>> programs;
    std::vector<std::shared_ptr<CodeImage>> codes;
    std::size_t left = 0;
    {
      const std::lock_guard lock(mutex_);
      streams = streams_.take_all(ordinal);
      std::erase_if(cores_, [&](const auto& cores) { return cores.first.first == ordinal; });
      left = streams.size() + events_.take_all(ordinal).size() + workspaces_.take_all(ordinal).size() +
             std::erase_if(mappings_, [&](const auto& mapping) { return mapping.second == ordinal; });
      std::erase_if(functions_, [&](const auto& entry) {
        int of_module = 0;
        return modules_.find(reinterpret_cast<CpuModule*>(entry.second.module), &of_module) == nullptr ||
               of_module == ordinal;
      });
      programs = modules_.take_all(ordinal);
      codes = codes_.take_all(ordinal);
      left += programs.size() + codes.size();
      static_cast<void>(images_.take_all(ordinal));  // there is no way to unload them
      std::erase_if(files_, [&](const auto& file) { return file.first.first == ordinal; });
      std::erase_if(bindings_, [&](const auto& binding) { return binding.second.ordinal == ordinal; });
    }
    streams.clear();
    programs.clear();
    codes.clear();
    left += memory_.free_all(ordinal);
    const std::lock_guard lock(mutex_);
    if (count) left_at_reset_ += left;
  }

  const SoftChip chip_;
  const executor::ArchProfile& arch_;
  const SoftOptions options_;
  SoftMemory memory_;

  mutable std::mutex mutex_;  // all below; never held during work or waiting
  bool acl_ready_ = false;
  std::chrono::microseconds op_limit_{0};
  std::size_t left_at_reset_ = 0;
  std::vector<std::shared_ptr<void>> left_behind_;
  std::map<int, Device> devices_;
  std::unordered_map<std::uint64_t, Binding> bindings_;  // by thread
  HandleTable<SoftStream, Stream> streams_;
  HandleTable<SoftEvent, Event> events_;
  HandleTable<Image, CoreImage> images_;
  HandleTable<CodeImage, ChildCode> codes_;
  HandleTable<Program, CpuModule> modules_;
  HandleTable<Workspaces, DmaWorkspaces> workspaces_;
  std::map<std::uintptr_t, FunctionEntry> functions_;
  std::uintptr_t last_function_ = 0xFFF;
  std::map<std::uint64_t, int> mappings_;                       // address -> device
  std::map<std::pair<int, std::uint64_t>, std::string> files_;  // by device and fingerprint
  std::map<std::pair<int, std::uint64_t>, Cores> cores_;        // launched, by device and run
};

SoftDriver::SoftDriver(SoftChip chip, SoftOptions options)
    : impl_(std::make_unique<Impl>(chip, options)), table_(make_table("soft", impl_.get(), impl_->capabilities())) {}
SoftDriver::~SoftDriver() {
  if (!impl_->ends()) static_cast<void>(impl_.release());
}
const Driver& SoftDriver::table() const { return table_; }
SoftCensus SoftDriver::census() const { return impl_->census(); }
int SoftDriver::generation(int device) const { return impl_->generation(device); }

std::string builtin_program(std::string_view runtime) { return std::string(kProgramPrefix) + std::string(runtime); }

}  // namespace simpler::driver
