// The small parts of the reports: cells, names, numbers; names of columns; what a terminal can
// show.
#include "report/text.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/numbers.h"

namespace layertrace {
namespace {

using namespace report;  // NOLINT(google-build-using-namespace): the unit under test

TEST(Text, CountsCellsNotBytes) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("größe"), 5u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("層"), 2u);
  EXPECT_EQ(display_width("😀"), 2u);
}

TEST(Text, EscapesWhatDoesNotPrint) {
  EXPECT_EQ(clean(std::string("a\0b", 3), false), "a\\x00b");
  EXPECT_EQ(clean("\x7f\u0085\u200b\U000e0001", false), "\\x7f\\u0085\\u200b\\U000e0001");
  EXPECT_EQ(clean("µ層", false), "µ層");
  EXPECT_EQ(clean("µ😀", true), "\\u00b5\\U0001f600");
}

TEST(Text, ReplacesEveryByteThatIsNotUtf8) {
  const std::string mark = "\ufffd";
  EXPECT_EQ(clean("a\xff", false), "a" + mark);
  EXPECT_EQ(clean("a\xff", true), "a?");
  EXPECT_EQ(replace_invalid_utf8("\xc3"), mark);                                   // cut short
  EXPECT_EQ(replace_invalid_utf8("\xc0\xaf"), mark + mark);                        // overlong
  EXPECT_EQ(replace_invalid_utf8("\xe0\x80\xaf"), mark + mark + mark);             // overlong
  EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80"), mark + mark + mark);             // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xf4\x90\x80\x80"), mark + mark + mark + mark);  // beyond Unicode
  EXPECT_EQ(replace_invalid_utf8("x\ny層"), "x\ny層");
}

TEST(Text, ShortensAtAnyPlace) {
  EXPECT_EQ(shorten_middle("abcdef", 6, "…"), "abcdef");
  EXPECT_EQ(shorten_middle("abcdef", 5, "…"), "ab…ef");
  EXPECT_EQ(shorten_middle("abcdef", 4, "…"), "ab…f");
  EXPECT_EQ(shorten_middle("abcdef", 1, "…"), "a");
  EXPECT_EQ(shorten_middle("abcdef", 0, "…"), "");
  EXPECT_EQ(shorten_middle("層層層層", 6, "…"), "層…層");
  EXPECT_EQ(shorten_end("abcdef", 4, "..."), "a...");
  EXPECT_EQ(shorten_start("abcdef", 4, "…"), "…def");
}

TEST(Text, WrapsAtSpacesAndBreaksWhatIsTooLong) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap_words("one two three", 0), (Lines{"one two three"}));
  EXPECT_EQ(wrap_words("one two three", 8), (Lines{"one two", "  three"}));
  EXPECT_EQ(wrap_words("one abcdefghijkl z", 8), (Lines{"one", "  abcdef", "  ghijkl", "  z"}));
  EXPECT_EQ(wrap_words("", 8), (Lines{}));
}

TEST(Numbers, GiveTimesThreeDigits) {
  const Glyphs& glyphs = glyphs_for(false);
  const std::initializer_list<std::pair<double, const char*>> cases = {
      {0, "0 ns"},           {0.4, "<1 ns"},         {999.4, "999 ns"}, {999.6, "1.00 µs"},
      {1234, "1.23 µs"},     {9996, "10.0 µs"},      {99960, "100 µs"}, {999499, "999 µs"},
      {999600, "1.00 ms"},   {45.6e6, "45.6 ms"},    {1.5e9, "1.50 s"}, {999.6e9, "1,000 s"},
      {12345e9, "12,345 s"}, {std::nan(""), "? ns"}, {-1, "? ns"},      {HUGE_VAL, "? ns"}};
  for (const auto& [ns, text] : cases) EXPECT_EQ(format_time(ns, glyphs), text) << ns;
  EXPECT_EQ(format_time(1234, glyphs_for(true)), "1.23 us");
  EXPECT_EQ(format_time_range(1.2e6, 1.4e6, glyphs), "1.20–1.40 ms");
  EXPECT_EQ(format_time_range(950e3, 1.4e6, glyphs), "950 µs–1.40 ms");
  EXPECT_EQ(format_time_range(1.2e6, 1.2001e6, glyphs), "1.20 ms");
}

