#include "base/log.h"

#include <pthread.h>

#include <string>

#include <gtest/gtest.h>

#include "base/status.h"

namespace simpler::log {
namespace {

class DeviceLog : public testing::Test {
 protected:
  template <class Say> std::string written(Say say) {
    testing::internal::CaptureStderr();
    say();
    return testing::internal::GetCapturedStderr();
  }
  const std::string thread = format("thread=0x%llx", static_cast<unsigned long long>(pthread_self()));
};

TEST_F(DeviceLog, ARecordBeginsWithLevelAndFunctionAndEndsWithWhereItComesFrom) {
  EXPECT_EQ(written([] { device(Level::kWarn, {.device = 3, .submitted = 0}, "entry", "text %d", 7); }),
            "[WARN] entry: text 7 [" + thread + " device=3 submitted=0]\n");
  const Origin block{.device = 0, .ring = 1, .task = 5, .kernel = 2, .block = 4, .core = 6};
  EXPECT_EQ(written([&] { device(Level::kError, block, "kernel", "text"); }),
            "[ERROR] kernel: text [" + thread + " device=0 ring=1 task=5 kernel=2 block=4 core=6]\n");
  EXPECT_EQ(written([] { device(Level::kError, {}, "f", "text"); }), "[ERROR] f: text [" + thread + "]\n")
      << "what is not known is not told";
}

TEST_F(DeviceLog, ARecordIsOneLineHoweverItsTextEnds) {
  EXPECT_EQ(written([] { device(Level::kWarn, {.device = 0}, "f", "text\n\n"); }),
            "[WARN] f: text [" + thread + " device=0]\n");
}

TEST_F(DeviceLog, ALongTextIsCutAndItsOriginIsNot) {
  const std::string text(5000, 'x');
  const std::string line = written([&] { device(Level::kWarn, {.device = 0}, "f", "%s", text.c_str()); });
  EXPECT_LE(line.size(), 2048u);
  EXPECT_GE(line.size(), 2040u);
  const std::string end = "xx [" + thread + " device=0]\n";
  ASSERT_GT(line.size(), end.size());
  EXPECT_EQ(line.substr(line.size() - end.size()), end);
}

TEST_F(DeviceLog, BelowTheThresholdNothingIsWritten) {
  EXPECT_EQ(written([] { device(Level::kInfo, {.device = 0}, "f", "text"); }), "");
}

}  // namespace
}  // namespace simpler::log
