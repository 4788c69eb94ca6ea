// What stands around a card's figures: what they are of, and what to bear in mind.
#pragma once

#include <string>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::cards {

// "ResNet18 · cpu · batch size 1". Cleaned.
std::string title_of(const ModelCard& card, bool ascii);

// Among a card's notes, where it ran on a simulated GPU.
std::string simulated_note(const ModelCard& card);

// The lines of a table's note: titles, that a GPU was simulated, and notes.
std::vector<std::string> note_lines(const ModelCard& card);
std::vector<std::string> note_lines(const CardComparison& comparison);

}  // namespace layertrace::cards
