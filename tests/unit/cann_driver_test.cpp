// The board's driver over the emulated vendor library: which functions each entry calls and with what, what becomes of
// their codes.
#include "driver/cann/cann_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "abi/run_image.h"
#include "base/hash.h"
#include "driver/cann/vendor_api.h"
#include "driver/soft/soft_driver.h"
#include "emulated_vendor/emulation_control.h"

namespace simpler::driver {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSymbols[] = {"simpler_aicpu_init", "simpler_aicpu_exec"};

// The folder of a chip's libraries.
std::string emulated(const std::string& arch) { return SIMPLER_EMULATED_VENDOR "/" + arch; }

// A control function of the libraries of a chip.
template <class F> F* control(const std::string& arch, const char* name) {
  void* const library = dlopen((emulated(arch) + "/libruntime.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = library != nullptr ? dlsym(library, name) : nullptr;
  EXPECT_NE(found, nullptr) << name << ": " << dlerror();
  return reinterpret_cast<F*>(found);
}
#define CONTROL(arch, name) control<decltype(name)>(arch, #name)

class CannDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("ASCEND_RT_VISIBLE_DEVICES");
    open("a2a3");
  }
  void TearDown() override { close(); }
  void open(const std::string& arch) {
    arch_ = arch;
    const Status status = CannDriver::open(arch, emulated(arch), &driver_);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(d().set_device(d().self, 0), kOk);
    CONTROL(arch_, simpler_emulation_record)();
    calls();
  }
  // Nothing is left on the device.
  void close() {
    if (driver_ == nullptr) return;
    while (d().reset_device(d().self, 0) == kOk) {
    }
    EXPECT_EQ(CONTROL(arch_, simpler_emulation_alive)(), 0u);
    driver_.reset();
  }
  const Driver& d() const { return driver_->table(); }
  std::string calls() const { return CONTROL(arch_, simpler_emulation_calls)(); }
  void fail_next(const std::string& function, int code) const {
    CONTROL(arch_, simpler_emulation_fail)(function.c_str(), code);
  }
  std::string error() const { return d().recent_error(d().self); }

  std::string arch_;
  std::unique_ptr<CannDriver> driver_;
};

// What an entry needs to be called once, and be undone.
struct Things {
  const Driver& d;
  std::uint64_t memory = 0, arguments = 0;
  Stream* stream = nullptr;
  Event* event = nullptr;
  CoreImage* image = nullptr;
  CpuModule* module = nullptr;
  CpuFunction* init = nullptr;
  std::string program = builtin_program("tensormap_and_ringbuffer");
  std::uint64_t fingerprint = fnv1a(program.data(), program.size());
  char host[64] = {};

