#include "kineto/thread_table.h"

#include <limits>
#include <unordered_set>
#include <utility>

#include "kineto/text_values.h"

namespace layertrace::kineto {

std::string ThreadTable::key(std::string_view pid, std::string_view tid) {
  std::string text(pid);
  text += '\0';
  text += tid;
  return text;
}

std::optional<std::uint16_t> ThreadTable::find_or_add(std::string_view pid, std::string_view tid) {
  if (!known_.empty() && known_[last_].tid == tid && known_[last_].pid == pid) return last_;
  const auto found = numbers_.find(key(pid, tid));
  if (found != numbers_.end()) return last_ = found->second;
  if (known_.size() >= std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  last_ = static_cast<std::uint16_t>(known_.size());
  numbers_.emplace(key(pid, tid), last_);
  known_.push_back({std::string(pid), std::string(tid)});
  return last_;
}

void ThreadTable::name(std::string_view pid, std::string_view tid, const std::string& name) {
  names_.try_emplace(key(pid, tid), name);
}

std::vector<Thread> ThreadTable::threads() const {
  constexpr std::uint64_t kFirstMadeUp = 1U << 30;
  std::vector<Thread> threads;
  std::unordered_set<std::uint64_t> taken;
  for (const Known& known : known_) {
    const auto number = parse_whole(known.tid);
    const bool fits = number && *number > 0 && *number < std::numeric_limits<std::int32_t>::max();
    std::uint64_t tid = fits ? static_cast<std::uint64_t>(*number) : kFirstMadeUp + threads.size();
    while (!taken.insert(tid).second) tid = kFirstMadeUp + taken.size();
    const auto named = names_.find(key(known.pid, known.tid));
    std::string name = named != names_.end() ? named->second
                       : fits                ? "thread " + known.tid
                                             : "thread " + unescape(known.tid);
    threads.push_back({std::move(name), tid});
  }
  return threads;
}

std::uint64_t ThreadTable::pid() const {
  if (known_.empty()) return 0;
  const auto number = parse_whole(known_.front().pid);
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

}  // namespace layertrace::kineto
