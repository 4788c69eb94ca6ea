// The names of events, each once, with what they say: PyTorch tells much by names alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>

#include "record/device_record.h"
#include "record/ids.h"

namespace layertrace::kineto {

enum class NameKind : std::uint8_t {
  kPlain,
  kStep,        // ProfilerStep#7
  kPhase,       // an optimizer's step, a loader's batch, a stretch that is called like a phase
  kEvaluation,  // autograd's engine runs a node
  kNode,        // the node itself
};

struct NameMeaning {
  NameKind kind = NameKind::kPlain;
  Phase phase = Phase::kOther;
  CallKind call = CallKind::kAsk;  // of a call to a vendor's library
  bool accumulates = false;        // a node that adds into a gradient
  bool launches_graph = false;
  bool is_collective = false;  // a kernel that talks to other devices
  bool is_composite = false;   // an operator that only calls others
  NameId shown = kNoName;      // of an evaluation: the node's
  std::uint64_t step = 0;
};

NameMeaning meaning_of(std::string_view name);

class Names {
 public:
  Names();
  NameId intern(std::string_view name);
  const NameMeaning& meaning(NameId id) const { return meanings_[index(id)]; }
  const std::string& text(NameId id) const { return texts_[index(id)]; }
  std::size_t size() const noexcept { return texts_.size(); }
  std::vector<std::string> release() { return std::move(texts_); }

 private:
  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t id = 0;  // + 1; 0 for none
  };
  void grow();

  std::vector<std::string> texts_;
  std::vector<NameMeaning> meanings_;
  std::vector<Place> places_;
};

}  // namespace layertrace::kineto
