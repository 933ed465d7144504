// WakeList: the consumers to tell when one task completes. One per slot; C++17, no libraries.
//
// What      An intrusive stack of edges under one word {generation, first edge}. Edges belong to their consumers.
// Protocol                open(g)                   closed(g)
//           link(g)       push, kWaiting            kProducerDone
//           link(older)   kProducerDone             kProducerDone
//           complete(g)   closed(g), wake all       invalid: a task completes once
//           reopen(newer) invalid                   open(newer)
//           A new list is closed. "Closed" is the only record of "done": there is no flag to disagree with.
// Threads   link, done and complete may race: that is what the list is for. reopen: the submitter, on a reclaimed slot.
// Lifetime  The caller pins the slot until complete() returns. A linked edge stays untouched until its consumer is
//           woken; from then on it may be rewritten, even before wake() returns.
// Order     [A] pairs with [C] and [D]: a caller told "done" may read the task's output.
//           [B] pairs with [C]: the completing thread reads next and consumer, which are plain fields.
//           [D] must release: a plain store ends the release sequence that [C] heads, and a late linker that meets
//           the new generation still has to see the old task's output.
// ABA       Edges leave only all at once; the generation stops a linker that slept through less than 2^32 tasks.
// Cost      link: a load and a CAS. complete: an exchange, then 8 bytes read per edge. No lock, no system call.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace simpler::graph {

struct Edge {
  std::uint32_t next;      // the edge below in the producer's stack; the list's while linked
  std::uint32_t consumer;  // the task to wake; set by its submitter before link()
};

enum class Link { kWaiting, kProducerDone };

class WakeList {
 public:
  // kProducerDone leaves the edge unlinked: count it as satisfied, no wake-up follows.
  [[nodiscard]] Link link(Edge* edges, std::uint32_t edge, std::uint32_t generation) noexcept {
    Head head = head_.load(std::memory_order_acquire);  // [A]
    do {
      if (head.generation != generation || head.first == kClosed) return Link::kProducerDone;
      edges[edge].next = head.first;
    } while (!head_.compare_exchange_weak(head, Head{generation, edge}, std::memory_order_release,  // [B]
                                          std::memory_order_acquire));                              // [A]
    return Link::kWaiting;
  }

  // link() while nobody else touches the list, nor completes its task: before a graph that is built ahead is executed.
  // Pushing the first task publishes what was linked.
  [[nodiscard]] Link link_alone(Edge* edges, std::uint32_t edge) noexcept {
    const Head head = head_.load(std::memory_order_relaxed);
    if (head.first == kClosed) return Link::kProducerDone;
    edges[edge].next = head.first;
    head_.store(Head{head.generation, edge}, std::memory_order_relaxed);
    return Link::kWaiting;
  }

  // Whether the task of that generation has completed.
  [[nodiscard]] bool done(std::uint32_t generation) const noexcept {
    const Head head = head_.load(std::memory_order_seq_cst);  // [A]; seq_cst: the submitter sleeps on a "no"
    return head.generation != generation || head.first == kClosed;
  }

  // Calls wake(consumer) once for each linked edge, newest first, on this thread; wake must not throw.
  template <class Wake> void complete(Edge* edges, std::uint32_t generation, Wake wake) noexcept {
    const Head head = head_.exchange(Head{generation, kClosed}, std::memory_order_acq_rel);  // [C]
    SIMPLER_CHECK(head.generation == generation && head.first != kClosed,
                  "task of generation %u completed twice (list is at %u)", generation, head.generation);
    for (std::uint32_t edge = head.first; edge != kEnd;) {
      const Edge taken = edges[edge];  // copy first: inside wake() the consumer may run, retire and be reused
      wake(taken.consumer);
      edge = taken.next;
    }
  }

  void reopen(std::uint32_t generation) noexcept {
    const Head head = head_.load(std::memory_order_relaxed);  // closed: nobody else writes it
    SIMPLER_CHECK(head.first == kClosed, "slot reopened while generation %u runs", head.generation);
    head_.store(Head{generation, kEnd}, std::memory_order_release);  // [D]
  }

 private:
  struct Head {
    std::uint32_t generation, first;
  };
  static_assert(std::atomic<Head>::is_always_lock_free, "a list is one word");
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF, kClosed = 0xFFFFFFFE;  // the edge table is shorter than this
  std::atomic<Head> head_{Head{0, kClosed}};
};

}  // namespace simpler::graph
