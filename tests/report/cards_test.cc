// Metrics and model cards: the registry, what is computed, and what people and programs get of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "profiles.h"
#include "report/cards/units.h"

namespace layertrace {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

// Takes metrics away again that a test added.
class Metrics : public testing::Test {
 protected:
  void TearDown() override {
    for (const MetricInfo& info : metrics()) remove_metric(info.key);
  }
};

MetricFunction always(double value) {
  return [value](const MetricInput& /*input*/) { return value; };
}

std::vector<std::string> keys() {
  std::vector<std::string> out;
  for (const MetricInfo& info : metrics()) out.push_back(info.key);
  return out;
}

// A model of 2,000,000 parameters and 1 MiB of buffers, of which a call computes 3 GMACs and takes
// 4 MiB beyond what it had.
Profile made_summary() {
  made::ProfileMaker net;
  const int root = net.root("Net");
  net[root].params = 2'000'000;
  net[root].param_bytes = 8'000'000;
  net[root].buffer_bytes = 1 << 20;
  Amounts amounts;
  amounts.flops = 6e9;
  PhaseStats& forward = net[root].phases[static_cast<std::size_t>(Phase::kForward)];
  forward.amounts = forward.self_amounts = amounts;
  net.profile.counted_share = 1;
  net.profile.device_memory = {{.device = -1, .peak = 4.0 * (1 << 20)}};
  return std::move(net.profile);
}

MetricInput made_input(const Profile& summary) {
  MetricInput input;
  input.summary = &summary;
  input.batch_size = 8;
  input.input_bytes = 1 << 20;
  input.call_s = {0.004, 0.002, 0.040};
  input.evaluate = [] { return 0.93; };
  return input;
}

double value_of(const ModelCard& card, const std::string& key) {
  for (const MetricValue& metric : card.metrics) {
    if (metric.info.key == key && metric.value) return *metric.value;
  }
  return -1;
}

TEST_F(Metrics, HaveTheBuiltInOnesFirst) {
  ASSERT_TRUE(add_metric({.key = "sparsity"}, always(1)));
  EXPECT_THAT(keys(), ElementsAre("evaluation", "model_size", "macs", "parameters",
                                  "memory_footprint", "execution_time", "throughput", "sparsity"));
  EXPECT_EQ(metrics().back().name, "sparsity");
}

TEST_F(Metrics, ThatClaimOneKeyAreAnError) {
  ASSERT_TRUE(add_metric({.key = "sparsity"}, always(1)));
  const auto second = add_metric({.key = "sparsity"}, always(2));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message(),
            "cannot add the metric \"sparsity\": another metric has this key already. Choose "
            "another key, or say override to replace it");
  const auto built_in = add_metric({.key = "macs"}, always(2));
  ASSERT_FALSE(built_in);
  EXPECT_EQ(built_in.error().cause, "a built-in metric has this key");
  const auto pair = add_metric({{.key = "a"}, {.key = "a"}}, MetricsFunction());
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().cause, "two metrics of one function have this key");
}

TEST_F(Metrics, AreAddedTogetherOrNotAtAll) {
  EXPECT_FALSE(add_metric({{.key = "new"}, {.key = "macs"}}, MetricsFunction()));
  EXPECT_THAT(keys(), Not(Contains("new")));
  EXPECT_FALSE(add_metric(std::vector<MetricInfo>{}, MetricsFunction()));
  EXPECT_FALSE(add_metric({.key = ""}, always(1)));
}

