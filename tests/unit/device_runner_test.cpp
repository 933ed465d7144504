// The device runner: which call is allowed when, how runs follow each other, what a failure leaves behind.
#include "host/device_runner.h"

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "abi/error_codes.h"
#include "base/log.h"
#include "driver/soft/soft_driver.h"
#include "unit/support/callable_blob.h"
#include "unit/support/compiled_code.h"

namespace simpler::host {
namespace {

// What the entry does with its tensor is told by scalar 0.
enum Command : std::uint64_t { kAdd, kFail, kCrash, kWait, kNothing };

const char* const kOrchestration = R"(
#include "pto_orchestration_api.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT PTO2OrchestrationConfig config(const ChipTaskArgs&) { return {3}; }
EXPORT void entry(const ChipTaskArgs& in) {
  CoreTaskArgs args;
  args.add_inout(in.tensor(0));
  args.add_scalar(in.scalar(1));
  switch (in.scalar(0)) {
    case 0: rt_submit_aiv_task(4, args); break;
    case 1: rt_submit_aiv_task(4, args); rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "told to stop"); break;
    case 2: rt_submit_aiv_task(5, args); break;
    case 3: rt_submit_aiv_task(6, args); rt_submit_aiv_task(4, args); break;
  }
})";
// Adds a scalar; throws; waits for a flag at the address that the scalar names.
const char* const kKernels[] = {
    "#include \"tensor.h\"\nextern \"C\" void kernel_entry(int64_t* args) {\n"
    "  auto* t = reinterpret_cast<ChipTensor*>(args[0]);\n"
    "  for (uint64_t i = 0; i < t->numel(); ++i) t->data_as<int>()[i] += static_cast<int>(args[1]);\n}\n",
    "#include <cstdint>\n#include <stdexcept>\n"
    "extern \"C\" void kernel_entry(int64_t*) { throw std::runtime_error(\"kernel 5 gives up\"); }\n",
    "#include <cstdint>\n#include <sched.h>\nextern \"C\" void kernel_entry(int64_t* args) {\n"
    "  while (*reinterpret_cast<volatile int*>(args[1]) == 0) sched_yield();\n}\n"};

struct Blob {
  std::vector<std::uint64_t> words;
  std::size_t bytes = 0;
};
const Blob& callable() {
  static const Blob blob = [] {
    test::CallableParts parts{.orchestration = test::compiled(kOrchestration), .config = "config"};
    for (int i = 0; i < 3; ++i) parts.kernels.emplace_back(4 + i, test::compiled(kKernels[i]));
    Blob made;
    made.words = test::callable_blob(parts, &made.bytes);
    return made;
  }();
  return blob;
}

#define EXPECT_FAILS(status, wanted_kind, wanted_text) expect_failure((status), (wanted_kind), (wanted_text), __LINE__)
void expect_failure(const Status& status, ErrorKind kind, const std::string& text, int line) {
  EXPECT_FALSE(status.ok()) << "line " << line;
  EXPECT_EQ(static_cast<int>(status.kind()), static_cast<int>(kind)) << "line " << line << ": " << status.message();
  EXPECT_NE(status.message().find(text), std::string::npos) << "line " << line << ": " << status.message();
}
#define ASSERT_OK(expression)                                 \
  do {                                                        \
    const Status status_of_it = (expression);                 \
    ASSERT_TRUE(status_of_it.ok()) << status_of_it.message(); \
  } while (false)

std::unique_ptr<DeviceRunner> open_runner() {
  std::unique_ptr<DeviceRunner> runner;
  const Status status = DeviceRunner::open({"a2a3sim", "tensormap_and_ringbuffer", 0, 2, 2}, &runner);
  EXPECT_TRUE(status.ok()) << status.message();
  return runner;
}

