#include "compare.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/trace.h>

#include "output.h"
#include "tables.h"

namespace layertrace::tools {
namespace {

// A condition holds: not an error, but nothing that CI should pass.
constexpr int kConditionHolds = 3;

struct CompareArguments : TableArguments {
  std::vector<std::string> files;
  std::vector<std::string> fail_if;
  CompareOptions how;
  ComparisonTextOptions text;
  std::string color = "auto";
};

int put_text(const Comparison& comparison, const CompareArguments& arguments) {
  const TreeOptions fitting =
      for_terminal(arguments.output.empty() ? 1 : -1, {.width = arguments.text.width,
                                                       .color = arguments.color == "always",
                                                       .ascii = arguments.text.ascii});
  ComparisonTextOptions options = arguments.text;
  options.width = fitting.width;
  options.color = fitting.color && arguments.color != "never";
  options.ascii = fitting.ascii;
  return put_output(comparison_text(comparison, options), arguments);
}

int run_compare(const CompareArguments& arguments) {
  if (arguments.files.size() < 2) {
    return tell_error({"cannot compare runs", "there is nothing to compare with",
                       "Name two traces or more: see `layertrace compare --help`"},
                      kUsageError);
  }
  // A condition that makes no sense is told before anything is read.
  std::vector<Condition> conditions;
  for (const std::string& text : arguments.fail_if) {
    auto condition = parse_condition(text);
    if (!condition) return tell_error(condition.error(), kUsageError);
    conditions.push_back(std::move(*condition));
  }
  std::vector<Profile> runs;
  for (const std::string& file : arguments.files) {
    if (overwrites(arguments.output, file)) {
      return tell_error({"cannot write " + arguments.output,
                         "it is one of the traces that are compared", "Name another file with -o"});
    }
    auto profile = load(file);
    if (!profile) return tell_error(profile.error());
    runs.push_back(std::move(*profile));
  }
  CompareOptions options = arguments.how;
  options.files = arguments.files;
  const Comparison comparison = compare(runs, options);
  const std::string format = format_of(arguments, "text");
  const int printed = format == "text" ? put_text(comparison, arguments)
                                       : put_table(comparison_table(comparison), format, arguments);
  if (printed != 0) return printed;
  for (const Condition& condition : conditions) {
    const auto reason = check_condition(comparison, condition);
    if (!reason) return tell_error(reason.error());
    if (reason->empty()) continue;
    std::cerr << "layertrace: " << *reason << '\n';
    return kConditionHolds;
  }
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command =
      app.add_subcommand("compare", "What changed from one run to others, beyond their noise");
  command->footer(
      "Each run is held against the first, and called what its program named it, or as its file.\n"
      "Layers are matched by path, kernels by name. A time counts as changed where the steps of "
      "the\n"
      "two runs lie apart, and further than by chance.\n\n"
      "--fail-if METRIC > LIMIT ends with exit code 3 and one line that says why: METRIC is one\n"
      "of step_ms, forward_ms, backward_ms, optimizer_ms, gpu_ms, gpu_forward_ms,\n"
      "gpu_backward_ms, kernels, flops, params, memory_bytes, or METRIC@PATH of a layer, which\n"
      "has total_ms, too, or metrics.KEY, a figure that the program gave to the run. LIMIT with a\n"
      "sign or in per cent is a change (one within noise is none), else the figure of the last\n"
      "run.\n\n"
      "Examples:\n"
      "  layertrace compare before.pftrace after.pftrace\n"
      "  layertrace compare main.pftrace branch.pftrace --fail-if 'forward_ms > +5%'\n"
      "  layertrace compare a.pftrace b.pftrace --fail-if 'total_ms@encoder.0 > 1.5'\n"
      "  layertrace compare a.pftrace b.pftrace --fail-if 'metrics.accuracy < -1%'\n"
      "  layertrace compare a.pftrace b.pftrace c.pftrace --format md > table.md");
  command->add_option("files", arguments->files, "Traces that layertrace wrote")->required();
  add_output_options(*command, *arguments, {"text"});
  command->remove_option(command->get_option("--columns"));
  command
      ->add_option("--fail-if", arguments->fail_if,
                   "A condition that is to fail; may be given "
                   "several times")
      ->allow_extra_args(false);
  command
      ->add_option("--min-change", arguments->how.min_change,
                   "Of times, what counts as a change: 0.05 is 5 %, the default")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--error-rate", arguments->how.error_rate,
                   "How often equal runs may show any time as changed: 0.05, the default, is one\n"
                   "comparison in twenty")
      ->check(CLI::Range(0.0, 1.0));
  command->add_flag("--all", arguments->text.all, "Also what did not change");
  command->add_option("--width", arguments->text.width, "Fit into this many columns")
      ->check(CLI::PositiveNumber);
  command->add_option("--color", arguments->color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->add_flag("--ascii", arguments->text.ascii, "Write with ASCII characters");
  command->callback([arguments, &exit_code] { exit_code = run_compare(*arguments); });
}

}  // namespace layertrace::tools