TEST_F(Metrics, ReplaceOthersWhereTheySaySo) {
  const Profile summary = made_summary();
  ASSERT_TRUE(add_metric({.key = "macs", .name = "Mine"}, always(7), {.override = true}));
  EXPECT_EQ(metrics()[2].name, "Mine");
  EXPECT_EQ(value_of(*make_card(made_input(summary), "cpu", {}), "macs"), 7);
  ASSERT_TRUE(add_metric({.key = "macs"}, always(8), {.override = true}));
  EXPECT_FALSE(add_metric({.key = "macs"}, always(9)));

  EXPECT_TRUE(remove_metric("macs"));
  EXPECT_EQ(metrics()[2].name, "Computational complexity");
  EXPECT_EQ(value_of(*make_card(made_input(summary), "cpu", {}), "macs"), 3e9);
  EXPECT_FALSE(remove_metric("macs")) << "a built-in one stays";
  EXPECT_FALSE(remove_metric("no such"));
}

TEST_F(Metrics, OfOneFunctionAreComputedAtOnce) {
  int calls = 0;
  ASSERT_TRUE(add_metric({{.key = "top1"}, {.key = "top5"}}, [&](const MetricInput&) {
    ++calls;
    return std::vector<std::optional<double>>{0.7, 0.9};
  }));
  ASSERT_TRUE(add_metric({.key = "top1"}, always(0.75), {.override = true}));
  const auto card = make_card({}, "cpu", {});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(value_of(*card, "top1"), 0.75);
  EXPECT_EQ(value_of(*card, "top5"), 0.9);
}

TEST_F(Metrics, ThatFailAreNamedAndTheOthersStay) {
  ASSERT_TRUE(add_metric({.key = "broken"}, [](const MetricInput&) -> std::optional<double> {
    throw std::runtime_error("no such tensor");
  }));
  ASSERT_TRUE(add_metric({{.key = "first"}, {.key = "second"}},
                         [](const MetricInput&) { return std::vector<std::optional<double>>{1}; }));
  ASSERT_TRUE(add_metric({.key = "last"}, always(3)));
  const auto card = make_card({}, "cpu", {.name = "m"});
  ASSERT_TRUE(card);
  EXPECT_EQ(value_of(*card, "last"), 3);
  EXPECT_EQ(value_of(*card, "first"), 1);
  ASSERT_EQ(card->failures.size(), 1);
  EXPECT_EQ(card->failures[0].message(), "cannot compute the metric \"broken\": no such tensor");
  EXPECT_THAT(card_text(*card),
              HasSubstr("Note: cannot compute the metric \"broken\": no such tensor."));
}

TEST_F(Metrics, AreShownInUnitsThatThereAre) {
  EXPECT_EQ(shown_unit({.key = "m", .unit = "MACs"}, 3e9).name, "GigaMACs");
  EXPECT_EQ(shown_unit({.key = "m", .unit = "MACs"}, 3e3).name, "KiloMACs");
  EXPECT_EQ(shown_unit({.key = "m", .unit = "MACs"}, 30).name, "MACs");
  EXPECT_EQ(shown_unit({.key = "t", .unit = "s"}, 0.002), (MetricUnit{"ms", 1e-3}));
  EXPECT_EQ(shown_unit({.key = "t", .unit = "s"}, 0), (MetricUnit{"s", 1}));
  EXPECT_EQ(shown_unit({.key = "b", .unit = "bytes", .shown_in = "MB"}, 5),
            (MetricUnit{"MB", 1e6}));
  EXPECT_EQ(shown_unit({.key = "b", .unit = "bytes"}, 5e6).name, "MiB");
  EXPECT_EQ(shown_unit({.key = "x", .unit = "widgets"}, 5e6), (MetricUnit{"widgets", 1}));
  EXPECT_EQ(shown_unit({.key = "x", .unit = "widgets", .scales = {{"crates", 100}}}, 500).name,
            "crates");
  const auto unknown = add_metric({.key = "t", .unit = "s", .shown_in = "days"}, always(1));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(
      unknown.error().message(),
      "cannot add the metric \"t\": a value in \"s\" cannot be shown in \"days\". Use one of: "
      "ns, µs, ms, s, min, h; or give scales");
  EXPECT_FALSE(add_metric({.key = "t", .scales = {{"none", 0}}}, always(1)));
}

