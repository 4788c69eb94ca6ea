#include "base/handle_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace layertrace {
namespace {

using Table = HandleTable<const int*>;

class HandleTableTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Table> table_ = std::make_unique<Table>();
  std::array<int, 8> things_{};
  int made_ = 0;

  auto maker(std::size_t thing) {
    return [this, thing] {
      ++made_;
      return &things_[thing];
    };
  }
};

TEST_F(HandleTableTest, MakesAHandleOnce) {
  EXPECT_EQ(table_->get(5, maker(1)), &things_[1]);
  EXPECT_EQ(table_->get(5, maker(2)), &things_[1]);
  EXPECT_EQ(made_, 1);
}

TEST_F(HandleTableTest, KeepsIdsApart) {
  // Of one block, of two neighbouring ones, and the last of all.
  const std::uint32_t ids[] = {0, 1, 255, 256, Table::kMost - 1};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(table_->get(ids[i], maker(i)), &things_[i]);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(table_->get(ids[i], maker(7)), &things_[i]);
  EXPECT_EQ(made_, 5);
}

TEST_F(HandleTableTest, RemembersNothingBeyondItsEnd) {
  EXPECT_EQ(table_->get(Table::kMost, maker(1)), &things_[1]);
  EXPECT_EQ(table_->get(Table::kMost, maker(2)), &things_[2]);
  EXPECT_EQ(table_->get(0xffffffffU, maker(3)), &things_[3]);
}

TEST_F(HandleTableTest, AsksAgainWhereNoneWasGiven) {
  EXPECT_EQ(table_->get(5, [] { return static_cast<const int*>(nullptr); }), nullptr);
  EXPECT_EQ(table_->get(5, maker(1)), &things_[1]);
}

TEST_F(HandleTableTest, AsksAgainAfterAnException) {
  EXPECT_THROW(table_->get(5, []() -> const int* { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(table_->get(5, maker(1)), &things_[1]);
}

// Both may make one; from then on there is one for all.
TEST_F(HandleTableTest, IsFilledByThreadsAtOnce) {
  constexpr std::uint32_t kIds = 2'000;
  std::vector<int> handles(kIds);
  std::atomic<int> wrong{0};
  const auto fill = [&] {
    for (std::uint32_t id = 0; id < kIds; ++id) {
      if (table_->get(id, [&] { return &handles[id]; }) != &handles[id]) ++wrong;
    }
  };
  std::thread other(fill);
  fill();
  other.join();
  EXPECT_EQ(wrong.load(), 0);
  for (std::uint32_t id = 0; id < kIds; ++id) ASSERT_EQ(table_->get(id, maker(0)), &handles[id]);
  EXPECT_EQ(made_, 0);
}

}  // namespace
}  // namespace layertrace
