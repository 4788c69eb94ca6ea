// Records written by hand, as threads would write them, on a clock of the test's own:
//
//   Script script({"", "a", "a.b"});               // the layers; "" is the root
//   ThreadScript& t = script.thread();
//   t.on(0).enter(10, "").enter(20, "a").make(2).leave(30).leave(40);
//   t.backward(50).node(51, "MmBackward0", 1).end(52).end_backward(60);
//   EXPECT_EQ(resolve(script).scopes(), text(R"(
//       forward . [10,40)
//         forward a [20,30)
//       …)"));
//
// A thread keeps its own count of autograd's nodes, as autograd does: make(2) makes two, and every
// record that tells the count tells the right one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribute/span.h"
#include "record/amounts.h"
#include "record/record.h"

namespace layertrace::test {

class Script;

class ThreadScript {
 public:
  ThreadScript(Script& script, Lane lane, std::uint64_t key)
      : script_(script), lane_(lane), key_(key) {}

  std::uint64_t key() const { return key_; }
  std::uint64_t sequence() const { return sequence_; }
  Lane lane() const { return lane_; }

  ThreadScript& on(std::uint64_t at, std::uint64_t step = 0) {
    return add(at, RecordKind::kWindow, 0, 1, step);
  }
  ThreadScript& off(std::uint64_t at, std::uint64_t step = 0) {
    return add(at, RecordKind::kWindow, 0, 0, step);
  }
  ThreadScript& step(std::uint64_t at, std::uint64_t index) {
    return add(at, RecordKind::kStep, 0, 0, index);
  }
  ThreadScript& gap(std::uint64_t at, std::uint64_t dropped) {
    return add(at, RecordKind::kGap, 0, 0, dropped);
  }
  // The begins that follow are of another stretch of recording.
  ThreadScript& in_window(std::uint16_t window) {
    window_ = window;
    return *this;
  }

  ThreadScript& enter(std::uint64_t at, std::string_view path);
  ThreadScript& leave(std::uint64_t at) { return add(at, RecordKind::kScopeEnd); }
  ThreadScript& leave_thrown(std::uint64_t at) {
    return add(at, RecordKind::kScopeEnd, 0, kThrown);
  }
  ThreadScript& region(std::uint64_t at, std::string_view name, std::optional<Phase> phase = {});
  ThreadScript& end_region(std::uint64_t at) { return add(at, RecordKind::kRegionEnd); }
  ThreadScript& backward(std::uint64_t at) { return region(at, "backward", Phase::kBackward); }
  ThreadScript& end_backward(std::uint64_t at) { return end_region(at); }

  // The program makes so many autograd nodes on this thread.
  ThreadScript& make(std::uint64_t nodes) {
    sequence_ += nodes;
    return *this;
  }
  // A node with this number, made by this thread or another, begins.
  ThreadScript& node(std::uint64_t at, std::string_view name, std::uint64_t sequence) {
    return node_of(at, name, sequence, key_);
  }
  ThreadScript& node_of(std::uint64_t at, std::string_view name, std::uint64_t sequence,
                        std::uint64_t key);
  ThreadScript& unknown_node(std::uint64_t at);
  ThreadScript& accumulate(std::uint64_t at, std::uint64_t address);
  ThreadScript& engine_root(std::uint64_t at);
  ThreadScript& end(std::uint64_t at) { return add(at, RecordKind::kNodeEnd); }

  ThreadScript& begin_op(std::uint64_t at, std::string_view name, bool composite = false);
  ThreadScript& end_op(std::uint64_t at) { return add(at, RecordKind::kOpEnd); }
  ThreadScript& op(std::uint64_t at, std::uint64_t until, std::string_view name) {
    return begin_op(at, name).end_op(until);
  }

  // What the operator that is about to end has computed.
  ThreadScript& amounts(std::uint64_t at, std::string_view name, OpAmounts amounts);
  ThreadScript& counting(std::uint64_t at, std::uint64_t key = 0, bool is_counted = true) {
    return add(at, RecordKind::kCounted, 0, static_cast<std::uint8_t>(is_counted), key);
  }
  ThreadScript& input(std::uint64_t at, std::string_view shapes);
  ThreadScript& output(std::uint64_t at, std::string_view shapes);
  ThreadScript& take(std::uint64_t at, std::uint64_t address, std::uint64_t bytes,
                     std::uint32_t device = kHostDevice) {
    return add_memory(at, address, bytes, device, /*is_freed=*/false);
  }
  // An allocator of the host's does not tell how much it is.
  ThreadScript& give_back(std::uint64_t at, std::uint64_t address, std::uint64_t bytes = 0,
                          std::uint32_t device = kHostDevice) {
    return add_memory(at, address, bytes, device, /*is_freed=*/true);
  }

 private:
  ThreadScript& add(std::uint64_t at, RecordKind kind, std::uint32_t id = 0, std::uint8_t flags = 0,
                    std::uint64_t value = 0);
  ThreadScript& add_memory(std::uint64_t at, std::uint64_t address, std::uint64_t bytes,
                           std::uint32_t device, bool is_freed);

  Script& script_;
  Lane lane_;
  std::uint64_t key_;
  std::uint64_t sequence_ = 0;
  std::uint16_t window_ = 0;
};

class Script {
 public:
  struct Written {
    Lane lane;
    Record record;
  };