  explicit Things(const Driver& driver) : d(driver) {
    EXPECT_EQ(d.alloc(d.self, 4096, &memory), kOk);
    EXPECT_EQ(d.fill(d.self, memory, 0, 4096), kOk);
    EXPECT_EQ(d.stream_create(d.self, &stream), kOk);
    EXPECT_EQ(d.event_create(d.self, &event), kOk);
    EXPECT_EQ(d.event_record(d.self, event, stream), kOk);
    EXPECT_EQ(d.core_image_load(d.self, bytes(), &image), kOk);
    EXPECT_EQ(d.cpu_bootstrap(d.self, bytes(), bytes(), fingerprint, 0, stream), kOk) << d.recent_error(d.self);
    EXPECT_EQ(d.cpu_load(d.self, fingerprint, 0, kSymbols, 2, &module), kOk) << d.recent_error(d.self);
    EXPECT_EQ(d.cpu_function(d.self, module, kSymbols[0], &init), kOk);
  }
  ~Things() {
    if (module != nullptr) {
      EXPECT_EQ(d.cpu_unload(d.self, module), kOk) << d.recent_error(d.self);
    }
    if (event != nullptr) {
      EXPECT_EQ(d.event_destroy(d.self, event), kOk);
    }
    if (stream != nullptr) {
      EXPECT_EQ(d.stream_destroy(d.self, stream), kOk);
    }
    if (memory != 0) {
      EXPECT_EQ(d.free(d.self, memory), kOk);
    }
  }
  // A reset took them.
  void forget() {
    module = nullptr;
    event = nullptr;
    stream = nullptr;
    memory = 0;
  }
  Binary bytes() const { return {program.data(), program.size()}; }
};

// One entry: how it is called, and the calls of the vendor's that it becomes.
struct Golden {
  const char* entry;
  std::function<int(Things&)> call;
  std::vector<std::string> vendor;
};

const std::vector<Golden>& goldens() {
  static std::uint64_t value = 0, windows[200];
  static std::uint32_t cube = 0, vector = 0;
  static int count = 0;
  static void* mapped = nullptr;
  static const abi::InitArgs init{0, 25, 0, 0, {0, 0}};
  static const std::vector<Golden> rows = {
      {"set_log_level",
       [](Things& t) { return t.d.set_log_level(t.d.self, 2); },
       {"dlog_setlevel module=-1 level=2 event=0"}},
      {"acl_init", [](Things& t) { return t.d.acl_init(t.d.self); }, {"aclInit config=none"}},
      {"acl_finalize", [](Things& t) { return t.d.acl_finalize(t.d.self); }, {"aclFinalize"}},
      {"set_device", [](Things& t) { return t.d.set_device(t.d.self, 0); }, {"rtSetDevice device=0"}},
      {"reset_device", [](Things& t) { return t.d.reset_device(t.d.self, 0); }, {"rtDeviceReset device=0"}},
      {"sync_device",
       [](Things& t) { return t.d.sync_device(t.d.self, 250); },
       {"aclrtSynchronizeDeviceWithTimeout timeout=250"}},
      {"sync_device",
       [](Things& t) { return t.d.sync_device(t.d.self, -7); },
       {"aclrtSynchronizeDeviceWithTimeout timeout=-1"}},
      {"set_op_timeout",
       [](Things& t) { return t.d.set_op_timeout(t.d.self, 45000000, &value); },
       {"aclrtSetOpExecuteTimeOutV2 us=45000000"}},
      {"alloc", [](Things& t) { return t.d.alloc(t.d.self, 1000, &value); }, {"rtMalloc bytes=1000 type=2 module=0"}},
      {"free", [](Things& t) { return t.d.free(t.d.self, value); }, {"rtFree"}},
      {"copy_to_device",
       [](Things& t) { return t.d.copy_to_device(t.d.self, t.memory, t.host, 64); },
       {"rtMemcpy bytes=64 room=64 kind=1"}},
      {"copy_from_device",
       [](Things& t) { return t.d.copy_from_device(t.d.self, t.host, t.memory, 32); },
       {"rtMemcpy bytes=32 room=32 kind=2"}},
      {"fill", [](Things& t) { return t.d.fill(t.d.self, t.memory, 7, 16); }, {"aclrtMemset bytes=16 room=16 value=7"}},
      {"map_host",
       [](Things& t) { return t.d.map_host(t.d.self, t.memory, 4096, &mapped); },
       {"aclrtGetDevice", "halHostRegister bytes=4096 flag=2 device=0"}},
      {"unmap_host", [](Things& t) { return t.d.unmap_host(t.d.self, t.memory); }, {"halHostUnregister device=0"}},
      {"stream_create",
       [](Things& t) { return t.d.stream_create(t.d.self, reinterpret_cast<Stream**>(&value)); },
       {"rtStreamCreate priority=0"}},
      {"stream_destroy",
       [](Things& t) { return t.d.stream_destroy(t.d.self, reinterpret_cast<Stream*>(value)); },
       {"rtStreamDestroy"}},
      {"stream_query", [](Things& t) { return t.d.stream_query(t.d.self, t.stream); }, {"rtStreamQuery"}},
      {"stream_sync",
       [](Things& t) { return t.d.stream_sync(t.d.self, t.stream, 9); },
       {"aclrtSynchronizeStreamWithTimeout timeout=9"}},
      {"stream_sync",
       [](Things& t) { return t.d.stream_sync(t.d.self, t.stream, -1); },
       {"aclrtSynchronizeStreamWithTimeout timeout=-1"}},
      {"stream_sync", [](Things& t) { return t.d.stream_sync(t.d.self, t.stream, 0); }, {"rtStreamQuery"}},
      {"stream_stop_on_failure",
       [](Things& t) { return t.d.stream_stop_on_failure(t.d.self, t.stream); },
       {"aclrtSetStreamFailureMode mode=1"}},
      {"stream_core_limits",
       [](Things& t) { return t.d.stream_core_limits(t.d.self, t.stream, &cube, &vector); },
       {"aclrtGetStreamResLimit type=0", "aclrtGetStreamResLimit type=1"}},
      {"event_create",
       [](Things& t) { return t.d.event_create(t.d.self, reinterpret_cast<Event**>(&value)); },
       {"aclrtCreateEventExWithFlag flag=8"}},
      {"event_destroy",
       [](Things& t) { return t.d.event_destroy(t.d.self, reinterpret_cast<Event*>(value)); },
       {"aclrtDestroyEvent"}},
      {"event_record", [](Things& t) { return t.d.event_record(t.d.self, t.event, t.stream); }, {"aclrtRecordEvent"}},
      {"event_sync",
       [](Things& t) { return t.d.event_sync(t.d.self, t.event, 30); },
       {"aclrtSynchronizeEventWithTimeout timeout=30"}},
      {"event_sync",
       [](Things& t) { return t.d.event_sync(t.d.self, t.event, 0); },
       {"aclrtSynchronizeEventWithTimeout timeout=1"}},
      {"event_timestamp",
       [](Things& t) { return t.d.event_timestamp(t.d.self, t.event, &value); },
       {"aclrtEventGetTimestamp"}},
      {"core_image_load",
       [](Things& t) { return t.d.core_image_load(t.d.self, t.bytes(), &t.image); },
       {"rtRegisterAllKernel magic=43554245 version=0 bytes=64"}},
      {"cpu_bootstrap",
       [](Things& t) { return t.d.cpu_bootstrap(t.d.self, t.bytes(), t.bytes(), t.fingerprint, 0, t.stream); },
       {"rtMalloc bytes=64 type=2 module=0", "rtMemcpy bytes=64 room=64 kind=1", "rtMalloc bytes=64 type=2 module=0",
        "rtMemcpy bytes=64 room=64 kind=1", "rtMalloc bytes=160 type=2 module=0", "rtMemcpy bytes=160 room=160 kind=1",
        "rtAicpuKernelLaunchExWithArgs type=5 operation=AST_DYN_AICPU blocks=1 bytes=304 "
        "kernel=DynTileFwkKernelServerInit library=libaicpu_extend_kernels.so flags=0",
        "aclrtSynchronizeStreamWithTimeout timeout=50000", "rtFree", "rtFree", "rtFree"}},
      {"cpu_load",
       [](Things& t) {
         return t.d.cpu_load(t.d.self, t.fingerprint, 0, kSymbols, 2, reinterpret_cast<CpuModule**>(&value));
       },
       {"rtsBinaryLoadFromFile options=1", "rtsFuncGetByName simpler_aicpu_init_%",
        "rtsFuncGetByName simpler_aicpu_exec_%"}},
      {"cpu_unload",
       [](Things& t) { return t.d.cpu_unload(t.d.self, reinterpret_cast<CpuModule*>(value)); },
       {"rtsBinaryUnload"}},
      {"cpu_function",
       [](Things& t) { return t.d.cpu_function(t.d.self, t.module, kSymbols[0], &t.init); },
       {"rtsFuncGetByName simpler_aicpu_init_%"}},
      {"cpu_launch",
       [](Things& t) { return t.d.cpu_launch(t.d.self, t.init, 1, &init, sizeof init, t.stream); },
       {"rtsLaunchCpuKernel simpler_aicpu_init blocks=1 bytes=32"}},
      {"core_launch",
       [](Things& t) { return t.d.core_launch(t.d.self, t.image, 2, t.memory, t.stream); },
       {"rtKernelLaunchWithHandleV2 key=0 blocks=2 bytes=8 scheme=1"}},
      {"cpu_mask",
       [](Things& t) { return t.d.cpu_mask(t.d.self, CpuMask::kOccupied, &value); },
       {"aclrtGetDevice", "halGetDeviceInfo device=0 module=1 info=8"}},
      {"core_registers",
       [](Things& t) { return t.d.core_registers(t.d.self, CoreRegisters::kControl, windows, &(count = 200)); },
       {"aclrtGetDevice", "halMemCtl type=0 kind=2 device=0",
        "halGetDeviceInfoByBuff device=0 module=4 info=8 bytes=16"}},
      {"core_registers",
       [](Things& t) { return t.d.core_registers(t.d.self, CoreRegisters::kCounters, windows, &(count = 200)); },
       {"aclrtGetDevice", "halMemCtl type=0 kind=3 device=0",
        "halGetDeviceInfoByBuff device=0 module=4 info=8 bytes=16"}},
      {"sync_window", [](Things& t) { return t.d.sync_window(t.d.self, &value); }, {"rtGetC2cCtrlAddr"}},
      // Last: what the device had is gone.
      {"force_reset",
       [](Things& t) {
         t.forget();
         return t.d.force_reset(t.d.self, 0);
       },
       {"aclrtResetDeviceForce device=0"}},
  };
  return rows;
}

std::string with_fingerprint(const Things& things, std::string line) {
  const std::size_t at = line.rfind('%');
  if (at == std::string::npos) return line;
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(things.fingerprint));
  return line.replace(at, 1, text);
}

