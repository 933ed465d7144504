// Deferred completion: tasks that are over only when a condition in memory holds. Word 0 of a row of big is the counter.
#include "common/completion_types.h"
#include "pressure.h"

namespace {

// Counts the row's word 0 up without being ordered after anything.
void notify(const ChipTensor& counter, uint64_t by) { act_untracked(counter, kNotify, by); }

// Runs after everything that wrote to the row; fails unless the counter is there.
void expect(const ChipTensor& counter, uint64_t at_least) {
  CoreTaskArgs args;
  args.add_inout(counter);
  ask(args, kExpectAtLeast, at_least);
  rt_submit_aiv_task(kAct, args);
}

ChipTensor zero(const ChipTensor& big, uint32_t i) {
  const ChipTensor part = row(big, i);
  const uint32_t at[2] = {0, 0}, second[2] = {0, 1};
  set_tensor_data<int32_t>(part, 2, at, 0);
  set_tensor_data<int32_t>(part, 2, second, 0);
  return part;
}

}  // namespace

ENTRY(by_a_later_task) {  // v counters, each counted up w times by tasks that come later
  for (int64_t i = 0; i < number(in, 0); ++i) {
    const ChipTensor counter = zero(big, static_cast<uint32_t>(i));
    act(counter, kDefer, kOwnTensor, in.scalar(1), COMPLETION_TYPE_COUNTER);
    expect(counter, in.scalar(1));
  }
  for (int64_t n = 0; n < number(in, 1); ++n) {
    for (int64_t i = 0; i < number(in, 0); ++i) {
      const ChipTensor counter = row(big, static_cast<uint32_t>(i));
      notify(counter, 1);
    }
  }
}
ENTRY(by_an_earlier_task) {  // the condition holds when it is registered, or soon
  const ChipTensor counter = zero(big, 0);
  notify(counter, 3);
  act(counter, kDefer, kOwnTensor, 3, COMPLETION_TYPE_COUNTER);
  expect(counter, 3);
}
ENTRY(by_another_block) {  // v blocks; block 0 waits for all the others
  const ChipTensor counter = zero(big, 0);
  CoreTaskArgs args;
  args.add_inout(counter);
  ask(args, kDeferThenNotifyBlock, kOwnTensor, in.scalar(0) - 1, COMPLETION_TYPE_COUNTER);
  set_blocks(args, static_cast<int16_t>(number(in, 0)));
  rt_submit_aiv_task(kAct, args);
  expect(counter, in.scalar(0) - 1);
}
ENTRY(by_the_orchestration) {
  // An element write would wait for the task itself, so the orchestration uses a descriptor that is not tracked.
  const ChipTensor counter = zero(big, 0);
  act(counter, kDefer, kOwnTensor, 7, COMPLETION_TYPE_COUNTER);
  expect(counter, 7);
  ChipTensor untracked = counter;
  untracked.manual_dep = true;
  const uint32_t at[2] = {0, 0};
  set_tensor_data<int32_t>(untracked, 2, at, 7);
}
ENTRY(by_the_host) {  // scalars: address and value of a word of the host
  const ChipTensor row0 = zero(big, 0);
  act(row0, kDefer, in.scalar(0), in.scalar(1), COMPLETION_TYPE_COUNTER);
  step(row0, 1);
}
ENTRY(by_a_dma_record) {  // scalars: id of the post that is waited for, count of posts completed
  const ChipTensor record = zero(big, 0);
  act(record, kDefer, kOwnTensor, 0, COMPLETION_TYPE_SDMA_EVENT_RECORD, in.scalar(0));
  CoreTaskArgs after;
  after.add_inout(record);
  ask(after, kExpectAtLeast, 1);
  rt_submit_aiv_task(kAct, after);
  act_untracked(record, kCompleteRecord, in.scalar(1));
}
ENTRY(twice_the_same) {
  const ChipTensor counter = zero(big, 0);
  act(counter, kDeferTwice, kOwnTensor, 2, COMPLETION_TYPE_COUNTER);
  expect(counter, 2);
  notify(counter, 2);
}
ENTRY(sixty_four) {
  const ChipTensor counter = zero(big, 0);
  act(counter, kDeferSixtyFour, kOwnTensor, 2, COMPLETION_TYPE_COUNTER);
  expect(counter, 2);
  notify(counter, 2);
}
ENTRY(registered) {  // one task; scalars: act, a, b, c, d
  const ChipTensor counter = zero(big, 0);
  act(counter, static_cast<Act>(number(in, 0)), in.scalar(1), in.scalar(2), in.scalar(3), in.scalar(4));
  step(counter, 1);
}
ENTRY(blocks_register) {  // each of v blocks registers one condition that holds already
  const ChipTensor counter = zero(big, 0);
  CoreTaskArgs args;
  args.add_inout(counter);
  ask(args, kDefer, kOwnTensor, in.scalar(1), COMPLETION_TYPE_COUNTER);
  set_blocks(args, static_cast<int16_t>(number(in, 0)));
  rt_submit_aiv_task(kAct, args);
  step(counter, 1);
}
ENTRY(many_waiting) {  // v tasks wait at the same time; w of them are released
  for (int64_t i = 0; i < number(in, 0); ++i) {
    const ChipTensor counter = zero(big, static_cast<uint32_t>(i));
    act(counter, kDefer, kOwnTensor, 1, COMPLETION_TYPE_COUNTER);
  }
  for (int64_t i = 0; i < number(in, 1); ++i) {
    const ChipTensor counter = row(big, static_cast<uint32_t>(i));
    notify(counter, 1);
  }
}
ENTRY(element_read_waits) {
  const ChipTensor counter = zero(big, 0);
  act(counter, kDefer, kOwnTensor, 1, COMPLETION_TYPE_COUNTER);
  notify(counter, 1);
  const uint32_t at[2] = {0, 0}, first[1] = {0};
  const int32_t value = get_tensor_data<int32_t>(counter, 2, at);
  set_tensor_data<int32_t>(x, 1, first, value + 100);
}
ENTRY(windows_move_on) {  // v rounds in a small window: slots of deferred tasks are reused
  for (int64_t i = 0; i < number(in, 0); ++i) {
    PTO2_SCOPE() {
      const ChipTensor counter = row(big, static_cast<uint32_t>(i % 8));
      act(counter, kDefer, kOwnTensor, 1, COMPLETION_TYPE_COUNTER);
      notify(counter, 1);
      step(x, static_cast<uint64_t>(i));
    }
  }
}
