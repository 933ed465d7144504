// The chip's side of a shared region and of its two queues, against a host that is played here.
#include "aicpu/worker_chip_message_queue.h"

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using Opcode = WorkerChipQueueOpcode;
using Layout = WorkerChipQueueLayout;
constexpr uint64_t kSecond = 1000000000;

#define EXPECT_SAYS(error, wanted_kind, words)                                                 \
  do {                                                                                         \
    EXPECT_EQ((error).kind, wanted_kind) << (error).message;                                   \
    EXPECT_NE(std::string((error).message).find(words), std::string::npos) << (error).message; \
  } while (false)

struct Region {
  alignas(64) char payload[4096] = {};
  alignas(64) int32_t counters[96] = {};
  WorkerChipOrchRegionDesc desc{WORKER_CHIP_ORCH_MAGIC << 32 | WORKER_CHIP_ORCH_MAJOR << 16 | 7,
                                42,
                                reinterpret_cast<uint64_t>(payload),
                                sizeof payload,
                                reinterpret_cast<uint64_t>(counters),
                                sizeof counters};
};

// ---- region ---------------------------------------------------------------------------------------------------------

using EndpointKind = WorkerChipEndpointErrorKind;

TEST(ChipRegion, IsMadeFromItsSixScalars) {
  Region region;
  uint64_t scalars[6];
  std::memcpy(scalars, &region.desc, sizeof scalars);
  WorkerChipOrchEndpoint endpoint(scalars, 6);
  EXPECT_EQ(endpoint.error().kind, EndpointKind::NONE) << endpoint.error().message;
  EXPECT_EQ(endpoint.descriptor().region_id, 42u);
  WorkerChipOrchEndpoint too_few(scalars, 5);
  EXPECT_SAYS(too_few.error(), EndpointKind::BAD_DESCRIPTOR, "5 scalars, and a region has 6");
}

TEST(ChipRegion, RefusesADescriptorThatIsNotOne) {
  struct Case {
    uint64_t WorkerChipOrchRegionDesc::*field;
    uint64_t value;
    const char* words;
  };
  for (const Case& wrong : {Case{&WorkerChipOrchRegionDesc::magic_version, 0x4C334C3200030000, "0x4c334c3200030000"},
                            Case{&WorkerChipOrchRegionDesc::counter_base, 4100, "not 64-byte aligned"},
                            Case{&WorkerChipOrchRegionDesc::payload_base, 0, "payload at 0x0, 4096 bytes"},
                            Case{&WorkerChipOrchRegionDesc::payload_bytes, UINT64_MAX, "does not wrap"}}) {
    Region region;
    region.desc.*wrong.field = wrong.value;
    WorkerChipOrchEndpoint endpoint(region.desc);
    EXPECT_SAYS(endpoint.error(), EndpointKind::BAD_DESCRIPTOR, wrong.words);
    EXPECT_EQ(endpoint.error().op, WorkerChipEndpointOp::INIT);
    uint64_t address = 0;
    EXPECT_FALSE(endpoint.counter_addr(0, address)) << "the first error sticks";
  }
}

TEST(ChipRegion, KeepsToItsPayloadAndCounters) {
  Region region;
  const char text[] = "sixteen bytes...";
  const auto fresh = [&] { return WorkerChipOrchEndpoint(region.desc); };
  WorkerChipOrchEndpoint good = fresh();
  WorkerChipOrchPayloadView view{};
  EXPECT_TRUE(good.payload_write(4080, text, 16) && good.payload_read(4080, 16, view) &&
              good.payload_read(4096, 0, view));
  EXPECT_EQ(std::memcmp(region.payload + 4080, text, 16), 0);
  WorkerChipOrchEndpoint past = fresh();
  EXPECT_FALSE(past.payload_read(4081, 16, view));
  EXPECT_SAYS(past.error(), EndpointKind::OUT_OF_BOUNDS, "16 bytes at offset 4081 of a payload of 4096 bytes");
  EXPECT_STREQ(worker_chip_endpoint_op_to_string(past.error().op), "payload_read");
  WorkerChipOrchEndpoint wrapping = fresh();
  EXPECT_FALSE(wrapping.payload_write(UINT64_MAX, text, 16));
  WorkerChipOrchEndpoint null = fresh();
  EXPECT_FALSE(null.payload_write(0, nullptr, 16));
  EXPECT_SAYS(null.error(), EndpointKind::OUT_OF_BOUNDS, "16 bytes is null");
  uint64_t address = 0;
  for (const uint64_t offset : {uint64_t{382}, uint64_t{384}, UINT64_MAX - 3}) {
    WorkerChipOrchEndpoint endpoint = fresh();
    EXPECT_FALSE(endpoint.counter_addr(offset, address));
    EXPECT_SAYS(endpoint.error(), EndpointKind::OUT_OF_BOUNDS, "must be a multiple of 4 below 384");
  }
  EXPECT_TRUE(good.counter_addr(380, address) && good.validate_counter_addr(address));
  EXPECT_FALSE(good.validate_counter_addr(address + 4) || good.validate_counter_addr(address + 1));
}

