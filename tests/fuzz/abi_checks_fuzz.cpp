// Fuzz target: the validators of structs that come from outside. The first byte chooses the validator; what it accepts is
// then used through the accessors, which do not check. Built and run by tools/fuzz.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "abi/call_config.h"
#include "abi/chip_callable.h"
#include "abi/wire_tensor.h"

namespace {

using namespace simpler::abi;

void require(bool condition) {
  if (!condition) std::abort();
}

// Reads every byte, so that the address sanitizer sees what lies outside.
unsigned sum(const std::uint8_t* bytes, std::size_t count) {
  unsigned total = 0;
  for (std::size_t i = 0; i < count; ++i) total += bytes[i];
  return total;
}

unsigned use(const CoreCallable& core, const std::uint8_t* end) {
  require(core.sig_count >= 0 && core.sig_count <= kCoreMaxTensors);
  require(reinterpret_cast<const std::uint8_t*>(&core) + core.total_bytes() <= end);
  return sum(core.code(), core.binary_size);
}

unsigned chip_callable(const std::uint8_t* bytes, std::size_t count) {
  const Verdict verdict = check_chip_callable(bytes, count);
  require(std::strlen(verdict.text()) < 400);
  if (!verdict.ok()) return 0;
  const auto& chip = *reinterpret_cast<const ChipCallable*>(bytes);
  unsigned total = sum(chip.binary(), chip.binary_size);
  require(chip.func_name[chip.func_name_len] == '\0' && chip.config_name[chip.config_name_len] == '\0');
  require(chip.total_bytes() <= count);
  for (int i = 0; i < chip.child_count; ++i) total += use(*chip.child(i), bytes + count);
  return total;
}

unsigned core_callable(const std::uint8_t* bytes, std::size_t count) {
  return check_core_callable(bytes, count).ok() ? use(*reinterpret_cast<const CoreCallable*>(bytes), bytes + count) : 0;
}

template <typename T, typename Use>
unsigned fixed(const std::uint8_t* bytes, std::size_t count, Verdict (*check)(const T&), Use use) {
  T value;
  if (count < sizeof value) return 0;
  std::memcpy(&value, bytes, sizeof value);
  const Verdict verdict = check(value);
  require(std::strlen(verdict.text()) < 700);
  if (verdict.ok()) use(value);
  return 0;
}

void use_config(const CallConfig& config) {
  require(std::strlen(config.output_prefix) < kOutputPrefixBytes);
  require(!config.any_diagnostic() || config.output_prefix[0] != '\0');
}
void use_descriptor(const BufferDescriptor& descriptor) {
  require(descriptor.body_len <= kBufferBodyBytes &&
          std::strcmp(backend_name(descriptor.backend_kind), "UNKNOWN") != 0);
}
void use_tensor(const Tensor& tensor) {
  use_descriptor(tensor.buffer);
  const std::uint64_t extent = tensor.extent_elements();
  require(extent >= 1 && extent <= tensor.buffer.nbytes && tensor.byte_offset < tensor.buffer.nbytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0] % 6;
  const std::size_t count = size - 1;
  // The validators want alignment; a block of exactly `count` bytes, so that one byte too many is noticed.
  std::unique_ptr<std::uint8_t, decltype(&std::free)> copy(
      static_cast<std::uint8_t*>(std::malloc(count + (count == 0))), &std::free);
  if (count != 0) std::memcpy(copy.get(), data + 1, count);
  switch (choice) {
    case 0: return static_cast<int>(chip_callable(copy.get(), count) & 0);
    case 1: return static_cast<int>(core_callable(copy.get(), count) & 0);
    case 2: return static_cast<int>(fixed<CallConfig>(copy.get(), count, check_call_config, use_config));
    case 3: return static_cast<int>(fixed<RuntimeEnv>(copy.get(), count, check_runtime_env, [](const RuntimeEnv&) {}));
    case 4:
      return static_cast<int>(fixed<BufferDescriptor>(copy.get(), count, check_buffer_descriptor, use_descriptor));
    default: return static_cast<int>(fixed<Tensor>(copy.get(), count, check_tensor, use_tensor));
  }
}
