// Operators call operators: linear calls addmm, convolution calls the library's own. Each product
// must be counted once, wherever in the chain its formula is. This stack follows the operators that
// are running on one thread and says what each of them is to be charged:
//
//   - A primitive is charged on entry, and covers all that runs inside.
//   - A wrapper is charged on leaving, if no contraction was charged inside: its backend does not
//     ask others (a fused LSTM, a fused encoder layer). Its cost is worked out on entry, since its
//     inputs are gone by then. Auxiliary operations that were charged inside it are not charged
//     again.
//   - An operator that costs only aux_flops covers those of all inside, not a contraction there.
//   - An operator with no formula is uncounted if it ends with no contraction charged inside, and
//     none around it was charged. A primitive or wrapper whose formula cannot count this call is
//     so only if nothing inside it was uncounted either: the inner one is the one to name.
//
// One per thread; not shared. What is left open by a lost end is dropped when an enclosing operator
// leaves, and charged nothing more; clear() at a boundary drops all (a step, a recording's start).
#pragma once

#include <cstdint>
#include <vector>

#include "flops/formulas.h"

namespace layertrace {

struct Charge {
  OpCost cost;  // zero where nothing is charged
  std::uint64_t fvcore_flops = 0;
  bool is_uncounted = false;  // on leaving: to be listed by name
};

class ChargeStack {
 public:
  using Depth = std::uint32_t;

  struct Entered {
    Charge charge;
    Depth depth = 0;  // to be given to leave(); 0: leaving need not be told
  };

  // Allocates only when operators are nested more deeply than ever before.
  Entered enter(const BoundFormula& formula, OpArguments inputs);
  // By the depth that enter() gave; what is deeper has lost its end.
  Charge leave(Depth depth);

  void clear() noexcept { frames_.clear(); }
  std::size_t depth() const noexcept { return frames_.size(); }

 private:
  struct Frame {
    OpCost own;  // of a wrapper, until it leaves
    OpKind kind = OpKind::kFree;
    bool is_countable = true;  // its formula gave a cost
    // What need not be charged inside, by this operator or one around it.
    bool covers_all = false;
    bool covers_aux = false;
    bool covers_fvcore = false;
    // What was charged or listed inside, by this operator too.
    bool charged_flops = false;
    bool charged_aux = false;
    bool was_uncounted = false;
  };
  void enter_countable(const OpCost& cost, Frame& frame, Charge& charge);
  void pop();

  std::vector<Frame> frames_;
};

}  // namespace layertrace
