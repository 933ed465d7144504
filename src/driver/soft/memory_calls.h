// MemoryCalls: the software device's part of the Driver table that is about memory: blocks, copies, mappings into the
// host, workspaces of DMA engines.
//
// What      Addresses are host addresses, so a copy is a memcpy that was checked, and a mapping is a record. See
//           soft_memory.h for what is checked.
// Lifetime  What a device has goes with end_generation(), or never after leave_behind(); the rest with the object.
// Threads   Any; no lock is held during copies.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "driver/driver.h"
#include "driver/soft/soft_devices.h"
#include "driver/soft/soft_driver.h"
#include "driver/soft/soft_handles.h"
#include "driver/soft/soft_memory.h"

namespace simpler::driver {

class MemoryCalls {
 public:
  MemoryCalls(SoftDevices& devices, const SoftOptions& options);

  // Of the table.
  int alloc(std::size_t bytes, std::uint64_t* address);
  int free(std::uint64_t address);
  int copy_to_device(std::uint64_t destination, const void* source, std::size_t bytes);
  int copy_from_device(void* destination, std::uint64_t source, std::size_t bytes);
  int fill(std::uint64_t address, int value, std::size_t bytes);
  int map_host(std::uint64_t address, std::size_t bytes, void** host);
  int unmap_host(std::uint64_t address);
  int dma_provision(std::uint32_t mask, std::uint64_t addresses[2], DmaWorkspaces** handle);
  int dma_release(DmaWorkspaces* handle);

  // Whether a live block holds so many bytes from the address on. what: how they are used, for the message.
  int check_range(std::uint64_t address, std::size_t bytes, const char* what) const;

  // Takes everything of a device; how much there was.
  std::size_t end_generation(int ordinal);
  // The device's blocks stay as they are for good.
  void leave_behind(int ordinal);
  void count(SoftCensus* census) const;

 private:
  struct Workspaces {
    std::uint64_t addresses[2];
  };

  int check_access(std::uint64_t address, std::size_t bytes, const char* what) const;

  SoftDevices& devices_;
  const std::uint32_t dma_engines_;
  SoftMemory memory_;
  HandleTable<Workspaces, DmaWorkspaces> workspaces_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, int> mappings_;  // address -> device
};

}  // namespace simpler::driver
