// Element types of tensors, and the packing of scalars into the 64-bit slots of an argument list.
// C++17, no library beyond <cstdint>: kernels include it too.
#pragma once
#include <cstdint>
#include <type_traits>

#include "common/core_qualifiers.h"

// Numbers are part of the descriptor layout (tensor.h) and of the Python interface.
enum class DataType : uint8_t {
  FLOAT32 = 0,
  FLOAT16 = 1,
  INT32 = 2,
  INT16 = 3,
  INT8 = 4,
  UINT8 = 5,
  BFLOAT16 = 6,
  INT64 = 7,
  UINT64 = 8,
  UINT16 = 9,
  UINT32 = 10,
  BOOL = 11,
  FP8E4M3FN = 12,
  FP8E8M0 = 13,
  FP4E2M1 = 14,  // one byte holds two values; counted as one element
  DATA_TYPE_NUM = 15,
};

// Bytes of one element; 0 for a value that names no type.
inline constexpr uint64_t get_element_size(DataType type) {
  constexpr uint8_t kBytes[] = {4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1, 1, 1, 1};
  return type < DataType::DATA_TYPE_NUM ? kBytes[static_cast<uint8_t>(type)] : 0;
}

// The enumerator's spelling; "UNKNOWN" for a value that names no type.
inline const char* get_dtype_name(DataType type) {
  constexpr const char* kNames[] = {"FLOAT32", "FLOAT16",  "INT32",     "INT16",   "INT8",
                                    "UINT8",   "BFLOAT16", "INT64",     "UINT64",  "UINT16",
                                    "UINT32",  "BOOL",     "FP8E4M3FN", "FP8E8M0", "FP4E2M1"};
  return type < DataType::DATA_TYPE_NUM ? kNames[static_cast<uint8_t>(type)] : "UNKNOWN";
}

// The bits of a value, zero-extended to a slot; signed values are zero-extended too: int32 -1 becomes 0x00000000FFFFFFFF.
template <typename T> inline __aicore__ uint64_t to_u64(T value) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8,
                "a scalar slot holds at most 8 trivially copyable bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T> inline __aicore__ T from_u64(uint64_t bits) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8,
                "a scalar slot holds at most 8 trivially copyable bytes");
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

// Arithmetic and enum values may be scalar arguments.
template <typename T> inline constexpr bool is_supported_scalar_arg_v =
    std::is_arithmetic_v<std::remove_cv_t<std::remove_reference_t<T>>> ||
    std::is_enum_v<std::remove_cv_t<std::remove_reference_t<T>>>;

// The DataType that tools show for a C++ scalar. double counts as FLOAT32; what has no type of its own as UINT64.
template <typename T> constexpr uint8_t dtype_of() {
  using V = std::remove_cv_t<std::remove_reference_t<T>>;
  DataType type = DataType::UINT64;
  if constexpr (std::is_enum_v<V>) {
    return dtype_of<std::underlying_type_t<V>>();
  } else if constexpr (std::is_same_v<V, bool>) {
    type = DataType::BOOL;
  } else if constexpr (std::is_floating_point_v<V>) {
    type = DataType::FLOAT32;
  } else if constexpr (std::is_integral_v<V>) {
    constexpr DataType kSigned[] = {DataType::INT8, DataType::INT16, DataType::INT32, DataType::INT64};
    constexpr DataType kUnsigned[] = {DataType::UINT8, DataType::UINT16, DataType::UINT32, DataType::UINT64};
    constexpr int kLog2 = sizeof(V) == 1 ? 0 : sizeof(V) == 2 ? 1 : sizeof(V) == 4 ? 2 : 3;
    type = std::is_signed_v<V> ? kSigned[kLog2] : kUnsigned[kLog2];
  }
  return static_cast<uint8_t>(type);
}
