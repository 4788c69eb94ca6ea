// The metrics that every card has.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "report/cards/built_in.h"
#include "report/cards/registry.h"

namespace layertrace::cards {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;

// Over the models that the summary has.
template <typename Read>
double sum_of_roots(const Profile& profile, Read read) {
  double sum = 0;
  for (const Layer& layer : profile.layers) {
    if (layer.parent < 0) sum += static_cast<double>(read(layer));
  }
  return sum;
}

bool is_deeplites(const MetricInput& input) { return input.convention == Convention::kDeeplite; }

// Of a summary without a call nothing is known but the parameters.
bool is_counted(const MetricInput& input) {
  if (input.summary == nullptr || input.summary->counted_share <= 0) return false;
  return !input.summary->operators.empty() ||
         std::ranges::any_of(input.summary->layers,
                             [](const Layer& layer) { return layer.calls > 0; });
}

// What deeplite calls the size and the footprint of a model, in bytes.
std::optional<double> from_mb(std::optional<double> mebi) {
  return mebi ? std::optional(*mebi * kMebi) : std::nullopt;
}

std::optional<double> evaluation(const MetricInput& input) {
  return input.evaluate ? std::optional(input.evaluate()) : std::nullopt;
}

// Parameters and buffers; a tensor that several modules have is there once.
double bytes_of_tensors(const Profile& summary) {
  return sum_of_roots(summary,
                      [](const Layer& root) { return root.param_bytes + root.buffer_bytes; });
}

std::optional<double> model_size(const MetricInput& input) {
  if (input.summary == nullptr) return std::nullopt;
  // deeplite knows of the parameters of layers that were called.
  if (is_deeplites(input)) {
    if (!is_counted(input)) return std::nullopt;
    return from_mb(counts_by(*input.summary, input.convention).model_size_mb);
  }
  return bytes_of_tensors(*input.summary);
}

std::optional<double> macs(const MetricInput& input) {
  if (!is_counted(input) || input.convention == Convention::kModuleprofiler) return std::nullopt;
  const auto counts = counts_by(*input.summary, input.convention);
  const auto whole = std::ranges::find(counts.by_module, "",
                                       [](const auto& each) -> const auto& { return each.first; });
  if (whole == counts.by_module.end()) return std::nullopt;
  return input.convention == Convention::kLayertrace ? whole->second / 2 : whole->second;
}

std::optional<double> parameters(const MetricInput& input) {
  if (input.summary == nullptr || (is_deeplites(input) && !is_counted(input))) return std::nullopt;
  return counts_by(*input.summary, input.convention).parameters;
}

// What the model has, what goes in, and the most that a call takes beyond these.
std::optional<double> memory_footprint(const MetricInput& input) {
  if (!is_counted(input)) return std::nullopt;
  const Profile& summary = *input.summary;
  if (is_deeplites(input)) return from_mb(counts_by(summary, input.convention).footprint_mb);
  if (!input.input_bytes || summary.device_memory.empty()) return std::nullopt;
  double of_host = 0;
  double of_gpus = 0;
  for (const DeviceMemory& memory : summary.device_memory)
    (memory.device < 0 ? of_host : of_gpus) += memory.peak;
  const double taken = of_gpus > 0 ? of_gpus : of_host;
  return bytes_of_tensors(summary) + *input.input_bytes + taken;
}

std::optional<double> execution_time(const MetricInput& input) { return median(input.call_s); }

std::optional<double> throughput(const MetricInput& input) {
  const auto call_s = median(input.call_s);
  if (!call_s || *call_s <= 0 || input.batch_size == 0) return std::nullopt;
  return static_cast<double>(input.batch_size) / *call_s;
}

Registered metric(MetricInfo info, std::optional<double> (*function)(const MetricInput&)) {
  MetricsFunction several = [function](const MetricInput& input) {
    return std::vector{function(input)};
  };
  return {std::move(info), std::make_shared<const MetricsFunction>(std::move(several)), 0};
}

}  // namespace

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle]
                                : std::midpoint(values[middle - 1], values[middle]);
}

bool is_by_convention(std::string_view key) noexcept {
  return key == "model_size" || key == "macs" || key == "parameters" || key == "memory_footprint";
}

bool is_timed(std::string_view key) noexcept {
  return key == "execution_time" || key == "throughput";
}

std::vector<Registered> built_in_metrics() {
  using enum MetricComparison;
  return {
      metric({.key = "evaluation",
              .name = "Evaluation",
              .description = "What the user's function says of the model.",
              .comparison = kDifference},
             &evaluation),
      metric({.key = "model_size",
              .name = "Model size",
              .description = "Parameters and buffers; a tensor that several modules have, once.",
              .unit = "bytes",
              .shown_in = "MiB",
              .comparison = kReciprocal},
             &model_size),
      metric({.key = "macs",
              .name = "Computational complexity",
              .description = "Multiply-adds of one call, of contractions only.",
              .unit = "MACs",
              .shown_in = "GigaMACs",
              .comparison = kReciprocal},
             &macs),
      metric(
          {.key = "parameters",
           .name = "Parameters",
           .description = "Elements of the parameters; a tensor that several modules have, once.",
           .unit = "parameters",
           .shown_in = "millions",
           .comparison = kReciprocal},
          &parameters),
      metric(
          {.key = "memory_footprint",
           .name = "Memory footprint",
           .description =
               "Parameters, buffers, inputs, and the most that a call took beyond these at once.",
           .unit = "bytes",
           .shown_in = "MiB",
           .comparison = kReciprocal},
          &memory_footprint),
      metric({.key = "execution_time",
              .name = "Execution time",
              .description = "Of one call: the median of those that were timed.",
              .unit = "s",
              .shown_in = "ms",
              .comparison = kReciprocal},
             &execution_time),
      metric({.key = "throughput",
              .name = "Throughput",
              .description = "The batch's size by the execution time.",
              .unit = "samples/s",
              .comparison = kRatio},
             &throughput),
  };
}

}  // namespace layertrace::cards
