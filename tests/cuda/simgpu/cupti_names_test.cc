// Names of devices, which real CUPTI tells of what a program has named by NVTX, and the simulated
// one of every device.
#include <cupti.h>
#include <gtest/gtest.h>

#include "core/machine.h"
#include "cuda/conformance/recording.h"

namespace {

TEST(CuptiNames, TellThatTheDeviceIsSimulated) {
  const Recording recording({CUPTI_ACTIVITY_KIND_NAME});
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  const auto names = recording.of<CUpti_ActivityName>(CUPTI_ACTIVITY_KIND_NAME);
  ASSERT_EQ(names.size(), static_cast<std::size_t>(simgpu::Machine::instance().device_count()));
  EXPECT_EQ(names[0].objectKind, CUPTI_ACTIVITY_OBJECT_DEVICE);
  EXPECT_EQ(names[0].objectId.dcs.deviceId, 0u);
  EXPECT_EQ(names[0].name, simgpu::Machine::instance().profile().device_name);
}

}  // namespace
