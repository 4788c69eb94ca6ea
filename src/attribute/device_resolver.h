// Attribution of what a device did: kernel → the call that asked for it → the scope in which that
// call was made. The three come apart, in any order, so each waits here for the others; how many
// calls are remembered is bounded. What a CUDA graph does was asked for when it was captured: its
// nodes are remembered with the scopes of that time.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "attribute/call_table.h"
#include "attribute/resolver.h"
#include "attribute/span.h"
#include "base/clock.h"
#include "record/device_record.h"

namespace layertrace {

class DeviceResolver final : public DeviceConsumer {
 public:
  DeviceResolver(const Dictionary& dictionary, const Resolver& resolver, SpanSink& sink,
                 TickScale scale, std::uint32_t session = 0)
      : dictionary_(dictionary),
        resolver_(resolver),
        sink_(sink),
        scale_(scale),
        session_(session & 0xffU) {}

  void tag(const DeviceTag& tag) override;
  void launch(const DeviceLaunch& launch) override;
  void activity(const DeviceActivity& activity) override;
  void graph_node(const DeviceGraphNode& node) override;
  void event_pair(const DeviceEventPair& pair) override;
  void sample(const DeviceSample& sample) override;

  // The host's records are resolved up to here: what can be placed now is handed on.
  void settle(std::uint64_t horizon_ticks) { settle(horizon_ticks, /*last=*/false); }
  // Nothing more will come: what is left is handed on with what is known of it.
  void finish();
  // Some launch between these moments has not been followed by its kernel yet.
  bool awaits_kernels(std::uint64_t from_ticks, std::uint64_t until_ticks) const;

 private:
  using Call = CallTable::Call;
  static constexpr std::size_t kMostCalls = std::size_t{1} << 18;
  static constexpr std::size_t kMostGraphNodes = std::size_t{1} << 20;

  Call* find_call(std::uint32_t correlation);
  Call& make_call(std::uint32_t correlation);
  void settle(std::uint64_t horizon_ticks, bool last);
  // The rest answer false or nothing while something that they depend on may still come.
  bool place(const DeviceActivity& activity, std::uint64_t horizon_ticks, bool last);
  bool place_wait(std::uint32_t correlation, std::uint64_t horizon_ticks, bool last);
  bool place_pair(const DeviceEventPair& pair, bool last);
  std::optional<Resolver::Place> place_of_call(const Call& call, std::uint64_t horizon_ticks,
                                               bool last) const;
  // Of a graph's node: where it was captured, or where its graph was launched.
  std::optional<Resolver::Place> place_of_node(std::uint64_t node, const Resolver::Place& launched,
                                               bool last);
  // Where no record of a call came.
  Resolver::Place place_without_call(const DeviceActivity& activity) const;
  // Has the call asked for something else already, though it asks for one thing?
  static bool is_served(Call& call, const DeviceActivity& activity) noexcept;
  void tell(Call& call, const Resolver::Place& place);
  void hand_on(const DeviceActivity& activity, const Resolver::Place& place, const Call* asked);

  const Dictionary& dictionary_;
  const Resolver& resolver_;
  SpanSink& sink_;
  const TickScale scale_;
  const std::uint32_t session_;  // what was left open in another one is not ours
  CallTable calls_;
  std::size_t new_calls_ = 0;  // since the last settling
  std::vector<DeviceActivity> waiting_;
  std::vector<std::uint32_t> waits_;  // calls that wait for a device, by correlation
  std::vector<DeviceEventPair> pairs_;
  struct GraphNode {
    std::uint64_t frame = 0;
    std::optional<Resolver::Place> place;
  };
  std::unordered_map<std::uint64_t, GraphNode> graph_nodes_;
  std::vector<std::uint64_t> unplaced_nodes_;
};

}  // namespace layertrace
