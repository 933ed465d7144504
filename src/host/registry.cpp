#include "host/registry.h"

#include <cstring>

#include "base/hash.h"

namespace simpler::host {
namespace {

// Forgets entries whose object is gone.
template <typename Map> void sweep(Map& map) {
  for (auto entry = map.begin(); entry != map.end();) {
    entry = entry->second.expired() ? map.erase(entry) : std::next(entry);
  }
}

}  // namespace

Status Registry::load(const void* blob, std::size_t bytes, std::shared_ptr<Callable>* callable) {
  const std::uint64_t hash = fnv1a(blob, bytes);
  sweep(by_content_);
  sweep(kernels_by_code_);
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
  if (Status status = fresh->upload.grow(driver_, bytes); !status.ok()) return status;
  if (const int code = driver_.copy_to_device(driver_.self, fresh->upload.address(), blob, bytes);
      code != driver::kOk) {
    return fail(ErrorKind::kDevice,
                format("upload of %zu bytes of code: %s (code %d)", bytes, driver_.recent_error(driver_.self), code));
  }
  if (Status status = load_kernels(fresh.get()); !status.ok()) return status;
  by_content_.emplace(hash, fresh);
  *callable = std::move(fresh);
  return Status();
}

Status Registry::load_kernels(Callable* callable) {
  std::vector<std::uint64_t> table(abi::kMaxKernels, 0);
  const abi::ChipCallable& header = callable->header();
  for (int i = 0; i < header.child_count; ++i) {
    std::shared_ptr<KernelCode> kernel;
    if (Status status = load_kernel(*callable, i, &kernel); !status.ok()) return status;
    table[static_cast<std::size_t>(header.child_func_ids[i])] = kernel->entry;
    callable->kernels.push_back(std::move(kernel));
  }
  const std::size_t bytes = table.size() * sizeof table[0];
  if (Status status = callable->kernel_table.grow(driver_, bytes); !status.ok()) return status;
  if (const int code = driver_.copy_to_device(driver_.self, callable->kernel_table.address(), table.data(), bytes);
      code != driver::kOk) {
    return fail(ErrorKind::kDevice,
                format("upload of the kernel table: %s (code %d)", driver_.recent_error(driver_.self), code));
  }
  return Status();
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
  auto fresh = std::make_shared<KernelCode>(driver_);
  const std::uint64_t offset =
      static_cast<std::uint64_t>(reinterpret_cast<const char*>(core.code()) - callable.bytes.data());
  const std::string label =
      format("simpler-kernel-%d-%016llx", func_id, static_cast<unsigned long long>(fnv1a(code.data(), code.size())));
  if (const int rc = driver_.child_code_resolve(driver_.self, callable.upload.address() + offset, core.binary_size,
                                                label.c_str(), &fresh->entry, &fresh->code);
      rc != driver::kOk) {
    return fail(ErrorKind::kDevice, format("kernel with func_id %d: %s", func_id, driver_.recent_error(driver_.self)));
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
