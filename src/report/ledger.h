// The sentences around a tree: above it what was recorded and what is wrong with it, below it what
// the figures explain, what went missing and what recording cost.
#pragma once

#include <string>
#include <vector>

#include <layertrace/profile.h>

#include "report/table.h"
#include "report/text.h"

namespace layertrace::report {

struct Sentence {
  std::string text;  // cleaned
  Tone tone = Tone::kPlain;
};

std::vector<Sentence> heading(const Profile& profile, const Glyphs& glyphs);
std::vector<Sentence> ledger(const Profile& profile, const Glyphs& glyphs);

}  // namespace layertrace::report
