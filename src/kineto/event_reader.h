// Reads a trace of any size through a window of some megabytes: what is before, between and behind
// its events is handed over as text, and each event as it stands there.
//
// Files break: a job was killed while it wrote, a name held a quote. What is broken is passed over
// up to the next whole event, and counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/result.h>

#include "kineto/byte_source.h"
#include "kineto/category.h"
#include "kineto/event_parser.h"
#include "kineto/raw_event.h"

namespace layertrace::kineto {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void event(const RawEvent& event, Category category) = 0;
  // A member of the outermost object that is not the events: its value as JSON.
  virtual void metadata(std::string_view key, std::string_view json) = 0;
};

struct ReadOutcome {
  std::uint64_t json_bytes = 0;
  std::uint64_t events = 0;
  std::uint64_t broken_stretches = 0;  // that were passed over
  std::uint64_t broken_bytes = 0;      // in them
  bool cut = false;                    // it ends before it should
  std::uint64_t cut_bytes = 0;         // behind the last whole event
  std::string damage;                  // of the archive, "" for none
};

class EventReader {
 public:
  // Calls `progress` now and then, with the bytes of the file that were read and all that there
  // are.
  using Progress = std::function<void(std::uint64_t done, std::uint64_t all)>;
  EventReader(ByteSource& source, EventHandler& handler, Progress progress = {},
              std::size_t window_bytes = std::size_t{2} << 20);

  // Fails where it is no JSON of events at all.
  Result<ReadOutcome> read(const std::string& path);

 private:
  Result<bool> refill();
  Result<char> next();
  Result<void> read_members(const std::string& path);
  Result<void> read_events();
  Result<bool> pass_over();
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  void cut_here();

  ByteSource& source_;
  EventHandler& handler_;
  Progress progress_;
  std::vector<char> window_;
  const char* at_;
  const char* end_;
  bool ended_ = false;
  bool has_events_ = false;
  std::uint64_t attempted_bytes_ = 0;
  EventParser parser_;
  RawEvent event_;
  ReadOutcome outcome_;
};

}  // namespace layertrace::kineto