TEST_F(CannDriverTest, EachEntryIsTheVendorsCallsThatItsCommentNames) {
  ASSERT_EQ(d().set_device(d().self, 0), kOk);
  Things things(d());
  calls();
  std::set<std::string> covered = {"child_code_resolve", "child_code_release", "dma_provision", "dma_release"};  // none
  for (const Golden& row : goldens()) {
    EXPECT_EQ(row.call(things), kOk) << row.entry << ": " << error();
    std::string wanted;
    for (const std::string& line : row.vendor) wanted += with_fingerprint(things, line) + "\n";
    EXPECT_EQ(calls(), wanted) << row.entry;
    covered.insert(row.entry);
  }
  EXPECT_EQ(covered.size(), static_cast<std::size_t>(kCallCount)) << "an entry of the table has no row";
}

TEST_F(CannDriverTest, AFailureOfAnyVendorCallComesBackAsItsCodeWithNameAndText) {
  // The entry before these makes what they undo.
  const std::set<std::string> undo = {"acl_finalize",   "free",          "unmap_host",
                                      "stream_destroy", "event_destroy", "cpu_unload"};
  for (std::size_t i = 0; i < goldens().size(); ++i) {
    const Golden& row = goldens()[i];
    for (const std::string& line : std::set<std::string>(row.vendor.begin(), row.vendor.end())) {
      const std::string function = line.substr(0, line.find(' '));
      // How well the bootstrap's memory is given back, and whether a core is there, changes nothing for the caller.
      if ((row.entry == std::string("cpu_bootstrap") && function == "rtFree") || function == "halGetDeviceInfoByBuff")
        continue;
      ASSERT_EQ(d().set_device(d().self, 0), kOk);
      Things things(d());
      if (undo.count(row.entry) != 0) {
        ASSERT_EQ(goldens()[i - 1].call(things), kOk) << row.entry;
      }
      const bool hal = function.compare(0, 3, "hal") == 0, log = function == "dlog_setlevel";
      fail_next(function, hal ? 6 : 507899);
      EXPECT_EQ(row.call(things), log   ? kInternalError
                                  : hal ? kOutOfMemory
                                        : kDriverInternal)
          << row.entry << ", " << function;
      EXPECT_NE(error().find(function + " answered " + (hal ? "6" : "507899")), std::string::npos) << error();
      if (!hal && !log) {
        EXPECT_NE(error().find(": " + function + ": told to fail"), std::string::npos) << error();
      }
      static_cast<void>(d().acl_finalize(d().self));
      things.forget();
      ASSERT_EQ(d().force_reset(d().self, 0), kOk);
    }
  }
}

