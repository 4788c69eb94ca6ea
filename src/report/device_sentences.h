// What a GPU did while the steps lasted, in a few sentences for below a tree.
#pragma once

#include <vector>

#include <layertrace/profile.h>

#include "report/ledger.h"
#include "report/text.h"

namespace layertrace::report {

// Without CUPTI, CUDA events alone tell of the GPU.
inline bool has_events_only(const Profile& profile) {
  return !profile.run.device.empty() && profile.health.gpu.timing == "events";
}

// "blocks.0", the root's class, or "(data)" outside any layer.
std::string place_name(const Profile& profile, int layer, Phase phase, const Glyphs& glyphs);

std::vector<Sentence> device_sentences(const Profile& profile, const Glyphs& glyphs);

}  // namespace layertrace::report
