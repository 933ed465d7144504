// _ChipWorker: host::DeviceRunner as a Python object.
//
// Threads   Every call that can block releases the GIL. Waiting is done in slices, so that Ctrl-C works.
#include <chrono>
#include <cmath>
#include <memory>
#include <type_traits>

#include "bindings/argument_objects.h"
#include "bindings/call_config.h"
#include "bindings/callables.h"
#include "bindings/support.h"
#include "host/device_runner.h"

namespace simpler::bindings {
namespace {

using host::RunId;
using host::RunTiming;

constexpr std::int64_t kWaitSliceNs = 50'000'000;  // how late Ctrl-C may be noticed; a run's end is noticed at once

class ChipWorker {
 public:
  ChipWorker(const char* platform, const char* runtime, int device_id, int sim_clusters, int sim_threads) {
    const host::RunnerOptions options{.platform = platform,
                                      .runtime = runtime,
                                      .device_id = device_id,
                                      .sim_clusters = sim_clusters,
                                      .sim_threads = sim_threads};
    const nb::gil_scoped_release unlocked;
    const Status status = host::DeviceRunner::open(options, &runner_);
    const nb::gil_scoped_acquire locked;
    check(status, "simpler_init");
  }
  // Tearing down waits for device threads, which must not hold up other Python threads.
  ~ChipWorker() {
    const nb::gil_scoped_release unlocked;
    runner_.reset();
  }

  // Calls a method of the runner without the GIL and raises its failure.
  template <class Method, class... Args> void call(const char* operation, Method method, Args&&... args) {
    check(unlocked([&] { return ((*runner_).*method)(std::forward<Args>(args)...); }), operation);
  }

