#include "host/arenas.h"

#include "base/log.h"

namespace simpler::host {

using driver::Driver;

bool PrebuiltImage::lookup(int bank, std::uint64_t hash, std::string_view key, View* view) const {
  if (bank != 0 || !valid_ || hash != hash_ || key != key_ || view == nullptr) return false;
  *view = view_;
  view->image = image_;
  return true;
}

void PrebuiltImage::mark(int bank, std::uint64_t hash, std::string_view key, const View& view) {
  if (bank != 0) return;
  valid_ = false;  // until the copies are made
  key_ = key;
  image_ = view.image;
  view_ = view;
  hash_ = hash;
  valid_ = true;
}

Status Arenas::setup(int bank, const Sizes& sizes) {
  if (bank < 0 || bank >= kBanks)
    return fail(ErrorKind::kIndex, format("arena bank %d is outside 0..%d", bank, kBanks - 1));
  auto& regions = banks_[static_cast<std::size_t>(bank)];
  for (std::size_t i = 0; i < regions.size(); ++i) {
    DeviceBlock& region = regions[i];
    const bool give_back = sizes[i] == 0 && region.bytes() > 0;
    if (!give_back && sizes[i] <= region.bytes()) continue;
    if (bank == 0) prebuilt_.clear();
    Status status = region.release();
    if (status.ok()) status = region.grow(allocator_, sizes[i], kAlignment);
    if (status.ok()) continue;
    for (DeviceBlock& each : regions) static_cast<void>(each.release());
    return status;
  }
  return Status();
}

bool Arenas::fits(int bank, const Sizes& sizes) const {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t have = bytes(bank, static_cast<Region>(i));
    if (sizes[i] > have || (sizes[i] == 0 && have > 0)) return false;
  }
  return true;
}

std::uint64_t Arenas::base(int bank, Region region) const {
  return bank < 0 || bank >= kBanks ? 0 : banks_[static_cast<std::size_t>(bank)][region].address();
}
std::size_t Arenas::bytes(int bank, Region region) const {
  return bank < 0 || bank >= kBanks ? 0 : banks_[static_cast<std::size_t>(bank)][region].bytes();
}

void Arenas::release() {
  prebuilt_.clear();
  for (auto& bank : banks_) {
    for (DeviceBlock& region : bank) static_cast<void>(region.release());
  }
}

std::uint64_t GraphBuffers::acquire(int slot, std::uint64_t key, std::size_t bytes, std::size_t alignment) {
  if (slot < 0 || slot >= kSlots || bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return 0;
  auto& buffers = buffers_[static_cast<std::size_t>(slot)];
  const auto found = buffers.find(key);
  if (found != buffers.end() && found->second.bytes() >= bytes && found->second.address() % alignment == 0)
    return found->second.address();
  DeviceBlock fresh;
  Status status = fresh.grow(allocator_, bytes, alignment);
  if (status.ok()) status = allocator_.device().run("fill", &Driver::fill, fresh.address(), 0, bytes);
  if (!status.ok()) {
    log::host(log::Level::kWarn, __func__, "buffer of %zu bytes for graph %llx: %s", bytes,
              static_cast<unsigned long long>(key), status.message().c_str());
    return 0;
  }
  const std::uint64_t address = fresh.address();
  buffers[key] = std::move(fresh);  // the old one goes with `fresh`
  return address;
}

void GraphBuffers::release() {
  for (auto& buffers : buffers_) buffers.clear();
}

}  // namespace simpler::host
