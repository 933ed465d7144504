#include "host/backend.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "driver/cann/cann_driver.h"
#include "driver/soft/soft_driver.h"
#include "frontend/device_program.h"
#include "host/sim_options.h"

namespace simpler::host {
namespace {

constexpr std::string_view kSimSuffix = "sim";

class Simulator : public Backend {
 public:
  explicit Simulator(driver::SoftChip chip) : chip_(chip), driver_(chip) {}
  const driver::Driver& driver() const override { return driver_.table(); }
  int clusters() const override { return chip_.clusters; }
  int threads() const override { return chip_.threads; }

 private:
  const driver::SoftChip chip_;
  driver::SoftDriver driver_;
};

class Board : public Backend {
 public:
  Board(std::unique_ptr<driver::CannDriver> driver, bool emulated) : driver_(std::move(driver)), emulated_(emulated) {}
  const driver::Driver& driver() const override { return driver_->table(); }
  bool simulated() const override { return emulated_; }

 private:
  std::unique_ptr<driver::CannDriver> driver_;
  const bool emulated_;
};

class Given : public Backend {
 public:
  Given(const driver::Driver& driver, bool simulated, driver::SoftChip chip)
      : driver_(driver), simulated_(simulated), chip_(chip) {}
  const driver::Driver& driver() const override { return driver_; }
  int clusters() const override { return chip_.clusters; }
  int threads() const override { return chip_.threads; }
  bool simulated() const override { return simulated_; }

 private:
  const driver::Driver& driver_;
  const bool simulated_;
  const driver::SoftChip chip_;
};

DeviceBinaries builtin(const RunnerOptions& options) {
  return {"builtin", driver::builtin_program(options.runtime), "builtin"};
}
DeviceBinaries given(const RunnerOptions& options) { return {options.dispatcher, options.program, options.cores}; }

Status open_given(const RunnerOptions& options, const executor::ArchProfile& arch, bool simulated,
                  std::unique_ptr<Backend>* backend, DeviceBinaries* binaries) {
  driver::SoftChip chip{arch.clusters, arch.device_threads, arch.name};
  if (simulated) {
    if (Status status = resolve_sim_options(options, arch, &chip); !status.ok()) return status;
  }
  *binaries = options.program.empty() ? builtin(options) : given(options);
  *backend = std::make_unique<Given>(*options.driver, simulated, chip);
  return Status();
}

Status open_simulator(const RunnerOptions& options, const executor::ArchProfile& arch,
                      std::unique_ptr<Backend>* backend, DeviceBinaries* binaries) {
  driver::SoftChip chip{};
  if (Status status = resolve_sim_options(options, arch, &chip); !status.ok()) return status;
  *binaries = builtin(options);
  *backend = std::make_unique<Simulator>(chip);
  return Status();
}

Status open_board(const RunnerOptions& options, const executor::ArchProfile& arch, std::unique_ptr<Backend>* backend,
                  DeviceBinaries* binaries) {
  const char* const variable = std::getenv("SIMPLER_EMULATED_VENDOR");
  const std::string emulated = variable != nullptr ? variable : "";
  // Each chip is emulated by libraries of its own.
  const std::string folder = emulated.empty() ? "" : emulated + "/" + std::string(arch.name);
  std::unique_ptr<driver::CannDriver> driver;
  if (Status status = driver::CannDriver::open(arch.name, folder, &driver); !status.ok()) {
    const std::string where = emulated.empty() ? "" : ", emulated by SIMPLER_EMULATED_VENDOR=" + emulated;
    return fail(status.kind(), format("platform %s%s (%ssim needs none of this): %s", options.platform.c_str(),
                                      where.c_str(), options.platform.c_str(), status.message().c_str()));
  }
  *binaries = emulated.empty() ? given(options) : builtin(options);
  if (binaries->program.empty()) {
    return fail(ErrorKind::kDevice,
                format("platform %s: the vendor's libraries are here, but this version has no device programs for the "
                       "board (docs/board.md): use %ssim",
                       options.platform.c_str(), options.platform.c_str()));
  }
  *backend = std::make_unique<Board>(std::move(driver), !emulated.empty());
  return Status();
}

}  // namespace

Status Backend::open(const RunnerOptions& options, std::unique_ptr<Backend>* backend) {
  const std::string_view platform = options.platform;
  const bool simulated =
      platform.size() > kSimSuffix.size() && platform.substr(platform.size() - kSimSuffix.size()) == kSimSuffix;
  const executor::ArchProfile* const arch =
      executor::find_arch(simulated ? platform.substr(0, platform.size() - kSimSuffix.size()) : platform);
  if (arch == nullptr)
    return fail(ErrorKind::kValue,
                format("platform \"%s\" is unknown: use a2a3sim, a5sim, a2a3 or a5", options.platform.c_str()));
  if (std::find(std::begin(frontend::kRuntimeNames), std::end(frontend::kRuntimeNames), options.runtime) ==
      std::end(frontend::kRuntimeNames)) {
    return fail(ErrorKind::kValue, format("runtime \"%s\" is unknown: use tensormap_and_ringbuffer or host_build_graph",
                                          options.runtime.c_str()));
  }
  DeviceBinaries binaries;
  Status status = options.driver != nullptr ? open_given(options, *arch, simulated, backend, &binaries)
                  : simulated               ? open_simulator(options, *arch, backend, &binaries)
                                            : open_board(options, *arch, backend, &binaries);
  if (!status.ok()) return status;
  (*backend)->arch_ = arch;
  (*backend)->binaries_ = std::move(binaries);
  return Status();
}

}  // namespace simpler::host
