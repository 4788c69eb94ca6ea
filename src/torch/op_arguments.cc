#include "torch/op_arguments.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace layertrace {
namespace {

// By the tensor's own keys: layout() and sizes() may ask Python code of its class.
bool has_plain_sizes(const c10::TensorImpl& tensor) noexcept {
  return !tensor.is_sparse() && !tensor.is_sparse_csr() && !tensor.is_mkldnn() &&
         !tensor.is_nested() && !tensor.has_symbolic_sizes_strides();
}

std::uint64_t tensor_bytes(const at::Tensor& tensor) {
  if (!tensor.defined() || !has_plain_sizes(*tensor.unsafeGetTensorImpl())) return 0;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const auto sizes = impl.sizes_default();
  return (elements({sizes.data(), sizes.size()}) * impl.itemsize()).value();
}

std::optional<std::int64_t> as_integer(const c10::IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool() ? 1 : 0;
  if (value.isSymInt()) return value.toSymInt().maybe_as_int();
  return std::nullopt;
}

}  // namespace

TensorShape shape_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  TensorShape shape;
  shape.element_bytes = static_cast<std::uint8_t>(impl.itemsize());
  shape.is_plain = has_plain_sizes(impl);
  shape.needs_gradient = tensor.requires_grad();
  if (shape.is_plain) {
    const auto sizes = impl.sizes_default();
    shape.sizes = {sizes.data(), sizes.size()};
  }
  if (tensor.scalar_type() == c10::ScalarType::Float4_e2m1fn_x2) shape.values_per_element = 2;
  return shape;
}

OpArguments ArgumentReader::read(c10::ArrayRef<const c10::IValue> inputs) {
  arguments_.clear();
  // Never moved while they are read: spans point into them.
  integers_.clear();
  integers_.reserve(kMostIntegers);
  tensors_.clear();
  tensors_.reserve(kMostTensors);
  for (const c10::IValue& value : inputs) arguments_.push_back(argument(value));
  return arguments_;
}

OpArgument ArgumentReader::argument(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() ? OpArgument(shape_of(tensor)) : OpArgument();
  }
  if (value.isInt()) return value.toInt();
  if (value.isSymInt()) {
    const auto known = value.toSymInt().maybe_as_int();
    return known ? OpArgument(*known) : OpArgument();
  }
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (value.isString()) return std::string_view(value.toStringRef());
  if (value.isList()) return list(value);
  return {};
}

OpArgument ArgumentReader::list(const c10::IValue& value) {
  const auto& elements = value.toListRef();
  if (elements.empty()) return std::span<const std::int64_t>();
  const auto is_tensor = [](const c10::IValue& each) { return each.isTensor() || each.isNone(); };
  if (is_tensor(elements[0])) {
    if (tensors_.size() + elements.size() > kMostTensors) return {};
    const std::size_t first = tensors_.size();
    for (const c10::IValue& each : elements)
      tensors_.push_back(each.isTensor() ? shape_of(each.toTensor()) : TensorShape{});
    return std::span<const TensorShape>(tensors_).subspan(first);
  }
  if (integers_.size() + elements.size() > kMostIntegers) return {};
  const std::size_t first = integers_.size();
  for (const c10::IValue& each : elements) {
    const auto integer = as_integer(each);
    if (!integer) return {};
    integers_.push_back(*integer);
  }
  return std::span<const std::int64_t>(integers_).subspan(first);
}

std::uint64_t bytes_of(const c10::IValue& value) {
  if (value.isTensor()) return tensor_bytes(value.toTensor());
  if (!value.isList()) return 0;
  std::uint64_t bytes = 0;
  for (const c10::IValue& each : value.toListRef()) {
    if (!each.isTensor()) continue;
    bytes += tensor_bytes(each.toTensor());
  }
  return bytes;
}

}  // namespace layertrace
