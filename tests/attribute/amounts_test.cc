// What operators compute, from records to the profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "attribute/folding.h"
#include "attribute/records.h"
#include "record/amounts.h"

namespace layertrace {
namespace {

using test::fold;
using test::outside;
using test::Script;
using test::stats_of;
using test::ThreadScript;
using ::testing::ElementsAre;
using ::testing::Field;

TEST(Amounts, SurviveTheirRecords) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const OpAmounts amounts{.op = NameId{7},
                          .flops = kMost,
                          .aux_flops = 2,
                          .flops_causal = 3,
                          .bytes = 4,
                          .activations = 5,
                          .fvcore_flops = 6,
                          .format = kOtherFormat,
                          .is_uncounted = true};
  const auto part = [&](AmountsPart which) {
    return unpack_amounts(amounts_record(amounts, which, 1));
  };
  const OpAmounts flops = part(AmountsPart::kFlops);
  EXPECT_EQ(flops.flops, kMost);
  EXPECT_EQ(flops.aux_flops, 2U);
  EXPECT_EQ(flops.op, NameId{7});
  EXPECT_EQ(flops.format, kOtherFormat);
  EXPECT_TRUE(flops.is_call);
  EXPECT_TRUE(flops.is_uncounted);
  const OpAmounts bytes = part(AmountsPart::kBytes);
  EXPECT_EQ(bytes.bytes, 4U);
  EXPECT_EQ(bytes.activations, 5U);
  EXPECT_FALSE(bytes.is_call);
  EXPECT_FALSE(bytes.is_uncounted);
  EXPECT_EQ(bytes.flops, 0U);
  EXPECT_EQ(part(AmountsPart::kOthers).flops_causal, 3U);
  EXPECT_EQ(part(AmountsPart::kOthers).fvcore_flops, 6U);
}

// Few records or many: they add up to the same.
TEST(Amounts, TakeAsFewRecordsAsHoldThem) {
  const auto records_of = [](const OpAmounts& amounts) {
    std::vector<Record> records;
    for_each_record(amounts, 1, [&](const Record& record) { records.push_back(record); });
    OpAmounts sum{.op = amounts.op, .format = amounts.format};
    std::size_t calls = 0;
    for (const Record& record : records) {
      const OpAmounts part = unpack_amounts(record);
      sum.flops += part.flops;
      sum.aux_flops += part.aux_flops;
      sum.flops_causal += part.flops_causal;
      sum.bytes += part.bytes;
      sum.activations += part.activations;
      sum.fvcore_flops += part.fvcore_flops;
      sum.is_uncounted |= part.is_uncounted;
      calls += part.is_call ? 1 : 0;
    }
    EXPECT_EQ(sum, amounts);
    EXPECT_EQ(calls, 1U);
    return records.size();
  };
  constexpr std::uint64_t kSmall = 0xffff'ffff;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(records_of({.op = NameId{7}, .aux_flops = kSmall, .bytes = kSmall}), 1U);
  EXPECT_EQ(records_of({.op = NameId{7}, .flops = kMost, .bytes = 1, .is_uncounted = true}), 1U);
  EXPECT_EQ(records_of({.op = NameId{7}, .bytes = kSmall + 1}), 2U);
  EXPECT_EQ(records_of({.op = NameId{7}, .aux_flops = kSmall + 1}), 1U);
  EXPECT_EQ(records_of({.op = NameId{7}, .aux_flops = kMost, .bytes = 1}), 2U);
  EXPECT_EQ(records_of({.op = NameId{7}, .flops = 2, .bytes = kMost, .activations = 3}), 2U);
  EXPECT_EQ(records_of({.op = NameId{7}, .flops = 2, .bytes = 3, .fvcore_flops = 1}), 2U);
  EXPECT_EQ(records_of({.op = NameId{7},
                        .flops = 2,
                        .flops_causal = 1,
                        .bytes = 3,
                        .activations = 4,
                        .fvcore_flops = 1,
                        .format = 3}),
            3U);
}

TEST(Amounts, BelongToTheOperatorsLayerAndPhase) {
  Script script({"", "a", "a.b"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1, 0, true).counting(5, 9, true);
  t.enter(10, "").enter(20, "a").enter(25, "a.b").make(1);
  t.begin_op(26, "mm").amounts(28, "mm", {.flops = 100, .bytes = 7, .activations = 3}).end_op(29);
  t.leave(30).begin_op(31, "add").amounts(32, "add", {.aux_flops = 5}).end_op(33).leave(35);
  t.leave(40).backward(50).node(51, "MmBackward0", 0);
  t.begin_op(52, "mm").amounts(53, "mm", {.flops = 200, .flops_causal = 90}).end_op(54);
  t.end(55).end_backward(60).step(70, 0);
  const Profile profile = fold(script, 80);

  EXPECT_EQ(stats_of(profile, "a.b").amounts.flops, 100);
  EXPECT_EQ(stats_of(profile, "a.b").amounts.bytes, 7);
  EXPECT_EQ(stats_of(profile, "a.b").amounts.activations, 3);
  EXPECT_EQ(stats_of(profile, "a").amounts.flops, 100);
  EXPECT_EQ(stats_of(profile, "a").self_amounts.flops, 0);
  EXPECT_EQ(stats_of(profile, "a").self_amounts.aux_flops, 5);
  EXPECT_EQ(stats_of(profile, "").amounts.flops, 100);
  EXPECT_EQ(stats_of(profile, "a.b", Phase::kBackward).amounts.flops, 200);
  EXPECT_EQ(stats_of(profile, "", Phase::kBackward).amounts.flops_causal, 90);
  EXPECT_EQ(profile.counted_share, 1);
  ASSERT_EQ(profile.operators.size(), 2U);
  EXPECT_EQ(profile.operators[0].name, "mm");
  EXPECT_EQ(profile.operators[0].calls, 2);
  EXPECT_EQ(profile.operators[0].amounts.flops, 300);
  ASSERT_EQ(profile.operators[0].uses.size(), 2U);
}

// One layer with two kinds of operators that ask mm: linear, and a product of the program's own.
TEST(Amounts, HaveFvcoresActivationsOfTheOperatorThatItSees) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1, 0, true).enter(10, "a");
  const auto product = [&](std::uint64_t at, const char* outer, std::uint64_t macs,
                           std::uint64_t elements) {
    t.begin_op(at, outer).begin_op(at + 1, "aten::mm");
    t.amounts(at + 2, "aten::mm", {.flops = 2 * macs, .activations = elements}).end_op(at + 3);
    t.amounts(at + 4, outer, {.fvcore_flops = macs}).end_op(at + 5);
  };
  product(20, "aten::linear", 100, 10);
  product(30, "aten::matmul", 100, 50);
  product(40, "aten::linear", 30, 3);
  // fvcore counts mm's FLOPs alone.
  t.begin_op(50, "aten::mm");
  t.amounts(51, "aten::mm", {.flops = 8, .activations = 4, .fvcore_flops = 4}).end_op(52);
  // Neither those of the product before it, nor a norm's.
  t.begin_op(60, "aten::einsum").amounts(61, "aten::einsum", {.fvcore_flops = 7}).end_op(62);
  t.begin_op(63, "aten::layer_norm").amounts(64, "aten::layer_norm", {.fvcore_flops = 9});
  t.end_op(65).leave(70).step(100, 0);
  const Profile profile = fold(script, 300);
  std::map<std::string, double> activations;
  for (const Operator& op : profile.operators) activations[op.name] = op.amounts.fvcore_activations;
  EXPECT_EQ(activations, (std::map<std::string, double>{{"aten::linear", 13},
                                                        {"aten::matmul", 50},
                                                        {"aten::mm", 0},
                                                        {"aten::einsum", 0},
                                                        {"aten::layer_norm", 0}}));
  EXPECT_EQ(stats_of(profile, "a").amounts.activations, 67);
}