  bool wait(RunId run, double timeout_s) {  // timeout_s < 0: no limit
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::max(timeout_s, 0.0));
    for (;;) {
      std::int64_t slice = kWaitSliceNs;
      if (timeout_s >= 0) {
        const double left = std::chrono::duration<double>(deadline - std::chrono::steady_clock::now()).count();
        slice = std::min(slice, static_cast<std::int64_t>(std::max(left, 0.0) * 1e9));
      }
      bool done = false;
      call("wait_run", &host::DeviceRunner::wait_run, run, slice, &done);
      if (done) return true;
      if (timeout_s >= 0 && std::chrono::steady_clock::now() >= deadline) return false;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  // Before calls that queue behind launched runs, so that Ctrl-C works there too.
  void wait_idle() {
    while (!unlocked([&] { return runner_->wait_idle(kWaitSliceNs); })) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  host::DeviceRunner& runner() { return *runner_; }

 private:
  template <class F> static std::invoke_result_t<F> unlocked(F&& f) {
    const nb::gil_scoped_release release;
    return f();
  }

  std::unique_ptr<host::DeviceRunner> runner_;
};

double timeout_from(nb::handle timeout) {
  if (timeout.is_none()) return -1;
  const double seconds = nb::cast<double>(timeout);
  if (!std::isfinite(seconds) || seconds < 0) {
    raise(ErrorKind::kValue,
          format("timeout is %g; it must be a finite number of seconds, not negative, or None", seconds));
  }
  return std::min(seconds, 1e9);
}

void bind_run_timing(nb::module_& m) {
  nb::class_<RunTiming>(m, "RunTiming", "Durations of one finished run.")
      .def(
          "__init__",
          [](RunTiming* self, std::uint64_t host_wall_ns, std::uint64_t device_wall_ns) {
            new (self) RunTiming{host_wall_ns, device_wall_ns};
          },
          nb::arg("host_wall_ns"), nb::arg("device_wall_ns") = 0)
      .def_ro("host_wall_ns", &RunTiming::host_wall_ns, "Preparation to the end, as the caller sees it.")
      .def_ro("device_wall_ns", &RunTiming::device_wall_ns, "Orchestration entry to the last task.")
      .def_prop_ro("host_wall_us", [](const RunTiming& t) { return static_cast<double>(t.host_wall_ns) / 1e3; })
      .def_prop_ro("device_wall_us", [](const RunTiming& t) { return static_cast<double>(t.device_wall_ns) / 1e3; })
      .def("__repr__", [](const RunTiming& t) {
        const std::string text =
            format("RunTiming(host_wall_us=%.1f, device_wall_us=%.1f)", static_cast<double>(t.host_wall_ns) / 1e3,
                   static_cast<double>(t.device_wall_ns) / 1e3);
        return nb::str(text.c_str());
      });
}

void bind_memory(nb::class_<ChipWorker>& cls) {
  using Runner = host::DeviceRunner;
  cls.def(
         "malloc",
         [](ChipWorker& w, std::size_t bytes) {
           std::uint64_t address = 0;
           w.call("malloc", &Runner::malloc, bytes, &address);
           return address;
         },
         nb::arg("nbytes"))
      .def(
          "free", [](ChipWorker& w, std::uint64_t address) { w.call("free", &Runner::free, address); },
          nb::arg("address"))
      .def(
          "copy_to",
          [](ChipWorker& w, std::uint64_t destination, std::uintptr_t source, std::size_t bytes) {
            w.call("copy_to", &Runner::copy_to, destination, reinterpret_cast<const void*>(source), bytes);
          },
          nb::arg("destination"), nb::arg("source"), nb::arg("nbytes"), "Host address to device address.")
      .def(
          "copy_from",
          [](ChipWorker& w, std::uintptr_t destination, std::uint64_t source, std::size_t bytes) {
            w.call("copy_from", &Runner::copy_from, reinterpret_cast<void*>(destination), source, bytes);
          },
          nb::arg("destination"), nb::arg("source"), nb::arg("nbytes"), "Device address to host address.")
      .def_prop_ro(
          "committed_device_memory", [](ChipWorker& w) { return w.runner().committed_memory(); },
          "Bytes of live allocations.");
}

void bind_runs(nb::class_<ChipWorker>& cls) {
  using Runner = host::DeviceRunner;
  cls.def(
         "prepare_run",
         [](ChipWorker& w, int slot, const ChipArgs& args, const PyCallConfig& config) {
           RunId run = 0;
           using Prepare = Status (Runner::*)(int, const ChipStorageTaskArgs&, const abi::CallConfig&, RunId*);
           w.call("prepare_run", static_cast<Prepare>(&Runner::prepare_run), slot, args.pod, config.wire, &run);
           return run;
         },
         nb::arg("slot"), nb::arg("args"), nb::arg("config"), "Reads the inputs; returns the run's id.")
      .def(
          "launch_run", [](ChipWorker& w, RunId run) { w.call("launch_run", &Runner::launch_run, run); },
          nb::arg("run"))
      .def(
          "poll_run",
          [](ChipWorker& w, RunId run) {
            bool done = false;
            w.call("poll_run", &Runner::poll_run, run, &done);
            return done;
          },
          nb::arg("run"))
      .def(
          "wait_run", [](ChipWorker& w, RunId run, nb::handle timeout) { return w.wait(run, timeout_from(timeout)); },
          nb::arg("run"), nb::arg("timeout") = nb::none(),
          "Whether the run ended in time; raises nothing about its outcome.")
      .def(
          "finalize_run",
          [](ChipWorker& w, RunId run) {
            RunTiming timing;
            w.call("run", &Runner::finalize_run, run, &timing);
            return timing;
          },
          nb::arg("run"), "Writes the outputs and frees the run; raises its failure.");
}

}  // namespace

void bind_chip_worker(nb::module_& m) {
  using Runner = host::DeviceRunner;
  bind_run_timing(m);
  nb::class_<ChipWorker> cls(m, "_ChipWorker",
                             "One attached device. simpler.task_interface.ChipWorker is its user's view.");
  cls.def(nb::init<const char*, const char*, int, int, int>(), nb::arg("platform"), nb::arg("runtime"),
          nb::arg("device_id") = 0, nb::arg("sim_clusters") = 0, nb::arg("sim_threads") = 0)
      .def(
          "finalize", [](ChipWorker& w) { w.call("finalize", &Runner::finalize); },
          "Idempotent; waits for launched runs.")
      .def(
          "prewarm",
          [](ChipWorker& w, const PyCallConfig& config) { w.call("prewarm", &Runner::prewarm, config.wire); },
          nb::arg("config"), "Reserves the memory that runs of that configuration need.")
      .def(
          "register_callable",
          [](ChipWorker& w, int slot, const ChipCallableBlob& chip) {
            w.wait_idle();
            w.call("register_callable", &Runner::register_callable, slot, chip.block.data(), chip.block.size());
          },
          nb::arg("slot"), nb::arg("callable"))
      .def(
          "unregister_callable",
          [](ChipWorker& w, int slot) {
            w.wait_idle();
            w.call("unregister_callable", &Runner::unregister_callable, slot);
          },
          nb::arg("slot"), "Waits for runs that use it.")
      .def_prop_ro("device_id", [](ChipWorker& w) { return w.runner().device_id(); })
      .def_prop_ro("cluster_count", [](ChipWorker& w) { return w.runner().cluster_count(); })
      .def_prop_ro("thread_count", [](ChipWorker& w) { return w.runner().thread_count(); })
      .def_prop_ro("pipeline_depth", [](ChipWorker&) { return Runner::kPipelineDepth; })
      .def_prop_ro("aicpu_dlopen_count", [](ChipWorker& w) { return w.runner().device_orchestration_loads(); })
      .def_prop_ro("host_dlopen_count", [](ChipWorker& w) { return w.runner().host_orchestration_loads(); })
      .def_prop_ro("run_stream_set_create_count", [](ChipWorker& w) { return w.runner().core_streams_created(); });
  bind_memory(cls);
  bind_runs(cls);
}

}  // namespace simpler::bindings
