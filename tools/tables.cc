#include "tables.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <system_error>
#include <vector>

#include <layertrace/trace.h>

#include "output.h"
#include "validators.h"

namespace layertrace::tools {
namespace {

// A closed pipe is no error.
bool write_all(std::FILE* file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file);
  return std::fflush(file) == 0 && std::ferror(file) == 0;
}

int put_file(const std::string& text, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file != nullptr && write_all(file, text);
  const int error = errno;
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) return 0;
  return tell_error({"cannot write " + path, std::strerror(error != 0 ? error : errno), ""});
}

// The names of formats, as the error of an unknown one lists them.
std::string known_formats(const std::vector<std::string>& own) {
  std::string names = fmt::format("{}", fmt::join(own, ", "));
  const std::string remedy = parse_table_format("").error().remedy;
  return (names.empty() ? "" : names + ", ") + remedy.substr(remedy.find(':') + 2);
}

struct Subcommand {
  TableKind kind;
  const char* name;
  const char* help;
  const char* footer;
  bool has_layers;       // its rows are layers', and can be chosen by them
  const char* by_layer;  // what --by-layer does, or nullptr where there is none
};

constexpr Subcommand kOperators{TableKind::kOperators,
                                "ops",
                                "The operators with their FLOPs and times, as a table",
                                "Figures are per step.\n\n"
                                "Examples:\n"
                                "  layertrace ops run.pftrace\n"
                                "  layertrace ops run.pftrace --by-layer --format csv -o ops.csv",
                                true,
                                "A row for each layer and phase that calls an operator"};
constexpr Subcommand kCalls{TableKind::kCalls,
                            "calls",
                            "Every single call of a layer, with its times, as a table",
                            "Examples:\n"
                            "  layertrace calls run.pftrace --module blocks.0 --depth 0\n"
                            "  layertrace calls run.pftrace -o calls.parquet",
                            true,
                            nullptr};
constexpr Subcommand kSteps{TableKind::kSteps,
                            "steps",
                            "The recorded steps, with their time by phase, as a table",
                            "Example:\n  layertrace steps run.pftrace --format csv",
                            false,
                            nullptr};
constexpr Subcommand kParameters{
    TableKind::kParameters,
    "parameters",
    "Parameters and buffers, with their sizes, as a table",
    "Examples:\n"
    "  layertrace parameters run.pftrace\n"
    "  layertrace parameters run.pftrace --by-layer --root __root__ --format latex",
    true,
    "A row for each module, with what is below it"};
constexpr Subcommand kSizes{TableKind::kSizes,
                            "sizes",
                            "What went into each layer and came out, as a table",
                            "Example:\n  layertrace sizes run.pftrace --root __root__",
                            true,
                            nullptr};
constexpr Subcommand kLedger{
    TableKind::kLedger,
    "ledger",
    "What the figures explain, what has no layer and what went missing, as a table",
    "Example:\n  layertrace ledger run.pftrace",
    false,
    nullptr};

constexpr Subcommand kMetrics{TableKind::kMetrics,
                              "metrics",
                              "The figures that the program gave to the run, as a table",
                              "Example:\n  layertrace metrics run.pftrace",
                              false,
                              nullptr};

void add_layer_options(CLI::App& command, TableArguments& arguments) {
  constexpr int kMost = std::numeric_limits<int>::max();
  TableOptions& options = arguments.options;
  command.add_option("--module", options.module, "Path of a layer: only it and those below it");
  command.add_option("--depth", options.depth, "Levels below that")
      ->check(CLI::Range(0, kMost, "NONNEGATIVE"));
  command.add_option("--root", options.root, "What the root's path reads, __root__ say");
  command.add_flag("--leading-dot", options.leading_dot, "Paths below the root as .encoder.0");
}

// Single calls are not chosen by it: their trace is read once, and tells of parameters elsewhere.
void add_trainable(CLI::App& command, TableOptions& options) {
  command.add_flag("--trainable", options.trainable,
                   "Only layers with trainable parameters, in them or below");
}

int put_subcommand(TableKind kind, const TableArguments& arguments) {
  const std::string format = format_of(arguments, "md");
  if (kind == TableKind::kCalls) {
    const auto make = [&](const TableOptions& options) { return calls(arguments.file, options); };
    return put_table(make, format, arguments);
  }
  const auto profile = load(arguments.file);
  if (!profile) return tell_error(profile.error());
  const auto make = [&](const TableOptions& options) { return table(*profile, kind, options); };
  return put_table(make, format, arguments);
}

void add_subcommand(CLI::App& app, int& exit_code, const Subcommand& info) {
  auto arguments = std::make_shared<TableArguments>();
  CLI::App* command = app.add_subcommand(info.name, info.help);
  if (info.kind == TableKind::kOperators) command->alias("operators");  // as Python and C++ say
  command->footer(info.footer);
  command->add_option("file", arguments->file, "A .pftrace that layertrace wrote")->required();
  add_output_options(*command, *arguments);
  if (info.has_layers) add_layer_options(*command, *arguments);
  if (info.has_layers && info.kind != TableKind::kCalls)
    add_trainable(*command, arguments->options);
  if (info.by_layer != nullptr)
    command->add_flag("--by-layer", arguments->options.by_layer, info.by_layer);
  command->add_option("--limit", arguments->options.limit, "So many rows at most; 0 for all");
  command->callback(
      [arguments, &exit_code, kind = info.kind] { exit_code = put_subcommand(kind, *arguments); });
}

