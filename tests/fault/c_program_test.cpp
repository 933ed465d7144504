// The C functions, from a program in C.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

#include "driver/soft/soft_driver.h"
#include "fault/support/sweep.h"
#include "task_args.h"

namespace simpler::test {
namespace {

TEST(CProgram, FindsThatEveryRuleOfTheHeaderHolds) {
  std::string folder = (std::filesystem::temp_directory_path() / "simpler-c-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto args = std::make_unique<ChipStorageTaskArgs>();
  args->clear();
  const std::uint32_t shape = 4;
  args->add_tensor(make_tensor_external(args.get(), &shape, 1, DataType::INT32));
  args->add_scalar(std::uint64_t{10});
  std::ofstream(folder + "/arguments", std::ios::binary)
      .write(reinterpret_cast<const char*>(args.get()), sizeof(ChipStorageTaskArgs));
  const std::string callable = adding_callable();
  std::ofstream(folder + "/callable", std::ios::binary)
      .write(callable.data(), static_cast<std::streamsize>(callable.size()));
  const std::string command = std::string(SIMPLER_C_HOST_PROGRAM) + " " + folder + "/callable " + folder + "/arguments";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove_all(folder);
}

TEST(CProgram, CommunicatesBetweenProcesses) { EXPECT_EQ(std::system(SIMPLER_C_COMM_PROGRAM), 0); }

// Through the driver of boards: with a vendor library that says that it is emulated, and with one that does not.
TEST(CProgram, HasStreamsForLibrariesOfCommunication) {
  for (const char* const chip : {"a2a3", "a5"}) {
    const std::string libraries = std::string(SIMPLER_EMULATED_VENDOR) + "/" + chip;
    const std::string program = std::string(SIMPLER_C_COMM_PROGRAM) + " " + chip + " '" +
                                driver::builtin_program("tensormap_and_ringbuffer") + "'";
    EXPECT_EQ(std::system(("SIMPLER_EMULATED_VENDOR=" SIMPLER_EMULATED_VENDOR " " + program).c_str()), 0);
    EXPECT_EQ(std::system(("unset SIMPLER_EMULATED_VENDOR; LD_LIBRARY_PATH=" + libraries + " " + program).c_str()), 0);
  }
}

}  // namespace
}  // namespace simpler::test