// A run's arguments: four ints, a command, a value.
class Call {
 public:
  Call(Command command, std::uint64_t value) : args_(std::make_unique<ChipStorageTaskArgs>()) {
    const std::uint32_t shape = 4;
    args_->clear();
    args_->add_tensor(make_tensor_external(data, &shape, 1, DataType::INT32));
    args_->add_scalar(command);
    args_->add_scalar(value);
  }
  const ChipStorageTaskArgs& args() const { return *args_; }
  ChipStorageTaskArgs& args() { return *args_; }
  std::int32_t data[4] = {1, 2, 3, 4};

 private:
  std::unique_ptr<ChipStorageTaskArgs> args_;
};

Status run(DeviceRunner& runner, const Call& call, int slot = 0) {
  RunId id = 0;
  if (Status status = runner.prepare_run(slot, call.args(), {}, &id); !status.ok()) return status;
  if (Status status = runner.launch_run(id); !status.ok()) return status;
  return runner.finalize_run(id, nullptr);
}

class Registered : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(runner->register_callable(0, callable().words.data(), callable().bytes)); }
  std::unique_ptr<DeviceRunner> runner = open_runner();
};

// ---- opening --------------------------------------------------------------------------------------------------------

TEST(DeviceRunnerOpen, RefusesWhatItCannotBeWithTheReason) {
  struct Case {
    RunnerOptions options;
    ErrorKind kind;
    const char* text;
  };
  const Case cases[] = {
      {{"a4sim", "tensormap_and_ringbuffer"}, ErrorKind::kValue, "\"a4sim\" is unknown"},
      {{"sim", "tensormap_and_ringbuffer"}, ErrorKind::kValue, "\"sim\" is unknown"},
      {{"a2a3", "tensormap_and_ringbuffer"},
       ErrorKind::kDevice,
       "(a2a3sim needs none of this): the library libruntime.so"},
      {{"a2a3sim", "fast"}, ErrorKind::kValue, "runtime \"fast\" is unknown"},
      {{"a2a3sim", "tensormap_and_ringbuffer", -1}, ErrorKind::kValue, "device_id=-1"},
      {{"a2a3sim", "tensormap_and_ringbuffer", 0, 25}, ErrorKind::kValue, "sim_clusters=25 is out of range: 1..24"},
      {{"a2a3sim", "tensormap_and_ringbuffer", 0, -1}, ErrorKind::kValue, "sim_clusters=-1"},
      {{"a5sim", "tensormap_and_ringbuffer", 0, 37}, ErrorKind::kValue, "1..36"},
      {{"a2a3sim", "tensormap_and_ringbuffer", 0, 1, 100000}, ErrorKind::kValue, "sim_threads=100000"},
  };
  for (const Case& c : cases) {
    std::unique_ptr<DeviceRunner> runner;
    EXPECT_FAILS(DeviceRunner::open(c.options, &runner), c.kind, c.text);
    EXPECT_EQ(runner, nullptr);
  }
}

TEST(DeviceRunnerOpen, TellsTheDeviceTheLogLevelUnlessTheEnvironmentDoes) {
  static std::vector<int> told;
  driver::SoftDriver soft({1, 1});
  driver::Driver table = soft.table();
  table.set_log_level = [](void*, int level) {
    told.push_back(level);
    return driver::kInternalError;  // which is no reason not to go on
  };
  RunnerOptions options{"a2a3sim", "tensormap_and_ringbuffer"};
  options.driver = &table;
  const auto open = [&](int threshold) {
    log::set_threshold(threshold);
    std::unique_ptr<DeviceRunner> runner;
    ASSERT_OK(DeviceRunner::open(options, &runner));
  };
  for (const int threshold : {10, 20, 25, 30, 40, 60}) open(threshold);
  EXPECT_EQ(told, (std::vector<int>{0, 1, 2, 2, 3, 4}));
  setenv("ASCEND_GLOBAL_LOG_LEVEL", "3", 1);
  open(10);
  EXPECT_EQ(told.size(), 6u);
  unsetenv("ASCEND_GLOBAL_LOG_LEVEL");
  log::set_threshold(static_cast<int>(log::Level::kTiming));
}

