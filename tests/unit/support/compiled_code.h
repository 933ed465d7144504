// compiled(): the bytes of a shared object, made by the compiler that builds the tests, as user code is.
//
// The source sees the headers of kernels and orchestrations of the streaming runtime on a2a3. Each call compiles: keep
// the sources small, the calls few.
#pragma once
#include <string>

namespace simpler::test {

// Fails the test and returns "" if the source does not compile.
std::string compiled(const std::string& source);

}  // namespace simpler::test
