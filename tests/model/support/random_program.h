// Random programs: any legal one, or one whose result does not depend on the order of execution.
#pragma once
#include <cstdint>
#include <vector>

#include "model/support/program.h"
#include "unit/support/seed.h"

namespace simpler::model {

struct ProgramOptions {
  int tasks = 50;
  // Tasks that share a byte, one of them writing, are ordered: where accesses do not order them, explicit dependencies
  // are added. Memory is used only while its scope is open, and tasks do not write what they also read. Rings are small,
  // and scopes mostly fit into them.
  bool runnable = false;
};

Program random_program(test::Random& random, const ProgramOptions& options);
// The contents of the buffers from outside when the program starts.
std::vector<std::vector<std::uint8_t>> initial_memory(const Program& program);

}  // namespace simpler::model
