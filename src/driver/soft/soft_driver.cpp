#include "driver/soft/soft_driver.h"

#include <cstring>

#include "base/code_image.h"
#include "base/status.h"
#include "driver/soft/kernel_hooks.h"
#include "driver/soft/soft_memory.h"
#include "driver/soft/soft_stream.h"
#include "frontend/device_program.h"

namespace simpler::driver {

struct ChildCode {
  CodeImage image;
};

struct DeviceModule {
  std::unique_ptr<frontend::DeviceProgram> program;

  int call(DeviceFunction function, const std::string& payload, std::string* text) {
    int result = 0;
    switch (function) {
      case DeviceFunction::kInit: result = program->init(read<abi::InitArgs>(payload)); break;
      case DeviceFunction::kRegisterCallable:
        result = program->register_callable(read<abi::RegisterCallableArgs>(payload));
        break;
      case DeviceFunction::kUnregisterCallable:
        result = program->unregister_callable(read<std::int32_t>(payload));
        break;
      case DeviceFunction::kExecute:
        result = program->execute(*reinterpret_cast<abi::RunImage*>(read<std::uint64_t>(payload)));
        break;
    }
    if (result == 0) return kOk;
    *text = program->last_error();
    return kDeviceProgramFailed;
  }

 private:
  template <typename T> static T read(const std::string& payload) {
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
};

class SoftDriver::Impl {
 public:
  explicit Impl(SoftChip chip) : chip_(chip) {}

  Driver make_table() {
    Driver table{};
    table.name = "soft";
    table.self = this;
    table.set_device = [](void*, int device) {
      return device >= 0 ? kOk : fail(kInvalidParameter, format("device %d: ids start at 0", device));
    };
    table.reset_device = [](void*, int) { return kOk; };
    table.recent_error = [](void*) { return last_error().c_str(); };
    table.alloc = [](void* self, std::size_t bytes, std::uint64_t* address) {
      if (of(self).memory_.allocate(bytes, address)) return kOk;
      return fail(kOutOfMemory, format("the host cannot provide %zu bytes of device memory", bytes));
    };
    table.free = [](void* self, std::uint64_t address) {
      if (of(self).memory_.free(address)) return kOk;
      return fail(kInvalidParameter,
                  format("0x%llx is not the start of a live allocation: it was freed already, or never allocated here",
                         static_cast<unsigned long long>(address)));
    };
    table.copy_to_device = [](void* self, std::uint64_t destination, const void* source, std::size_t bytes) {
      const int code = of(self).check_range(destination, bytes, "copy to");
      if (code == kOk && bytes > 0) std::memcpy(reinterpret_cast<void*>(destination), source, bytes);
      return code;
    };
    table.copy_from_device = [](void* self, void* destination, std::uint64_t source, std::size_t bytes) {
      const int code = of(self).check_range(source, bytes, "copy from");
      if (code == kOk && bytes > 0) std::memcpy(destination, reinterpret_cast<const void*>(source), bytes);
      return code;
    };
    table.stream_create = [](void*, Stream** stream) {
      *stream = new Stream;
      return kOk;
    };
    table.stream_destroy = [](void*, Stream* stream) {
      delete stream;
      return kOk;
    };
    table.stream_sync = [](void*, Stream* stream, std::int64_t timeout_ms) {
      return report([&](std::string* text) { return stream->sync(stream->pushed(), timeout_ms, text); });
    };
    table.event_create = [](void*, Event** event) {
      *event = new Event;
      return kOk;
    };
    table.event_destroy = [](void*, Event* event) {
      delete event;
      return kOk;
    };
    table.event_record = [](void*, Event* event, Stream* stream) {
      *event = {stream, stream->pushed()};
      return kOk;
    };
    table.event_query = [](void*, Event* event) {
      if (event->stream == nullptr) return fail(kInvalidParameter, "the event was never recorded");
      return report([&](std::string* text) { return event->stream->query(event->target, text); });
    };
    table.event_sync = [](void*, Event* event, std::int64_t timeout_ms) {
      if (event->stream == nullptr) return fail(kInvalidParameter, "the event was never recorded");
      return report([&](std::string* text) { return event->stream->sync(event->target, timeout_ms, text); });
    };
    table.child_code_resolve = [](void* self, std::uint64_t address, std::size_t bytes, const char* label,
                                  std::uint64_t* entry,
                                  ChildCode** code) { return of(self).resolve(address, bytes, label, entry, code); };
    table.child_code_release = [](void*, ChildCode* code) {
      delete code;
      return kOk;
    };
    table.cpu_load = [](void* self, const char* runtime, DeviceModule** module) {
      auto program = frontend::load_program(runtime, {of(self).chip_.clusters, of(self).chip_.threads});
      if (program == nullptr)
        return fail(kInvalidParameter, format("there is no device program for the runtime \"%s\"", runtime));
      *module = new DeviceModule{std::move(program)};
      return kOk;
    };
    table.cpu_unload = [](void*, DeviceModule* module) {
      delete module;
      return kOk;
    };
    table.cpu_launch = [](void*, DeviceModule* module, DeviceFunction function, const void* payload, std::size_t bytes,
                          Stream* stream) {
      std::string copy(static_cast<const char*>(payload), bytes);
      stream->push([module, function, copy](std::string* text) { return module->call(function, copy, text); });
      return kOk;
    };
    return table;
  }

