#include "flops/charge_stack.h"

namespace layertrace {

ChargeStack::Entered ChargeStack::enter(const BoundFormula& formula, OpArguments inputs) {
  if (formula.is_silent()) return {};
  Frame frame;
  if (!frames_.empty()) {
    const Frame& around = frames_.back();
    if (around.covers_all) return {};
    frame.covers_aux = around.covers_aux;
    frame.covers_fvcore = around.covers_fvcore;
  }
  frame.kind = formula.kind();

  Entered entered;
  std::optional<OpCost> cost;
  if (frame.kind != OpKind::kFree || !frame.covers_aux) {
    cost = formula.cost(inputs);
    frame.is_countable = cost.has_value();
    if (cost) enter_countable(*cost, frame, entered.charge);
  }
  if (!frame.covers_fvcore) {
    if (const auto flops = formula.fvcore_flops(inputs, cost)) {
      entered.charge.fvcore_flops = *flops;
      frame.covers_fvcore = true;
    }
  }
  frames_.push_back(frame);
  entered.depth = static_cast<Depth>(frames_.size());
  return entered;
}

void ChargeStack::enter_countable(const OpCost& cost, Frame& frame, Charge& charge) {
  switch (frame.kind) {
    case OpKind::kPrimitive:
      charge.cost = cost;
      if (frame.covers_aux) charge.cost.aux_flops = 0;
      frame.covers_all = true;
      frame.charged_flops = true;
      frame.charged_aux = charge.cost.aux_flops != 0;
      break;
    case OpKind::kFree:
      charge.cost.aux_flops = cost.aux_flops;
      frame.charged_aux = frame.covers_aux = cost.aux_flops != 0;
      break;
    case OpKind::kWrapper:
      frame.own = cost;
      break;
    case OpKind::kUnknown:
      break;
  }
}

Charge ChargeStack::leave(Depth depth) {
  if (depth == 0 || depth > frames_.size()) return {};
  while (frames_.size() > depth) pop();

  Charge charge;
  Frame& frame = frames_.back();
  if (frame.kind == OpKind::kWrapper && frame.is_countable && !frame.charged_flops) {
    charge.cost = frame.own;
    if (frame.covers_aux || frame.charged_aux) charge.cost.aux_flops = 0;
    frame.charged_flops = charge.cost.flops != 0;
    frame.charged_aux |= charge.cost.aux_flops != 0;
  } else if (frame.kind == OpKind::kUnknown) {
    charge.is_uncounted = !frame.charged_flops && !frame.covers_aux;
  } else if (!frame.is_countable && frame.kind != OpKind::kFree) {
    charge.is_uncounted = !frame.charged_flops && !frame.was_uncounted;
  }
  frame.was_uncounted |= charge.is_uncounted;
  pop();
  return charge;
}

// Tells the operator around what there was.
void ChargeStack::pop() {
  const Frame inner = frames_.back();
  frames_.pop_back();
  if (frames_.empty()) return;
  Frame& around = frames_.back();
  around.charged_flops |= inner.charged_flops;
  around.charged_aux |= inner.charged_aux;
  around.was_uncounted |= inner.was_uncounted;
}

}  // namespace layertrace
