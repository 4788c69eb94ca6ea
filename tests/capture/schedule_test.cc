// Which steps are recorded.
#include "capture/schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace layertrace {
namespace {

// One letter for each of the first steps: idle, warm-up, record.
std::string modes(const Schedule& schedule, std::uint64_t steps) {
  std::string text;
  for (std::uint64_t i = 0; i < steps; ++i) {
    constexpr const char* kLetters = ".wR";
    text += kLetters[static_cast<int>(step_mode(schedule, i))];
  }
  return text;
}

struct Row {
  Schedule schedule;
  const char* expected;
};

TEST(Schedule, SaysWhatEachStepIs) {
  const Row rows[] = {
      {{}, "RRRRRRRRRRRR"},
      {{.skip = 2}, "..RRRRRRRRRR"},
      {{.skip = 2, .warmup = 1}, "..wRRRRRRRRR"},
      {{.warmup = 3}, "wwwRRRRRRRRR"},
      {{.record = 3}, "RRR........."},
      {{.skip = 1, .warmup = 1, .record = 2}, ".wRR........"},
      {{.skip = 1, .warmup = 1, .record = 2, .repeat = 2}, ".wRR.wRR...."},
      {{.skip = 1, .warmup = 1, .record = 2, .repeat = 0}, ".wRR.wRR.wRR"},
      {{.warmup = 1, .record = 1, .repeat = 0}, "wRwRwRwRwRwR"},
      {{.record = 2, .repeat = 3}, "RRRRRR......"},
      {{.skip = 3, .record = 1, .repeat = 2}, "...R...R...."},
      {{.skip = 1, .record = 0, .repeat = 5}, ".RRRRRRRRRRR"},  // record = 0: once, without end
  };
  for (const Row& row : rows) EXPECT_EQ(modes(row.schedule, 12), row.expected);
}

TEST(Schedule, KnowsWhenItIsOver) {
  const Schedule twice{.skip = 1, .warmup = 1, .record = 2, .repeat = 2};
  EXPECT_FALSE(is_over(twice, 0));
  EXPECT_FALSE(is_over(twice, 7));
  EXPECT_TRUE(is_over(twice, 8));
  EXPECT_FALSE(is_over({}, 1'000'000));
  EXPECT_FALSE(is_over({.record = 1, .repeat = 0}, 1'000'000));
}

}  // namespace
}  // namespace layertrace
