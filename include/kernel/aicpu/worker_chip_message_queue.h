// WorkerChipQueueEndpoint: the chip's side of two message queues with its host worker, one in each direction.
//
// What      Messages have an opcode and a payload, which lies in an arena and never wraps; it may be empty. The chip looks
//           at an input message in place (peek) and gives it back (release); it asks for room for an answer (reserve),
//           writes there, and sends it (publish). A full or empty queue is no error: the call answers false.
// Layout    Payload of the region: input ring, output ring, input arena, output arena, each at a multiple of 64. A ring has
//           `depth` slots. Counters: messages sent and taken so far, modulo 2^32, and a word with which each side says that
//           it has given up; see WorkerChipQueueLayout. A message's number (seq) counts from 1.
// Window    Up to MaxInflight input messages, and a STOP, may be held at once and released in any order; their memory goes
//           back to the host in the order in which they came. One output reservation at a time.
// Errors    The first one sticks, the host is told, and every later call answers false; error() keeps it.
// Threads   One: the orchestration's.
#pragma once
#include <deque>

#include "aicpu/worker_chip_orch_endpoint.h"

// What the host passes after the region's six scalars.
struct WorkerChipQueueArgs {
  uint64_t magic_version;  // WORKER_CHIP_QUEUE_MAGIC_VERSION, exactly
  uint64_t depth;          // a power of two
  uint64_t input_arena_bytes;
  uint64_t output_arena_bytes;
  uint64_t payload_bytes;
  uint64_t counter_bytes;
};
static_assert(sizeof(WorkerChipQueueArgs) == 48, "the host passes it as six scalars");

constexpr uint64_t WORKER_CHIP_QUEUE_MAGIC = 0x4C335132;
constexpr uint64_t WORKER_CHIP_QUEUE_MAGIC_VERSION = WORKER_CHIP_QUEUE_MAGIC << 32 | 1u << 16 | 1u;
constexpr uint64_t WORKER_CHIP_QUEUE_MAX_DEPTH = uint64_t{1} << 30;
constexpr uint64_t WORKER_CHIP_QUEUE_COUNTER_BYTES = 384;
constexpr uint64_t WORKER_CHIP_QUEUE_ALIGNMENT = 64;
constexpr size_t WORKER_CHIP_QUEUE_ARGS_SCALAR_COUNT = 6;

enum class WorkerChipQueueOpcode : uint64_t { INVALID = 0, DATA = 1, STOP = 2, ERROR = 3 };

// One message in a ring.
struct WorkerChipQueueDescriptor {
  uint64_t seq;
  uint64_t opcode;
  uint64_t payload_offset;  // from the start of the region's payload
  uint64_t payload_nbytes;
};
static_assert(sizeof(WorkerChipQueueDescriptor) == 32, "host and chip share it");

// Byte offsets: of rings and arenas in the payload, of words among the counters.
struct WorkerChipQueueLayout {
  static constexpr uint64_t kInputTail = 0, kInputHead = 64, kOutputTail = 128, kOutputHead = 192;
  static constexpr uint64_t kWorkerAbort = 256, kChipAbort = 320;
  uint64_t input_ring, output_ring, input_arena, output_arena, payload_bytes;

  static WorkerChipQueueLayout of(uint64_t depth, uint64_t input_arena_bytes, uint64_t output_arena_bytes) {
    const auto aligned = [](uint64_t n) {
      return (n + WORKER_CHIP_QUEUE_ALIGNMENT - 1) / WORKER_CHIP_QUEUE_ALIGNMENT * WORKER_CHIP_QUEUE_ALIGNMENT;
    };
    const uint64_t ring = depth * sizeof(WorkerChipQueueDescriptor);
    const uint64_t arenas = aligned(2 * ring), second = arenas + aligned(input_arena_bytes);
    return {0, ring, arenas, second, second + aligned(output_arena_bytes)};
  }
};

