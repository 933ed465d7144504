#include "fault/support/sweep.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "abi/phase_buffer.h"
#include "base/status.h"
#include "base/thread_serial.h"
#include "driver/soft/soft_driver.h"
#include "executor/arch_profile.h"
#include "fault/support/open_resources.h"
#include "host/collector.h"
#include "host/device_runner.h"
#include "unit/support/callable_blob.h"
#include "unit/support/compiled_code.h"

namespace simpler::test {
namespace {

using driver::Call;
using driver::Fault;

constexpr int kInjected = 599'001;  // no code of the vendor's

const char* const kOrchestration = R"(
#include "pto_orchestration_api.h"
extern "C" __attribute__((visibility("default"))) void entry(const ChipTaskArgs& in) {
  CoreTaskArgs args;
  args.add_inout(in.tensor(0));
  args.add_scalar(in.scalar(0));
  rt_submit_aiv_task(0, args);
})";
const char* const kKernel =
    "#include \"tensor.h\"\nextern \"C\" void kernel_entry(int64_t* args) {\n"
    "  auto* t = reinterpret_cast<ChipTensor*>(args[0]);\n"
    "  for (uint64_t i = 0; i < t->numel(); ++i) t->data_as<int>()[i] += static_cast<int>(args[1]);\n}\n";

struct Blob {
  std::vector<std::uint64_t> words;
  std::size_t bytes = 0;
};
const Blob& callable() {
  static const Blob blob = [] {
    Blob made;
    made.words =
        callable_blob({.orchestration = compiled(kOrchestration), .kernels = {{0, compiled(kKernel)}}}, &made.bytes);
    return made;
  }();
  return blob;
}

class Arguments {
 public:
  explicit Arguments(int value) : args_(std::make_unique<ChipStorageTaskArgs>()), value_(value) {
    const std::uint32_t shape = 4;
    args_->clear();
    args_->add_tensor(make_tensor_external(data_, &shape, 1, DataType::INT32));
    args_->add_scalar(static_cast<std::uint64_t>(value));
  }
  const ChipStorageTaskArgs& args() const { return *args_; }
  bool added() const { return data_[0] == 1 + value_ && data_[3] == 4 + value_; }

 private:
  std::int32_t data_[4] = {1, 2, 3, 4};
  std::unique_ptr<ChipStorageTaskArgs> args_;
  const int value_;
};

// A tool with memory that it maps, and a thread.
class TestCollector : public host::Collector {
 public:
  const char* name() const override { return "test"; }
  bool wants_clock() const override { return true; }
  Status prepare(const host::CollectorContext& context) override {
    ++balance_prepared;
    if (Status status = memory_.grow(context.allocator(), 4096); !status.ok()) return status;
    host::Device& device = context.device();
    if (Status status = device.run("map_host", &driver::Driver::map_host, memory_.address(), 4096, &mapped_);
        !status.ok()) {
      mapped_ = nullptr;
      return status;
    }
    return device.run("fill", &driver::Driver::fill, memory_.address(), 0, 4096);
  }
  Status start(const host::CollectorContext& context) override {
    ++balance_started;
    thread_ = context.make_thread([this] {
      std::unique_lock lock(mutex_);
      wakeup_.wait(lock, [this] { return stop_; });
      stop_ = false;
    });
    return Status();
  }
  void stop(const host::CollectorContext& context, bool) override {
    --balance_started;
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wakeup_.notify_all();
    thread_.join();
    char byte = 0;
    if (context.device().owns()) context.device().call(&driver::Driver::copy_from_device, &byte, memory_.address(), 1);
  }
  void release(const host::CollectorContext& context) override {
    --balance_prepared;
    if (mapped_ != nullptr && context.device().owns())
      context.device().call(&driver::Driver::unmap_host, memory_.address());
    mapped_ = nullptr;
    static_cast<void>(memory_.release());
  }

  int balance_prepared = 0, balance_started = 0;

