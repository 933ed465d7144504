// The one kernel of these tests. Tensor 0: int32, read and written. Scalars: what to do (Act), then a, b, c, d.
#include <pto/pto-inst.hpp>

#include "acts.h"
#include "intrinsic.h"
#include "pto_async_kernel_api.h"
#include "tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace {

struct Arguments {
  int32_t* data;
  uint64_t count;
  uint64_t a, b, c, d;
};

// The file behind the page has no bytes: reading it is SIGBUS.
void touch_page_without_memory() {
  const int file = memfd_create("empty", 0);
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  static_cast<void>(*static_cast<volatile char*>(page));
}

// Each frame is used after the inner call, so it cannot be given up.
__attribute__((noinline)) int use_up_the_stack(volatile int* outer) {
  volatile int frame[1024];
  frame[0] = *outer + 1;
  return use_up_the_stack(frame) + frame[0];
}

void defer(AsyncCtx& async, const Arguments& in, uint32_t times) {
  const uint64_t address = in.a == kOwnTensor ? reinterpret_cast<uint64_t>(in.data) : in.a;
  const CompletionToken token = {address, static_cast<uint32_t>(in.b), COMPLETION_ENGINE_SDMA,
                                 static_cast<int32_t>(in.c), in.d};
  for (uint32_t i = 0; i < times; ++i) register_completion_condition(async, token);
  pto2::detail::defer_flush(async);
}

void act(Act what, const Arguments& in, int64_t* args) {
  AsyncCtx async = get_async_ctx(args);
  switch (what) {
    case kStep:
      for (uint64_t i = 0; i < in.count; ++i)
        in.data[i] = static_cast<int32_t>(static_cast<uint32_t>(in.data[i]) * 3 + static_cast<uint32_t>(in.a));
      return;
    case kWriteTo: *reinterpret_cast<volatile int*>(in.a) = 1; return;
    case kDivide: {
      volatile int zero = static_cast<int>(in.a);
      in.data[0] = 17 / zero;
      return;
    }
    case kBus: touch_page_without_memory(); return;
    case kAbort: std::abort();
    case kRecurse: {
      volatile int first = 0;
      in.data[0] = use_up_the_stack(&first);
      return;
    }
    case kThrowError: throw std::runtime_error("deliberate error 17");
    case kThrowNumber: throw 42;
    case kTrap: __builtin_trap();
    case kSpin: {  // a: address of a word that ends it; b: file that gets a byte at the end
      while (__atomic_load_n(reinterpret_cast<int32_t*>(in.a), __ATOMIC_ACQUIRE) == 0) {
      }
      in.data[0] = 1234;
      const ssize_t written = write(static_cast<int>(in.b), "!", 1);
      static_cast<void>(written);
      return;
    }
    case kBlockInRead: {  // a: file to read from
      char byte;
      const ssize_t got = read(static_cast<int>(in.a), &byte, 1);
      static_cast<void>(got);
      return;
    }
    case kSleep: std::this_thread::sleep_for(std::chrono::milliseconds(in.a)); return;
    case kCount: __atomic_fetch_add(&in.data[0], static_cast<int32_t>(in.a), __ATOMIC_ACQ_REL); return;
    case kMarkBlock: {
      const int32_t block = get_block_idx(args);
      in.data[block] += get_block_num(args);
      return;
    }
    case kDefer: defer(async, in, 1); return;
    case kDeferTwice: defer(async, in, 2); return;
    case kDeferOften: defer(async, in, 65); return;
    case kDeferSixtyFour: defer(async, in, 64); return;
    case kDeferOnTwo:  // at a, then at d
      defer(async, in, 1);
      defer(async, {in.data, in.count, in.d, in.b, in.c, 0}, 1);
      return;
    case kDeferAndRaise: pto2::detail::defer_error(async, static_cast<int32_t>(in.a)); return;
    case kDeferThenNotifyBlock:  // block 0 defers on the tensor's first word, all others count it up
      if (get_block_idx(args) == 0) {
        defer(async, in, 1);
      } else {
        send_notification(in.data, 1, pto::comm::NotifyOp::AtomicAdd);
      }
      return;
    case kNotify: send_notification(in.data, static_cast<int32_t>(in.a), pto::comm::NotifyOp::AtomicAdd); return;
    case kCompleteRecord:  // as a DMA engine does: the count of completed posts, 64 bits wide
      __atomic_store_n(reinterpret_cast<uint64_t*>(in.data), in.a, __ATOMIC_RELEASE);
      return;
    case kSlabCountTooLarge: *async.completion_count = 65; return;
    case kExpectAtLeast:  // fails loudly if the task ran before the counter got there
      if (__atomic_load_n(&in.data[0], __ATOMIC_ACQUIRE) < static_cast<int32_t>(in.a))
        throw std::runtime_error("ran too early");
      in.data[1] = 1;
      return;
    case kMeetAndThrow:  // a: how many meet
      __atomic_fetch_add(&in.data[0], 1, __ATOMIC_ACQ_REL);
      while (__atomic_load_n(&in.data[0], __ATOMIC_ACQUIRE) < static_cast<int32_t>(in.a)) std::this_thread::yield();
      throw std::runtime_error("deliberate error 18");
    case kThrowBesideAWait:  // block 1 waits for a signal that nobody sends; block 0 throws when it is there
      if (get_block_idx(args) == 0) {
        while (__atomic_load_n(&in.data[0], __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
        throw std::runtime_error("deliberate error 19");
      }
      __atomic_store_n(&in.data[0], 1, __ATOMIC_RELEASE);
      pto::comm::TWAIT(pto::comm::Signal(&in.data[1]), 1'000'000, pto::comm::WaitCmp::GE);
      return;
    case kOutlastTheRun:  // returns when the run has failed, and not earlier
      try {
        pto::comm::TWAIT(pto::comm::Signal(&in.data[1]), 1'000'000, pto::comm::WaitCmp::GE);
      } catch (...) {
      }
      return;
  }
  throw std::runtime_error("the test asks for an act that does not exist");
}

}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const ChipTensor& tensor = *reinterpret_cast<const ChipTensor*>(args[0]);
  const Arguments in = {tensor.data_as<int32_t>() + tensor.start_offset,
                        tensor.numel(),
                        static_cast<uint64_t>(args[2]),
                        static_cast<uint64_t>(args[3]),
                        static_cast<uint64_t>(args[4]),
                        static_cast<uint64_t>(args[5])};
  act(static_cast<Act>(args[1]), in, args);
}