TEST(Amounts, OfAnOperatorThatIsNoRecordBelongToWhatRuns) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1, 0, true).enter(10, "a").make(1);
  t.amounts(15, "aten::lstm", {.flops = 64}).leave(20);
  t.amounts(25, "sum", {.aux_flops = 3});
  t.backward(30).node(31, "LstmBackward0", 0).amounts(35, "mm", {.flops = 32}).end(36);
  t.amounts(37, "add", {.aux_flops = 8}).end_backward(40).step(50, 0);
  const Profile profile = fold(script, 60);
  EXPECT_EQ(stats_of(profile, "a").amounts.flops, 64);
  EXPECT_EQ(stats_of(profile, "a", Phase::kBackward).amounts.flops, 32);
  EXPECT_EQ(stats_of(profile, "a", Phase::kBackward).amounts.aux_flops, 0) << "between the nodes";
  EXPECT_EQ(outside(profile, Phase::kBackward).amounts.aux_flops, 8);
}

TEST(Amounts, OfStepsThatAreAlikeAreThoseOfTheCountedOne) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0);
  const auto step = [&](std::uint64_t at, std::uint64_t key, std::uint64_t flops) {
    t.counting(at + 1, 0, flops != 0).counting(at + 2, key, flops != 0).enter(at + 10, "a");
    if (flops != 0) t.amounts(at + 11, "mm", {.flops = flops});
    t.leave(at + 20).step(at + 100, at / 100);
  };
  step(0, 1, 100);
  step(100, 1, 0);
  step(200, 2, 40);
  step(300, 1, 0);
  const Profile profile = fold(script, 500);
  EXPECT_DOUBLE_EQ(stats_of(profile, "a").amounts.flops, (100 + 100 + 40 + 100) / 4.0);
  EXPECT_EQ(profile.counted_share, 1);
}

