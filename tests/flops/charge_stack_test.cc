// Each product is charged once, wherever in a chain of operators its formula is.
#include "flops/charge_stack.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "flops/call_builder.h"

namespace layertrace {
namespace {

// What a run of nested operators was charged in all.
class ChargedRun {
 public:
  // Calls the operator, and what it calls inside.
  template <typename Inside>
  Charge operator()(const CallBuilder& call, const Inside& inside) {
    const BoundFormula formula = call.bind(table);
    const auto entered = stack.enter(formula, call.inputs());
    add(entered.charge);
    inside();
    const Charge left = stack.leave(entered.depth);
    add(left);
    if (left.is_uncounted) uncounted.push_back(call.signature().name);
    return left;
  }
  Charge operator()(const CallBuilder& call) {
    return (*this)(call, [] {});
  }

  FormulaTable table;
  ChargeStack stack;
  std::uint64_t flops = 0;
  std::uint64_t aux_flops = 0;
  std::uint64_t fvcore_flops = 0;
  std::vector<std::string> uncounted;

 private:
  void add(const Charge& charge) {
    flops += charge.cost.flops;
    aux_flops += charge.cost.aux_flops;
    fvcore_flops += charge.fvcore_flops;
  }
};

struct ChargeStackTest : testing::Test {
  ChargeStackTest() {
    linear.tensor("input", {2, 3, 5}).tensor("weight", {7, 5}).tensor("bias", {7});
    addmm.tensor("self", {7}).tensor("mat1", {6, 5}).tensor("mat2", {5, 7});
    mm.tensor("self", {6, 5}).tensor("mat2", {5, 7});
    sparse_mm.tensor("self", {6, 5}, false).tensor("mat2", {5, 7});
    relu.tensor("self", {10});
    mean.tensor("self", {10});
  }

