// Attribution of what a device did: kernel → the call that asked for it → the scope in which that
// call was made. The three come apart, in any order, so each waits here for the others; how many
// calls are remembered is bounded.
#pragma once

#include <cstdint>
#include <vector>

#include "attribute/resolver.h"
#include "attribute/span.h"
#include "base/clock.h"
#include "record/device_record.h"

namespace layertrace {

class DeviceResolver final : public DeviceConsumer {
 public:
  DeviceResolver(const Dictionary& dictionary, const Resolver& resolver, SpanSink& sink,
                 TickScale scale)
      : dictionary_(dictionary), resolver_(resolver), sink_(sink), scale_(scale) {}

  void tag(const DeviceTag& tag) override;
  void launch(const DeviceLaunch& launch) override;
  void activity(const DeviceActivity& activity) override;

  // The host's records are resolved up to here: what can be placed now is handed on.
  void settle(std::uint64_t horizon_ticks);
  // Nothing more will come: what is left is handed on with what is known of it.
  void finish();

 private:
  struct Call {
    std::uint64_t scope = 0;
    std::uint64_t start_ticks = 0;
    std::uint32_t correlation = 0;
    std::uint32_t tid = 0;
    bool launched = false;
  };
  static constexpr std::size_t kCalls = std::size_t{1} << 17;

  Call& call(std::uint32_t correlation);
  bool place(const DeviceActivity& activity, std::uint64_t horizon_ticks, bool last);
  void hand_on(const DeviceActivity& activity, const Resolver::Place& place,
               std::uint64_t launch_ns);

  const Dictionary& dictionary_;
  const Resolver& resolver_;
  SpanSink& sink_;
  const TickScale scale_;
  std::vector<Call> calls_;  // by the last digits of their correlation, which counts up
  std::vector<DeviceActivity> waiting_;
};

}  // namespace layertrace
