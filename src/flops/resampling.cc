// Upsampling and sampling by a grid: aux_flops only. Each element of the output is a weighted sum
// of 2ᵈ of the input's (16 for cubic): as many multiplications, and an addition less; finding the
// weights is not counted. Backward spreads each element's gradient: a multiplication and an
// addition for each. The nearest element is copied: none, and in a backward one addition.
#include "flops/families.h"

namespace layertrace {
namespace {

// (N, C, spatial…), its spatial sizes replaced by output_size. Slots: input, output_size.
std::optional<Count> output_elements(const Arguments& arguments) {
  const TensorShape* input = arguments.tensor(0);
  const auto spatial = arguments.ints(1);
  if (input == nullptr || spatial.empty() || input->sizes.size() != spatial.size() + 2) return {};
  return Count(input->sizes[0]) * input->sizes[1] * elements(spatial);
}

std::optional<OpCost> upsample_cost(const Arguments& arguments) {
  const auto results = output_elements(arguments);
  if (!results) return OpCost();  // by scale factors: calls the form with sizes
  return aux_cost(*results * arguments.per_element());
}

template <unsigned kScale>
std::optional<std::uint64_t> fvcore_output(const Arguments& arguments,
                                           const std::optional<OpCost>& /*cost*/) {
  const auto results = output_elements(arguments);
  if (!results) return {};
  return (*results * kScale).value();
}

// (N, C, …) at the places of a grid of (N, places…, d). Slots: input, grid.
std::optional<Count> grid_elements(const Arguments& arguments) {
  const TensorShape* input = arguments.tensor(0);
  const TensorShape* grid = arguments.tensor(1);
  if (input == nullptr || grid == nullptr) return {};
  if (input->sizes.size() < 3 || grid->sizes.size() != input->sizes.size()) return {};
  return elements(grid->sizes.first(grid->sizes.size() - 1)) * input->sizes[1];
}

// Linear, in so many dimensions as the grid has. Slots: input, grid, interpolation_mode.
template <bool kBackward>
std::optional<OpCost> grid_cost(const Arguments& arguments) {
  const auto results = grid_elements(arguments);
  if (!results) return {};
  const std::size_t dims = arguments.tensor(0)->sizes.size() - 2;
  constexpr std::int64_t kNearest = 1;
  constexpr std::int64_t kCubic = 2;
  const std::int64_t mode = arguments.integer(2).value_or(0);
  const Count points = mode == kNearest ? 1 : mode == kCubic ? 16 : std::uint64_t{1} << dims;
  const Count operations = points.value() * 2 - 1;
  if (mode == kNearest) return aux_cost(*results * (kBackward ? 1 : 0));
  return aux_cost(*results * (kBackward ? operations + 1 : operations));
}

std::optional<std::uint64_t> fvcore_grid(const Arguments& arguments,
                                         const std::optional<OpCost>& /*cost*/) {
  const auto results = grid_elements(arguments);
  if (!results) return {};
  return (*results * 4).value();
}

}  // namespace

void add_resampling_formulas(FormulaIndex& index) {
  struct Kinds {
    unsigned forward;
    unsigned backward;
    std::string_view names;
    std::string_view backward_names;
  };
  constexpr Kinds kKinds[] = {
      {0, 1,
       "upsample_nearest1d upsample_nearest3d _upsample_nearest_exact1d "
       "_upsample_nearest_exact2d _upsample_nearest_exact3d",
       "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward "
       "_upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward "
       "_upsample_nearest_exact3d_backward"},
      {3, 4, "upsample_linear1d", "upsample_linear1d_backward"},
      {7, 8, "_upsample_bilinear2d_aa",
       "upsample_bilinear2d_backward _upsample_bilinear2d_aa_backward"},
      {15, 16, "upsample_trilinear3d", "upsample_trilinear3d_backward"},
      {31, 32, "upsample_bicubic2d _upsample_bicubic2d_aa",
       "upsample_bicubic2d_backward _upsample_bicubic2d_aa_backward"},
  };
  constexpr SlotNames kUpsample = {"self|input", "output_size"};
  for (const Kinds& kind : kKinds) {
    index.add_names(kind.names, {.cost = kind.forward != 0 ? upsample_cost : nullptr,
                                 .arguments = kUpsample,
                                 .per_element = kind.forward});
    index.add_names(
        kind.backward_names,
        {.cost = first_tensor_cost, .arguments = {"grad_output"}, .per_element = kind.backward});
  }
  constexpr auto kFree = OpKind::kFree;
  constexpr SlotNames kGrid = {"input", "grid", "interpolation_mode"};
  constexpr FormulaRow kRows[] = {
      {"aten::upsample_nearest2d", kFree, nullptr, kUpsample, 0, fvcore_output<1>},
      {"aten::upsample_bilinear2d", kFree, upsample_cost, kUpsample, 7, fvcore_output<4>},
      {"aten::grid_sampler", kFree, nullptr, kGrid, 0, fvcore_grid},
      {"aten::grid_sampler_2d", kFree, grid_cost<false>, kGrid},
      {"aten::grid_sampler_3d", kFree, grid_cost<false>, kGrid},
      {"aten::cudnn_grid_sampler", kFree, grid_cost<false>, {"self", "grid"}},
      {"aten::grid_sampler_2d_backward", kFree, grid_cost<true>, kGrid},
      {"aten::grid_sampler_3d_backward", kFree, grid_cost<true>, kGrid},
      {"aten::cudnn_grid_sampler_backward", kFree, grid_cost<true>, {"self", "grid"}},
  };
  index.add(kRows);
}

}  // namespace layertrace
