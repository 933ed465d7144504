// _ChipWorker: a context of the C functions (host/simpler_host.h) as a Python object.
//
// Threads   Every call that can block releases the GIL. Waiting is done in slices, so that Ctrl-C works.
// Lifetime  The storage of a run lives as long as the run, and as a call that uses it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "bindings/argument_objects.h"
#include "bindings/call_config.h"
#include "bindings/callables.h"
#include "bindings/support.h"
#include "host/simpler_host.h"

namespace simpler::bindings {
namespace {

using RunTiming = SimplerRunTiming;
using RunId = std::uint64_t;

constexpr std::int64_t kWaitSliceNs = 50'000'000;  // how late Ctrl-C may be noticed; a run's end is noticed at once

// Raises what the calling thread's last C function reported, if its code says that it failed.
void check_code(int code, const char* operation) {
  if (code == 0) return;
  check(Status(static_cast<ErrorKind>(simpler_last_error_kind()), code, simpler_last_error()), operation);
}

// Zeroed memory in which the C functions keep one run.
class RunStorage {
 public:
  RunStorage() : memory_(operator new(get_runtime_size(), alignment())) { std::memset(memory_, 0, get_runtime_size()); }
  ~RunStorage() { operator delete(memory_, alignment()); }
  RunStorage(const RunStorage&) = delete;
  RunStorage& operator=(const RunStorage&) = delete;
  void* get() const { return memory_; }

 private:
  static std::align_val_t alignment() { return std::align_val_t(get_runtime_alignment()); }
  void* const memory_;
};

constexpr std::int64_t kFarewellNs = 1'000'000'000;  // that a process that ends leaves to a run

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

class ChipWorker {
 public:
  ChipWorker(const char* platform, const char* runtime, int device_id, int sim_clusters, int sim_threads)
      : context_(simpler_create_device_context(platform, runtime)), device_id_(device_id) {
    if (context_ == nullptr) check_code(simpler_last_error_code(), "simpler_init");
    int code = 0;
    if (sim_clusters != 0 || sim_threads != 0) code = simpler_set_simulator_ctx(context_, sim_clusters, sim_threads);
    if (code == 0)
      code = unlocked([&] { return simpler_init(context_, device_id, nullptr, 0, nullptr, 0, nullptr, 0, nullptr); });
    if (code != 0) destroy_device_context(context_);
    check_code(code, "simpler_init");
    clusters_ = simpler_cluster_count_ctx(context_);
    threads_ = simpler_thread_count_ctx(context_);
  }
  // Tearing down waits for device threads, which must not hold up other Python threads. In a forked child it does nothing.
  // A process that ends, for instance after Ctrl-C, does not wait for a run that nobody waits for: its threads, memory and
  // code go with the process.
  ~ChipWorker() {
    const bool process_ends = interpreter_ends();
    unlocked([&] {
      if (process_ends && simpler_wait_idle_ctx(context_, kFarewellNs) == SIMPLER_POLL_NOT_READY) {
        log::host(log::Level::kWarn, __func__, "the process ends while device %d executes a run, which ends with it",
                  device_id_);
        static_cast<void>(new auto(std::move(runs_)));  // the run's storage lives as long as it does
        return 0;
      }
      simpler_end_device(context_);
      destroy_device_context(context_);
      return 0;
    });
  }
  ChipWorker(const ChipWorker&) = delete;
  ChipWorker& operator=(const ChipWorker&) = delete;

  // Calls a C function with the context, without the GIL, and raises its failure.
  template <class... Given, class... Args>
  void call(const char* operation, int (*function)(void*, Given...), Args... args) {
    check_code(unlocked([&] { return function(context_, static_cast<Given>(args)...); }), operation);
  }
  // The same with the storage of a run.
  template <class... Given, class... Args>
  void call_run(const char* operation, RunId run, int (*function)(void*, void*, Given...), Args... args) {
    const std::shared_ptr<RunStorage> storage = storage_of(run, operation);
    check_code(unlocked([&] { return function(context_, storage->get(), static_cast<Given>(args)...); }), operation);
  }

