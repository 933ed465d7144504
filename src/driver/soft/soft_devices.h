// SoftDevices: which software devices are held, which of them each thread acts on, and which are in error.
//
// What      A device has a reference for each set(); with the last one, or by force, its generation ends. A thread is bound
//           to a generation of the device that it set last, so it notices when that is gone.
// States    works -> in error (answers kDriverInternal, whatever is asked) -> abandoned (in error, and something runs in it
//           for good). Only a reset by force leads back. The first reason stays.
// Errors    Functions that return a code leave its text in last_error().
// Threads   Any. Its lock is the innermost one of the software device: nothing is called while it is held.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace simpler::driver {

class SoftDevices {
 public:
  // Binds the calling thread.
  int set(int ordinal);
  // Gives a reference back. *last: it was the last one, and nothing runs for good: what the device has is to go.
  int release(int ordinal, bool* last);
  // Ends the generation, whatever the references. The device works again.
  void release_all(int ordinal);
  // kContextReleased if nobody holds it.
  int check_held(int ordinal) const;

  // The device that the calling thread acts on. *ordinal is set for kDriverInternal too.
  int context(int* ordinal) const;
  // kDriverInternal in error.
  int check(int ordinal) const;
  // kDriverInternal if abandoned; of all devices without an ordinal.
  int check_returns(int ordinal) const;
  int check_all_return() const;

  void put_in_error(int ordinal, std::string why);
  void abandon(int ordinal, std::string why);
  // How often the device began anew; -1 for one that was never set.
  int generation(int ordinal) const;

 private:
  enum class State { kWorks, kInError, kAbandoned };
  struct Device {
    int references = 0;
    std::uint64_t generation = 0;
    State state = State::kWorks;
    std::string why;  // it does not work
  };
  struct Binding {
    int ordinal = 0;
    std::uint64_t generation = 0;
  };

  // Under the lock.
  const Device* find(int ordinal) const;
  void worsen(int ordinal, State state, std::string why);
  void unbind(int ordinal);

  mutable std::mutex mutex_;
  std::map<int, Device> devices_;
  std::unordered_map<std::uint64_t, Binding> bindings_;  // by thread
};

}  // namespace simpler::driver
