// Each fault that a client of CUPTI can meet, in a process of its own.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::size_t kLaunches = 20;
constexpr std::size_t kRecords = kLaunches + 1;  // and a copy before them

struct Kernel {
  std::uint64_t correlation = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// What the program said.
struct Facts {
  int exit_code = -1;
  std::string output;
  std::map<std::string, std::vector<std::uint64_t>> facts;
  std::vector<Kernel> kernels;

  std::uint64_t only(const std::string& key) const {
    const auto found = facts.find(key);
    if (found == facts.end() || found->second.size() != 1) {
      ADD_FAILURE() << key << " is not there once\n" << output;
      return ~std::uint64_t{0};
    }
    return found->second[0];
  }
  std::vector<std::uint64_t> all(const std::string& key) const {
    const auto found = facts.find(key);
    return found == facts.end() ? std::vector<std::uint64_t>() : found->second;
  }
};

Facts run(const std::string& faults, const std::string& clock = "real", int devices = 1) {
  const std::string command = "SIMGPU_DEVICES=" + std::to_string(devices) + " SIMGPU_FAULTS='" +
                              faults + "' SIMGPU_CLOCK=" + clock + " '" + SIMGPU_CUPTI_CLIENT +
                              "' " + std::to_string(kLaunches) + " 2>&1";
  Facts result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, pipe))
    result.output.append(part, count);
  result.exit_code = WEXITSTATUS(pclose(pipe));
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "kernel") {
      Kernel kernel;
      words >> kernel.correlation >> kernel.start >> kernel.end;
      result.kernels.push_back(kernel);
    } else if (std::uint64_t value = 0; words >> value) {
      result.facts[key].push_back(value);
    }
  }
  return result;
}

// Each n-th record has the flaw, and no other. The copy is the first record.
template <typename Flaw>
void expect_each_nth(const std::vector<Kernel>& kernels, std::size_t n, const Flaw& flaw) {
  ASSERT_EQ(kernels.size(), kLaunches);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    EXPECT_EQ(flaw(i), (i + 2) % n == 0) << "kernel " << i;
}

void expect_sound(const std::vector<Kernel>& kernels) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_GT(kernels[i].start, 0u);
    EXPECT_GT(kernels[i].end, kernels[i].start);
    if (i != 0) {
      EXPECT_GE(kernels[i].start, kernels[i - 1].end);
      EXPECT_GT(kernels[i].correlation, kernels[i - 1].correlation);
    }
  }
}

TEST(CuptiFaults, AreNotThereUnlessAskedFor) {
  const Facts good = run("");
  ASSERT_EQ(good.exit_code, 0) << good.output;
  for (const char* call : {"subscribe", "register", "enable_kernels", "enable_copies", "flush",
                           "dropped_result", "dropped", "synchronize", "last_error", "null_buffers",
                           "late_buffers", "memcpy", "malloc_at_the_end"})
    EXPECT_EQ(good.only(call), 0u) << call;
  EXPECT_EQ(good.only("flush_before_register"), std::uint64_t{CUPTI_ERROR_INVALID_OPERATION});
  EXPECT_THAT(good.all("launch"), testing::AllOf(testing::SizeIs(kLaunches), Each(0u)));
  EXPECT_EQ(good.only("version"), std::uint64_t{CUPTI_API_VERSION});
  EXPECT_EQ(good.only("records"), kRecords);
  EXPECT_EQ(good.kernels.size(), kLaunches);
  EXPECT_THAT(good.all("walk"), Each(std::uint64_t{CUPTI_ERROR_MAX_LIMIT_REACHED}));
  expect_sound(good.kernels);
}

TEST(CuptiFaults, DropRecordsAndCountThem) {
  const Facts bad = run("drop_records=5");
  EXPECT_EQ(bad.only("dropped"), kRecords / 5);
  EXPECT_EQ(bad.only("records"), kRecords - kRecords / 5);
  expect_sound(bad.kernels);
}

TEST(CuptiFaults, LeaveOutTimestamps) {
  const Facts bad = run("zero_timestamps=4");
  expect_each_nth(bad.kernels, 4, [&](std::size_t i) {
    return bad.kernels[i].start == 0 && bad.kernels[i].end == 0;
  });
}