TEST_F(CannDriverTest, WhatTheChipLacksIsUnsupportedAndSaysSo) {
  EXPECT_EQ(d().capabilities, kHostMapping | kSyncWindow | kCounterRegisters);
  std::uint64_t addresses[2];
  DmaWorkspaces* workspaces = nullptr;
  EXPECT_EQ(d().dma_provision(d().self, 1, addresses, &workspaces), kUnsupported);
  EXPECT_NE(error().find("DMA"), std::string::npos) << error();
  std::uint64_t mask = 0;
  EXPECT_EQ(d().cpu_mask(d().self, CpuMask::kPhysical, &mask), kUnsupported) << "the driver's 0xFFFE";

  close();
  open("a5");
  EXPECT_EQ(d().capabilities, 0u);
  void* host = nullptr;
  std::uint64_t windows[108];
  int count = 108;
  EXPECT_EQ(d().map_host(d().self, 4096, 1, &host), kUnsupported);
  EXPECT_EQ(d().unmap_host(d().self, 4096), kUnsupported);
  EXPECT_EQ(d().sync_window(d().self, windows), kUnsupported);
  EXPECT_EQ(d().core_registers(d().self, CoreRegisters::kCounters, windows, &count), kUnsupported);
  EXPECT_EQ(calls(), "") << "the vendor was asked";
}