TEST(DeviceRunnerOpen, TakesTheWholeChipIfAsked) {
  for (const auto& [platform, clusters] : {std::pair{"a2a3sim", 24}, std::pair{"a5sim", 36}}) {
    std::unique_ptr<DeviceRunner> runner;
    ASSERT_OK(DeviceRunner::open({platform, "tensormap_and_ringbuffer", 3, clusters, 1}, &runner));
    EXPECT_EQ(runner->cluster_count(), clusters);
    EXPECT_EQ(runner->thread_count(), 1);
    EXPECT_EQ(runner->device_id(), 3);
  }
}

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST(DeviceRunnerMemory, IsCheckedAndCounted) {
  const auto runner = open_runner();
  std::uint64_t a = 0, b = 0;
  char bytes[64] = "device memory", back[64] = {};
  const std::size_t own = runner->committed_memory();
  EXPECT_FAILS(runner->malloc(0, &a), ErrorKind::kValue, "0 bytes");
  EXPECT_FAILS(runner->malloc(std::size_t{1} << 62, &a), ErrorKind::kMemory, "bytes");
  ASSERT_OK(runner->malloc(64, &a));
  ASSERT_OK(runner->malloc(1000, &b));
  EXPECT_EQ(runner->committed_memory(), own + 1064);
  ASSERT_OK(runner->copy_to(a, bytes, 64));
  ASSERT_OK(runner->copy_from(back, a, 64));
  EXPECT_STREQ(back, "device memory");
  EXPECT_FAILS(runner->copy_to(a, bytes, 65), ErrorKind::kValue, "reach past");
  EXPECT_FAILS(runner->copy_from(back, a + 64, 1), ErrorKind::kValue, "no live allocation");
  EXPECT_FAILS(runner->free(a + 1), ErrorKind::kValue, "did not return");
  ASSERT_OK(runner->free(a));
  EXPECT_FAILS(runner->free(a), ErrorKind::kValue, "freed already");
  EXPECT_EQ(runner->committed_memory(), own + 1000);
}

// ---- callables ------------------------------------------------------------------------------------------------------

TEST(DeviceRunnerCallables, LiveInSlotsThatAreCheckedAndCounted) {
  const auto runner = open_runner();
  const Blob& blob = callable();
  EXPECT_FAILS(runner->register_callable(64, blob.words.data(), blob.bytes), ErrorKind::kIndex, "64 is outside 0..63");
  EXPECT_FAILS(runner->register_callable(-1, blob.words.data(), blob.bytes), ErrorKind::kIndex, "-1");
  EXPECT_FAILS(runner->register_callable(0, blob.words.data(), 100), ErrorKind::kValue, "not a valid ChipCallable");
  EXPECT_FAILS(runner->unregister_callable(0), ErrorKind::kKey, "slot 0 is empty");
  ASSERT_OK(runner->register_callable(0, blob.words.data(), blob.bytes));
  EXPECT_FAILS(runner->register_callable(0, blob.words.data(), blob.bytes), ErrorKind::kState, "taken");
  ASSERT_OK(runner->register_callable(63, blob.words.data(), blob.bytes));
  EXPECT_EQ(runner->device_orchestration_loads(), 2u);
  ASSERT_OK(runner->unregister_callable(0));
  EXPECT_FAILS(run(*runner, Call(kAdd, 1), 0), ErrorKind::kKey, "slot 0 is empty");
  Call call(kAdd, 1);
  EXPECT_TRUE(run(*runner, call, 63).ok());
  EXPECT_EQ(call.data[0], 2);
}

TEST(DeviceRunnerCallables, AnOrchestrationWithoutItsEntryIsRefusedAndLeavesTheSlotEmpty) {
  const auto runner = open_runner();
  std::size_t bytes = 0;
  const auto blob = test::callable_blob({.orchestration = test::compiled(kOrchestration), .entry = "missing"}, &bytes);
  EXPECT_FAILS(runner->register_callable(0, blob.data(), bytes), ErrorKind::kDevice, "\"missing\"");
  EXPECT_TRUE(runner->register_callable(0, callable().words.data(), callable().bytes).ok());
}

