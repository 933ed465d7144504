// The validators of structs that come from outside. Sizes and offsets are asserted in the headers themselves.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "abi/call_config.h"
#include "abi/chip_callable.h"
#include "abi/wire_tensor.h"
#include "data_type.h"

namespace simpler::abi {
namespace {

// ---- callables ----

// A valid block: an orchestration of 10 bytes and two children of 5 and 70 bytes, in storage that tests damage.
class Blob {
 public:
  Blob() : words_((kBytes + 15) / 8), bytes_(kBytes) {
    ChipCallable& chip = header();
    chip.sig_count = 2;
    chip.signature[0] = 1;
    chip.signature[1] = 2;
    chip.binary_size = 10;
    std::strcpy(chip.func_name, "entry");
    chip.func_name_len = 5;
    chip.child_count = 2;
    chip.child_func_ids[0] = 3;
    chip.child_func_ids[1] = 1023;
    chip.child_offsets[0] = 64;
    chip.child_offsets[1] = kSecondChild;
    child(0).binary_size = 5;
    child(1).binary_size = kSecondCode;
  }
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
  ChipCallable& header() { return *reinterpret_cast<ChipCallable*>(data()); }
  CoreCallable& child(int i) {
    return *reinterpret_cast<CoreCallable*>(data() + sizeof(ChipCallable) + (i == 0 ? 64 : kSecondChild));
  }
  std::size_t bytes() const { return bytes_; }
  Verdict check() { return check_chip_callable(data(), bytes_); }
  void set_bytes(std::size_t bytes) { bytes_ = bytes; }

