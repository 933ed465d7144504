// How the board's driver finds the vendor's libraries, and what is said when libraries or functions are missing.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "driver/cann/cann_driver.h"
#include "unit/support/compiled_code.h"

namespace simpler::driver {
namespace {

namespace fs = std::filesystem;

const fs::path kEmulated = SIMPLER_EMULATED_VENDOR "/a2a3";

// A folder with the emulated libraries. The loader remembers names that it has opened, so each test has its own.
class VendorFolder : public testing::Test {
 protected:
  void SetUp() override { folder_ = fresh(); }
  void TearDown() override {
    for (const fs::path& folder : folders_) fs::remove_all(folder);
    unsetenv("ASCEND_HOME_PATH");
  }
  fs::path fresh() {
    std::string path = (fs::temp_directory_path() / "simpler-vendor-XXXXXX").string();
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    for (const char* name : kNames) fs::create_symlink(kEmulated / name, fs::path(path) / name);
    return folders_.emplace_back(path);
  }
  std::string open(const fs::path& folder) {
    std::unique_ptr<CannDriver> driver;
    return CannDriver::open("a2a3", folder.string(), &driver).message();
  }

  static constexpr const char* kNames[] = {"libruntime.so", "libacl_rt.so", "libascend_hal.so", "libunified_dlog.so"};
  fs::path folder_;
  std::vector<fs::path> folders_;
};

TEST_F(VendorFolder, EachMissingLibraryIsNamedWithItsPackageAndHowToInstallIt) {
  EXPECT_EQ(open(folder_), "");
  for (const std::string name : kNames) {
    const fs::path folder = fresh();
    fs::remove(folder / name);
    const std::string error = open(folder);
    const std::string package = name == "libascend_hal.so" ? "Ascend driver" : "CANN toolkit";
    EXPECT_NE(error.find("the library " + name + " of the " + package + " cannot be loaded"), std::string::npos)
        << error;
    EXPECT_NE(error.find("set_env.sh"), std::string::npos) << error;
    EXPECT_NE(error.find((folder / name).string()), std::string::npos) << "where it was looked for: " << error;
  }
}

TEST_F(VendorFolder, OlderNamesOfLibrariesDo) {
  fs::rename(folder_ / "libacl_rt.so", folder_ / "libascendcl.so");
  fs::rename(folder_ / "libunified_dlog.so", folder_ / "libascendalog.so");
  EXPECT_EQ(open(folder_), "");
}

TEST_F(VendorFolder, LibrariesAreFoundWhereTheToolkitSays) {
  fs::create_directory(folder_ / "lib64");
  for (const char* name : kNames) fs::rename(folder_ / name, folder_ / "lib64" / name);
  setenv("ASCEND_HOME_PATH", folder_.c_str(), 1);
  // The driver's package is not the toolkit's: only its own folder counts.
  const std::string error = open("");
  EXPECT_NE(error.find("the library libascend_hal.so of the Ascend driver"), std::string::npos) << error;
  EXPECT_NE(error.find("/usr/local/Ascend/driver/lib64/driver/libascend_hal.so"), std::string::npos) << error;
}

TEST_F(VendorFolder, MissingFunctionsAreNamedWithTheirLibraries) {
  fs::remove(folder_ / "libascend_hal.so");
  std::ofstream(folder_ / "libascend_hal.so", std::ios::binary) << test::compiled(
      "extern \"C\" { int halHostRegister() { return 0; } int halHostUnregister() { return 0; }"
      " int halGetDeviceInfo() { return 0; } int halMemCtl() { return 0; } }");
  const std::string error = open(folder_);
  EXPECT_NE(
      error.find("lack halGetDeviceInfoByBuff of libascend_hal.so, halResMap of libascend_hal.so: they are too old"),
      std::string::npos)
      << error;
  EXPECT_NE(error.find("8.5 or newer"), std::string::npos) << error;
}

TEST_F(VendorFolder, StubsForLinkingAreRefused) {
  const fs::path stubs = folder_ / "devlib";
  fs::create_directory(stubs);
  fs::copy_file(kEmulated / "libsimpler_emulated_a2a3.so", stubs / "libruntime.so");
  fs::remove(folder_ / "libruntime.so");
  fs::create_symlink(stubs / "libruntime.so", folder_ / "libruntime.so");
  const std::string error = open(folder_);
  EXPECT_NE(error.find("stub for linking"), std::string::npos) << error;
}

}  // namespace
}  // namespace simpler::driver