TEST(Amounts, OfStepsThatAreLikeNoneAreNotKnown) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1, 0, true).counting(2, 1, true).enter(10, "a");
  t.amounts(11, "mm", {.flops = 10}).leave(20).step(100, 0);
  t.counting(101, 0, false).counting(102, 5, false).enter(110, "a").leave(120).step(200, 1);
  const Profile profile = fold(script, 300);
  EXPECT_EQ(profile.counted_share, 0.5);
}

TEST(Amounts, OfAStepWithoutEndAreKeptByTheirKeys) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0);
  constexpr std::uint64_t kCalls = 1'000;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    t.counting(10 * i + 1, 1 + i % 3, true).enter(10 * i + 2, "a");
    t.amounts(10 * i + 3, "mm", {.flops = 100}).leave(10 * i + 4);
  }
  t.step(20'000, 0);
  const Profile profile = fold(script, 30'000);
  EXPECT_DOUBLE_EQ(stats_of(profile, "a").amounts.flops, 100.0 * kCalls);
  EXPECT_EQ(profile.counted_share, 1);
}

TEST(Amounts, WithoutAFormulaAreListed) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1, 0, true).enter(10, "a");
  t.begin_op(11, "my::op").amounts(12, "my::op", {.is_uncounted = true}).end_op(13);
  t.leave(20).step(100, 0);
  const Profile profile = fold(script, 300);
  ASSERT_EQ(profile.operators.size(), 1U);
  EXPECT_EQ(profile.operators[0].uncounted, 1);
  EXPECT_EQ(profile.operators[0].calls, 1);
}

TEST(Shapes, AreOfTheInnermostCall) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(10, "").input(11, "x").enter(20, "a").input(21, "y").output(22, "z").leave(25);
  t.enter(30, "a").input(31, "y").output(32, "z").leave(35);
  t.enter(40, "a").input(41, "v").leave_thrown(45);
  t.output(48, "w").leave(50).step(100, 0);
  const Profile profile = fold(script, 300);
  const Layer* root = profile.find("");
  ASSERT_EQ(root->shapes.size(), 1U);
  EXPECT_EQ(root->shapes[0].input, "x");
  EXPECT_EQ(root->shapes[0].output, "w");
  EXPECT_THAT(profile.find("a")->shapes, ElementsAre(Field("output", &CallShapes::output, "z")));
}

// A module that calls itself and catches what that throws.
TEST(Shapes, OfACallThatThrewAreNotItsCallers) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(10, "a").input(11, "outer").enter(20, "a").input(21, "inner").leave_thrown(25);
  t.output(31, "result").leave(40).step(100, 0);
  const Profile profile = fold(script, 300);
  ASSERT_EQ(profile.find("a")->shapes.size(), 1U);
  EXPECT_EQ(profile.find("a")->shapes[0].input, "outer");
  EXPECT_EQ(profile.find("a")->shapes[0].output, "result");
}

}  // namespace
}  // namespace layertrace
