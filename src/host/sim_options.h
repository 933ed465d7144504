// What the simulator models and how much of the host it uses: options, else environment, else defaults.
#pragma once
#include "base/status.h"
#include "driver/soft/soft_driver.h"
#include "executor/arch_profile.h"
#include "host/device_runner.h"

namespace simpler::host {

constexpr int kMaxSimThreads = 1024;

// Fills *chip. An option out of range is an error; an environment variable out of range is ignored with a warning.
Status resolve_sim_options(const RunnerOptions& options, const executor::ArchProfile& arch, driver::SoftChip* chip);

}  // namespace simpler::host
