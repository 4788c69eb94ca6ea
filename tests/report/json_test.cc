// layers_json(), parsed back and compared key by key.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

using Json = nlohmann::ordered_json;
using Keys = std::vector<std::string>;

Json parsed(const Profile& profile) { return Json::parse(layers_json(profile)); }

Keys keys(const Json& object) {
  Keys out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

const Keys kFigures{"calls",       "host_ns",          "self_host_ns", "activities",
                    "activity_ns", "self_activity_ns", "busy_ns",      "copies",
                    "launches",    "event_ns",         "idle_ns"};

const Keys kAmounts{"flops",          "macs",          "aux_flops",        "flops_causal",
                    "bytes",          "activations",   "self_flops",       "self_macs",
                    "self_aux_flops", "self_bytes",    "self_activations", "memory",
                    "flops_per_s",    "bytes_per_s",   "intensity",        "roof",
                    "roof_share",     "unexplained_ns"};

// Each figure another number, so that none can stand in for another.
PhaseStats counted(double first) {
  PhaseStats stats;
  for (Stat* stat : {&stats.calls, &stats.host_ns, &stats.self_host_ns, &stats.activities,
                     &stats.activity_ns, &stats.self_activity_ns, &stats.busy_ns, &stats.copies,
                     &stats.launches, &stats.event_ns, &stats.idle_ns}) {
    *stat = {first, first + 1, first + 2, first + 3, first + 4};
    first += 10;
  }
  return stats;
}

TEST(LayersJson, HasItsPartsInOrder) {
  EXPECT_EQ(keys(parsed(made::small_net())),
            (Keys{"layers", "steps", "health", "phases", "run", "kernels", "idle", "device", "mfu",
                  "hfu", "counted_share", "memory", "uncounted", "operators", "metrics"}));
  EXPECT_EQ(layers_json(made::small_net()), layers_json(made::small_net()));
}

TEST(LayersJson, DescribesEveryLayer) {
  const Json layers = parsed(made::small_net())["layers"];
  ASSERT_EQ(layers.size(), 8u);
  const Json& root = layers[0];
  EXPECT_EQ(keys(root), (Keys{"path",
                              "name",
                              "type",
                              "parent",
                              "calls",
                              "ran",
                              "registered",
                              "shared_with",
                              "forward",
                              "backward",
                              "params",
                              "params_share",
                              "params_trainable",
                              "param_bytes",
                              "buffer_bytes",
                              "self_params",
                              "self_params_trainable",
                              "self_param_bytes",
                              "parameters",
                              "kernel_size",
                              "input_shapes",
                              "output_shapes",
                              "shape_calls"}));
  EXPECT_EQ(root["path"], "");
  EXPECT_EQ(root["name"], "Net");
  EXPECT_EQ(root["type"], "Net");
  EXPECT_TRUE(root["parent"].is_null());
  EXPECT_EQ(root["calls"], 1);
  EXPECT_EQ(root["ran"], true);
  EXPECT_EQ(root["registered"], true);
  EXPECT_TRUE(root["shared_with"].is_null());
  EXPECT_EQ(root["forward"]["host_ns"], 4'000'000);
  EXPECT_EQ(root["backward"]["host_ns"], 5'000'000);

  const Json& inner = layers[3];
  EXPECT_EQ(inner["path"], "heads.0");
  EXPECT_EQ(inner["name"], "0");
  EXPECT_EQ(inner["parent"], "heads");
  EXPECT_EQ(layers[1]["parent"], "");
  EXPECT_EQ(layers[2]["calls"], 0);
  EXPECT_EQ(layers[5]["ran"], false);
  EXPECT_EQ(layers[5]["forward"]["host_ns"], 0);  // always there
  EXPECT_EQ(layers[5]["backward"]["host_ns"], 0);
  EXPECT_EQ(layers[6]["shared_with"], "embed");
  EXPECT_EQ(layers[7]["registered"], false);
  EXPECT_EQ(layers[7]["calls"], 0.5);
}

TEST(LayersJson, HasFiveStatisticsOfElevenFiguresPerPhase) {
  made::ProfileMaker net;
  net.root("Net");
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    net[0].phases[i] = counted(100.0 * static_cast<double>(i + 1));
  const Json layer = parsed(net.profile)["layers"][0];
  const Keys phases{"forward",   "loss",          "backward", "recompute",
                    "optimizer", "communication", "data",     "other"};
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const Json& phase = layer.at(phases[i]);
    Keys expected = kFigures;
    expected.insert(expected.end(), {"min", "max", "median", "stdev"});
    expected.insert(expected.end(), kAmounts.begin(), kAmounts.end());
    EXPECT_EQ(keys(phase), expected);
    for (std::size_t k = 0; k < kFigures.size(); ++k) {
      const auto first = static_cast<double>(100 * (i + 1) + 10 * k);
      EXPECT_EQ(phase[kFigures[k]], first);
      EXPECT_EQ(phase["min"][kFigures[k]], first + 1);
      EXPECT_EQ(phase["max"][kFigures[k]], first + 2);
      EXPECT_EQ(phase["median"][kFigures[k]], first + 3);
      EXPECT_EQ(phase["stdev"][kFigures[k]], first + 4);
    }
    for (const char* statistic : {"min", "max", "median", "stdev"})
      EXPECT_EQ(keys(phase[statistic]), kFigures);
  }
}