TEST(MetricNames, AreListedWhereOneIsUnknown) {
  EXPECT_EQ(*parse_metric_comparison("reciprocal"), MetricComparison::kReciprocal);
  EXPECT_EQ(*parse_better("low"), Better::kLow);
  EXPECT_EQ(parse_metric_comparison("rato").error().remedy,
            "Use one of: none, ratio, reciprocal, difference");
  EXPECT_EQ(parse_better("best").error().remedy, "Use one of: high, low");
}

TEST(Figures, HaveDigitsEnough) {
  EXPECT_EQ(cards::figure(42.80141), "42.8014");
  EXPECT_EQ(cards::figure(0.93), "0.9300");
  EXPECT_EQ(cards::figure(12), "12");
  EXPECT_EQ(cards::figure(0), "0");
  EXPECT_EQ(cards::figure(-2.5), "-2.5000");
  EXPECT_EQ(cards::figure(1234.56), "1,234.6");
  EXPECT_EQ(cards::figure(1999.96), "2,000.0");
  EXPECT_EQ(cards::figure(376830.4), "376,830");
  EXPECT_EQ(cards::figure(0.0000321), "3.210e-05");
  EXPECT_EQ(cards::figure(NAN), "nan");
}

TEST_F(Metrics, MakeACard) {
  const Profile summary = made_summary();
  const auto card = make_card(made_input(summary), "cpu", {});
  ASSERT_TRUE(card);
  EXPECT_EQ(card->name, "Net");
  EXPECT_EQ(value_of(*card, "evaluation"), 0.93);
  EXPECT_EQ(value_of(*card, "model_size"), 8'000'000 + (1 << 20));
  EXPECT_EQ(value_of(*card, "macs"), 3e9);
  EXPECT_EQ(value_of(*card, "parameters"), 2e6);
  EXPECT_EQ(value_of(*card, "memory_footprint"), 8'000'000 + 6.0 * (1 << 20));
  EXPECT_EQ(value_of(*card, "execution_time"), 0.004) << "the median, whatever one call took";
  EXPECT_EQ(value_of(*card, "throughput"), 2000);
  ASSERT_NE(card->summary, nullptr);
  EXPECT_EQ(card->summary->layers.size(), 1);
  EXPECT_EQ(card_text(*card),
            "┌───────────────────────────────────────────────┐\n"
            "│ Net · cpu · batch size 8                      │\n"
            "├─────────────────────────────────────┬─────────┤\n"
            "│ Evaluation                          │  0.9300 │\n"
            "│ Model size (MiB)                    │  8.6294 │\n"
            "│ Computational complexity (GigaMACs) │       3 │\n"
            "│ Parameters (millions)               │       2 │\n"
            "│ Memory footprint (MiB)              │ 13.6294 │\n"
            "│ Execution time (ms)                 │       4 │\n"
            "│ Throughput (samples/s)              │   2,000 │\n"
            "└─────────────────────────────────────┴─────────┘\n");
}

TEST_F(Metrics, OfASimulatedGpuAreSaidToBe) {
  Profile summary = made_summary();
  summary.run.simulated = "simulated H100-class GPU";
  const auto on_gpu = make_card(made_input(summary), "cuda:0", {});
  EXPECT_THAT(card_text(*on_gpu), HasSubstr("│ Net · simulated H100-class GPU · batch size 8"));
  EXPECT_THAT(card_text(*on_gpu), HasSubstr("no time is a real GPU's"));
  const auto on_host = make_card(made_input(summary), "cpu", {});
  EXPECT_THAT(card_text(*on_host), Not(HasSubstr("simulated")));
}

