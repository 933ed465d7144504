// Fills a Driver table from a class that has a member function for each entry, of the same name and arguments,
// its own or of a base.
#pragma once
#include "driver/driver.h"

namespace simpler::driver {

template <class Backend, auto Method> struct Thunk;
template <class Backend, class Base, class... Args, int (Base::*Method)(Args...)> struct Thunk<Backend, Method> {
  static int call(void* self, Args... args) { return (static_cast<Backend*>(self)->*Method)(args...); }
};

// The table borrows `backend`, which also has: const char* recent_error().
template <class Backend> Driver make_table(const char* name, Backend* backend, std::uint32_t capabilities) {
  Driver table{};
  table.name = name;
  table.self = backend;
  table.capabilities = capabilities;
  table.recent_error = [](void* self) { return static_cast<Backend*>(self)->recent_error(); };
#define SIMPLER_DRIVER_FILL(entry) table.entry = Thunk<Backend, &Backend::entry>::call;
  SIMPLER_DRIVER_CALLS(SIMPLER_DRIVER_FILL)
#undef SIMPLER_DRIVER_FILL
  return table;
}

}  // namespace simpler::driver