TEST(Numbers, NeverRoundAShareToNothingOrToTheWhole) {
  const std::initializer_list<std::pair<double, const char*>> cases = {
      {0, "0 %"},         {1e-9, "<0.1 %"},   {0.001, "0.1 %"},
      {0.4567, "45.7 %"}, {0.9991, "99.9 %"}, {0.9996, ">99.9 %"},
      {1, "100 %"},       {1.234, "123 %"},   {std::nan(""), "? %"},
      {-0.1, "? %"}};
  for (const auto& [share, text] : cases) EXPECT_EQ(format_share(share), text) << share;
}

TEST(Numbers, SeparateThousands) {
  EXPECT_EQ(format_count(std::uint64_t{0}), "0");
  EXPECT_EQ(format_count(std::uint64_t{999}), "999");
  EXPECT_EQ(format_count(~std::uint64_t{0}), "18,446,744,073,709,551,615");
  EXPECT_EQ(format_count(1204.0), "1,204");
  EXPECT_EQ(format_count(1204.4), "1,204");
  EXPECT_EQ(format_count(12.5), "12.5");
  EXPECT_EQ(format_count(0.333), "0.33");
  EXPECT_EQ(format_count(0.001), "<0.01");
  EXPECT_EQ(format_count(0.0), "0");
}

TEST(Numbers, OfBytesHaveAUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(16384), "16 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(233'472), "228 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 40), "3 TiB");
}

TEST(Names, OfColumnsAndSortKeysAreParsed) {
  EXPECT_EQ(*parse_column("activity_time"), Column::kActivityTime);
  EXPECT_EQ(*parse_sort_key("definition"), SortKey::kDefinition);
  const char* columns[] = {"type",
                           "forward",
                           "backward",
                           "total",
                           "recompute",
                           "self",
                           "activity_time",
                           "busy",
                           "calls",
                           "activities",
                           "gpu_forward",
                           "gpu_backward",
                           "kernels",
                           "copies",
                           "launches",
                           "gpu_event_forward",
                           "gpu_event_backward",
                           "idle",
                           "launch_bound",
                           "params",
                           "params_trainable",
                           "param_bytes",
                           "kernel_size",
                           "input_shapes",
                           "output_shapes",
                           "forward_flops",
                           "backward_flops",
                           "flops",
                           "macs",
                           "aux_flops",
                           "bytes",
                           "activations",
                           "memory_peak",
                           "memory_kept",
                           "tflops",
                           "gbs",
                           "intensity",
                           "roof",
                           "peak_share",
                           "unexplained",
                           "name",
                           "path",
                           "share",
                           "gpu_total",
                           "gpu_event_total",
                           "compute_share"};
  for (std::size_t i = 0; i < std::size(columns); ++i) {
    EXPECT_EQ(*parse_column(columns[i]), static_cast<Column>(i));
  }
  EXPECT_EQ(
      parse_column("Forward").error().message(),
      "cannot use \"Forward\" as a column: no such name. Use one of: type, forward, "
      "backward, total, recompute, "
      "self, activity_time, busy, calls, activities, gpu_forward, gpu_backward, "
      "kernels, copies, launches, gpu_event_forward, gpu_event_backward, idle, launch_bound, "
      "params, params_trainable, param_bytes, kernel_size, input_shapes, output_shapes, "
      "forward_flops, backward_flops, flops, macs, aux_flops, bytes, activations, "
      "memory_peak, memory_kept, tflops, gbs, intensity, roof, peak_share, unexplained, name, "
      "path, share, gpu_total, gpu_event_total, compute_share");
  EXPECT_EQ(*parse_kernel_sort("time"), KernelSort::kTime);
  EXPECT_EQ(*parse_kernel_sort("count"), KernelSort::kCount);
  EXPECT_EQ(*parse_kernel_sort("name"), KernelSort::kName);
  EXPECT_EQ(parse_kernel_sort("size").error().message(),
            "cannot use \"size\" as a sort key: no such name. Use one of: time, count, name");
  EXPECT_EQ(parse_sort_key("").error().message(),
            "cannot use \"\" as a sort key: no such name. Use one of: definition, forward, "
            "backward, total, self, "
            "calls, activities, name, gpu, flops, bytes, params, memory");
}