TEST_F(CannDriverTest, WindowsOfCoresStandInTheOrderOfPhysicalIds) {
  std::uint64_t windows[108];
  int count = 74;
  EXPECT_EQ(d().core_registers(d().self, CoreRegisters::kControl, windows, &count), kInvalidParameter);
  EXPECT_NE(error().find("room for 74 of 75 cores"), std::string::npos) << error();
  count = 108;
  ASSERT_EQ(d().core_registers(d().self, CoreRegisters::kControl, windows, &count), kOk) << error();
  ASSERT_EQ(count, 75);
  const std::uint64_t base = windows[0];
  for (std::uint64_t core = 0; core < 25; ++core) {
    const bool there = core < 8;  // clusters of the emulated chip
    EXPECT_EQ(windows[core], there ? base + core * 0x800000 : 0) << core;
    EXPECT_EQ(windows[25 + 2 * core], there ? base + core * 0x800000 + 0x100000 : 0) << core;
    EXPECT_EQ(windows[26 + 2 * core], there ? base + core * 0x800000 + 0x200000 : 0) << core;
  }
  fail_next("halGetDeviceInfoByBuff", 0xFFFE);
  ASSERT_EQ(d().core_registers(d().self, CoreRegisters::kControl, windows, &count), kOk);
  EXPECT_EQ(windows[24], base + 24 * std::uint64_t{0x800000}) << "which are there is not known: all are taken";

  close();
  open("a5");
  count = 108;
  ASSERT_EQ(d().core_registers(d().self, CoreRegisters::kControl, windows, &count), kOk) << error();
  ASSERT_EQ(count, 108);
  for (const int die : {0, 54}) {
    for (int core = 0; core < 18; ++core) {
      EXPECT_EQ(windows[die + 18 + 2 * core], windows[die + core] + 0x100000) << die << " " << core;
      EXPECT_EQ(windows[die + 19 + 2 * core], windows[die + core] + 0x200000) << die << " " << core;
    }
  }
  EXPECT_EQ(std::set<std::uint64_t>(windows, windows + 108).size(), 108u);
  std::string wanted = "aclrtGetDevice\n";
  for (int core = 0; core < 36; ++core) wanted += "halResMap device=0 core=" + std::to_string(core) + "\n";
  const std::string made = calls();
  EXPECT_NE(made.find(wanted), std::string::npos) << made;
}

TEST_F(CannDriverTest, ABusyDriverIsAskedAgainBeforeItIsAFailure) {
  std::uint64_t windows[75];
  int count = 75;
  fail_next("halMemCtl", 13);
  EXPECT_EQ(d().core_registers(d().self, CoreRegisters::kControl, windows, &count), kOk) << error();
  const std::string made = calls();
  EXPECT_NE(made.find("halMemCtl type=0 kind=2 device=0\nhalMemCtl type=0 kind=2 device=0\n"), std::string::npos)
      << made;
}

TEST_F(CannDriverTest, CodesOfTheDriverBecomeThoseOfTheRuntime) {
  const std::pair<int, int> pairs[] = {{1, kNoDevice},
                                       {2, kInvalidDevice},
                                       {3, kInvalidParameter},
                                       {4, kInvalidHandle},
                                       {6, kOutOfMemory},
                                       {14, 207005},
                                       {16, 507012},
                                       {17, kDriverInternal},
                                       {25, 507901},
                                       {33, 507010},
                                       {40, 207005},
                                       {43, kInternalError},
                                       {46, 207006},
                                       {48, 207008},
                                       {74, 507052},
                                       {0xFFFE, kUnsupported},
                                       {12345, kDriverInternal}};
  std::uint64_t mask = 0;
  for (const auto& [driver, runtime] : pairs) {
    fail_next("halGetDeviceInfo", driver);
    EXPECT_EQ(d().cpu_mask(d().self, CpuMask::kOccupied, &mask), runtime) << driver;
    EXPECT_NE(error().find("halGetDeviceInfo answered " + std::to_string(driver)), std::string::npos) << error();
  }
}