// ---- runs -----------------------------------------------------------------------------------------------------------

TEST_F(Registered, ARunGoesFromPreparedToLaunchedToFinalizedAndNowhereElse) {
  Call call(kAdd, 10);
  RunId id = 0;
  bool done = true;
  ASSERT_OK(runner->prepare_run(0, call.args(), {}, &id));
  EXPECT_NE(id, 0u);
  EXPECT_FAILS(runner->wait_run(id, -1, &done), ErrorKind::kState, "not launched");
  EXPECT_FAILS(runner->poll_run(id, &done), ErrorKind::kState, "not launched");
  ASSERT_OK(runner->launch_run(id));
  EXPECT_FAILS(runner->launch_run(id), ErrorKind::kState, "launched already");
  ASSERT_OK(runner->wait_run(id, -1, &done));
  EXPECT_TRUE(done);
  ASSERT_OK(runner->poll_run(id, &done));
  EXPECT_TRUE(done);
  EXPECT_EQ(call.data[0], 1) << "results arrive with finalize_run";
  RunTiming timing;
  ASSERT_OK(runner->finalize_run(id, &timing));
  EXPECT_EQ(call.data[0], 11);
  EXPECT_EQ(call.data[3], 14);
  EXPECT_GT(timing.device_wall_ns, 0u);
  EXPECT_GE(timing.host_wall_ns, timing.device_wall_ns);
  EXPECT_FAILS(runner->finalize_run(id, nullptr), ErrorKind::kState, "stale or already finalized");
  EXPECT_FAILS(runner->launch_run(id), ErrorKind::kState, "stale");
  EXPECT_FAILS(runner->wait_run(id, 0, &done), ErrorKind::kState, "stale");
}

TEST_F(Registered, APreparedRunMayBeGivenUpWithoutALaunch) {
  Call call(kAdd, 10);
  RunId id = 0;
  ASSERT_OK(runner->prepare_run(0, call.args(), {}, &id));
  ASSERT_OK(runner->finalize_run(id, nullptr));
  EXPECT_EQ(call.data[0], 1);
  EXPECT_TRUE(run(*runner, call).ok());
}

TEST_F(Registered, WhileOneRunExecutesAnotherIsPreparedAndFollowsWhenTheFirstIsFinalized) {
  int flag = 0;
  Call first(kWait, reinterpret_cast<std::uint64_t>(&flag)), second(kAdd, 10), third(kAdd, 1);
  RunId ids[3] = {};
  ASSERT_OK(runner->prepare_run(0, first.args(), {}, &ids[0]));
  EXPECT_FAILS(runner->prepare_run(0, second.args(), {}, &ids[1]), ErrorKind::kState, "needs a launched predecessor");
  ASSERT_OK(runner->launch_run(ids[0]));
  ASSERT_OK(runner->prepare_run(0, second.args(), {}, &ids[1]));
  EXPECT_FAILS(runner->prepare_run(0, third.args(), {}, &ids[2]), ErrorKind::kState, "2 runs are in flight");
  EXPECT_FAILS(runner->launch_run(ids[1]), ErrorKind::kState, "another run owns the device");
  bool done = true;
  ASSERT_OK(runner->poll_run(ids[0], &done));
  EXPECT_FALSE(done);
  ASSERT_OK(runner->wait_run(ids[0], 2'000'000, &done));
  EXPECT_FALSE(done) << "the limit passed";
  *const_cast<volatile int*>(&flag) = 1;
  ASSERT_OK(runner->finalize_run(ids[0], nullptr));
  ASSERT_OK(runner->launch_run(ids[1]));
  ASSERT_OK(runner->finalize_run(ids[1], nullptr));
  EXPECT_EQ(second.data[0], 11);
  ASSERT_OK(run(*runner, third));
  EXPECT_EQ(third.data[0], 2);
}