TEST_F(Metrics, ThatAreNotKnownAreLeftOutUnlessAskedFor) {
  Profile summary = made_summary();
  summary.counted_share = 0;
  MetricInput input;
  input.summary = &summary;
  const auto card = make_card(input, "cpu", {});
  EXPECT_EQ(card->metrics.size(), 2);
  EXPECT_EQ(value_of(*card, "parameters"), 2e6);
  const auto chosen = make_card(input, "cpu", {.metrics = {"throughput", "parameters"}});
  ASSERT_EQ(chosen->metrics.size(), 2);
  EXPECT_EQ(chosen->metrics[0].info.key, "throughput");
  EXPECT_EQ(chosen->metrics[0].value, std::nullopt);
  EXPECT_THAT(card_text(*chosen, {.ascii = true}), HasSubstr("| Throughput (samples/s) | - |"));
  const auto unknown = make_card(input, "cpu", {.metrics = {"speed"}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(
      unknown.error().message(),
      HasSubstr("cannot show the metric \"speed\": no such name. Use one of: evaluation, "));
}

// ---- Side by side ----

MetricValue metric(MetricInfo info, std::optional<double> value) {
  return {std::move(info), value};
}

ModelCard made_card(const std::string& name, double scale) {
  using enum MetricComparison;
  ModelCard card;
  card.name = name;
  card.device = "cpu";
  card.batch_size = 1;
  card.convention = "layertrace";
  card.metrics = {
      metric({.key = "accuracy", .name = "Accuracy", .comparison = kDifference}, 0.9 * scale),
      metric({.key = "model_size",
              .name = "Model size",
              .unit = "bytes",
              .shown_in = "MiB",
              .comparison = kReciprocal},
             40.0 * (1 << 20) * scale),
      metric({.key = "throughput", .name = "Throughput", .unit = "samples/s", .comparison = kRatio},
             1000 * scale),
      metric({.key = "loss", .name = "Loss", .comparison = kDifference, .better = Better::kLow},
             2 * scale),
      metric({.key = "layers", .name = "Layers"}, 18),
  };
  return card;
}

std::string verdicts(const CardComparison& comparison) {
  std::string out;
  for (const ComparedMetric& row : comparison.rows)
    out += row.info.key + " " + std::string(verdict_name(row.models.back().verdict)) + "\n";
  return out;
}

TEST(Cards, SideBySideKnowWhetherLowOrHighIsBetter) {
  const auto half = compare_cards({made_card("whole", 1), made_card("half", 0.5)});
  EXPECT_EQ(verdicts(half),
            "accuracy worse\nmodel_size better\nthroughput worse\nloss better\nlayers same\n");
  EXPECT_EQ(half.rows[0].models[1].score, -0.45);
  EXPECT_EQ(half.rows[1].models[1].score, 2);
  EXPECT_EQ(half.rows[2].models[1].score, 0.5);
  EXPECT_EQ(half.rows[3].models[1].score, -1);
  EXPECT_EQ(half.rows[4].models[1].score, std::nullopt);
  EXPECT_EQ(half.rows[0].models[0].verdict, Verdict::kUnknown) << "the first is against nothing";
  const auto twice = compare_cards({made_card("whole", 1), made_card("twice", 2)});
  EXPECT_EQ(verdicts(twice),
            "accuracy better\nmodel_size worse\nthroughput better\nloss worse\nlayers same\n");
}

TEST(Cards, SideBySideAreABoxedTable) {
  const auto comparison = compare_cards({made_card("whole", 1), made_card("half", 0.5)});
  EXPECT_EQ(card_text(comparison),
            "┌──────────────────────────────────────────────────────────────┐\n"
            "│ whole · cpu · batch size 1                                   │\n"
            "│ half · cpu · batch size 1                                    │\n"
            "├────────────────────────┬────────┬────────┬───────────────────┤\n"
            "│                        │  whole │   half │ against the first │\n"
            "├────────────────────────┼────────┼────────┼───────────────────┤\n"
            "│ Accuracy               │ 0.9000 │ 0.4500 │     -0.4500 worse │\n"
            "│ Model size (MiB)       │     40 │     20 │      2.00× better │\n"
            "│ Throughput (samples/s) │  1,000 │    500 │       0.50× worse │\n"
            "│ Loss                   │      2 │      1 │         -1 better │\n"
            "│ Layers                 │     18 │     18 │              same │\n"
            "└────────────────────────┴────────┴────────┴───────────────────┘\n");
  EXPECT_EQ(card_text(compare_cards({made_card("a", 1), made_card("b", 1), made_card("c", 2)}),
                      {.ascii = true}),

            "+-------------------------------------------------------------------------------------"
            "------+\n"
            "| a - cpu - batch size 1                                                              "
            "      |\n"
            "| b - cpu - batch size 1                                                              "
            "      |\n"
            "| c - cpu - batch size 1                                                              "
            "      |\n"
            "+------------------------+--------+--------+-------------------+--------+-------------"
            "------+\n"
            "|                        |      a |      b | against the first |      c | against the "
            "first |\n"
            "+------------------------+--------+--------+-------------------+--------+-------------"
            "------+\n"
            "| Accuracy               | 0.9000 | 0.9000 |            0 same | 1.8000 |    +0.9000 "
            "better |\n"
            "| Model size (MiB)       |     40 |     40 |        1.00x same |     80 |       0.50x "
            "worse |\n"
            "| Throughput (samples/s) |  1,000 |  1,000 |        1.00x same |  2,000 |      2.00x "
            "better |\n"
            "| Loss                   |      2 |      2 |            0 same |      4 |          +2 "
            "worse |\n"
            "| Layers                 |     18 |     18 |              same |     18 |             "
            " same |\n"
            "+------------------------+--------+--------+-------------------+--------+-------------"
            "------+\n");
}

TEST(Cards, OfEqualNamesAreNumbered) {
  const auto comparison = compare_cards({made_card("net", 1), made_card("net", 1)});
  EXPECT_EQ(comparison.cards[1].name, "net #2");
  EXPECT_THAT(card_table(comparison).find("net #2"), testing::NotNull());
}

TEST(Cards, ThatDifferInMoreAreComparedInLess) {
  ModelCard other = made_card("other", 2);
  other.batch_size = 4;
  other.device = "cuda:0";
  other.convention = "deeplite";
  other.simulated = "simulated H100-class GPU";
  other.metrics[3].info.unit = "bits";
  const auto comparison = compare_cards({made_card("one", 1), std::move(other)});
  EXPECT_EQ(verdicts(comparison),
            "accuracy better\nmodel_size unknown\nthroughput unknown\nloss unknown\nlayers same\n");
  EXPECT_EQ(comparison.notes.size(), 5);
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("different conventions")));
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("simulated GPU")));
}

