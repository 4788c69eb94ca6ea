// What the fuzzers start from, and what they once found, again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/targets.h"

namespace layertrace::fuzz {
namespace {

template <typename Run>
std::size_t for_each_file(const std::string& name, Run run) {
  std::size_t count = 0;
  const std::filesystem::path source = std::getenv("LAYERTRACE_SOURCE_DIR");
  for (const auto& entry :
       std::filesystem::directory_iterator(source / "tests" / "fuzz" / "corpus" / name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    SCOPED_TRACE(entry.path());
    run(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    ++count;
  }
  return count;
}

TEST(Corpus, OfTheImporterIsTaken) { EXPECT_GE(for_each_file("import", import_bytes), 5U); }
TEST(Corpus, OfTheReaderIsTaken) { EXPECT_GE(for_each_file("reader", load_bytes), 2U); }

}  // namespace
}  // namespace layertrace::fuzz
