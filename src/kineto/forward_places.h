// Which forward call made what a backward node undoes? PyTorch tells it twice: a forward operator
// has the number that its node will get, and the node has that number and its thread; and a flow
// leads from the one to the other.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "attribute/span.h"
#include "kineto/events.h"

namespace layertrace::kineto {

// Where something ran, or was made.
struct Place {
  LayerId layer = kNoLayer;
  Phase phase = Phase::kOther;
  Cause cause = Cause::kNoScope;
  std::uint32_t call = 0;  // number of the module's call; 0 for none
};

class ForwardPlaces {
 public:
  explicit ForwardPlaces(Trace& trace);

  // A forward operator, in order of time. Of several with the same number the last is the one that
  // made the node: those before it are around it, or made none.
  void add(const HostEvent& op, const Place& place);
  std::optional<Place> find(const HostEvent& node);

 private:
  struct Made {
    std::uint64_t sequence = 0;
    Place place;
  };
  const FlowEnd* flow_into(const HostEvent& node) const;
  const Place* made_by(std::uint16_t thread, std::uint64_t sequence) const;
  const Place* made_by_any(std::uint64_t sequence, std::uint16_t& thread) const;

  const GrowingArray<FlowEnd>& starts_;  // by thread and time
  const GrowingArray<FlowEnd>& ends_;    // likewise
  std::vector<std::uint32_t> starts_by_id_;
  std::vector<std::size_t> next_start_;  // of each thread
  std::vector<Place> start_places_;      // of each flow, once it was passed
  std::vector<bool> start_passed_;
  std::vector<std::vector<Made>> made_;                 // of each thread, by number
  std::unordered_map<std::uint64_t, Place> made_late_;  // out of order, by thread and number
  std::vector<std::uint32_t> thread_of_id_;  // as autograd numbers them; kNoCall: not known
};

}  // namespace layertrace::kineto