TEST(ChipRegion, SignalsAreSetAddedComparedAndWaitedFor) {
  Region region;
  WorkerChipOrchEndpoint endpoint(region.desc);
  uint64_t address = 0;
  ASSERT_TRUE(endpoint.counter_addr(64, address));
  EXPECT_TRUE(endpoint.signal_notify(address, INT32_MAX, WorkerChipOrchNotifyOp::Set));
  EXPECT_TRUE(endpoint.signal_notify(address, 2, WorkerChipOrchNotifyOp::Add));
  EXPECT_EQ(region.counters[16], INT32_MIN + 1) << "addition wraps";
  region.counters[16] = 5;
  using Cmp = WorkerChipOrchWaitCmp;
  const std::pair<Cmp, std::vector<bool>> rows[] = {{Cmp::EQ, {false, true, false}}, {Cmp::NE, {true, false, true}},
                                                    {Cmp::GT, {true, false, false}}, {Cmp::GE, {true, true, false}},
                                                    {Cmp::LT, {false, false, true}}, {Cmp::LE, {false, true, true}}};
  for (const auto& [compare, wanted] : rows) {
    for (int32_t i = 0; i < 3; ++i) {
      WorkerChipOrchSignalTestResult result{};
      ASSERT_TRUE(endpoint.signal_test(address, 4 + i, compare, result));
      EXPECT_EQ(result.matched, wanted[static_cast<size_t>(i)]);
      EXPECT_EQ(result.observed, 5);
    }
  }
  std::thread host([&] { simpler_comm::store_counter(address, 9); });
  int32_t observed = 0;
  EXPECT_TRUE(endpoint.signal_wait(address, 9, Cmp::GE, 20 * kSecond, observed));
  EXPECT_EQ(observed, 9);
  host.join();
  EXPECT_FALSE(endpoint.signal_wait(address, 10, Cmp::EQ, 1000, observed));
  EXPECT_SAYS(endpoint.error(), EndpointKind::SIGNAL_TIMEOUT, "to be == 10: it is 9");
  EXPECT_EQ(endpoint.error().counter_addr, address);
  EXPECT_EQ(endpoint.error().counter_operand, 10);
  EXPECT_EQ(endpoint.error().observed_counter, 9);
  WorkerChipOrchEndpoint foreign(region.desc);
  EXPECT_FALSE(foreign.signal_notify(4096, 1, WorkerChipOrchNotifyOp::Set));
  EXPECT_SAYS(foreign.error(), EndpointKind::OUT_OF_BOUNDS, "0x1000 is no counter");
  WorkerChipOrchEndpoint protocol(region.desc);
  EXPECT_FALSE(protocol.signal_wait(address, 1, static_cast<Cmp>(6), 1, observed));
  EXPECT_SAYS(protocol.error(), EndpointKind::SIGNAL_PROTOCOL, "comparison 6 does not exist");
}

// ---- queue ----------------------------------------------------------------------------------------------------------

// The host's side: as simple as the protocol allows.
struct Host {
  static constexpr uint64_t kDepth = 4, kInputArena = 512, kOutputArena = 256;
  Region region;
  const Layout layout = Layout::of(kDepth, kInputArena, kOutputArena);
  const WorkerChipQueueArgs args{
      WORKER_CHIP_QUEUE_MAGIC_VERSION, kDepth, kInputArena, kOutputArena, layout.payload_bytes,
      WORKER_CHIP_QUEUE_COUNTER_BYTES};
  uint64_t sent = 0, taken = 0;

