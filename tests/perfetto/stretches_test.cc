#include "perfetto/stretches.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace layertrace::test {
namespace {

TEST(Stretches, TakesWhatComesInOrder) {
  Stretches stretches;
  EXPECT_TRUE(stretches.take(10, 20));
  EXPECT_TRUE(stretches.take(20, 30));
  EXPECT_TRUE(stretches.take(35, 35));
  EXPECT_FALSE(stretches.take(29, 40));
  EXPECT_TRUE(stretches.take(35, 40));
}

TEST(Stretches, TakesWhatComesLateBetweenTwo) {
  Stretches stretches;
  EXPECT_TRUE(stretches.take(10, 20));
  EXPECT_TRUE(stretches.take(50, 60));
  EXPECT_TRUE(stretches.take(30, 40));
  EXPECT_TRUE(stretches.take(20, 25));
  EXPECT_FALSE(stretches.take(24, 28));
  EXPECT_FALSE(stretches.take(26, 31));
  EXPECT_FALSE(stretches.take(15, 55));
  EXPECT_TRUE(stretches.take(0, 9));
}

// Its end would come behind the next one's beginning in the file, at the same time.
TEST(Stretches, DoNotLetWhatComesLateTouchTheNextOne) {
  Stretches stretches;
  EXPECT_TRUE(stretches.take(10, 20));
  EXPECT_FALSE(stretches.take(5, 10));
  EXPECT_FALSE(stretches.take(10, 10));
  EXPECT_TRUE(stretches.take(5, 9));
}

bool apart(const std::pair<std::uint64_t, std::uint64_t>& earlier_taken,
           const std::pair<std::uint64_t, std::uint64_t>& fresh) {
  return earlier_taken.second <= fresh.first || fresh.second < earlier_taken.first;
}

TEST(Stretches, AgreeWithALookAtEachPair) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Stretches stretches;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t start = random() % 1000;
      const std::pair fresh{start, start + random() % 12};
      bool free = true;
      for (const auto& each : taken) free = free && apart(each, fresh);
      ASSERT_EQ(stretches.take(fresh.first, fresh.second), free) << seed << " " << i;
      if (free) taken.push_back(fresh);
    }
  }
}

// What was so long ago that it is forgotten counts as taken: better another track than an overlap.
TEST(Stretches, RefuseWhatIsLongAgo) {
  Stretches stretches;
  constexpr std::uint64_t kMany = 100'000;
  for (std::uint64_t i = 1; i <= kMany; ++i) ASSERT_TRUE(stretches.take(10 * i, 10 * i + 5));
  EXPECT_FALSE(stretches.take(17, 18));
  EXPECT_FALSE(stretches.take(0, 1));
  EXPECT_TRUE(stretches.take(10 * kMany - 3, 10 * kMany - 2));
}

}  // namespace
}  // namespace layertrace::test
