// An operator that calls others: whose is the time?
#include "attribute/operator_times.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace layertrace {
namespace {

class Times : public ::testing::Test {
 protected:
  OperatorTimes::Stack enter(OperatorTimes::Stack around, const std::string& name) {
    return times_.enter(around, id_of(name));
  }
  void add(OperatorTimes::Stack stack, const std::string& name, std::uint64_t self_ns) {
    times_.add(stack, id_of(name), self_ns);
  }
  NameId id_of(const std::string& name) {
    auto& names = dictionary_.names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return NameId{static_cast<std::uint32_t>(i)};
    }
    names.push_back(name);
    return NameId{static_cast<std::uint32_t>(names.size() - 1)};
  }
  static Operator counted(const std::string& name) {
    Operator op;
    op.name = name;
    return op;
  }

  Dictionary dictionary_;
  OperatorTimes times_;
};

TEST_F(Times, OfWhatIsNotListedAreTheNextOnesAround) {
  const auto convolution = enter(0, "aten::convolution");
  const auto inner = enter(enter(convolution, "aten::_convolution"), "aten::mkldnn_convolution");
  add(inner, "aten::mkldnn_convolution", 1400);
  add(enter(inner, "aten::empty"), "aten::empty", 30);
  add(convolution, "aten::convolution", 100);
  add(enter(0, "aten::empty"), "aten::empty", 7);

  std::vector<Operator> operators{counted("aten::convolution"), counted("aten::empty")};
  times_.fill(operators, dictionary_, 10);
  EXPECT_EQ(operators[0].host_ns, 150);         // and not 10
  EXPECT_DOUBLE_EQ(operators[1].host_ns, 3.7);  // wherever it was called
}

TEST_F(Times, OfAnOperatorThatNothingListedCallsAreNobodys) {
  add(enter(0, "aten::other"), "aten::other", 50);
  std::vector<Operator> operators{counted("aten::mm")};
  times_.fill(operators, dictionary_, 1);
  EXPECT_EQ(operators[0].host_ns, 0);
}

TEST_F(Times, MakeTheListWhereNothingWasCounted) {
  for (int i = 0; i < 4; ++i) {
    const auto linear = enter(0, "aten::linear");
    add(enter(linear, "aten::addmm"), "aten::addmm", 20);
    add(linear, "aten::linear", 5);
  }
  std::vector<Operator> operators;
  times_.fill(operators, dictionary_, 2);
  ASSERT_EQ(operators.size(), 2u);
  EXPECT_EQ(operators[0].name, "aten::addmm");
  EXPECT_EQ(operators[0].host_ns, 40);
  EXPECT_EQ(operators[0].calls, 2);
  EXPECT_FALSE(operators[0].counted);
  EXPECT_EQ(operators[1].name, "aten::linear");
  EXPECT_EQ(operators[1].host_ns, 10);
}

// A name may be made up for each call.
TEST_F(Times, AreBounded) {
  constexpr std::uint32_t kMany = 200'000;
  const auto around = times_.enter(0, NameId{0});
  for (std::uint32_t i = 1; i < kMany; ++i) {
    times_.add(times_.enter(around, NameId{i}), NameId{i}, 1);
    times_.add(times_.enter(0, NameId{i}), NameId{i}, 1);
  }
  times_.add(around, NameId{0}, 1);
  for (std::uint32_t i = 0; i < kMany; ++i) dictionary_.names.push_back(std::to_string(i));
  std::vector<Operator> operators;
  times_.fill(operators, dictionary_, 1);
  EXPECT_LE(operators.size(), 1u << 16);
  double sum = 0;
  for (const Operator& op : operators) {
    sum += op.host_ns;
    if (op.name == "0") {
      EXPECT_EQ(op.calls, 1) << "others' calls are not its own";
    }
  }
  EXPECT_LE(sum, 2.0 * kMany);
  EXPECT_GE(sum, kMany - 1);  // inside another nothing is lost
  EXPECT_EQ(times_.enter(around, kNoName), around);
}

}  // namespace
}  // namespace layertrace