TEST_F(CannDriverTest, WorkThatIsLeftIsNoFailureForAPollAndATimeoutForAWait) {
  Things things(d());
  ASSERT_EQ(d().core_launch(d().self, things.image, 1, things.memory, things.stream), kOk);  // busy: no program ends it
  ASSERT_EQ(d().event_record(d().self, things.event, things.stream), kOk);
  const std::string before = error();
  EXPECT_EQ(d().stream_query(d().self, things.stream), kStreamNotComplete);
  EXPECT_EQ(d().stream_sync(d().self, things.stream, 0), kSyncTimeout);
  EXPECT_EQ(error(), before) << "a poll";
  EXPECT_EQ(d().stream_sync(d().self, things.stream, 5), kSyncTimeout);
  EXPECT_NE(error().find("aclrtSynchronizeStreamWithTimeout answered 507046"), std::string::npos) << error();
  EXPECT_EQ(d().event_sync(d().self, things.event, 5), kEventSyncTimeout);
  std::uint64_t micros = 0;
  EXPECT_EQ(d().event_timestamp(d().self, things.event, &micros), kEventNotRecorded);
  things.forget();
  ASSERT_EQ(d().force_reset(d().self, 0), kOk);
}

TEST_F(CannDriverTest, ACodeOfTheKernelIsItsAddress) {
  std::uint64_t entry = 0;
  ChildCode* code = nullptr;
  EXPECT_EQ(d().child_code_resolve(d().self, 0x1234000, 64, "kernel", &entry, &code), kOk);
  EXPECT_EQ(entry, 0x1234000u);
  EXPECT_EQ(d().child_code_release(d().self, code), kOk);
}

TEST_F(CannDriverTest, AStaleProgramIsRefusedInsteadOfFollowed) {
  Things things(d());
  ASSERT_EQ(d().cpu_unload(d().self, things.module), kOk);
  CpuFunction* function = nullptr;
  EXPECT_EQ(d().cpu_function(d().self, things.module, kSymbols[0], &function), kInvalidHandle);
  EXPECT_EQ(d().cpu_unload(d().self, things.module), kInvalidHandle);
  const abi::InitArgs init{};
  EXPECT_EQ(d().cpu_launch(d().self, things.init, 1, &init, sizeof init, things.stream), kInvalidHandle);
  things.module = nullptr;
}

TEST_F(CannDriverTest, AProgramWithoutAnEntryLeavesNothingBehind) {
  Things things(d());
  const char* const symbols[] = {kSymbols[0], "simpler_aicpu_dance"};
  CpuModule* module = nullptr;
  EXPECT_EQ(d().cpu_load(d().self, things.fingerprint, 0, symbols, 2, &module), kInvalidParameter);
  EXPECT_NE(error().find("simpler_aicpu_dance"), std::string::npos) << error();
  EXPECT_EQ(d().cpu_load(d().self, things.fingerprint + 1, 0, kSymbols, 2, &module), kInvalidParameter)
      << "a program that was not placed";
  EXPECT_EQ(d().cpu_bootstrap(d().self, {}, things.bytes(), 1, 0, things.stream), kInvalidParameter);
  EXPECT_NE(error().find("dispatcher"), std::string::npos) << error();
}

TEST_F(CannDriverTest, ABootstrapGivesItsMemoryBackHoweverItEnds) {
  Things things(d());
  const std::size_t before = CONTROL(arch_, simpler_emulation_alive)();
  for (const char* function :
       {"", "rtMalloc", "rtMemcpy", "rtAicpuKernelLaunchExWithArgs", "aclrtSynchronizeStreamWithTimeout"}) {
    const bool fails = *function != '\0';
    if (fails) fail_next(function, 207001);
    EXPECT_EQ(d().cpu_bootstrap(d().self, things.bytes(), things.bytes(), things.fingerprint, 0, things.stream),
              fails ? kOutOfMemory : kOk)
        << function;
    EXPECT_EQ(CONTROL(arch_, simpler_emulation_alive)(), before) << function;
  }
}

TEST_F(CannDriverTest, ALogLevelThatThereIsNotIsRefused) {
  for (const int level : {-1, 5}) {
    EXPECT_EQ(d().set_log_level(d().self, level), kBadArgument) << level;
    EXPECT_NE(error().find("outside 0..4"), std::string::npos) << error();
  }
  EXPECT_EQ(calls(), "") << "the vendor is not asked";
}

