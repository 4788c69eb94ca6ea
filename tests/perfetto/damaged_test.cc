// Files that are cut, damaged, foreign or of another version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <layertrace/trace.h>

#include "perfetto/traces.h"

namespace layertrace::test {
namespace {

using testing::HasSubstr;

Script& a_script() {
  static auto* script = [] {
    auto* made = new Script({"", "a", "a.b", "(Loss)"});
    fill(*made);
    return made;
  }();
  return *script;
}

TEST(Cut, AFileWithoutItsEndSaysSo) {
  const ReadBack back = read(write(a_script(), /*closed=*/false));
  ASSERT_TRUE(back.summary) << back.summary.error().message();
  EXPECT_TRUE(back.summary->health.cut);
  EXPECT_EQ(back.stream, resolve(a_script()).stream());
}

// Wherever the file ends, what is whole is read, what is open is closed as cut, and nothing is made
// up.
TEST(Cut, AtEveryByteGivesAPrefix) {
  const Bytes whole = write(a_script());
  const std::string all = read(whole).stream;
  std::size_t longest = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ReadBack back = read(std::span(whole).first(size));
    if (!back.summary) {
      EXPECT_LT(size, 1000U) << "the head is longer than expected: "
                             << back.summary.error().message();
      continue;
    }
    EXPECT_TRUE(back.summary->health.cut) << "at " << size;
    // All calls but the ends that close what the cut left open.
    std::size_t same = 0;
    while (same < all.size() && same < back.stream.size() && all[same] == back.stream[same]) ++same;
    const std::string rest = back.stream.substr(back.stream.rfind('\n', same) + 1);
    std::istringstream lines(rest);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.starts_with("end ") && line.ends_with(" 2"))
          << "at " << size << ": " << line;
    }
    EXPECT_GE(same, longest) << "at " << size;
    longest = std::max(longest, same);
  }
}

TEST(Twice, TheSecondRecordingInAFileIsNotTakenForTheFirst) {
  const Bytes whole = write(a_script());
  Bytes twice = whole;
  twice.insert(twice.end(), whole.begin(), whole.end());
  const ReadBack back = read(twice);
  ASSERT_TRUE(back.summary) << back.summary.error().message();
  EXPECT_EQ(back.stream, read(whole).stream);
  const std::vector<std::string>& notes = back.summary->health.notes;
  EXPECT_EQ(notes.size(), read(whole).summary->health.notes.size() + 1);
  EXPECT_EQ(notes.back(), "another recording follows in the file; it was not read");

  Bytes cut_and_whole = write(a_script(), /*closed=*/false);
  cut_and_whole.insert(cut_and_whole.end(), whole.begin(), whole.end());
  const ReadBack refused = read(cut_and_whole);
  ASSERT_FALSE(refused.summary);
  EXPECT_NE(refused.summary.error().message().find("more than one recording"), std::string::npos);
}

// No damage may crash the reader, hang it, or make it take memory without end.
TEST(Damage, IsSurvived) {
  const Bytes whole = write(a_script());
  std::mt19937_64 random(20);
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes = whole;
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<std::uint8_t>(random());
          break;
        case 1:
          bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        default:
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                       static_cast<std::uint8_t>(random()));
      }
    }
    const File file(bytes);
    const auto profile = load(file.path());
    if (profile) {
      EXPECT_LE(profile->layers.size(), 100U);
    } else {
      EXPECT_FALSE(profile.error().message().empty());
    }
  }
}

TEST(Foreign, SaysWhatItLooksLike) {
  const std::pair<std::string, const char*> files[] = {
      {"", "empty"},
      {"{\"traceEvents\": []}", "JSON"},
      {"  [1, 2]", "JSON"},
      {std::string("\x1f\x8b\x08\x00", 4), "gzip"},
      {std::string("\x28\xb5\x2f\xfd", 4), "zstd"},
      {"PK\x03\x04 model", "zip"},
      {"SQLite format 3", "SQLite"},
      {"\x7f"
       "ELF....",
       "program or library"},
      {"hello, world\n", "plain text"},
      {std::string(64, '\x02'), "no Perfetto trace"},
  };
  for (const auto& [content, expected] : files) {
    const File file(content);
    const auto profile = load(file.path());
    ASSERT_FALSE(profile) << expected;
    EXPECT_THAT(profile.error().message(), HasSubstr(expected));
    EXPECT_THAT(profile.error().message(), HasSubstr(file.path()));
  }
}

TEST(Foreign, APerfettoTraceOfSomebodyElse) {
  // Trace{packet{timestamp: 5}, packet{timestamp: 6}, packet{timestamp: 7}}
  const File file(std::string("\x0a\x02\x40\x05\x0a\x02\x40\x06\x0a\x02\x40\x07"));
  const auto profile = load(file.path());
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message(),
              HasSubstr("a Perfetto trace, but not one that layertrace wrote"));
}

TEST(Foreign, FilesThatAreNone) {
  EXPECT_THAT(load("/no/such/file").error().message(), HasSubstr("No such file"));
  EXPECT_THAT(load("/").error().message(), HasSubstr("folder"));
  EXPECT_THAT(load("/dev/null").error().message(), HasSubstr("not a regular file"));
}

Bytes with_format_version(std::uint8_t version) {
  Bytes bytes = write(a_script());
  constexpr std::string_view kName = "format_version";
  const auto name = std::search(bytes.begin(), bytes.end(), kName.begin(), kName.end());
  EXPECT_NE(name, bytes.end());
  // DebugAnnotation{name, uint_value}: the tag of uint_value (3, varint) and its value follow.
  EXPECT_EQ(*(name + kName.size()), 0x18);
  *(name + kName.size() + 1) = version;
  return bytes;
}

TEST(Version, ANewerFileIsRefusedWithBothVersions) {
  const ReadBack back = read(with_format_version(kFormatVersion + 1));
  ASSERT_FALSE(back.summary);
  EXPECT_THAT(back.summary.error().message(),
              HasSubstr("format version " + std::to_string(kFormatVersion + 1)));
  EXPECT_THAT(back.summary.error().message(),
              HasSubstr("up to version " + std::to_string(kFormatVersion)));
}

TEST(Version, AnOlderFileIsRead) {
  const ReadBack back = read(with_format_version(0));
  ASSERT_TRUE(back.summary) << back.summary.error().message();
  EXPECT_EQ(back.stream, resolve(a_script()).stream());
}

}  // namespace
}  // namespace layertrace::test