 private:
  host::DeviceBlock memory_;
  void* mapped_ = nullptr;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wakeup_;
  bool stop_ = false;
};

// One passage through a scenario.
class Passage {
 public:
  Passage(const Scenario& scenario, const driver::Driver& driver) : scenario_(scenario) {
    options_.platform = scenario.arch + "sim";
    options_.runtime = "tensormap_and_ringbuffer";
    options_.sim_clusters = options_.sim_threads = 2;
    options_.driver = &driver;
    options_.dma_engines = scenario.dma ? 1 : 0;
    options_.recovery_limit_ms = 15;  // short, since many cases use it up; what comes of it changes nothing
    // However slow the machine is, each wait is one call, and ends before its limit.
    options_.look_again_ms = 60'000;
    options_.timeouts = host::Timeouts{.op_us = 60'000'000, .sync_ms = 60'000};
    if (scenario.collector) options_.collectors = {&collector_};
  }
  void limit_waits(std::int32_t ms) { options_.timeouts->sync_ms = ms; }

  struct Step {
    const char* name;
    std::function<Status()> act;
  };
  std::vector<Step> steps() {
    std::vector<Step> list = {
        {"open", [this] { return host::DeviceRunner::open(options_, &runner_); }},
        {"malloc", [this] { return runner_->malloc(64, &memory_); }},
        {"copy_to", [this] { return runner_->copy_to(memory_, "x", 1); }},
        {"register", [this] { return add(0); }},
        {"register again", [this] { return add(1); }},
        {"prepare 1", [this] { return prepare(0, first_, &runs_[0]); }},
        {"launch 1", [this] { return runner_->launch_run(runs_[0]); }},
    };
    const auto then = [&](const char* name, std::function<Status()> act) { list.push_back({name, std::move(act)}); };
    if (scenario_.dma) {  // and what libraries of communication ask for
      then("set up acl", [this] { return runner_->prepare_acl(); });
      then("create stream", [this] { return runner_->create_stream(&stream_); });
      then("create stream to keep", [this] {
        driver::Stream* kept = nullptr;
        return runner_->create_stream(&kept);
      });
    }
    if (!scenario_.collector && !scenario_.in_doubt)
      then("prepare 2", [this] { return prepare(1, second_, &runs_[1]); });
    then("wait 1", [this] { return wait(runs_[0], -1); });
    then("finalize run 1", [this] { return runner_->finalize_run(runs_[0], nullptr); });
    if (scenario_.in_doubt) {
      then("finalize", [this] { return runner_->finalize(); });
      return list;
    }
    if (scenario_.collector) then("prepare 2", [this] { return prepare(1, second_, &runs_[1]); });
    then("launch 2", [this] { return runner_->launch_run(runs_[1]); });
    then("poll 2", [this] { return wait(runs_[1], 0); });
    then("finalize run 2", [this] { return runner_->finalize_run(runs_[1], nullptr); });
    then("unregister", [this] { return runner_->unregister_callable(0); });
    then("copy_from", [this] {
      char byte = 0;
      return runner_->copy_from(&byte, memory_, 1);
    });
    then("free", [this] { return runner_->free(memory_); });
    if (scenario_.dma) {
      then("destroy stream", [this] { return runner_->destroy_stream(stream_); });
      then("release dma", [this] { return runner_->release_dma(); });
    }
    then("finalize", [this] { return runner_->finalize(); });
    return list;
  }

  // After a step that failed: what is under way is ended, and everything is done once more.
  std::string goes_on() {
    for (const host::RunId run : runs_) {
      if (run != 0) static_cast<void>(runner_->finalize_run(run, nullptr));
    }
    Arguments again(5);
    host::RunId run = 0;
    Status status = add(9);
    if (status.ok()) status = prepare(9, again, &run);
    if (status.ok()) status = runner_->launch_run(run);
    if (status.ok()) status = runner_->finalize_run(run, nullptr);
    if (!status.ok()) return "it does not go on: " + status.message();
    return again.added() ? "" : "after the failure results are wrong";
  }
  // A runner in doubt takes no work, and says why.
  std::string refuses() {
    host::RunId run = 0;
    std::uint64_t address = 0;
    for (const Status& status : {prepare(0, first_, &run), runner_->malloc(8, &address)}) {
      if (status.ok()) return "a device in doubt took work";
      if (status.message().find("quarantined") == std::string::npos)
        return "the refusal does not tell why: " + status.message();
    }
    return "";
  }
  bool results_are_right() const { return first_.added() && (scenario_.in_doubt || second_.added()); }

  host::DeviceRunner* runner() { return runner_.get(); }
  void drop_runner() { runner_.reset(); }
  const TestCollector& collector() const { return collector_; }

 private:
  Status add(int slot) { return runner_->register_callable(slot, callable().words.data(), callable().bytes); }
  Status prepare(int slot, const Arguments& arguments, host::RunId* run) {
    return runner_->prepare_run(slot, arguments.args(), {}, run);
  }
  // A poll that finds the run under way looks again.
  Status wait(host::RunId run, std::int64_t timeout_ns) {
    bool done = false;
    Status status;
    while (status.ok() && !done) {
      status = runner_->wait_run(run, timeout_ns, &done);
      if (!done) std::this_thread::yield();
    }
    return status;
  }

  const Scenario& scenario_;
  host::RunnerOptions options_;
  TestCollector collector_;
  std::unique_ptr<host::DeviceRunner> runner_;
  Arguments first_{10}, second_{20};
  host::RunId runs_[2] = {};
  std::uint64_t memory_ = 0;
  driver::Stream* stream_ = nullptr;
};

driver::SoftOptions soft_options(const Scenario& scenario) {
  return {.guard_bytes = 64, .dma_engines = scenario.dma ? 1u : 0u};
}

std::vector<driver::FaultRule> rules_of(const Scenario& scenario, const Case* failing) {
  std::vector<driver::FaultRule> rules;
  if (failing != nullptr && failing->nth != 0) {
    rules.push_back({.fault = failing->fault,
                     .call = name_of(failing->call),
                     .nth = failing->nth,
                     .times = failing->fault == Fault::kHang ? -1 : failing->times,
                     .code = kInjected,
                     .delay = std::chrono::milliseconds(1)});
  }
  if (scenario.in_doubt) rules.push_back({.call = "core_launch", .code = driver::kCoreException});
  if (scenario.reset_fails) rules.push_back({.call = "force_reset", .times = -1, .code = driver::kDriverInternal});
  return rules;
}

// ---- what is expected --------------------------------------------------------------------------------------------------

enum class Expected { kFails, kSucceeds, kEither };

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

Expected expected_of_call(const Scenario& scenario, const std::string& step, const driver::CallRecord& hit);

Expected expected_of_step(const Scenario& scenario, const std::string& step, const driver::CallRecord& hit,
                          Fault fault) {
  if (fault == Fault::kDelay) return Expected::kSucceeds;
  if (hit.code == driver::kStreamNotComplete) return Expected::kSucceeds;  // that was its effect, not a failure
  const Expected expected = expected_of_call(scenario, step, hit);
  // These two go on after the call, and what follows in the step fails perhaps.
  const bool goes_on = fault == Fault::kSticky || fault == Fault::kHang;
  return expected == Expected::kSucceeds && goes_on ? Expected::kEither : expected;
}

Expected expected_of_call(const Scenario& scenario, const std::string& step, const driver::CallRecord& hit) {
  const executor::ArchProfile& arch = *executor::find_arch(scenario.arch);
  switch (hit.call) {
    case Call::k_set_log_level:
    case Call::k_set_op_timeout:
    case Call::k_stream_core_limits:
    case Call::k_cpu_mask:
    case Call::k_sync_device:
    case Call::k_event_create:
    case Call::k_event_record:
    case Call::k_event_sync:
    case Call::k_event_timestamp:
    case Call::k_acl_finalize: return Expected::kSucceeds;
    case Call::k_event_destroy:
    case Call::k_free:
    case Call::k_child_code_release:
    case Call::k_unmap_host:
    case Call::k_stream_destroy:
    case Call::k_cpu_unload:
    case Call::k_dma_release: return Expected::kEither;  // what cannot be given back now is no reason not to go on
    case Call::k_alloc:
      if (hit.bytes == abi::phase_buffer_bytes(arch.launch_threads)) return Expected::kSucceeds;
      break;
    case Call::k_copy_to_device:
      if (hit.bytes == abi::phase_buffer_bytes(arch.launch_threads)) return Expected::kSucceeds;
      break;
    case Call::k_copy_from_device:
      if (hit.bytes == abi::phase_tail_offset(arch.launch_threads)) return Expected::kSucceeds;
      if (hit.bytes == 1 && !starts_with(step, "copy_from")) return Expected::kSucceeds;  // the collector's
      if (hit.bytes == sizeof(std::uint32_t)) return Expected::kEither;                   // a look at a slow run
      break;
    default: break;
  }
  return hit.thread == thread_serial() ? Expected::kFails : Expected::kSucceeds;  // a tool's thread disturbs nobody
}

// Whether the runner must be in doubt once the step has failed.
bool expected_in_doubt(const std::string& step, const driver::CallRecord& hit) {
  switch (hit.call) {
    case Call::k_core_launch:
    case Call::k_stream_sync:
    case Call::k_stream_query: return true;
    case Call::k_cpu_launch: return starts_with(step, "launch");
    default: return false;
  }
}

bool gives_back(Call call) {
  switch (call) {
    case Call::k_free:
    case Call::k_stream_destroy:
    case Call::k_event_destroy:
    case Call::k_child_code_release:
    case Call::k_cpu_unload:
    case Call::k_unmap_host:
    case Call::k_dma_release: return true;
    default: return false;
  }
}

// ---- one case ----------------------------------------------------------------------------------------------------------

class Judge {
 public:
  Judge(const Scenario& scenario, const Case& failing, Plant plant)
      : scenario_(scenario), failing_(failing), plant_(plant) {}