TEST(Cards, OfZeroHaveNoRatio) {
  ModelCard none = made_card("none", 0);
  const auto from = compare_cards({none, made_card("some", 1)});
  EXPECT_EQ(from.rows[2].models[1].score, std::nullopt);
  EXPECT_EQ(from.rows[2].models[1].verdict, Verdict::kBetter);
  none.metrics[2].value = NAN;
  EXPECT_EQ(compare_cards({none, made_card("some", 1)}).rows[2].models[1].verdict,
            Verdict::kUnknown);
}

TEST(Cards, AreTables) {
  const ModelCard card = made_card("net", 1);
  const Table table = card_table(card);
  EXPECT_EQ(table.rows(), 5);
  EXPECT_EQ(to_markdown(table),
            "*net · cpu · batch size 1*\n\n"
            "| metric | value | unit |\n| --- | ---: | --- |\n| Accuracy | 0.900 |  |\n"
            "| Model size | 40 | MiB |\n| Throughput | 1,000 | samples/s |\n| Loss | 2 |  |\n"
            "| Layers | 18 |  |\n");
  EXPECT_EQ(std::get<double>(table.find("base_value")->values[1]), 40.0 * (1 << 20));
  EXPECT_EQ(std::get<std::string>(table.find("base_unit")->values[1]), "bytes");
  EXPECT_EQ(std::get<std::string>(table.find("better")->values[3]), "low");
  EXPECT_EQ(std::get<std::string>(table.find("model")->values[0]), "net");
  EXPECT_EQ(
      to_markdown(card_table(compare_cards({card, made_card("half", 0.5)}))),
      "*net · cpu · batch size 1*\n\n*half · cpu · batch size 1*\n\n"
      "| metric | unit | net | half | score | verdict |\n| --- | --- | ---: | ---: | ---: | --- |\n"
      "| Accuracy |  | 0.900 | 0.450 | -0.450 | worse |\n"
      "| Model size | MiB | 40 | 20 | 2 | better |\n"
      "| Throughput | samples/s | 1,000 | 500 | 0.500 | worse |\n"
      "| Loss |  | 2 | 1 | -1 | better |\n| Layers |  | 18 | 18 |  | same |\n");
  EXPECT_EQ(card_table(ModelCard{}).rows(), 0);
}