  static constexpr std::uint64_t kFlops = std::uint64_t{2} * 6 * 5 * 7;
  CallBuilder linear{"aten::linear"};
  CallBuilder addmm{"aten::addmm"};
  CallBuilder mm{"aten::mm"};
  CallBuilder sparse_mm{"aten::mm"};
  CallBuilder relu{"aten::relu"};
  CallBuilder mean{"aten::mean"};
  CallBuilder unknown{"mylib::op"};
  CallBuilder view{"aten::view"};
  ChargedRun run;
};

TEST_F(ChargeStackTest, ChargesAPrimitiveOnEntry) {
  const BoundFormula formula = mm.bind();
  const auto entered = run.stack.enter(formula, mm.inputs());
  EXPECT_EQ(entered.charge.cost.flops, kFlops);
  EXPECT_EQ(run.stack.leave(entered.depth).cost, OpCost());
  EXPECT_EQ(run.stack.depth(), 0u);
}

TEST_F(ChargeStackTest, ChargesWhatAWrapperCallsInItsPlace) {
  run(linear, [&] {
    run(view);
    run(addmm);
  });
  EXPECT_EQ(run.flops, kFlops);
  EXPECT_EQ(run.aux_flops, 42u);
}

TEST_F(ChargeStackTest, ChargesAWrapperThatCallsNothing) {
  const Charge left = run(linear, [&] { run(view); });
  EXPECT_EQ(left.cost.flops, kFlops);
  EXPECT_EQ(left.cost.aux_flops, 42u);
  EXPECT_EQ(run.flops, kFlops);
}

TEST_F(ChargeStackTest, ChargesNothingInsideWhatWasCharged) {
  run(addmm, [&] {
    run(mm);
    run(relu);
    run(unknown);
    run(linear);
  });
  EXPECT_EQ(run.flops, kFlops);
  EXPECT_EQ(run.aux_flops, 42u);
  EXPECT_TRUE(run.uncounted.empty());
}

TEST_F(ChargeStackTest, ChargesTheInnermostOfNestedWrappers) {
  CallBuilder outer("aten::matmul");
  outer.tensor("self", {6, 5}).tensor("other", {5, 7});
  run(outer, [&] { run(linear); });  // nothing inside linear: its own
  EXPECT_EQ(run.flops, kFlops);
  run(outer, [&] { run(linear, [&] { run(addmm); }); });
  EXPECT_EQ(run.flops, 2 * kFlops);
  run(outer, [&] {
    run(mm);
    run(mm);
  });  // as executed
  EXPECT_EQ(run.flops, 4 * kFlops);
}

TEST_F(ChargeStackTest, ChargesAuxOnceToo) {
  CallBuilder sum("aten::sum");
  sum.tensor("self", {10});
  run(mean, [&] { run(sum); });
  EXPECT_EQ(run.aux_flops, 10u);
  run(mean, [&] { run(mm); });  // a contraction is charged wherever it is
  EXPECT_EQ(run.flops, kFlops);
  run(mean, [&] { run(view, [&] { run(sum); }); });
  EXPECT_EQ(run.aux_flops, 30u);
}

TEST_F(ChargeStackTest, ChargesNoAuxTwiceInAWrapper) {
  CallBuilder bias("aten::add");
  bias.tensor("self", {6, 7}).tensor("other", {7});
  run(linear, [&] { run(bias); });  // the product is its backend's own
  EXPECT_EQ(run.flops, kFlops);
  EXPECT_EQ(run.aux_flops, 42u);
}

TEST_F(ChargeStackTest, ListsWhatHasNoFormula) {
  run(unknown);
  run(unknown, [&] {
    run(view);
    run(relu);
  });
  EXPECT_EQ(run.uncounted, (std::vector<std::string>{"mylib::op", "mylib::op"}));
  run.uncounted.clear();
  run(unknown, [&] { run(mm); });  // counted inside
  run(mean, [&] { run(unknown); });
  EXPECT_TRUE(run.uncounted.empty());
  EXPECT_EQ(run.flops, kFlops);
}

TEST_F(ChargeStackTest, ListsWhatCannotBeCountedByTheInnermost) {
  run(sparse_mm);
  EXPECT_EQ(run.uncounted, (std::vector<std::string>{"aten::mm"}));
  run.uncounted.clear();
  CallBuilder sparse_linear("aten::linear");
  sparse_linear.tensor("input", {6, 5}, false).tensor("weight", {7, 5});
  run(sparse_linear);
  EXPECT_EQ(run.uncounted, (std::vector<std::string>{"aten::linear"}));
  run.uncounted.clear();
  run(sparse_linear, [&] { run(sparse_mm); });
  EXPECT_EQ(run.uncounted, (std::vector<std::string>{"aten::mm"}));
  run.uncounted.clear();
  run(sparse_mm, [&] { run(mm); });  // its parts can be
  EXPECT_TRUE(run.uncounted.empty());
  EXPECT_EQ(run.flops, kFlops);
}

TEST_F(ChargeStackTest, UsesTheUsersFormula) {
  run.table.add("mylib::op", [](const OpSignature&, OpArguments) { return OpCost{.flops = 99}; });
  run(unknown, [&] { run(mm); });
  EXPECT_EQ(run.flops, 99u);
}

TEST_F(ChargeStackTest, SurvivesLostEnds) {
  const BoundFormula of_linear = linear.bind();
  const BoundFormula of_addmm = addmm.bind();
  const auto outer = run.stack.enter(of_linear, linear.inputs());
  const auto inner = run.stack.enter(of_addmm, addmm.inputs());
  EXPECT_EQ(inner.charge.cost.flops, kFlops);
  // The inner end is lost; the outer one has seen the charge.
  EXPECT_EQ(run.stack.leave(outer.depth).cost.flops, 0u);
  EXPECT_EQ(run.stack.depth(), 0u);
  EXPECT_EQ(run.stack.leave(inner.depth).cost.flops, 0u);  // too late
  run(linear);
  EXPECT_EQ(run.flops, kFlops);

  // A wrapper whose end is lost is not charged: nobody knows whether it ran.
  const auto again = run.stack.enter(of_linear, linear.inputs());
  run.stack.enter(of_linear, linear.inputs());
  EXPECT_EQ(run.stack.leave(again.depth).cost.flops, kFlops);
  run.stack.enter(of_addmm, addmm.inputs());
  run.stack.clear();
  run(mm);
  EXPECT_EQ(run.flops, 2 * kFlops);
}

TEST_F(ChargeStackTest, SurvivesAnException) {
  try {
    const BoundFormula formula = linear.bind();
    struct Guard {
      ChargeStack& stack;
      ChargeStack::Depth depth;
      ~Guard() { stack.leave(depth); }
    };
    const Guard guard{run.stack, run.stack.enter(formula, linear.inputs()).depth};
    run.stack.enter(formula, linear.inputs());
    throw std::runtime_error("the user's own");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(run.stack.depth(), 0u);
  }
}

TEST_F(ChargeStackTest, GoesDeep) {
  const BoundFormula formula = unknown.bind();
  constexpr std::size_t kDeep = 100'000;
  std::vector<ChargeStack::Depth> depths(kDeep);
  for (auto& depth : depths) depth = run.stack.enter(formula, {}).depth;
  run(mm);
  for (; !depths.empty(); depths.pop_back()) {
    EXPECT_FALSE(run.stack.leave(depths.back()).is_uncounted);  // something is counted inside
  }
  EXPECT_EQ(run.flops, kFlops);
}

TEST_F(ChargeStackTest, GivesFvcoreItsOwnView) {
  run(linear, [&] { run(addmm); });
  EXPECT_EQ(run.fvcore_flops, kFlops / 2);
  CallBuilder attention("aten::scaled_dot_product_attention");
  attention.tensor("query", {1, 2, 3, 4}).tensor("key", {1, 2, 3, 4}).tensor("value", {1, 2, 3, 4});
  run(attention, [&] { run(mm); });  // fvcore sees one operator, which it does not know
  EXPECT_EQ(run.flops, 2 * kFlops);
  EXPECT_EQ(run.fvcore_flops, kFlops / 2);
  run(unknown, [&] { run(mm); });
  EXPECT_EQ(run.fvcore_flops, kFlops);
}

}  // namespace
}  // namespace layertrace