  std::vector<std::string> run(bool* hit) {
    const std::size_t files = open_files(), threads = living_threads();
    *hit = pass();
    if (open_files() != files) complain("files are left open");
    if (living_threads() != threads) complain("threads are left");
    return wrong_;
  }

 private:
  void complain(std::string what) { wrong_.push_back(std::move(what)); }
  bool hangs_in_a_wait() const { return failing_.fault == Fault::kHang && failing_.ends_waits; }

  bool pass() {
    driver::SoftDriver soft({2, 2, scenario_.arch}, soft_options(scenario_));
    driver::FaultDriver fault(soft.table(), rules_of(scenario_, &failing_));
    bool hit = false;
    Status last;
    {
      Passage passage(scenario_, fault.table());
      if (hangs_in_a_wait()) passage.limit_waits(100);
      hit = walk(passage, soft, fault, &last);
      if (passage.runner() != nullptr) {
        const Status finalized = passage.runner()->finalize();
        if (last.ok()) last = finalized;
        if (passage.runner()->usable()) complain("a finalized runner is usable");
      }
      passage.drop_runner();
      if (passage.collector().balance_prepared != 0 || passage.collector().balance_started != 0)
        complain("a collector was not stopped and released");
    }
    const bool quarantined = last.message().find("stays quarantined") != std::string::npos;
    fault.disarm();
    if (plant_ == Plant::kLeak) {
      std::uint64_t lost = 0;
      soft.table().set_device(soft.table().self, 0);
      soft.table().alloc(soft.table().self, 8, &lost);
    }
    if (!quarantined) check_leftovers(soft, hit);
    check_new_runner(fault, quarantined);
    return hit;
  }