TEST_F(Registered, ARunThatNeedsLargerRingsThanTheOneThatExecutesIsIncompatibleUntilThatIsFinalized) {
  int flag = 0;
  Call first(kWait, reinterpret_cast<std::uint64_t>(&flag)), second(kAdd, 10);
  abi::CallConfig small{}, large{};
  for (int ring = 0; ring < 4; ++ring) small.runtime_env.ring_heap[ring] = 4096;
  for (int ring = 0; ring < 4; ++ring) large.runtime_env.ring_heap[ring] = 8192;
  RunId ids[2] = {};
  ASSERT_OK(runner->prepare_run(0, first.args(), small, &ids[0]));
  ASSERT_OK(runner->launch_run(ids[0]));
  const Status status = runner->prepare_run(0, second.args(), large, &ids[1]);
  EXPECT_FAILS(status, ErrorKind::kState, "larger rings");
  EXPECT_EQ(status.code(), kPreparedIncompatible);
  *const_cast<volatile int*>(&flag) = 1;
  ASSERT_OK(runner->finalize_run(ids[0], nullptr));
  ASSERT_OK(runner->prepare_run(0, second.args(), large, &ids[1]));
  ASSERT_OK(runner->launch_run(ids[1]));
  ASSERT_OK(runner->finalize_run(ids[1], nullptr));
  EXPECT_EQ(second.data[0], 11);
}

TEST_F(Registered, ACallableCannotGoWhileAPreparedRunUsesIt) {
  Call call(kAdd, 1);
  RunId id = 0;
  ASSERT_OK(runner->prepare_run(0, call.args(), {}, &id));
  EXPECT_FAILS(runner->unregister_callable(0), ErrorKind::kState, "a prepared run uses");
  ASSERT_OK(runner->launch_run(id));
  ASSERT_OK(runner->unregister_callable(0));  // waits for it
  ASSERT_OK(runner->finalize_run(id, nullptr));
  EXPECT_EQ(call.data[0], 2);
}

TEST_F(Registered, AFailedRunHasItsCodeCopiesNothingBackAndLeavesTheRunnerUsable) {
  struct Case {
    Command command;
    abi::ErrorCode code;
    const char* text;
  };
  for (const Case& c : {Case{kFail, abi::ErrorCode::EXPLICIT_ORCH_FATAL, "told to stop"},
                        Case{kCrash, abi::ErrorCode::KERNEL_CRASHED, "kernel 5 gives up"}}) {
    Call call(c.command, 10);
    const Status status = run(*runner, call);
    EXPECT_FAILS(status, ErrorKind::kRun, c.text);
    EXPECT_EQ(status.code(), -static_cast<int>(c.code));
    EXPECT_NE(status.message().find(abi::error_name(static_cast<int>(c.code))), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(abi::error_hint(static_cast<int>(c.code))), std::string::npos) << status.message();
    EXPECT_EQ(call.data[0], 1);
    Call good(kAdd, 10);
    ASSERT_OK(run(*runner, good));
    EXPECT_EQ(good.data[0], 11);
  }
}

TEST_F(Registered, ARunWithFewerArgumentsThanTheOrchestrationExpectsDoesNotStart) {
  Call call(kAdd, 1);
  call.args().scalar_count_ = 1;
  const Status status = run(*runner, call);
  EXPECT_FAILS(status, ErrorKind::kRun, "expects 3 arguments and got 2");
  EXPECT_EQ(status.code(), -1);
  EXPECT_EQ(call.data[0], 1);
}

TEST_F(Registered, ARunThatSubmitsNothingEnds) {
  Call call(kNothing, 0);
  ASSERT_OK(run(*runner, call));
  EXPECT_EQ(call.data[0], 1);
}