// Gives the terminal tests an environment of their own, and the old one back.
class ForTerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"COLUMNS", "NO_COLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG"}) {
      const char* value = std::getenv(name);
      saved_.emplace_back(name, value == nullptr ? "" : value);
      unsetenv(name);
    }
    setenv("LANG", "de_DE.UTF-8", 1);
    winsize size{};
    size.ws_col = 97;
    size.ws_row = 30;
    ASSERT_EQ(openpty(&main_, &terminal_, nullptr, nullptr, &size), 0);
    ASSERT_EQ(pipe(pipe_), 0);
  }

  void TearDown() override {
    for (const auto& [name, value] : saved_)
      value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
    for (const int fd : {main_, terminal_, pipe_[0], pipe_[1]}) close(fd);
  }

  int terminal_ = -1;
  int pipe_[2] = {-1, -1};

 private:
  int main_ = -1;
  std::vector<std::pair<const char*, std::string>> saved_;
};

TEST_F(ForTerminal, TakesWidthAndColourFromATerminal) {
  const TreeOptions options = for_terminal(terminal_, {.depth = 3});
  EXPECT_EQ(options.depth, 3);
  EXPECT_EQ(options.width, 97);
  EXPECT_TRUE(options.color);
  EXPECT_FALSE(options.ascii);
}

TEST_F(ForTerminal, IsPlainInAPipe) {
  setenv("COLUMNS", "60", 1);
  const TreeOptions options = for_terminal(pipe_[1]);
  EXPECT_EQ(options.width, 0);
  EXPECT_FALSE(options.color);
  EXPECT_FALSE(options.ascii);
}

TEST_F(ForTerminal, PrefersColumnsFromTheEnvironment) {
  setenv("COLUMNS", "60", 1);
  EXPECT_EQ(for_terminal(terminal_).width, 60);
  for (const char* nonsense : {"", "-5", "0", "60x", "99999999999"}) {
    setenv("COLUMNS", nonsense, 1);
    EXPECT_EQ(for_terminal(terminal_).width, 97) << nonsense;
  }
  unsetenv("COLUMNS");
  const winsize unknown{};
  ASSERT_EQ(ioctl(terminal_, TIOCSWINSZ, &unknown), 0);
  EXPECT_EQ(for_terminal(terminal_).width, 80);
}

TEST_F(ForTerminal, HonoursNoColorAndDumbTerminals) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(for_terminal(terminal_).color);
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(for_terminal(terminal_).color);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(for_terminal(terminal_).color);
}

TEST_F(ForTerminal, DrawsBoxesOnlyInUtf8) {
  setenv("LC_CTYPE", "C.utf8", 1);
  EXPECT_FALSE(for_terminal(pipe_[1]).ascii);
  setenv("LC_ALL", "C", 1);
  EXPECT_TRUE(for_terminal(pipe_[1]).ascii);
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
  EXPECT_TRUE(for_terminal(pipe_[1]).ascii);
}

TEST_F(ForTerminal, LeavesWhatIsAlreadySet) {
  setenv("NO_COLOR", "1", 1);
  const TreeOptions options = for_terminal(terminal_, {.width = 50, .color = true, .ascii = true});
  EXPECT_EQ(options.width, 50);
  EXPECT_TRUE(options.color);
  EXPECT_TRUE(options.ascii);
}

}  // namespace
}  // namespace layertrace
