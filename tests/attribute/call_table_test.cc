// The last calls, by their correlation.
#include "attribute/call_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>

namespace layertrace {
namespace {

TEST(CallTable, KeepsACallUnderItsNumber) {
  CallTable table;
  EXPECT_EQ(table.find(7), nullptr);
  table.of(7).scope = 70;
  table.of(8).scope = 80;
  EXPECT_EQ(table.of(7).scope, 70u);
  EXPECT_EQ(table.find(8)->scope, 80u);
  EXPECT_EQ(table.find(9), nullptr);
}

// Whatever the numbers, those of the last are there, and no other.
TEST(CallTable, GivesThePlacesOfTheOldestToOthers) {
  constexpr unsigned kBits = 4;
  constexpr std::uint64_t kMost = 1U << kBits;
  std::mt19937 random(1);
  CallTable table(kBits);
  std::map<std::uint32_t, std::uint64_t> known;  // and which came when
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    const auto correlation = static_cast<std::uint32_t>(random() % 1000);
    CallTable::Call& call = table.of(correlation);
    if (!known.contains(correlation)) {
      EXPECT_EQ(call.scope, 0u);
      call.scope = i;
      known[correlation] = i;
      if (known.size() > kMost) {
        const auto oldest = std::min_element(known.begin(), known.end(),
                                             [](auto& a, auto& b) { return a.second < b.second; });
        known.erase(oldest);
      }
    }
    for (std::uint32_t each = 0; each < 1000; each += 7) {
      const auto expected = known.find(each);
      const CallTable::Call* found = table.find(each);
      ASSERT_EQ(found != nullptr, expected != known.end());
      if (found != nullptr) {
        ASSERT_EQ(found->scope, expected->second);
      }
    }
  }
}

TEST(CallTable, SaysBeforeItLosesACallThatNothingHasAskedFor) {
  CallTable table(1);
  EXPECT_FALSE(table.would_lose());
  table.of(1).launched = true;
  table.of(2).launched = true;
  EXPECT_TRUE(table.would_lose());
  table.find(1)->told = true;
  EXPECT_FALSE(table.would_lose());
  table.of(3);  // in the place of 1
  EXPECT_TRUE(table.would_lose());
  table.grow();
  EXPECT_FALSE(table.would_lose());
}

TEST(CallTable, KeepsWhatItHasWhenItGrows) {
  CallTable table(2);
  for (std::uint32_t i = 1; i <= 6; ++i) table.of(10 * i).scope = i;
  table.grow();
  EXPECT_EQ(table.most(), 8u);
  for (std::uint32_t i = 7; i <= 10; ++i) table.of(10 * i).scope = i;
  EXPECT_EQ(table.find(20), nullptr);
  for (std::uint32_t i = 3; i <= 10; ++i) {
    ASSERT_NE(table.find(10 * i), nullptr) << i;
    EXPECT_EQ(table.find(10 * i)->scope, i);
  }
  table.of(110).scope = 11;
  EXPECT_EQ(table.find(30), nullptr);
  EXPECT_EQ(table.find(40)->scope, 4u);
}

}  // namespace
}  // namespace layertrace
