// What kernels_table() says, as text.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

std::vector<std::string> names(const Profile& profile, const KernelOptions& options) {
  std::vector<std::string> result;
  const auto json = nlohmann::json::parse(kernels_json(profile, options));
  for (const auto& kernel : json["kernels"]) result.push_back(kernel["short_name"]);
  return result;
}

TEST(Kernels, AreATable) {
  EXPECT_EQ('\n' + kernels_table(made::gpu_net()), R"(
Net · train_net · some GPU
4 kernels, copies and sets ran 24 times in 2 recorded steps, 2.90 ms in all. Shares are of that; grid, block, registers, shared memory and occupancy are of the longest run.

kernel                                              count     time   share     mean    grid    block  registers  shared  occupancy  layers
ampere_sgemm_128x64_tn                                  8  2.40 ms  82.8 %   300 µs   8×2×1  128×1×1        122  16 KiB     25.0 %  body.0 backward, body.0 forward, head forward
copy HtoD                                               2   400 µs  13.8 %   200 µs       –        –          –       –          –  (data)
vectorized_elementwise_kernel<launch_clamp_scalar>     10  90.0 µs   3.1 %  9.00 µs  64×1×1  512×1×1         16     0 B      100 %  body.1 forward, Net forward, body forward, +2 more
set                                                     4  8.00 µs   0.3 %  2.00 µs       –        –          –       –          –  head backward
)");
}

TEST(Kernels, OfAModuleAreThoseOfItAndBelow) {
  EXPECT_EQ('\n' + kernels_table(made::gpu_net(), {.module = "body", .limit = 1}), R"(
Net · train_net · some GPU
2 kernels, copies and sets ran in body 10 times in 2 recorded steps, 2.15 ms in all. Shares are of that; grid, block, registers, shared memory and occupancy are of the longest run.

kernel                  count     time   share    mean   grid    block  registers  shared  occupancy  layers
ampere_sgemm_128x64_tn      6  2.10 ms  97.4 %  350 µs  8×2×1  128×1×1        122  16 KiB     25.0 %  body.0 backward, body.0 forward

… 1 more, 2.6 % of the time
)");
  const auto json =
      nlohmann::json::parse(kernels_json(made::gpu_net(), {.module = "head"}))["kernels"];
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["count"], 2);
  EXPECT_EQ(json[0]["ns"], 300'000);
  EXPECT_EQ(json[0]["uses"].size(), 1u);
  EXPECT_EQ(json[0]["uses"][0]["path"], "head");
  EXPECT_EQ(json[0]["grid"], (std::vector<int>{2, 1, 1}));  // of the longest that ran there
}

TEST(Kernels, AreSortedAndLimited) {
  using Names = std::vector<std::string>;
  const std::string relu = "vectorized_elementwise_kernel<launch_clamp_scalar>";
  const std::string gemm = "ampere_sgemm_128x64_tn";
  const Profile net = made::gpu_net();
  EXPECT_EQ(names(net, {}), (Names{gemm, "copy HtoD", relu, "set"}));
  EXPECT_EQ(names(net, {.sort = KernelSort::kCount}), (Names{relu, gemm, "set", "copy HtoD"}));
  EXPECT_EQ(names(net, {.sort = KernelSort::kName}), (Names{gemm, "copy HtoD", "set", relu}));
  EXPECT_EQ(names(net, {.sort = KernelSort::kName, .limit = 2}), (Names{gemm, "copy HtoD"}));
  EXPECT_EQ(names(net, {.limit = 99}).size(), 4u);
}

TEST(Kernels, FitIntoALine) {
  const std::string text = kernels_table(made::gpu_net(), {.width = 60, .ascii = true});
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 60u) << text.substr(begin, end - begin);
  EXPECT_NE(text.find("share"), std::string::npos);
  EXPECT_EQ(text.find("registers  shared"), std::string::npos);
  for (const char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(Kernels, AreNoneWithoutAGpu) {
  EXPECT_EQ(kernels_table(made::small_net()),
            "Net · train_net · AMD EPYC 7R32\n"
            "No GPU was recorded, so there are no kernels. `layertrace tree` shows the host's "
            "time.\n");
  EXPECT_EQ(kernels_json(made::small_net()), "{\"kernels\":[]}\n");
  Profile events = made::gpu_net();
  events.kernels.clear();
  EXPECT_NE(kernels_table(events).find("No kernel ran in the recorded steps."), std::string::npos);
  EXPECT_NE(kernels_table(events, {.module = "body"}).find("No kernel ran in body in the recorded"),
            std::string::npos);
  events.health.gpu.timing = "events";
  EXPECT_NE(kernels_table(events).find("No kernel was recorded: without CUPTI"), std::string::npos);
}

TEST(Kernels, OfAnUnknownModuleAreSaidToBe) {
  EXPECT_EQ(kernels_table(made::gpu_net(), {.module = "body.7"}),
            "no layer \"body.7\" in this profile; \"body\" has 0, 1\n");
}

TEST(Kernels, WithHostileNamesStayOnTheirLine) {
  Profile profile = made::gpu_net();
  profile.kernels[0].short_name = "a\n\x1b[31m" + std::string(500, 'x');
  const std::string text = kernels_table(profile);
  EXPECT_NE(text.find("a\\n\\x1b[31mxxx"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace layertrace
