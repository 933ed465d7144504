// RecordArena: memory for task records, in chunks that are recycled while they are warm.
//
// What      Records are cut from 64 KiB chunks, one current chunk per ring. A chunk is free again when its last record is;
//           the chunk freed last is used next. A record larger than a chunk gets a span of chunks of its own.
// Threads   The submitter only.
// Limits    Capacity is fixed by reserve(); allocate() answers kNoRecord when it is used up.
// Cost      allocate: an addition and a comparison. Memory is committed when first touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/virtual_memory.h"
#include "graph/task.h"

namespace simpler::graph {

class RecordArena {
 public:
  static constexpr std::size_t kChunkBytes = 64 * 1024;
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 32;  // what a RecordRef can name
  static constexpr int kRings = 4;

  bool reserve(std::size_t bytes) {
    if (bytes > kMaxBytes) bytes = kMaxBytes;
    chunk_count_ = static_cast<std::uint32_t>(bytes / kChunkBytes);
    if (!memory_.reserve(chunk_count_ * kChunkBytes) || !live_.reserve(chunk_count_ * sizeof(std::uint32_t)))
      return false;
    clear();
    return true;
  }

  // Forgets all records; the memory stays warm.
  void clear() {
    for (std::uint32_t c = 0; c < fresh_; ++c) live()[c] = 0;
    free_.clear();
    spans_.clear();
    fresh_ = 0;
    for (Cursor& cursor : cursors_) cursor = Cursor{};
  }

  // `bytes` is a multiple of 64. The record is not initialised.
  RecordRef allocate(int ring, std::size_t bytes) {
    Cursor& cursor = cursors_[ring];
    if (cursor.used + bytes > kChunkBytes || cursor.chunk == kNoChunk) {
      if (bytes > kChunkBytes) return allocate_span(bytes);
      if (!next_chunk(cursor)) return kNoRecord;
    }
    const std::size_t offset = std::size_t{cursor.chunk} * kChunkBytes + cursor.used;
    cursor.used += static_cast<std::uint32_t>(bytes);
    ++live()[cursor.chunk];
    return static_cast<RecordRef>(offset / 8);
  }

  void release(int ring, RecordRef record) {
    const std::uint32_t chunk = static_cast<std::uint32_t>(std::size_t{record} * 8 / kChunkBytes);
    SIMPLER_CHECK(live()[chunk] > 0, "record %u released twice", record);
    if (--live()[chunk] > 0) return;
    Cursor& cursor = cursors_[ring];
    if (cursor.chunk == chunk) {
      cursor.used = 0;  // start over in the same warm lines
    } else {
      recycle(chunk);
    }
  }

  Task* at(RecordRef record) const { return reinterpret_cast<Task*>(memory_.as<char>() + std::size_t{record} * 8); }
  Edge* edges() const { return memory_.as<Edge>(); }
  // The name of a record's i-th edge.
  static constexpr std::uint32_t edge_of(RecordRef record, std::uint32_t i) {
    return record + sizeof(Task) / sizeof(Edge) + i;
  }

 private:
  static constexpr std::uint32_t kNoChunk = 0xFFFFFFFF;
  struct Cursor {
    std::uint32_t chunk = kNoChunk;
    std::uint32_t used = 0;  // bytes
  };
  struct Span {
    std::uint32_t first, count;
  };

  std::uint32_t* live() const { return live_.as<std::uint32_t>(); }

  bool next_chunk(Cursor& cursor) {
    std::uint32_t chunk;
    if (!free_.empty()) {
      chunk = free_.back();
      free_.pop_back();
    } else if (fresh_ < chunk_count_) {
      chunk = fresh_++;
    } else {
      return false;
    }
    cursor = Cursor{chunk, 0};
    return true;
  }

  RecordRef allocate_span(std::size_t bytes) {
    const std::uint32_t count = static_cast<std::uint32_t>((bytes + kChunkBytes - 1) / kChunkBytes);
    for (Span& span : spans_) {
      if (span.count >= count && live()[span.first] == 0) {
        live()[span.first] = 1;
        return static_cast<RecordRef>(std::size_t{span.first} * kChunkBytes / 8);
      }
    }
    if (fresh_ + count > chunk_count_) return kNoRecord;
    const Span span{fresh_, count};
    fresh_ += count;
    spans_.push_back(span);
    live()[span.first] = 1;
    return static_cast<RecordRef>(std::size_t{span.first} * kChunkBytes / 8);
  }

  void recycle(std::uint32_t chunk) {
    for (const Span& span : spans_) {
      if (span.first == chunk) return;  // found again by allocate_span
    }
    free_.push_back(chunk);
  }

  VirtualMemory memory_;
  VirtualMemory live_;  // records per chunk; of a span, at its first chunk
  std::uint32_t chunk_count_ = 0;
  std::uint32_t fresh_ = 0;  // chunks below have been used
  std::vector<std::uint32_t> free_;
  std::vector<Span> spans_;
  Cursor cursors_[kRings];
};

}  // namespace simpler::graph
