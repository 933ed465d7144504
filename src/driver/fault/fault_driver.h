// FaultDriver: a Driver table around another one, which fails calls by rule and keeps a log of all of them.
//
// What      Before each call the first rule that fits decides what goes wrong. A rule counts the calls that fit it, so
//           "the third alloc" and "any second call on device 1" are both one rule; with a probability it draws from its
//           own seed instead, and the same seed draws the same calls again.
// Effects   A creating call that fails after its effect hands nothing out: what it made is taken back at once.
// Threads   Any. The wrapped table is borrowed for the object's life.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "driver/driver.h"

namespace simpler::driver {

// Names of the entries, in the order of SIMPLER_DRIVER_CALLS.
enum class Call : int {
#define SIMPLER_DRIVER_CALL_ID(entry) k_##entry,
  SIMPLER_DRIVER_CALLS(SIMPLER_DRIVER_CALL_ID)
#undef SIMPLER_DRIVER_CALL_ID
};
const char* name_of(Call call);

enum class Fault {
  kBefore,     // the code, and nothing was done
  kAfter,      // done, and yet the code
  kDelay,      // done, `delay` later
  kHang,       // a wait answers that its limit passed, after that time, or after `delay` if that is set and shorter;
               // other calls answer with the code after `delay`
  kSticky,     // as kBefore; from then on everything on the device answers kDriverInternal until it is reset by force
  kShortCopy,  // a copy moves half of its bytes and answers with the code; other calls as kBefore
};
inline constexpr Fault kAllFaults[] = {Fault::kBefore, Fault::kAfter,  Fault::kDelay,
                                       Fault::kHang,   Fault::kSticky, Fault::kShortCopy};
const char* name_of(Fault fault);

struct FaultRule {
  Fault fault = Fault::kBefore;
  std::string call = {};  // its name; empty: any
  int device = -1;        // of the calling thread or the call's argument; -1: any
  std::uint64_t nth = 1;  // of the calls that fit; 0: drawn by probability
  double probability = 0;
  std::uint64_t seed = 1;
  int times = 1;  // how many calls in succession, from the first that it hits; -1: all
  int code = kInternalError;
  std::chrono::milliseconds delay{0};
};

struct CallRecord {
  Call call;
  int device;  // -1: the thread has none
  int code;
  bool injected;  // a rule decided
  std::uint64_t thread;
  std::uint64_t bytes;  // of an allocation or a copy, else 0
};

class FaultDriver {
 public:
  explicit FaultDriver(const Driver& inner, std::vector<FaultRule> rules = {});
  const Driver& table() const { return table_; }

  std::vector<CallRecord> log() const;
  std::size_t calls(std::string_view name) const;  // by name; "": all
  std::size_t injected() const;                    // calls that a rule touched
  void clear_log();
  void set_rules(std::vector<FaultRule> rules);  // replaces them, counters and stickiness included
  void disarm();                                 // drops the rules; a device in error stays so

 private:
  struct Armed {
    FaultRule rule;
    std::mt19937_64 random;
    std::uint64_t seen = 0;
    int left = 0;  // calls that it still hits; -1: all
  };
  template <Call id, class... Args> int run(int (*Driver::*entry)(void*, Args...), Args... args);
  template <auto Member, Call id> struct Forward;

  bool decide(Call call, int device, bool* sticky, FaultRule* rule);
  int device_of_thread() const;
  void record(const CallRecord& record);

  const Driver& inner_;
  Driver table_{};
  mutable std::mutex mutex_;  // all below
  std::vector<Armed> rules_;
  std::vector<CallRecord> log_;
  std::map<std::uint64_t, int> devices_;  // of threads, by their serial
  std::set<int> sticky_;                  // devices in error
};

}  // namespace simpler::driver