TEST(CuptiFaults, ReverseTimestamps) {
  const Facts bad = run("reversed_timestamps=3");
  expect_each_nth(bad.kernels, 3,
                  [&](std::size_t i) { return bad.kernels[i].end < bad.kernels[i].start; });
  EXPECT_EQ(bad.only("records"), kRecords);
}

TEST(CuptiFaults, RepeatCorrelations) {
  const Facts bad = run("duplicate_correlation=5");
  ASSERT_EQ(bad.kernels.size(), kLaunches);
  expect_each_nth(bad.kernels, 5, [&](std::size_t i) {
    return i != 0 && bad.kernels[i].correlation == bad.kernels[i - 1].correlation;
  });
}

TEST(CuptiFaults, LetKernelsOverlap) {
  const Facts bad = run("overlap=6");
  ASSERT_EQ(bad.kernels.size(), kLaunches);
  expect_each_nth(bad.kernels, 6, [&](std::size_t i) {
    return i != 0 && bad.kernels[i].start < bad.kernels[i - 1].end &&
           bad.kernels[i].start >= bad.kernels[i - 1].start;
  });
  for (const Kernel& each : bad.kernels) EXPECT_GT(each.end, each.start);
}

TEST(CuptiFaults, DeliverTheLastBufferLate) {
  const Facts bad = run("late_buffer");
  EXPECT_EQ(bad.only("flush"), 0u);
  EXPECT_EQ(bad.only("late_buffers"), 1u);
  EXPECT_EQ(bad.only("buffers_at_the_flush") + 1, bad.only("buffers"));
  EXPECT_EQ(bad.only("records"), kRecords);  // nothing is lost
  EXPECT_EQ(bad.only("dropped"), 0u);
}

TEST(CuptiFaults, DeliverTheLastBufferLaterThanTheClientWaits) {
  const Facts bad = run("late_buffer=5000");
  EXPECT_EQ(bad.only("flush"), 0u);
  EXPECT_EQ(bad.only("late_buffers"), 0u);
  EXPECT_LT(bad.only("records"), kRecords);
}

TEST(CuptiFaults, DeliverBuffersWithoutMemory) {
  const Facts bad = run("null_buffer=1");
  EXPECT_EQ(bad.only("null_buffers"), bad.only("buffers"));
  EXPECT_GE(bad.only("null_buffers"), 1u);
  EXPECT_EQ(bad.only("records"), kRecords);
}

TEST(CuptiFaults, AreOfAnOlderVersion) {
  const Facts old = run("old_cupti");
  EXPECT_EQ(old.only("version"), 26u);
  EXPECT_EQ(old.only("records"), kRecords);
  EXPECT_EQ(old.kernels.size(), kLaunches);
  EXPECT_THAT(old.all("walk"), Each(std::uint64_t{CUPTI_ERROR_MAX_LIMIT_REACHED}));
  std::map<std::uint64_t, std::size_t> sizes;
  for (const std::uint64_t size : old.all("record_bytes")) ++sizes[size];
  EXPECT_EQ(sizes, (std::map<std::uint64_t, std::size_t>{{sizeof(CUpti_ActivityKernel9), kLaunches},
                                                         {sizeof(CUpti_ActivityMemcpy5), 1}}));
  EXPECT_LT(sizeof(CUpti_ActivityKernel9), sizeof(CUpti_ActivityKernel11));
  expect_sound(old.kernels);
}

TEST(CuptiFaults, AreOfAVersionFromBeforeCuda12) {
  EXPECT_EQ(run("ancient_cupti").only("version"), 18u);
}

TEST(CuptiFaults, RefuseWhenTheyAreAskedAgain) {
  const Facts first = run("late_refusal=1");
  EXPECT_EQ(first.only("subscribe"), 0u);
  EXPECT_EQ(first.only("enable_kernels"), std::uint64_t{CUPTI_ERROR_DISABLED});
  EXPECT_EQ(first.only("enable_copies"), 0u);
  EXPECT_TRUE(first.kernels.empty());
  const Facts second = run("late_refusal");
  EXPECT_EQ(second.only("enable_kernels"), 0u);
  EXPECT_EQ(second.kernels.size(), kLaunches);
}

