// A kernel as a shared object: what it exports, where its tiles lie, and that it can be unloaded again.
#include <dlfcn.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "unit/support/tile_support.h"

using namespace tile_test;

#ifndef SIMPLER_SOURCE_DIR
#error "the build defines SIMPLER_SOURCE_DIR and SIMPLER_CXX_COMPILER"
#endif

namespace {

// args: input, output (16 floats each), where to write the lane and the tile's address
constexpr const char* kSource = R"(
#include <cstdint>
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __attribute__((visibility("default"))) __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Global = GlobalTensor<float, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>>;
  Global in(reinterpret_cast<float*>(args[0])), out(reinterpret_cast<float*>(args[1]));
  Tile<TileType::Vec, float, 1, 16> tile;
  TASSIGN(tile, static_cast<uint64_t>(args[4]));
  TLOAD(tile, in);
  TEXP(tile, tile);
  TSTORE(out, tile);
  args[2] = get_subblockid();
  args[3] = reinterpret_cast<int64_t>(tile.data());
}
)";

class TileKernel : public TileTest {
 protected:
  // Compiles the kernel with `flags`; the library's path.
  static std::string compile(const std::string& flags) {
    char folder[] = "/tmp/tile_kernel_XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    const std::string base = std::string(folder) + "/kernel";
    std::ofstream(base + ".cpp") << kSource;
    const std::string include = std::string(SIMPLER_SOURCE_DIR) + "/include";
    const std::string command = std::string(SIMPLER_CXX_COMPILER) +
                                " -std=c++17 -shared -fPIC -Wall -Wextra -Werror -D__CPU_SIM " + flags + " -I" +
                                include + " -I" + include + "/pto " + base + ".cpp -o " + base + ".so";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return base + ".so";
  }
  static void discard(const std::string& library) {
    std::remove(library.c_str());
    std::remove((library.substr(0, library.size() - 3) + ".cpp").c_str());
    rmdir(library.substr(0, library.rfind('/')).c_str());
  }
};

struct Loaded {
  explicit Loaded(const std::string& path) : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle, nullptr) << dlerror();
    entry = reinterpret_cast<void (*)(int64_t*)>(dlsym(handle, "kernel_entry"));
    register_hooks = reinterpret_cast<SimplerSimRegisterHooks>(dlsym(handle, "simpler_sim_register_hooks"));
    vendor_hooks = dlsym(handle, "pto_sim_register_hooks");
  }
  void* handle;
  void (*entry)(int64_t*);
  SimplerSimRegisterHooks register_hooks;
  void* vendor_hooks;
};

}  // namespace

TEST_F(TileKernel, UsesTheCoresThatTheHostGivesItAndUnloads) {
  for (const char* flags :
       {"-O2", "-O2 -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections -Wl,--gc-sections", "-O0",
        "-O2 -DSIMPLER_TILE_HOSTED=1"}) {
    const std::string library = compile(flags);
    {
      Loaded kernel(library);
      ASSERT_NE(kernel.entry, nullptr);
      ASSERT_NE(kernel.register_hooks, nullptr) << flags;
      ASSERT_NE(kernel.vendor_hooks, nullptr) << flags;
      SimplerSimHooks hooks = pto::tile_detail::sim_state.hooks;
      if (hooks.kernels == nullptr) hooks.kernels = *simpler::tile::available_kernels();  // a hosted kernel needs them
      kernel.register_hooks(&hooks);
      float in[16], out[16];
      for (int i = 0; i < 16; ++i) in[i] = 0.1f * static_cast<float>(i);
      int64_t args[5] = {reinterpret_cast<int64_t>(in), reinterpret_cast<int64_t>(out), -1, 0, 0x40};
      core_.lane = 1;
      kernel.entry(args);
      for (int i = 0; i < 16; ++i) ASSERT_NEAR(out[i], std::exp(in[i]), 1e-6 * out[i]);
      EXPECT_EQ(args[2], 1);
      EXPECT_EQ(args[3], reinterpret_cast<int64_t>(core_.memory[SIMPLER_TILE_MEMORY_UB].get()) + 0x40);
      args[4] = 1 << 24;
      EXPECT_NE(failure_of([&] { kernel.entry(args); }).find("its memory ends at 0x80000"), std::string::npos)
          << "a failed check unwinds the kernel";
      EXPECT_EQ(dlclose(kernel.handle), 0);
    }
    EXPECT_EQ(dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << "still loaded after dlclose: " << flags;
    discard(library);
  }
}
TEST_F(TileKernel, KeepsTheHooksOfEachLibraryApart) {
  const std::string first = compile("-O1"), second = compile("-O1");
  Loaded a(first), b(second);
  const SimplerSimHooks hooks = pto::tile_detail::sim_state.hooks;
  a.register_hooks(&hooks);
  float in[16] = {}, out[16];
  int64_t args[5] = {reinterpret_cast<int64_t>(in), reinterpret_cast<int64_t>(out), -1, 0, 0};
  core_.lane = 1;
  std::thread([&] { b.entry(args); }).join();  // no hooks: a core of its own, on any thread
  EXPECT_EQ(args[2], 0);
  a.entry(args);
  EXPECT_EQ(args[2], 1);
  dlclose(a.handle);
  dlclose(b.handle);
  discard(first);
  discard(second);
}