enum class WorkerChipQueueErrorKind : uint32_t {
  NONE = 0,
  BAD_ARGUMENT = 1,
  BAD_DESCRIPTOR = 2,      // of the queue
  INVALID_DESCRIPTOR = 3,  // of a message
  OUT_OF_SPACE = 4,        // more than the arena holds when it is empty
  OWNERSHIP = 5,
  REMOTE_ABORTED = 6,
  ENDPOINT_ERROR = 7,
};
enum class WorkerChipQueueOp : uint32_t {
  NONE = 0,
  INIT = 1,
  TIMEOUT = 2,
  INPUT_TRY_PEEK = 3,
  INPUT_RELEASE = 4,
  OUTPUT_TRY_RESERVE = 5,
  OUTPUT_PUBLISH = 6,
};
inline const char* worker_chip_queue_op_to_string(WorkerChipQueueOp op) {
  switch (op) {
    case WorkerChipQueueOp::NONE: return "none";
    case WorkerChipQueueOp::INIT: return "init";
    case WorkerChipQueueOp::TIMEOUT: return "timeout";
    case WorkerChipQueueOp::INPUT_TRY_PEEK: return "input_try_peek";
    case WorkerChipQueueOp::INPUT_RELEASE: return "input_release";
    case WorkerChipQueueOp::OUTPUT_TRY_RESERVE: return "output_try_reserve";
    case WorkerChipQueueOp::OUTPUT_PUBLISH: return "output_publish";
  }
  return "unknown";
}

struct WorkerChipQueueError {
  WorkerChipQueueErrorKind kind = WorkerChipQueueErrorKind::NONE;
  WorkerChipQueueOp op = WorkerChipQueueOp::NONE;
  uint64_t region_id = 0;
  uint64_t seq = 0;  // of the message, if it is about one
  char message[256] = "";
};

// An input message; its payload stays until it is released.
struct WorkerChipQueueInputHandle {
  uint64_t seq;
  WorkerChipQueueOpcode opcode;
  uint64_t payload_offset;
  uint64_t payload_nbytes;
  WorkerChipOrchPayloadView payload;
};
// Room for an output message.
struct WorkerChipQueueOutputReservation {
  uint64_t seq;
  uint64_t payload_offset;
  uint64_t payload_nbytes;
  WorkerChipOrchPayloadView payload;
  bool valid;
};

