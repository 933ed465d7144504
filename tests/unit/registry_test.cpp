// Callables of a runner: one upload per content, one loaded copy per kernel code, freed with the last that uses it.
#include "host/registry.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/callable_blob.h"
#include "unit/support/compiled_code.h"
#include "unit/support/recording_driver.h"

namespace simpler::host {
namespace {

using test::CallableParts;
using test::RecordingDriver;

const std::string& kernel_code(int which) {
  static const std::string codes[] = {test::compiled("extern \"C\" void kernel_entry(long*) {}\n"),
                                      test::compiled("extern \"C\" void kernel_entry(long* a) { a[0] = 2; }\n")};
  return codes[which];
}

Status load(Registry& registry, const CallableParts& parts, std::shared_ptr<Callable>* callable) {
  std::size_t bytes = 0;
  const auto blob = test::callable_blob(parts, &bytes);
  EXPECT_TRUE(abi::check_chip_callable(blob.data(), bytes).ok()) << abi::check_chip_callable(blob.data(), bytes).text();
  return registry.load(blob.data(), bytes, callable);
}

TEST(Registry, SharesIdenticalCallablesAndIdenticalKernelsOfDifferentOnes) {
  RecordingDriver recorder;
  Registry registry(recorder.table());
  std::shared_ptr<Callable> first, again, other;
  ASSERT_TRUE(load(registry,
                   {.orchestration = "orchestration 1", .kernels = {{3, kernel_code(0)}, {5, kernel_code(1)}}}, &first)
                  .ok());
  EXPECT_EQ(recorder.live_codes(), 2);
  ASSERT_TRUE(load(registry,
                   {.orchestration = "orchestration 1", .kernels = {{3, kernel_code(0)}, {5, kernel_code(1)}}}, &again)
                  .ok());
  EXPECT_EQ(first, again);
  EXPECT_EQ(recorder.calls("upload"), 2) << "the block and its kernel table, once";
  ASSERT_TRUE(load(registry,
                   {.orchestration = "orchestration 2", .kernels = {{0, kernel_code(0)}, {1, kernel_code(0)}}}, &other)
                  .ok());
  EXPECT_NE(other, first);
  EXPECT_EQ(recorder.calls("resolve"), 2)
      << "the same code under other ids and in another callable is not loaded again";
  const auto entries = [](const Callable& callable) {
    return reinterpret_cast<const std::uint64_t*>(callable.kernel_table.address());
  };
  EXPECT_EQ(entries(*first)[3], entries(*other)[0]);
  EXPECT_EQ(entries(*other)[0], entries(*other)[1]);
  EXPECT_NE(entries(*first)[3], entries(*first)[5]);
  EXPECT_EQ(entries(*first)[4], 0u) << "no such kernel";

  first.reset();
  EXPECT_EQ(recorder.live_codes(), 2) << "the first callable has another owner";
  again.reset();
  EXPECT_EQ(recorder.live_codes(), 1);
  other.reset();
  EXPECT_EQ(recorder.live_codes(), 0);
  EXPECT_EQ(recorder.live_allocations(), 0u);
}

TEST(Registry, LoadsWhatWasForgottenAnew) {
  RecordingDriver recorder;
  Registry registry(recorder.table());
  for (int round = 1; round <= 3; ++round) {
    std::shared_ptr<Callable> callable;
    ASSERT_TRUE(load(registry, {.orchestration = "o", .kernels = {{0, kernel_code(0)}}}, &callable).ok());
    registry.set(7, callable);
    EXPECT_EQ(registry.at(7), callable);
    callable.reset();
    registry.set(7, nullptr);
    EXPECT_EQ(recorder.calls("resolve"), round);
    EXPECT_EQ(recorder.live_codes(), 0);
  }
}

TEST(Registry, NamesTheKernelThatDoesNotLoad) {
  RecordingDriver recorder;
  Registry registry(recorder.table());
  std::shared_ptr<Callable> callable;
  const Status status =
      load(registry, {.orchestration = "o", .kernels = {{0, kernel_code(0)}, {42, "garbage"}}}, &callable);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("func_id 42"), std::string::npos) << status.message();
  EXPECT_EQ(callable, nullptr);
  EXPECT_EQ(recorder.live_codes(), 0);
  EXPECT_EQ(recorder.live_allocations(), 0u);
}

TEST(RegistryFailure, AnyCallMayFailNothingLeaksAndTheNextAttemptWorks) {
  const CallableParts parts{.orchestration = "o", .kernels = {{0, kernel_code(0)}, {1, kernel_code(1)}}};
  bool failed = true;
  for (int call = 1; failed; ++call) {  // until there is no such call
    RecordingDriver recorder(call);
    Registry registry(recorder.table());
    std::shared_ptr<Callable> callable;
    const Status status = load(registry, parts, &callable);
    failed = recorder.failed();
    EXPECT_EQ(status.ok(), !failed) << "call " << call;
    if (failed) {
      EXPECT_EQ(recorder.live_allocations(), 0u) << "call " << call;
      EXPECT_EQ(recorder.live_codes(), 0) << "call " << call;
      EXPECT_TRUE(load(registry, parts, &callable).ok()) << "call " << call;
    }
    callable.reset();
    EXPECT_EQ(recorder.live_allocations(), 0u) << "call " << call;
  }
}

}  // namespace
}  // namespace simpler::host
