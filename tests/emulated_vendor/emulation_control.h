// What tests ask the emulated vendor library besides the vendor's own functions. All of it is about the whole process.
#pragma once
#include <cstddef>

extern "C" {

// From now on calls are kept, one a line: the function's name, and its arguments where they are more than handles and
// addresses.
void simpler_emulation_record();
// The calls since then, or since this was asked last. Valid until the thread's next call of it.
const char* simpler_emulation_calls();
// The next call of that function does nothing and answers so, with "told to fail" as its text.
void simpler_emulation_fail(const char* function, int code);
// Allocations, streams, events, modules and kernels that are alive, over all devices.
std::size_t simpler_emulation_alive();

}  // extern "C"
