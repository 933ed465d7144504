// What the kernel act.cpp can do; see there. failures_kit.py reads the names and numbers from this file.
#pragma once
#include <cstdint>

enum Act : int64_t {
  kStep,
  kWriteTo,
  kDivide,
  kBus,
  kAbort,
  kRecurse,
  kThrowError,
  kThrowNumber,
  kTrap,
  kSpin,
  kBlockInRead,
  kSleep,
  kCount,
  kMarkBlock,
  kDefer,
  kDeferTwice,
  kDeferOften,
  kDeferSixtyFour,
  kDeferOnTwo,
  kDeferAndRaise,
  kDeferThenNotifyBlock,
  kNotify,
  kCompleteRecord,
  kSlabCountTooLarge,
  kExpectAtLeast,
  kMeetAndThrow,
  kThrowBesideAWait,
  kOutlastTheRun,
};

constexpr uint64_t kOwnTensor = ~uint64_t{0};  // as an address: that of the task's own tensor