  // Through the steps until one fails; whether it came to the call that was to fail.
  bool walk(Passage& passage, const driver::SoftDriver& soft, driver::FaultDriver& fault, Status* last) {
    bool hit = false;
    for (const Passage::Step& step : passage.steps()) {
      // The limit ends the wait that hangs, and no other one: the run has ended before, however slow the machine is.
      if (hangs_in_a_wait() && starts_with(step.name, "wait")) soft.table().sync_device(soft.table().self, -1);
      const std::size_t before = fault.log().size();
      Status status = step.act();
      if (plant_ == Plant::kWrongCode && !status.ok()) status = Status(status.kind(), -77, status.message());
      const driver::CallRecord* record = nullptr;
      const std::vector<driver::CallRecord> log = fault.log();
      for (std::size_t i = before; i < log.size() && record == nullptr && !hit; ++i) {
        if (log[i].injected && log[i].call == failing_.call) record = &log[i];
      }
      const bool is_finalize = std::string(step.name) == "finalize";
      if (record == nullptr) {
        const bool was_told =
            scenario_.in_doubt && (starts_with(step.name, "launch") || starts_with(step.name, "wait") || is_finalize);
        if (!status.ok() && !hit && !was_told)
          complain(std::string(step.name) + " failed on its own: " + status.message());
        if (!status.ok() && hit && failing_.fault != Fault::kSticky && !is_finalize && !was_told)
          complain(std::string(step.name) + " failed after the disturbance was over: " + status.message());
        if (is_finalize) *last = status;
        if (!status.ok() && !was_told) return hit;
        continue;
      }
      hit = true;
      if (is_finalize) {
        *last = status;
        if (scenario_.in_doubt) return hit;  // whether it is reset or quarantined, check_new_runner sees
      }
      if (!judge_step(step.name, status, *record, passage, fault)) return hit;
      if (failing_.fault == Fault::kHang || failing_.times < 0) fault.disarm();
    }
    if (!scenario_.in_doubt && !passage.results_are_right() && failing_.fault != Fault::kSticky)
      complain("the results are wrong");
    return hit;
  }

