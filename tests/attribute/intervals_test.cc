// Which forward call made node number n?
#include "attribute/intervals.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace layertrace {
namespace {

using Found = Intervals::Found;

constexpr std::size_t kPlenty = 1'000;

void open(Intervals& intervals, std::uint64_t begin, std::uint64_t value) {
  intervals.start(begin);
  intervals.open({.begin = begin, .value = value});
}

// The value of the interval that holds the number; nothing where there is none.
std::optional<std::uint64_t> owner(const Intervals& intervals, std::uint64_t sequence) {
  const auto [found, interval] = intervals.find(sequence);
  EXPECT_EQ(found == Found::kYes, interval != nullptr);
  if (interval == nullptr) return {};
  return interval->value;
}

TEST(Intervals, FindsTheInnermost) {
  Intervals intervals(kPlenty);
  open(intervals, 0, 1);
  open(intervals, 0, 2);  // begins with the same number
  intervals.close(2);
  open(intervals, 3, 3);
  open(intervals, 4, 4);
  intervals.close(5);
  intervals.close(6);
  intervals.close(9);
  const std::vector<std::uint64_t> owners = {2, 2, 1, 3, 4, 3, 1, 1, 1};
  for (std::size_t i = 0; i < owners.size(); ++i) EXPECT_EQ(owner(intervals, i), owners[i]) << i;
  EXPECT_EQ(intervals.find(9).found, Found::kOutside);
}

TEST(Intervals, FindsWhatIsStillOpen) {
  Intervals intervals(kPlenty);
  open(intervals, 5, 1);
  EXPECT_EQ(owner(intervals, 5), 1u);
  EXPECT_EQ(owner(intervals, 500), 1u);
  open(intervals, 8, 2);
  EXPECT_EQ(owner(intervals, 7), 1u);
  EXPECT_EQ(owner(intervals, 8), 2u);
}

TEST(Intervals, TellsSiblingsAndTheGapsBetweenThem) {
  Intervals intervals(kPlenty);
  open(intervals, 2, 1);
  intervals.close(4);
  open(intervals, 6, 2);
  intervals.close(7);
  open(intervals, 7, 3);
  intervals.close(9);
  EXPECT_EQ(intervals.find(1).found, Found::kBefore);
  EXPECT_EQ(owner(intervals, 3), 1u);
  EXPECT_EQ(intervals.find(4).found, Found::kOutside);
  EXPECT_EQ(intervals.find(5).found, Found::kOutside);
  EXPECT_EQ(owner(intervals, 6), 2u);
  EXPECT_EQ(owner(intervals, 7), 3u);
}

TEST(Intervals, KnowsNothingBeforeItsStart) {
  Intervals intervals(kPlenty);
  EXPECT_EQ(intervals.find(0).found, Found::kBefore);
  intervals.start(10);
  EXPECT_EQ(intervals.find(9).found, Found::kBefore);
  EXPECT_EQ(intervals.find(10).found, Found::kOutside);
  intervals.start(5);  // only the first counts
  EXPECT_EQ(intervals.find(9).found, Found::kBefore);
}

TEST(Intervals, KeepsNoneThatMadeNothing) {
  Intervals intervals(kPlenty);
  for (std::uint64_t i = 0; i < 100; ++i) {
    open(intervals, 7, i);
    open(intervals, 7, i);
    intervals.close(7);
    intervals.close(7);
  }
  EXPECT_EQ(intervals.size(), 0u);
  open(intervals, 7, 1);
  open(intervals, 7, 2);
  intervals.close(7);
  open(intervals, 7, 3);
  intervals.close(8);
  intervals.close(9);
  EXPECT_EQ(intervals.size(), 2u);
  EXPECT_EQ(owner(intervals, 7), 3u);
  EXPECT_EQ(owner(intervals, 8), 1u);
}

TEST(Intervals, GivesTheParent) {
  Intervals intervals(kPlenty);
  open(intervals, 0, 1);
  open(intervals, 1, 2);
  const auto* inner = intervals.find(1).interval;
  ASSERT_NE(inner, nullptr);
  const auto* outer = intervals.parent(*inner);
  ASSERT_NE(outer, nullptr);
  EXPECT_EQ(outer->value, 1u);
  EXPECT_EQ(intervals.parent(*outer), nullptr);
}

TEST(Intervals, ClosesMoreThanIsOpenWithoutHarm) {
  Intervals intervals(kPlenty);
  intervals.close(3);
  open(intervals, 4, 1);
  intervals.close(5);
  intervals.close(6);
  EXPECT_EQ(owner(intervals, 4), 1u);
  EXPECT_EQ(intervals.find(5).found, Found::kOutside);
}

TEST(Intervals, EndsWhatAWindowLeftOpen) {
  Intervals intervals(kPlenty);
  open(intervals, 0, 1);
  open(intervals, 2, 2);
  intervals.close_all(6);
  open(intervals, 6, 3);
  EXPECT_EQ(owner(intervals, 1), 1u);
  EXPECT_EQ(owner(intervals, 5), 2u);
  EXPECT_EQ(owner(intervals, 6), 3u);
  const auto* last = intervals.find(6).interval;
  EXPECT_EQ(intervals.parent(*last), nullptr);
}

// ---- Bounded memory ----

TEST(Intervals, ForgetsTheOldestAndSaysSo) {
  Intervals intervals(10);
  for (std::uint64_t i = 0; i < 100; ++i) {
    open(intervals, 2 * i, i);
    intervals.close(2 * i + 1);  // the odd numbers are outside
  }
  EXPECT_LE(intervals.size(), 10u);
  EXPECT_EQ(owner(intervals, 198), 99u);
  EXPECT_EQ(intervals.find(199).found, Found::kOutside);
  EXPECT_EQ(intervals.find(0).found, Found::kForgotten);
  EXPECT_EQ(intervals.find(100).found, Found::kForgotten);
}

TEST(Intervals, ForgetsAnOuterOneThatIsStillOpen) {
  Intervals intervals(10);
  open(intervals, 0, 1'000);
  for (std::uint64_t i = 1; i < 50; ++i) {
    open(intervals, 2 * i, i);
    intervals.close(2 * i + 1);
  }
  EXPECT_EQ(owner(intervals, 98), 49u);
  EXPECT_EQ(intervals.find(99).found, Found::kForgotten);  // the outer one's own
  const auto* inner = intervals.find(98).interval;
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(intervals.parent(*inner), nullptr);
  intervals.close(100);
  EXPECT_EQ(intervals.find(99).found, Found::kForgotten);
  EXPECT_EQ(intervals.find(100).found, Found::kOutside);
  open(intervals, 101, 2'000);
  intervals.close(102);
  EXPECT_EQ(owner(intervals, 101), 2'000u);
}

TEST(Intervals, RemembersHowFarAForgottenOneWent) {
  Intervals intervals(2);
  open(intervals, 0, 1);
  open(intervals, 5, 2);
  open(intervals, 6, 3);  // forgets the first, which goes on
  intervals.close(6);     // those inside make nothing more
  intervals.close(6);
  EXPECT_EQ(intervals.find(8).found, Found::kForgotten);
  intervals.close(10);
  EXPECT_EQ(intervals.find(8).found, Found::kForgotten);
  EXPECT_EQ(intervals.find(10).found, Found::kOutside);
}

// Against the plain way: look at all intervals there ever were.
TEST(Intervals, AgreesWithASearchThroughAll) {
  struct Plain {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t value;
  };
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const std::size_t capacity = seed % 2 == 0 ? kPlenty : 16;
    Intervals intervals(capacity);
    std::vector<Plain> all;
    std::vector<std::size_t> stack;
    std::uint64_t sequence = 3;
    for (int i = 0; i < 400; ++i) {
      const auto choice = static_cast<unsigned>(random() % 4);
      if (choice == 0) {
        sequence += random() % 3;
      } else if (choice == 1 && !stack.empty()) {
        all[stack.back()].end = sequence;
        stack.pop_back();
        intervals.close(sequence);
      } else if (choice >= 2 && stack.size() < 8) {
        stack.push_back(all.size());
        all.push_back({sequence, Intervals::kOpen, static_cast<std::uint64_t>(i)});
        open(intervals, sequence, static_cast<std::uint64_t>(i));
      }
    }
    for (std::uint64_t n = 0; n < sequence; ++n) {
      std::optional<std::uint64_t> expected;
      for (const Plain& plain : all) {  // later ones are further in
        if (plain.begin <= n && n < plain.end) expected = plain.value;
      }
      const auto [found, interval] = intervals.find(n);
      if (found == Found::kForgotten) {
        // Not remembered, but never wrong: with plenty of room nothing is forgotten.
        ASSERT_EQ(capacity, 16u);
      } else if (found == Found::kYes) {
        ASSERT_EQ(interval->value, expected) << "seed " << seed << ", node " << n;
      } else {
        ASSERT_FALSE(expected) << "seed " << seed << ", node " << n;
      }
    }
  }
}

}  // namespace
}  // namespace layertrace