TEST_F(CannDriverTest, TheDescriptionOfAProgramLivesAsLongAsTheProgram) {
  const fs::path folder = fs::temp_directory_path() / ("simpler-cann-" + std::to_string(getpid()));
  fs::create_directory(folder);
  setenv("TMPDIR", folder.c_str(), 1);
  {
    Things things(d());
    const fs::directory_iterator files(folder);
    ASSERT_NE(files, fs::directory_iterator()) << "no description was written";
    std::ifstream file(files->path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (const char* part : {"\"functionName\": \"simpler_aicpu_exec\"", "\"opKernelLib\": \"AICPUKernel\"",
                             "\"userDefined\": \"False\"", "_0.so\""})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_TRUE(fs::is_empty(folder));
  CpuModule* module = nullptr;
  {
    Things things(d());
    const auto files = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
    const std::size_t alive = CONTROL(arch_, simpler_emulation_alive)();
    for (const char* function : {"rtsBinaryLoadFromFile", "rtsFuncGetByName"}) {
      fail_next(function, 507899);
      EXPECT_EQ(d().cpu_load(d().self, things.fingerprint, 0, kSymbols, 2, &module), kDriverInternal);
      EXPECT_EQ(files(), 1) << function << ": that of a program that was not loaded is left";
      EXPECT_EQ(CONTROL(arch_, simpler_emulation_alive)(), alive) << function;
    }
    EXPECT_EQ(d().cpu_load(d().self, things.fingerprint, 0, kSymbols, 2, &module), kOk);
    EXPECT_EQ(files(), 2);
  }
  close();
  EXPECT_TRUE(fs::is_empty(folder)) << "a program that is never unloaded loses its description with the driver";
  open("a2a3");
  setenv("TMPDIR", (folder / "missing").c_str(), 1);
  EXPECT_EQ(d().cpu_load(d().self, 1, 0, kSymbols, 2, &module), kInternalError);
  EXPECT_NE(error().find("cannot be written"), std::string::npos) << error();
  unsetenv("TMPDIR");
  fs::remove_all(folder);
}

TEST_F(CannDriverTest, HalCallsTakeTheIdThatIsVisible) {
  setenv("ASCEND_RT_VISIBLE_DEVICES", "5,7", 1);
  std::uint64_t mask = 0;
  EXPECT_EQ(d().cpu_mask(d().self, CpuMask::kOccupied, &mask), kOk);
  EXPECT_NE(calls().find("halGetDeviceInfo device=5"), std::string::npos);
  setenv("ASCEND_RT_VISIBLE_DEVICES", "x", 1);
  EXPECT_EQ(d().cpu_mask(d().self, CpuMask::kOccupied, &mask), kInvalidDevice);
  EXPECT_NE(error().find("ASCEND_RT_VISIBLE_DEVICES=x does not name device 0"), std::string::npos) << error();
  unsetenv("ASCEND_RT_VISIBLE_DEVICES");
}

TEST(VisibleDevice, IsReadAsTheVendorReadsIt) {
  EXPECT_EQ(visible_device(nullptr, 3), 3);
  EXPECT_EQ(visible_device("2,4,6", 1), 4);
  EXPECT_EQ(visible_device("2,4,6", 3), -1);
  EXPECT_EQ(visible_device("2,4x,6", 0), 2) << "what came before counts";
  EXPECT_EQ(visible_device("2,4x,6", 1), -1);
  EXPECT_EQ(visible_device("4,2", 0), -1) << "not ascending: the whole list is wrong";
  EXPECT_EQ(visible_device("", 0), -1);
}

TEST_F(CannDriverTest, ThreadsHaveTheirOwnDeviceAndErrors) {
  EXPECT_EQ(d().free(d().self, 64), kInvalidParameter);
  const std::string mine = error();
  std::thread([&] {
    std::uint64_t address = 0;
    EXPECT_EQ(error(), "");
    EXPECT_EQ(d().alloc(d().self, 64, &address), kNoContext);
    EXPECT_EQ(d().cpu_mask(d().self, CpuMask::kOccupied, &address), kNoContext);
  }).join();
  EXPECT_EQ(error(), mine);
}

}  // namespace
}  // namespace simpler::driver
