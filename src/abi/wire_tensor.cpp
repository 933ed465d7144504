#include "abi/wire_tensor.h"

#include <cinttypes>
#include <cstring>

#include "data_type.h"

namespace simpler::abi {
namespace {

struct BackendRow {
  const char* name;
  bool host, device;  // address spaces that it may have
};
constexpr BackendRow kBackends[kBackendCount] = {
    {"FORK_SHM", true, false},      {"POSIX_SHM", true, false},     {"VMM_WINDOW", false, true},
    {"REMOTE_SIDECAR", true, true}, {"DEVICE_MALLOC", false, true}, {"FORK_COW", true, false},
};

template <std::size_t N> bool all_zero(const std::uint8_t (&bytes)[N], std::size_t from = 0) {
  for (std::size_t i = from; i < N; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

Verdict check_body(const BufferDescriptor& d) {
  const char* name = kBackends[d.backend_kind].name;
  switch (static_cast<Backend>(d.backend_kind)) {
    case Backend::kRemoteSidecar:
      if (d.body_len != 0) return Verdict::invalid("body: %u bytes; %s takes none", d.body_len, name);
      break;
    case Backend::kPosixShm:
      if (d.body_len == 0) return Verdict::invalid("body: empty; %s needs the name of its shared memory", name);
      for (int i = 0; i < d.body_len; ++i) {
        if (d.body[i] < 0x21 || d.body[i] > 0x7E || d.body[i] == '/') {
          return Verdict::invalid("body: byte %d of the %s name is 0x%02x; allowed: printable ASCII without '/'", i,
                                  name, d.body[i]);
        }
      }
      break;
    default:
      if (d.body_len != 8)
        return Verdict::invalid("body: %u bytes; %s needs an address of exactly 8", d.body_len, name);
      if (d.address() == 0) return Verdict::invalid("body: the address of a %s backing is 0", name);
  }
  if (!all_zero(d.body, d.body_len)) return Verdict::invalid("body: bytes past body_len %u are not zero", d.body_len);
  return Verdict::valid();
}

}  // namespace

const char* backend_name(std::uint8_t backend) { return backend < kBackendCount ? kBackends[backend].name : "UNKNOWN"; }

bool operator==(const CanonicalIdentity& a, const CanonicalIdentity& b) {
  return std::memcmp(a.owner_instance_id, b.owner_instance_id, kOwnerInstanceIdBytes) == 0 &&
         a.buffer_id == b.buffer_id && a.generation == b.generation;
}

std::uint64_t BufferDescriptor::address() const {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | body[i];
  return value;
}

std::uint64_t Tensor::extent_elements() const {
  std::uint64_t extent = 1;
  for (std::uint32_t d = 0; d < ndims && d < static_cast<std::uint32_t>(kWireMaxDims); ++d) {
    if (shapes[d] == 0) return 0;
    extent = saturating_add(extent, saturating_multiply(shapes[d] - 1, strides[d]));
  }
  return extent;
}

Verdict check_buffer_descriptor(const BufferDescriptor& d) {
  if (d.magic != kBufferMagic) return Verdict::invalid("magic: 0x%04x; expected 0x%04x", d.magic, kBufferMagic);
  if (d.backend_kind >= kBackendCount) {
    return Verdict::invalid("backend_kind: %u; allowed: 0 to %d", d.backend_kind, kBackendCount - 1);
  }
  if (d.address_space > static_cast<std::uint8_t>(Space::kDevice)) {
    return Verdict::invalid("address_space: %u; allowed: 0 HOST, 1 DEVICE", d.address_space);
  }
  if (d.access > static_cast<std::uint8_t>(Access::kReadWrite)) {
    return Verdict::invalid("access: %u; allowed: 0 READ, 1 WRITE, 2 READWRITE", d.access);
  }
  if (d.identity.generation == 0) return Verdict::invalid("generation: 0; generations count from 1");
  if (d.body_len > kBufferBodyBytes) {
    return Verdict::invalid("body: %u bytes; allowed: at most %d", d.body_len, kBufferBodyBytes);
  }
  const BackendRow& row = kBackends[d.backend_kind];
  const bool device = d.address_space == static_cast<std::uint8_t>(Space::kDevice);
  if (device ? !row.device : !row.host) {
    return Verdict::invalid("address_space: %s memory is never in %s space", row.name, device ? "DEVICE" : "HOST");
  }
  if (static_cast<Backend>(d.backend_kind) == Backend::kForkCow &&
      d.access != static_cast<std::uint8_t>(Access::kRead)) {
    return Verdict::invalid("access: FORK_COW memory is a private copy in each process, so it can only be READ");
  }
  if (!all_zero(d.pad) || !all_zero(d.pad2) || !all_zero(d.identity.pad)) {
    return Verdict::invalid("padding of the descriptor is not zero");
  }
  return check_body(d);
}

Verdict check_tensor(const Tensor& t) {
  if (Verdict v = check_buffer_descriptor(t.buffer); !v.ok()) return v;
  const auto type = static_cast<DataType>(t.dtype);
  const std::uint64_t element = get_element_size(type);
  if (element == 0 || type == DataType::BOOL) return Verdict::invalid("dtype: %u names no element type", t.dtype);
  if (t.ndims < 1 || t.ndims > static_cast<std::uint32_t>(kWireMaxDims)) {
    return Verdict::invalid("ndims: %u; allowed: 1 to %d", t.ndims, kWireMaxDims);
  }
  for (std::uint32_t d = 0; d < static_cast<std::uint32_t>(kWireMaxDims); ++d) {
    if (d >= t.ndims) {
      if (t.shapes[d] != 0 || t.strides[d] != 0) {
        return Verdict::invalid("shapes and strides past dimension %u must be zero", t.ndims);
      }
      continue;
    }
    if (t.shapes[d] == 0) return Verdict::invalid("shapes[%u]: 0; a tensor that crosses processes is never empty", d);
    if (t.strides[d] == 0) return Verdict::invalid("strides[%u]: 0; element strides are at least 1", d);
  }
  if (!all_zero(t.pad)) return Verdict::invalid("padding of the tensor is not zero");
  if (t.byte_offset % element != 0) {
    return Verdict::invalid("byte_offset: %" PRIu64 " is not a multiple of the element size %" PRIu64, t.byte_offset,
                            element);
  }
  const std::uint64_t extent = saturating_multiply(t.extent_elements(), element);
  if (saturating_add(t.byte_offset, extent) > t.buffer.nbytes) {
    return Verdict::invalid("the view needs %" PRIu64 " bytes from byte_offset %" PRIu64
                            ", but the buffer has %" PRIu64,
                            extent, t.byte_offset, t.buffer.nbytes);
  }
  return Verdict::valid();
}

}  // namespace simpler::abi
