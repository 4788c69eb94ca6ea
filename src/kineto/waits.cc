#include "kineto/waits.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace layertrace::kineto {
namespace {

constexpr std::uint16_t kNoThread = std::numeric_limits<std::uint16_t>::max();

// Two nodes that are further apart are of two backwards: Python, of which the trace says nothing,
// ran between them.
constexpr std::int64_t kLongestPauseNs = 10'000'000;

bool is_node(const Trace& trace, const HostEvent& event) {
  if (event.kind != HostKind::kOperator) return false;
  const NameMeaning& meaning = trace.names.meaning(NameId{event.name});
  return meaning.kind == NameKind::kEvaluation || meaning.kind == NameKind::kNode;
}

// A step is around what its thread does, and an annotation may be.
bool is_work(const HostEvent& event) {
  return event.kind != HostKind::kAnnotation && event.kind != HostKind::kRegion &&
         event.kind != HostKind::kMemory;
}

// The thread with most operators outside any node; none where the trace tells of the calls.
std::uint16_t forward_thread(const Trace& trace) {
  std::vector<std::size_t> operators(trace.threads.size());
  std::vector<std::int64_t> node_ends(trace.threads.size());
  for (const HostEvent& event : trace.host) {
    if (event.kind == HostKind::kPass) return kNoThread;
    if (event.kind != HostKind::kOperator) continue;
    std::int64_t& node_end = node_ends[event.thread];
    if (is_node(trace, event)) {
      node_end = std::max(node_end, event.end_ns);
    } else if (event.start_ns >= node_end) {
      ++operators[event.thread];
    }
  }
  const auto most = std::ranges::max_element(operators);
  if (most == operators.end() || *most == 0) return kNoThread;
  return static_cast<std::uint16_t>(most - operators.begin());
}

}  // namespace

std::vector<Stretch> find_waits(const Trace& trace) {
  std::vector<Stretch> waits;
  const std::uint16_t thread = forward_thread(trace);
  if (thread == kNoThread) return waits;
  std::int64_t busy_until_ns = std::numeric_limits<std::int64_t>::min();
  bool is_open = false;  // the last of them
  for (const HostEvent& event : trace.host) {
    if (event.thread == thread) {
      // Whatever begins there, an annotation, too, ends the wait.
      if (is_open && event.kind != HostKind::kMemory) {
        waits.back().end_ns = std::min(waits.back().end_ns, event.start_ns);
        is_open = false;
      }
      if (is_work(event)) busy_until_ns = std::max(busy_until_ns, event.end_ns);
    } else if (is_node(trace, event) && event.start_ns >= busy_until_ns) {
      if (is_open && event.start_ns - waits.back().end_ns > kLongestPauseNs) is_open = false;
      if (!is_open) waits.push_back({event.start_ns, event.end_ns, thread, Phase::kBackward});
      is_open = true;
      waits.back().end_ns = std::max(waits.back().end_ns, event.end_ns);
    }
  }
  return waits;
}

}  // namespace layertrace::kineto