  // Layers by path, parents first. A path that begins with '(' is a module that is not registered.
  // The model is a Sequential, so that it may be entered itself or not.
  explicit Script(const std::vector<std::string>& paths, std::string type = "Sequential")
      : root_type(std::move(type)) {
    for (const std::string& path : paths) add_layer(path);
  }
  Script(const Script&) = delete;  // its threads refer to it
  Script& operator=(const Script&) = delete;

  void add_layer(const std::string& path) {
    LayerDef def;
    def.path = path;
    const std::size_t dot = path.rfind('.');
    def.name = path.empty() ? "Net" : path.substr(dot == std::string::npos ? 0 : dot + 1);
    def.type = path.empty() ? root_type : "Module";
    def.registered = path.empty() || path[0] != '(';
    if (!path.empty() && def.registered) {
      def.parent = layer(dot == std::string::npos ? "" : path.substr(0, dot));
    }
    layers_.emplace(path, LayerId{static_cast<std::uint32_t>(dictionary.layers.size())});
    dictionary.layers.push_back(std::move(def));
  }
  void add_parameter(std::uint64_t address, std::string_view path) {
    dictionary.parameters.push_back({address, layer(path)});
  }
  LayerId layer(std::string_view path) const { return layers_.at(std::string(path)); }
  NameId name(std::string_view name) {
    const auto [found, fresh] = names_.try_emplace(
        std::string(name), NameId{static_cast<std::uint32_t>(dictionary.names.size())});
    if (fresh) dictionary.names.emplace_back(name);
    return found->second;
  }

  // The thread that autograd knows by this key; lanes are in the order of first mention.
  ThreadScript& thread(std::uint64_t key = 1) {
    for (ThreadScript& thread : threads_) {
      if (thread.key() == key) return thread;
    }
    return threads_.emplace_back(*this, static_cast<Lane>(threads_.size()), key);
  }
  const std::deque<ThreadScript>& threads() const { return threads_; }

  // All threads' records in order of time; those of one time in the order of writing.
  std::vector<Written> in_order() const {
    std::vector<Written> sorted = written;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Written& a, const Written& b) {
      return a.record.ticks < b.record.ticks;
    });
    return sorted;
  }

  Dictionary dictionary;
  std::vector<Written> written;
  const std::string root_type;

 private:
  std::unordered_map<std::string, LayerId> layers_;
  std::unordered_map<std::string, NameId> names_;
  std::deque<ThreadScript> threads_;
};

inline ThreadScript& ThreadScript::add(std::uint64_t at, RecordKind kind, std::uint32_t id,
                                       std::uint8_t flags, std::uint64_t value) {
  const std::uint16_t window = is_begin(kind) ? window_ : std::uint16_t{0};
  script_.written.push_back({lane_, {at, value, sequence_, id, kind, flags, window}});
  return *this;
}
inline ThreadScript& ThreadScript::amounts(std::uint64_t at, std::string_view name,
                                           OpAmounts amounts) {
  amounts.op = script_.name(name);
  for_each_record(amounts, at,
                  [&](const Record& record) { script_.written.push_back({lane_, record}); });
  return *this;
}
inline ThreadScript& ThreadScript::input(std::uint64_t at, std::string_view shapes) {
  return add(at, RecordKind::kShapes, index(script_.name(shapes)), 0);
}
inline ThreadScript& ThreadScript::output(std::uint64_t at, std::string_view shapes) {
  return add(at, RecordKind::kShapes, index(script_.name(shapes)), 1);
}
inline ThreadScript& ThreadScript::add_memory(std::uint64_t at, std::uint64_t address,
                                              std::uint64_t bytes, std::uint32_t device,
                                              bool is_freed) {
  script_.written.push_back(
      {lane_,
       {at, address, bytes, device, RecordKind::kMemory, static_cast<std::uint8_t>(is_freed), 0}});
  return *this;
}
inline ThreadScript& ThreadScript::enter(std::uint64_t at, std::string_view path) {
  return add(at, RecordKind::kScopeBegin, index(script_.layer(path)));
}
inline ThreadScript& ThreadScript::region(std::uint64_t at, std::string_view name,
                                          std::optional<Phase> phase) {
  const std::uint8_t flags = phase ? static_cast<std::uint8_t>(*phase) : kNoPhase;
  return add(at, RecordKind::kRegionBegin, index(script_.name(name)), flags);
}
inline ThreadScript& ThreadScript::node_of(std::uint64_t at, std::string_view name,
                                           std::uint64_t sequence, std::uint64_t key) {
  return add(at, RecordKind::kNodeBegin, index(script_.name(name)), 0, pack({sequence, key}));
}
inline ThreadScript& ThreadScript::unknown_node(std::uint64_t at) {
  return add(at, RecordKind::kNodeBegin, index(script_.name("Unknown")), 0, kUnknownNode);
}
inline ThreadScript& ThreadScript::accumulate(std::uint64_t at, std::uint64_t address) {
  return add(at, RecordKind::kNodeBegin, index(script_.name("AccumulateGrad")), kAccumulates,
             address);
}
inline ThreadScript& ThreadScript::engine_root(std::uint64_t at) {
  return add(at, RecordKind::kNodeBegin, index(script_.name("GraphRoot")), kEngineRoot,
             kUnknownNode);
}
inline ThreadScript& ThreadScript::begin_op(std::uint64_t at, std::string_view name,
                                            bool composite) {
  return add(at, RecordKind::kOpBegin, index(script_.name(name)), composite ? kOpComposite : 0);
}

}  // namespace layertrace::test
