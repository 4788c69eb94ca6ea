#include "base/pointer_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace layertrace {
namespace {

TEST(PointerTable, FindsWhatWasAdded) {
  PointerTable<int, 64> table;
  const std::array<int, 3> keys{};
  EXPECT_EQ(table.find(&keys[0]), nullptr);
  table.add(&keys[0], 1);
  table.add(&keys[1], 2);
  ASSERT_NE(table.find(&keys[0]), nullptr);
  EXPECT_EQ(*table.find(&keys[0]), 1);
  EXPECT_EQ(*table.find(&keys[1]), 2);
  EXPECT_EQ(table.find(&keys[2]), nullptr);
}

TEST(PointerTable, KeepsTheFirstValue) {
  PointerTable<int, 64> table;
  const int key = 0;
  table.add(&key, 1);
  table.add(&key, 2);  // a reader may hold the first one's address
  EXPECT_EQ(*table.find(&key), 1);
}

TEST(PointerTable, HasNothingUnderTheNullPointer) {
  PointerTable<int, 64> table;
  EXPECT_EQ(table.find(nullptr), nullptr);
  table.add(nullptr, 1);
  EXPECT_EQ(table.find(nullptr), nullptr);
}

TEST(PointerTable, RemembersNoMoreWhenFull) {
  PointerTable<int, 16> table;
  std::array<std::uint64_t, 100> keys{};
  for (std::size_t i = 0; i < keys.size(); ++i) table.add(&keys[i], static_cast<int>(i));
  int found = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const int* value = table.find(&keys[i]);
    if (value == nullptr) continue;
    EXPECT_EQ(*value, static_cast<int>(i));
    ++found;
  }
  EXPECT_EQ(found, 16);
}

TEST(PointerTable, IsReadWhileItGrows) {
  struct Facts {
    std::uint64_t number = 0;
    std::uint64_t inverse = 0;  // torn if the two do not fit together
  };
  constexpr std::size_t kKeys = 512;
  const auto table = std::make_unique<PointerTable<Facts, 2048>>();
  const auto keys = std::make_unique<std::array<std::uint64_t, kKeys>>();
  std::atomic<bool> torn{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t round = 0; round < 2 * kKeys; ++round) {
        const std::size_t i = (round * 7 + static_cast<std::size_t>(t) * 131) % kKeys;
        if (const Facts* facts = table->find(&(*keys)[i])) {
          if (facts->number != i || facts->inverse != ~std::uint64_t{i}) torn = true;
        } else {
          table->add(&(*keys)[i], {i, ~std::uint64_t{i}});
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(torn);
  for (std::size_t i = 0; i < kKeys; ++i) {
    table->add(&(*keys)[i], {i, ~std::uint64_t{i}});  // nobody waited for the others to add theirs
    ASSERT_NE(table->find(&(*keys)[i]), nullptr);
    EXPECT_EQ(table->find(&(*keys)[i])->number, i);
  }
}

}  // namespace
}  // namespace layertrace
