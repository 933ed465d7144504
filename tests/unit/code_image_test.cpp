// Private copies of shared objects: an image is always the bytes that it was loaded from.
#include "base/code_image.h"

#include <string>

#include <gtest/gtest.h>

#include "unit/support/compiled_code.h"

namespace simpler {
namespace {

CodeImage load(const std::string& bytes) {
  CodeImage image;
  const Status status = CodeImage::load(bytes.data(), bytes.size(), "test-image", &image);
  EXPECT_TRUE(status.ok()) << status.message();
  return image;
}

int answer(const CodeImage& image) { return reinterpret_cast<int (*)()>(image.symbol("answer"))(); }

// A static of an inline function is a unique symbol: the loader keeps such an object, and knows it by its path.
TEST(CodeImage, ThatCannotBeUnloadedIsNotTakenForTheNextOne) {
  const auto source = [](int value) {
    return "inline volatile int& kept() { static volatile int value; return value; }\n"
           "extern \"C\" int answer() { kept() = 1; return " +
           std::to_string(value) + "; }\n";
  };
  const std::string first = test::compiled(source(1)), second = test::compiled(source(2));
  for (int round = 0; round < 3; ++round) {
    {
      EXPECT_EQ(answer(load(first)), 1);
    }
    { EXPECT_EQ(answer(load(second)), 2); }
  }
}

TEST(CodeImage, OfTheSameBytesTwiceSharesNoGlobals) {
  const std::string bytes = test::compiled("static int calls; extern \"C\" int answer() { return ++calls; }");
  const CodeImage one = load(bytes), other = load(bytes);
  EXPECT_EQ(answer(one), 1);
  EXPECT_EQ(answer(one), 2);
  EXPECT_EQ(answer(other), 1);
}

}  // namespace
}  // namespace simpler
