// Keeps what the vendor's side hands over.
#pragma once

#include <vector>

#include "record/device_record.h"

namespace layertrace::cuda::test {

class KeptRecords final : public DeviceConsumer {
 public:
  void tag(const DeviceTag& tag) override { tags.push_back(tag); }
  void launch(const DeviceLaunch& launch) override { launches.push_back(launch); }
  void activity(const DeviceActivity& activity) override { activities.push_back(activity); }
  void graph_node(const DeviceGraphNode& node) override { nodes.push_back(node); }
  void event_pair(const DeviceEventPair& pair) override { pairs.push_back(pair); }
  void sample(const DeviceSample& sample) override { samples.push_back(sample); }

  std::vector<DeviceTag> tags;
  std::vector<DeviceLaunch> launches;
  std::vector<DeviceActivity> activities;
  std::vector<DeviceGraphNode> nodes;
  std::vector<DeviceEventPair> pairs;
  std::vector<DeviceSample> samples;
};

}  // namespace layertrace::cuda::test
