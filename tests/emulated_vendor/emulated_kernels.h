// EmulatedKernels: makes kernels callable that are named by their address in device memory.
//
// What      A board calls code where it lies. Here a shared object lies there: it is loaded when a run that names it is
//           launched, and the run's table of kernels is replaced by one of entries that can be called. What is loaded is
//           dropped when its memory is freed, allocated anew or written.
// Threads   Any; one lock. Memory that a run uses is not freed before the run has ended: the caller's business.
#pragma once
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "abi/run_image.h"
#include "base/status.h"
#include "driver/driver.h"

namespace simpler::test {

// Bytes of the ELF file at an address with so much room; 0: it is none.
inline std::size_t elf_bytes(std::uint64_t address, std::size_t room) {
  if (room < sizeof(Elf64_Ehdr)) return 0;
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(address);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  std::size_t end = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(address + header.e_phoff);
  if (header.e_phoff + std::size_t{header.e_phnum} * sizeof(Elf64_Phdr) > room) return 0;
  for (int i = 0; i < header.e_phnum; ++i)
    end = std::max<std::size_t>(end, segments[i].p_offset + segments[i].p_filesz);
  return end <= room ? end : 0;
}

class EmulatedKernels {
 public:
  explicit EmulatedKernels(const driver::Driver& driver) : driver_(driver) {}

  // What was known of that memory went with a reset of its device.
  void note_allocation(std::uint64_t address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    forget(address, bytes);
    allocations_.erase(allocations_.lower_bound(address), allocations_.lower_bound(address + bytes));
    allocations_[address] = bytes;
  }
  void note_free(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return;
    forget(address, found->second);
    allocations_.erase(found);
  }
  void note_write(std::uint64_t address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    forget(address, bytes);
  }
  // Makes the run that is described at `run` callable.
  int prepare(std::uint64_t run) {
    auto& image = *reinterpret_cast<abi::RunImage*>(run);
    const std::lock_guard lock(mutex_);
    if (image.kernel_table == 0) return driver::kOk;
    for (const auto& [address, table] : tables_) {
      if (reinterpret_cast<std::uint64_t>(table.entries.data()) == image.kernel_table) return driver::kOk;
    }
    const auto* const given = reinterpret_cast<const std::uint64_t*>(image.kernel_table);
    const auto known = tables_.find(image.kernel_table);
    if (known == tables_.end()) {
      Table table{{given, given + abi::kMaxKernels}, std::vector<std::uint64_t>(abi::kMaxKernels, 0)};
      for (std::size_t i = 0; i < table.entries.size(); ++i) {
        if (given[i] == 0) continue;
        if (const int code = load(given[i], &table.entries[i]); code != driver::kOk) return code;
      }
      image.kernel_table = reinterpret_cast<std::uint64_t>(
          tables_.emplace(image.kernel_table, std::move(table)).first->second.entries.data());
    } else {
      image.kernel_table = reinterpret_cast<std::uint64_t>(known->second.entries.data());
    }
    return driver::kOk;
  }

 private:
  struct Code {
    driver::ChildCode* code = nullptr;
    std::uint64_t entry = 0;
  };
  struct Table {
    std::vector<std::uint64_t> addresses, entries;  // of kernels, by func id
  };
  int load(std::uint64_t address, std::uint64_t* entry) {
    const auto known = codes_.find(address);
    if (known != codes_.end()) {
      *entry = known->second.entry;
      return driver::kOk;
    }
    const auto after = allocations_.upper_bound(address);
    const auto block = after == allocations_.begin() ? allocations_.end() : std::prev(after);
    const std::uint64_t end = block == allocations_.end() ? 0 : block->first + block->second;
    const std::string label = format("emulated-kernel-%llx", static_cast<unsigned long long>(address));
    Code code;
    const int result =
        driver_.child_code_resolve(driver_.self, address, address < end ? elf_bytes(address, end - address) : 0,
                                   label.c_str(), &code.entry, &code.code);
    if (result != driver::kOk) return result;
    *entry = code.entry;
    codes_.emplace(address, code);
    return driver::kOk;
  }
  // What lay there is no code or table any more.
  void forget(std::uint64_t address, std::size_t bytes) {
    tables_.erase(tables_.lower_bound(address), tables_.lower_bound(address + bytes));
    for (auto code = codes_.lower_bound(address); code != codes_.end() && code->first < address + bytes;) {
      std::erase_if(tables_, [&](const auto& table) {
        const std::vector<std::uint64_t>& named = table.second.addresses;
        return std::find(named.begin(), named.end(), code->first) != named.end();
      });
      static_cast<void>(driver_.child_code_release(driver_.self, code->second.code));
      code = codes_.erase(code);
    }
  }

  const driver::Driver& driver_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::size_t> allocations_;
  std::map<std::uint64_t, Code> codes_;
  std::map<std::uint64_t, Table> tables_;  // by their address on the device
};

}  // namespace simpler::test