template <uint64_t MaxInflight = 1> class WorkerChipQueueEndpoint {
  static_assert(MaxInflight >= 1, "at least one input message can be held");
  using Op = WorkerChipQueueOp;
  using Kind = WorkerChipQueueErrorKind;
  using Layout = WorkerChipQueueLayout;
  using Descriptor = WorkerChipQueueDescriptor;

 public:
  class Input {
   public:
    // The next message that nobody has looked at yet. False if none came within the limit.
    bool peek(uint64_t limit_ns, WorkerChipQueueInputHandle& handle) {
      if (queue_.good() &&
          queue_.window_is_full()) {  // then only a STOP can be looked at, and nobody else can change that
        if (try_peek(handle) || !queue_.good()) return queue_.good();
        return queue_.fail(Kind::OWNERSHIP, Op::INPUT_TRY_PEEK, 0, "%zu messages are held: release one first",
                           queue_.held_.size());
      }
      return queue_.wait(limit_ns, [&] { return try_peek(handle); });
    }
    bool try_peek(WorkerChipQueueInputHandle& handle) { return queue_.try_peek(handle); }
    bool release(const WorkerChipQueueInputHandle& handle) { return queue_.release(handle); }
    // Whether the STOP and everything before it was released.
    bool drained() const { return queue_.stopped_ && queue_.held_.empty(); }

   private:
    friend class WorkerChipQueueEndpoint;
    explicit Input(WorkerChipQueueEndpoint& queue) : queue_(queue) {}
    WorkerChipQueueEndpoint& queue_;
  };
  class Output {
   public:
    // False if there was no room within the limit.
    bool reserve(uint64_t bytes, uint64_t limit_ns, WorkerChipQueueOutputReservation& reservation) {
      return queue_.wait(limit_ns, [&] { return try_reserve(bytes, reservation); });
    }
    bool try_reserve(uint64_t bytes, WorkerChipQueueOutputReservation& reservation) {
      return queue_.try_reserve(bytes, reservation);
    }
    // DATA, or ERROR for an answer that says that something went wrong.
    bool publish(const WorkerChipQueueOutputReservation& reservation, WorkerChipQueueOpcode opcode) {
      return queue_.publish(reservation, opcode);
    }

   private:
    friend class WorkerChipQueueEndpoint;
    explicit Output(WorkerChipQueueEndpoint& queue) : queue_(queue) {}
    WorkerChipQueueEndpoint& queue_;
  };

  WorkerChipQueueEndpoint(const WorkerChipOrchRegionDesc& region, const WorkerChipQueueArgs& args)
      : region_(region), args_(args), input_(*this), output_(*this) {
    if (region_.error().kind != WorkerChipEndpointErrorKind::NONE) {
      fail(Kind::ENDPOINT_ERROR, Op::INIT, 0, "%s", region_.error().message);
      return;
    }
    const bool power = args.depth != 0 && (args.depth & (args.depth - 1)) == 0;
    if (args.magic_version != WORKER_CHIP_QUEUE_MAGIC_VERSION) {
      fail(Kind::BAD_DESCRIPTOR, Op::INIT, 0, "magic and version are 0x%llx, and this side speaks 0x%llx",
           wide(args.magic_version), wide(WORKER_CHIP_QUEUE_MAGIC_VERSION));
    } else if (!power || args.depth > WORKER_CHIP_QUEUE_MAX_DEPTH) {
      fail(Kind::BAD_DESCRIPTOR, Op::INIT, 0, "depth %llu is no power of two up to 2^30", wide(args.depth));
    } else if (args.input_arena_bytes > region.payload_bytes || args.output_arena_bytes > region.payload_bytes) {
      fail(Kind::BAD_DESCRIPTOR, Op::INIT, 0, "arenas of %llu and %llu bytes in a region of %llu",
           wide(args.input_arena_bytes), wide(args.output_arena_bytes), wide(region.payload_bytes));
    } else {
      layout_ = Layout::of(args.depth, args.input_arena_bytes, args.output_arena_bytes);
      if (layout_.payload_bytes > region.payload_bytes || args.payload_bytes > region.payload_bytes ||
          args.payload_bytes < layout_.payload_bytes || args.counter_bytes < WORKER_CHIP_QUEUE_COUNTER_BYTES ||
          args.counter_bytes > region.counter_bytes) {
        fail(Kind::BAD_DESCRIPTOR, Op::INIT, 0,
             "the queue needs %llu bytes of payload and %llu of counters; it was given %llu and %llu, in a region of "
             "%llu and %llu",
             wide(layout_.payload_bytes), wide(WORKER_CHIP_QUEUE_COUNTER_BYTES), wide(args.payload_bytes),
             wide(args.counter_bytes), wide(region.payload_bytes), wide(region.counter_bytes));
      }
    }
  }
  WorkerChipQueueEndpoint(const WorkerChipQueueEndpoint&) = delete;
  WorkerChipQueueEndpoint& operator=(const WorkerChipQueueEndpoint&) = delete;

  Input& input() { return input_; }
  Output& output() { return output_; }
  const WorkerChipQueueError& error() const { return error_; }
  const WorkerChipQueueLayout& layout() const { return layout_; }

  // After a call that answered false: true if it only had to wait for too long and may be tried again.
  bool disambiguate_timeout() { return good() && !remote_gave_up(Op::TIMEOUT); }

 private:
  struct Held {
    uint64_t seq;
    bool stop, released;
  };

  static unsigned long long wide(uint64_t value) { return value; }
  static uint64_t aligned(uint64_t n) {
    return (n + WORKER_CHIP_QUEUE_ALIGNMENT - 1) / WORKER_CHIP_QUEUE_ALIGNMENT * WORKER_CHIP_QUEUE_ALIGNMENT;
  }
  bool good() const { return error_.kind == Kind::NONE; }
  uint64_t word(uint64_t offset) const { return region_.descriptor().counter_base + offset; }
  uint32_t counter(uint64_t offset) const { return static_cast<uint32_t>(simpler_comm::load_counter(word(offset))); }
  void set_counter(uint64_t offset, uint64_t value) {
    simpler_comm::store_counter(word(offset), static_cast<int32_t>(static_cast<uint32_t>(value)));
  }
  Descriptor& slot(uint64_t ring, uint64_t seq) {
    auto* slots = reinterpret_cast<Descriptor*>(region_.descriptor().payload_base + ring);
    return slots[(seq - 1) & (args_.depth - 1)];
  }

  template <typename Try> bool wait(uint64_t limit_ns, Try attempt) {
    if (!good()) return false;
    bool done = false;
    simpler_comm::wait_until(limit_ns, [&] {
      done = attempt();
      return done || !good();
    });
    return done;
  }
  bool remote_gave_up(Op op) {
    if (counter(Layout::kWorkerAbort) == 0) return false;
    fail(Kind::REMOTE_ABORTED, op, 0, "the host has given the queue up");
    return true;
  }

  bool window_is_full() const {
    uint64_t data = 0;
    for (const Held& held : held_) data += held.stop ? 0 : 1;
    return data >= MaxInflight;
  }
  bool try_peek(WorkerChipQueueInputHandle& handle) {
    if (!good() || remote_gave_up(Op::INPUT_TRY_PEEK)) return false;
    const uint64_t seq = peeked_ + 1;
    const uint32_t waiting = counter(Layout::kInputTail) - static_cast<uint32_t>(peeked_);
    if (waiting == 0) return false;
    if (waiting > args_.depth) {
      return fail(Kind::INVALID_DESCRIPTOR, Op::INPUT_TRY_PEEK, seq,
                  "the host's counter says that %u messages wait, and the ring has %llu slots", waiting,
                  wide(args_.depth));
    }
    const Descriptor found = slot(layout_.input_ring, seq);
    const auto opcode = static_cast<WorkerChipQueueOpcode>(found.opcode);
    const bool known = opcode == WorkerChipQueueOpcode::DATA || opcode == WorkerChipQueueOpcode::STOP ||
                       opcode == WorkerChipQueueOpcode::ERROR;
    if (found.seq != seq || !known || found.payload_offset < layout_.input_arena ||
        !simpler_comm::within(found.payload_offset - layout_.input_arena, found.payload_nbytes,
                              args_.input_arena_bytes)) {
      return fail(
          Kind::INVALID_DESCRIPTOR, Op::INPUT_TRY_PEEK, seq,
          "message %llu: its slot says number %llu, opcode %llu, %llu bytes at %llu; the input arena has %llu at "
          "%llu",
          wide(seq), wide(found.seq), wide(found.opcode), wide(found.payload_nbytes), wide(found.payload_offset),
          wide(args_.input_arena_bytes), wide(layout_.input_arena));
    }
    if (window_is_full() && opcode != WorkerChipQueueOpcode::STOP) return false;
    handle = {seq, opcode, found.payload_offset, found.payload_nbytes, {}};
    if (!region_.payload_read(found.payload_offset, found.payload_nbytes, handle.payload)) {
      return fail(Kind::ENDPOINT_ERROR, Op::INPUT_TRY_PEEK, seq, "%s", region_.error().message);
    }
    held_.push_back({seq, opcode == WorkerChipQueueOpcode::STOP, false});
    peeked_ = seq;
    stopped_ = stopped_ || opcode == WorkerChipQueueOpcode::STOP;
    return true;
  }
  bool release(const WorkerChipQueueInputHandle& handle) {
    if (!good()) return false;
    for (Held& held : held_) {
      if (held.seq != handle.seq || held.released) continue;
      held.released = true;
      while (!held_.empty() && held_.front().released) {
        set_counter(Layout::kInputHead, held_.front().seq);
        held_.pop_front();
      }
      return true;
    }
    return fail(Kind::OWNERSHIP, Op::INPUT_RELEASE, handle.seq,
                "message %llu is not held: it was released, or never looked at", wide(handle.seq));
  }

  bool try_reserve(uint64_t bytes, WorkerChipQueueOutputReservation& reservation) {
    reservation.valid = false;
    if (!good() || remote_gave_up(Op::OUTPUT_TRY_RESERVE)) return false;
    const uint64_t seq = published_ + 1;
    if (reserved_) {
      return fail(Kind::OWNERSHIP, Op::OUTPUT_TRY_RESERVE, seq, "message %llu is reserved: publish it first",
                  wide(seq));
    }
    const uint64_t arena = args_.output_arena_bytes, block = bytes > arena ? bytes : aligned(bytes);
    if (block > arena) {
      return fail(Kind::OUT_OF_SPACE, Op::OUTPUT_TRY_RESERVE, seq, "%llu bytes, and the output arena has %llu",
                  wide(bytes), wide(arena));
    }
    const uint32_t left = static_cast<uint32_t>(published_) - counter(Layout::kOutputHead);
    if (left > sent_.size()) {
      return fail(Kind::INVALID_DESCRIPTOR, Op::OUTPUT_TRY_RESERVE, seq,
                  "the host's counter says that %u messages are left, of %zu", left, sent_.size());
    }
    for (; sent_.size() > left; sent_.pop_front()) free_from_ = sent_.front();
    if (sent_.size() >= args_.depth) return false;
    if (sent_.empty()) cursor_ = free_from_ = 0;  // all of it in one piece
    uint64_t begin = cursor_;
    if (arena > 0 && begin % arena + block > arena) begin += arena - begin % arena;
    if (begin + block - free_from_ > arena) return false;
    reserved_ = true;
    reserved_end_ = begin + block;
    const uint64_t offset = layout_.output_arena + (arena > 0 ? begin % arena : 0);
    reservation = {seq, offset, bytes, {region_.descriptor().payload_base + offset, bytes}, true};
    return true;
  }
  bool publish(const WorkerChipQueueOutputReservation& reservation, WorkerChipQueueOpcode opcode) {
    if (!good()) return false;
    const uint64_t seq = published_ + 1;
    if (!reserved_ || !reservation.valid || reservation.seq != seq) {
      return fail(Kind::OWNERSHIP, Op::OUTPUT_PUBLISH, reservation.seq, "message %llu is not reserved",
                  wide(reservation.seq));
    }
    if (opcode != WorkerChipQueueOpcode::DATA && opcode != WorkerChipQueueOpcode::ERROR) {
      return fail(Kind::BAD_ARGUMENT, Op::OUTPUT_PUBLISH, seq, "opcode %llu can not be sent: use DATA (1) or ERROR (3)",
                  wide(static_cast<uint64_t>(opcode)));
    }
    cache_flush_range(reinterpret_cast<const void*>(reservation.payload.gm_addr), reservation.payload_nbytes);
    slot(layout_.output_ring, seq) = {seq, static_cast<uint64_t>(opcode), reservation.payload_offset,
                                      reservation.payload_nbytes};
    sent_.push_back(reserved_end_);
    cursor_ = reserved_end_;
    reserved_ = false;
    published_ = seq;
    set_counter(Layout::kOutputTail, seq);
    return true;
  }

  // Always false.
  [[gnu::format(printf, 5, 6)]] bool fail(Kind kind, Op op, uint64_t seq, const char* pattern, ...) {
    error_.kind = kind;
    error_.op = op;
    error_.region_id = region_.descriptor().region_id;
    error_.seq = seq;
    const int used = std::snprintf(error_.message, sizeof error_.message,
                                   "L3-L2 endpoint error in %s: region=%llu: ", worker_chip_queue_op_to_string(op),
                                   wide(error_.region_id));
    va_list values;
    va_start(values, pattern);
    std::vsnprintf(error_.message + used, sizeof error_.message - static_cast<size_t>(used), pattern, values);
    va_end(values);
    if (op != Op::INIT) set_counter(Layout::kChipAbort, 1);
    return false;
  }

  WorkerChipOrchEndpoint region_;
  const WorkerChipQueueArgs args_;
  WorkerChipQueueLayout layout_{};
  WorkerChipQueueError error_;
  Input input_;
  Output output_;
  std::deque<Held> held_;  // input messages, in the order in which they came
  uint64_t peeked_ = 0;    // number of the last one
  bool stopped_ = false;
  // Positions in the output arena count on and on; modulo its size they are offsets.
  std::deque<uint64_t> sent_;  // where each output message ends that the host has not taken
  uint64_t published_ = 0;     // number of the last output message
  uint64_t cursor_ = 0, free_from_ = 0;
  bool reserved_ = false;
  uint64_t reserved_end_ = 0;
};
