// The sentences below a tree that say what was computed: how much of the device that used, what
// neither roof explains, and what of it could not be counted.
#pragma once

#include <vector>

#include <layertrace/profile.h>

#include "report/ledger.h"
#include "report/text.h"

namespace layertrace::report {

// Of the time of all operators on the host; 0 where it is not known.
double operator_time_share(const Profile& profile, const Operator& op);

// None where nothing was counted.
std::vector<Sentence> amount_sentences(const Profile& profile, const Glyphs& glyphs);

}  // namespace layertrace::report
