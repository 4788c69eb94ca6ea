// kernels_table() and kernels_json(): what ran on a GPU, and for whom.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

#include "attribute/kernel_table.h"
#include "report/device_sentences.h"
#include "report/json_parts.h"
#include "report/ledger.h"
#include "report/lookup.h"
#include "report/numbers.h"
#include "report/table.h"

namespace layertrace {
namespace report {
namespace {

constexpr std::size_t kUsesShown = 3;  // of those that a kernel serves
constexpr std::size_t kLongestKernelName = 60;

constexpr std::array<std::pair<std::string_view, KernelSort>, 3> kSorts{
    {{"time", KernelSort::kTime}, {"count", KernelSort::kCount}, {"name", KernelSort::kName}}};

// Keeps what serves the layer and those below it.
void restrict_to(Kernel& kernel, const std::vector<bool>& inside) {
  std::erase_if(kernel.uses, [&](const Kernel::Use& use) {
    return use.layer < 0 || !inside[static_cast<std::size_t>(use.layer)];
  });
  add_up_uses(kernel);
}

// Parents come before children.
std::vector<bool> layers_below(const Profile& profile, std::string_view path) {
  std::vector<bool> inside(profile.layers.size());
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const Layer& layer = profile.layers[i];
    inside[i] =
        layer.path == path || (layer.parent >= 0 && inside[static_cast<std::size_t>(layer.parent)]);
  }
  return inside;
}

bool comes_before(const Kernel& a, const Kernel& b, KernelSort sort) {
  if (sort == KernelSort::kCount && a.count != b.count) return a.count > b.count;
  if (sort == KernelSort::kName && a.short_name != b.short_name) return a.short_name < b.short_name;
  return a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
}

// Those to show, but for the limit.
std::vector<Kernel> chosen_kernels(const Profile& profile, const KernelOptions& options) {
  std::vector<Kernel> kernels = profile.kernels;
  if (!options.module.empty()) {
    const std::vector<bool> inside = layers_below(profile, options.module);
    for (Kernel& kernel : kernels) restrict_to(kernel, inside);
    std::erase_if(kernels, [](const Kernel& kernel) { return kernel.count == 0; });
  }
  std::ranges::stable_sort(
      kernels, [&](const Kernel& a, const Kernel& b) { return comes_before(a, b, options.sort); });
  return kernels;
}

std::size_t shown_of(const std::vector<Kernel>& kernels, const KernelOptions& options) {
  const auto limit = static_cast<std::size_t>(std::max(0, options.limit));
  return limit == 0 ? kernels.size() : std::min(limit, kernels.size());
}

class KernelWriter {
 public:
  KernelWriter(const Profile& profile, const KernelOptions& options)
      : profile_(profile),
        options_(options),
        glyphs_(glyphs_for(options.ascii)),
        kernels_(chosen_kernels(profile, options)) {
    for (const Kernel& kernel : kernels_) {
      count_ += kernel.count;
      ns_ += kernel.ns;
      outside_count_ += kernel.outside_count;
      outside_ns_ += kernel.outside_ns;
    }
  }

  std::string write() {
    std::vector<Sentence> head = opening(profile_, glyphs_);
    head.push_back({what_is_shown()});
    std::string out = text_of(head, width(), options_.color);
    if (kernels_.empty()) return out;
    add_heading_row();
    const std::size_t shown = shown_of(kernels_, options_);
    for (std::size_t i = 0; i < shown; ++i) add_row(kernels_[i]);
    out += '\n' + render(table_, width(), options_.color, glyphs_.ellipsis);
    if (shown < kernels_.size()) out += '\n' + what_is_left_out(shown) + '\n';
    return out;
  }

 private:
  std::size_t width() const { return options_.width <= 0 ? 0 : std::max(20, options_.width); }

  std::string what_is_shown() const {
    if (profile_.run.device.empty()) {
      return "No GPU was recorded, so there are no kernels. `layertrace tree` shows the host's "
             "time.";
    }
    if (has_events_only(profile_)) {
      return "No kernel was recorded: without CUPTI, CUDA events alone tell of the GPU. "
             "`layertrace tree` shows their times.";
    }
    const std::string where =
        options_.module.empty() ? "" : " in " + clean(options_.module, options_.ascii);
    if (kernels_.empty()) return fmt::format("No kernel ran{} in the recorded steps.", where);
    const std::string steps = quantity(profile_.step_count, "recorded step", "recorded steps");
    return fmt::format(
        "{} ran{} {} times {}, {} in all. Shares are of that; grid, block, registers, shared "
        "memory and occupancy are of the longest run.",
        quantity(kernels_.size(), "kernel, copy or set", "kernels, copies and sets"), where,
        format_count(count_), outside_count_ == 0 ? "in " + steps : where_of_all(steps), time(ns_));
  }

