#include "report.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include <layertrace/report.h>
#include <layertrace/trace.h>

#include "output.h"

namespace layertrace::tools {

Result<std::string> write_report(const ReportArguments& arguments) {
  std::string output = arguments.output;
  if (output.empty())
    output = std::filesystem::path(arguments.file).replace_extension(".html").string();
  const auto profile = load(arguments.file);
  if (!profile) return profile.error();
  std::error_code none;
  if (std::filesystem::equivalent(arguments.file, output, none)) {
    return Error{"cannot write the page to " + output, "that is the trace itself",
                 "Give another place with -o"};
  }
  ReportOptions options{.title = arguments.title, .trace_file = arguments.file};
  if (arguments.embed_trace) {
    const auto size = std::filesystem::file_size(arguments.file, none);
    if (!none && size > kLargestEmbeddedTrace) {  // told without reading it
      return Error{"cannot keep " + arguments.file + " in the page",
                   fmt::format("it has {} MiB, and at most {} MiB fit", size >> 20U,
                               kLargestEmbeddedTrace >> 20U),
                   "Leave --embed-trace out; `layertrace view` opens the trace"};
    }
    auto trace = read_file(arguments.file);
    if (!trace) return trace.error();
    options.trace = std::move(*trace);
  }
  const auto page = report_html(*profile, options);
  if (!page) return page.error();
  if (const auto written = write_output(output, *page); !written) return written.error();
  return output;
}

void add_report(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command =
      app.add_subcommand("report", "A run as one page of HTML that opens without any network");
  command->footer(
      "The page holds all that it shows: layers by time, a table of them, steps, roofline, memory\n"
      "and what the figures explain. It asks nothing of any server (docs/report.md).\n\n"
      "Examples:\n"
      "  layertrace report run.pftrace                     writes run.html\n"
      "  layertrace report run.pftrace -o runs/monday.html --title 'batch 64'\n"
      "  layertrace report run.pftrace --embed-trace       its button opens the trace in Perfetto");
  command->add_option("file", arguments->file, "A .pftrace that layertrace wrote")->required();
  command->add_option("-o,--output", arguments->output,
                      "The page; FILE with .html as its ending unless given, - for the standard "
                      "output");
  command->add_option("--title", arguments->title, "Its heading; the model's name unless given");
  command->add_flag("--embed-trace", arguments->embed_trace,
                    "Keep the trace in the page, too: up to 32 MiB");
  command->callback([arguments, &exit_code] {
    const auto written = write_report(*arguments);
    exit_code = written ? 0 : tell_error(written.error());
    if (written && *written != "-") std::cout << *written << '\n';
  });
}

}  // namespace layertrace::tools
