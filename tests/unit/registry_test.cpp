// Callables of a runner: one upload per content, one loaded copy per kernel code, freed with the last that uses it.
#include "host/registry.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/callable_blob.h"
#include "unit/support/compiled_code.h"
#include "unit/support/faulty_device.h"

namespace simpler::host {
namespace {

using test::CallableParts;
using test::FaultyDevice;

const std::string& kernel_code(int which) {
  static const std::string codes[] = {test::compiled("extern \"C\" void kernel_entry(long*) {}\n"),
                                      test::compiled("extern \"C\" void kernel_entry(long* a) { a[0] = 2; }\n")};
  return codes[which];
}

Status load(Registry& registry, const CallableParts& parts, std::shared_ptr<Callable>* callable) {
  std::size_t bytes = 0;
  const auto blob = test::callable_blob(parts, &bytes);
  EXPECT_TRUE(abi::check_chip_callable(blob.data(), bytes).ok()) << abi::check_chip_callable(blob.data(), bytes).text();
  bool uploaded = false;
  return registry.load(blob.data(), bytes, callable, &uploaded);
}

TEST(Registry, SharesIdenticalCallablesAndIdenticalKernelsOfDifferentOnes) {
  FaultyDevice device;
  Registry registry(device.allocator);
  std::shared_ptr<Callable> first, again, other;
  ASSERT_TRUE(load(registry,
                   {.orchestration = "orchestration 1", .kernels = {{3, kernel_code(0)}, {5, kernel_code(1)}}}, &first)
                  .ok());
  EXPECT_EQ(device.live_codes(), 2u);
  ASSERT_TRUE(load(registry,
                   {.orchestration = "orchestration 1", .kernels = {{3, kernel_code(0)}, {5, kernel_code(1)}}}, &again)
                  .ok());
  EXPECT_EQ(first, again);
  EXPECT_EQ(device.calls("copy_to_device"), 4) << "the block, the address of each kernel, and the kernel table, once";
  ASSERT_TRUE(load(registry,
                   {.orchestration = "orchestration 2", .kernels = {{0, kernel_code(0)}, {1, kernel_code(0)}}}, &other)
                  .ok());
  EXPECT_NE(other, first);
  EXPECT_EQ(device.calls("child_code_resolve"), 2)
      << "the same code under other ids and in another callable is not loaded again";
  const auto entries = [](const Callable& callable) {
    return reinterpret_cast<const std::uint64_t*>(callable.kernel_table.address());
  };
  EXPECT_EQ(entries(*first)[3], entries(*other)[0]);
  EXPECT_EQ(entries(*other)[0], entries(*other)[1]);
  EXPECT_NE(entries(*first)[3], entries(*first)[5]);
  EXPECT_EQ(entries(*first)[4], 0u) << "no such kernel";

  first.reset();
  EXPECT_EQ(device.live_codes(), 2u) << "the first callable has another owner";
  again.reset();
  EXPECT_EQ(device.live_codes(), 1u);
  other.reset();
  EXPECT_EQ(device.live_codes(), 0u);
  EXPECT_EQ(device.live_allocations(), 0u);
}

TEST(Registry, LoadsWhatWasForgottenAnew) {
  FaultyDevice device;
  Registry registry(device.allocator);
  for (int round = 1; round <= 3; ++round) {
    std::shared_ptr<Callable> callable;
    ASSERT_TRUE(load(registry, {.orchestration = "o", .kernels = {{0, kernel_code(0)}}}, &callable).ok());
    registry.set(7, callable);
    EXPECT_EQ(registry.at(7), callable);
    callable.reset();
    registry.set(7, nullptr);
    EXPECT_EQ(device.calls("child_code_resolve"), round);
    EXPECT_EQ(device.live_codes(), 0u);
  }
}

TEST(Registry, NamesTheKernelThatDoesNotLoad) {
  FaultyDevice device;
  Registry registry(device.allocator);
  std::shared_ptr<Callable> callable;
  const Status status =
      load(registry, {.orchestration = "o", .kernels = {{0, kernel_code(0)}, {42, "garbage"}}}, &callable);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("func_id 42"), std::string::npos) << status.message();
  EXPECT_EQ(callable, nullptr);
  EXPECT_EQ(device.live_codes(), 0u);
  EXPECT_EQ(device.live_allocations(), 0u);
}

TEST(Registry, TheDevicesCopyHasTheKernelsAddressesAndTheCallersHasNone) {
  FaultyDevice device;
  Registry registry(device.allocator);
  std::size_t bytes = 0;
  const auto blob =
      test::callable_blob({.orchestration = "o", .kernels = {{3, kernel_code(0)}, {5, kernel_code(1)}}}, &bytes);
  const auto before = blob;
  std::shared_ptr<Callable> callable;
  bool uploaded = false;
  ASSERT_TRUE(registry.load(blob.data(), bytes, &callable, &uploaded).ok());
  EXPECT_TRUE(uploaded);
  EXPECT_EQ(blob, before);
  EXPECT_EQ(callable->upload.address() % abi::kCallableAlignment, 0u);
  const auto* const on_device = reinterpret_cast<const abi::ChipCallable*>(callable->upload.address());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(callable->header().child(i)->resolved_addr, 0u);
    EXPECT_EQ(on_device->child(i)->resolved_addr, callable->kernels[static_cast<std::size_t>(i)]->entry);
  }
  ASSERT_TRUE(registry.load(blob.data(), bytes, &callable, &uploaded).ok());
  EXPECT_FALSE(uploaded) << "the same content";
}

TEST(RegistryFailure, AnyCallMayFailNothingLeaksAndTheNextAttemptWorks) {
  const CallableParts parts{.orchestration = "o", .kernels = {{0, kernel_code(0)}, {1, kernel_code(1)}}};
  bool failed = true;
  for (int call = 1; failed; ++call) {  // until there is no such call
    FaultyDevice device;
    device.fail_call(static_cast<std::uint64_t>(call));
    Registry registry(device.allocator);
    std::shared_ptr<Callable> callable;
    const Status status = load(registry, parts, &callable);
    failed = device.failed();
    EXPECT_EQ(status.ok(), !failed) << "call " << call;
    if (failed) {
      EXPECT_EQ(device.live_allocations(), 0u) << "call " << call;
      EXPECT_EQ(device.live_codes(), 0u) << "call " << call;
      EXPECT_TRUE(load(registry, parts, &callable).ok()) << "call " << call;
    }
    callable.reset();
    EXPECT_EQ(device.live_allocations(), 0u) << "call " << call;
  }
}

}  // namespace
}  // namespace simpler::host
