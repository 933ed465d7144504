#include "unit/support/compiled_code.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace simpler::test {

std::string compiled(const std::string& source) {
  std::string folder = (std::filesystem::temp_directory_path() / "simpler-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    ADD_FAILURE() << "cannot create " << folder;
    return "";
  }
  const std::string input = folder + "/code.cpp", output = folder + "/code.so", include = SIMPLER_SOURCE_DIR "/include";
  std::ofstream(input) << source;
  const std::string command = SIMPLER_CXX_COMPILER
                              " -std=c++17 -O1 -shared -fPIC -DSIMPLER_ARCH_A2A3=1 "
                              "-DSIMPLER_RUNTIME_STREAMING=1 -I" +
                              include + "/orchestration -I" + include + "/kernel -I" + include + " " + input + " -o " +
                              output;
  const int status = std::system(command.c_str());
  std::string bytes;
  if (status == 0) {
    std::ifstream file(output, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  } else {
    ADD_FAILURE() << "exit status " << status << ": " << command;
  }
  std::filesystem::remove_all(folder);
  return bytes;
}

}  // namespace simpler::test
