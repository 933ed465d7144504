// Whole lives of device runners: the calls that one makes, a thousand of them, several at once, and those that end badly.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "abi/chip_callable.h"
#include "base/log.h"
#include "driver/fault/fault_driver.h"
#include "driver/soft/soft_driver.h"
#include "fault/support/open_resources.h"
#include "fault/support/sweep.h"
#include "host/device_runner.h"

namespace simpler::host {
namespace {

#define ASSERT_OK(expression)                                 \
  do {                                                        \
    const Status status_of_it = (expression);                 \
    ASSERT_TRUE(status_of_it.ok()) << status_of_it.message(); \
  } while (false)

class Sum {
 public:
  Sum() : args_(std::make_unique<ChipStorageTaskArgs>()) {
    const std::uint32_t shape = 4;
    args_->clear();
    args_->add_tensor(make_tensor_external(data, &shape, 1, DataType::INT32));
    args_->add_scalar(std::uint64_t{10});
  }
  const ChipStorageTaskArgs& args() const { return *args_; }
  std::int32_t data[4] = {1, 2, 3, 4};

 private:
  std::unique_ptr<ChipStorageTaskArgs> args_;
};

RunnerOptions options_for(const driver::Driver& driver, int device = 0) {
  RunnerOptions options;
  options.platform = "a2a3sim";
  options.runtime = "tensormap_and_ringbuffer";
  options.device_id = device;
  options.sim_clusters = options.sim_threads = 2;
  options.driver = &driver;
  options.recovery_limit_ms = 5;
  options.look_again_ms = 60'000;  // no further calls on a slow machine
  return options;
}

// With another name it is another content, which does the same.
Status add(DeviceRunner& runner, int slot = 0, const char* config_name = "") {
  const std::string blob = test::adding_callable();
  std::vector<std::uint64_t> words((blob.size() + 15) / 16 * 2);
  std::memcpy(words.data(), blob.data(), blob.size());
  auto& header = *reinterpret_cast<abi::ChipCallable*>(words.data());
  std::strcpy(header.config_name, config_name);
  header.config_name_len = static_cast<std::uint32_t>(std::strlen(config_name));
  return runner.register_callable(slot, words.data(), blob.size());
}

Status run(DeviceRunner& runner, const Sum& sum, int slot = 0) {
  RunId id = 0;
  if (Status status = runner.prepare_run(slot, sum.args(), {}, &id); !status.ok()) return status;
  if (Status status = runner.launch_run(id); !status.ok()) {
    static_cast<void>(runner.finalize_run(id, nullptr));
    return status;
  }
  return runner.finalize_run(id, nullptr);
}

std::string calls_since(const driver::FaultDriver& fault, std::size_t from) {
  std::string calls;
  const std::vector<driver::CallRecord> log = fault.log();
  for (std::size_t i = from; i < log.size(); ++i) {
    const std::string name = name_of(log[i].call);
    const bool again =
        calls.size() > name.size() && calls.compare(calls.size() - name.size() - 1, name.size(), name) == 0;
    if (!again) calls += name + " ";  // repetitions are not told
  }
  return calls;
}

// ---- what is called, in which order ---------------------------------------------------------------------------------------

TEST(RunnerCalls, EachStepMakesItsCallsInTheirOrder) {
  log::set_threshold(static_cast<int>(log::Level::kWarn));  // no phases are read
  driver::SoftDriver soft({2, 2});
  driver::FaultDriver fault(soft.table());
  std::unique_ptr<DeviceRunner> runner;
  std::size_t from = 0;
  const auto step = [&](const char* calls) {
    EXPECT_EQ(calls_since(fault, from), calls);
    from = fault.log().size();
  };
  ASSERT_OK(DeviceRunner::open(options_for(fault.table()), &runner));
  step(
      "set_log_level set_device set_op_timeout stream_create stream_core_limits core_registers alloc copy_to_device "
      "sync_window cpu_mask cpu_bootstrap cpu_load cpu_function core_image_load cpu_launch stream_sync ");
  ASSERT_OK(add(*runner));
  step("alloc copy_to_device child_code_resolve copy_to_device alloc copy_to_device cpu_launch stream_sync ");
  ASSERT_OK(add(*runner, 1));
  step("cpu_launch stream_sync ");  // the same content: nothing is uploaded
  Sum sum;
  RunId id = 0;
  ASSERT_OK(runner->prepare_run(0, sum.args(), {}, &id));
  step("alloc copy_to_device alloc copy_to_device alloc copy_to_device ");
  ASSERT_OK(runner->launch_run(id));
  step("stream_create core_launch cpu_launch ");  // cores first
  bool done = false;
  ASSERT_OK(runner->wait_run(id, -1, &done));
  step("stream_sync ");
  ASSERT_OK(runner->finalize_run(id, nullptr));
  step("copy_from_device ");
  ASSERT_OK(run(*runner, sum));
  step("copy_to_device core_launch cpu_launch stream_sync copy_from_device ");  // memory and streams are kept
  ASSERT_OK(runner->unregister_callable(1));
  step("cpu_launch stream_sync ");
  ASSERT_OK(runner->finalize());
  step("stream_destroy cpu_unload free child_code_release free reset_device ");  // streams are not waited for
  log::set_threshold(static_cast<int>(log::Level::kTiming));
}

TEST(RunnerCalls, ADeviceInDoubtIsAskedForNothingButItsRecovery) {
  driver::SoftDriver soft({2, 2});
  driver::FaultDriver fault(soft.table(), {{.call = "core_launch"}});
  std::unique_ptr<DeviceRunner> runner;
  ASSERT_OK(DeviceRunner::open(options_for(fault.table()), &runner));
  ASSERT_OK(add(*runner));
  EXPECT_FALSE(run(*runner, Sum()).ok());
  EXPECT_FALSE(runner->usable());
  const std::size_t from = fault.log().size();
  std::uint64_t address = 0;
  EXPECT_FALSE(runner->malloc(8, &address).ok());
  EXPECT_FALSE(runner->unregister_callable(0).ok());
  EXPECT_FALSE(run(*runner, Sum()).ok());
  ASSERT_OK(runner->finalize());
  EXPECT_EQ(
      calls_since(fault, from),
      "acl_init set_device sync_device force_reset set_device stream_create stream_destroy alloc free reset_device "
      "acl_finalize ");
  EXPECT_TRUE(soft.census().empty());
}

TEST(RunnerCalls, APrewarmedRunnerHasTheRingsOfItsFirstRun) {
  driver::SoftDriver soft({2, 2});
  std::unique_ptr<DeviceRunner> runner;
  ASSERT_OK(DeviceRunner::open(options_for(soft.table()), &runner));
  EXPECT_EQ(runner->heap_address(0), 0u);
  abi::CallConfig config{};
  config.runtime_env.ring_heap[0] = 5;
  EXPECT_FALSE(runner->prewarm(config).ok()) << "the configuration is checked";
  ASSERT_OK(runner->prewarm({}));
  const std::uint64_t heap = runner->heap_address(0);
  EXPECT_NE(heap, 0u);
  ASSERT_OK(add(*runner));
  ASSERT_OK(run(*runner, Sum()));
  EXPECT_EQ(runner->heap_address(0), heap);
}

TEST(RunnerCalls, NewCodeReplacesTheCoresStreamAndCodeThatIsThereDoesNot) {
  driver::SoftDriver soft({2, 2});
  driver::FaultDriver fault(soft.table());
  std::unique_ptr<DeviceRunner> runner;
  ASSERT_OK(DeviceRunner::open(options_for(fault.table()), &runner));
  ASSERT_OK(add(*runner));
  ASSERT_OK(run(*runner, Sum()));
  const std::size_t streams = fault.calls("stream_create");
  ASSERT_OK(add(*runner, 1));
  ASSERT_OK(run(*runner, Sum(), 1));
  EXPECT_EQ(fault.calls("stream_create"), streams) << "the same content";
  ASSERT_OK(add(*runner, 2, "other"));
  ASSERT_OK(run(*runner, Sum()));
  EXPECT_EQ(fault.calls("stream_create"), streams + 1);
  ASSERT_OK(run(*runner, Sum(), 2));
  EXPECT_EQ(fault.calls("stream_create"), streams + 1);
}

// The one stream that never ends, to whoever waits for it.
driver::Driver inner;
driver::Stream *endless = nullptr, *of_control = nullptr, *of_cores = nullptr;

TEST(RunnerCalls, AWaitThatIsTooLongSaysForWhomAndHowLongAndPutsTheDeviceInDoubt) {
  driver::SoftDriver soft({2, 2});
  inner = soft.table();
  driver::Driver table = inner;
  table.core_launch = [](void* self, driver::CoreImage* image, int blocks, std::uint64_t args, driver::Stream* stream) {
    of_cores = stream;
    return inner.core_launch(self, image, blocks, args, stream);
  };
  table.cpu_launch = [](void* self, driver::CpuFunction* function, int threads, const void* payload, std::size_t bytes,
                        driver::Stream* stream) {
    if (threads > 1) of_control = stream;  // a run's
    return inner.cpu_launch(self, function, threads, payload, bytes, stream);
  };
  table.stream_sync = [](void* self, driver::Stream* stream, std::int32_t timeout_ms) {
    if (stream != endless) return inner.stream_sync(self, stream, timeout_ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return driver::kSyncTimeout;
  };
  RunnerOptions options = options_for(table, 4);
  options.timeouts = Timeouts{.op_us = 60'000'000, .sync_ms = 50};
  for (const bool cores : {false, true}) {
    std::unique_ptr<DeviceRunner> runner;
    ASSERT_OK(DeviceRunner::open(options, &runner));
    ASSERT_OK(add(*runner));
    Sum sum;
    RunId id = 0;
    ASSERT_OK(runner->prepare_run(0, sum.args(), {}, &id));
    ASSERT_OK(runner->launch_run(id));
    ASSERT_EQ(inner.stream_sync(inner.self, of_control, -1), driver::kOk);  // the run has ended, however slowly
    endless = cores ? of_cores : of_control;
    const Status status = runner->finalize_run(id, nullptr);
    EXPECT_EQ(status.code(), driver::kSyncTimeout);
    const std::string whose = cores ? "of the cores" : "of the control processors";
    for (const std::string& part : {std::string("run failed: 507046"), whose, std::string("50 ms after the launch"),
                                    std::string("2 clusters of device 4")})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_FALSE(runner->usable());
    endless = nullptr;
    ASSERT_OK(runner->finalize());
  }
}

// ---- pipelined runs -------------------------------------------------------------------------------------------------------

TEST(RunnerPipeline, ASuccessorIsPreparedWhileItsPredecessorExecutesAndSurvivesItsFailure) {
  for (const char* failing : {"stream_sync", "copy_from_device", ""}) {
    driver::SoftDriver soft({2, 2});
    driver::FaultDriver fault(soft.table());
    std::unique_ptr<DeviceRunner> runner;
    ASSERT_OK(DeviceRunner::open(options_for(fault.table()), &runner));
    ASSERT_OK(add(*runner));
    Sum first, second;
    RunId ids[2] = {};
    ASSERT_OK(runner->prepare_run(0, first.args(), {}, &ids[0]));
    ASSERT_OK(runner->launch_run(ids[0]));
    ASSERT_OK(runner->prepare_run(0, second.args(), {}, &ids[1]));
    if (*failing != '\0') fault.set_rules({{.call = failing}});
    EXPECT_EQ(runner->finalize_run(ids[0], nullptr).ok(), *failing == '\0');
    const bool in_doubt = std::string(failing) == "stream_sync";
    EXPECT_EQ(runner->usable(), !in_doubt) << failing;
    EXPECT_EQ(runner->launch_run(ids[1]).ok(), !in_doubt) << failing;
    EXPECT_TRUE(runner->finalize_run(ids[1], nullptr).ok()) << "one that was never launched is given back";
    EXPECT_EQ(second.data[0], in_doubt ? 1 : 11);
    ASSERT_OK(runner->finalize());
    EXPECT_TRUE(soft.census().empty()) << failing;
  }
}

TEST(RunnerPipeline, TheTraceShowsPreparationInsideTheExecutionOfThePredecessor) {
  driver::SoftDriver soft({2, 2});
  std::unique_ptr<DeviceRunner> runner;
  ASSERT_OK(DeviceRunner::open(options_for(soft.table()), &runner));
  ASSERT_OK(add(*runner));
  Sum first, second;
  RunId ids[2] = {};
  testing::internal::CaptureStderr();
  ASSERT_OK(runner->prepare_run(0, first.args(), {}, &ids[0]));
  ASSERT_OK(runner->launch_run(ids[0]));
  ASSERT_OK(runner->prepare_run(0, second.args(), {}, &ids[1]));
  ASSERT_OK(runner->finalize_run(ids[0], nullptr));
  ASSERT_OK(runner->launch_run(ids[1]));
  ASSERT_OK(runner->finalize_run(ids[1], nullptr));
  const std::string text = testing::internal::GetCapturedStderr();
  const auto span = [&](RunId run, const char* name) {
    const std::string line = "inv=" + std::to_string(run) + " ";
    for (std::size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) {
      const std::string rest = text.substr(at, text.find('\n', at) - at);
      if (rest.find(std::string("name=") + name + " ") == std::string::npos) continue;
      const long long begin = std::stoll(rest.substr(rest.find("ts=") + 3));
      return std::pair(begin, begin + std::stoll(rest.substr(rest.find("dur=") + 4)));
    }
    ADD_FAILURE() << "no span " << name << " of run " << run << " in\n" << text;
    return std::pair(0ll, 0ll);
  };
  EXPECT_GE(span(ids[1], "chip.run.bind").first, span(ids[0], "chip.run.runner_run").first);
  EXPECT_LE(span(ids[1], "chip.run.bind").second, span(ids[0], "chip.run.runner_run").second);
  EXPECT_GE(span(ids[1], "chip.run.runner_run").first, span(ids[0], "chip.run.runner_run").second)
      << "but execution is one after the other";
}

// ---- many -----------------------------------------------------------------------------------------------------------------

std::size_t resident_kib() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

TEST(RunnerLives, AThousandOfThemLeaveNothingBehindSlow) {
  driver::SoftDriver soft({1, 1});
  const auto live = [&] {
    std::unique_ptr<DeviceRunner> runner;
    ASSERT_OK(DeviceRunner::open(options_for(soft.table()), &runner));
    ASSERT_OK(add(*runner));
    Sum sum;
    ASSERT_OK(run(*runner, sum));
    EXPECT_EQ(sum.data[3], 14);
    ASSERT_OK(runner->finalize());
  };
  log::set_threshold(static_cast<int>(log::Level::kWarn));
  for (int i = 0; i < 50; ++i) live();
  const std::size_t files = test::open_files(), threads = test::living_threads(), memory = resident_kib();
  for (int i = 0; i < 1000; ++i) live();
  EXPECT_EQ(test::open_files(), files);
  EXPECT_EQ(test::living_threads(), threads);
  EXPECT_LT(resident_kib(), memory + 4096) << "KiB; a leak of one block of arguments per life would be more";
  EXPECT_TRUE(soft.census().empty());
  log::set_threshold(static_cast<int>(log::Level::kTiming));
}

TEST(RunnerLives, SeveralDevicesOfOneProcessShareNothing) {
  log::set_threshold(static_cast<int>(log::Level::kWarn));
  driver::SoftDriver soft({2, 2});
  driver::FaultDriver fault(soft.table(),
                            {{.call = "core_launch", .device = 1, .nth = 3, .code = driver::kCoreException}});
  std::atomic<int> right{0}, refused{0};
  std::vector<std::thread> threads;
  for (int device = 0; device < 4; ++device) {
    threads.emplace_back([&, device] {
      std::unique_ptr<DeviceRunner> runner;
      ASSERT_OK(DeviceRunner::open(options_for(fault.table(), device), &runner));
      ASSERT_OK(add(*runner));
      for (int i = 0; i < 10; ++i) {
        Sum sum;
        const Status status = run(*runner, sum);
        right += status.ok() && sum.data[0] == 11;
        refused += !status.ok();
      }
      EXPECT_EQ(runner->usable(), device != 1);
      ASSERT_OK(runner->finalize());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 3 * 10 + 2) << "device 1 fails at its third run, and the others do not notice";
  EXPECT_EQ(refused.load(), 8);
  EXPECT_TRUE(soft.census().empty());
  log::set_threshold(static_cast<int>(log::Level::kTiming));
}

TEST(RunnerLives, PhasesOfARunMayComeFromDifferentThreads) {
  driver::SoftDriver soft({2, 2});
  std::unique_ptr<DeviceRunner> runner;
  RunId id = 0;
  Sum sum;
  const auto on_a_thread = [](auto act) { std::thread([&] { ASSERT_OK(act()); }).join(); };
  on_a_thread([&] { return DeviceRunner::open(options_for(soft.table()), &runner); });
  on_a_thread([&] { return add(*runner); });
  on_a_thread([&] { return runner->prepare_run(0, sum.args(), {}, &id); });
  on_a_thread([&] { return runner->launch_run(id); });
  on_a_thread([&] { return runner->finalize_run(id, nullptr); });
  EXPECT_EQ(sum.data[0], 11);
  on_a_thread([&] { return runner->finalize(); });
  EXPECT_TRUE(soft.census().empty());
}

// ---- the log --------------------------------------------------------------------------------------------------------------

TEST(Log, RecordsOfThreadsAndForkedProcessesAreWholeLines) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  std::thread reader;
  std::string text;
  reader = std::thread([&] {
    char chunk[4096];
    for (ssize_t got; (got = read(ends[0], chunk, sizeof chunk)) > 0;)
      text.append(chunk, static_cast<std::size_t>(got));
  });
  // Made here: a child asks for no memory, whose locks a thread that it does not have may hold.
  std::vector<std::string> payloads;
  for (char who = 'a'; who <= 'h'; ++who) payloads.emplace_back(200, who);
  const auto write_record = [&](char who) {
    log::host(log::Level::kError, "writer", "<%s>", payloads[static_cast<std::size_t>(who - 'a')].c_str());
  };
  const auto write_some = [&](char who) {
    for (int i = 0; i < 200; ++i) write_record(who);
  };
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // somebody logs at the moment of each fork
    while (!stop) write_record('h');
  });
  std::vector<pid_t> children;
  for (char who = 'a'; who < 'e'; ++who) {
    const pid_t child = fork();
    if (child == 0) {
      write_some(who);
      _exit(0);
    }
    children.push_back(child);
  }
  std::vector<std::thread> threads;
  for (char who = 'e'; who < 'h'; ++who) threads.emplace_back(write_some, who);
  for (std::thread& thread : threads) thread.join();
  for (const pid_t child : children) {
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    EXPECT_EQ(how, 0) << "a lock held across the fork would have stopped it";
  }
  stop = true;
  busy.join();
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  int counts[8] = {};
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    const std::size_t open = line.find('<');
    ASSERT_NE(open, std::string::npos) << line;
    ASSERT_EQ(line.size(), open + 202) << line;
    ASSERT_EQ(line.find_first_not_of(line[open + 1], open + 1), open + 201) << "two records in one: " << line;
    ASSERT_EQ(line.rfind("[mono_ns=", 0), 0u) << line;
    if (line[open + 1] < 'h') ++counts[line[open + 1] - 'a'];
  }
  for (int who = 0; who < 7; ++who) EXPECT_EQ(counts[who], 200);
}

}  // namespace
}  // namespace simpler::host
