// callable_blob(): a ChipCallable block made of an orchestration and kernels, as the tool-chain writes it.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "abi/chip_callable.h"

namespace simpler::test {

struct CallableParts {
  std::string orchestration = {};  // code
  std::string entry = "entry";
  std::string config = {};
  std::vector<abi::Direction> signature = {};
  std::vector<std::pair<std::int32_t, std::string>> kernels = {};  // func_id, code
};

// Words, so that the block is aligned; bytes of it in *bytes.
inline std::vector<std::uint64_t> callable_blob(const CallableParts& parts, std::size_t* bytes) {
  const auto aligned = [](std::size_t n) {
    return (n + abi::kCallableAlignment - 1) / abi::kCallableAlignment * abi::kCallableAlignment;
  };
  std::size_t storage = parts.orchestration.size();
  for (const auto& [id, code] : parts.kernels) storage = aligned(storage) + abi::kCoreCodeOffset + code.size();
  *bytes = sizeof(abi::ChipCallable) + storage;
  std::vector<std::uint64_t> words((*bytes + 15) / 16 * 2, 0);
  auto& chip = *reinterpret_cast<abi::ChipCallable*>(words.data());
  char* at = reinterpret_cast<char*>(words.data()) + sizeof(abi::ChipCallable);
  chip.sig_count = static_cast<std::int32_t>(parts.signature.size());
  for (std::size_t i = 0; i < parts.signature.size(); ++i)
    chip.signature[i] = static_cast<std::int32_t>(parts.signature[i]);
  chip.binary_size = static_cast<std::uint32_t>(parts.orchestration.size());
  std::strcpy(chip.func_name, parts.entry.c_str());
  chip.func_name_len = static_cast<std::uint32_t>(parts.entry.size());
  std::strcpy(chip.config_name, parts.config.c_str());
  chip.config_name_len = static_cast<std::uint32_t>(parts.config.size());
  chip.child_count = static_cast<std::int32_t>(parts.kernels.size());
  std::memcpy(at, parts.orchestration.data(), parts.orchestration.size());
  std::size_t offset = parts.orchestration.size();
  for (std::size_t i = 0; i < parts.kernels.size(); ++i) {
    offset = aligned(offset);
    chip.child_func_ids[i] = parts.kernels[i].first;
    chip.child_offsets[i] = static_cast<std::uint32_t>(offset);
    auto& core = *reinterpret_cast<abi::CoreCallable*>(at + offset);
    core.binary_size = static_cast<std::uint32_t>(parts.kernels[i].second.size());
    std::memcpy(at + offset + abi::kCoreCodeOffset, parts.kernels[i].second.data(), parts.kernels[i].second.size());
    offset += abi::kCoreCodeOffset + parts.kernels[i].second.size();
  }
  return words;
}

}  // namespace simpler::test