  uint64_t word(uint64_t offset) { return region.desc.counter_base + offset; }
  uint32_t counter(uint64_t offset) { return static_cast<uint32_t>(simpler_comm::load_counter(word(offset))); }
  WorkerChipQueueDescriptor& slot(uint64_t ring, uint64_t seq) {
    return reinterpret_cast<WorkerChipQueueDescriptor*>(region.payload + ring)[(seq - 1) % kDepth];
  }
  // Each message has its own eighth of the input arena, so at most kDepth wait.
  bool send(Opcode opcode, const std::string& text) {
    if (sent - counter(Layout::kInputHead) >= kDepth) return false;
    const uint64_t seq = ++sent, at = layout.input_arena + seq % 8 * 64;
    std::memcpy(region.payload + at, text.data(), text.size());
    slot(layout.input_ring, seq) = {seq, static_cast<uint64_t>(opcode), at, text.size()};
    simpler_comm::store_counter(word(Layout::kInputTail), static_cast<int32_t>(sent));
    return true;
  }
  bool take(std::string* text) {
    if (counter(Layout::kOutputTail) == static_cast<uint32_t>(taken)) return false;
    const WorkerChipQueueDescriptor found = slot(layout.output_ring, ++taken);
    EXPECT_EQ(found.seq, taken);
    EXPECT_GE(found.payload_offset, layout.output_arena);
    EXPECT_LE(found.payload_offset + found.payload_nbytes, layout.output_arena + kOutputArena) << "it wraps";
    *text = std::string(region.payload + found.payload_offset, found.payload_nbytes);
    simpler_comm::store_counter(word(Layout::kOutputHead), static_cast<int32_t>(taken));
    return true;
  }
};

template <uint64_t N> bool answer(WorkerChipQueueEndpoint<N>& queue, const std::string& text) {
  WorkerChipQueueOutputReservation room{};
  if (!queue.output().try_reserve(text.size(), room)) return false;
  std::memcpy(reinterpret_cast<void*>(room.payload.gm_addr), text.data(), text.size());
  EXPECT_TRUE(queue.output().publish(room, Opcode::DATA));
  return true;
}

TEST(ChipQueue, EchoesMessagesOfAllSizesUntilItIsToldToStop) {
  Host host;
  constexpr int kMessages = 5000;
  std::thread chip([&] {
    WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
    for (;;) {
      WorkerChipQueueInputHandle message{};
      ASSERT_TRUE(queue.input().peek(20 * kSecond, message)) << queue.error().message;
      if (message.opcode == Opcode::STOP) {
        EXPECT_FALSE(queue.input().drained());
        EXPECT_TRUE(queue.input().release(message));
        EXPECT_TRUE(queue.input().drained());
        return;
      }
      WorkerChipQueueOutputReservation room{};
      ASSERT_TRUE(queue.output().reserve(message.payload_nbytes, 20 * kSecond, room)) << queue.error().message;
      std::memcpy(reinterpret_cast<void*>(room.payload.gm_addr), reinterpret_cast<const void*>(message.payload.gm_addr),
                  message.payload_nbytes);
      ASSERT_TRUE(queue.output().publish(room, Opcode::DATA));
      ASSERT_TRUE(queue.input().release(message));
    }
  });
  std::mt19937 random(5);
  std::vector<std::string> expected;
  std::string text;
  for (size_t taken = 0; taken < kMessages;) {
    if (expected.size() < kMessages) {
      const std::string next(random() % 61, static_cast<char>('a' + expected.size() % 26));
      if (host.send(Opcode::DATA, next)) expected.push_back(next);
    }
    if (host.take(&text)) {
      ASSERT_EQ(text, expected[taken]) << "message " << taken;
      ++taken;
    } else {
      std::this_thread::yield();
    }
  }
  while (!host.send(Opcode::STOP, "")) std::this_thread::yield();
  chip.join();
  EXPECT_EQ(host.counter(Layout::kChipAbort), 0u);
}

