#include "driver/soft/memory_calls.h"

#include <atomic>
#include <cstring>

namespace simpler::driver {
namespace {

constexpr std::size_t kWorkspaceBytes = 64 * 1024;

}  // namespace

MemoryCalls::MemoryCalls(SoftDevices& devices, const SoftOptions& options)
    : devices_(devices),
      dma_engines_(options.dma_engines),
      memory_(options.guard_bytes, options.byte_limit),
      workspaces_(devices, "workspace") {}

int MemoryCalls::alloc(std::size_t bytes, std::uint64_t* address) {
  int ordinal = 0;
  if (const int code = devices_.context(&ordinal); code != kOk) return code;
  if (memory_.allocate(bytes, address, ordinal)) return kOk;
  return fail(kOutOfMemory, format("device %d cannot provide %zu bytes of memory", ordinal, bytes));
}

int MemoryCalls::free(std::uint64_t address) {
  {
    const std::lock_guard lock(mutex_);
    if (mappings_.count(address) != 0) return fail(kInvalidParameter, hex(address) + " is mapped: unmap it first");
  }
  if (const int code = devices_.check_all_return(); code != kOk) return code;
  switch (memory_.free(address)) {
    case SoftMemory::Freed::kOk: return kOk;
    case SoftMemory::Freed::kDamaged:
      return fail(kMemoryFault, "somebody wrote past an end of the allocation at " + hex(address));
    case SoftMemory::Freed::kUnknown: break;
  }
  return fail(kInvalidParameter, hex(address) +
                                     " is not the start of a live allocation: it was freed already, or never "
                                     "allocated here");
}

int MemoryCalls::copy_to_device(std::uint64_t destination, const void* source, std::size_t bytes) {
  const int code = check_access(destination, bytes, "copy to");
  if (code == kOk && bytes > 0) std::memcpy(reinterpret_cast<void*>(destination), source, bytes);
  return code;
}

int MemoryCalls::copy_from_device(void* destination, std::uint64_t source, std::size_t bytes) {
  int ordinal = 0;
  int code = devices_.context(&ordinal);
  if (code == kDriverInternal && devices_.check_returns(ordinal) != kOk) code = kOk;  // how its run ended is readable
  if (code == kOk) code = check_range(source, bytes, "copy from");
  if (code != kOk || bytes == 0) return code;
  if (bytes == sizeof(std::uint32_t) && source % bytes == 0) {  // one word, which the program may be writing
    const std::uint32_t word =
        std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(source)).load(std::memory_order_acquire);
    std::memcpy(destination, &word, sizeof word);
  } else {
    std::memcpy(destination, reinterpret_cast<const void*>(source), bytes);
  }
  return kOk;
}

int MemoryCalls::fill(std::uint64_t address, int value, std::size_t bytes) {
  const int code = check_access(address, bytes, "fill of");
  if (code == kOk && bytes > 0) std::memset(reinterpret_cast<void*>(address), value, bytes);
  return code;
}

int MemoryCalls::map_host(std::uint64_t address, std::size_t bytes, void** host) {
  int ordinal = 0;
  if (const int code = check_access(address, bytes, "mapping of"); code != kOk) return code;
  if (const int code = devices_.context(&ordinal); code != kOk) return code;
  const std::lock_guard lock(mutex_);
  if (!mappings_.emplace(address, ordinal).second) return fail(kInvalidParameter, hex(address) + " is mapped already");
  *host = reinterpret_cast<void*>(address);
  return kOk;
}

int MemoryCalls::unmap_host(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  return mappings_.erase(address) != 0 ? kOk : fail(kInvalidParameter, hex(address) + " is not mapped");
}

int MemoryCalls::dma_provision(std::uint32_t mask, std::uint64_t addresses[2], DmaWorkspaces** handle) {
  int ordinal = 0;
  if (const int code = devices_.context(&ordinal); code != kOk) return code;
  if (mask == 0 || (mask & ~dma_engines_) != 0)
    return fail(kUnsupported, format("DMA engines 0x%x of 0x%x", mask, dma_engines_));
  auto workspaces = std::make_shared<Workspaces>();
  for (int engine = 0; engine < 2; ++engine) {
    std::uint64_t& address = workspaces->addresses[engine];
    address = 0;
    if ((mask >> engine & 1) == 0 || memory_.allocate(kWorkspaceBytes, &address, ordinal)) continue;
    if (engine == 1 && workspaces->addresses[0] != 0) memory_.free(workspaces->addresses[0]);
    return fail(kOutOfMemory, "no memory for the workspace of a DMA engine");
  }
  addresses[0] = workspaces->addresses[0];
  addresses[1] = workspaces->addresses[1];
  *handle = workspaces_.add_of(ordinal, std::move(workspaces));
  return kOk;
}

int MemoryCalls::dma_release(DmaWorkspaces* handle) {
  std::shared_ptr<Workspaces> workspaces;
  if (const int code = workspaces_.take(handle, &workspaces); code != kOk) return code;
  for (const std::uint64_t address : workspaces->addresses) {
    if (address != 0) memory_.free(address);
  }
  return kOk;
}

int MemoryCalls::check_range(std::uint64_t address, std::size_t bytes, const char* what) const {
  if (bytes == 0) return kOk;
  std::size_t room = 0;
  if (!memory_.find(address, &room))
    return fail(kInvalidParameter, format("%s %s: no live allocation holds that address", what, hex(address).c_str()));
  if (bytes > room) {
    return fail(kInvalidParameter, format("%s %s: %zu bytes reach past the allocation, which ends %zu bytes from there",
                                          what, hex(address).c_str(), bytes, room));
  }
  return kOk;
}

int MemoryCalls::check_access(std::uint64_t address, std::size_t bytes, const char* what) const {
  int ordinal = 0;
  if (const int code = devices_.context(&ordinal); code != kOk) return code;
  return check_range(address, bytes, what);
}

std::size_t MemoryCalls::end_generation(int ordinal) {
  std::size_t left = workspaces_.take_all(ordinal).size() + memory_.free_all(ordinal);
  const std::lock_guard lock(mutex_);
  left += std::erase_if(mappings_, [&](const auto& mapping) { return mapping.second == ordinal; });
  return left;
}

void MemoryCalls::leave_behind(int ordinal) { memory_.leave_behind(ordinal); }

void MemoryCalls::count(SoftCensus* census) const {
  census->allocations = memory_.count();
  census->bytes = memory_.total();
  census->workspaces = workspaces_.size();
  const std::lock_guard lock(mutex_);
  census->mappings = mappings_.size();
}

}  // namespace simpler::driver
