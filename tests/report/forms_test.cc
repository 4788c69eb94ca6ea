// Each form that people know from other tools, of one model, as text: tests/data/goldens/forms. The
// model is the one of a layer profiler's own example: a parameter and functional operators in the
// root; a list, a Sequential and a dict below it. Its times are made up, all else follows from its
// shapes.
//
// LAYERTRACE_WRITE_GOLDENS=1 writes the files anew: look at what changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/profiles.h"

namespace layertrace {
namespace {

constexpr std::int64_t kBatch = 16;
constexpr std::size_t kFp32 = 1;

class FormsNet : public made::ProfileMaker {
 public:
  FormsNet() {
    const int root_layer = root("Net", {2.4 * made::kMs, 3.6 * made::kMs, 1, 30});
    add_parameter(root_layer, "weight", {10, 1});
    linear(root_layer, "linear1", 10, 11, 200 * made::kUs);
    linear(root_layer, "linear2", 10, 10, 180 * made::kUs);
    const int list = container(root_layer, "linear3", "ModuleList", 0, 420 * made::kUs);
    linear(list, "0", 11, 12, 220 * made::kUs);
    linear(list, "1", 12, 11, 200 * made::kUs);
    const int sequence = container(root_layer, "linear4", "Sequential", 1, 400 * made::kUs);
    linear(sequence, "0", 11, 7, 150 * made::kUs);
    const int tanh = layer(sequence, "1", "Tanh", {30 * made::kUs, 45 * made::kUs, 1, 2});
    (*this)[tanh].shapes = {{shape(7), shape(7), 1}};
    linear(sequence, "2", 7, 8, 160 * made::kUs);
    const int dict = container(root_layer, "linear5", "ModuleDict", 0, 250 * made::kUs);
    linear(dict, "a", 8, 3, 130 * made::kUs);
    linear(dict, "b", 3, 1, 120 * made::kUs);
    (*this)[root_layer].shapes = {{shape(10), shape(1), 1}};
    compute(root_layer, "aten::mm", 10, 1);
    steps({10 * made::kMs, 12 * made::kMs});
    profile.run.program = "train.py";
    profile.run.cpu = "some processor";
    profile.health.activities = 60;
    profile.health.activity_ns = 9'000'000;
    profile.counted_share = 1;
    std::ranges::stable_sort(profile.operators, std::greater(),
                             [](const Operator& op) { return op.amounts.flops; });
  }

 private:
  static std::string shape(std::int64_t width) {
    return "float32[" + std::to_string(kBatch) + ", " + std::to_string(width) + "]";
  }

  void add_parameter(int index, const std::string& name, const std::vector<std::int64_t>& sizes) {
    Parameter parameter;
    parameter.name = name;
    parameter.shape = sizes;
    parameter.dtype = "float32";
    parameter.elements = 1;
    for (const std::int64_t size : sizes) parameter.elements *= static_cast<std::uint64_t>(size);
    parameter.bytes = 4 * parameter.elements;
    parameter.trainable = true;
    Layer& own = (*this)[index];
    own.self_params += parameter.elements;
    own.self_params_trainable += parameter.elements;
    own.self_param_bytes += parameter.bytes;
    for (int at = index; at >= 0; at = (*this)[at].parent) {
      (*this)[at].params += parameter.elements;
      (*this)[at].params_trainable += parameter.elements;
      (*this)[at].param_bytes += parameter.bytes;
    }
    own.parameters.push_back(std::move(parameter));
  }

  // The forward and, at twice that, the backward of a product with a weight.
  void compute(int index, const std::string& name, std::int64_t in, std::int64_t out) {
    const auto flops = static_cast<double>(2 * kBatch * in * out);
    const auto moved = static_cast<double>(4 * (kBatch * in + in * out + kBatch * out));
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      const double times = phase == Phase::kForward ? 1 : 2;
      Amounts amounts{.flops = times * flops, .bytes = times * moved};
      amounts.flops_by_format[kFp32] = amounts.flops;
      if (phase == Phase::kForward) amounts.activations = static_cast<double>(kBatch * out);
      const auto found = std::ranges::find(profile.operators, name, &Operator::name);
      Operator& op = found != profile.operators.end() ? *found : profile.operators.emplace_back();
      op.name = name;
      op.calls += times;
      op.amounts += amounts;
      op.uses.push_back({index, phase, times, amounts});
      const auto p = static_cast<std::size_t>(phase);
      (*this)[index].phases[p].self_amounts += amounts;
      for (int at = index; at >= 0; at = (*this)[at].parent)
        (*this)[at].phases[p].amounts += amounts;
    }
  }

