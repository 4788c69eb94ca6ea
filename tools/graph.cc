#include "graph.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>

#include <layertrace/trace.h>

#include "child.h"
#include "output.h"
#include "validators.h"

namespace layertrace::tools {
namespace {

// A file that is gone when the picture is drawn.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::error_code none;
    path_ = (std::filesystem::temp_directory_path(none) / "layertrace-XXXXXX").string();
    const int descriptor = mkstemp(path_.data());
    is_there_ = descriptor >= 0;
    if (is_there_) close(descriptor);
  }
  TemporaryFile(const TemporaryFile&) = delete;  // one owner removes it
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (is_there_) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_there_ = false;
};

bool is_graph_text(const std::string& extension) {
  return extension == ".dot" || extension == ".gv";
}

Result<std::string> draw(const std::string& dot, const std::string& format) {
  constexpr std::chrono::minutes kLongest{5};
  const TemporaryFile file;
  if (const auto written = write_output(file.path(), dot); !written) return written.error();
  const auto drawn = output_of({"dot", "-T" + format, file.path()}, kLongest);
  const std::string tried = "cannot draw the graph as " + format;
  constexpr const char* kRemedy =
      "Show less of it with --depth or --start, or write a .dot file and draw it elsewhere";
  if (!drawn) {
    return Error{tried, "there is no `dot` on PATH",
                 "Install Graphviz (Debian: apt-get install graphviz), or write a .dot file and "
                 "draw it elsewhere"};
  }
  if (!drawn->in_time) return Error{tried, "`dot` took more than five minutes", kRemedy};
  if (!drawn->succeeded()) return Error{tried, "`dot` failed", kRemedy};
  return drawn->text;
}

}  // namespace

Result<void> check_graph_name(std::string_view output) {
  const std::string extension = extension_of(std::string(output));
  if (output == "-" || is_graph_text(extension) || extension == ".svg" || extension == ".pdf" ||
      extension == ".png")
    return {};
  return Error{"cannot write " + std::string(output), "its ending does not say what it is to be",
               "Give a name that ends in .dot, .gv, .svg, .pdf or .png"};
}

Result<void> write_graph(const GraphArguments& arguments) {
  if (const auto checked = check_graph_name(arguments.output); !checked) return checked.error();
  const std::string extension = extension_of(arguments.output);
  GraphOptions options = arguments.options;
  for (const std::string& name : arguments.columns) {
    const auto column = parse_column(name);
    if (!column) return column.error();
    options.columns.push_back(*column);
  }
  const auto profile = load(arguments.file);
  if (!profile) return profile.error();
  const std::string& start = options.start;
  if (!start.empty() && profile->find(start) == nullptr) {
    return Error{"cannot draw " + start, "no layer has this path",
                 "`layertrace tree " + arguments.file + "` shows those that exist"};
  }
  const std::string dot = graph_dot(*profile, options);
  if (arguments.output == "-" || is_graph_text(extension))
    return write_output(arguments.output, dot);
  const auto picture = draw(dot, extension.substr(1));
  return picture ? write_output(arguments.output, *picture) : picture.error();
}

void add_graph(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<GraphArguments>();
  auto no_fold = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("graph", "The layers as a picture, coloured by their share of the step");
  command->footer(
      "A box for each layer: name, type, share of the step, forward and backward time, or the\n"
      "columns that are asked for. The ending of the output says what it is: .dot or .gv for\n"
      "Graphviz' own language, .svg, .pdf or .png drawn by the program `dot` of Graphviz.\n\n"
      "Examples:\n"
      "  layertrace graph run.pftrace -o tree.svg\n"
      "  layertrace graph run.pftrace --depth 2 -o tree.dot\n"
      "  layertrace graph run.pftrace --columns type,params,macs --trainable -o model.svg\n"
      "  layertrace graph run.pftrace --start blocks.0 | dot -Tpng > block.png");
  command->add_option("file", arguments->file, "A .pftrace that layertrace wrote")->required();
  command
      ->add_option("-o,--output", arguments->output,
                   "The picture; dot text to the standard output unless given")
      ->check(read_by(check_graph_name));
  command->add_option("--depth", arguments->options.depth, "Levels below the start node")
      ->check(CLI::Range(0, std::numeric_limits<int>::max(), "NONNEGATIVE"));
  command->add_option("--start", arguments->options.start, "Path of the start node");
  command->add_flag("--no-fold", *no_fold, "Show every one of several blocks of the same shape");
  command
      ->add_option("--columns", arguments->columns,
                   "What the boxes tell, as columns of the tree by name, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(read_by(parse_column));
  command->add_flag("--trainable", arguments->options.trainable,
                    "Only layers with trainable parameters, in them or below");
  command->callback([arguments, no_fold, &exit_code] {
    arguments->options.fold = !*no_fold;
    const auto written = write_graph(*arguments);
    exit_code = written ? 0 : tell_error(written.error());
  });
}

}  // namespace layertrace::tools