TEST_F(Registered, TheConfigurationIsCheckedBeforeAnythingMoves) {
  Call call(kAdd, 1);
  RunId id = 0;
  abi::CallConfig config{};
  for (int threads : {1, 5, -1}) {
    config.aicpu_thread_num = threads;
    EXPECT_FAILS(runner->prepare_run(0, call.args(), config, &id), ErrorKind::kValue, "aicpu_thread_num");
  }
  config.aicpu_thread_num = 4;
  config.runtime_env.ring_task_window[2] = 5;
  EXPECT_FAILS(runner->prepare_run(0, call.args(), config, &id), ErrorKind::kValue, "ring_task_window");
  config.runtime_env.ring_task_window[2] = 4;
  ASSERT_OK(runner->prepare_run(0, call.args(), config, &id));
  ASSERT_OK(runner->finalize_run(id, nullptr));
}

TEST_F(Registered, RingSizesMayDifferFromRunToRun) {
  for (std::uint64_t window : {4, 64, 16384, 8}) {
    Call call(kAdd, window);
    abi::CallConfig config{};
    for (int ring = 0; ring < 4; ++ring) {
      config.runtime_env.ring_task_window[ring] = window;
      config.runtime_env.ring_heap[ring] = 1024 * window;
    }
    RunId id = 0;
    ASSERT_OK(runner->prepare_run(0, call.args(), config, &id));
    ASSERT_OK(runner->launch_run(id));
    ASSERT_OK(runner->finalize_run(id, nullptr));
    EXPECT_EQ(call.data[0], 1 + static_cast<int>(window));
  }
}

TEST_F(Registered, OtherThreadsMayUseItWhileARunIsWaitedFor) {
  std::atomic<int> flag{0};
  static_assert(sizeof flag == sizeof(int));
  Call call(kWait, reinterpret_cast<std::uint64_t>(&flag));
  RunId id = 0;
  ASSERT_OK(runner->prepare_run(0, call.args(), {}, &id));
  ASSERT_OK(runner->launch_run(id));
  Status outcome;
  std::thread waiter([&] {
    bool done = false;
    outcome = runner->wait_run(id, -1, &done);
  });
  std::uint64_t address = 0;
  ASSERT_OK(runner->malloc(16, &address));  // none of these waits for the run
  ASSERT_OK(runner->copy_to(address, &address, 8));
  ASSERT_OK(runner->free(address));
  flag = 1;
  waiter.join();
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  ASSERT_OK(runner->finalize_run(id, nullptr));
}

// A device whose stream_sync, on a thread that asks for it, stops before its second call until the test goes on.
struct Gate {
  Gate() : table(soft.table()), inner(table.stream_sync) {
    the_gate = this;
    table.stream_sync = [](void* self, driver::Stream* stream, std::int32_t limit_ms) {
      if (calls_left > 0 && --calls_left == 0) {
        the_gate->arrived.count_down();
        the_gate->go.wait();
      }
      return the_gate->inner(self, stream, limit_ms);
    };
  }
  driver::SoftDriver soft{{2, 2}};
  driver::Driver table;
  decltype(driver::Driver::stream_sync) inner;
  std::latch arrived{1}, go{1};
  static inline thread_local int calls_left = 0;
  static inline Gate* the_gate = nullptr;
};

