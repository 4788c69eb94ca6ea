#include "torch/op_counter.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flops/charge_stack.h"
#include "flops/formulas.h"
#include "record/definitions.h"
#include "roofline/device_peaks.h"
#include "torch/op_arguments.h"
#include "torch/op_facts.h"

namespace layertrace {
namespace {

struct OpFormula {
  OpFacts facts;
  const char* text = nullptr;  // our copy, to be sure that the address still says the same
  BoundFormula formula;
  bool is_operator = false;  // not something else that is reported by a name
  bool moves = false;        // it reads and writes memory itself
  bool gives_self = false;   // in place: what it writes is its first argument
};

// Makes memory, without touching it.
bool only_allocates(std::string_view name) noexcept {
  constexpr std::string_view kNames[] = {"aten::empty", "aten::new_empty", "aten::_empty",
                                         "aten::resize", "aten::set_"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view each) { return name.starts_with(each); });
}

// Gives another look at what it was given, without touching it.
bool is_view(const c10::FunctionSchema& schema) noexcept {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const auto& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

bool gives_self(const c10::FunctionSchema& schema) noexcept {
  if (schema.returns().size() != 1 || schema.arguments().empty()) return false;
  const c10::Argument& self = schema.arguments()[0];
  const auto* written = schema.returns()[0].alias_info();
  return self.name() == "self" && self.alias_info() != nullptr && written != nullptr &&
         written->isWrite() && *self.alias_info() == *written;
}

OpFormula formula_of(const at::RecordFunction& fn, const char* text) {
  OpFormula op;
  const NameId interned = NameTable::instance().intern(text);
  op.facts = {interned, is_composite(fn) ? kOpComposite : std::uint8_t{0}};
  op.text = kept_text(interned, text);
  const auto name = fn.operator_name();
  const auto handle = name ? c10::Dispatcher::singleton().findOp(*name) : std::nullopt;
  if (!handle || !handle->hasSchema()) return op;
  op.is_operator = true;
  OpSignature signature{
      .name = name->name, .overload = name->overload_name, .arguments = {}, .is_composite = false};
  for (const c10::Argument& argument : handle->schema().arguments())
    signature.arguments.push_back(argument.name());
  signature.is_composite = op.facts.flags == kOpComposite;
  // What the meta device decomposes operators into goes by their names.
  constexpr std::string_view kPrims = "prims::";
  if (signature.name.starts_with(kPrims)) signature.name.replace(0, kPrims.size(), "aten::");
  op.formula = FormulaTable().bind(signature);
  op.moves = !signature.is_composite && op.formula.kind() != OpKind::kWrapper &&
             !only_allocates(signature.name) && !is_view(handle->schema());
  op.gives_self = gives_self(handle->schema());
  return op;
}

// What a thread has looked up, by the address of the operator's name, which lives as long as the
// operator. Formulas that were added since make it look again.
class KnownFormulas {
 public:
  const OpFormula& of(const at::RecordFunction& fn, const char* text) {
    if (const std::uint64_t revision = process_formula_revision(); revision != revision_) {
      forget();
      revision_ = revision;
    }
    Recent& recent = recent_[place_of(text)];
    // A name that was made up for one call may stand where another was.
    if (recent.text == text && std::strcmp(recent.op->text, text) == 0) [[likely]]
      return *recent.op;
    recent = {text, &find(fn, text)};
    return *recent.op;
  }

 private:
  static constexpr std::size_t kMostKnown = 8192;
  static constexpr std::size_t kRecent = 1024;

  struct Recent {
    const char* text = nullptr;
    const OpFormula* op = nullptr;  // in known_, whose entries stay where they are
  };

  static std::size_t place_of(const char* text) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(text);
    return (bits >> 4 ^ bits >> 14) % kRecent;
  }

  void forget() noexcept {
    std::ranges::fill(recent_, Recent{});
    known_.clear();
  }

  const OpFormula& find(const at::RecordFunction& fn, const char* text) {
    const auto found = known_.find(text);
    if (found != known_.end() && std::strcmp(found->second.text, text) == 0) return found->second;
    if (known_.size() >= kMostKnown) forget();
    return known_.insert_or_assign(text, formula_of(fn, text)).first->second;
  }

  std::vector<Recent> recent_ = std::vector<Recent>(kRecent);  // a thread's own memory is scarce
  std::unordered_map<const char*, OpFormula> known_;
  std::uint64_t revision_ = 0;
};

// ---- Number formats ----

std::uint8_t format_of(c10::ScalarType type) noexcept {
  using roofline::Dtype;
  const auto number = [](Dtype dtype) { return static_cast<std::uint8_t>(dtype); };
  switch (type) {
    case c10::ScalarType::Double:
      return number(Dtype::kFp64);
    case c10::ScalarType::Float:
      return number(Dtype::kFp32);
    case c10::ScalarType::Half:
      return number(Dtype::kFp16);
    case c10::ScalarType::BFloat16:
      return number(Dtype::kBf16);
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Float8_e4m3fnuz:
    case c10::ScalarType::Float8_e5m2fnuz:
      return number(Dtype::kFp8);
    case c10::ScalarType::Char:
    case c10::ScalarType::Byte:
    case c10::ScalarType::QInt8:
    case c10::ScalarType::QUInt8:
      return number(Dtype::kInt8);
    case c10::ScalarType::Float4_e2m1fn_x2:
      return number(Dtype::kFp4);
    default:
      return kOtherFormat;
  }
}

// Of a contraction's factors. On tensor cores float32 may be multiplied as TF32.
std::uint8_t format_of(c10::ArrayRef<const c10::IValue> inputs, std::string_view name) {
  for (const c10::IValue& value : inputs) {
    const at::Tensor* tensor = nullptr;
    if (value.isTensor()) {
      tensor = &value.toTensor();
    } else if (value.isList() && !value.toListRef().empty() && value.toListRef()[0].isTensor()) {
      tensor = &value.toListRef()[0].toTensor();
    }
    if (tensor == nullptr || !tensor->defined()) continue;
    if (tensor->scalar_type() != c10::ScalarType::Float || !tensor->is_cuda())
      return format_of(tensor->scalar_type());
    const bool is_convolution =
        name.find("conv") != std::string_view::npos && at::globalContext().userEnabledCuDNN();
    const bool is_tf32 = is_convolution ? at::globalContext().allowTF32CuDNN()
                                        : at::globalContext().allowTF32CuBLAS();
    return static_cast<std::uint8_t>(is_tf32 ? roofline::Dtype::kTf32 : roofline::Dtype::kFp32);
  }
  return kOtherFormat;
}

// ---- The operators that run on a thread ----

struct Running {
  const at::RecordFunction* fn = nullptr;
  NameId name = kNoName;  // of none: nothing is known of it
  ChargeStack::Depth depth = 0;
  Charge charge = {};
  std::uint64_t bytes = 0;
  std::uint8_t format = kOtherFormat;
  bool moves = false;        // its bytes are counted, and so not those of what runs inside
  bool writes_self = false;  // which is counted already
};

struct Counter {
  KnownFormulas formulas;
  ChargeStack charges;
  ArgumentReader arguments;
  std::vector<Running> running;
  std::size_t moving = 0;     // of those that run, how many have their bytes counted
  std::size_t replacing = 0;  // module calls that run, of which the user says what they compute
  std::uint8_t replaced_format = static_cast<std::uint8_t>(roofline::Dtype::kFp32);
  bool asks_formula = false;  // which may run operators of its own: they are none of the program's
  OpFacts facts;
  OpAmounts told;
};

// A thread's own is found by one load; nullptr before its first operator, and while it ends.
constinit thread_local Counter* own_counter __attribute__((tls_model("initial-exec"))) = nullptr;
// Operators may still run while the thread ends, after this.
constinit thread_local bool is_over = false;

struct CounterHolder {
  CounterHolder() { own_counter = &counter; }
  ~CounterHolder() {
    own_counter = nullptr;
    is_over = true;
  }
  CounterHolder(const CounterHolder&) = delete;  // its address is known
  CounterHolder& operator=(const CounterHolder&) = delete;
  Counter counter;
};

Counter* make_counter() noexcept {
  if (is_over) return nullptr;
  try {
    thread_local CounterHolder holder;
    return &holder.counter;
  } catch (...) {  // no memory: this operator is not counted
    return nullptr;
  }
}

// nullptr while the thread ends.
Counter* this_counter() noexcept {
  Counter* const counter = own_counter;
  return counter != nullptr ? counter : make_counter();
}

// PyTorch copies an operator's outputs for whoever asked to see them: for each, in memory that it
// takes for that. It looks whether anybody did once the operator has begun, so that where we alone
// listen it is spared for those whose outputs tell nothing (2.15; there is no function for it).
template <auto kMember>
struct StepCallbacksOf {
  friend at::StepCallbacks& step_callbacks_of(at::RecordFunction& fn) { return fn.*kMember; }
};
at::StepCallbacks& step_callbacks_of(at::RecordFunction& fn);
template struct StepCallbacksOf<&at::RecordFunction::step_callbacks_>;

void spare_outputs(const at::RecordFunction& fn) noexcept {
  at::StepCallbacks& listeners = step_callbacks_of(const_cast<at::RecordFunction&>(fn));
  if (listeners.callbacks_.size() == 1) listeners.needs_outputs_ = false;
}

void begin(Counter& counter, const at::RecordFunction& fn, const char* name) {
  const OpFormula& op = counter.formulas.of(fn, name);
  const auto inputs = fn.inputs();
  Running& running = counter.running.back();
  running.name = op.facts.name;
  counter.facts = op.facts;
  if (op.moves && counter.moving == 0) {
    running.moves = true;
    ++counter.moving;
    for (const c10::IValue& value : inputs) running.bytes += bytes_of(value);
    running.writes_self = op.gives_self && !inputs.empty();
    if (running.writes_self) running.bytes += bytes_of(inputs[0]);
  }
  const bool may_contract =
      op.formula.kind() == OpKind::kPrimitive || op.formula.kind() == OpKind::kWrapper;
  bool wants_outputs = running.moves && !running.writes_self;
  if (op.is_operator && !op.formula.is_silent()) {
    if (op.formula.kind() != OpKind::kFree) running.format = format_of(inputs, op.text);
    const OpArguments arguments = counter.arguments.read(inputs);
    counter.asks_formula = true;
    const auto entered = counter.charges.enter(op.formula, arguments);
    counter.asks_formula = false;
    // The formula may have run operators of its own, beside which this one has moved.
    counter.running.back().depth = entered.depth;
    counter.running.back().charge = entered.charge;
    wants_outputs |= may_contract && entered.depth != 0;
  }
  if (!wants_outputs) spare_outputs(fn);
}

void end(Counter& counter, const Running& running, const at::RecordFunction& fn) {
  const Charge left = counter.charges.leave(running.depth);
  const OpCost& entered = running.charge.cost;
  OpAmounts& told = counter.told = {};
  told.op = running.name;
  if (counter.replacing == 0) {
    told.flops = entered.flops + left.cost.flops;
    told.aux_flops = entered.aux_flops + left.cost.aux_flops;
    told.flops_causal = entered.flops_causal + left.cost.flops_causal;
    told.fvcore_flops = running.charge.fvcore_flops + left.fvcore_flops;
    told.is_uncounted = left.is_uncounted;
  } else if (entered.flops + left.cost.flops != 0) {
    counter.replaced_format = running.format;
  }
  if (told.flops != 0) told.format = running.format;
  const auto& outputs = fn.outputs();
  if (running.moves) {
    told.bytes = running.bytes;
    if (!running.writes_self) {
      for (const c10::IValue& value : outputs) told.bytes += bytes_of(value);
    }
  }
  if (told.flops != 0 && !outputs.empty() && outputs[0].isTensor()) {
    const TensorShape first = shape_of(outputs[0].toTensor());
    if (first.is_plain) told.activations = elements(first).value();
  }
}

bool is_worth_telling(const OpAmounts& amounts) noexcept {
  return amounts.flops != 0 || amounts.aux_flops != 0 || amounts.bytes != 0 ||
         amounts.fvcore_flops != 0 || amounts.is_uncounted;
}

}  // namespace