TEST(Cards, SayInTablesWhatAndWhereTheyAreOf) {
  ModelCard card = made_card("a\nb", 1);
  card.simulated = "simulated H100-class GPU";
  card.notes = {"it ran on a simulated H100-class GPU: no time is a real GPU's",
                "counted as deeplite counts"};
  const Table table = card_table(card);
  EXPECT_EQ(table.note,
            "a\\nb · simulated H100-class GPU · batch size 1\n"
            "Simulated: timed on a simulated H100-class GPU (simgpu). Its times say nothing about "
            "how fast a real GPU is.\n"
            "Note: counted as deeplite counts.");
  EXPECT_EQ(table.find("simulated")->values[0], TableValue(true));
  EXPECT_THAT(to_latex(table), HasSubstr("\\multicolumn{3}{l}{Simulated: timed on a"));
  EXPECT_THAT(to_html(table), HasSubstr("batch size 1<br>Simulated: timed on a"));

  const Table both = card_table(compare_cards({made_card("net", 1), card}));
  EXPECT_THAT(both.note, testing::StartsWith("net · cpu · batch size 1\na\\nb · simulated H100"));
  EXPECT_THAT(both.note, HasSubstr("\nSimulated: timed on a"));
  EXPECT_THAT(both.note, HasSubstr("\nNote on a\\nb: counted as deeplite counts."));
  EXPECT_THAT(both.note, HasSubstr("times are not compared."));
  EXPECT_EQ(both.find("simulated")->values[0], TableValue(true));
  EXPECT_EQ(card_table(made_card("net", 1)).find("simulated")->values[0], TableValue(false));
}

TEST(Cards, AreJson) {
  ModelCard card = made_card("net", 1);
  card.metrics[0].value = std::nullopt;
  card.notes = {"a note"};
  card.failures = {{"cannot compute the metric \"accuracy\"", "no data", ""}};
  const Json json = Json::parse(card_json(card));
  EXPECT_EQ(json["name"], "net");
  EXPECT_EQ(json["batch_size"], 1);
  EXPECT_EQ(json["metrics"][0]["value"], nullptr);
  EXPECT_EQ(json["metrics"][1]["shown_value"], 40);
  EXPECT_EQ(json["metrics"][1]["shown_unit"], "MiB");
  EXPECT_EQ(json["metrics"][3]["better"], "low");
  EXPECT_EQ(json["failures"][0], "cannot compute the metric \"accuracy\": no data");
  const Json both = Json::parse(card_json(compare_cards({card, made_card("half", 0.5)})));
  EXPECT_EQ(both["cards"].size(), 2);
  EXPECT_EQ(both["rows"][1]["models"][1]["score"], 2);
  EXPECT_EQ(both["rows"][1]["models"][1]["verdict"], "better");
}

