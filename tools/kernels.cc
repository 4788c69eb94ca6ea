#include "kernels.h"

#include <layertrace/trace.h>

namespace layertrace::tools {

Result<std::string> kernels_report(const KernelArguments& arguments) {
  KernelOptions options = arguments.options;
  const auto sort = parse_kernel_sort(arguments.sort);
  if (!sort) return sort.error();
  options.sort = *sort;
  const auto profile = load(arguments.file);
  if (!profile) return profile.error();
  if (!options.module.empty() && profile->find(options.module) == nullptr) {
    return Error{"cannot show the kernels of " + options.module, "no layer has this path",
                 "`layertrace tree " + arguments.file + "` shows those that exist"};
  }
  if (arguments.format == "json") return kernels_json(*profile, options);
  return kernels_table(*profile, options);
}

Result<Table> kernels_rows(const KernelArguments& arguments, TableOptions options) {
  const auto profile = load(arguments.file);
  if (!profile) return profile.error();
  options.module = arguments.options.module;
  options.limit = static_cast<std::size_t>(arguments.options.limit);
  return table(*profile, TableKind::kKernels, options);
}

}  // namespace layertrace::tools
