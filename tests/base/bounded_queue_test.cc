#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace layertrace {
namespace {

TEST(BoundedQueue, GivesBackInOrderWhatItWasGiven) {
  BoundedQueue<int> queue(8);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(queue.push(i));
  EXPECT_EQ(queue.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    int value = -1;
    ASSERT_TRUE(queue.pop(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_EQ(queue.size(), 0u);
}

TEST(BoundedQueue, LeavesTheValueAloneWhenItIsEmpty) {
  BoundedQueue<int> queue(4);
  int value = 42;
  EXPECT_FALSE(queue.pop(value));
  EXPECT_EQ(value, 42);
}

TEST(BoundedQueue, RefusesWhatDoesNotFitAndKeepsTheRest) {
  BoundedQueue<int> queue(4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(queue.push(i));
  EXPECT_FALSE(queue.push(4));
  EXPECT_FALSE(queue.push(5));
  int value = -1;
  ASSERT_TRUE(queue.pop(value));
  EXPECT_EQ(value, 0);
  EXPECT_TRUE(queue.push(6));
  for (const int expected : {1, 2, 3, 6}) {
    ASSERT_TRUE(queue.pop(value));
    EXPECT_EQ(value, expected);
  }
  EXPECT_FALSE(queue.pop(value));
}

// With one place alone, filled and to be filled again would have the same turn.
TEST(BoundedQueue, OverwritesNothingHoweverSmall) {
  for (const std::size_t capacity : {0, 1, 2, 3}) {
    BoundedQueue<int> queue(capacity);
    int taken = 0;
    while (taken < 100 && queue.push(taken)) ++taken;
    EXPECT_GE(taken, static_cast<int>(capacity));
    EXPECT_LE(taken, 4);
    for (int i = 0; i < taken; ++i) {
      int value = -1;
      ASSERT_TRUE(queue.pop(value));
      EXPECT_EQ(value, i);
    }
  }
}

TEST(BoundedQueue, GoesRoundForEver) {
  BoundedQueue<std::uint64_t> queue(4);
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(queue.push(2 * i));
    ASSERT_TRUE(queue.push(2 * i + 1));
    for (int j = 0; j < 2; ++j) {
      std::uint64_t value = 0;
      ASSERT_TRUE(queue.pop(value));
      ASSERT_EQ(value, next++);
    }
  }
}

TEST(BoundedQueue, LosesAndDoublesNothingBetweenThreads) {
  constexpr std::uint64_t kEach = 20'000;
  constexpr std::uint64_t kProducers = 2;
  BoundedQueue<std::uint64_t> queue(64);
  std::atomic<std::uint64_t> received{0};
  std::vector<std::vector<std::uint64_t>> seen(2);
  std::vector<std::thread> threads;
  for (std::uint64_t producer = 0; producer < kProducers; ++producer) {
    threads.emplace_back([&queue, producer] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        while (!queue.push(producer * kEach + i)) std::this_thread::yield();
      }
    });
  }
  for (auto& mine : seen) {
    threads.emplace_back([&queue, &received, &mine] {
      while (received.load() < kProducers * kEach) {
        std::uint64_t value = 0;
        if (queue.pop(value)) {
          mine.push_back(value);
          ++received;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int> times(kProducers * kEach, 0);
  for (const auto& mine : seen) {
    std::uint64_t last[kProducers] = {0, 0};
    for (const std::uint64_t value : mine) {
      ++times[value];
      // What one thread put in comes out in its order.
      EXPECT_GE(value + 1, last[value / kEach]);
      last[value / kEach] = value + 1;
    }
  }
  for (const int count : times) ASSERT_EQ(count, 1);
}

}  // namespace
}  // namespace layertrace