  void linear(int parent, const std::string& name, std::int64_t in, std::int64_t out, double ns) {
    const int index = layer(parent, name, "Linear", {ns, 1.5 * ns, 1, 3});
    add_parameter(index, "weight", {out, in});
    add_parameter(index, "bias", {out});
    (*this)[index].shapes = {{shape(in), shape(out), 1}};
    compute(index, "aten::addmm", in, out);
  }

  int container(int parent, const std::string& name, const std::string& type, double calls,
                double ns) {
    return layer(parent, name, type, {ns, 1.5 * ns, calls, 8});
  }
};

const Profile& forms_net() {
  static const FormsNet kNet;
  return kNet.profile;
}

Table made_table(TableKind kind, TableOptions options) {
  options.root = "__root__";
  return *table(forms_net(), kind, options);
}

struct Form {
  std::string file;
  std::function<std::string()> write;
};

std::vector<Form> forms() {
  const auto parameters = [] { return made_table(TableKind::kParameters, {.by_layer = true}); };
  const auto sizes = [] { return made_table(TableKind::kSizes, {}); };
  const auto dotted = [] {
    return made_table(TableKind::kLayers,
                      {.leading_dot = true,
                       .columns = {"path", "type", "params", "forward_flops", "macs",
                                   "input_shapes", "output_shapes", "forward_ns", "backward_ns"}});
  };
  return {
      {"1_attributes.txt",
       [] {
         return tree(forms_net(),
                     {.columns = {Column::kType, Column::kInputShapes, Column::kOutputShapes,
                                  Column::kParams, Column::kMacs},
                      .style = TreeStyle::kBrackets});
       }},
      {"1_attributes_ascii.txt",
       [] {
         return tree(forms_net(), {.depth = 1,
                                   .columns = {Column::kParams, Column::kMacs, Column::kForward},
                                   .ascii = true,
                                   .style = TreeStyle::kBrackets});
       }},
      {"1_layers.csv", [=] { return to_csv(dotted()); }},
      {"1_graph.dot", [] { return graph_dot(forms_net()); }},
      {"1_graph_attributes.dot",
       [] {
         return graph_dot(forms_net(),
                          {.columns = {Column::kType, Column::kKernelSize, Column::kInputShapes,
                                       Column::kOutputShapes, Column::kParams, Column::kMacs},
                           .trainable = true});
       }},
      {"2_counts.json", [] { return counts_json(forms_net(), Convention::kLayertrace); }},
      {"3_parameters.md", [=] { return to_markdown(parameters()); }},
      {"3_parameters.csv", [=] { return to_csv(parameters()); }},
      {"3_parameters.html", [=] { return to_html(parameters()); }},
      {"3_parameters.tex", [=] { return to_latex(parameters()); }},
      {"3_sizes.md", [=] { return to_markdown(sizes()); }},
      {"3_sizes.json", [=] { return to_json(sizes()); }},
      {"3_operators.md",
       [] { return to_markdown(made_table(TableKind::kOperators, {.by_layer = true})); }},
      {"5_repr.txt",
       [] {
         return repr_tree(forms_net(), {},
                          {{"linear1", "in_features=10, out_features=11, bias=True"}});
       }},
      {"5_nested.json", [] { return nested_json(forms_net()); }},
      {"6_levels.txt", [] { return tree(forms_net(), {.view = View::kAll}); }},
      {"6_operators.md", [] { return to_markdown(made_table(TableKind::kOperators, {})); }},
  };
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Forms, AreAsTheyWere) {
  const char* source = std::getenv("LAYERTRACE_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "set LAYERTRACE_SOURCE_DIR, or use ctest";
  const auto folder = std::filesystem::path(source) / "tests/data/goldens/forms";
  for (const Form& form : forms()) {
    if (std::getenv("LAYERTRACE_WRITE_GOLDENS") != nullptr) {
      std::ofstream(folder / form.file, std::ios::binary) << form.write();
      continue;
    }
    EXPECT_EQ(form.write(), read(folder / form.file)) << form.file;
  }
}

}  // namespace
}  // namespace layertrace
