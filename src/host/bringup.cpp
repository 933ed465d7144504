#include "host/bringup.h"

#include <algorithm>

#include "abi/run_image.h"
#include "base/hash.h"
#include "base/log.h"

namespace simpler::host {

using driver::Driver;

Status Bringup::ensure() {
  if (Status status = ensure_streams(); !status.ok()) return status;
  if (block_limit_ == 0) {
    if (Status status = find_geometry(); !status.ok()) return status;
  }
  if (!loaded_) {
    if (Status status = load_binaries(); !status.ok()) return status;
  }
  return init_done_ ? Status() : launch_init();
}

Status Bringup::ensure_streams() {
  const bool had_cpu_stream = static_cast<bool>(cpu_stream_);
  if (!had_cpu_stream) {
    cpu_stream_ = OwnedStream(device_);
    if (Status status = device_.run("stream_create", &Driver::stream_create, cpu_stream_.receive()); !status.ok()) {
      cpu_stream_ = OwnedStream();
      return status;
    }
  }
  if (core_stream_) return Status();
  core_stream_ = OwnedStream(device_);
  Status status = device_.run("stream_create", &Driver::stream_create, core_stream_.receive());
  if (!status.ok()) {
    core_stream_ = OwnedStream();
    if (!had_cpu_stream) cpu_stream_ = OwnedStream();
  }
  return status;
}

Status Bringup::find_geometry() {
  std::uint32_t cube = 0, vector = 0;
  int limit = most_blocks_;
  if (device_.call(&Driver::stream_core_limits, core_stream_.get(), &cube, &vector) == driver::kOk && cube > 0 &&
      vector > 0) {
    limit = std::min({static_cast<int>(cube), static_cast<int>(vector) / executor::kVectorLanes, limit});
  }
  // A chip may have more cores than a launch can use.
  std::vector<std::uint64_t> windows(static_cast<std::size_t>(arch_.physical_clusters * (1 + executor::kVectorLanes)));
  int count = static_cast<int>(windows.size());
  if (Status status = device_.run("core_registers", &Driver::core_registers, driver::CoreRegisters::kControl,
                                  windows.data(), &count);
      !status.ok())
    return status;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof windows[0];
  Status status = registers_.grow(allocator_, bytes);
  if (status.ok())
    status = device_.run("copy_to_device", &Driver::copy_to_device, registers_.address(), windows.data(), bytes);
  const bool has_window = arch_.kernel_args.ffts_base != abi::KernelArgsLayout::kAbsent &&
                          (device_.driver().capabilities & driver::kSyncWindow) != 0;
  if (status.ok() && has_window) status = device_.run("sync_window", &Driver::sync_window, &sync_window_);
  if (!status.ok()) {
    static_cast<void>(registers_.release());
    return status;
  }
  if (device_.call(&Driver::cpu_mask, driver::CpuMask::kOccupied, &cpu_mask_) != driver::kOk) cpu_mask_ = 0;
  block_limit_ = limit;
  return Status();
}

Status Bringup::load_binaries() {
  if (binaries_.dispatcher.empty())
    return fail(ErrorKind::kValue,
                "the dispatcher's bytes are missing: pass the file that places the device program (dispatcher_path)");
  if (binaries_.program.empty()) return fail(ErrorKind::kValue, "the device program's bytes are missing (aicpu_path)");
  if (binaries_.cores.empty()) return fail(ErrorKind::kValue, "the cores' bytes are missing (aicore_path)");
  const auto binary = [](const std::string& bytes) { return driver::Binary{bytes.data(), bytes.size()}; };
  const std::uint64_t fingerprint = fnv1a(binaries_.program.data(), binaries_.program.size());
  if (Status status = device_.run("cpu_bootstrap", &Driver::cpu_bootstrap, binary(binaries_.dispatcher),
                                  binary(binaries_.program), fingerprint, device_.ordinal(), cpu_stream_.get());
      !status.ok())
    return status;
  OwnedModule module(device_);
  if (Status status = device_.run("cpu_load", &Driver::cpu_load, fingerprint, device_.ordinal(), kCpuEntries,
                                  kCpuEntryCount, module.receive());
      !status.ok()) {
    *module.receive() = nullptr;
    return status;
  }
  for (int i = 0; i < kCpuEntryCount; ++i) {
    if (Status status =
            device_.run(kCpuEntries[i], &Driver::cpu_function, module.get(), kCpuEntries[i], &functions_[i]);
        !status.ok())
      return status;
  }
  if (core_image_ == nullptr) {
    if (Status status = device_.run("core_image_load", &Driver::core_image_load, binary(binaries_.cores), &core_image_);
        !status.ok()) {
      core_image_ = nullptr;
      return status;
    }
  }
  module_ = std::move(module);
  binaries_ = {};
  loaded_ = true;
  return Status();
}

Status Bringup::launch_init() {
  abi::InitArgs args{};
  args.device = static_cast<std::uint32_t>(device_.ordinal());
  args.log_level = static_cast<std::uint32_t>(log::threshold());
  args.scheduler_timeout_ms = timeouts_.scheduler_ms;
  args.dma_workspace[0] = dma_addresses_[0];
  args.dma_workspace[1] = dma_addresses_[1];
  Status status = call(CpuEntry::kInit, &args, sizeof args, "init");
  init_done_ = status.ok();
  return status;
}

Status Bringup::call(CpuEntry entry, const void* payload, std::size_t bytes, const char* what) {
  if (Status status = device_.run(what, &Driver::cpu_launch, function(entry), 1, payload, bytes, cpu_stream_.get());
      !status.ok())
    return status;
  const int code = device_.call(&Driver::stream_sync, cpu_stream_.get(), timeouts_.call_ms);
  if (code == driver::kOk) return Status();
  Status status = device_.failure(what, code);
  // The program refused, or it is not known what it does.
  if (code != driver::kCpuException) device_.mark_unusable(status.message());
  return status;
}

Status Bringup::provision_dma(std::uint32_t mask) {
  const std::uint32_t supported = dma_supported();
  if ((mask & ~supported) != 0)
    return fail(ErrorKind::kValue, format("DMA engines 0x%x are asked for; this device has 0x%x", mask, supported));
  if (mask == 0) return Status();
  if (has_dma()) return fail(ErrorKind::kState, "the DMA workspaces are provisioned already");
  OwnedWorkspaces workspaces(device_);
  std::uint64_t addresses[2] = {};
  if (Status status = device_.run("dma_provision", &Driver::dma_provision, mask, &addresses[0], workspaces.receive());
      !status.ok()) {
    *workspaces.receive() = nullptr;
    return status;
  }
  dma_addresses_[0] = addresses[0];
  dma_addresses_[1] = addresses[1];
  if (loaded_) {
    if (Status status = launch_init(); !status.ok()) {
      dma_addresses_[0] = dma_addresses_[1] = 0;
      return status;
    }
  }
  workspaces_ = std::move(workspaces);
  return Status();
}

Status Bringup::release_dma() {
  if (!has_dma()) return Status();
  const std::uint64_t addresses[2] = {dma_addresses_[0], dma_addresses_[1]};
  dma_addresses_[0] = dma_addresses_[1] = 0;
  if (loaded_) {  // before they go: it must not use them any more
    if (Status status = launch_init(); !status.ok()) {
      std::copy(addresses, addresses + 2, dma_addresses_);
      return status;
    }
  }
  if (const int code = workspaces_.release(); code != driver::kOk) return device_.failure("dma_release", code);
  return Status();
}

int Bringup::release() {
  int first = driver::kOk;
  const auto note = [&](int code) { first = first == driver::kOk ? code : first; };
  note(cpu_stream_.release());
  note(core_stream_.release());
  note(workspaces_.release());
  note(module_.release());
  static_cast<void>(registers_.release());
  binaries_ = {};
  block_limit_ = 0;
  loaded_ = init_done_ = false;
  return first;
}

}  // namespace simpler::host
