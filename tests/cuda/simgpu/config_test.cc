#include "core/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace simgpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::variant<Config, std::string> read(const std::map<std::string, std::string>& variables) {
  return read_config([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Config good(const std::map<std::string, std::string>& variables) {
  auto config = read(variables);
  EXPECT_TRUE(std::holds_alternative<Config>(config)) << std::get<std::string>(config);
  return std::get<Config>(config);
}

std::string error(const std::map<std::string, std::string>& variables) {
  auto config = read(variables);
  return std::holds_alternative<std::string>(config) ? std::get<std::string>(config) : "";
}

TEST(Config, WithoutAnyVariableIsOneDevice) {
  const Config config = good({});
  EXPECT_EQ(config.profile->name, "h100");
  EXPECT_EQ(config.devices, 1);
  EXPECT_EQ(config.memory_bytes, config.profile->memory_bytes);
  EXPECT_FALSE(config.virtual_clock);
  EXPECT_TRUE(config.faults.empty());
}

TEST(Config, TakesWhatItIsGiven) {
  const Config config = good({{"SIMGPU_PROFILE", "laptop"},
                              {"SIMGPU_DEVICES", "2"},
                              {"SIMGPU_MEMORY", "512M"},
                              {"SIMGPU_CLOCK", "virtual"},
                              {"SIMGPU_FAULTS", "no_privileges,drop_records=3,device_lost"}});
  EXPECT_EQ(config.profile->name, "laptop");
  EXPECT_EQ(config.devices, 2);
  EXPECT_EQ(config.memory_bytes, std::uint64_t{512} << 20);
  EXPECT_TRUE(config.virtual_clock);
  EXPECT_EQ(config.fault(FaultKind::kDropRecords), 3u);
  EXPECT_EQ(config.fault(FaultKind::kNoPrivileges), 0u);
  EXPECT_EQ(config.fault(FaultKind::kDeviceLost), 100u);
  EXPECT_EQ(config.fault(FaultKind::kOverlap), std::nullopt);
}

TEST(Config, CountsMemoryInBytesToo) {
  EXPECT_EQ(good({{"SIMGPU_MEMORY", "1048576"}}).memory_bytes, 1'048'576u);
  EXPECT_EQ(good({{"SIMGPU_MEMORY", "2G"}}).memory_bytes, std::uint64_t{2} << 30);
}

TEST(Config, RefusesAnUnknownWordWithTheListOfThoseThereAre) {
  EXPECT_THAT(error({{"SIMGPU_PROFILE", "h200"}}),
              AllOf(HasSubstr("'h200'"), HasSubstr("h100, laptop")));
  EXPECT_THAT(error({{"SIMGPU_CLOCK", "slow"}}),
              AllOf(HasSubstr("'slow'"), HasSubstr("real, virtual")));
  const std::string faults = error({{"SIMGPU_FAULTS", "overlap,meltdown"}});
  EXPECT_THAT(faults, HasSubstr("'meltdown'"));
  for (const FaultName& each : fault_names())
    EXPECT_THAT(faults, HasSubstr(std::string(each.name)));
}

TEST(Config, RefusesNumbersThatAreNone) {
  for (const char* devices : {"-1", "x", "1x", "17", "99999999999999999999"})
    EXPECT_THAT(error({{"SIMGPU_DEVICES", devices}}), HasSubstr("SIMGPU_DEVICES")) << devices;
  for (const char* memory : {"0", "G", "-1G", "1T", "99999999999G"})
    EXPECT_THAT(error({{"SIMGPU_MEMORY", memory}}), HasSubstr("SIMGPU_MEMORY")) << memory;
  EXPECT_THAT(error({{"SIMGPU_FAULTS", "drop_records=0"}}), HasSubstr("from 1 on"));
  EXPECT_THAT(error({{"SIMGPU_FAULTS", "drop_records="}}), HasSubstr("from 1 on"));
  EXPECT_THAT(error({{"SIMGPU_FAULTS", "no_cupti=4"}}), HasSubstr("takes no number"));
}

TEST(Config, HasNoDeviceWhereNoneIsAskedFor) {
  EXPECT_EQ(good({{"SIMGPU_DEVICES", "0"}}).devices, 0);
}

TEST(Profiles, SayThatTheyAreSimulated) {
  for (const DeviceProfile& profile : device_profiles())
    EXPECT_THAT(std::string(profile.device_name), HasSubstr("simulated"));
}

}  // namespace
}  // namespace simgpu