  void finalize() {
    const std::uint64_t loads = get_aicpu_dlopen_count(context_);
    call("finalize", simpler_end_device);
    past_loads_ += loads;
  }

  std::uint64_t malloc(std::size_t bytes) {
    void* const address = unlocked([&] { return device_malloc_ctx(context_, bytes); });
    if (address == nullptr) check_code(simpler_last_error_code(), "malloc");
    return reinterpret_cast<std::uint64_t>(address);
  }

  RunId prepare(int slot, const ChipStorageTaskArgs& args, const abi::CallConfig& config) {
    auto storage = std::make_shared<RunStorage>();
    SimplerRunDescriptor anywhere{};
    anywhere.pipeline_slot = SIMPLER_ANY_SLOT;
    anywhere.generation = 1;
    call("prepare_run", simpler_prepare_run, storage->get(), slot, &args, &config, &anywhere);
    const RunId run = simpler_run_epoch(storage->get());
    runs_.emplace(run, std::move(storage));
    return run;
  }

  bool poll(RunId run) {
    int ended = 0;
    call_run("poll_run", run, simpler_wait_run_for, 0, &ended);
    return ended != 0;
  }

  bool wait(RunId run, double timeout_s) {  // timeout_s < 0: no limit
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::max(timeout_s, 0.0));
    for (;;) {
      std::int64_t slice = kWaitSliceNs;
      if (timeout_s >= 0) {
        const double left = std::chrono::duration<double>(deadline - std::chrono::steady_clock::now()).count();
        slice = std::min(slice, static_cast<std::int64_t>(std::max(left, 0.0) * 1e9));
      }
      int ended = 0;
      call_run("wait_run", run, simpler_wait_run_for, slice, &ended);
      if (ended != 0) return true;
      if (timeout_s >= 0 && std::chrono::steady_clock::now() >= deadline) return false;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  RunTiming finalize_run(RunId run) {
    RunTiming timing{};
    const std::shared_ptr<RunStorage> storage = storage_of(run, "run");
    const int code = unlocked([&] { return simpler_finalize_run_timed(context_, storage->get(), &timing); });
    if (simpler_run_epoch(storage->get()) == 0) runs_.erase(run);
    check_code(code, "run");
    return timing;
  }

  // Before calls that queue behind launched runs, so that Ctrl-C works there too.
  void wait_idle() {
    while (unlocked([&] { return simpler_wait_idle_ctx(context_, kWaitSliceNs); }) == SIMPLER_POLL_NOT_READY) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  void* context() const { return context_; }
  int device_id() const { return device_id_; }
  int cluster_count() const { return clusters_; }
  int thread_count() const { return threads_; }
  std::uint64_t aicpu_loads() const { return past_loads_ + get_aicpu_dlopen_count(context_); }

 private:
  template <class F> static std::invoke_result_t<F> unlocked(F&& f) {
    const nb::gil_scoped_release release;
    return f();
  }
  std::shared_ptr<RunStorage> storage_of(RunId run, const char* operation) {
    const auto found = runs_.find(run);
    if (found != runs_.end()) return found->second;
    check(
        fail(ErrorKind::kState, format("run %llu is stale or already finalized", static_cast<unsigned long long>(run))),
        operation);
    return nullptr;
  }

  void* const context_;
  const int device_id_;
  int clusters_ = 0, threads_ = 0;
  std::uint64_t past_loads_ = 0;                       // of orchestrations, when the device ended
  std::map<RunId, std::shared_ptr<RunStorage>> runs_;  // from prepare to finalize; under the GIL
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

void* as_pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

void bind_memory(nb::class_<ChipWorker>& cls) {
  cls.def("malloc", &ChipWorker::malloc, nb::arg("nbytes"))
      .def(
          "free", [](ChipWorker& w, std::uint64_t address) { w.call("free", simpler_free_ctx, as_pointer(address)); },
          nb::arg("address"))
      .def(
          "copy_to",
          [](ChipWorker& w, std::uint64_t destination, std::uintptr_t source, std::size_t bytes) {
            w.call("copy_to", copy_to_device_ctx, as_pointer(destination), as_pointer(source), bytes);
          },
          nb::arg("destination"), nb::arg("source"), nb::arg("nbytes"), "Host address to device address.")
      .def(
          "copy_from",
          [](ChipWorker& w, std::uintptr_t destination, std::uint64_t source, std::size_t bytes) {
            w.call("copy_from", copy_from_device_ctx, as_pointer(destination), as_pointer(source), bytes);
          },
          nb::arg("destination"), nb::arg("source"), nb::arg("nbytes"), "Device address to host address.")
      .def_prop_ro(
          "committed_device_memory", [](ChipWorker& w) { return committed_device_memory_ctx(w.context()); },
          "Bytes of live allocations.");
}

void bind_runs(nb::class_<ChipWorker>& cls) {
  cls.def(
         "prepare_run",
         [](ChipWorker& w, int slot, const ChipArgs& args, const PyCallConfig& config) {
           return w.prepare(slot, args.pod, config.wire);
         },
         nb::arg("slot"), nb::arg("args"), nb::arg("config"), "Reads the inputs; returns the run's id.")
      .def(
          "launch_run", [](ChipWorker& w, RunId run) { w.call_run("launch_run", run, simpler_launch_run); },
          nb::arg("run"))
      .def("poll_run", &ChipWorker::poll, nb::arg("run"))
      .def(
          "wait_run", [](ChipWorker& w, RunId run, nb::handle timeout) { return w.wait(run, timeout_from(timeout)); },
          nb::arg("run"), nb::arg("timeout") = nb::none(),
          "Whether the run ended in time; raises nothing about its outcome.")
      .def("finalize_run", &ChipWorker::finalize_run, nb::arg("run"),
           "Writes the outputs and frees the run; raises its failure.");
}

}  // namespace

void bind_chip_worker(nb::module_& m) {
  bind_run_timing(m);
  nb::class_<ChipWorker> cls(m, "_ChipWorker",
                             "One attached device. simpler.task_interface.ChipWorker is its user's view.");
  cls.def(nb::init<const char*, const char*, int, int, int>(), nb::arg("platform"), nb::arg("runtime"),
          nb::arg("device_id") = 0, nb::arg("sim_clusters") = 0, nb::arg("sim_threads") = 0)
      .def("finalize", &ChipWorker::finalize, "Idempotent; waits for launched runs.")
      .def(
          "prewarm",
          [](ChipWorker& w, const PyCallConfig& config) { w.call("prewarm", simpler_prewarm_ctx, &config.wire); },
          nb::arg("config"), "Reserves the memory that runs of that configuration need.")
      .def(
          "register_callable",
          [](ChipWorker& w, int slot, const ChipCallableBlob& chip) {
            w.wait_idle();
            w.call("register_callable", simpler_add_callable, slot, chip.block.data(), chip.block.size());
          },
          nb::arg("slot"), nb::arg("callable"))
      .def(
          "unregister_callable",
          [](ChipWorker& w, int slot) {
            w.wait_idle();
            w.call("unregister_callable", simpler_remove_callable, slot);
          },
          nb::arg("slot"), "Waits for runs that use it.")
      .def_prop_ro("device_id", &ChipWorker::device_id)
      .def_prop_ro("cluster_count", &ChipWorker::cluster_count)
      .def_prop_ro("thread_count", &ChipWorker::thread_count)
      .def_prop_ro("pipeline_depth", [](ChipWorker& w) { return get_pipeline_contract_ctx(w.context())->depth; })
      .def_prop_ro("aicpu_dlopen_count", &ChipWorker::aicpu_loads)
      .def_prop_ro("host_dlopen_count", [](ChipWorker& w) { return get_host_dlopen_count(w.context()); })
      .def_prop_ro("run_stream_set_create_count",
                   [](ChipWorker& w) { return get_run_stream_set_create_count(w.context()); });
  bind_memory(cls);
  bind_runs(cls);
}

}  // namespace simpler::bindings
