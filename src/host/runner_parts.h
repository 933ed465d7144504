// RunnerParts: what a device runner is made of, in the order in which one needs the other.
#pragma once
#include <memory>
#include <mutex>

#include "driver/soft/soft_driver.h"
#include "host/admission.h"
#include "host/arenas.h"
#include "host/bringup.h"
#include "host/clock_session.h"
#include "host/collector.h"
#include "host/device_runner.h"
#include "host/phase_times.h"
#include "host/registry.h"
#include "host/run_streams.h"

namespace simpler::host {

struct RunnerParts {
  RunnerParts(const RunnerOptions& given, const executor::ArchProfile& profile, int clusters,
              const driver::Driver& driver, const Timeouts& limits)
      : options(given),
        arch(profile),
        timeouts(limits),
        device(driver, given.device_id),
        allocator(device),
        bringup(allocator, arch, clusters, timeouts),
        streams(device),
        registry(allocator),
        arenas(allocator),
        graphs(allocator),
        phases(allocator, arch),
        clock(device),
        collectors(allocator, given.collectors) {}

  const RunnerOptions options;
  const executor::ArchProfile& arch;
  const Timeouts timeouts;

  std::mutex mutex;  // of every part that says "the runner serialises calls"; never held while waiting for a run
  Device device;
  Allocator allocator;
  Bringup bringup;
  RunStreams streams;
  Registry registry;
  Arenas arenas;
  GraphBuffers graphs;
  PhaseBuffer phases;
  ClockSession clock;
  Collectors collectors;
  Admission admission;
};

}  // namespace simpler::host
