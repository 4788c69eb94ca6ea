#include "record/drain.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace layertrace {

void Drain::add(std::shared_ptr<ThreadBuffer> buffer) {
  Source source;
  source.buffer = std::move(buffer);
  source.lane = next_lane_++;
  consumer_.open_lane(source.lane, source.buffer->key(), source.buffer->tid(),
                      source.buffer->name());
  sources_.push_back(std::move(source));
}

std::uint64_t Drain::pump(std::uint64_t horizon_ticks) {
  consumer_.add_threads();
  std::uint64_t resolved = 0;
  for (Source& source : sources_) {
    source.left = source.buffer->committed() - source.buffer->consumed();
    resolved += source.left;
  }
  consumer_.refresh();
  for (Source& source : sources_) {
    source.counted = source.left;
    source.spans.clear();
    source.span = source.offset = 0;
    source.buffer->unread(source.spans);
  }
  horizon_ticks = reached_ticks_ = bound(horizon_ticks);
  for (Source& source : sources_) index_new(source, horizon_ticks);

  for (;;) {
    // The lane whose next record is the earliest goes on until another lane's next record is due.
    Source* first = nullptr;
    std::uint64_t first_ticks = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t second_ticks = std::numeric_limits<std::uint64_t>::max();
    for (Source& source : sources_) {
      if (source.left == 0) continue;
      const std::uint64_t ticks = source.spans[source.span][source.offset].ticks;
      if (first == nullptr || ticks < first_ticks) {
        second_ticks = first == nullptr ? second_ticks : first_ticks;
        first_ticks = ticks;
        first = &source;
      } else {
        second_ticks = std::min(second_ticks, ticks);
      }
    }
    if (first == nullptr || first_ticks > horizon_ticks) break;
    resolve_run(*first, std::min(second_ticks, horizon_ticks));
  }

  for (Source& source : sources_) {
    source.buffer->consume(source.counted - source.left);
    resolved -= source.left;
  }
  release_retired();
  return resolved;
}

// The time up to which no lane has more than so many records, but each at least one: counters of
// two processors need not agree, and a pump must go on.
std::uint64_t Drain::bound(std::uint64_t horizon_ticks) const {
  for (const Source& source : sources_) {
    if (source.left <= kMostAtOnce) continue;
    std::uint64_t before = 0;
    for (const auto span : source.spans) {
      if (before + span.size() >= kMostAtOnce) {
        const std::uint64_t last = span[kMostAtOnce - before - 1].ticks;
        horizon_ticks = std::min(horizon_ticks, std::max(last, source.spans[0][0].ticks));
        break;
      }
      before += span.size();
    }
  }
  return horizon_ticks;
}

// All that may explain what is resolved up to that time, and a little more, for the same reason.
void Drain::index_new(Source& source, std::uint64_t until_ticks) {
  std::uint64_t more = kIndexedAhead;
  std::uint64_t position = source.buffer->consumed();
  for (const auto span : source.spans) {
    std::uint64_t wanted = span.size();
    if (!span.empty() && span.back().ticks > until_ticks) {
      const auto beyond =
          std::upper_bound(span.begin(), span.end(), until_ticks,
                           [](std::uint64_t ticks, const Record& r) { return ticks < r.ticks; });
      const auto inside = static_cast<std::uint64_t>(beyond - span.begin());
      wanted = std::min<std::uint64_t>(span.size(), inside + more);
      more -= wanted - inside;
    }
    const std::uint64_t known =
        source.indexed > position ? std::min<std::uint64_t>(source.indexed - position, span.size())
                                  : 0;
    if (known < wanted) {
      consumer_.index(source.lane, span.subspan(known, wanted - known));
      source.indexed = position + wanted;
    }
    if (wanted < span.size()) return;
    position += span.size();
  }
}

void Drain::resolve_run(Source& source, std::uint64_t until_ticks) {
  while (source.left != 0) {
    auto span = source.spans[source.span].subspan(source.offset);
    if (span.size() > source.left) span = span.first(source.left);
    std::size_t count = span.size();
    if (span.back().ticks > until_ticks) {
      // At least one record, so that the merge always goes on.
      const auto due =
          std::upper_bound(span.begin() + 1, span.end(), until_ticks,
                           [](std::uint64_t ticks, const Record& r) { return ticks < r.ticks; });
      count = static_cast<std::size_t>(due - span.begin());
    }
    const auto run = span.first(count);
    tally(source, run);
    consumer_.resolve(source.lane, run);
    source.left -= count;
    source.offset += count;
    if (source.offset == source.spans[source.span].size()) {
      ++source.span;
      source.offset = 0;
    }
    if (count < span.size()) return;
    if (source.left != 0 && source.spans[source.span][source.offset].ticks > until_ticks) return;
  }
}

void Drain::tally(Source& source, std::span<const Record> records) noexcept {
  for (const Record& record : records) {
    if (record.kind == RecordKind::kGap) {
      source.marked += record.value;
    } else {
      ++recorded_;
    }
  }
  source.last_ticks = records.back().ticks;
  last_ticks_ = std::max(last_ticks_, source.last_ticks);
}

void Drain::release_retired() {
  std::erase_if(sources_, [this](Source& source) {
    const ThreadBuffer& buffer = *source.buffer;
    if (!buffer.retired() || buffer.committed() != buffer.consumed()) return false;
    mark_open_gap(source, source.last_ticks != 0 ? source.last_ticks : last_ticks_);
    dropped_by_retired_ += buffer.dropped();
    consumer_.close_lane(source.lane);
    return true;
  });
}

void Drain::mark_open_gaps(std::uint64_t now_ticks) {
  for (Source& source : sources_) mark_open_gap(source, std::max(now_ticks, source.last_ticks));
}

void Drain::mark_open_gap(Source& source, std::uint64_t now_ticks) {
  const std::uint64_t dropped = source.buffer->dropped();
  if (dropped == source.marked) return;
  const Record gap{.ticks = now_ticks,
                   .value = dropped - source.marked,
                   .sequence = 0,
                   .id = 0,
                   .kind = RecordKind::kGap,
                   .flags = 0,
                   .window = 0};
  source.marked = dropped;
  consumer_.index(source.lane, {&gap, 1});
  consumer_.resolve(source.lane, {&gap, 1});
}

std::uint64_t Drain::dropped() const noexcept {
  std::uint64_t total = dropped_by_retired_;
  for (const Source& source : sources_) total += source.buffer->dropped();
  return total;
}

}  // namespace layertrace