  // Of an imported trace, which may have more than its steps.
  std::string where_of_all(const std::string& steps) const {
    return fmt::format("({} in {}, {} outside of them, {})", format_count(count_ - outside_count_),
                       steps, format_count(outside_count_), time(outside_ns_));
  }

  std::string what_is_left_out(std::size_t shown) const {
    const std::uint64_t rest_ns = std::accumulate(
        kernels_.begin() + static_cast<std::ptrdiff_t>(shown), kernels_.end(), std::uint64_t{0},
        [](std::uint64_t sum, const Kernel& kernel) { return sum + kernel.ns; });
    return fmt::format("{} {} more, {} of the time", glyphs_.ellipsis,
                       format_count(std::uint64_t{kernels_.size() - shown}), share(rest_ns));
  }

  std::string time(std::uint64_t ns) const { return format_time(static_cast<double>(ns), glyphs_); }
  std::string share(std::uint64_t ns) const {
    return format_share(ns_ == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(ns_));
  }

  void add_heading_row() {
    TableRow row;
    row.name = {"kernel", Tone::kDim};
    constexpr std::array<std::pair<const char*, int>, 9> kHeadings{{{"count", 7},
                                                                    {"time", 9},
                                                                    {"share", 8},
                                                                    {"mean", 6},
                                                                    {"grid", 5},
                                                                    {"block", 4},
                                                                    {"registers", 2},
                                                                    {"shared", 1},
                                                                    {"occupancy", 3}}};
    for (const auto& [title, importance] : kHeadings) {
      table_.columns.push_back({title, false, importance});
      row.cells.push_back({title, Tone::kDim});
    }
    row.note = {"layers", Tone::kDim};
    row.note_column = table_.columns.size();
    table_.rows.push_back(std::move(row));
  }

  void add_row(const Kernel& kernel) {
    TableRow row;
    row.name = {shorten_middle(clean(kernel.short_name, options_.ascii), kLongestKernelName,
                               glyphs_.ellipsis)};
    const std::uint64_t mean_ns = kernel.count == 0 ? 0 : kernel.ns / kernel.count;
    row.cells = {
        {format_count(kernel.count)}, {time(kernel.ns)}, {share(kernel.ns)}, {time(mean_ns)}};
    if (kernel.kind == "kernel") {
      row.cells.insert(row.cells.end(), {{dimensions(kernel.grid)},
                                         {dimensions(kernel.block)},
                                         {format_count(std::uint64_t{kernel.registers})},
                                         {format_bytes(kernel.shared_bytes)},
                                         {format_share(kernel.occupancy)}});
    }
    row.cells.resize(table_.columns.size(), {std::string(glyphs_.dash)});
    row.note = {places(kernel)};
    row.note_column = table_.columns.size();
    table_.rows.push_back(std::move(row));
  }

  std::string dimensions(const std::array<std::uint32_t, 3>& size) const {
    return fmt::format("{}{}{}{}{}", size[0], glyphs_.times, size[1], glyphs_.times, size[2]);
  }

  // "blocks.0 forward, blocks.1 forward, (optimizer), +4 more"
  std::string places(const Kernel& kernel) const {
    std::vector<std::string> parts;
    for (const Kernel::Use& use : kernel.uses) {
      if (parts.size() == kUsesShown) break;
      parts.push_back(place_name(profile_, use.layer, use.phase, glyphs_));
    }
    if (kernel.uses.size() > kUsesShown)
      parts.push_back(fmt::format("+{} more", kernel.uses.size() - kUsesShown));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  const Profile& profile_;
  const KernelOptions& options_;
  const Glyphs& glyphs_;
  std::vector<Kernel> kernels_;
  std::uint64_t count_ = 0;
  std::uint64_t ns_ = 0;
  std::uint64_t outside_count_ = 0;
  std::uint64_t outside_ns_ = 0;
  Table table_;
};

}  // namespace
}  // namespace report

Result<KernelSort> parse_kernel_sort(std::string_view name) {
  const auto found =
      std::ranges::find(report::kSorts, name, [](const auto& known) { return known.first; });
  if (found != report::kSorts.end()) return found->second;
  return Error{fmt::format("cannot use \"{}\" as a sort key", report::clean(name, false)),
               "no such name", "Use one of: time, count, name"};
}

std::string kernels_table(const Profile& profile, const KernelOptions& options) {
  if (!options.module.empty() && profile.find(options.module) == nullptr)
    return report::unknown_layer(profile, options.module, options.ascii);
  return report::KernelWriter(profile, options).write();
}

std::string kernels_json(const Profile& profile, const KernelOptions& options) {
  std::vector<Kernel> kernels = report::chosen_kernels(profile, options);
  kernels.resize(report::shown_of(kernels, options));
  return "{\"kernels\":" +
         report::dump_lines(
             kernels, [&](const Kernel& kernel) { return report::kernel_json(profile, kernel); }) +
         "}\n";
}

}  // namespace layertrace