  // Whether the scenario goes on.
  bool judge_step(const char* name, const Status& status, const driver::CallRecord& record, Passage& passage,
                  driver::FaultDriver& fault) {
    const std::string step = name;
    const Expected expected = expected_of_step(scenario_, step, record, failing_.fault);
    if (status.ok() && expected == Expected::kFails)
      complain(step + " succeeded although " + name_of(record.call) + " failed");
    if (!status.ok() && expected == Expected::kSucceeds) complain(step + " failed with " + status.message());
    if (status.ok()) return true;
    // Memory whose freeing failed stays known and is freed again at the end: for nothing, if it was freed after all.
    const bool freed_before =
        failing_.call == Call::k_free && failing_.fault == Fault::kAfter && status.code() == driver::kInvalidParameter;
    const bool known = freed_before || status.code() == kInjected || status.code() == driver::kSyncTimeout ||
                       status.code() == driver::kEventSyncTimeout ||
                       (failing_.fault == Fault::kSticky && status.code() == driver::kDriverInternal);
    if (!known) complain(format("%s returned code %d: %s", name, status.code(), status.message().c_str()));
    fault.disarm();
    host::DeviceRunner* const runner = passage.runner();
    if (runner == nullptr || step == "finalize") return false;
    if (failing_.fault == Fault::kSticky) {
      std::uint64_t address = 0;
      if (runner->malloc(8, &address).ok()) complain("a device in error gave memory");
    }
    const bool in_doubt = failing_.fault == Fault::kSticky || expected_in_doubt(step, record);
    const bool usable = (plant_ == Plant::kWrongState) != runner->usable();
    if (usable == in_doubt) complain(format("after %s the runner is %s", name, usable ? "usable" : "in doubt"));
    const std::string wrong = in_doubt ? passage.refuses() : passage.goes_on();
    if (!wrong.empty()) complain(std::string(name) + ": " + wrong);
    return false;
  }

