// Every row of the table of instructions is tested: those on elements by the cases of this folder for each element type
// and layout, the others by a call in tests/unit/tile_*_test.cpp.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "tile_sweep/support/sweep.h"

using namespace tile_test;

namespace {

struct Row {
  std::string group, names, elements;
};
const std::vector<Row> kTable = {
#define PTO_INSTRUCTION(group, names, form, tiles, elements, meaning) {group, names, elements},
#include <pto/instructions.inc>
#undef PTO_INSTRUCTION
};

std::vector<std::string> split(const std::string& names) {
  std::vector<std::string> all;
  std::istringstream text(names);
  for (std::string name; std::getline(text >> std::ws, name, ',');) all.push_back(name);
  return all;
}
const std::set<std::string> kFloats = {"float", "half", "bfloat16_t"};
const std::set<std::string> kIntegers = {"int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t"};
std::set<std::string> types_of(const std::string& elements) {
  std::set<std::string> all;
  if (elements == "f" || elements == "f, i") all = kFloats;
  if (elements == "i" || elements == "f, i") all.insert(kIntegers.begin(), kIntegers.end());
  return all;
}

}  // namespace

TEST(TileCoverage, EveryInstructionOnElementsHasACaseForEachTypeAndLayout) {
  std::set<std::string> cases;
  for (const SweepCase& one : sweep_cases()) cases.insert(one.instruction + " " + one.element + " " + one.layout);
  int rows = 0;
  for (const Row& row : kTable) {
    if (row.group == "Communication") continue;
    const std::set<std::string> types = types_of(row.elements);
    rows += types.empty() ? 0 : 1;
    for (const std::string& name : split(row.names))
      for (const std::string& type : types)
        for (const char* layout : {"row-major", "column-major", "Nz"})
          EXPECT_TRUE(cases.count(name + " " + type + " " + layout) == 1) << name << " " << type << " " << layout;
  }
  EXPECT_GT(rows, 20);
}

TEST(TileCoverage, EveryOtherInstructionIsCalledByATest) {
  std::string sources;
  for (const auto& entry : std::filesystem::directory_iterator(SIMPLER_SOURCE_DIR "/tests/unit")) {
    const std::string name = entry.path().filename();
    if (name.rfind("tile_", 0) != 0) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (line.find("//") != line.find_first_not_of(' ')) sources += line + "\n";
  }
  std::set<std::string> swept;
  for (const SweepCase& one : sweep_cases()) swept.insert(one.instruction);
  int names = 0;
  for (const Row& row : kTable)
    for (const std::string& name : split(row.names)) {
      if (swept.count(name) != 0) continue;
      ++names;
      EXPECT_TRUE(std::regex_search(sources, std::regex("\\b" + name + "\\s*[<(]"))) << name << " is tested nowhere";
    }
  EXPECT_GT(names, 30);
}
