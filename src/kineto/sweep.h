// Attribution of a trace that is at hand as a whole: one walk over the host's events in order of
// time, with a stack for each thread. A module's call, an operator or a call to a device belongs to
// what is open around it; a backward node to the module whose operator made it; what a device did
// to the place of the call that asked for it. Each leaves as a span as soon as it is known.
//
// Clocks of one thread's events differ a little (Python's frames and operators by some 400 ns), so
// not everything nests: what sticks out is cut to what is around it.
#pragma once

#include <cstdint>
#include <vector>

#include "attribute/span.h"
#include "kineto/accounts.h"
#include "kineto/call_join.h"
#include "kineto/events.h"
#include "kineto/forward_places.h"
#include "kineto/operator_layers.h"
#include "kineto/structure.h"

namespace layertrace::kineto {

inline std::uint64_t ns_of(std::int64_t ns) { return static_cast<std::uint64_t>(ns); }

class Sweep {
 public:
  // The trace's names become the dictionary's.
  Sweep(Trace& trace, Structure structure, const JoinedCalls& joined, Dictionary& dictionary,
        SpanSink& sink, Accounts& accounts);

  void run();

 private:
  struct Frame {
    SpanKind kind = SpanKind::kScope;
    bool in_run = false;   // a layer's backward, which is open until something else comes
    bool in_node = false;  // it, or something around it, is a node
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t sequence = 0;  // of a node
    NameId name = kNoName;
    Place place;
  };
  struct OpenOperator {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t detail = 0;
    NameId name = kNoName;
    Place place;
    enum : std::uint8_t { kWaiting, kTold, kDropped } state = kTold;
  };
  struct Lane {
    std::vector<Frame> frames;
    std::vector<OpenOperator> operators;
    std::int64_t last_node_end_ns = 0;
    Place last_node;
    bool entered_module = false;
  };
  struct Call {
    LayerId layer = kNoLayer;
    std::uint32_t around = 0;  // number of the call around it; 0 for none
  };

  void open_lanes();
  void mark_until(std::int64_t ns);
  void mark_step(const StepMark& step);
  void begin_stretches_until(std::int64_t ns);
  void hand_on_until(std::size_t order);

  void add(const HostEvent& event);
  void add_module(const HostEvent& event);
  void add_region(const HostEvent& event);
  void add_operator(const HostEvent& event);
  bool is_node(const HostEvent& event, const NameMeaning& meaning, const Lane& lane) const;
  bool repeats_node(const HostEvent& event, const NameMeaning& meaning, const Lane& lane) const;
  void add_node(const HostEvent& event, const NameMeaning& meaning);
  void add_call(const HostEvent& event, std::size_t number);
  void add_memory(const HostEvent& event);
  void hand_on(const DeviceEvent& device);

  Place owner_of(const HostEvent& node, const NameMeaning& meaning, const Lane& lane);
  void join_run(std::uint16_t thread, Lane& lane, const Place& owner, std::int64_t ns);
  void close_run(std::uint16_t thread, Lane& lane, std::size_t keep = 0);
  static std::size_t run_begin(const Lane& lane);
  void tell_operator(std::uint16_t thread, OpenOperator& op);
  void settle_operators(std::uint16_t thread, Lane& lane);
  void pop_operator(std::uint16_t thread, Lane& lane, std::int64_t ns);
  void close_until(std::uint16_t thread, Lane& lane, const HostEvent& next);
  void close_all(std::int64_t ns);
  void pop_frame(std::uint16_t thread, Lane& lane, std::int64_t ns);
  void push_frame(std::uint16_t thread, Lane& lane, Frame frame, const SpanBegin& span);
  Place place_of(const Lane& lane) const;
  Place launch_place(const Lane& lane);
  bool stands_for_layer(const Lane& lane) const;
  bool is_recomputed(const HostEvent& op, const Lane& lane) const;
  Place open_layer(const HostEvent& event, Lane& lane, LayerId layer, Phase phase);

  Trace& trace_;
  Structure structure_;
  const JoinedCalls joined_;
  Dictionary& dictionary_;
  SpanSink& sink_;
  Accounts& accounts_;
  ForwardPlaces forward_;
  std::vector<Lane> lanes_;
  std::vector<Call> calls_{1};  // by number
  std::size_t next_step_ = 0;
  bool step_begun_ = false;
  std::size_t next_stretch_ = 0;
  std::size_t next_device_ = 0;
  std::vector<std::uint32_t> chain_;  // scratch: calls around a node, outermost first
  OperatorLayers operator_layers_;    // where there are no modules
};

}  // namespace layertrace::kineto