TEST(ChipQueue, MessagesInTheWindowAreReleasedInAnyOrderAndGivenBackInTheirs) {
  Host host;
  WorkerChipQueueEndpoint<3> queue(host.region.desc, host.args);
  for (const char* text : {"one", "two", "three", "four"}) ASSERT_TRUE(host.send(Opcode::DATA, text));
  WorkerChipQueueInputHandle held[3], none{};
  for (WorkerChipQueueInputHandle& message : held) ASSERT_TRUE(queue.input().try_peek(message));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(held[2].payload.gm_addr), 5), "three");
  EXPECT_FALSE(queue.input().try_peek(none)) << "the window is full";
  EXPECT_TRUE(queue.disambiguate_timeout());
  EXPECT_TRUE(queue.input().release(held[1]) && queue.input().release(held[2]));
  EXPECT_EQ(host.counter(Layout::kInputHead), 0u);
  EXPECT_TRUE(queue.input().release(held[0]));
  EXPECT_EQ(host.counter(Layout::kInputHead), 3u);
  EXPECT_FALSE(queue.input().release(held[0]));
  EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::OWNERSHIP, "message 1 is not held");
  EXPECT_EQ(host.counter(Layout::kChipAbort), 1u) << "the host is told";
  EXPECT_FALSE(queue.input().try_peek(none)) << "the first error sticks";
  EXPECT_FALSE(queue.disambiguate_timeout());
}

TEST(ChipQueue, AStopIsSeenBesideAFullWindow) {
  Host host;
  WorkerChipQueueEndpoint<2> queue(host.region.desc, host.args);
  for (const char* text : {"one", "two"}) ASSERT_TRUE(host.send(Opcode::DATA, text));
  ASSERT_TRUE(host.send(Opcode::STOP, ""));
  WorkerChipQueueInputHandle held[3];
  for (WorkerChipQueueInputHandle& message : held) ASSERT_TRUE(queue.input().peek(kSecond, message));
  EXPECT_EQ(held[2].opcode, Opcode::STOP);
  for (const WorkerChipQueueInputHandle& message : held) EXPECT_TRUE(queue.input().release(message));
  EXPECT_TRUE(queue.input().drained());
}

TEST(ChipQueue, APeekThatCanNeverEndIsAnError) {
  Host host;
  WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
  ASSERT_TRUE(host.send(Opcode::DATA, "held"));
  WorkerChipQueueInputHandle message{};
  ASSERT_TRUE(queue.input().try_peek(message));
  EXPECT_FALSE(queue.input().peek(20 * kSecond, message));
  EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::OWNERSHIP, "1 messages are held: release one first");
}

TEST(ChipQueue, OutputWaitsForRoomInRingAndArena) {
  Host host;
  WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
  std::string text;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(answer(queue, "")) << "empty messages need no arena";
  EXPECT_FALSE(answer(queue, "")) << "four slots";
  while (host.take(&text)) {
  }
  EXPECT_TRUE(answer(queue, std::string(129, 'x')));  // 192 bytes of 256
  EXPECT_FALSE(answer(queue, std::string(65, 'y')));  // 128 more
  EXPECT_TRUE(answer(queue, std::string(64, 'z')));
  EXPECT_FALSE(answer(queue, "w"));
  EXPECT_TRUE(host.take(&text));
  EXPECT_EQ(text, std::string(129, 'x'));
  EXPECT_TRUE(answer(queue, std::string(192, 'v'))) << "from the start again";
  EXPECT_TRUE(host.take(&text) && host.take(&text));
  EXPECT_EQ(text, std::string(192, 'v'));
  EXPECT_TRUE(answer(queue, std::string(256, 'u'))) << "an empty arena is one piece";
  WorkerChipQueueOutputReservation room{};
  EXPECT_FALSE(queue.output().reserve(1, 1000, room));
  EXPECT_TRUE(queue.disambiguate_timeout());
  EXPECT_FALSE(queue.output().try_reserve(257, room));
  EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::OUT_OF_SPACE, "257 bytes, and the output arena has 256");
}

