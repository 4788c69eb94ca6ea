// `layertrace kernels`: what ran on a GPU, as a table or as JSON.
#pragma once

#include <string>

#include <layertrace/report.h>
#include <layertrace/result.h>

namespace layertrace::tools {

struct KernelArguments {
  std::string file;
  std::string sort = "time";
  std::string format = "table";
  KernelOptions options;
};

// An unknown module or sort key is an error that says what there is.
Result<std::string> kernels_report(const KernelArguments& arguments);

// The same as rows, always by their time, for the other formats.
Result<Table> kernels_rows(const KernelArguments& arguments, TableOptions options);

}  // namespace layertrace::tools