  const SoftMemory& memory() const { return memory_; }

 private:
  static Impl& of(void* self) { return *static_cast<Impl*>(self); }
  static std::string& last_error() {
    thread_local std::string text;
    return text;
  }
  static int fail(int code, std::string text) {
    last_error() = std::move(text);
    return code;
  }
  template <typename Call> static int report(Call call) {
    std::string text;
    const int code = call(&text);
    if (code != kOk) last_error() = std::move(text);
    return code;
  }

  int check_range(std::uint64_t address, std::size_t bytes, const char* what) const {
    if (bytes == 0) return kOk;
    std::size_t room = 0;
    if (!memory_.find(address, &room)) {
      return fail(kInvalidParameter, format("%s 0x%llx: no live allocation holds that address", what,
                                            static_cast<unsigned long long>(address)));
    }
    if (bytes > room) {
      return fail(kInvalidParameter,
                  format("%s 0x%llx: %zu bytes reach past the allocation, which ends %zu bytes from there", what,
                         static_cast<unsigned long long>(address), bytes, room));
    }
    return kOk;
  }

  int resolve(std::uint64_t address, std::size_t bytes, const char* label, std::uint64_t* entry,
              ChildCode** code) const {
    if (const int range = check_range(address, bytes, "code at"); range != kOk) return range;
    auto child = std::make_unique<ChildCode>();
    const Status status = CodeImage::load(reinterpret_cast<const void*>(address), bytes, label, &child->image);
    if (!status.ok()) return fail(kCodeInvalid, status.message());
    void* symbol = child->image.symbol("kernel_entry");
    if (symbol == nullptr) {
      return fail(
          kCodeInvalid,
          format("%s does not export kernel_entry: define extern \"C\" void kernel_entry(int64_t *args)", label));
    }
    register_kernel_hooks(child->image);
    *entry = reinterpret_cast<std::uint64_t>(symbol);
    *code = child.release();
    return kOk;
  }

  const SoftChip chip_;
  SoftMemory memory_;
};

SoftDriver::SoftDriver(SoftChip chip) : impl_(std::make_unique<Impl>(chip)), table_(impl_->make_table()) {}
SoftDriver::~SoftDriver() = default;
const Driver& SoftDriver::table() const { return table_; }
std::size_t SoftDriver::live_allocations() const { return impl_->memory().count(); }
std::size_t SoftDriver::live_bytes() const { return impl_->memory().total(); }

}  // namespace simpler::driver