TEST(CuptiFaults, StartEarly) {
  // On the virtual clock: under a sanitizer the host is too slow for kernels to queue.
  const Facts bad = run("early=5", "virtual");
  ASSERT_EQ(bad.kernels.size(), kLaunches);
  expect_each_nth(bad.kernels, 5, [&](std::size_t i) {
    return i != 0 && bad.kernels[i].start < bad.kernels[i - 1].end;
  });
  for (const Kernel& each : bad.kernels) EXPECT_GT(each.end, each.start);
}

TEST(CuptiFaults, RefuseForWantOfPrivileges) {
  const Facts bad = run("no_privileges");
  for (const char* call : {"subscribe", "enable_kernels", "enable_copies"})
    EXPECT_EQ(bad.only(call), std::uint64_t{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES}) << call;
  EXPECT_EQ(bad.only("records"), 0u);
  EXPECT_THAT(bad.all("launch"), Each(0u));  // the program itself is well
}

TEST(CuptiFaults, HaveAnotherSubscriber) {
  const Facts bad = run("second_subscriber");
  EXPECT_EQ(bad.only("subscribe"), std::uint64_t{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED});
  EXPECT_THAT(bad.all("launch"), Each(0u));
}

TEST(CuptiFaults, LoseTheDeviceForGood) {
  const Facts bad = run("device_lost=3");
  ASSERT_EQ(bad.exit_code, 0) << bad.output;
  std::vector<std::uint64_t> expected(kLaunches, cudaErrorLaunchFailure);
  expected[0] = expected[1] = expected[2] = cudaSuccess;
  EXPECT_EQ(bad.all("launch"), expected);
  for (const char* call : {"synchronize", "last_error", "last_error_again", "malloc_at_the_end"})
    EXPECT_EQ(bad.only(call), std::uint64_t{cudaErrorLaunchFailure}) << call;
  EXPECT_EQ(bad.only("flush"), 0u);  // what ran is told all the same
  EXPECT_EQ(bad.kernels.size(), 3u);
}

TEST(CuptiFaults, FailOneAllocation) {
  const Facts bad = run("allocation_fails=2");
  EXPECT_EQ(bad.all("malloc"), (std::vector<std::uint64_t>{0, cudaErrorMemoryAllocation, 0}));
  EXPECT_EQ(bad.only("last_error"), std::uint64_t{cudaErrorMemoryAllocation});
  EXPECT_EQ(bad.only("last_error_again"), 0u);
  EXPECT_EQ(bad.only("malloc_at_the_end"), 0u);
  EXPECT_EQ(bad.kernels.size(), kLaunches);
}

TEST(CuptiFaults, ComeTogether) {
  const Facts bad = run("old_cupti,drop_records=5,null_buffer=1");
  EXPECT_EQ(bad.only("version"), 26u);
  EXPECT_EQ(bad.only("records") + bad.only("dropped"), kRecords);
  EXPECT_EQ(bad.only("null_buffers"), bad.only("buffers"));
}

TEST(CuptiFaults, ThatAreUnknownEndTheProgram) {
  const Facts bad = run("drop_record");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.output, HasSubstr("there is no fault 'drop_record'; there are "));
  for (const char* name : {"drop_records", "late_buffer", "null_buffer", "old_cupti", "overlap"})
    EXPECT_THAT(bad.output, HasSubstr(name));
}

TEST(NoDevice, IsAnErrorAndNoCrash) {
  const Facts facts = run("", "real", /*devices=*/0);
  EXPECT_LT(facts.exit_code, 128) << facts.output;  // no signal
  EXPECT_TRUE(facts.kernels.empty());
}

TEST(VirtualClock, GivesTheSameTimesInEveryRun) {
  const Facts first = run("", "virtual");
  const Facts second = run("", "virtual");
  ASSERT_EQ(first.kernels.size(), kLaunches);
  EXPECT_EQ(first.output, second.output);
  expect_sound(first.kernels);
}

}  // namespace
