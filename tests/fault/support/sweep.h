// The sweep: a scenario of the device runner, in which one call of the driver goes wrong.
//
// What      A scenario is a list of steps from open to finalize. It runs once undisturbed, which tells its calls, and then
//           once for each call and each way to fail. Each time is judged: what the step returned, which state the runner
//           is in, that it goes on if it says so, what is left of memory, handles, files and threads, and that a new runner
//           on the same device works, or is told openly that the device is quarantined.
// Plants    Faults of the test's own, which must be found.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "driver/fault/fault_driver.h"

namespace simpler::test {

enum class Plant { kNone, kLeak, kWrongState, kWrongCode };

struct Scenario {
  std::string name;
  std::string arch = "a2a3";
  bool collector = false;    // a tool observes; then no successor is prepared beside a run
  bool dma = false;          // with DMA workspaces
  bool in_doubt = false;     // the cores refuse the first launch: what follows is recovery
  bool reset_fails = false;  // with in_doubt: no forced reset works
};

inline void PrintTo(const Scenario& scenario, std::ostream* stream) { *stream << scenario.name; }

struct Case {
  driver::Call call;
  std::uint64_t nth = 0;  // of the calls of that name
  driver::Fault fault = driver::Fault::kBefore;
  int times = 1;
  bool ends_waits = false;  // hanging, it ends with the limit of waiting for a run, and no other run is waited for
};

// All cases of a scenario: each call that its undisturbed run makes, in each way.
std::vector<Case> cases_of(const Scenario& scenario);

// What is wrong; empty: nothing. *hit: whether it came to the call.
std::vector<std::string> judge(const Scenario& scenario, const Case& failing, Plant plant, bool* hit);

// A ChipCallable that adds its scalar to its tensor of four 32-bit integers.
std::string adding_callable();

std::string describe(const Scenario& scenario, const Case& failing);

}  // namespace simpler::test