TEST(ChipQueue, OutputBelongsToOneReservation) {
  Host host;
  WorkerChipQueueOutputReservation room{}, second{};
  {
    WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
    ASSERT_TRUE(queue.output().try_reserve(8, room));
    EXPECT_FALSE(queue.output().try_reserve(8, second));
    EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::OWNERSHIP, "message 1 is reserved: publish it first");
  }
  {
    WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
    EXPECT_FALSE(queue.output().publish(room, Opcode::DATA));
    EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::OWNERSHIP, "message 1 is not reserved");
  }
  WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
  ASSERT_TRUE(queue.output().try_reserve(8, room));
  EXPECT_FALSE(queue.output().publish(room, Opcode::STOP));
  EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::BAD_ARGUMENT, "opcode 2 can not be sent");
}

TEST(ChipQueue, AHostThatGaveUpOrWritesNonsenseIsNoticed) {
  struct Case {
    void (*spoil)(Host& host);
    WorkerChipQueueErrorKind kind;
    const char* words;
  };
  using Kind = WorkerChipQueueErrorKind;
  const Case cases[] = {
      {[](Host& h) { simpler_comm::store_counter(h.word(Layout::kWorkerAbort), 1); }, Kind::REMOTE_ABORTED,
       "given the queue up"},
      {[](Host& h) { simpler_comm::store_counter(h.word(Layout::kInputTail), 5); }, Kind::INVALID_DESCRIPTOR,
       "5 messages wait, and the ring has 4"},
      {[](Host& h) { h.slot(h.layout.input_ring, 1).seq = 3; }, Kind::INVALID_DESCRIPTOR, "its slot says number 3"},
      {[](Host& h) { h.slot(h.layout.input_ring, 1).opcode = 4; }, Kind::INVALID_DESCRIPTOR, "opcode 4"},
      {[](Host& h) { h.slot(h.layout.input_ring, 1).payload_offset = 0; }, Kind::INVALID_DESCRIPTOR, "at 0;"},
      {[](Host& h) { h.slot(h.layout.input_ring, 1).payload_nbytes = UINT64_MAX; }, Kind::INVALID_DESCRIPTOR,
       "18446744073709551615 bytes"}};
  for (const Case& wrong : cases) {
    Host host;
    WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
    ASSERT_TRUE(host.send(Opcode::DATA, "x"));
    wrong.spoil(host);
    WorkerChipQueueInputHandle message{};
    EXPECT_FALSE(queue.input().peek(20 * kSecond, message));
    EXPECT_SAYS(queue.error(), wrong.kind, wrong.words);
    EXPECT_EQ(queue.error().region_id, 42u);
  }
  Host host;
  WorkerChipQueueEndpoint<1> queue(host.region.desc, host.args);
  simpler_comm::store_counter(host.word(Layout::kOutputHead), 7);
  EXPECT_FALSE(answer(queue, "x"));
  EXPECT_SAYS(queue.error(), Kind::INVALID_DESCRIPTOR, "messages are left, of 0");
}

TEST(ChipQueue, RefusesArgumentsThatDoNotFitTheRegion) {
  const Host host;
  struct Case {
    uint64_t WorkerChipQueueArgs::*field;
    uint64_t value;
    const char* words;
  };
  for (const Case& wrong : {Case{&WorkerChipQueueArgs::magic_version, 1, "magic and version are 0x1"},
                            Case{&WorkerChipQueueArgs::depth, 0, "depth 0 is no power of two"},
                            Case{&WorkerChipQueueArgs::depth, 6, "depth 6 is no power of two"},
                            Case{&WorkerChipQueueArgs::depth, uint64_t{1} << 31, "up to 2^30"},
                            Case{&WorkerChipQueueArgs::depth, 64, "of 4096 and 384"},
                            Case{&WorkerChipQueueArgs::input_arena_bytes, UINT64_MAX, "in a region of 4096"},
                            Case{&WorkerChipQueueArgs::payload_bytes, 8192, "it was given 8192"},
                            Case{&WorkerChipQueueArgs::counter_bytes, 320, "and 384 of counters"}}) {
    WorkerChipQueueArgs args = host.args;
    args.*wrong.field = wrong.value;
    WorkerChipQueueEndpoint<1> queue(host.region.desc, args);
    EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::BAD_DESCRIPTOR, wrong.words);
  }
  Region region;
  region.desc.magic_version = 0;
  WorkerChipQueueEndpoint<1> queue(region.desc, host.args);
  EXPECT_SAYS(queue.error(), WorkerChipQueueErrorKind::ENDPOINT_ERROR, "magic and version are 0x0");
}

}  // namespace
