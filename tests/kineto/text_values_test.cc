#include "kineto/text_values.h"

#include <gtest/gtest.h>

namespace layertrace::kineto {
namespace {

// A double has steps of 0.25 µs here: 1711964646123456.789 would come out as ….75.
TEST(Microseconds, AreExactToTheNanosecond) {
  EXPECT_EQ(parse_microseconds("1711964646123456.789"), 1711964646123456789);
  EXPECT_EQ(parse_microseconds("0.001"), 1);
  EXPECT_EQ(parse_microseconds("12"), 12000);
  EXPECT_EQ(parse_microseconds("12.5"), 12500);
  EXPECT_EQ(parse_microseconds("12.0005"), 12000);
  EXPECT_EQ(parse_microseconds("1.5e3"), 1500000);
  EXPECT_EQ(parse_microseconds("1.7e+15"), 1700000000000000000);
  EXPECT_EQ(parse_microseconds("25e-1"), 2500);
  EXPECT_EQ(parse_microseconds("-3.25"), -3250);
}

TEST(Microseconds, AreNothingForOtherText) {
  for (const char* text : {"", "NaN", "nan", "Infinity", "-", ".", "1.2.3", "12x", "1e", "1e99",
                           "99999999999999999999", "0x10", "e5"})
    EXPECT_EQ(parse_microseconds(text), std::nullopt) << text;
  EXPECT_EQ(parse_microseconds("0e99"), 0);
}

TEST(Unescape, GivesTheBytesThatWereMeant) {
  EXPECT_EQ(unescape(R"(a\"b\\c\/d\n\t)"), "a\"b\\c/d\n\t");
  EXPECT_EQ(unescape(R"(\u00e9\u4e2d)"), "é中");
  EXPECT_EQ(unescape(R"(\ud83d\ude00)"), "😀");
  EXPECT_EQ(unescape(R"(\u0000)"), std::string(1, '\0'));
}

TEST(Unescape, LeavesWhatIsNoUtf8AsItIs) {
  EXPECT_EQ(unescape("\xff\xfe"), "\xff\xfe");
  EXPECT_EQ(unescape(R"(\ud800x)"), "\xed\xa0\x80x");  // half a pair: the bytes of its number
  EXPECT_EQ(unescape(R"(\uzz)"), R"(\uzz)");
  EXPECT_EQ(unescape("end\\"), "end\\");
}

}  // namespace
}  // namespace layertrace::kineto
