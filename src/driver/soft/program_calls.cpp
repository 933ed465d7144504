#include "driver/soft/program_calls.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <string_view>

#include "abi/kernel_args.h"
#include "abi/phase_buffer.h"
#include "driver/soft/kernel_hooks.h"

namespace simpler::driver {
namespace {

using Clock = SoftStream::Clock;

constexpr std::string_view kProgramPrefix = "simpler program of the software device: ";

enum class EntryKind { kInit, kExecute, kRegisterCallable, kUnregisterCallable };

template <typename T> T read(const std::string& payload) {
  T value;
  std::memcpy(&value, payload.data(), sizeof value);
  return value;
}

}  // namespace

std::string builtin_program(std::string_view runtime) { return std::string(kProgramPrefix) + std::string(runtime); }

// The entries of a program by their symbols; payloads are the structs of abi/.
struct ProgramCalls::Entry {
  std::string_view symbol;
  EntryKind kind;
  std::size_t payload_bytes;  // at least
};

const ProgramCalls::Entry* ProgramCalls::entry_named(std::string_view symbol) {
  static constexpr Entry kEntries[] = {
      {"simpler_aicpu_init", EntryKind::kInit, sizeof(abi::InitArgs)},
      {"simpler_aicpu_exec", EntryKind::kExecute, sizeof(std::uint64_t)},
      {"simpler_aicpu_register_callable", EntryKind::kRegisterCallable, sizeof(abi::RegisterCallableArgs)},
      {"simpler_aicpu_unregister_callable", EntryKind::kUnregisterCallable, sizeof(std::int32_t)},
  };
  for (const Entry& entry : kEntries) {
    if (entry.symbol == symbol) return &entry;
  }
  return nullptr;
}

ProgramCalls::ProgramCalls(SoftDevices& devices, MemoryCalls& memory, StreamCalls& streams, SoftChip chip)
    : devices_(devices),
      memory_(memory),
      streams_(streams),
      chip_(chip),
      arch_(*executor::find_arch(chip.arch)),
      images_(devices, "image"),
      codes_(devices, "kernel"),
      modules_(devices, "program"),
      functions_(devices, "function") {}

// ---- cores ----

int ProgramCalls::core_image_load(Binary image, CoreImage** handle) {
  if (image.data == nullptr || image.bytes == 0) return fail(kInvalidParameter, "the image of the cores is empty");
  return images_.add(std::make_shared<Image>(), handle);
}

int ProgramCalls::core_launch(CoreImage* image, int blocks, std::uint64_t arguments, Stream* on) {
  std::shared_ptr<Image> loaded;
  std::shared_ptr<SoftStream> stream;
  int ordinal = 0;
  if (const int code = images_.find(image, &loaded, &ordinal); code != kOk) return code;
  if (const int code = streams_.find_launchable(on, &stream, &ordinal); code != kOk) return code;
  if (blocks < 1 || blocks > chip_.clusters)
    return fail(kInvalidParameter, format("%d blocks on a chip of %d clusters", blocks, chip_.clusters));
  std::uint64_t run = 0;
  if (const int code = memory_.check_range(arguments, sizeof run, "arguments of the cores at"); code != kOk)
    return code;
  std::memcpy(&run, reinterpret_cast<const void*>(arguments), sizeof run);
  const std::lock_guard lock(mutex_);
  cores_[{ordinal, run}] = {stream, stream->push_hold()};
  return kOk;
}

int ProgramCalls::child_code_resolve(std::uint64_t address, std::size_t bytes, const char* label, std::uint64_t* entry,
                                     ChildCode** handle) {
  if (const int code = memory_.check_range(address, bytes, "code at"); code != kOk) return code;
  auto image = std::make_shared<CodeImage>();
  const Status status = CodeImage::load(reinterpret_cast<const void*>(address), bytes, label, image.get());
  if (!status.ok()) return fail(kInvalidFunction, status.message());
  void* symbol = image->symbol("kernel_entry");
  if (symbol == nullptr) {
    return fail(kInvalidFunction,
                format("%s does not export kernel_entry: define extern \"C\" void kernel_entry(int64_t *args)", label));
  }
  register_kernel_hooks(*image);
  *entry = reinterpret_cast<std::uint64_t>(symbol);
  return codes_.add(std::move(image), handle);
}

int ProgramCalls::child_code_release(ChildCode* handle) {
  std::shared_ptr<CodeImage> code;
  return codes_.take(handle, &code);
}

// ---- control processors ----

int ProgramCalls::cpu_bootstrap(Binary dispatcher, Binary program, std::uint64_t fingerprint, int ordinal, Stream* on) {
  std::shared_ptr<SoftStream> stream;
  int of_stream = 0;
  if (dispatcher.bytes == 0 || program.bytes == 0)
    return fail(kInvalidParameter, dispatcher.bytes == 0 ? "the dispatcher is empty" : "the program is empty");
  if (const int code = streams_.find_launchable(on, &stream, &of_stream); code != kOk) return code;
  const std::lock_guard lock(mutex_);
  files_[{ordinal, fingerprint}].assign(static_cast<const char*>(program.data), program.bytes);
  return kOk;
}

int ProgramCalls::cpu_load(std::uint64_t fingerprint, int ordinal, const char* const* symbols, int count,
                           CpuModule** handle) {
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
  return modules_.add(std::move(program), handle);
}

int ProgramCalls::cpu_unload(CpuModule* handle) {
  std::shared_ptr<Program> program;
  int ordinal = 0;
  if (const int code = modules_.find(handle, &program, &ordinal); code != kOk) return code;
  if (const int code = modules_.take(handle, &program); code != kOk) return code;
  functions_.take_if(ordinal, [&](const Function& function) { return function.program == program; });
  return kOk;
}

int ProgramCalls::cpu_function(CpuModule* handle, const char* symbol, CpuFunction** function) {
  std::shared_ptr<Program> program;
  int ordinal = 0;
  *function = nullptr;
  if (const int code = modules_.find(handle, &program, &ordinal); code != kOk) return code;
  const Entry* entry = entry_named(symbol);
  if (entry == nullptr) return fail(kInvalidParameter, format("the program has no entry %s", symbol));
  *function = functions_.add_of(ordinal, std::make_shared<Function>(Function{std::move(program), entry}));
  return kOk;
}

int ProgramCalls::cpu_launch(CpuFunction* handle, int threads, const void* payload, std::size_t bytes, Stream* on) {
  std::shared_ptr<SoftStream> stream;
  std::shared_ptr<Function> function;
  int ordinal = 0, of_function = 0;
  if (const int code = streams_.find_launchable(on, &stream, &ordinal); code != kOk) return code;
  if (const int code = functions_.find(handle, &function, &of_function); code != kOk) return code;
  if (threads < 1) return fail(kInvalidParameter, format("a launch on %d threads", threads));
  if (payload == nullptr || bytes < function->entry->payload_bytes)
    return fail(kInvalidParameter, format("%s takes %zu bytes and got %zu", function->entry->symbol.data(),
                                          function->entry->payload_bytes, payload == nullptr ? 0 : bytes));
  std::string copy(static_cast<const char*>(payload), bytes);
  stream->push([this, ordinal, function = std::move(function), copy = std::move(copy)](std::string* text) {
    return call(ordinal, *function, copy, text);
  });
  return kOk;
}

// ---- the program ----

// Runs an entry, on the stream's thread.
int ProgramCalls::call(int ordinal, const Function& function, const std::string& payload, std::string* text) {
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
int ProgramCalls::execute(int ordinal, Program& program, const std::string& args, std::string* text) {
  const std::uint64_t run = read<std::uint64_t>(args);
  auto& image = *reinterpret_cast<abi::RunImage*>(run);
  std::shared_ptr<SoftStream> stream;
  std::shared_ptr<SoftStream::Hold> hold;
  {
    const std::lock_guard lock(mutex_);
    auto launched = cores_.extract({ordinal, run});
    if (!launched.empty()) stream = launched.mapped().stream.lock();
    if (stream == nullptr) {
      *text = "no cores were launched for run " + hex(run);
      return kCpuException;
    }
    hold = std::move(launched.mapped().hold);
    executing_.emplace(ordinal, &image);
  }
  const std::uint64_t begin = counts_of(Clock::now().time_since_epoch());
  const int result = program.execute(image);
  leave_phases(args, image.result, begin);
  {
    const std::lock_guard lock(mutex_);
    notice_abandoned_locked();
    executing_.erase({ordinal, &image});
  }
  stream->end(*hold, kOk, "");
  if (result == 0) return kOk;
  *text = program.last_error();
  return kCpuException;
}

std::uint64_t ProgramCalls::counts_of(std::chrono::nanoseconds time) const {
  return static_cast<std::uint64_t>(static_cast<double>(time.count()) * static_cast<double>(arch_.counter_hz) / 1e9);
}

// Writes the run's times where its arguments want them.
void ProgramCalls::leave_phases(const std::string& args, const abi::RunResult& result, std::uint64_t begin) const {
  std::uint64_t buffer = 0;
  if (args.size() < arch_.kernel_args.bytes) return;
  std::memcpy(&buffer, args.data() + arch_.kernel_args.device_wall, sizeof buffer);
  if (buffer == 0) return;
  const auto at = [&](std::int64_t ns) { return begin + counts_of(std::chrono::nanoseconds(ns)); };
  char* const bytes = reinterpret_cast<char*>(buffer);
  abi::PhaseHeader header{};
  // Whether there was anything to leave.
  const auto leave = [&](std::size_t offset, std::size_t index, const abi::TimingWindow& window) {
    if (window.end_ns <= window.begin_ns) return false;
    const abi::PhaseSpan span{at(window.begin_ns), at(window.end_ns)};
    std::memcpy(bytes + offset + index * sizeof span, &span, sizeof span);
    return true;
  };
  const auto leave_phase = [&](abi::Phase phase, const abi::TimingWindow& window) {  // among those of the first thread
    leave(sizeof header, static_cast<std::size_t>(phase), window);
  };
  leave_phase(abi::Phase::kRunWall, {0, static_cast<std::int64_t>(result.wall_ns)});
  leave_phase(abi::Phase::kOrchWindow, result.orchestration);
  leave_phase(abi::Phase::kSchedWindow, result.scheduling);
  for (std::size_t slot = 0; slot < MAX_TASK_TIMING_SLOTS; ++slot) {
    if (leave(abi::phase_tail_offset(arch_.launch_threads), slot, result.timing_slots[slot])) header.tail_used = 1;
  }
  std::memcpy(bytes, &header, sizeof header);
}

void ProgramCalls::notice_abandoned() {
  const std::lock_guard lock(mutex_);
  notice_abandoned_locked();
}

void ProgramCalls::notice_abandoned_locked() {
  for (const auto& [ordinal, image] : executing_) {
    if (std::atomic_ref<std::uint32_t>(image->result.abandoned).load(std::memory_order_acquire) == 0) continue;
    devices_.abandon(ordinal,
                     format("a kernel or the orchestration of a failed run on device %d has not returned", ordinal));
  }
}

// ---- generations ----

void ProgramCalls::forget_launches(int ordinal) {
  const std::lock_guard lock(mutex_);
  std::erase_if(cores_, [&](const auto& cores) { return cores.first.first == ordinal; });
}

std::size_t ProgramCalls::end_generation(int ordinal) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(files_, [&](const auto& file) { return file.first.first == ordinal; });
  }
  functions_.take_all(ordinal);
  images_.take_all(ordinal);  // there is no way to unload them, so they do not count
  return modules_.take_all(ordinal).size() + codes_.take_all(ordinal).size();
}

void ProgramCalls::leave_behind(int ordinal, std::vector<std::shared_ptr<void>>* kept) {
  for (auto& program : modules_.take_all(ordinal)) kept->push_back(std::move(program));
  for (auto& code : codes_.take_all(ordinal)) kept->push_back(std::move(code));
  const std::lock_guard lock(mutex_);
  std::erase_if(executing_, [&](const auto& run) { return run.first == ordinal; });
}

void ProgramCalls::count(SoftCensus* census) const {
  census->modules = modules_.size();
  census->child_codes = codes_.size();
}

}  // namespace simpler::driver
