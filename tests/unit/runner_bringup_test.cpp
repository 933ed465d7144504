// How a device is made ready: the order of the calls, what may fail on the way, and what it turns out to be.
#include <string>

#include <gtest/gtest.h>

#include "host/bringup.h"
#include "unit/support/faulty_device.h"

namespace simpler::host {
namespace {

using test::FaultyDevice;

const executor::ArchProfile& a2a3() { return *executor::find_arch("a2a3"); }

class RunnerBringup : public testing::Test {
 protected:
  DeviceBinaries binaries() const { return {"d", driver::builtin_program("tensormap_and_ringbuffer"), "c"}; }
  FaultyDevice d{{.dma_engines = 1}};
  Timeouts limits;
  Bringup bringup{d.allocator, a2a3(), 1, limits};
};

TEST_F(RunnerBringup, CallsInOrderOnceAndDropsTheBytes) {
  bringup.take(binaries());
  ASSERT_TRUE(bringup.ensure().ok());
  std::string order;
  for (const driver::CallRecord& record : d.fault.log()) order += std::string(name_of(record.call)) + " ";
  EXPECT_EQ(order,
            "stream_create stream_create stream_core_limits core_registers alloc copy_to_device sync_window cpu_mask "
            "cpu_bootstrap cpu_load cpu_function cpu_function cpu_function cpu_function core_image_load cpu_launch "
            "stream_sync ");
  EXPECT_EQ(bringup.host_bytes(), 0u);
  EXPECT_EQ(bringup.block_limit(), 1);
  d.fault.clear_log();
  ASSERT_TRUE(bringup.ensure().ok());
  EXPECT_EQ(d.fault.calls(""), 0u);
  EXPECT_EQ(bringup.release(), driver::kOk);
  EXPECT_TRUE(d.soft.census().empty());
}

TEST_F(RunnerBringup, MissingProgramsAreNamed) {
  DeviceBinaries some = binaries();
  for (std::string DeviceBinaries::*part :
       {&DeviceBinaries::dispatcher, &DeviceBinaries::program, &DeviceBinaries::cores}) {
    DeviceBinaries lacking = some;
    (lacking.*part).clear();
    bringup.take(lacking);
    EXPECT_NE(bringup.ensure().message().find("bytes are missing"), std::string::npos);
  }
  bringup.take(some);
  EXPECT_TRUE(bringup.ensure().ok());
  EXPECT_EQ(bringup.release(), driver::kOk);
}

TEST_F(RunnerBringup, AnyCallMayFailAndTheNextAttemptFinishesTheWork) {
  bool failed = true;
  for (std::uint64_t nth = 1; failed; ++nth) {
    FaultyDevice device;
    Bringup one(device.allocator, a2a3(), 1, limits);
    one.take(binaries());
    device.fail_call(nth);
    const Status status = one.ensure();
    failed = device.failed();
    device.fault.disarm();
    if (device.device.owns()) {  // a wait that failed puts the device in doubt instead
      EXPECT_TRUE(one.ensure().ok()) << "call " << nth << ": " << status.message();
      EXPECT_EQ(one.release(), driver::kOk);
      EXPECT_TRUE(device.soft.census().empty()) << "call " << nth;
    }
  }
}

TEST_F(RunnerBringup, DmaWorkspacesAreProvisionedOnceAndTakenBackIfTheProgramCannotBeTold) {
  bringup.take(binaries());
  EXPECT_EQ(bringup.provision_dma(2).kind(), ErrorKind::kValue) << "this device has engine 0 alone";
  ASSERT_TRUE(bringup.ensure().ok());
  d.fail_call(1, "cpu_launch");
  EXPECT_FALSE(bringup.provision_dma(1).ok());
  EXPECT_FALSE(bringup.has_dma());
  EXPECT_EQ(d.soft.census().workspaces, 0u);
  ASSERT_TRUE(bringup.provision_dma(1).ok());
  EXPECT_EQ(d.calls("cpu_launch"), 2) << "the program is told again";
  EXPECT_EQ(bringup.provision_dma(1).kind(), ErrorKind::kState);
  EXPECT_EQ(bringup.release(), driver::kOk);
  EXPECT_TRUE(d.soft.census().empty());
}

TEST_F(RunnerBringup, DmaWorkspacesAreReleasedOnceTheProgramHasForgottenThem) {
  EXPECT_TRUE(bringup.release_dma().ok()) << "there are none";
  bringup.take(binaries());
  ASSERT_TRUE(bringup.ensure().ok());
  ASSERT_TRUE(bringup.provision_dma(1).ok());
  EXPECT_NE(bringup.dma_address(0), 0u);
  d.fail_call(1, "cpu_launch");
  EXPECT_FALSE(bringup.release_dma().ok());
  EXPECT_EQ(d.soft.census().workspaces, 1u) << "the program may still use them";
  EXPECT_NE(bringup.dma_address(0), 0u);
  ASSERT_TRUE(bringup.release_dma().ok());
  EXPECT_EQ(d.soft.census().workspaces, 0u);
  EXPECT_EQ(bringup.dma_address(0), 0u);
  EXPECT_FALSE(bringup.has_dma());
  ASSERT_TRUE(bringup.provision_dma(1).ok()) << "they can be had again";
  EXPECT_EQ(bringup.release(), driver::kOk);
  EXPECT_TRUE(d.soft.census().empty());
}

// What the vendor answers to the question how many cores a launch may use.
struct Offer {
  int code;
  std::uint32_t cube, vector;
};
Offer offer;

TEST_F(RunnerBringup, ALaunchUsesTheClustersThatBothKindsOfCoresAllowAndWithoutAnAnswerTheWholeChip) {
  struct Case {
    Offer offer;
    int blocks;
  };
  const Case cases[] = {
      {{driver::kOk, 3, 20}, 3},    // matrix cores are short
      {{driver::kOk, 20, 7}, 3},    // vector cores are, two for each cluster
      {{driver::kOk, 99, 99}, 24},  // more than the chip has
      {{driver::kOk, 0, 10}, 24},   // no answer, in either number
      {{driver::kOk, 10, 0}, 24},  {{driver::kUnsupported, 5, 5}, 24},
  };
  driver::Driver table = d.soft.table();
  table.stream_core_limits = [](void*, driver::Stream*, std::uint32_t* cube, std::uint32_t* vector) {
    *cube = offer.cube;
    *vector = offer.vector;
    return offer.code;
  };
  for (const Case& c : cases) {
    offer = c.offer;
    Device device(table, 0);
    ASSERT_TRUE(device.attach().ok());
    Allocator allocator(device);
    Bringup one(allocator, a2a3(), 24, limits);
    one.take(binaries());
    ASSERT_TRUE(one.ensure().ok());
    EXPECT_EQ(one.block_limit(), c.blocks) << offer.code << ": " << offer.cube << ", " << offer.vector;
    EXPECT_EQ(one.release(), driver::kOk);
    EXPECT_EQ(device.detach_all(), driver::kOk);
  }
}

}  // namespace
}  // namespace simpler::host
