#include "host/registry.h"

#include <cstring>

#include "base/hash.h"

namespace simpler::host {
namespace {

using driver::Driver;

// Forgets entries whose object is gone.
template <typename Map> void sweep(Map& map) {
  for (auto entry = map.begin(); entry != map.end();) {
    entry = entry->second.expired() ? map.erase(entry) : std::next(entry);
  }
}

}  // namespace

Status Registry::write(std::uint64_t address, const void* bytes, std::size_t count) {
  return device_.run("copy_to_device", &Driver::copy_to_device, address, bytes, count);
}

Status Registry::load(const void* blob, std::size_t bytes, std::shared_ptr<Callable>* callable, bool* uploaded) {
  const std::uint64_t hash = fnv1a(blob, bytes);
  sweep(by_content_);
  sweep(kernels_by_code_);
  *uploaded = false;
  for (auto [entry, last] = by_content_.equal_range(hash); entry != last; ++entry) {
    std::shared_ptr<Callable> known = entry->second.lock();
    if (known->bytes.size() == bytes && std::memcmp(known->bytes.data(), blob, bytes) == 0) {
      *callable = std::move(known);
      return Status();
    }
  }
  auto fresh = std::make_shared<Callable>();
  fresh->hash = hash;
  fresh->bytes.assign(static_cast<const char*>(blob), bytes);
  if (Status status = fresh->upload.grow(allocator_, bytes, abi::kCallableAlignment); !status.ok()) return status;
  if (Status status = write(fresh->upload.address(), blob, bytes); !status.ok()) return status;
  if (Status status = load_kernels(fresh.get()); !status.ok()) return status;
  by_content_.emplace(hash, fresh);
  *callable = std::move(fresh);
  *uploaded = true;
  return Status();
}

Status Registry::load_kernels(Callable* callable) {
  std::vector<std::uint64_t> table(abi::kMaxKernels, 0);
  const abi::ChipCallable& header = callable->header();
  for (int i = 0; i < header.child_count; ++i) {
    std::shared_ptr<KernelCode> kernel;
    if (Status status = load_kernel(*callable, i, &kernel); !status.ok()) return status;
    table[static_cast<std::size_t>(header.child_func_ids[i])] = kernel->entry;
    const std::uint64_t child = callable->upload.address() + sizeof(abi::ChipCallable) + header.child_offsets[i];
    if (Status status = write(child + offsetof(abi::CoreCallable, resolved_addr), &kernel->entry, sizeof kernel->entry);
        !status.ok())
      return status;
    callable->kernels.push_back(std::move(kernel));
  }
  const std::size_t bytes = table.size() * sizeof table[0];
  if (Status status = callable->kernel_table.grow(allocator_, bytes); !status.ok()) return status;
  return write(callable->kernel_table.address(), table.data(), bytes);
}

Status Registry::load_kernel(const Callable& callable, int child, std::shared_ptr<KernelCode>* kernel) {
  const abi::ChipCallable& header = callable.header();
  const abi::CoreCallable& core = *header.child(child);
  const std::int32_t func_id = header.child_func_ids[child];
  if (func_id < 0 || func_id >= abi::kMaxKernels) {
    return fail(ErrorKind::kValue,
                format("kernel %d has func_id %d; ids lie in 0..%d", child, func_id, abi::kMaxKernels - 1));
  }
  std::string code(reinterpret_cast<const char*>(core.code()), core.binary_size);
  std::weak_ptr<KernelCode>& known = kernels_by_code_[code];
  *kernel = known.lock();
  if (*kernel != nullptr) return Status();
  auto fresh = std::make_shared<KernelCode>();
  fresh->code = OwnedCode(device_);
  const std::uint64_t offset =
      static_cast<std::uint64_t>(reinterpret_cast<const char*>(core.code()) - callable.bytes.data());
  const std::string label =
      format("simpler-kernel-%d-%016llx", func_id, static_cast<unsigned long long>(fnv1a(code.data(), code.size())));
  const std::string what = format("kernel with func_id %d", func_id);
  if (Status status = device_.run(what.c_str(), &Driver::child_code_resolve, callable.upload.address() + offset,
                                  core.binary_size, label.c_str(), &fresh->entry, fresh->code.receive());
      !status.ok()) {
    *fresh->code.receive() = nullptr;
    return status;
  }
  known = fresh;
  *kernel = std::move(fresh);
  return Status();
}

void Registry::clear() {
  for (auto& slot : slots_) slot.reset();
  by_content_.clear();
  kernels_by_code_.clear();
}

}  // namespace simpler::host
