// A session with a device that is a long way behind the host.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "record/definitions.h"
#include "session/quiet_session.h"

namespace layertrace {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Does one kernel, for whoever first enters a scope once it is armed, and takes its time over it. A
// device that is not recorded has no record of what it does.
class SlowDevice final : public DeviceCapture {
 public:
  explicit SlowDevice(milliseconds takes) : takes_(takes) {}
  Result<void> enable() noexcept override {
    is_on = true;
    return {};
  }
  void disable() noexcept override { is_on = false; }
  void close() noexcept override {}
  void push(std::uint64_t frame) noexcept override {
    if (!is_armed || frame_.load() != 0) return;
    asked_ticks_ = clock_ticks();
    done_ = steady_clock::now() + takes_;
    frame_ = frame;
  }
  void pop(std::uint64_t /*outer*/) noexcept override {}
  void drain(DeviceConsumer& consumer, bool /*all*/) override {
    constexpr std::uint32_t kCorrelation = 1;
    if (frame_.load() == 0) return;
    if (!asked_) {
      asked_ = true;
      consumer.tag({frame_.load(), kCorrelation});
      consumer.launch({asked_ticks_, asked_ticks_ + 1, kCorrelation,
                       static_cast<std::uint32_t>(gettid()),
                       NameTable::instance().intern("launch")});
    }
    if (told_ || steady_clock::now() < done_ || !is_on) return;
    told_ = true;
    DeviceActivity kernel;
    kernel.start_ticks = asked_ticks_ + 2;
    kernel.end_ticks = asked_ticks_ + 3;
    kernel.correlation = kCorrelation;
    kernel.name = NameTable::instance().intern("kernel");
    consumer.activity(kernel);
  }
  GpuHealth health() const override { return {}; }
  std::string name() const override { return "slow device"; }

  std::atomic<bool> is_on{false};
  std::atomic<bool> is_armed{false};

 private:
  const milliseconds takes_;
  std::uint64_t asked_ticks_ = 0;
  steady_clock::time_point done_;
  std::atomic<std::uint64_t> frame_{0};
  bool asked_ = false;
  bool told_ = false;
};

class DeviceSessionTest : public test::SessionTest {
 protected:
  Result<std::shared_ptr<SessionState>> start_with(std::shared_ptr<SlowDevice> device,
                                                   Options options) {
    return SessionState::start(
        std::move(options), std::make_unique<test::QuietHooks>(&hooks_on_),
        [](Recording& recording) {
          recording.definitions().add_layer({.path = "", .name = "Net", .type = "Net"});
          recording.definitions().add_layer(
              {.path = "a", .name = "a", .type = "Linear", .parent = LayerId{0}});
        },
        [device](const DeviceRequest&) -> Result<DeviceParts> {
          DeviceParts parts;
          parts.capture = device;
          return parts;
        });
  }
};

// The window is over, the device is not: what it was asked for in the window is waited for, and the
// device then left alone.
TEST_F(DeviceSessionTest, IsRecordedUntilItHasDoneWhatTheWindowAskedFor) {
  const auto device = std::make_shared<SlowDevice>(milliseconds(900));
  auto session = start_with(device, {.schedule = {.record = 1, .repeat = 1}});
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_TRUE(device->is_on);
  device->is_armed = true;
  call_model();
  (*session)->step();
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_TRUE(device->is_on) << "its kernel has not come yet";
  const auto begin = steady_clock::now();
  while (device->is_on && steady_clock::now() - begin < std::chrono::seconds(8))
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(device->is_on) << "nothing is left to wait for";
  const auto profile = (*session)->stop();
  ASSERT_TRUE(profile) << profile.error().message();
  EXPECT_EQ(profile->health.activities, 1U);
  EXPECT_EQ(profile->find("")->phase(Phase::kForward).activities.mean, 1);
}

}  // namespace
}  // namespace layertrace
