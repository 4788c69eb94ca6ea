// What went into each layer's calls and what came out, and how often. A layer whose shapes change
// all the time has a few rows, and one for all the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"

namespace layertrace {

class ShapeTable {
 public:
  // Of a call on a lane, first what goes in, then what comes out. `depth` is how many spans are
  // open on the lane then.
  void add(Lane lane, std::size_t depth, const ShapesSpan& span);
  // A span has ended, and so many are open now. A call that an exception left gives nothing.
  void leave(Lane lane, std::size_t depth);
  void fill(Profile& profile, const std::vector<std::string>& names) const;

 private:
  static constexpr std::size_t kMostRows = 16;  // of a layer
  struct Call {
    LayerId layer = kNoLayer;
    NameId input = kNoName;
    std::size_t depth = 0;
  };
  struct Row {
    NameId input = kNoName;
    NameId output = kNoName;
    std::uint64_t calls = 0;
  };

  std::vector<std::vector<Call>> open_;  // by lane: calls of which the output has not come
  std::vector<std::vector<Row>> rows_;   // by layer
};

}  // namespace layertrace
