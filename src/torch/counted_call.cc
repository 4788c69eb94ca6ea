// A call of a module while operators are counted: what goes in and what comes out, and what the
// user says of it in place of what is counted inside.
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>

#include <layertrace/binding.h>
#include <layertrace/layertrace.h>

#include "session/class_formulas.h"
#include "torch/call_watch.h"
#include "torch/libtorch_modules.h"
#include "torch/op_counter.h"
#include "torch/open_norm.h"
#include "torch/replaced_counts.h"
#include "torch/tensor_facts.h"
#include "torch/torch_hooks.h"

namespace layertrace::detail {

class CountedCall {
 public:
  explicit CountedCall(const torch::nn::Module& module) noexcept : module_(module) {}
  ~CountedCall() {
    if (replaces_) layertrace::end_replacing();
  }
  CountedCall(const CountedCall&) = delete;  // what it has begun it ends once
  CountedCall& operator=(const CountedCall&) = delete;

  // What the call computes is known, or will be when it is over.
  void replace_by(std::uint64_t flops) noexcept {
    flops_ = flops;
    replaces_ = layertrace::begin_replacing() != 0;
  }
  void replace_by(std::shared_ptr<const ModuleFormula> formula) noexcept {
    formula_ = std::move(formula);
    replaces_ = layertrace::begin_replacing() != 0;
  }

  void take(CallValues inputs) {
    if (inputs.find == nullptr) return;
    tell(inputs, /*is_output=*/false, inputs_);
    has_input_ = is_counting();
  }
  void give(CallValues output) {
    if (std::exchange(has_output_, true)) return;
    if (!std::exchange(has_input_, true)) note("", /*is_output=*/false);
    tell(output, /*is_output=*/true, output_);
  }
  void end() {
    if (has_input_ && !has_output_) note("", /*is_output=*/true);
    if (!std::exchange(replaces_, false)) return;
    const auto flops = formula_ != nullptr ? ask() : flops_;
    // Of one inside another the outer one speaks.
    if (layertrace::end_replacing() == 0 && is_counting()) tell_replaced(type_name(module_), flops);
  }

 private:
  static constexpr std::size_t kMostTensors = 64;  // the text says that there are more

  static bool is_counting() noexcept {
    return TorchHooks::is_counting.load(std::memory_order_relaxed);
  }
  static void note(const std::string& text, bool is_output) noexcept {
    if (is_counting()) binding::note_shapes(text, is_output);
  }

  void tell(CallValues values, bool is_output, Shapes& shapes) const {
    Tensors tensors;
    values.find(values.values, tensors);
    std::string text;
    std::size_t count = 0;
    for (const at::Tensor* tensor : tensors) {
      if (!tensor->defined()) continue;
      if (!text.empty()) text += ", ";
      if (++count > kMostTensors) {
        text += "…";
        break;
      }
      append_shape(text, *tensor->unsafeGetTensorImpl());
    }
    note(text, is_output);
    if (formula_ == nullptr) return;
    for (const at::Tensor* tensor : tensors) {
      if (tensor->defined())
        shapes.push_back(layertrace::facts_of(*tensor->unsafeGetTensorImpl()).shape);
    }
  }

  // What a formula throws is its own affair: the program that is observed goes on.
  std::optional<std::uint64_t> ask() const noexcept {
    try {
      return (*formula_)(module_, inputs_, output_);
    } catch (...) {
      return std::nullopt;
    }
  }

  const torch::nn::Module& module_;
  std::optional<std::uint64_t> flops_;
  std::shared_ptr<const ModuleFormula> formula_;
  Shapes inputs_;
  Shapes output_;
  bool has_input_ = false;  // that was told, or is taken to be
  bool has_output_ = false;
  bool replaces_ = false;
};

namespace {

// Now, or once the model's shapes are known inside this call.
bool may_count() noexcept {
  return TorchHooks::is_counting.load(std::memory_order_relaxed) || call_watch.awaits;
}

}  // namespace

CountedCall* begin_call(const torch::nn::Module* module, CallValues inputs) noexcept {
  if (!may_count()) return nullptr;
  try {
    auto formula = has_class_formulas() ? find_class_formula(*module, typeid(*module)) : nullptr;
    if (formula == nullptr && !TorchHooks::is_counting.load(std::memory_order_relaxed))
      return nullptr;
    auto call = std::make_unique<CountedCall>(*module);
    if (formula != nullptr) call->replace_by(std::move(formula));
    call->take(inputs);
    return call.release();
  } catch (...) {  // no memory: nothing is told of this call
    return nullptr;
  }
}

CountedCall* begin_call(const torch::nn::Module* module, std::uint64_t flops) noexcept {
  if (!may_count()) return nullptr;
  try {
    auto call = std::make_unique<CountedCall>(*module);
    call->replace_by(flops);
    return call.release();
  } catch (...) {  // likewise
    return nullptr;
  }
}

void note_output(CountedCall& call, CallValues output) noexcept {
  try {
    call.give(output);
  } catch (...) {  // likewise
  }
}

void end_call(CountedCall* call, Entry entry) noexcept {
  const std::unique_ptr<CountedCall> ended(call);
  if (std::uncaught_exceptions() > entry.exceptions) return;
  try {
    ended->end();
  } catch (...) {  // likewise
  }
}

void abandon_call(CountedCall* call) noexcept { delete call; }

}  // namespace layertrace::detail
