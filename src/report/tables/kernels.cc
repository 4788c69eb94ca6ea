// What ran on a GPU, in all recorded steps: a row for each kernel and kind of copy; or for each
// layer and phase that it serves, too.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace::tables {
namespace {

struct KernelRow {
  const Kernel* kernel = nullptr;
  Kernel::Use sum;  // of the uses that are asked for
};

void add_use(Kernel::Use& sum, const Kernel::Use& use) {
  sum.min_ns = sum.count == 0 ? use.min_ns : std::min(sum.min_ns, use.min_ns);
  if (sum.count == 0 || std::tie(use.max_ns, use.longest) > std::tie(sum.max_ns, sum.longest))
    sum.longest = use.longest;
  sum.max_ns = std::max(sum.max_ns, use.max_ns);
  sum.count += use.count;
  sum.ns += use.ns;
  sum.bytes += use.bytes;
  sum.outside_count += use.outside_count;
  sum.outside_ns += use.outside_ns;
}

std::vector<KernelRow> kernel_rows(const Profile& profile, const TableOptions& options) {
  const ChosenLayers layers(profile, options);
  std::vector<KernelRow> rows;
  for (const Kernel& kernel : profile.kernels) {
    if (layers.is_whole() && !options.by_layer) {
      rows.push_back({&kernel,
                      {.count = kernel.count,
                       .ns = kernel.ns,
                       .min_ns = kernel.min_ns,
                       .max_ns = kernel.max_ns,
                       .bytes = kernel.bytes,
                       .outside_count = kernel.outside_count,
                       .outside_ns = kernel.outside_ns,
                       .longest = {kernel.grid, kernel.block, kernel.registers, kernel.shared_bytes,
                                   kernel.occupancy}}});
      continue;
    }
    Kernel::Use sum;
    for (const Kernel::Use& use : kernel.uses) {
      if (!layers.has(use.layer)) continue;
      if (options.by_layer) {
        rows.push_back({&kernel, use});
      } else {
        add_use(sum, use);
      }
    }
    if (sum.count > 0) rows.push_back({&kernel, sum});
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const KernelRow& row) { return row.sum.ns; });
  return rows;
}

std::string size_text(const std::array<std::uint32_t, 3>& size) {
  return fmt::format("{}×{}×{}", size[0], size[1], size[2]);
}

// What is known of a launch, which a copy is not.
template <typename T>
TableValue if_kernel(const KernelRow& row, T value) {
  return row.kernel->kind == "kernel" ? cell(std::move(value)) : TableValue();
}

void add_launch(Sheet<KernelRow>& sheet) {
  sheet
      .text("grid",
            [](const KernelRow& row) { return if_kernel(row, size_text(row.sum.longest.grid)); })
      .text("block",
            [](const KernelRow& row) { return if_kernel(row, size_text(row.sum.longest.block)); })
      .integer("registers", "per thread",
               [](const KernelRow& row) { return if_kernel(row, row.sum.longest.registers); })
      .detail()
      .integer("shared_bytes", "bytes",
               [](const KernelRow& row) { return if_kernel(row, row.sum.longest.shared_bytes); })
      .detail()
      .real("occupancy", "share",
            [](const KernelRow& row) { return if_kernel(row, row.sum.longest.occupancy); });
}

}  // namespace

Table kernels_table(const Profile& profile, const TableOptions& options) {
  Sheet<KernelRow> sheet("kernels", kernel_rows(profile, options));
  double all_ns = 0;
  for (const KernelRow& row : sheet.rows()) all_ns += static_cast<double>(row.sum.ns);
  sheet.text("name", [](const KernelRow& row) { return row.kernel->name; })
      .detail()
      .text("short_name", [](const KernelRow& row) { return row.kernel->short_name; })
      .text("kind", [](const KernelRow& row) { return row.kernel->kind; });
  if (options.by_layer) {
    sheet
        .text("path",
              [&](const KernelRow& row) { return shown_path(profile, row.sum.layer, options); })
        .text("phase", [](const KernelRow& row) { return phase_name(row.sum.phase); });
  }
  sheet.integer("count", "", [](const KernelRow& row) { return row.sum.count; })
      .integer("total_ns", "ns", [](const KernelRow& row) { return row.sum.ns; })
      .real("share", "share",
            [=](const KernelRow& row) {
              return all_ns > 0 ? cell(static_cast<double>(row.sum.ns) / all_ns) : TableValue();
            })
      .real("mean_ns", "ns",
            [](const KernelRow& row) {
              const auto count = static_cast<double>(row.sum.count);
              return count > 0 ? cell(static_cast<double>(row.sum.ns) / count) : TableValue();
            })
      .integer("min_ns", "ns", [](const KernelRow& row) { return row.sum.min_ns; })
      .detail()
      .integer("max_ns", "ns", [](const KernelRow& row) { return row.sum.max_ns; })
      .detail()
      .integer("copied_bytes", "bytes",
               [](const KernelRow& row) {
                 return row.kernel->kind == "kernel" ? TableValue() : cell(row.sum.bytes);
               })
      .detail();
  if (!profile.run.imported_from.empty()) {
    sheet.integer("outside_count", "", [](const KernelRow& row) { return row.sum.outside_count; })
        .detail()
        .integer("outside_ns", "ns", [](const KernelRow& row) { return row.sum.outside_ns; })
        .detail();
  }
  add_launch(sheet);
  if (!options.by_layer) {
    sheet.integer("places", "", [](const KernelRow& row) { return row.kernel->uses.size(); })
        .detail();
  }
  return sheet.take();
}

}  // namespace layertrace::tables
