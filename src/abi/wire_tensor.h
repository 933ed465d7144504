// Buffer identity, buffer descriptor and tensor as they travel between processes.
//
// What      A Tensor names memory without an address: which backing (identity and how to reach it), where the view
//           starts, its shape and element strides. Whoever runs the task resolves it to a ChipTensor.
// Layout    Little endian, natural alignment, asserted below. Bytes that are not used are zero.
// Trust     Bytes from outside go through check_buffer_descriptor() and check_tensor().
// Threads   Values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi/verdict.h"

namespace simpler::abi {

constexpr int kOwnerInstanceIdBytes = 8;
constexpr int kBufferBodyBytes = 32;
constexpr int kWireMaxDims = 5;
constexpr std::uint16_t kBufferMagic = 0x5342;  // "BS" in memory

enum class Space : std::uint8_t { kHost = 0, kDevice = 1 };
enum class Access : std::uint8_t { kRead = 0, kWrite = 1, kReadWrite = 2 };

// How a consumer reaches the memory. Numbers are frozen.
enum class Backend : std::uint8_t {
  kForkShm = 0,        // shared mapping, made before the children were forked: the same address everywhere
  kPosixShm = 1,       // named shared memory
  kVmmWindow = 2,      // device window of a communication domain
  kRemoteSidecar = 3,  // on another host; resolved by the session
  kDeviceMalloc = 4,   // device memory of one chip
  kForkCow = 5,        // private memory from before the fork: readable copies
};
constexpr int kBackendCount = 6;

struct CanonicalIdentity {
  std::uint8_t owner_instance_id[kOwnerInstanceIdBytes];  // random; one per worker process incarnation
  std::uint64_t buffer_id;                                // counted by the owner
  std::uint32_t generation;                               // from 1
  std::uint8_t pad[12];
};
static_assert(std::is_trivially_copyable_v<CanonicalIdentity> && sizeof(CanonicalIdentity) == 32);
static_assert(offsetof(CanonicalIdentity, owner_instance_id) == 0);
static_assert(offsetof(CanonicalIdentity, buffer_id) == 8);
static_assert(offsetof(CanonicalIdentity, generation) == 16);

bool operator==(const CanonicalIdentity& a, const CanonicalIdentity& b);
inline bool operator!=(const CanonicalIdentity& a, const CanonicalIdentity& b) { return !(a == b); }

struct BufferDescriptor {
  std::uint16_t magic;
  std::uint8_t address_space;  // Space
  std::uint8_t access;         // Access
  std::uint8_t backend_kind;   // Backend
  std::uint8_t pad[3];
  CanonicalIdentity identity;
  std::uint64_t nbytes;
  std::uint32_t owner_worker_path_id;
  std::uint16_t body_len;
  std::uint8_t pad2[2];
  std::uint8_t body[kBufferBodyBytes];  // address backends: 8 bytes, little endian; kPosixShm: the name

  bool has_address() const {
    const auto backend = static_cast<Backend>(backend_kind);
    return backend != Backend::kPosixShm && backend != Backend::kRemoteSidecar;
  }
  std::uint64_t address() const;  // has_address() only
};
static_assert(std::is_trivially_copyable_v<BufferDescriptor> && sizeof(BufferDescriptor) == 88);
static_assert(offsetof(BufferDescriptor, magic) == 0);
static_assert(offsetof(BufferDescriptor, address_space) == 2);
static_assert(offsetof(BufferDescriptor, access) == 3);
static_assert(offsetof(BufferDescriptor, backend_kind) == 4);
static_assert(offsetof(BufferDescriptor, identity) == 8);
static_assert(offsetof(BufferDescriptor, nbytes) == 40);
static_assert(offsetof(BufferDescriptor, owner_worker_path_id) == 48);
static_assert(offsetof(BufferDescriptor, body_len) == 52);
static_assert(offsetof(BufferDescriptor, body) == 56);

struct Tensor {
  BufferDescriptor buffer;
  std::uint64_t byte_offset;            // from the start of the backing
  std::uint32_t ndims;                  // 1..5
  std::uint32_t shapes[kWireMaxDims];   // elements
  std::uint32_t strides[kWireMaxDims];  // elements, >= 1
  std::uint8_t dtype;                   // DataType
  std::uint8_t pad[3];

  std::uint64_t extent_elements() const;  // first to past the last element; saturates at UINT64_MAX
};
static_assert(std::is_trivially_copyable_v<Tensor> && sizeof(Tensor) == 144);
static_assert(offsetof(Tensor, buffer) == 0);
static_assert(offsetof(Tensor, byte_offset) == 88);
static_assert(offsetof(Tensor, ndims) == 96);
static_assert(offsetof(Tensor, shapes) == 100);
static_assert(offsetof(Tensor, strides) == 120);
static_assert(offsetof(Tensor, dtype) == 140);

// Arguments of one task as bytes: this header, then the tensors, then the scalars (uint64 each).
struct ArgsBlobHeader {
  std::int32_t tensor_count;
  std::int32_t scalar_count;
};
static_assert(sizeof(ArgsBlobHeader) == 8);

Verdict check_buffer_descriptor(const BufferDescriptor& descriptor);
Verdict check_tensor(const Tensor& tensor);  // includes its descriptor

const char* backend_name(std::uint8_t backend);  // "UNKNOWN" for a number that names none

}  // namespace simpler::abi
