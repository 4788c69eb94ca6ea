// Batch and instance norm. Their forward is inline in LibTorch's header, so there is no function to stand in for. But it
// begins with the exported virtual `_check_input_dim`, which has `this`, and ends with one exported operator call whose
// arguments are the module's own: the scope opens in the first and closes in the second. An instance norm of an input
// without a batch dimension squeezes its result once more; there the scope closes after that.
#include <ATen/ops/batch_norm_ops.h>
#include <ATen/ops/instance_norm_ops.h>
#include <ATen/ops/squeeze_ops.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

#include <exception>
#include <utility>

#include "torch/next_function.h"
#include "torch/scopes.h"

namespace layertrace {
namespace {

// The norm of this thread whose scope is open, between the two.
struct OpenNorm {
  detail::Entry entry;  // depth 0: none
  const c10::TensorImpl* running_mean = nullptr;
  const c10::TensorImpl* weight = nullptr;
  bool squeezes = false;
  bool normalised = false;  // only the squeeze is still to come
};
thread_local OpenNorm open_norm __attribute__((tls_model("initial-exec")));

const c10::TensorImpl* impl(const at::Tensor& tensor) { return tensor.defined() ? tensor.unsafeGetTensorImpl() : nullptr; }
const c10::TensorImpl* impl(const std::optional<at::Tensor>& tensor) { return tensor ? impl(*tensor) : nullptr; }

template <typename Norm>
void open(const Norm& norm, bool squeezes) noexcept {
  if (detail::recording.load(std::memory_order_relaxed) == 0) [[likely]] return;
  const detail::Entry entry = InterposedScope::enter(&norm);
  if (entry.depth != 0) open_norm = {entry, impl(norm.running_mean), impl(norm.weight), squeezes, false};
}

// Closes the open norm when the call that ends its forward returns or throws.
class ClosingNorm {
 public:
  explicit ClosingNorm(bool ends) : ends_(ends) {}
  ~ClosingNorm() {
    if (ends_) [[unlikely]] detail::leave(std::exchange(open_norm, {}).entry);
  }
  ClosingNorm(const ClosingNorm&) = delete;
  ClosingNorm& operator=(const ClosingNorm&) = delete;

 private:
  const bool ends_;
};

bool is_open_norm(const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& running_mean) {
  return open_norm.entry.depth != 0 && !open_norm.normalised && open_norm.weight == impl(weight) &&
         open_norm.running_mean == impl(running_mean);
}

}  // namespace
}  // namespace layertrace

namespace torch::nn {

#define LAYERTRACE_NORM(Class, symbol, squeezes)                                     \
  void Class::_check_input_dim(const Tensor& input) {                                \
    static const auto next = layertrace::next_function<void, Class, const Tensor&>(symbol); \
    next(this, input);                                                               \
    layertrace::open(*this, squeezes);                                               \
  }

LAYERTRACE_NORM(BatchNorm1dImpl, "_ZN5torch2nn15BatchNorm1dImpl16_check_input_dimERKN2at6TensorE", false)
LAYERTRACE_NORM(BatchNorm2dImpl, "_ZN5torch2nn15BatchNorm2dImpl16_check_input_dimERKN2at6TensorE", false)
LAYERTRACE_NORM(BatchNorm3dImpl, "_ZN5torch2nn15BatchNorm3dImpl16_check_input_dimERKN2at6TensorE", false)
LAYERTRACE_NORM(InstanceNorm1dImpl, "_ZN5torch2nn18InstanceNorm1dImpl16_check_input_dimERKN2at6TensorE", input.dim() == 2)
LAYERTRACE_NORM(InstanceNorm2dImpl, "_ZN5torch2nn18InstanceNorm2dImpl16_check_input_dimERKN2at6TensorE", input.dim() == 3)
LAYERTRACE_NORM(InstanceNorm3dImpl, "_ZN5torch2nn18InstanceNorm3dImpl16_check_input_dimERKN2at6TensorE", input.dim() == 4)

#undef LAYERTRACE_NORM

}  // namespace torch::nn

namespace at::_ops {

using OptionalTensor = ::std::optional<at::Tensor>;  // at::_ops has a `std` of its own: the operator

at::Tensor batch_norm::call(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                            const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                            double momentum, double eps, bool cudnn_enabled) {
  static const auto next =
      layertrace::next_free_function<at::Tensor, const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
                                     const OptionalTensor&, const OptionalTensor&, bool, double, double, bool>(
          "_ZN2at4_ops10batch_norm4callERKNS_6TensorERKSt8optionalIS2_ES8_S8_S8_bddb");
  const layertrace::ClosingNorm closing(layertrace::is_open_norm(weight, running_mean));
  return next(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled);
}

at::Tensor instance_norm::call(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                               const OptionalTensor& running_mean, const OptionalTensor& running_var,
                               bool use_input_stats, double momentum, double eps, bool cudnn_enabled) {
  static const auto next =
      layertrace::next_free_function<at::Tensor, const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
                                     const OptionalTensor&, const OptionalTensor&, bool, double, double, bool>(
          "_ZN2at4_ops13instance_norm4callERKNS_6TensorERKSt8optionalIS2_ES8_S8_S8_bddb");
  const bool ours = layertrace::is_open_norm(weight, running_mean);
  const bool squeezes = ours && layertrace::open_norm.squeezes;
  layertrace::open_norm.normalised = squeezes;
  const layertrace::ClosingNorm closing(ours && !squeezes);
  return next(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled);
}

at::Tensor squeeze_dim::call(const at::Tensor& self, int64_t dim) {
  static const auto next = layertrace::next_free_function<at::Tensor, const at::Tensor&, int64_t>(
      "_ZN2at4_ops11squeeze_dim4callERKNS_6TensorEl");
  const layertrace::ClosingNorm closing(layertrace::open_norm.entry.depth != 0 && layertrace::open_norm.normalised);
  return next(self, dim);
}

}  // namespace at::_ops