struct LayersArguments : TableArguments {
  std::string convention;
};

bool has_table_options(const TableOptions& options) {
  return !options.module.empty() || options.depth >= 0 || !options.root.empty() ||
         options.leading_dot || !options.columns.empty() || options.limit != 0 || options.trainable;
}

int put_layers(const LayersArguments& arguments) {
  const auto convention = parse_convention(arguments.convention);
  const std::string format = format_of(arguments, "json");
  if (format == "json" && has_table_options(arguments.options)) {
    return tell_error(
        {"cannot choose layers or columns", "JSON, which is also the default, is the whole profile",
         "Ask for a table: --format csv, md, html, latex or parquet"},
        kUsageError);
  }
  const auto profile = load(arguments.file);
  if (!profile) return tell_error(profile.error());
  if (format == "json") {
    return put_output(convention ? counts_json(*profile, *convention) : layers_json(*profile),
                      arguments);
  }
  const auto make = [&](const TableOptions& options) {
    return convention ? counts_table(*profile, *convention, options)
                      : table(*profile, TableKind::kLayers, options);
  };
  return put_table(make, format, arguments);
}

// JSON is the whole profile here, as it has always been.
void add_layers(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<LayersArguments>();
  CLI::App* command = app.add_subcommand(
      "layers", "The layers' figures, for programs and papers (docs/tables.md, docs/json.md)");
  command->footer(
      "JSON, which is also the default, is the whole profile: docs/json.md has its keys. The "
      "other\n"
      "formats are a table with a row for each layer: docs/tables.md has its columns.\n\n"
      "Examples:\n"
      "  layertrace layers run.pftrace --format json | jq '.health.attributed_share'\n"
      "  layertrace layers run.pftrace --format md --depth 2\n"
      "  layertrace layers run.pftrace -o layers.parquet\n"
      "  layertrace layers run.pftrace --convention fvcore | jq '.by_module'\n"
      "  layertrace layers run.pftrace --convention moduleprofiler --root __root__ -o ops.csv");
  command->add_option("file", arguments->file, "A .pftrace that layertrace wrote")->required();
  add_output_options(*command, *arguments);
  add_layer_options(*command, *arguments);
  add_trainable(*command, arguments->options);
  command->add_option("--limit", arguments->options.limit, "So many rows at most; 0 for all");
  command
      ->add_option("--convention", arguments->convention,
                   "The forward's counts instead, as another tool has them, as JSON or a table:\n"
                   "layertrace, fvcore, torchinfo, moduleprofiler or deeplite")
      ->check(read_by(parse_convention));
  command->callback([arguments, &exit_code] { exit_code = put_layers(*arguments); });
}

}  // namespace

void add_output_options(CLI::App& command, TableArguments& arguments,
                        const std::vector<std::string>& own) {
  const std::string known = known_formats(own);
  command.add_option("--format", arguments.format, known)
      ->check(CLI::Validator(
          [=](const std::string& name) {
            const bool is_known =
                std::ranges::find(own, name) != own.end() || parse_table_format(name);
            return is_known ? std::string()
                            : fmt::format("there is no format '{}'; use one of: {}", name, known);
          },
          ""));
  command.add_option("-o,--output", arguments.output,
                     "A file to write; its suffix tells the format unless --format does");
  command
      .add_option("--columns", arguments.options.columns,
                  "Columns of the table by name, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
}

std::string format_of(const TableArguments& arguments, const std::string& otherwise) {
  if (!arguments.format.empty()) return arguments.format;
  std::string suffix = std::filesystem::path(arguments.output).extension();
  std::ranges::transform(suffix, suffix.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (suffix.size() < 2 || suffix == ".txt") return otherwise;
  return suffix.substr(1);  // one that nobody knows is told of where it is used
}

bool overwrites(const std::string& output, const std::string& input) {
  std::error_code none;
  return !output.empty() && std::filesystem::equivalent(output, input, none);
}

int put_output(const std::string& text, const TableArguments& arguments) {
  if (overwrites(arguments.output, arguments.file)) {
    return tell_error({"cannot write " + arguments.output, "it is the trace that is read",
                       "Name another file with -o"});
  }
  if (!arguments.output.empty()) return put_file(text, arguments.output);
  if (write_all(stdout, text) || errno == EPIPE) return 0;
  return tell_error({"cannot write the output", std::strerror(errno), ""});
}

int put_table(const Result<Table>& table, const std::string& format,
              const TableArguments& arguments) {
  const auto parsed = parse_table_format(format);
  if (!parsed) return tell_error(parsed.error(), kUsageError);
  if (!table) return tell_error(table.error());
  if (*parsed == TableFormat::kParquet && arguments.output.empty() && ::isatty(1) == 1) {
    return tell_error({"cannot write Parquet to a terminal", "it is no text",
                       "Name a file with -o, or send the output to one"});
  }
  return put_output(write(*table, *parsed), arguments);
}

int put_table(const MakeTable& make, const std::string& format, const TableArguments& arguments) {
  TableOptions options = arguments.options;
  const auto table = make(options);
  if (table || options.columns.empty()) return put_table(table, format, arguments);
  options.columns.clear();
  return tell_error(table.error(), make(options) ? kUsageError : kFailed);
}

void add_tables(CLI::App& app, int& exit_code) {
  add_layers(app, exit_code);
  for (const Subcommand& each :
       {kOperators, kCalls, kSteps, kParameters, kSizes, kLedger, kMetrics})
    add_subcommand(app, exit_code, each);
}

}  // namespace layertrace::tools
