// Takes events as they come from the JSON and keeps of each what attribution needs.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <layertrace/profile.h>

#include "kineto/accounts.h"
#include "kineto/event_reader.h"
#include "kineto/events.h"
#include "kineto/thread_table.h"

namespace layertrace::kineto {

class Collector final : public EventHandler {
 public:
  void event(const RawEvent& event, Category category) override;
  void metadata(std::string_view key, std::string_view json) override;

  // After the last event: times are on one clock, and what kind of trace it is is known.
  Trace finish();

  Accounts& accounts() noexcept { return accounts_; }
  // What the file says of the run, and what a reader should know of that.
  const RunInfo& run() const noexcept { return run_; }
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  bool is_kineto() const noexcept { return is_kineto_; }

 private:
  // When it was; nothing, and counted, where that makes no sense.
  struct Times {
    std::int64_t start_ns;
    std::int64_t end_ns;
  };
  std::optional<Times> times_of(const RawEvent& event, Category category);
  void leave_out(Category category, Reason reason);

  void complete(const RawEvent& event, Category category);
  bool is_wanted(const RawEvent& event, Category category);
  void add(const RawEvent& event, Category category, Times times);
  void begin(const RawEvent& event, Category category);
  void end(const RawEvent& event, Category category);
  void instant(const RawEvent& event, Category category);
  void flow(const RawEvent& event, Category category);
  void name_thread(const RawEvent& event);

  void add_device(const RawEvent& event, Category category, Times times);
  void add_python(const RawEvent& event, Times times);
  void add_operator(const RawEvent& event, Times times, HostKind kind);
  void add_call(const RawEvent& event, Times times);
  void add_host(const RawEvent& event, HostEvent host);
  NameId intern(std::string_view name);
  std::uint32_t module_number(std::string_view name);
  std::uint32_t shape_number(const LaunchShape& shape);
  static LaunchShape shape_of(const RawArgs& args);
  void take_devices(std::string_view json);
  void take_ranks(std::string_view json);
  void drop_foreign();
  void put_on_one_clock();

  // A begin that waits for its end, with texts of its own.
  struct OpenBegin {
    std::unique_ptr<char[]> texts;
    RawEvent event;
    Category category;
    std::optional<std::int64_t> start_ns;  // nothing where it makes no sense, and is left out
  };
  static OpenBegin keep_begin(const RawEvent& event, Category category,
                              std::optional<std::int64_t> start_ns);

  Trace trace_;
  ThreadTable threads_;
  Accounts accounts_;
  RunInfo run_;
  std::vector<std::string> notes_;
  std::unordered_map<std::string, std::uint32_t> module_numbers_;
  std::unordered_map<std::string, std::uint32_t> shape_numbers_;  // by their bytes
  std::unordered_map<std::uint16_t, std::vector<OpenBegin>> open_;
  std::int64_t base_ns_ = 0;
  std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
  bool is_kineto_ = false;
};

}  // namespace layertrace::kineto
