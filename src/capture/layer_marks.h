// Marks that layers leave outside layertrace's own records, while the program runs: ranges that
// other tools show, events on a device's streams.
#pragma once

#include <cstdint>

#include <layertrace/profile.h>

#include "record/ids.h"

namespace layertrace {

class Definitions;

class LayerMarks {
 public:
  LayerMarks() = default;
  virtual ~LayerMarks() = default;
  LayerMarks(const LayerMarks&) = delete;  // threads hold its address
  LayerMarks& operator=(const LayerMarks&) = delete;

  // A call of the layer begins on the calling thread, or its backward. `frame` is the id of the
  // call's record (see frame_id()), 0 for a backward. On hot paths: they neither wait nor throw.
  virtual void begin_layer(LayerId layer, Phase phase, std::uint64_t frame) noexcept = 0;
  virtual void begin_region(NameId name, Phase phase) noexcept = 0;
  // The innermost of the thread's marks that is open ends.
  virtual void end() noexcept = 0;
};

}  // namespace layertrace
