#include "perfetto/device_load.h"

#include <algorithm>

namespace layertrace {

void DeviceLoad::add(std::uint64_t asked_ns, std::uint64_t start_ns, std::uint64_t end_ns) {
  const std::uint64_t edge_ns = settled_ * kBinNs;
  if (end_ns <= edge_ns || end_ns < start_ns) return;
  cover_queue(std::max(std::min(asked_ns, start_ns), edge_ns), end_ns);
  cover_busy(std::max(start_ns, edge_ns), end_ns);
  while (bins_.size() > kMostBins) settle_first();
}

void DeviceLoad::finish() {
  while (!bins_.empty()) settle_first();
  if (settled_ != 0) emit_whole(settled_);
}

DeviceLoad::Bin& DeviceLoad::bin(Cursor& cursor, std::uint64_t index) {
  if (cursor.bin == nullptr || cursor.index != index) cursor = {index, &bins_[index]};
  return *cursor.bin;
}

// The bins at both ends by the part that is covered, those between by the change at either end: so
// that one that takes long costs no more.
void DeviceLoad::cover_queue(std::uint64_t from_ns, std::uint64_t to_ns) {
  const std::uint64_t first = from_ns / kBinNs;
  const std::uint64_t last = to_ns / kBinNs;
  if (first == last) {
    bin(asked_, first).queue_ns += to_ns - from_ns;
    return;
  }
  bin(asked_, first).queue_ns += (first + 1) * kBinNs - from_ns;
  if (last != first + 1) ++bins_[first + 1].queue_more;
  Bin& end = bin(ran_, last);
  if (last != first + 1) --end.queue_more;
  end.queue_ns += to_ns % kBinNs;
}

void DeviceLoad::cover_busy(std::uint64_t from_ns, std::uint64_t to_ns) {
  const std::uint64_t first = from_ns / kBinNs;
  const std::uint64_t last = to_ns / kBinNs;
  const auto from = static_cast<std::uint32_t>(from_ns % kBinNs);
  const auto to = static_cast<std::uint32_t>(to_ns % kBinNs);
  if (first == last) {
    add_piece(bin(ran_, first), {from, to});
    return;
  }
  add_piece(bin(ran_, first), {from, kBinNs});
  if (last != first + 1) {
    ++bins_[first + 1].busy_more;
    --bins_[last].busy_more;
  }
  add_piece(bin(ran_, last), {0, to});
}

void DeviceLoad::add_piece(Bin& bin, Piece piece) {
  if (piece.from == piece.to) return;
  std::vector<Piece>& busy = bin.busy;
  if (busy.empty() || piece.from > busy.back().to) {
    busy.push_back(piece);
    return;
  }
  // All that it touches becomes one.
  const auto first =
      std::lower_bound(busy.begin(), busy.end(), piece.from,
                       [](const Piece& each, std::uint32_t from) { return each.to < from; });
  auto last = first;
  for (; last != busy.end() && last->from <= piece.to; ++last) {
    piece.from = std::min(piece.from, last->from);
    piece.to = std::max(piece.to, last->to);
  }
  if (first == last) {
    busy.insert(first, piece);
  } else {
    *first = piece;
    busy.erase(first + 1, last);
  }
}

void DeviceLoad::settle_first() {
  const auto first = bins_.begin();
  const auto& [index, bin] = *first;
  if (settled_ != 0 && index > settled_) emit_whole(settled_);
  queue_ += bin.queue_more;
  busy_ += bin.busy_more;
  std::uint64_t busy_ns = 0;
  for (const Piece& piece : bin.busy) busy_ns += piece.to - piece.from;
  constexpr auto kNs = static_cast<double>(kBinNs);
  emit_changed(index, busy_ > 0 ? 100 : 100 * static_cast<double>(busy_ns) / kNs,
               static_cast<double>(queue_) + static_cast<double>(bin.queue_ns) / kNs);
  settled_ = index + 1;
  bins_.erase(first);
  asked_ = ran_ = {};
}

// A bin in which nothing begins or ends.
void DeviceLoad::emit_whole(std::uint64_t index) {
  emit_changed(index, busy_ > 0 ? 100 : 0, static_cast<double>(queue_));
}

void DeviceLoad::emit_changed(std::uint64_t index, double busy, double queue) {
  if (busy != last_busy_) emit_(Figure::kBusy, index * kBinNs, busy);
  if (queue != last_queue_) emit_(Figure::kQueue, index * kBinNs, queue);
  last_busy_ = busy;
  last_queue_ = queue;
}

}  // namespace layertrace
