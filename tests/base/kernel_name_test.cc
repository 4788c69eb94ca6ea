// Names of kernels as PyTorch, cuBLAS, cuDNN, CUTLASS, NCCL and Triton give them.
#include "base/kernel_name.h"

#include <gtest/gtest.h>

#include <string>

namespace layertrace {
namespace {

struct Named {
  const char* name;
  const char* expected;
};

TEST(KernelName, KeepsWhatTellsOneFromAnother) {
  const Named names[] = {
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
       "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
       "vectorized_elementwise_kernel<FillFunctor<float>>"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, "
       "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, "
       "3ul>)",
       "vectorized_elementwise_kernel<CUDAFunctor_add<Half>>"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, float, "
       "float, at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 2> "
       ">(int, "
       "at::native::BUnaryFunctor<float, float, float, "
       "at::native::binary_internal::MulFunctor<float> "
       ">, at::detail::Array<char*, 2>)",
       "vectorized_elementwise_kernel<MulFunctor<float>>"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
       "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
       "at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
       "const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int, "
       "at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, "
       "c10::Scalar, "
       "c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
       "const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>)",
       "vectorized_elementwise_kernel<launch_clamp_scalar>"},
      {"void at::native::elementwise_kernel<128, 2, "
       "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::"
       "TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() "
       "const::{lambda(float)#1}>(at::TensorIteratorBase&, "
       "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() "
       "const::{lambda()#7}::operator()() const::{lambda(float)#1} const&)::{lambda(int)#1}>(int, "
       "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::"
       "TensorIteratorBase&)::{lambda()#3}>(at::TensorIteratorBase&)::{lambda(int)#1})",
       "elementwise_kernel<direct_copy_kernel_cuda>"},
      {"void at::native::elementwise_kernel<128, 2, "
       "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float, "
       "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, "
       "at::native::BinaryFunctor<float, float, float, "
       "at::native::binary_internal::MulFunctor<float> "
       "> const&)::{lambda(int)#1}>(int, float)",
       "elementwise_kernel<MulFunctor<float>>"},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
       "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, "
       "float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, "
       "4> "
       ">(at::native::ReduceOp<float, float>)",
       "reduce_kernel<sum_functor<float>>"},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
       "at::native::MeanOps<float, float, float, float>, unsigned int, float, 4> "
       ">(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned "
       "int, "
       "float, 4>)",
       "reduce_kernel<MeanOps<float>>"},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
       "namespace)::TensorListMetadata<2>, at::native::(anonymous "
       "namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, "
       "float>(at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous "
       "namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float)",
       "multi_tensor_apply_kernel<BinaryOpListAlphaFunctor<float>, plus<float>>"},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
       "namespace)::FusedOptimizerTensorListMetadata<3>, at::native::(anonymous "
       "namespace)::FusedAdamMathFunctor<float, 3, (at::native::ADAM_MODE)0, false>, float const*, "
       "double>(int)",
       "multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>"},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 6, true, "
       "false>(float*, float const*, int, int, int, bool const*, int, bool)",
       "softmax_warp_forward"},
      {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, "
       "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)",
       "cunn_SoftMaxForward<SoftMaxForwardEpilogue>"},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, "
       "false>(int, float, float const*, float const*, float const*, float*, float*, float*)",
       "vectorized_layer_norm_kernel"},
      {"void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float, float, "
       "float, int>(at::GenericPackedTensorAccessor<float const, 3ul>, float, float)",
       "batch_norm_collect_statistics_kernel<InvStd>"},
      {"void at_cuda_detail::cub::DeviceReduceSingleTileKernel<float, int>(float*)",
       "DeviceReduceSingleTileKernel"},
      {"void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, "
       "(cudnnKernelDataType_t)2>(cudnn::ops::nchw2nhwc_params_t<float>, float const*, float*)",
       "nchwToNhwcKernel"},
      {"void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false, "
       "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, "
       "cublasGemvTensorStridedBatched<float>, float> >(cublasGemvParamsEx<int>, float, float)",
       "gemv2T_kernel_val"},
      {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, "
       "4, "
       "false, false, cutlass::half_t, pytorch_flash::Flash_kernel_traits<64, 128, 128, 4, "
       "cutlass::half_t> >, false, true, false, false, true, true, "
       "false>(pytorch_flash::Flash_fwd_params)",
       "flash_fwd_kernel"},
      {"fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float, "
       "cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)",
       "fmha_cutlassF_f32_aligned_64x64_rf_sm80"},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4>(cutlass_80_"
       "tensorop_s1688gemm_64x64_16x6_tn_align4::Params)",
       "cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4"},
      {"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"},
      {"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_"
       "segment_k_off_kernel__5x_cublas",
       "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesi..._k_off_kernel__5x_cublas"},
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
      {"triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0"},
  };
  for (const Named& each : names) EXPECT_EQ(short_kernel_name(each.name), each.expected);
}

TEST(KernelName, SurvivesWhatIsNoName) {
  for (const std::string name : {"", " ", "(", ")", "<", ">", "::", "<<<", ">>>", "a<", "a>", "a(",
                                 "a)b", "void ", "{lambda", "operator()", "a::", "->", "a<->b>"}) {
    EXPECT_LE(short_kernel_name(name).size(), name.size() + 1) << name;
  }
  EXPECT_EQ(short_kernel_name("operator()"), "operator()");
  EXPECT_EQ(short_kernel_name(""), "");
}

}  // namespace
}  // namespace layertrace
