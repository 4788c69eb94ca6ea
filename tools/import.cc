#include "import.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include <layertrace/report.h>
#include <layertrace/trace.h>

#include "output.h"

namespace layertrace::tools {
namespace {

struct ImportArguments {
  std::string file;
  std::string output;
};

// "trace.pt.trace.json.gz" becomes "trace.pftrace", in the folder where the user is.
std::string output_for(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  for (const std::string_view suffix : {".gz", ".zst", ".json", ".pt.trace"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix))
      name.resize(name.size() - suffix.size());
  }
  return name + ".pftrace";
}

// A bar on the terminal, drawn anew when a percent more is done.
class ProgressBar {
 public:
  void show(std::uint64_t done, std::uint64_t all) {
    constexpr std::uint64_t kWidth = 40;
    const std::uint64_t percent = all == 0 ? 100 : done * 100 / all;
    if (percent == shown_) return;
    shown_ = percent;
    const std::uint64_t filled = percent * kWidth / 100;
    std::fputs(fmt::format("\r[{:<{}}] {:3} %", std::string(filled, '#'), kWidth, percent).c_str(),
               stderr);
  }
  void clear() {
    if (shown_ != kNothing) std::fputs("\r\x1b[K", stderr);
    shown_ = kNothing;
  }

 private:
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};
  std::uint64_t shown_ = kNothing;
};

std::string summary(const Profile& profile, const std::string& output) {
  const Health& health = profile.health;
  std::string text =
      fmt::format("{}: {} events, {} activities", output, health.source.events, health.activities);
  if (health.activities != 0)
    text += fmt::format(", {:.1f} % of their time attributed", 100 * health.attributed_share);
  text += '\n';
  for (const Unattributed& group : health.rejected) {
    text += fmt::format("note: {} of these could not be kept: {}\n", group.count, group.cause);
  }
  for (const std::string& note : health.notes) text += "note: " + note + '\n';
  return text;
}

int run_import(const ImportArguments& arguments) {
  if (arguments.output == "-") {
    return tell_error({"cannot write to the standard output", "a trace is put together in a file",
                       "Give the name of one: -o run.pftrace"},
                      kUsageError);
  }
  ProgressBar bar;
  ImportOptions options{.output = arguments.output.empty() ? output_for(arguments.file)
                                                           : arguments.output};
  if (::isatty(STDERR_FILENO) != 0) {
    options.progress = [&bar](std::uint64_t done, std::uint64_t all) { bar.show(done, all); };
  }
  const auto profile = import_trace(arguments.file, options);
  bar.clear();
  if (!profile) return tell_error(profile.error());
  std::cout << summary(*profile, options.output);
  return 0;
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = app.add_subcommand(
      "import", "Makes a trace of torch.profiler (JSON, gzip or zstd) one that layertrace reads");
  command->footer(
      "Kernels are attributed to modules, forward and backward, where the trace has modules' "
      "calls\n"
      "(with_stack=True); else to phases and operators. Nothing of the source is changed. What of\n"
      "it is left out is counted by reason (docs/import.md).\n\n"
      "Examples:\n"
      "  layertrace import trace.json.gz -o run.pftrace\n"
      "  layertrace import trace.json && layertrace tree trace.pftrace\n"
      "  layertrace layers run.pftrace | jq '.health.source, .health.rejected'");
  command->add_option("file", arguments->file, "A trace.json, trace.json.gz or trace.json.zst")
      ->required();
  command->add_option("-o,--output", arguments->output,
                      "The trace to write; FILE.pftrace in this folder unless given");
  command->callback([arguments, &exit_code] { exit_code = run_import(*arguments); });
}

}  // namespace layertrace::tools
