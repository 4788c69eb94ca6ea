// Batch and instance norm. Their forward is inline in LibTorch's header, so there is no function to
// stand in for. But it begins with the exported virtual `_check_input_dim`, which has `this`, and
// ends with one exported operator call: the scope opens in the first and closes in the second. An
// instance norm of an input without a batch dimension squeezes its result once more; there the
// scope closes after that. If the forward throws between the two, nothing tells us; the next scope
// on the thread shows it (close_abandoned_norm).
#include <ATen/core/Tensor.h>
#include <ATen/ops/batch_norm_ops.h>
#include <ATen/ops/instance_norm_ops.h>
#include <ATen/ops/squeeze_ops.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

#include <exception>
#include <tuple>
#include <utility>

#include "torch/next_function.h"
#include "torch/open_norm.h"
#include "torch/scopes.h"

namespace layertrace {
namespace {

using Awaited = OpenNorm::Awaited;

void open(const torch::nn::Module& norm, const at::Tensor& input, Awaited awaited,
          bool squeezes) noexcept {
  if (detail::recording.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  const auto inputs = std::tie(input);
  const auto values = detail::CallValues::of(inputs);
  const detail::Entry entry = InterposedScope::enter(&norm, values);
  if (entry.place == 0) return;
  open_norm = {awaited, squeezes, &norm, entry, nullptr};
  if (detail::follows_calls.load(std::memory_order_relaxed) != 0)
    open_norm.call = detail::begin_call(&norm, values);
}

// Stands around a call that may be the one that an open norm awaits, and closes the norm when it
// returns or throws. Inside it no norm is awaited: an instance norm is made of a batch norm.
class ClosingNorm {
 public:
  explicit ClosingNorm(Awaited call) noexcept {
    if (open_norm.awaited == call && is_on_top(open_norm)) [[unlikely]]
      norm_ = std::exchange(open_norm, {});
  }
  ~ClosingNorm() {
    if (norm_.awaited == Awaited::kNothing) [[likely]]
      return;
    if (norm_.squeezes && std::uncaught_exceptions() <= norm_.entry.exceptions) {
      open_norm = {Awaited::kSqueeze, false, norm_.module, norm_.entry, norm_.call};
    } else {
      if (norm_.call != nullptr) detail::end_call(norm_.call, norm_.entry);
      detail::leave(norm_.entry);
    }
  }
  // Gives what it is given: what the norm gives, unless that is squeezed.
  at::Tensor output(at::Tensor value) const noexcept {
    if (norm_.call != nullptr && !norm_.squeezes) [[unlikely]]
      detail::note_output(*norm_.call, detail::CallValues::of(std::tie(std::as_const(value))));
    return value;
  }
  ClosingNorm(const ClosingNorm&) = delete;  // it stands for a stretch of one thread's stack
  ClosingNorm& operator=(const ClosingNorm&) = delete;

 private:
  OpenNorm norm_;
};

}  // namespace
}  // namespace layertrace

namespace torch::nn {

#define LAYERTRACE_NORM(Class, symbol, awaited, squeezes)                                   \
  void Class::_check_input_dim(const Tensor& input) {                                       \
    static const auto next = layertrace::next_function<void, Class, const Tensor&>(symbol); \
    next(this, input);                                                                      \
    layertrace::open(*this, input, layertrace::Awaited::awaited, squeezes);                 \
  }

LAYERTRACE_NORM(BatchNorm1dImpl, "_ZN5torch2nn15BatchNorm1dImpl16_check_input_dimERKN2at6TensorE",
                kBatchNorm, false)
LAYERTRACE_NORM(BatchNorm2dImpl, "_ZN5torch2nn15BatchNorm2dImpl16_check_input_dimERKN2at6TensorE",
                kBatchNorm, false)
LAYERTRACE_NORM(BatchNorm3dImpl, "_ZN5torch2nn15BatchNorm3dImpl16_check_input_dimERKN2at6TensorE",
                kBatchNorm, false)
LAYERTRACE_NORM(InstanceNorm1dImpl,
                "_ZN5torch2nn18InstanceNorm1dImpl16_check_input_dimERKN2at6TensorE", kInstanceNorm,
                input.dim() == 2)
LAYERTRACE_NORM(InstanceNorm2dImpl,
                "_ZN5torch2nn18InstanceNorm2dImpl16_check_input_dimERKN2at6TensorE", kInstanceNorm,
                input.dim() == 3)
LAYERTRACE_NORM(InstanceNorm3dImpl,
                "_ZN5torch2nn18InstanceNorm3dImpl16_check_input_dimERKN2at6TensorE", kInstanceNorm,
                input.dim() == 4)

#undef LAYERTRACE_NORM

}  // namespace torch::nn

namespace at::_ops {

using OptionalTensor =
    ::std::optional<at::Tensor>;  // at::_ops has a `std` of its own: the operator

at::Tensor batch_norm::call(const at::Tensor& input, const OptionalTensor& weight,
                            const OptionalTensor& bias, const OptionalTensor& running_mean,
                            const OptionalTensor& running_var, bool training, double momentum,
                            double eps, bool cudnn_enabled) {
  static const auto next =
      layertrace::next_free_function<at::Tensor, const at::Tensor&, const OptionalTensor&,
                                     const OptionalTensor&, const OptionalTensor&,
                                     const OptionalTensor&, bool, double, double, bool>(
          "_ZN2at4_ops10batch_norm4callERKNS_6TensorERKSt8optionalIS2_ES8_S8_S8_bddb");
  const layertrace::ClosingNorm closing(layertrace::Awaited::kBatchNorm);
  return closing.output(
      next(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled));
}

at::Tensor instance_norm::call(const at::Tensor& input, const OptionalTensor& weight,
                               const OptionalTensor& bias, const OptionalTensor& running_mean,
                               const OptionalTensor& running_var, bool use_input_stats,
                               double momentum, double eps, bool cudnn_enabled) {
  static const auto next =
      layertrace::next_free_function<at::Tensor, const at::Tensor&, const OptionalTensor&,
                                     const OptionalTensor&, const OptionalTensor&,
                                     const OptionalTensor&, bool, double, double, bool>(
          "_ZN2at4_ops13instance_norm4callERKNS_6TensorERKSt8optionalIS2_ES8_S8_S8_bddb");
  const layertrace::ClosingNorm closing(layertrace::Awaited::kInstanceNorm);
  return closing.output(next(input, weight, bias, running_mean, running_var, use_input_stats,
                             momentum, eps, cudnn_enabled));
}

at::Tensor squeeze_dim::call(const at::Tensor& self, int64_t dim) {
  static const auto next = layertrace::next_free_function<at::Tensor, const at::Tensor&, int64_t>(
      "_ZN2at4_ops11squeeze_dim4callERKNS_6TensorEl");
  const layertrace::ClosingNorm closing(layertrace::Awaited::kSqueeze);
  return closing.output(next(self, dim));
}

}  // namespace at::_ops
