// Pages of runs that nobody recorded, for those that look at them in a browser:
//
//   write_report_pages FOLDER
//
// empty.html (nothing ran), hostile.html (names that would break out), many.html (5,000 layers, 600
// steps), summary.html (of one call), trace.html (with a trace in it).
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

Profile hostile_net() {
  made::ProfileMaker net;
  const int root = net.root("<script>document.title='broken'</script>", {4e6, 5e6, 1, 9});
  net.layer(root, "</script><img src=x onerror=document.title='broken'>", "<b>Linear</b>",
            {1e6, 1e6, 1, 1});
  net.layer(root, "<!--", "--><script>", {9e5, 1e6, 1, 1});
  net.layer(root, R"(quotes "double" 'single' `back` ${1} \n {{js}})", "&lt;Linear&amp;",
            {8e5, 1e6, 1, 1});
  net.layer(root, "right\u202eto left \u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627",
            {7e5, 5e5, 1, 1});
  net.layer(root, "emoji \U0001F525\U0001F9E0", "层", {6e5, 5e5, 1, 1});
  net.layer(root, "not \xff\xfe UTF-8", "Linear", {5e5, 5e5, 1, 1});
  net.layer(root, std::string(4000, 'x'), "Linear", {4e5, 5e5, 1, 1});
  net.steps({10e6});
  net.profile.run.program = "</title><script>document.title='broken'</script>";
  net.profile.health.notes = {"<img src=x onerror=document.title='broken'>"};
  net.profile.metrics = {{{.key = "<b>accuracy</b>", .unit = "<i>%</i>"}, 93.5}};
  net.profile.health.unattributed = {{"</script>", 3, 24'000, {{"<svg onload=alert(1)>", 3}}}};
  return std::move(net.profile);
}

// 25 stages of 10 blocks of 4 parts of 4 layers, with all figures that there are.
Profile many_layers() {
  made::ProfileMaker net;
  constexpr double kLeaf = 1e4;
  const auto times = [](int leaves) {
    return made::Made{kLeaf * leaves, 2 * kLeaf * leaves, 1, 3};
  };
  const int root = net.root("Huge", times(4000));
  for (int stage = 0; stage < 25; ++stage) {
    const int at_stage = net.layer(root, "stage" + std::to_string(stage), "Stage", times(160));
    for (int block = 0; block < 10; ++block) {
      const int at_block = net.layer(at_stage, std::to_string(block), "Block", times(16));
      for (int part = 0; part < 4; ++part) {
        const int at_part = net.layer(at_block, "part" + std::to_string(part), "Part", times(4));
        for (int leaf = 0; leaf < 4; ++leaf)
          net.layer(at_part, "fc" + std::to_string(leaf), "Linear", times(1));
      }
    }
  }
  constexpr std::size_t kFp32 = 1;
  for (Layer& layer : net.profile.layers) {
    PhaseStats& forward = layer.phases[0];
    forward.amounts.flops = forward.host_ns.mean * static_cast<double>(1 + layer.path.size());
    forward.amounts.bytes = forward.host_ns.mean * 8;
    forward.amounts.flops_by_format[kFp32] = forward.amounts.flops;
    forward.busy_ns = forward.host_ns;
  }
  net.steps({170e6});
  Profile profile = std::move(net.profile);
  profile.steps.resize(600);
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    profile.steps[i].index = i;
    profile.steps[i].wall_ns = 170'000'000 + i * 1000;
    profile.steps[i].phase_ns = {50'000'000, 1'000'000, 100'000'000, 0, 19'000'000, 0, 0, i * 1000};
  }
  profile.step_count = profile.steps.size();
  profile.device.name = "some processor";
  profile.device.origin = "given";
  profile.device.flops_per_s[kFp32] = 1e12;
  profile.device.bytes_per_s = 1e11;
  DeviceMemory memory;
  for (int i = 0; i < 2000; ++i) {
    memory.timeline.push_back({.ns = i * 8e4, .bytes = 1e6 * ((i < 1000 ? i : 2000 - i) + i % 7)});
  }
  memory.peak = 1.002e9;
  memory.peak_ns = 8e7;
  profile.device_memory = {memory};
  return profile;
}

Profile summary_of_a_net() {
  Profile profile = made::counted_net();
  profile.run = {};
  profile.run.summary = true;
  profile.metrics = {{{.key = "size", .name = "Size on disk", .unit = "bytes"}, 3.5 * (1 << 20)}};
  return profile;
}

Profile empty_run() {
  Profile profile;
  profile.run.program = "nothing.py";
  return profile;
}

bool write(const std::filesystem::path& path, const Profile& profile,
           const ReportOptions& options = {}) {
  const auto page = report_html(profile, options);
  if (!page) return false;
  std::ofstream file(path, std::ios::binary);
  file << *page;
  return file.good();
}

bool write_all(const std::filesystem::path& folder) {
  std::string bytes(1000, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return write(folder / "empty.html", empty_run()) &&
         write(folder / "hostile.html", hostile_net(),
               {.title = "<img src=x onerror=document.title='broken'>",
                .trace_file = "it's.pftrace"}) &&
         write(folder / "many.html", many_layers()) &&
         write(folder / "summary.html", summary_of_a_net()) &&
         write(folder / "trace.html", made::gpu_net(),
               {.trace_file = "a/run.pftrace", .trace = bytes});
}

}  // namespace
}  // namespace layertrace

int main(int argc, char** argv) {
  if (argc == 2 && layertrace::write_all(argv[1])) return 0;
  std::cerr << "usage: write_report_pages FOLDER\n";
  return 1;
}
