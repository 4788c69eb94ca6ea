// One operator call, written down argument by argument with the names of its schema.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flops/formulas.h"

namespace layertrace {

using Sizes = std::vector<std::int64_t>;

class CallBuilder {
 public:
  explicit CallBuilder(std::string name, std::string overload = "") {
    signature_.name = std::move(name);
    signature_.overload = std::move(overload);
  }
  CallBuilder(const CallBuilder&) = delete;  // shapes point into its own storage
  CallBuilder& operator=(const CallBuilder&) = delete;

  CallBuilder& tensor(std::string name, const Sizes& sizes, bool is_plain = true) {
    return add(std::move(name), shape(sizes, is_plain));
  }
  CallBuilder& shape(std::string name, const Sizes& sizes, std::uint8_t element_bytes,
                     std::uint8_t values_per_element) {
    TensorShape tensor = shape(sizes, true);
    tensor.element_bytes = element_bytes;
    tensor.values_per_element = values_per_element;
    return add(std::move(name), tensor);
  }
  CallBuilder& constant(std::string name, const Sizes& sizes) {
    TensorShape tensor = shape(sizes, true);
    tensor.needs_gradient = false;
    return add(std::move(name), tensor);
  }
  CallBuilder& tensors(std::string name, const std::vector<Sizes>& list) {
    auto& shapes = lists_.emplace_back();
    for (const Sizes& sizes : list) shapes.push_back(shape(sizes, true));
    return add(std::move(name), std::span<const TensorShape>(shapes));
  }
  CallBuilder& ints(std::string name, const Sizes& values) {
    return add(std::move(name), std::span<const std::int64_t>(sizes_.emplace_back(values)));
  }
  CallBuilder& integer(std::string name, std::int64_t value) { return add(std::move(name), value); }
  CallBuilder& number(std::string name, double value) { return add(std::move(name), value); }
  CallBuilder& flag(std::string name, bool value) { return add(std::move(name), value); }
  CallBuilder& text(std::string name, std::string_view value) {
    return add(std::move(name), value);
  }
  CallBuilder& none(std::string name) { return add(std::move(name), std::monostate()); }
  CallBuilder& composite() {
    signature_.is_composite = true;
    return *this;
  }
  CallBuilder& reverse() {
    std::reverse(signature_.arguments.begin(), signature_.arguments.end());
    std::reverse(inputs_.begin(), inputs_.end());
    return *this;
  }

  const OpSignature& signature() const { return signature_; }
  OpArguments inputs() const { return inputs_; }

  BoundFormula bind(const FormulaTable& table = {}) const { return table.bind(signature_); }
  OpKind kind() const { return bind().kind(); }
  std::optional<OpCost> cost() const { return bind().cost(inputs_); }
  std::optional<std::uint64_t> fvcore_flops() const { return bind().fvcore_flops(inputs_); }
  // Of a call that can be counted; a number that no test expects where it cannot.
  std::uint64_t flops(const FormulaTable& table = {}) const {
    return bind(table).cost(inputs_).value_or(kNoCost).flops;
  }
  std::uint64_t flops_causal() const { return cost().value_or(kNoCost).flops_causal; }
  std::uint64_t aux_flops() const { return cost().value_or(kNoCost).aux_flops; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr OpCost kNoCost = {.flops = kNone, .aux_flops = kNone, .flops_causal = kNone};

  TensorShape shape(const Sizes& sizes, bool is_plain) {
    return {.sizes = sizes_.emplace_back(sizes), .element_bytes = 4, .is_plain = is_plain};
  }
  CallBuilder& add(std::string name, OpArgument argument) {
    signature_.arguments.push_back(std::move(name));
    inputs_.push_back(argument);
    return *this;
  }

  OpSignature signature_;
  std::vector<OpArgument> inputs_;
  std::deque<Sizes> sizes_;
  std::deque<std::vector<TensorShape>> lists_;
};

// Multiplies and adds as the naive loops of the tests do, and counts.
class MultiplyAdd {
 public:
  void operator()(double& sum, double a, double b) {
    sum += a * b;
    ++count_;
  }
  std::uint64_t flops() const { return 2 * count_; }

 private:
  std::uint64_t count_ = 0;
};

}  // namespace layertrace