 private:
  static constexpr std::uint32_t kSecondChild = 320, kSecondCode = 70;
  static constexpr std::size_t kBytes = sizeof(ChipCallable) + kSecondChild + kCoreCodeOffset + kSecondCode;
  std::vector<std::uint64_t> words_;
  std::size_t bytes_;
};

TEST(ChipCallableCheck, AcceptsAValidBlockAndKnowsItsEnd) {
  Blob blob;
  EXPECT_TRUE(blob.check().ok()) << blob.check().text();
  EXPECT_EQ(blob.header().total_bytes(), blob.bytes());
  EXPECT_EQ(blob.header().child(1)->binary_size, 70u);
}

struct Damage {
  const char* word;  // must be in the verdict
  std::function<void(Blob&)> apply;
};

TEST(ChipCallableCheck, NamesEachKindOfDamage) {
  const Damage damages[] = {
      {"header alone", [](Blob& b) { b.set_bytes(sizeof(ChipCallable) - 1); }},
      {"signature count", [](Blob& b) { b.header().sig_count = 257; }},
      {"signature count", [](Blob& b) { b.header().sig_count = -1; }},
      {"signature[1]", [](Blob& b) { b.header().signature[1] = 4; }},
      {"binary_size", [](Blob& b) { b.header().binary_size = 0xFFFFFFFF; }},
      {"func_name", [](Blob& b) { b.header().func_name_len = 64; }},
      {"func_name", [](Blob& b) { b.header().func_name_len = 4; }},
      {"func_name", [](Blob& b) { std::memset(b.header().func_name, 'x', 64); }},
      {"config_name", [](Blob& b) { b.header().config_name_len = 0xFFFFFFFF; }},
      {"child count", [](Blob& b) { b.header().child_count = 1025; }},
      {"child count", [](Blob& b) { b.header().child_count = -1; }},
      {"func_id", [](Blob& b) { b.header().child_func_ids[1] = 1024; }},
      {"func_id", [](Blob& b) { b.header().child_func_ids[0] = -1; }},
      {"multiple of 64", [](Blob& b) { b.header().child_offsets[1] = 321; }},
      {"outside", [](Blob& b) { b.header().child_offsets[1] = 0xFFFFFFC0; }},
      {"outside", [](Blob& b) { b.header().child_offsets[0] = 0; }},  // inside the orchestration
      {"child 1", [](Blob& b) { b.child(1).binary_size = 71; }},
      {"child 0", [](Blob& b) { b.child(0).sig_count = 33; }},
      {"child 1", [](Blob& b) { b.set_bytes(b.bytes() - 1); }},
      {"header alone", [](Blob& b) { b.header().child_offsets[1] = 576; }},  // its header crosses the end
  };
  for (const Damage& damage : damages) {
    Blob blob;
    damage.apply(blob);
    const Verdict verdict = blob.check();
    EXPECT_FALSE(verdict.ok()) << damage.word;
    EXPECT_NE(std::string(verdict.text()).find(damage.word), std::string::npos) << verdict.text();
  }
}

TEST(ChipCallableCheck, ReadsNothingBehindTheGivenLength) {
  Blob whole;
  for (std::size_t bytes = 0; bytes < whole.bytes(); bytes += 37) {
    std::vector<std::uint64_t> words((bytes + 7) / 8);
    if (bytes != 0) std::memcpy(words.data(), whole.data(), bytes);
    EXPECT_FALSE(check_chip_callable(words.data(), bytes).ok()) << bytes;
  }
  EXPECT_FALSE(check_chip_callable(nullptr, 100000).ok());
}

TEST(ChipCallableCheck, RefusesAMisalignedBlock) {
  Blob blob;
  std::vector<std::uint64_t> words(blob.bytes() / 8 + 2);
  std::uint8_t* odd = reinterpret_cast<std::uint8_t*>(words.data()) + 1;
  std::memcpy(odd, blob.data(), blob.bytes());
  EXPECT_NE(std::string(check_chip_callable(odd, blob.bytes()).text()).find("aligned"), std::string::npos);
}

// ---- call config ----

TEST(CallConfigCheck, AllZeroIsValidAndEachDiagnosticNeedsAPrefix) {
  CallConfig config{};
  EXPECT_TRUE(check_call_config(config).ok());
  std::int32_t CallConfig::*const switches[] = {&CallConfig::enable_chip_swimlane, &CallConfig::enable_dump_args,
                                                &CallConfig::enable_pmu, &CallConfig::enable_dep_gen,
                                                &CallConfig::enable_scope_stats};
  for (auto member : switches) {
    config = CallConfig{};
    config.*member = 1;
    EXPECT_NE(std::string(check_call_config(config).text()).find("output_prefix"), std::string::npos);
    std::strcpy(config.output_prefix, "/tmp/x");
    EXPECT_TRUE(check_call_config(config).ok());
  }
}

TEST(CallConfigCheck, AnUnterminatedPrefixIsInvalid) {
  CallConfig config{};
  std::memset(config.output_prefix, 'x', sizeof(config.output_prefix));
  EXPECT_FALSE(check_call_config(config).ok());
}

struct RingCase {
  const char* name;
  std::uint64_t (RuntimeEnv::*member)[kRuntimeEnvRingCount];
  std::vector<std::uint64_t> good, bad;
};

TEST(CallConfigCheck, RingSizesFollowTheirRuleInEveryEntry) {
  const RingCase cases[] = {
      {"ring_task_window", &RuntimeEnv::ring_task_window, {0, 4, 64, 1u << 30}, {1, 2, 3, 5, 100, 1ull << 31}},
      {"ring_heap", &RuntimeEnv::ring_heap, {0, 1024, 5000, UINT64_MAX}, {1, 1023}},
      {"ring_dep_pool", &RuntimeEnv::ring_dep_pool, {0, 4, 5, 0x7FFFFFFF}, {1, 3, 1ull << 31}},
  };
  for (const RingCase& c : cases) {
    for (int ring = 0; ring < kRuntimeEnvRingCount; ++ring) {
      for (std::uint64_t value : c.good) {
        CallConfig config{};
        (config.runtime_env.*c.member)[ring] = value;
        EXPECT_TRUE(check_call_config(config).ok()) << c.name << " " << value;
      }
      for (std::uint64_t value : c.bad) {
        CallConfig config{};
        (config.runtime_env.*c.member)[ring] = value;
        const std::string text = check_call_config(config).text();
        EXPECT_NE(text.find(std::string(c.name) + "[" + std::to_string(ring) + "]"), std::string::npos) << text;
        EXPECT_NE(text.find(std::to_string(value)), std::string::npos) << text;
      }
    }
  }
}

// ---- wire tensors ----

Tensor valid_tensor() {  // 4 x 8 floats at 64 bytes into a device allocation of 256 bytes
  Tensor t{};
  t.buffer.magic = kBufferMagic;
  t.buffer.address_space = static_cast<std::uint8_t>(Space::kDevice);
  t.buffer.access = static_cast<std::uint8_t>(Access::kReadWrite);
  t.buffer.backend_kind = static_cast<std::uint8_t>(Backend::kDeviceMalloc);
  t.buffer.identity.generation = 1;
  t.buffer.nbytes = 256;
  t.buffer.body_len = 8;
  t.buffer.body[1] = 0x10;
  t.byte_offset = 64;
  t.ndims = 2;
  t.shapes[0] = 4;
  t.shapes[1] = 8;
  t.strides[0] = 8;
  t.strides[1] = 1;
  t.dtype = static_cast<std::uint8_t>(DataType::FLOAT32);
  return t;
}

TEST(WireTensorCheck, AcceptsAViewUpToTheLastByte) {
  const Tensor t = valid_tensor();
  EXPECT_TRUE(check_tensor(t).ok()) << check_tensor(t).text();
  EXPECT_EQ(t.buffer.address(), 0x1000u);
  EXPECT_EQ(t.extent_elements(), 32u);
}

struct TensorDamage {
  const char* word;
  std::function<void(Tensor&)> apply;
};

TEST(WireTensorCheck, NamesEachKindOfDamage) {
  const auto posix = [](Tensor& t, const char* name) {
    t.buffer.backend_kind = static_cast<std::uint8_t>(Backend::kPosixShm);
    t.buffer.address_space = 0;
    std::memset(t.buffer.body, 0, sizeof(t.buffer.body));
    t.buffer.body_len = static_cast<std::uint16_t>(std::strlen(name));
    std::memcpy(t.buffer.body, name, t.buffer.body_len);
  };
  const TensorDamage damages[] = {
      {"magic", [](Tensor& t) { t.buffer.magic = 0; }},
      {"backend_kind", [](Tensor& t) { t.buffer.backend_kind = 6; }},
      {"address_space", [](Tensor& t) { t.buffer.address_space = 2; }},
      {"address_space", [](Tensor& t) { t.buffer.address_space = 0; }},  // DEVICE_MALLOC in HOST space
      {"access", [](Tensor& t) { t.buffer.access = 3; }},
      {"generation", [](Tensor& t) { t.buffer.identity.generation = 0; }},
      {"body", [](Tensor& t) { t.buffer.body_len = 33; }},
      {"body", [](Tensor& t) { t.buffer.body_len = 7; }},
      {"body", [](Tensor& t) { t.buffer.body[1] = 0; }},  // address 0
      {"body", [](Tensor& t) { t.buffer.body[9] = 1; }},  // behind body_len
      {"padding", [](Tensor& t) { t.buffer.pad[0] = 1; }},
      {"padding", [](Tensor& t) { t.buffer.identity.pad[11] = 1; }},
      {"body", [&](Tensor& t) { posix(t, ""); }},
      {"body", [&](Tensor& t) { posix(t, "a/b"); }},
      {"body", [&](Tensor& t) { posix(t, "a b"); }},
      {"FORK_COW", [](Tensor& t) { t.buffer.backend_kind = 5, t.buffer.address_space = 0; }},
      {"body", [](Tensor& t) { t.buffer.backend_kind = 3; }},  // REMOTE_SIDECAR with a body
      {"dtype", [](Tensor& t) { t.dtype = 11; }},
      {"dtype", [](Tensor& t) { t.dtype = 15; }},
      {"ndims", [](Tensor& t) { t.ndims = 0; }},
      {"ndims", [](Tensor& t) { t.ndims = 6; }},
      {"shapes[1]", [](Tensor& t) { t.shapes[1] = 0; }},
      {"strides[0]", [](Tensor& t) { t.strides[0] = 0; }},
      {"past dimension", [](Tensor& t) { t.shapes[4] = 1; }},
      {"past dimension", [](Tensor& t) { t.strides[2] = 1; }},
      {"byte_offset", [](Tensor& t) { t.byte_offset = 62; }},
      {"needs", [](Tensor& t) { t.byte_offset = 132; }},
      {"needs", [](Tensor& t) { t.byte_offset = UINT64_MAX - 3; }},
      {"needs", [](Tensor& t) { t.shapes[0] = t.shapes[1] = t.strides[0] = t.strides[1] = 0xFFFFFFFF; }},
      {"padding", [](Tensor& t) { t.pad[2] = 1; }},
  };
  for (const TensorDamage& damage : damages) {
    Tensor t = valid_tensor();
    damage.apply(t);
    const Verdict verdict = check_tensor(t);
    EXPECT_FALSE(verdict.ok()) << damage.word;
    EXPECT_NE(std::string(verdict.text()).find(damage.word), std::string::npos) << verdict.text();
  }
}

TEST(WireTensorCheck, AReadableCopyOfForkedMemoryIsValid) {
  Tensor t = valid_tensor();
  t.buffer.backend_kind = static_cast<std::uint8_t>(Backend::kForkCow);
  t.buffer.address_space = static_cast<std::uint8_t>(Space::kHost);
  t.buffer.access = static_cast<std::uint8_t>(Access::kRead);
  EXPECT_TRUE(check_tensor(t).ok()) << check_tensor(t).text();
}

TEST(CanonicalIdentity, EqualityIgnoresPaddingOnly) {
  CanonicalIdentity a{}, b{};
  a.generation = b.generation = 1;
  b.pad[0] = 7;
  EXPECT_EQ(a, b);
  b.buffer_id = 1;
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace simpler::abi
