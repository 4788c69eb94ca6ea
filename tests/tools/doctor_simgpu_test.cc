// The command on the simulated device, with each fault that it must tell. No Python is asked: that
// is tested in tests/python/gpu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "child.h"

namespace layertrace::tools {
namespace {

using testing::HasSubstr;

struct Told {
  int exit_code = -1;
  std::map<std::string, nlohmann::json> checks;

  std::string status(const std::string& check) const {
    const auto found = checks.find(check);
    return found != checks.end() ? found->second.at("status").get<std::string>() : "missing";
  }
  std::string remedy(const std::string& check) const { return checks.at(check).at("remedy"); }
  std::string detail(const std::string& check) const { return checks.at(check).at("detail"); }
  std::vector<std::string> problems() const {
    std::vector<std::string> names;
    for (const auto& [name, check] : checks) {
      if (check.at("status") == "problem") names.push_back(name);
    }
    return names;
  }
};

Told ask_doctor(const std::vector<std::string>& simgpu_options) {
  const std::string command = std::getenv("LAYERTRACE_BIN");
  std::vector<std::string> words = {command, "simgpu"};
  words.insert(words.end(), simgpu_options.begin(), simgpu_options.end());
  for (const char* word :
       {"--", command.c_str(), "doctor", "--python", "/no/such/python", "--format", "json"})
    words.emplace_back(word);
  Told told;
  const auto output = output_of(words, std::chrono::seconds(60));
  if (!output || !output->in_time || !WIFEXITED(output->status)) return told;
  told.exit_code = WEXITSTATUS(output->status);
  for (const auto& check : nlohmann::json::parse(output->text, nullptr, false))
    told.checks[check.at("check")] = check;
  return told;
}

TEST(DoctorOnSimgpu, CanRecord) {
  const Told told = ask_doctor({"--devices", "2"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_TRUE(told.problems().empty());
  EXPECT_THAT(told.detail("device"), HasSubstr("2 × simulated H100"));
  EXPECT_THAT(told.detail("simgpu"), HasSubstr("the device is simulated"));
  EXPECT_EQ(told.status("driver"), "ok");
  EXPECT_THAT(told.detail("cupti"), HasSubstr("simgpu/libcupti.so.13"));
  EXPECT_EQ(told.status("permissions"), "ok");
  EXPECT_EQ(told.status("subscriber"), "ok");
}

TEST(DoctorOnSimgpu, TellsThatTheUserMayNotProfile) {
  const Told told = ask_doctor({"--faults", "no_privileges"});
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_THAT(told.problems(), testing::ElementsAre("permissions"));
  EXPECT_THAT(told.remedy("permissions"), HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST(DoctorOnSimgpu, TellsASecondSubscriber) {
  const Told told = ask_doctor({"--faults", "second_subscriber"});
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_THAT(told.problems(), testing::ElementsAre("subscriber"));
  EXPECT_THAT(told.remedy("subscriber"), HasSubstr("end it first"));
}

TEST(DoctorOnSimgpu, TellsAMissingCupti) {
  const Told told = ask_doctor({"--faults", "no_cupti"});
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_THAT(told.problems(), testing::ElementsAre("cupti"));
  EXPECT_THAT(told.remedy("cupti"), HasSubstr("LAYERTRACE_CUPTI"));
}

TEST(DoctorOnSimgpu, NotesAnOldCupti) {
  const Told told = ask_doctor({"--faults", "old_cupti"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_EQ(told.status("cupti"), "note");
  EXPECT_THAT(told.detail("cupti"), HasSubstr("of CUDA 12.8"));
  EXPECT_THAT(told.remedy("cupti"), HasSubstr("CUDA 13"));
}

// A device that is lost at its first launch: none is made.
TEST(DoctorOnSimgpu, LaunchesNothing) {
  const Told told = ask_doctor({"--faults", "device_lost=1"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_EQ(told.status("driver"), "ok");
  EXPECT_EQ(told.status("subscriber"), "ok");
}

TEST(DoctorOnSimgpu, HasAnExitCodeForNoDevice) {
  const Told told = ask_doctor({"--devices", "0"});
  EXPECT_EQ(told.exit_code, 3);
  EXPECT_TRUE(told.problems().empty());
}

TEST(DoctorOnSimgpu, MeetsAnotherProfilerByItsVariable) {
  setenv("NSYS_PROFILING_SESSION_ID", "1", 1);
  const Told told = ask_doctor({});
  unsetenv("NSYS_PROFILING_SESSION_ID");
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_THAT(told.problems(), testing::ElementsAre("profiler"));
  EXPECT_THAT(told.detail("profiler"), HasSubstr("Nsight Systems"));
}

}  // namespace
}  // namespace layertrace::tools
