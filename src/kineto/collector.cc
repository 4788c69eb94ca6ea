#include "kineto/collector.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "kineto/text_values.h"

namespace layertrace::kineto {
namespace {

// Beyond these a sum would not fit.
constexpr std::int64_t kMostTime = std::int64_t{4'000'000'000'000'000'000};
constexpr std::int64_t kMostDuration = std::int64_t{500'000'000'000'000'000};

constexpr std::string_view kModulePrefix = "nn.Module: ";
constexpr std::string_view kEnginePrefix = "<built-in method run_backward of torch._C._EngineBase";

bool is_no_number(std::string_view text) {
  return !text.empty() && text.find_first_of("0123456789") == std::string_view::npos;
}

// Whole and not negative; 0 for anything else.
std::uint64_t count_of(std::string_view text) {
  const auto value = parse_whole(text);
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

// "7", or "stream 7" as it once was.
std::uint64_t trailing_number(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  return count_of(last == std::string_view::npos ? text : text.substr(last + 1));
}

template <typename To>
To fit(std::uint64_t value) {
  return static_cast<To>(std::min<std::uint64_t>(value, std::numeric_limits<To>::max()));
}

DeviceKind device_kind_of(Category category) {
  return category == Category::kCopy  ? DeviceKind::kCopy
         : category == Category::kSet ? DeviceKind::kSet
                                      : DeviceKind::kKernel;
}

}  // namespace

void Collector::leave_out(Category category, Reason reason) {
  if (is_device_activity(category)) {
    accounts_.reject(reason);
  } else {
    accounts_.leave_out(reason);
  }
}

std::optional<Collector::Times> Collector::times_of(const RawEvent& event, Category category) {
  const auto start = parse_microseconds(event.ts);
  const auto duration = event.has_dur ? parse_microseconds(event.dur) : std::nullopt;
  if (!start || !duration) {
    const bool no_number = is_no_number(event.ts) || (event.has_dur && is_no_number(event.dur));
    const bool too_large = !event.ts.empty() && event.has_dur && !event.dur.empty();
    leave_out(category, no_number   ? Reason::kNotANumber
                        : too_large ? Reason::kOutOfRange
                                    : Reason::kNoTime);
    return std::nullopt;
  }
  if (*duration < 0) {
    leave_out(category, Reason::kNegative);
    return std::nullopt;
  }
  if (*start > kMostTime || *start < -kMostTime || *duration > kMostDuration) {
    leave_out(category, Reason::kOutOfRange);
    return std::nullopt;
  }
  return Times{*start, *start + *duration};
}

void Collector::event(const RawEvent& event, Category category) {
  if (event.ph.size() != 1) return accounts_.leave_out(Reason::kUnknownKind);
  switch (event.ph.front()) {
    case 'X':
      return complete(event, category);
    case 'B':
      return begin(event, category);
    case 'E':
      return end(event, category);
    case 'i':
    case 'I':
    case 'R':
      return instant(event, category);
    case 's':
    case 't':
    case 'f':
      return flow(event, category);
    case 'M':
      return name_thread(event);
    case 'C':
      return accounts_.leave_out(Reason::kCounter);
    default:
      return accounts_.leave_out(Reason::kUnknownKind);
  }
}

void Collector::complete(const RawEvent& event, Category category) {
  if (!is_wanted(event, category)) return;
  if (const auto times = times_of(event, category)) add(event, category, *times);
}

// Of those that are not, the reason is counted.
bool Collector::is_wanted(const RawEvent& event, Category category) {
  if (category != Category::kNone && category != Category::kOther) is_kineto_ = true;
  const auto leave = [this](Reason reason) {
    accounts_.leave_out(reason);
    return false;
  };
  switch (category) {
    case Category::kPython:
      return event.name.starts_with(kModulePrefix) || event.name.starts_with(kEnginePrefix) ||
             leave(Reason::kPythonFrame);
    case Category::kSynchronisation:
      return leave(Reason::kSynchronisation);
    case Category::kDeviceAnnotation:
      return leave(Reason::kDeviceAnnotation);
    case Category::kOverhead:
      return leave(Reason::kOverhead);
    case Category::kMarker:
      return leave(Reason::kMarker);
    default:
      return true;
  }
}

void Collector::add(const RawEvent& event, Category category, Times times) {
  switch (category) {
    case Category::kKernel:
    case Category::kCopy:
    case Category::kSet:
      return add_device(event, category, times);
    case Category::kPython:
      return add_python(event, times);
    case Category::kOperator:
      return add_operator(event, times, HostKind::kOperator);
    case Category::kAnnotation:
      return add_operator(event, times, HostKind::kAnnotation);
    case Category::kCall:
      return add_call(event, times);
    default:
      return add_operator(event, times, HostKind::kRegion);
  }
}

// Names with escapes are rare.
NameId Collector::intern(std::string_view name) {
  if (std::memchr(name.data(), '\\', name.size()) == nullptr) return trace_.names.intern(name);
  return trace_.names.intern(unescape(name));
}

// A layer takes kilobytes: modules beyond these share one.
std::uint32_t Collector::module_number(std::string_view name) {
  constexpr std::size_t kMostModules = 100'000;
  if (trace_.modules.size() >= kMostModules && !module_numbers_.contains(unescape(name)))
    name = "(others)";
  const auto [known, fresh] = module_numbers_.try_emplace(
      unescape(name), static_cast<std::uint32_t>(trace_.modules.size()));
  if (fresh) trace_.modules.push_back(known->first);
  return known->second;
}

std::uint32_t Collector::shape_number(const LaunchShape& shape) {
  if (!trace_.shapes.empty() && trace_.shapes.back() == shape)
    return static_cast<std::uint32_t>(trace_.shapes.size() - 1);
  static_assert(std::is_trivially_copyable_v<LaunchShape>);
  std::string bytes(sizeof(shape), '\0');
  std::memcpy(bytes.data(), &shape, sizeof(shape));
  const auto [known, fresh] = shape_numbers_.try_emplace(
      std::move(bytes), static_cast<std::uint32_t>(trace_.shapes.size()));
  if (fresh) trace_.shapes.push_back(shape);
  return known->second;
}

void Collector::add_host(const RawEvent& event, HostEvent host) {
  const auto thread = threads_.find_or_add(event.pid, event.tid);
  // Events are numbered with 32 bits.
  if (!thread || trace_.host.size() >= kNoCall - 1) return accounts_.leave_out(Reason::kTooMany);
  host.thread = *thread;
  first_ns_ = std::min(first_ns_, host.start_ns);
  last_ns_ = std::max(last_ns_, host.end_ns);
  trace_.host.push_back(host);
  accounts_.keep();
}

void Collector::add_device(const RawEvent& event, Category category, Times times) {
  if (trace_.device.size() >= kNoCall - 1) return accounts_.reject(Reason::kTooMany);
  const RawArgs& args = event.args;
  DeviceEvent device;
  device.start_ns = times.start_ns;
  device.end_ns = times.end_ns;
  device.name = intern(event.name);
  device.kind = device_kind_of(category);
  const auto correlation = parse_whole(args.correlation);
  device.has_correlation = correlation.has_value();
  device.correlation = static_cast<std::uint64_t>(correlation.value_or(0));
  device.device =
      fit<std::uint8_t>(args.device.empty() ? trailing_number(event.pid) : count_of(args.device));
  device.stream =
      fit<std::uint32_t>(args.stream.empty() ? trailing_number(event.tid) : count_of(args.stream));
  device.context = fit<std::uint16_t>(count_of(args.context));
  device.bytes = count_of(args.bytes);
  device.graph_node = count_of(args.graph_node);
  device.is_collective =
      !args.collective.empty() || trace_.names.meaning(device.name).is_collective;
  device.shape = shape_number(shape_of(args));
  first_ns_ = std::min(first_ns_, device.start_ns);
  last_ns_ = std::max(last_ns_, device.end_ns);
  trace_.device.push_back(device);
  accounts_.keep();
}

LaunchShape Collector::shape_of(const RawArgs& args) {
  LaunchShape shape;
  for (std::size_t i = 0; i < 3; ++i) {
    shape.grid[i] = fit<std::uint32_t>(count_of(args.grid[i]));
    shape.block[i] = fit<std::uint32_t>(count_of(args.block[i]));
  }
  shape.registers = fit<std::uint16_t>(count_of(args.registers));
  shape.shared_bytes = fit<std::uint32_t>(count_of(args.shared_memory));
  const double occupancy = parse_real(args.occupancy) / 100;
  if (occupancy > 0) shape.occupancy = static_cast<float>(std::min(occupancy, 1.0));  // no NaN
  return shape;
}

void Collector::add_python(const RawEvent& event, Times times) {
  HostEvent host{.start_ns = times.start_ns, .end_ns = times.end_ns};
  if (event.name.starts_with(kModulePrefix)) {
    host.kind = HostKind::kModule;
    host.name = module_number(event.name.substr(kModulePrefix.size()));
  } else {
    host.kind = HostKind::kPass;
    host.name = index(trace_.names.intern("backward"));
  }
  add_host(event, host);
}

void Collector::add_operator(const RawEvent& event, Times times, HostKind kind) {
  HostEvent host{.start_ns = times.start_ns, .end_ns = times.end_ns, .kind = kind};
  const NameId name = intern(event.name);
  host.name = index(name);
  // What is an annotation today was an operator once.
  const NameKind meaning = trace_.names.meaning(name).kind;
  if (kind == HostKind::kOperator && (meaning == NameKind::kStep || meaning == NameKind::kPhase))
    host.kind = HostKind::kAnnotation;
  const auto sequence = parse_whole(event.args.sequence);
  if (sequence && *sequence >= 0) {
    host.detail =
        pack_sequence(static_cast<std::uint64_t>(*sequence), count_of(event.args.forward_thread));
  }
  add_host(event, host);
}

void Collector::add_call(const RawEvent& event, Times times) {
  HostEvent host{.start_ns = times.start_ns, .end_ns = times.end_ns, .kind = HostKind::kCall};
  host.name = index(intern(event.name));
  host.detail = static_cast<std::uint64_t>(parse_whole(event.args.correlation).value_or(0));
  if (host.detail != 0 && (!event.args.grid[0].empty() || !event.args.bytes.empty())) {
    trace_.call_shapes.push_back(
        {host.detail, count_of(event.args.bytes), shape_number(shape_of(event.args))});
  }
  add_host(event, host);
}

// ---- Others than whole events ----

void Collector::begin(const RawEvent& event, Category category) {
  const auto thread = threads_.find_or_add(event.pid, event.tid);
  const auto start = parse_microseconds(event.ts);
  if (!thread) return accounts_.leave_out(Reason::kTooMany);
  const bool is_sound = start && *start <= kMostTime && *start >= -kMostTime;
  if (!is_sound) leave_out(category, event.ts.empty() ? Reason::kNoTime : Reason::kNotANumber);
  open_[*thread].push_back(keep_begin(event, category, is_sound ? start : std::nullopt));
}

Collector::OpenBegin Collector::keep_begin(const RawEvent& event, Category category,
                                           std::optional<std::int64_t> start_ns) {
  OpenBegin kept{nullptr, {}, category, start_ns};
  std::size_t size = event.name.size();
  each_argument(kept.event.args, event.args,
                [&](std::string_view&, std::string_view text) { size += text.size(); });
  kept.texts = std::make_unique<char[]>(size + 1);
  char* at = kept.texts.get();
  const auto keep = [&at](std::string_view& copy, std::string_view text) {
    if (text.empty()) return;
    std::memcpy(at, text.data(), text.size());
    copy = {at, text.size()};
    at += text.size();
  };
  keep(kept.event.name, event.name);
  each_argument(kept.event.args, event.args, keep);
  return kept;
}

// Its arguments are those of the begin, and what the end tells beside or instead.
void Collector::end(const RawEvent& event, Category category) {
  const auto thread = threads_.find_or_add(event.pid, event.tid);
  const auto at = parse_microseconds(event.ts);
  if (!thread) return accounts_.leave_out(Reason::kTooMany);
  std::vector<OpenBegin>& open = open_[*thread];
  if (open.empty()) return leave_out(category, Reason::kUnpaired);
  OpenBegin begun = std::move(open.back());
  open.pop_back();
  accounts_.merge();  // this one, or the begin
  if (!begun.start_ns) return;
  if (!at || *at < *begun.start_ns || *at > kMostTime)
    return leave_out(begun.category, at ? Reason::kNegative : Reason::kNotANumber);
  RawEvent& whole = begun.event;
  whole.pid = event.pid;
  whole.tid = event.tid;
  each_argument(whole.args, event.args, [](std::string_view& text, std::string_view told) {
    if (!told.empty()) text = told;
  });
  if (is_wanted(whole, begun.category)) add(whole, begun.category, {*begun.start_ns, *at});
}

// The allocators' reports: what is in use after each of them.
void Collector::instant(const RawEvent& event, Category category) {
  const auto at = parse_microseconds(event.ts);
  const bool of_device = count_of(event.args.device_type) == 1;
  const bool is_memory = event.name == "[memory]" && !event.args.total_allocated.empty();
  if (!is_memory || !of_device || !at || *at > kMostTime || *at < -kMostTime) {
    return accounts_.leave_out(category == Category::kMarker ? Reason::kMarker
                               : is_memory && !of_device     ? Reason::kHostMemory
                                                             : Reason::kInstant);
  }
  is_kineto_ = true;
  HostEvent host{.start_ns = *at, .end_ns = *at, .kind = HostKind::kMemory};
  host.detail = count_of(event.args.total_allocated);
  host.name = fit<std::uint8_t>(count_of(event.args.device_id));
  add_host(event, host);
}

void Collector::flow(const RawEvent& event, Category category) {
  accounts_.merge();
  const auto at = parse_microseconds(event.ts);
  const auto id = parse_whole(event.id);
  const bool is_start = event.ph == "s";
  if (!at || !id || event.ph == "t" || *at > kMostTime || *at < -kMostTime) return;
  if (category == Category::kLaunchFlow && !is_start) return;  // the activity itself has its id
  if (category != Category::kLaunchFlow && category != Category::kForwardBackward) return;
  const auto thread = threads_.find_or_add(event.pid, event.tid);
  if (!thread) return;
  const FlowEnd end{static_cast<std::uint64_t>(*id), *at, *thread};
  if (category == Category::kLaunchFlow) {
    trace_.launch_flows.push_back(end);
  } else {
    (is_start ? trace_.forward_flows : trace_.backward_flows).push_back(end);
  }
}

void Collector::name_thread(const RawEvent& event) {
  accounts_.merge();
  if (event.args.name.empty()) return;
  if (event.name == "thread_name") threads_.name(event.pid, event.tid, unescape(event.args.name));
}

// ---- Of the run as a whole ----

void Collector::metadata(std::string_view key, std::string_view json) {
  const auto text = [json] {
    return json.size() >= 2 && json.front() == '"' ? unescape(json.substr(1, json.size() - 2))
                                                   : std::string();
  };
  constexpr std::size_t kMostText = std::size_t{1} << 20;  // read as a whole, they take much memory
  if (key == "schemaVersion") is_kineto_ = true;
  if (json.size() > kMostText) return;
  if (key == "baseTimeNanoseconds") base_ns_ = parse_whole(json).value_or(0);
  if (key == "deviceProperties") take_devices(json);
  if (key == "distributedInfo") take_ranks(json);
  if (key == "host_name") run_.host = text();
  if (key == "pytorch_version" || key == "torch_version") run_.torch_version = text();
}

void Collector::take_devices(std::string_view json) {
  is_kineto_ = true;
  const auto devices = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!devices.is_array()) return;
  for (const auto& device : devices) {
    if (!device.is_object() || !device.contains("name") || !device["name"].is_string()) continue;
    if (run_.device.empty()) run_.device = device["name"].get<std::string>();
  }
}

void Collector::take_ranks(std::string_view json) {
  const auto info = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!info.is_object()) return;
  const auto number = [&info](const char* name) {
    return info.contains(name) && info[name].is_number_integer() ? info[name].get<std::int64_t>()
                                                                 : -1;
  };
  run_.rank = std::max<std::int64_t>(number("rank"), -1);
  run_.world_size = std::max<std::int64_t>(number("world_size"), 0);
  if (run_.rank < 0) return;
  std::string note = "recorded on rank " + std::to_string(run_.rank);
  if (run_.world_size > 0) note += " of " + std::to_string(run_.world_size);
  if (info.contains("backend") && info["backend"].is_string())
    note += " (" + info["backend"].get<std::string>() + ")";
  notes_.push_back(std::move(note));
}

// ---- The end ----

Trace Collector::finish() {
  for (auto& [thread, open] : open_) {
    for (const OpenBegin& begun : open) {
      if (begun.start_ns) leave_out(begun.category, Reason::kUnpaired);
    }
  }
  if (is_kineto_) drop_foreign();
  put_on_one_clock();
  trace_.threads = threads_.threads();
  run_.pid = threads_.pid();
  return std::move(trace_);
}

// In a trace of Kineto's, what has no category that is known is of a device or a tool that is not.
void Collector::drop_foreign() {
  std::size_t kept = 0;
  for (const HostEvent& event : trace_.host) {
    if (event.kind == HostKind::kRegion) {
      accounts_.move_to(Reason::kUnknownCategory);
    } else {
      trace_.host[kept++] = event;
    }
  }
  trace_.host.shorten(kept);
}

// Times as the file has them, where these are times of some clock; the trace's must have room for
// its definitions before the first.
void Collector::put_on_one_clock() {
  if (trace_.host.empty() && trace_.device.empty()) return;
  constexpr std::int64_t kEarliest = 1'000'000'000;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() - kEarliest;
  std::int64_t shift = base_ns_;
  const bool fits = shift >= 0 && shift <= kMostTime && last_ns_ <= most - shift;
  if (!fits) shift = 0;
  if (first_ns_ + shift < kEarliest) shift = kEarliest - first_ns_;
  for (HostEvent& event : trace_.host) {
    event.start_ns += shift;
    event.end_ns += shift;
  }
  for (DeviceEvent& event : trace_.device) {
    event.start_ns += shift;
    event.end_ns += shift;
  }
  for (auto* flows : {&trace_.forward_flows, &trace_.backward_flows, &trace_.launch_flows}) {
    for (FlowEnd& end : *flows) end.ns += shift;
  }
  trace_.end_ns = last_ns_ + shift;
}

}  // namespace layertrace::kineto
