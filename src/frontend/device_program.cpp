// The device program of either runtime: callables by id, one runtime, one executor.
#include <array>

#include "frontend/device_program.h"
#include "frontend/streaming/streaming_runtime.h"
#include "frontend/whole_graph/whole_graph_runtime.h"

namespace simpler::frontend {
namespace {

template <typename FrontEnd> class RuntimeProgram : public DeviceProgram {
 public:
  explicit RuntimeProgram(ChipShape chip) : executor_(chip.clusters, chip.threads), runtime_(executor_) {}

  int init(const abi::InitArgs& args) override {
    executor_.set_device(static_cast<int>(args.device));
    return 0;
  }

  int register_callable(const abi::RegisterCallableArgs& args) override {
    if (args.id < 0 || args.id >= abi::kMaxCallables) {
      last_error_ = format("callable id %d is outside 0..%d", args.id, abi::kMaxCallables - 1);
      return 1;
    }
    Orchestration fresh;
    const Status status = Orchestration::load(reinterpret_cast<const void*>(args.code_address), args.code_bytes,
                                              args.function_name, args.config_name, &fresh);
    if (!status.ok()) {
      last_error_ = status.message();
      return 1;
    }
    callables_[static_cast<std::size_t>(args.id)] = std::move(fresh);
    return 0;
  }

  int unregister_callable(std::int32_t id) override {
    callables_[static_cast<std::size_t>(id)] = Orchestration();
    return 0;
  }

  int execute(abi::RunImage& image) override {
    const Orchestration& orchestration = callables_[static_cast<std::size_t>(image.callable)];
    if (!orchestration.loaded()) {
      last_error_ = format("callable %d is not registered", image.callable);
      return 1;
    }
    runtime_.run(orchestration, *reinterpret_cast<const executor::KernelTable*>(image.kernel_table), image);
    return 0;
  }

 private:
  std::array<Orchestration, abi::kMaxCallables> callables_;
  executor::Executor executor_;
  FrontEnd runtime_;
};

}  // namespace

std::unique_ptr<DeviceProgram> load_program(std::string_view runtime, ChipShape chip) {
  if (runtime == kStreamingRuntime) return std::make_unique<RuntimeProgram<StreamingRuntime>>(chip);
  if (runtime == kHostBuiltRuntime) return std::make_unique<RuntimeProgram<WholeGraphRuntime>>(chip);
  return nullptr;
}

}  // namespace simpler::frontend