TEST(DeviceRunnerStreams, AWaiterWhoseRunIsFinalizedAndWhoseStreamsAreReplacedHarmsNothing) {
  Gate gate;
  std::unique_ptr<DeviceRunner> runner;
  RunnerOptions options{"a2a3sim", "tensormap_and_ringbuffer", 0, 2, 2};
  options.driver = &gate.table;
  options.look_again_ms = 60'000;  // one call for each stream, however slowly the run ends
  ASSERT_OK(DeviceRunner::open(options, &runner));
  ASSERT_OK(runner->register_callable(0, callable().words.data(), callable().bytes));
  Call call(kAdd, 1);
  RunId id = 0;
  ASSERT_OK(runner->prepare_run(0, call.args(), {}, &id));
  ASSERT_OK(runner->launch_run(id));
  Status outcome;
  std::thread waiter([&] {
    Gate::calls_left = 2;  // between the streams of the control processors and of the cores
    bool done = false;
    outcome = runner->wait_run(id, -1, &done);
  });
  gate.arrived.wait();
  ASSERT_OK(runner->finalize_run(id, nullptr));
  ASSERT_OK(runner->unregister_callable(0));
  ASSERT_OK(runner->register_callable(0, callable().words.data(), callable().bytes));  // uploaded: it needs new streams
  ASSERT_OK(run(*runner, call));
  gate.go.count_down();
  waiter.join();
  EXPECT_FAILS(outcome, ErrorKind::kState, "already finalized");
  ASSERT_OK(run(*runner, call));
  EXPECT_EQ(call.data[0], 4);
}

// ---- the end --------------------------------------------------------------------------------------------------------

TEST_F(Registered, EveryCallAnswersThatAFinalizedRunnerIsFinalized) {
  Call call(kAdd, 1);
  RunId id = 0;
  bool done;
  std::uint64_t address = 0;
  ASSERT_OK(runner->malloc(16, &address));
  ASSERT_OK(runner->prepare_run(0, call.args(), {}, &id));
  ASSERT_OK(runner->finalize());
  ASSERT_OK(runner->finalize());
  RunId other = 0;
  EXPECT_FAILS(runner->malloc(16, &address), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->free(address), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->copy_to(address, &address, 8), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->copy_from(&address, address, 8), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->register_callable(1, callable().words.data(), callable().bytes), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->unregister_callable(0), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->prepare_run(0, call.args(), {}, &other), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->launch_run(id), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->wait_run(id, -1, &done), ErrorKind::kState, "finalized");
  EXPECT_FAILS(runner->finalize_run(id, nullptr), ErrorKind::kState, "finalized");
  EXPECT_EQ(runner->committed_memory(), 0u);
}

TEST_F(Registered, FinalizingWaitsForTheRunThatExecutes) {
  Call call(kAdd, 1);
  RunId id = 0;
  ASSERT_OK(runner->prepare_run(0, call.args(), {}, &id));
  ASSERT_OK(runner->launch_run(id));
  runner.reset();
  EXPECT_EQ(call.data[0], 2) << "its results were fetched";
}

TEST(DeviceRunnerStreams, ForLibrariesOfCommunicationGoWithTheDevice) {
  driver::SoftDriver soft({2, 2});
  const driver::Driver& d = soft.table();
  RunnerOptions options{"a2a3sim", "tensormap_and_ringbuffer", 0, 2, 2};
  options.driver = &d;
  std::unique_ptr<DeviceRunner> runner;
  ASSERT_OK(DeviceRunner::open(options, &runner));
  const std::size_t own = soft.census().streams;
  driver::Stream *kept = nullptr, *given_back = nullptr;
  ASSERT_OK(runner->create_stream(&kept));
  ASSERT_OK(runner->create_stream(&given_back));
  EXPECT_EQ(soft.census().streams, own + 2);
  ASSERT_OK(runner->destroy_stream(given_back));
  EXPECT_EQ(soft.census().streams, own + 1);
  EXPECT_FAILS(runner->destroy_stream(given_back), ErrorKind::kValue, "did not return that stream");
  ASSERT_OK(runner->prepare_acl());
  ASSERT_OK(runner->prepare_acl());
  EXPECT_EQ(d.acl_init(d.self), driver::kRepeatInitialize);
  ASSERT_OK(runner->finalize());
  EXPECT_FAILS(runner->create_stream(&kept), ErrorKind::kState, "finalized");
  EXPECT_EQ(d.acl_init(d.self), driver::kOk) << "who set the process up takes it back";
  EXPECT_EQ(d.acl_finalize(d.self), driver::kOk);
  EXPECT_TRUE(soft.census().empty());
}

}  // namespace
}  // namespace simpler::host