  void check_leftovers(const driver::SoftDriver& soft, bool hit) {
    driver::SoftCensus census = soft.census();
    const std::size_t excused = hit && gives_back(failing_.call) ? 1 : 0;
    if (census.left_at_reset <= excused) census.left_at_reset = 0;
    const bool reset_refused = hit && failing_.call == Call::k_reset_device;
    const std::size_t alive = census.allocations + census.streams + census.events + census.modules +
                              census.child_codes + census.mappings + census.workspaces;
    if (alive <= excused && reset_refused == false && excused > 0) return;
    if (!census.empty()) {
      complain(
          format("left: %zu allocations, %zu streams, %zu events, %zu programs, %zu kernels, %zu mappings, %zu "
                 "workspaces, %zu at the reset",
                 census.allocations, census.streams, census.events, census.modules, census.child_codes, census.mappings,
                 census.workspaces, census.left_at_reset));
    }
  }

  // A device that went into error without its runner noticing tells the next one, which resets it by force.
  void check_new_runner(driver::FaultDriver& fault, bool quarantined) {
    const std::string first = new_runner(fault);
    if (first.empty() || quarantined) return;
    const bool open_error = first.find("until it is reset by force") != std::string::npos;
    const std::string second = open_error ? new_runner(fault) : first;
    if (!second.empty()) complain("a new runner " + second);
  }
  std::string new_runner(driver::FaultDriver& fault) {
    const Scenario plain{.name = "new runner", .arch = scenario_.arch};
    Passage passage(plain, fault.table());
    for (const Passage::Step& step : passage.steps()) {
      const Status status = step.act();
      if (!status.ok()) return std::string("fails to ") + step.name + ": " + status.message();
    }
    return passage.results_are_right() ? "" : "has wrong results";
  }

  const Scenario& scenario_;
  const Case& failing_;
  const Plant plant_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<Case> cases_of(const Scenario& scenario) {
  driver::SoftDriver soft({2, 2, scenario.arch}, soft_options(scenario));
  driver::FaultDriver fault(soft.table(), rules_of(scenario, nullptr));
  {
    Passage passage(scenario, fault.table());
    for (const Passage::Step& step : passage.steps()) {
      static_cast<void>(step.act());
    }
  }
  std::vector<Case> cases;
  std::map<Call, std::uint64_t> counts;
  const std::vector<driver::CallRecord> log = fault.log();
  // With a device in doubt only what follows the refusal is new.
  const auto refusal =
      std::find_if(log.begin(), log.end(), [](const auto& r) { return r.call == Call::k_core_launch; });
  const std::size_t from = scenario.in_doubt ? static_cast<std::size_t>(refusal - log.begin()) + 1 : 0;
  std::size_t launches = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const std::uint64_t nth = ++counts[log[i].call];
    if (log[i].call == Call::k_core_launch) ++launches;
    const bool waits_for_run_1 = log[i].call == Call::k_stream_sync && launches == 1;
    if (log[i].call == Call::k_stream_query && nth > 2) continue;  // how often a run is polled is chance
    if (i < from) continue;
    for (const Fault kind : driver::kAllFaults) {
      cases.push_back({log[i].call, nth, kind, 1, waits_for_run_1});
      if (scenario.in_doubt && kind == Fault::kBefore) cases.push_back({log[i].call, nth, kind, -1});
    }
  }
  return cases;
}

std::vector<std::string> judge(const Scenario& scenario, const Case& failing, Plant plant, bool* hit) {
  return Judge(scenario, failing, plant).run(hit);
}

std::string adding_callable() { return {reinterpret_cast<const char*>(callable().words.data()), callable().bytes}; }

std::string describe(const Scenario& scenario, const Case& failing) {
  return format("%s: %s #%llu, %s%s", scenario.name.c_str(), name_of(failing.call),
                static_cast<unsigned long long>(failing.nth), name_of(failing.fault),
                failing.times < 0 ? ", always" : "");
}

}  // namespace simpler::test
