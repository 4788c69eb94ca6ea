// `layertrace layers`, `ops`, `calls`, `steps`, `parameters`, `sizes` and `ledger`: the tables of a
// saved run, in any format; and what `kernels` shares with them.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/result.h>

namespace layertrace::tools {

struct TableArguments {
  std::string file;
  std::string format;  // "" where none was given: by the output's name, or the command's own
  std::string output;  // "" for stdout
  TableOptions options;
};

// --format (which takes `own` besides the tables' formats), -o and --columns.
void add_output_options(CLI::App& command, TableArguments& arguments,
                        const std::vector<std::string>& own = {});

// Would writing there destroy what is read?
bool overwrites(const std::string& output, const std::string& input);

// What is asked for, by --format or else the output's suffix; `otherwise` where neither tells.
std::string format_of(const TableArguments& arguments, const std::string& otherwise);

// Writes to the output, and says so where that fails. Gives the exit code.
int put_output(const std::string& text, const TableArguments& arguments);

// The same with a table, in one of the tables' formats. A terminal gets no Parquet.
int put_table(const Result<Table>& table, const std::string& format,
              const TableArguments& arguments);
// One that is made by the options of the arguments. Where only the columns are wrong, that is the
// command line's fault: no file would have them.
using MakeTable = std::function<Result<Table>(const TableOptions&)>;
int put_table(const MakeTable& make, const std::string& format, const TableArguments& arguments);

void add_tables(CLI::App& app, int& exit_code);

}  // namespace layertrace::tools
