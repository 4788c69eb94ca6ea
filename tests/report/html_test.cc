// report_html(): the page's parts and its data. How it looks and behaves is tested in
// tests/browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using PageJson = nlohmann::json;

// What is between two texts; the last `end` where there are several.
std::string between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin);
  if (from == std::string_view::npos) return "";
  const std::size_t start = from + begin.size();
  return std::string(text.substr(start, text.find(end, start) - start));
}

PageJson data_of(const std::string& page) {
  return PageJson::parse(
      between(page, R"(<script type="application/json" id="data">)", "</script>"));
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(ReportHtml, HoldsTheFiguresOfItsLayers) {
  const auto page = report_html(made::counted_net(), {.trace_file = "run.pftrace"});
  ASSERT_TRUE(page);
  const PageJson data = data_of(*page);
  EXPECT_EQ(data["title"], "Net");
  EXPECT_EQ(data["trace_file"], "run.pftrace");
  EXPECT_EQ(data["base_ns"], 1'000'000);
  const PageJson& layers = data["layers"];
  EXPECT_THAT(layers["path"], ElementsAre("", "fc", "act"));
  EXPECT_THAT(layers["parent"], ElementsAre(-1, 0, 0));
  EXPECT_THAT(layers["forward"], ElementsAre(200'000, 100'000, 50'000));
  EXPECT_THAT(layers["gpu_backward"], ElementsAre(160'000, 160'000, 0));
  EXPECT_EQ(layers["gpu_recompute"][1], 80'000);
  EXPECT_EQ(layers["rate"][1], 50'000'000'000'000);  // 12 GFLOP in 240 µs
  EXPECT_EQ(layers["roof_share"][1], 0.5);           // of 100 TFLOP/s
  EXPECT_EQ(layers["roof"][1], "compute");
  EXPECT_EQ(data["roofs"]["peaks"], PageJson::parse(R"([["bf16", 100000000000000]])"));
}

TEST(ReportHtml, TellsInPlainWordsWhetherItWasSimulated) {
  Profile profile = made::gpu_net();
  const auto told = [](const Profile& of) {
    const PageJson data = data_of(*report_html(of));
    for (const PageJson& fact : data["facts"]) {
      if (fact[0] == "Simulated") return fact[1].get<std::string>();
    }
    return std::string();
  };
  EXPECT_EQ(told(profile), "no: measured on this GPU");
  EXPECT_EQ(told(made::small_net()), "no: measured on this processor");
  profile.run.simulated = "simulated GPU";
  EXPECT_EQ(told(profile), "yes: its times say nothing about how fast a real GPU is");
  EXPECT_THAT(data_of(*report_html(profile))["warnings"][0][0],
              HasSubstr("Simulated: recorded on"));
}

TEST(ReportHtml, TellsWhereTheRunWasMade) {
  Profile profile = made::small_net();
  profile.run.name = "batch 64";
  profile.run.command = "python train.py --token ***";
  profile.run.commit = "0123abc";
  profile.run.python_version = "3.11.2";
  profile.run.clock = "tsc";
  std::map<std::string, std::string> facts;
  const PageJson data = data_of(*report_html(profile));
  for (const PageJson& fact : data["facts"]) facts[fact[0]] = fact[1];
  EXPECT_EQ(facts["Run"], "batch 64");
  EXPECT_EQ(facts["Command"], "python train.py --token ***");
  EXPECT_EQ(facts["Commit"], "0123abc");
  EXPECT_EQ(facts["Python"], "3.11.2");
  EXPECT_EQ(facts["Clock"], "tsc");
}

// Attention computes between its projections, and has a layer below it that is never called.
TEST(ReportHtml, HasWhatLayersComputeThemselves) {
  made::ProfileMaker net;
  const int root = net.root("Net", {4e6, 0});
  const int attention = net.layer(root, "attn", "Attention", {3e6, 0});
  net.layer(attention, "proj", "Linear", {1e6, 0});
  const int fused = net.layer(root, "fused", "Attention", {1e6, 0});
  const int idle = net.layer(fused, "out", "Linear");
  net[idle].calls = 0;
  for (const int layer : {attention, fused}) {
    PhaseStats& forward = net[layer].phases[static_cast<std::size_t>(Phase::kForward)];
    forward.self_amounts = {.flops = 4e9, .bytes = 1e9};
    forward.self_activity_ns.mean = 2e6;
  }
  const PageJson own = data_of(*report_html(net.profile))["own"];
  ASSERT_EQ(own.size(), 1U);  // the other has all of its time for itself: it is drawn as a whole
  EXPECT_EQ(own[0]["layer"], attention);
  EXPECT_EQ(own[0]["rate"], 2e12);
  EXPECT_EQ(own[0]["intensity"], 4);
  EXPECT_EQ(own[0]["ns"], 2e6);
}

TEST(ReportHtml, AllowsItsOwnScriptAndStyleAndNothingElse) {
  const std::string page = *report_html(made::small_net());
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_THAT(policy, testing::MatchesRegex(
                          "default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]{43}='; style-src "
                          "'sha256-[A-Za-z0-9+/]{43}='; connect-src 'none'; base-uri 'none'; "
                          "form-action 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, Not(HasSubstr("<link")));
  EXPECT_THAT(page, Not(HasSubstr("src=\"")));
}

TEST(ReportHtml, CannotBeBrokenOutOfByAName) {
  made::ProfileMaker net;
  const std::string name = "</script><script>alert(\"1\")</script><!-- {{js}}";
  net.layer(net.root("Net", {1, 1, 1, 0}), name, "</SCRIPT >", {1, 1, 1, 0});
  const std::string page = *report_html(net.profile, {.title = name});
  EXPECT_EQ(occurrences(page, "<script"), 3);  // the data, the trace, the script
  EXPECT_EQ(occurrences(page, "alert("), 3);   // as name, path and title: {{js}} was not filled in
  EXPECT_EQ(data_of(page)["layers"]["name"][1], name);
}

TEST(ReportHtml, KeepsATraceThatIsNotTooLarge) {
  const auto trace_of = [](std::string bytes) {
    return between(*report_html(Profile{}, {.trace = std::move(bytes)}),
                   R"(<script type="application/octet-stream" id="trace">)", "</script>");
  };
  EXPECT_EQ(trace_of(""), "");
  EXPECT_EQ(trace_of("f"), "Zg==");  // these are RFC 4648's own
  EXPECT_EQ(trace_of("fo"), "Zm8=");
  EXPECT_EQ(trace_of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(trace_of("\xff\xfe\xfd"), "//79");
  const auto page =
      report_html(Profile{}, {.trace = std::string(kLargestEmbeddedTrace + (1U << 20), 'x')});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().message(),
            "cannot keep the trace in the page: it has 33 MiB, and at most 32 MiB fit. Write the "
            "page without it; `layertrace view` opens the trace");
}

TEST(ReportHtml, OfAnEmptyRunIsAPage) {
  const PageJson data = data_of(*report_html(Profile{}));
  EXPECT_EQ(data["title"], "layertrace report");
  EXPECT_TRUE(data["layers"]["path"].empty());
  EXPECT_EQ(data["roofs"], nullptr);
}

TEST(ReportHtml, DrawsMemoryFromTheTimeline) {
  Profile profile = made::small_net();
  profile.device_memory = {{.device = -1,
                            .peak = 30,
                            .peak_layer = 1,
                            .peak_ns = 5,
                            .timeline = {{5, 30, 1, Phase::kForward}, {9, 10, -1, Phase::kOther}}}};
  const PageJson memory = data_of(*report_html(profile))["memory"][0];
  EXPECT_EQ(memory["device"], "host");
  EXPECT_THAT(memory["ns"], ElementsAre(5, 9));
  EXPECT_THAT(memory["bytes"], ElementsAre(30, 10));
  EXPECT_THAT(memory["layer"], ElementsAre(1, -1));
}

}  // namespace
}  // namespace layertrace
