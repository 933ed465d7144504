// Every call of every scenario fails in every way: the runner tells it, leaks nothing, and knows which state it is in.
#include "fault/support/sweep.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace simpler::test {
namespace {

// Under sanitizers every so manieth case: they take many times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStride = 17;
#else
constexpr std::size_t kStride = 1;
#endif

const Scenario kScenarios[] = {
    {.name = "pipelined"},
    {.name = "observed", .collector = true},
    {.name = "a5_with_dma", .arch = "a5", .dma = true},
    {.name = "recovery", .in_doubt = true},
    {.name = "observed_recovery", .collector = true, .in_doubt = true},
    {.name = "failed_recovery", .in_doubt = true, .reset_fails = true},
};

// The runner's log is thousands of lines about failures that are wanted.
class Silence {
 public:
  Silence() : kept_(dup(STDERR_FILENO)) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    close(null);
  }
  ~Silence() {
    dup2(kept_, STDERR_FILENO);
    close(kept_);
  }

 private:
  const int kept_;
};

class Sweep : public testing::TestWithParam<Scenario> {};

TEST_P(Sweep, EachCallFailsInEachWayAndNothingIsInDoubtThatDoesNotSaySo) {
  const Scenario& scenario = GetParam();
  std::size_t triples = 0, failures = 0;
  {
    const Silence silence;
    const std::vector<Case> cases = cases_of(scenario);
    ASSERT_GT(cases.size(), 30u);
    for (std::size_t i = 0; i < cases.size(); i += kStride) {
      bool hit = false;
      const std::vector<std::string> wrong = judge(scenario, cases[i], Plant::kNone, &hit);
      EXPECT_TRUE(hit) << describe(scenario, cases[i]) << ": the call was not made";
      ++triples;
      failures += wrong.empty() ? 0 : 1;
      for (const std::string& each : wrong) ADD_FAILURE() << describe(scenario, cases[i]) << ": " << each;
    }
  }
  if (kStride > 1) return;
  const std::filesystem::path folder = std::filesystem::path(SIMPLER_SOURCE_DIR) / "build" / "bench" / "sweep";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / (scenario.name + ".json"))
      << "{\"sweep_triples\": " << triples << ", \"sweep_failures\": " << failures << "}\n";
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Sweep, testing::ValuesIn(kScenarios),
                         [](const auto& info) { return info.param.name; });

// A sweep that finds nothing must be one that would have found something.
TEST(SweepFinds, AnAllocationThatNobodyFreesAStateThatIsNotSoAndACodeThatIsAnother) {
  const Silence silence;
  const Scenario& scenario = kScenarios[0];
  const Case alloc{driver::Call::k_alloc, 3, driver::Fault::kBefore, 1};
  const std::pair<Plant, const char*> plants[] = {
      {Plant::kLeak, "left: 1 allocations"},
      {Plant::kWrongState, "the runner is in doubt"},
      {Plant::kWrongCode, "returned code -77"},
  };
  static_cast<void>(cases_of(scenario));  // what is made once per process
  bool hit = false;
  for (const std::string& each : judge(scenario, alloc, Plant::kNone, &hit)) ADD_FAILURE() << each;
  for (const auto& [plant, text] : plants) {
    std::string found;
    for (const std::string& each : judge(scenario, alloc, plant, &hit)) found += each + "\n";
    EXPECT_TRUE(hit);
    EXPECT_NE(found.find(text), std::string::npos) << "planted " << text << ", found: " << found;
  }
}

}  // namespace
}  // namespace simpler::test
