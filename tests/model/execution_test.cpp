// Random programs, executed: memory ends as the model says, every block runs once and after its producers, and memory is
// never used again while somebody uses it.
#include "model/support/execution.h"

namespace simpler::model {
namespace {

class ModelExecution : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ModelExecution, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(ModelExecution, OfRandomProgramsInSmallRingsLeavesTheMemoryThatTheModelLeaves) {
  int submitted = 0, wanted = 0;
  test::for_each_seed(60, [&](std::uint64_t seed) {
    test::Random random(seed * 3 + static_cast<std::uint64_t>(GetParam()));
    ProgramOptions options;
    options.runnable = true;
    options.tasks = static_cast<int>(random.number(5, 90));
    const Program program = random_program(random, options);
    wanted += options.tasks;
    submitted += Execution(program, GetParam()).run();
  });
  EXPECT_GE(submitted * 2, wanted) << "half of the tasks must fit, or the test shows little";
}

}  // namespace
}  // namespace simpler::model