TEST(LayersJson, LeavesEmptyPhasesOutButForwardAndBackward) {
  const Json json = parsed(made::small_net());
  for (const Json& layer : json["layers"]) {
    EXPECT_TRUE(layer.contains("forward") && layer.contains("backward"));
    EXPECT_FALSE(layer.contains("loss") || layer.contains("recompute") || layer.contains("other"));
  }
  EXPECT_EQ(keys(json["phases"]), (Keys{"loss", "optimizer", "data"}));
  EXPECT_EQ(json["phases"]["optimizer"]["host_ns"], 1'200'000);
  EXPECT_EQ(json["phases"]["optimizer"]["max"]["activities"], 14);
}

TEST(LayersJson, WritesWholeNumbersWithoutAFraction) {
  made::ProfileMaker net;
  net.root("Net", {.forward_ns = 5, .backward_ns = 2.5, .calls = 1e15});
  net[0].phases[0].busy_ns = made::constant(std::nan(""));
  const std::string text = layers_json(net.profile);
  EXPECT_NE(text.find("\"forward\":{\"calls\":1000000000000000,\"host_ns\":5,"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\"host_ns\":2.5,"), std::string::npos);
  EXPECT_NE(text.find("\"busy_ns\":null"), std::string::npos);
}

TEST(LayersJson, ListsTheSteps) {
  Profile profile = made::small_net();
  profile.steps[1].start_ns = 18'446'744'073'709'551'615u;
  profile.steps[1].phase_ns = {1, 2, 3, 4, 5, 6, 7, 8};
  profile.steps[1].devices = {{0, 10, 20, 3}, {1, 11, 19, 4}};
  const Json steps = parsed(profile)["steps"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(keys(steps[1]), (Keys{"index", "start_ns", "wall_ns", "phases", "devices"}));
  EXPECT_EQ(steps[1]["index"], 1);
  EXPECT_EQ(steps[1]["start_ns"], 18'446'744'073'709'551'615u);
  EXPECT_EQ(steps[1]["wall_ns"], 12'000'000);
  EXPECT_EQ(steps[1]["phases"].dump(),
            R"({"forward":1,"loss":2,"backward":3,"recompute":4,"optimizer":5,)"
            R"("communication":6,"data":7,"other":8})");
  EXPECT_EQ(steps[0]["devices"], Json::array());
  EXPECT_EQ(
      steps[1]["devices"].dump(),
      R"([{"device":0,"busy_ns":10,"idle_ns":20,"exposed_copy_ns":3,"exposed_communication_ns":0},)"
      R"({"device":1,"busy_ns":11,"idle_ns":19,"exposed_copy_ns":4,"exposed_communication_ns":0}])");
}

TEST(LayersJson, TellsTheHealth) {
  Profile profile = made::small_net();
  profile.health.dropped = 7;
  profile.health.cut = true;
  profile.health.cut_scopes = 2;
  profile.health.inferred = 5;
  profile.health.inferred_ns = 6000;
  profile.health.thrown_scopes = 1;
  profile.health.notes = {"one", "two"};
  profile.health.gpu.timing = "both";
  profile.health.gpu.cupti_version = 130200;
  profile.health.gpu.early = 20;
  profile.health.gpu.event_pairs = 21;
  profile.health.gpu.events_missed = 22;
  profile.health.gpu.events_capturing = 23;
  profile.health.gpu.earlier_graphs = 24;
  profile.run.device = "a GPU";
  profile.run.simulated = "a simulated GPU";
  EXPECT_EQ(parsed(profile)["health"], Json::parse(R"({
    "attributed_share": 0.998, "activities": 1204, "activity_ns": 12000000,
    "unattributed": {"launched by a thread with no scope":
        {"count": 3, "ns": 24000, "names": {"aten::add": 2, "aten::mul": 1}}},
    "inferred": 5, "inferred_ns": 6000,
    "nodes": 310,
    "unattributed_nodes": {"made before the recording began":
        {"count": 4, "ns": 0, "names": {"AddBackward0": 4}}},
    "emitted": 12345, "recorded": 12345, "dropped": 7, "cut": true, "cut_scopes": 2, "thrown_scopes": 1,
    "scope_cost_ns": 55, "op_cost_ns": 210, "writer_cpu_ns": 4200000, "tracing_share": 0.003,
    "gpu": {"source": "", "records": 0, "dropped": 0, "buffers_lost": 0, "no_buffer": 0, "unknown": 0,
        "untimed": 0, "reversed": 0, "clock_set": 0, "early": 20, "outside_steps": 0, "event_pairs": 21, "events_missed": 22,
        "events_capturing": 23, "earlier_graphs": 24},
    "steps": 2, "steps_marked": true, "notes": ["one", "two"],
    "device": "a GPU", "cupti_version": 130200, "timing": "both", "simulated": "a simulated GPU",
    "rejected": {}, "source": null})"));
}

TEST(LayersJson, TellsWhatBecameOfAnImportedTrace) {
  Profile profile;
  profile.health.source = {
      .events = 9, .kept = 4, .merged = 3, .left_out = {{"a counter", 1, 0, {}}}};
  profile.health.rejected = {{"negative duration", 1, 0, {}}};
  profile.run.imported_from = "Kineto";
  const Json json = parsed(profile);
  EXPECT_EQ(json["health"]["source"],
            Json::parse(R"({"events": 9, "kept": 4, "merged": 3, "left_out": {"a counter": 1}})"));
  EXPECT_EQ(json["health"]["rejected"],
            Json::parse(R"({"negative duration": {"count": 1, "ns": 0, "names": {}}})"));
  EXPECT_EQ(json["run"]["imported_from"], "Kineto");
}

TEST(LayersJson, TellsOfTheRun) {
  Profile profile;
  profile.run = {.layertrace_version = "0.1.0",
                 .format_version = 2,
                 .torch_version = "2.4.1",
                 .host = "box",
                 .os = "Linux 6.1",
                 .cpu = "EPYC",
                 .cpu_count = 8,
                 .memory_bytes = 1024,
                 .pid = 77,
                 .program = "train",
                 .name = "wide",
                 .command = "train --lr 1",
                 .commit = "0a1b",
                 .python_version = "3.11.7",
                 .clock = "tsc",
                 .created = "2025-01-02T03:04:05Z",
                 .ops = false,
                 .device = "a GPU",
                 .simulated = "a simulated GPU",
                 .summary = false,
                 .imported_from = ""};
  EXPECT_EQ(parsed(profile)["run"], Json::parse(R"({
    "layertrace_version": "0.1.0", "format_version": 2, "torch_version": "2.4.1", "host": "box", "os": "Linux 6.1",
    "cpu": "EPYC", "cpu_count": 8, "memory_bytes": 1024, "pid": 77, "program": "train",
    "name": "wide", "command": "train --lr 1", "commit": "0a1b", "python_version": "3.11.7", "clock": "tsc",
    "created": "2025-01-02T03:04:05Z", "ops": false, "device": "a GPU",
    "simulated": "a simulated GPU"})"));
}

TEST(LayersJson, ListsKernelsAndIdleTime) {
  const Json json = parsed(made::gpu_net());
  ASSERT_EQ(json["kernels"].size(), 4u);
  EXPECT_EQ(json["kernels"][0], Json::parse(R"({
    "name": "ampere_sgemm_128x64_tn", "short_name": "ampere_sgemm_128x64_tn", "kind": "kernel",
    "count": 8, "ns": 2400000, "min_ns": 100000, "max_ns": 500000, "bytes": 0,
    "grid": [8, 2, 1], "block": [128, 1, 1], "registers": 122, "shared_bytes": 16384,
    "occupancy": 0.25,
    "uses": [{"path": "body.0", "phase": "backward", "count": 4, "ns": 1600000},
             {"path": "body.0", "phase": "forward", "count": 2, "ns": 500000},
             {"path": "head", "phase": "forward", "count": 2, "ns": 300000}]})"));
  EXPECT_TRUE(json["kernels"][2]["uses"].back()["path"].is_null());
  EXPECT_EQ(json["idle"][0], Json::parse(R"({"path": "body.0", "phase": "backward",
    "cause": "launch", "ns": 3100000, "gaps": 12})"));
  EXPECT_EQ(json["idle"][1], Json::parse(R"({"path": null, "phase": "data",
    "cause": "data", "ns": 1500000, "gaps": 1})"));
}

TEST(LayersJson, ReplacesWhatIsNotUtf8) {
  Profile profile = made::small_net();
  profile.layers[1].name = "a\xff\n\"";
  profile.run.program = "\xc3";
  profile.health.notes = {"\xe2\x82"};
  profile.health.unattributed = {{"c\xff", 1, 10, {{"n\xfe", 1}, {"n\xff", 2}}},
                                 {"c\xfe", 2, 20, {{"n\xff", 4}}}};
  const Json json = parsed(profile);
  EXPECT_EQ(json["layers"][1]["name"], "a\ufffd\n\"");
  EXPECT_EQ(json["run"]["program"], "\ufffd");
  // Two causes that now read the same are one, with their sum; so are names.
  EXPECT_EQ(json["health"]["unattributed"], Json::parse("{\"c\ufffd\": {\"count\": 3, \"ns\": 30, "
                                                        "\"names\": {\"n\ufffd\": 7}}}"));
}

TEST(LayersJson, SurvivesAnEmptyProfile) {
  const Json json = parsed(Profile());
  EXPECT_EQ(json["layers"], Json::array());
  EXPECT_EQ(json["steps"], Json::array());
  EXPECT_EQ(json["phases"], Json::object());
  EXPECT_EQ(json["kernels"], Json::array());
  EXPECT_EQ(json["idle"], Json::array());
  EXPECT_EQ(json["health"]["unattributed"], Json::object());
  EXPECT_EQ(json["health"]["notes"], Json::array());
}

TEST(LayersJson, TellsWhatWasCounted) {
  const Json json = parsed(made::counted_net());
  const Json& linear = json["layers"][1];
  const Json& forward = linear["forward"];
  EXPECT_EQ(forward["flops"], 4'000'000'000);
  EXPECT_EQ(forward["macs"], 2'000'000'000);
  EXPECT_EQ(forward["aux_flops"], 1'000'000);
  EXPECT_EQ(forward["flops_causal"], 4'000'000'000);
  EXPECT_EQ(forward["bytes"], 20'000'000);
  EXPECT_EQ(forward["activations"], 500'000);
  EXPECT_EQ(forward["self_flops"], 4'000'000'000);
  EXPECT_EQ(forward["memory"],
            Json::parse(R"({"peak": 3000, "kept": 2000, "freed": 500, "allocated": 2500})"));
  // 4 GFLOP take 40 µs at 100 TFLOP/s, 20 MB 20 µs at 1 TB/s; it took 80.
  EXPECT_EQ(forward["flops_per_s"], 50'000'000'000'000);
  EXPECT_EQ(forward["bytes_per_s"], 250'000'000'000);
  EXPECT_EQ(forward["intensity"], 200);
  EXPECT_EQ(forward["roof"], "compute");
  EXPECT_EQ(forward["roof_share"], 0.5);
  EXPECT_EQ(forward["unexplained_ns"], 40'000);
  EXPECT_TRUE(json["layers"][2]["forward"]["roof"].is_null());

  EXPECT_EQ(linear["params"], 1'000'000);
  EXPECT_EQ(linear["params_trainable"], 900'000);
  EXPECT_EQ(linear["param_bytes"], 2'000'000);
  EXPECT_EQ(linear["kernel_size"], "3 × 3");
  EXPECT_EQ(linear["input_shapes"], Json::parse(R"(["bfloat16[8, 1000]"])"));
  EXPECT_EQ(linear["output_shapes"], Json::parse(R"(["bfloat16[8, 500]"])"));
  EXPECT_EQ(linear["shape_calls"], Json::parse("[1]"));
  EXPECT_EQ(linear["parameters"], Json::parse(R"([{"name": "weight", "shape": [500, 2000],
    "dtype": "bfloat16", "elements": 1000000, "bytes": 2000000, "trainable": true,
    "buffer": false, "shared_with": null}])"));
}

TEST(LayersJson, HasTheMemoryOverAStepAsColumns) {
  Profile profile = made::small_net();
  profile.device_memory.resize(1);
  profile.device_memory[0].timeline = {{5, 30, 1, Phase::kForward}, {9, 10.5, -1, Phase::kData}};
  EXPECT_EQ(parsed(profile)["memory"]["devices"][0]["timeline"],
            Json::parse(R"({"ns": [5, 9], "bytes": [30, 10.5], "phase": ["forward", "data"]})"));
}

TEST(LayersJson, TellsWhatTheDeviceCanDoAndWhatWasUsed) {
  const Json json = parsed(made::counted_net());
  EXPECT_EQ(json["device"], Json::parse(R"({"name": "some GPU", "origin": "published", "count": 1,
    "peaks": {"fp64": null, "fp32": null, "tf32": null, "fp16": null, "bf16": 100000000000000,
    "fp8": null, "int8": null, "fp4": null}, "bytes_per_s": 1000000000000,
    "source": "its datasheet"})"));
  EXPECT_DOUBLE_EQ(json["mfu"], 0.12);
  EXPECT_DOUBLE_EQ(json["hfu"], 0.16);
  EXPECT_EQ(json["counted_share"], 1);
  EXPECT_EQ(json["uncounted"], Json::parse(R"([{"name": "my::op", "calls": 2, "share": 0.25}])"));
  ASSERT_EQ(json["operators"].size(), 2u);
  EXPECT_EQ(json["operators"][0], Json::parse(R"({"name": "aten::mm", "calls": 4, "counted": true,
    "flops": 16000000000, "macs": 8000000000, "aux_flops": 0, "flops_causal": 16000000000,
    "bytes": 80000000, "activations": 500000, "host_ns": 3000})"));

  const Json none = parsed(Profile());
  EXPECT_TRUE(none["device"].is_null() && none["mfu"].is_null() && none["hfu"].is_null());
  EXPECT_EQ(none["operators"], Json::array());
  EXPECT_EQ(none["uncounted"], Json::array());
}

TEST(LayersJson, WritesAmountsAsExactIntegers) {
  made::ProfileMaker net;
  net.root("Net");
  net[0].phases[0].amounts.flops = 9'007'199'254'740'992;  // 2^53
  EXPECT_NE(layers_json(net.profile).find("\"flops\":9007199254740992,\"macs\":4503599627370496,"),
            std::string::npos);
}

TEST(LayersJson, PutsOneLayerOnALine) {
  const std::string text = layers_json(made::small_net());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8 + 2 + 14 + 1);
  EXPECT_TRUE(text.ends_with("}\n"));
}

}  // namespace
}  // namespace layertrace
