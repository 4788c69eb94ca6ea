// How busy a device was, and how much it had been asked for: two figures for each millisecond, made
// from activities that come late and in no particular order. A window of milliseconds is kept until
// nothing more is expected of them; its size is bounded, however long a recording is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace layertrace {

class DeviceLoad {
 public:
  static constexpr std::uint64_t kBinNs = 1'000'000;

  enum class Figure : std::uint8_t {
    kBusy,   // the percentage of the bin in which the device did something, on whichever stream
    kQueue,  // how many activities had been asked for and were not done yet, on average
  };
  // A figure that holds from `ns` to the next one. They come in time order, and only where a figure
  // changes.
  using Emit = std::function<void(Figure figure, std::uint64_t ns, double value)>;

  explicit DeviceLoad(Emit emit) : emit_(std::move(emit)) {}
  DeviceLoad(const DeviceLoad&) = delete;  // the cursors point into it
  DeviceLoad& operator=(const DeviceLoad&) = delete;

  // An activity, and when the host asked for it. What lies before the window is not counted.
  void add(std::uint64_t asked_ns, std::uint64_t start_ns, std::uint64_t end_ns);
  // Nothing more will come.
  void finish();

 private:
  // Milliseconds in which something begins or ends. A host may be seconds ahead of its device.
  static constexpr std::size_t kMostBins = 4096;

  struct Piece {  // of a bin, in nanoseconds from its beginning
    std::uint32_t from;
    std::uint32_t to;
  };
  struct Bin {
    std::vector<Piece> busy;      // in order, with time between any two
    std::uint64_t queue_ns = 0;   // of what covers a part of it
    std::int64_t queue_more = 0;  // what covers all of it, more than of the bin before
    std::int64_t busy_more = 0;
  };
  struct Cursor {
    std::uint64_t index = 0;
    Bin* bin = nullptr;
  };

  Bin& bin(Cursor& cursor, std::uint64_t index);
  void cover_queue(std::uint64_t from_ns, std::uint64_t to_ns);
  void cover_busy(std::uint64_t from_ns, std::uint64_t to_ns);
  static void add_piece(Bin& bin, Piece piece);
  void settle_first();
  void emit_whole(std::uint64_t index);
  void emit_changed(std::uint64_t index, double busy, double queue);

  Emit emit_;
  std::map<std::uint64_t, Bin> bins_;  // by number since the clock's zero
  Cursor asked_;                       // where the last one was: the next one mostly is there, too
  Cursor ran_;
  std::uint64_t settled_ = 0;  // the first bin that can still change
  std::int64_t queue_ = 0;     // what covers the last settled bin whole
  std::int64_t busy_ = 0;
  double last_busy_ = -1;
  double last_queue_ = -1;
};

}  // namespace layertrace
