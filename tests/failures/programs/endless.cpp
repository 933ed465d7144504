// An orchestration that says that it has begun, and never ends.
#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) void endless(const ChipTaskArgs&) {
  LOG_ERROR("the endless orchestration has begun");
  for (volatile int i = 0;; i = i + 1) {
  }
}
