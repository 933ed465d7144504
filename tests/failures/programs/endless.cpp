// Orchestrations that never end, or only when a kernel has written to memory.
#include <unistd.h>

#include "pressure.h"

namespace {
// Asleep most of the time: it stays for as long as the process does.
[[noreturn]] void loop() {
  for (;;) usleep(10'000);
}
}  // namespace

ENTRY(endless) {
  LOG_ERROR("the endless orchestration has begun");
  loop();
}
ENTRY(endless_stream) {  // of tasks, each of which takes a while
  LOG_ERROR("the endless stream has begun");
  for (;;) PTO2_SCOPE() {
      act(x, kSleep, 1);
    }
}
ENTRY(endless_after_a_failure) {
  rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "gave up at 17");
  loop();
}
ENTRY(endless_behind_a_kernel) {  // scalars: of the act Spin
  act(x, kSpin, in.scalar(0), in.scalar(1));
  loop();
}
ENTRY(endless_behind_tasks) {
  step(x, 1);
  loop();
}
extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig endless_configuration(const ChipTaskArgs&) {
  loop();
}
ENTRY(waits_for_memory) {  // without the runtime's knowledge
  step(x, 7);
  const volatile int32_t* first = x.data_as<int32_t>();
  while (*first != 7) {
  }
  step(x, 0);
}