const OpFacts* begin_counting(const at::RecordFunction& fn, const char* name) noexcept {
  Counter* counter = this_counter();
  if (counter == nullptr) return nullptr;
  try {
    counter->running.emplace_back().fn = &fn;
    if (!counter->asks_formula) {
      begin(*counter, fn, name);
      return &counter->facts;
    }
  } catch (...) {  // a tensor that tells no sizes, no memory: it stays uncounted
    counter->asks_formula = false;
    if (!counter->running.empty() && counter->running.back().fn == &fn)
      counter->running.back().name = kNoName;
  }
  return nullptr;
}

std::size_t begin_replacing() noexcept {
  Counter* counter = this_counter();
  return counter != nullptr ? ++counter->replacing : 0;
}

std::uint8_t replaced_format() noexcept {
  const Counter* counter = this_counter();
  return counter != nullptr ? counter->replaced_format : kOtherFormat;
}

std::size_t end_replacing() noexcept {
  Counter* counter = this_counter();
  return counter != nullptr && counter->replacing != 0 ? --counter->replacing : 0;
}

const OpAmounts* end_counting(const at::RecordFunction& fn) noexcept {
  Counter* counter = this_counter();
  // One that began before there was anybody to count it has nothing here.
  if (counter == nullptr || counter->running.empty() || counter->running.back().fn != &fn)
    return nullptr;
  const Running running = counter->running.back();
  counter->running.pop_back();
  if (running.moves) --counter->moving;
  bool is_told = false;
  try {
    if (running.name != kNoName) {
      end(*counter, running, fn);
      is_told = is_worth_telling(counter->told);
    }
  } catch (...) {  // likewise
  }
  if (counter->running.empty()) counter->charges.clear();
  return is_told ? &counter->told : nullptr;
}

}  // namespace layertrace