TEST(Cards, SayWhereTheyWereMadeAndOfWhichLayers) {
  ModelCard card = made_card("net", 1);
  EXPECT_EQ(Json::parse(card_json(card))["run"], nullptr);
  EXPECT_EQ(Json::parse(card_json(card))["layers"], Json::array());
  Profile summary = made::small_net();
  summary.run.layertrace_version = "0.1.0";
  summary.run.python_version = "3.11.7";
  summary.run.torch_version = "2.15.0";
  summary.run.command = "python card.py";
  summary.run.commit = "c0ffee";
  summary.run.name = "nightly";
  card.summary = std::make_shared<const Profile>(summary);
  const Json json = Json::parse(card_json(card));
  EXPECT_EQ(json["run"]["command"], "python card.py");
  EXPECT_EQ(json["run"]["python_version"], "3.11.7");
  ASSERT_EQ(json["layers"].size(), summary.layers.size());
  EXPECT_EQ(json["layers"][0]["path"], summary.layers[0].path);
  EXPECT_EQ(json["layers"][0]["params"], summary.layers[0].params);
  EXPECT_TRUE(json["layers"][0].contains("macs"));
  for (const Table& table : {card_table(card), card_table(compare_cards({card, card}))}) {
    for (const auto& [name, value] :
         {std::pair("layertrace_version", "0.1.0"), std::pair("python_version", "3.11.7"),
          std::pair("torch_version", "2.15.0"), std::pair("command", "python card.py"),
          std::pair("commit", "c0ffee"), std::pair("run_name", "nightly")}) {
      const TableColumn* column = table.find(name);
      ASSERT_NE(column, nullptr) << name;
      EXPECT_TRUE(column->detail);
      EXPECT_EQ(column->values.back(), TableValue(std::string(value)));
    }
  }
}

TEST(Cards, CheckTheNamesOfMetrics) {
  EXPECT_TRUE(check_metrics({}));
  EXPECT_TRUE(check_metrics({"macs", "parameters"}));
  const auto checked = check_metrics({"macs", "speed"});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().cause, "no such name");
  EXPECT_THAT(checked.error().remedy, HasSubstr("execution_time"));
}

TEST(Cards, HoldWhateverNamesHold) {
  ModelCard card = made_card("a\n\x1b[31m\xff", 1);
  card.metrics[0].info.name = "name\nof two lines";
  const std::string text = card_text(card, {.ascii = true});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("name\\nof two lines"));
  EXPECT_TRUE(Json::accept(card_json(card)));
}

TEST(Cards, CountAsDeepliteDoesWhereAsked) {
  made::ProfileMaker net;
  const int root = net.root("Net");
  const int fc = net.layer(root, "fc", "Linear");
  for (const int layer : {root, fc}) {
    net[layer].params = 10;
    net[layer].param_bytes = 40;
    net[layer].shapes = {{"float32[1, 4]", "float32[1, 2]", 1}};
  }
  net[fc].parameters = {{"weight", {2, 4}, "float32", 8, 32, true, false, ""},
                        {"bias", {2}, "float32", 2, 8, true, false, ""}};
  net.profile.counted_share = 1;
  MetricInput input;
  input.summary = &net.profile;
  input.convention = Convention::kDeeplite;
  const auto card = make_card(input, "cpu", {});
  EXPECT_EQ(value_of(*card, "macs"), 10) << "with the bias";
  EXPECT_EQ(value_of(*card, "parameters"), 10);
  EXPECT_EQ(value_of(*card, "model_size"), 40);
  EXPECT_EQ(value_of(*card, "memory_footprint"), 40 + 4 * 4 + 2 * 4 + 2 * 4);
  EXPECT_EQ(card->convention, "deeplite");
  EXPECT_THAT(card->notes, Contains("counted as deeplite counts"));
}

// ---- Metrics of runs ----

Profile run_with(double accuracy, const std::string& unit = "") {
  Profile profile = made::small_net();
  profile.metrics = {metric({.key = "accuracy",
                             .name = "Accuracy",
                             .unit = unit,
                             .comparison = MetricComparison::kDifference},
                            accuracy),
                     metric({.key = "size", .unit = "bytes"}, 2e6)};
  return profile;
}

