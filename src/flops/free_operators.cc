// Operators that are known to compute no contraction and whose aux_flops are not counted: there are
// none, or few, or the operator is rare (margin losses, fractional pooling, Lanczos). All others
// without a formula are listed as uncounted: decompositions and solvers of linear algebra, Fourier
// transforms, products of sparse matrices (what is computed is in their values), quantized layers
// whose weights are packed out of sight, CTC, and operators of the user's own.
//
// Composite operators need not be here: what they call is counted.
#include "flops/families.h"

namespace layertrace {
namespace {

// Memory: made, copied, moved, joined, filled.
constexpr std::string_view kMemoryNames =
    "_chunk_cat _copy_from _copy_from_and_resize _efficientzerotensor _empty_affine_quantized "
    "_empty_per_channel_affine_quantized _fill_mem_eff_dropout_mask_ _lazy_clone "
    "_new_zeros_with_same_feature_meta _pack_padded_sequence _pin_memory _reshape_copy "
    "_resize_output _spdiags _stack _to_copy _to_dense _to_sparse _to_sparse_bsc _to_sparse_bsr "
    "_to_sparse_csc _to_sparse_csr _to_sparse_semi_structured arange bartlett_window "
    "blackman_window block_diag cat channel_shuffle clone constant_pad_nd copy "
    "copy_sparse_to_sparse dequantize diag_embed embedding_renorm empty empty_like "
    "empty_permuted empty_quantized empty_strided eye fft_fftfreq fft_rfftfreq fill flip "
    "from_file full full_like hamming_window hann_window im2col int_repr kaiser_window lift "
    "lift_fresh lift_fresh_copy lu_unpack masked_fill narrow_copy new_empty new_empty_strided "
    "new_full new_ones new_zeros ones ones_like pixel_shuffle pixel_unshuffle "
    "quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic range record_stream "
    "reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward "
    "reflection_pad3d reflection_pad3d_backward repeat repeat_interleave replication_pad1d "
    "replication_pad1d_backward replication_pad2d replication_pad2d_backward replication_pad3d "
    "replication_pad3d_backward resize resize_as resize_as_sparse roll rot90 scalar_tensor set "
    "shallow_copy_data_ stack to_mkldnn to_padded_tensor tril tril_indices triu triu_indices "
    "unfold_backward zero zeros zeros_like";

// Views of memory, their copies and scatters.
constexpr std::string_view kViewNames =
    "_conj _conj_copy _fw_primal _fw_primal_copy _indices _indices_copy _make_dual "
    "_make_dual_copy _mkldnn_reshape _mkldnn_transpose _neg_view _neg_view_copy _reshape_alias "
    "_reshape_alias_copy _sparse_broadcast_to _sparse_broadcast_to_copy _unsafe_view _values "
    "_values_copy alias alias_copy as_strided as_strided_copy as_strided_scatter ccol_indices "
    "ccol_indices_copy col_indices col_indices_copy crow_indices crow_indices_copy detach "
    "detach_copy diagonal diagonal_backward diagonal_copy diagonal_scatter expand expand_copy "
    "indices indices_copy permute permute_copy row_indices row_indices_copy select "
    "select_backward select_copy select_scatter slice slice_backward slice_copy slice_inverse "
    "slice_scatter split split_copy split_with_sizes split_with_sizes_copy squeeze squeeze_copy "
    "t t_copy transpose transpose_copy unbind unbind_copy unfold unfold_copy unsafe_split "
    "unsafe_split_with_sizes unsqueeze unsqueeze_copy values values_copy view view_as_complex "
    "view_as_complex_copy view_as_real view_as_real_copy view_copy";

// Looking up, choosing, sorting.
constexpr std::string_view kIndexingNames =
    "_embedding_bag _embedding_bag_backward _embedding_bag_dense_backward "
    "_embedding_bag_forward_only _embedding_bag_per_sample_weights_backward "
    "_histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors "
    "_index_put_impl _is_all_true _is_any_true _local_scalar_dense _unique _unique2 "
    "_unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate "
    "allclose bincount bucketize embedding equal fractional_max_pool2d fractional_max_pool3d "
    "gather histc histogram index index_copy index_fill index_put index_select isin kthvalue "
    "masked_scatter masked_scatter_backward masked_select max_unpool2d max_unpool3d median "
    "multinomial nanmedian nll_loss2d_backward nll_loss2d_forward nll_loss_backward "
    "nll_loss_forward nonzero nonzero_static put scatter searchsorted sort take topk "
    "unique_consecutive unique_dim unique_dim_consecutive where";

// Random numbers.
constexpr std::string_view kRandomNames =
    "_cudnn_init_dropout_state _dirichlet_grad _philox_key_fold_in _philox_key_split "
    "_philox_normal _philox_randint _philox_uniform _sample_dirichlet _standard_gamma "
    "_standard_gamma_grad bernoulli binomial cauchy exponential geometric log_normal normal "
    "normal_functional poisson rand rand_like randint randint_like randn randn_like random "
    "randperm uniform";

// Logic and bits.
constexpr std::string_view kBitNames =
    "__ilshift__ __irshift__ __lshift__ __rshift__ bitwise_and bitwise_left_shift bitwise_not "
    "bitwise_or bitwise_right_shift bitwise_xor logical_and logical_not logical_or logical_xor";

// Questions about tensors, packing of weights, checks, what is done once per row or channel, and
// what is rare.
constexpr std::string_view kOtherNames =
    "_assert_async _assert_scalar _assert_tensor_metadata _coalesce _coalesced "
    "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
    "_convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu _cslt_compress "
    "_cudnn_rnn_flatten_weight _dimI _dimV _dyn_quant_pack_4bit_weight _functional_assert_async "
    "_functional_assert_scalar _functional_sym_constrain_range "
    "_functional_sym_constrain_range_for_size _fused_sdp_choice _grid_sampler_2d_cpu_fallback "
    "_grid_sampler_2d_cpu_fallback_backward _has_same_storage_numel "
    "_jagged_to_padded_dense_forward _linalg_check_errors _make_dep_token "
    "_make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor "
    "_nested_compute_contiguous_strides_offsets _nested_from_padded "
    "_nested_from_padded_and_nested_example _nested_from_padded_tensor _nested_get_jagged_dummy "
    "_nested_get_lengths _nested_get_max_seqlen _nested_get_min_seqlen _nested_get_offsets "
    "_nested_get_ragged_idx _nested_get_values _nested_get_values_copy _nested_select_backward "
    "_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned "
    "_nested_tensor_from_tensor_list _nested_tensor_size _nested_tensor_storage_offsets "
    "_nested_tensor_strides _nested_view_from_buffer _nested_view_from_buffer_copy "
    "_nested_view_from_jagged _nested_view_from_jagged_copy _nnz "
    "_padded_dense_to_jagged_forward _print _sparse_compressed_tensor_with_dims "
    "_sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors "
    "_sparse_mask_projection _sparse_semi_structured_apply _sparse_semi_structured_apply_dense "
    "_sparse_semi_structured_tile _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward "
    "_use_cudnn_ctc_loss _use_miopen_ctc_loss _validate_compressed_sparse_indices "
    "adaptive_avg_pool1d adaptive_avg_pool3d affine_grid_generator avg_pool1d "
    "batch_norm_gather_stats batch_norm_gather_stats_with_counts col2im "
    "cudnn_affine_grid_generator cudnn_affine_grid_generator_backward dense_dim frexp "
    "glu_backward_jvp glu_jvp hash_tensor is_coalesced is_pinned is_same_size is_set_to "
    "mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight multi_margin_loss "
    "multi_margin_loss_backward multilabel_margin_loss_backward multilabel_margin_loss_forward "
    "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
    "q_zero_point qscheme sparse_compressed_tensor sparse_coo_tensor sparse_dim sparse_mask "
    "sparse_resize sparse_resize_and_clear sym_constrain_range sym_constrain_range_for_size";

// Of other libraries: communication and the profiler's own.
constexpr FormulaRow kElsewhere[] = {
    {"_c10d_functional::all_gather_into_tensor"},
    {"_c10d_functional::all_gather_into_tensor_coalesced"},
    {"_c10d_functional::all_gather_into_tensor_out"},
    {"_c10d_functional::all_reduce"},
    {"_c10d_functional::all_reduce_coalesced"},
    {"_c10d_functional::all_to_all_single"},
    {"_c10d_functional::batch_p2p_ops"},
    {"_c10d_functional::broadcast"},
    {"_c10d_functional::irecv"},
    {"_c10d_functional::isend"},
    {"_c10d_functional::reduce_scatter_tensor"},
    {"_c10d_functional::reduce_scatter_tensor_coalesced"},
    {"_c10d_functional::reduce_scatter_tensor_out"},
    {"_c10d_functional::wait_tensor"},
    {"_c10d_functional::wait_tensors"},
    {"_c10d_functional_autograd::all_gather_into_tensor"},
    {"_c10d_functional_autograd::all_to_all_single"},
    {"_c10d_functional_autograd::reduce_scatter_tensor"},
    {"_dtensor::shard_dim_alltoall"},
    {"c10d::_allgather_base"},
    {"c10d::_reduce_scatter_base"},
    {"c10d::allgather"},
    {"c10d::allgather_coalesced"},
    {"c10d::allgather_into_tensor_coalesced"},
    {"c10d::allreduce"},
    {"c10d::allreduce_coalesced"},
    {"c10d::alltoall"},
    {"c10d::alltoall_base"},
    {"c10d::barrier"},
    {"c10d::broadcast"},
    {"c10d::check_for_nan"},
    {"c10d::gather"},
    {"c10d::gather_into_tensor"},
    {"c10d::monitored_barrier"},
    {"c10d::recv"},
    {"c10d::recv_any_source"},
    {"c10d::reduce"},
    {"c10d::reduce_scatter"},
    {"c10d::reduce_scatter_tensor_coalesced"},
    {"c10d::scatter"},
    {"c10d::send"},
    {"fsdp::chunk_cat_mixed_dtype"},
    {"profiler::_record_function_enter"},
    {"profiler::_record_function_enter_new"},
    {"profiler::_record_function_exit"},
};

}  // namespace

void add_free_operators(FormulaIndex& index) {
  for (const std::string_view names :
       {kMemoryNames, kViewNames, kIndexingNames, kRandomNames, kBitNames, kOtherNames}) {
    index.add_names(names, {});
  }
  index.add(kElsewhere);
}

}  // namespace layertrace
