// The optimizers' steps. `Optimizer::step` is pure virtual, but the concrete ones are exported and
// called through vtables that name them, so defining them here catches calls of an object on the
// stack and through a pointer alike.
#include <torch/nn/module.h>
#include <torch/optim.h>

#include <atomic>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include <layertrace/binding.h>

#include "record/definitions.h"
#include "torch/auto_session.h"
#include "torch/next_function.h"
#include "torch/scopes.h"
#include "torch/torch_hooks.h"

namespace layertrace {
namespace {

NameId region_name(const char* name) { return NameTable::instance().intern(name); }

// A module clears its children's gradients by calling the same function on each: the outermost call
// stands for all.
class OutermostZeroGrad {
 public:
  OutermostZeroGrad() : outermost_(!std::exchange(inside, true)) {}
  ~OutermostZeroGrad() {
    if (outermost_) inside = false;
  }
  OutermostZeroGrad(const OutermostZeroGrad&) =
      delete;  // it stands for a stretch of one thread's stack
  OutermostZeroGrad& operator=(const OutermostZeroGrad&) = delete;
  explicit operator bool() const { return outermost_; }

 private:
  static inline thread_local bool inside = false;
  const bool outermost_;
};

// ---- What an optimizer keeps ----

template <typename Visit>
void each_tensor(const torch::optim::AdagradParamState& state, Visit visit) {
  visit(state.sum());
}
template <typename Visit>
void each_tensor(const torch::optim::AdamParamState& state, Visit visit) {
  visit(state.exp_avg());
  visit(state.exp_avg_sq());
  visit(state.max_exp_avg_sq());
}
template <typename Visit>
void each_tensor(const torch::optim::AdamWParamState& state, Visit visit) {
  visit(state.exp_avg());
  visit(state.exp_avg_sq());
  visit(state.max_exp_avg_sq());
}
template <typename Visit>
void each_tensor(const torch::optim::LBFGSParamState& state, Visit visit) {
  visit(state.d());
  visit(state.prev_flat_grad());
  for (const at::Tensor& each : state.old_dirs()) visit(each);
  for (const at::Tensor& each : state.old_stps()) visit(each);
  for (const at::Tensor& each : state.ro()) visit(each);
  if (!state.al()) return;
  for (const at::Tensor& each : *state.al()) visit(each);
}
template <typename Visit>
void each_tensor(const torch::optim::RMSpropParamState& state, Visit visit) {
  visit(state.square_avg());
  visit(state.momentum_buffer());
  visit(state.grad_avg());
}
template <typename Visit>
void each_tensor(const torch::optim::SGDParamState& state, Visit visit) {
  visit(state.momentum_buffer());
}

// While operators are counted: it may be gone when the session ends. As of allocators, where there
// is something on a GPU only that counts.
template <typename State>
void tell_state(const torch::optim::Optimizer& optimizer) noexcept {
  if (!TorchHooks::is_counting.load(std::memory_order_relaxed)) return;
  try {
    std::uint64_t on_host = 0;
    std::uint64_t on_gpus = 0;
    std::unordered_set<const c10::TensorImpl*> seen;
    for (const auto& [parameter, state] : optimizer.state()) {
      const auto* known = dynamic_cast<const State*>(state.get());
      if (known == nullptr) continue;
      each_tensor(*known, [&](const at::Tensor& tensor) {
        if (!tensor.defined() || !seen.insert(tensor.unsafeGetTensorImpl()).second) return;
        (tensor.is_cuda() ? on_gpus : on_host) += tensor.nbytes();
      });
    }
    binding::tell_optimizer(&optimizer, on_gpus != 0 ? on_gpus : on_host);
  } catch (...) {  // a tensor that tells no size, no memory: it is not known
  }
}

}  // namespace
}  // namespace layertrace

namespace torch::optim {

using layertrace::InterposedRegion;
using layertrace::next_function;
using layertrace::Phase;

#define LAYERTRACE_OPTIMIZER(Class, symbol)                                         \
  Tensor Class::step(LossClosure closure) {                                         \
    static const auto next = next_function<Tensor, Class, LossClosure>(symbol);     \
    static const layertrace::NameId name = layertrace::region_name(#Class ".step"); \
    Tensor loss;                                                                    \
    {                                                                               \
      const InterposedRegion region(name, Phase::kOptimizer);                       \
      loss = next(this, std::move(closure));                                        \
    }                                                                               \
    layertrace::tell_state<Class##ParamState>(*this);                               \
    layertrace::auto_session::on_optimizer_step(this);                              \
    return loss;                                                                    \
  }

LAYERTRACE_OPTIMIZER(Adagrad, "_ZN5torch5optim7Adagrad4stepESt8functionIFN2at6TensorEvEE")
LAYERTRACE_OPTIMIZER(Adam, "_ZN5torch5optim4Adam4stepESt8functionIFN2at6TensorEvEE")
LAYERTRACE_OPTIMIZER(AdamW, "_ZN5torch5optim5AdamW4stepESt8functionIFN2at6TensorEvEE")
LAYERTRACE_OPTIMIZER(LBFGS, "_ZN5torch5optim5LBFGS4stepESt8functionIFN2at6TensorEvEE")
LAYERTRACE_OPTIMIZER(RMSprop, "_ZN5torch5optim7RMSprop4stepESt8functionIFN2at6TensorEvEE")
LAYERTRACE_OPTIMIZER(SGD, "_ZN5torch5optim3SGD4stepESt8functionIFN2at6TensorEvEE")

#undef LAYERTRACE_OPTIMIZER

void Optimizer::zero_grad(bool set_to_none) {
  static const auto next =
      next_function<void, Optimizer, bool>("_ZN5torch5optim9Optimizer9zero_gradEb");
  static const layertrace::NameId name = layertrace::region_name("zero_grad");
  const InterposedRegion region(name, Phase::kOptimizer);
  next(this, set_to_none);
}

}  // namespace torch::optim

namespace torch::nn {

void Module::zero_grad(bool set_to_none) {
  static const auto next =
      layertrace::next_function<void, Module, bool>("_ZN5torch2nn6Module9zero_gradEb");
  static const layertrace::NameId name = layertrace::region_name("zero_grad");
  const layertrace::OutermostZeroGrad outermost;
  if (!outermost) return next(this, set_to_none);
  const layertrace::InterposedRegion region(name, layertrace::Phase::kOptimizer);
  next(this, set_to_none);
}

}  // namespace torch::nn
