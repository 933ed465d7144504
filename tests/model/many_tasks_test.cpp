// One long run of random programs, for `make soak`: as many tasks as SIMPLER_TEST_TASKS says, from the seed
// SIMPLER_TEST_SEED (1) on, executed by 1, 2 and 8 threads in turn. Prints which seeds were run, and a line per million
// tasks. Stops at the first difference, with its seed; SIMPLER_TEST_TASKS=1 SIMPLER_TEST_SEED=that repeats it.
#include <chrono>
#include <cstdio>

#include "model/support/execution.h"

namespace simpler::model {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(ModelExecution, OfManyRandomTasksNeverDiffersFromTheModel) {
  constexpr int kThreads[] = {1, 2, 8};
  constexpr std::uint64_t kReportEvery = 1'000'000;
  const std::uint64_t wanted = from_environment("SIMPLER_TEST_TASKS", 3'000);
  const std::uint64_t first = from_environment("SIMPLER_TEST_SEED", 1);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t seed = first, tasks = 0, reported = 0;
  const auto report = [&](const char* outcome) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("seeds %llu to %llu: %llu random tasks, %s, %.0f s\n", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(tasks), outcome, took.count());
    std::fflush(stdout);
  };
  for (;; ++seed) {
    SCOPED_TRACE(testing::Message() << "repeat with SIMPLER_TEST_TASKS=1 SIMPLER_TEST_SEED=" << seed);
    test::Random random(seed);
    ProgramOptions options;
    options.runnable = true;
    options.tasks = static_cast<int>(random.number(5, 90));
    const Program program = random_program(random, options);
    tasks += static_cast<std::uint64_t>(Execution(program, kThreads[seed % std::size(kThreads)]).run());
    if (HasFailure() || tasks >= wanted) break;
    if (tasks / kReportEvery > reported) {
      reported = tasks / kReportEvery;
      report("0 differences to the model");
    }
  }
  report(HasFailure() ? "a difference to the model at the last seed" : "0 differences to the model");
}

}  // namespace
}  // namespace simpler::model
