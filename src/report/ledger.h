// The sentences around a tree: above it what was recorded and what is wrong with it, below it what
// the figures explain, what went missing and what recording cost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>

#include "report/table.h"
#include "report/text.h"

namespace layertrace::report {

struct Sentence {
  std::string text;  // cleaned
  Tone tone = Tone::kPlain;
};

// That times of such a GPU are a simulation's, and what was done on it: "recorded", "timed".
std::string simulation_note(std::string_view done, std::string_view device, bool ascii);

// The same of a run; "" where it was on none.
std::string simulation_note(const RunInfo& run, bool ascii);

// What is wrong, and the title; the heading goes on with what was recorded.
std::vector<Sentence> opening(const Profile& profile, const Glyphs& glyphs);
std::vector<Sentence> heading(const Profile& profile, const Glyphs& glyphs);
std::vector<Sentence> ledger(const Profile& profile, const Glyphs& glyphs);

// One line each, or as many as `width` cells ask for (0: one).
std::string text_of(const std::vector<Sentence>& sentences, std::size_t width, bool color);

// "1 record", "1,204 records".
std::string quantity(std::uint64_t count, std::string_view one, std::string_view many);

}  // namespace layertrace::report