TEST(RunMetrics, AreATable) {
  const auto table = layertrace::table(run_with(0.93), TableKind::kMetrics);
  ASSERT_TRUE(table);
  EXPECT_EQ(to_markdown(*table),
            "| metric | value | unit |\n| --- | ---: | --- |\n| Accuracy | 0.930 |  |\n"
            "| size | 1.91 | MiB |\n");
  EXPECT_EQ(layertrace::table(made::small_net(), TableKind::kMetrics)->rows(), 0);
}

TEST(RunMetrics, AreInJsonAndInThePage) {
  const Json json = Json::parse(layers_json(run_with(0.93)));
  EXPECT_EQ(json["metrics"][0]["key"], "accuracy");
  EXPECT_EQ(json["metrics"][0]["value"], 0.93);
  EXPECT_EQ(json["metrics"][1]["shown_unit"], "MiB");
  EXPECT_EQ(Json::parse(layers_json(made::small_net()))["metrics"], Json::array());
  EXPECT_THAT(*report_html(run_with(0.93)),
              HasSubstr(R"("metrics":[{"name":"Accuracy","value":"0.9300","unit":"")"));
}

TEST(RunMetrics, AreCompared) {
  const auto comparison = compare({run_with(0.93), run_with(0.9)}, {.names = {"before", "after"}});
  const auto row = std::ranges::find(comparison.rows, "accuracy", &ComparedRow::metric);
  ASSERT_NE(row, comparison.rows.end());
  EXPECT_EQ(row->kind, "metric");
  EXPECT_EQ(row->name, "Accuracy");
  EXPECT_EQ(row->runs[1].verdict, Verdict::kWorse);
  EXPECT_NEAR(row->runs[1].change, -0.03 / 0.93, 1e-12);
  const std::string text = comparison_text(comparison);
  EXPECT_THAT(text, HasSubstr("Metrics: 1 of 2 figures changed\n"));
  EXPECT_THAT(text, HasSubstr("worse"));
  EXPECT_THAT(text, HasSubstr("how much they vary is not known"));
  EXPECT_THAT(to_csv(comparison_table(comparison)), HasSubstr("metric,Accuracy,,accuracy,,after,"));
}

TEST(RunMetrics, OfOneRunOrOfOtherUnitsAreNot) {
  const auto missing = compare({run_with(0.93), made::small_net()});
  EXPECT_THAT(missing.not_in_all, Contains(testing::Field(&NotInAll::name, "accuracy")));
  EXPECT_THAT(comparison_text(missing), HasSubstr("Metrics that B does not have: accuracy, size."));
  const auto differing = compare({run_with(0.93), run_with(93, "%")});
  EXPECT_THAT(differing.notes, Contains(HasSubstr("it is not compared")));
  const auto none = compare({made::small_net(), made::small_net()});
  EXPECT_THAT(comparison_text(none), Not(HasSubstr("Metrics")));
}

TEST(RunMetrics, HoldConditions) {
  const auto comparison = compare({run_with(0.93), run_with(0.9)});
  const auto fails = [&](const char* text) {
    return *check_condition(comparison, *parse_condition(text));
  };
  EXPECT_EQ(fails("metrics.accuracy < -1%"),
            "metrics.accuracy < -1%: metrics.accuracy went from 0.93 to 0.9 (-3.2 %)");
  EXPECT_EQ(fails("metrics.accuracy < -5%"), "");
  EXPECT_EQ(fails("metrics.accuracy < 0.5"), "");
  EXPECT_FALSE(check_condition(comparison, *parse_condition("metrics.recall < 0.5")));
  EXPECT_THAT(parse_condition("accuracy < 1").error().remedy, HasSubstr(", metrics.KEY"));
}

}  // namespace
}  // namespace layertrace
