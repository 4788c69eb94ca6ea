#include "report/cards/notes.h"

#include <fmt/format.h>

#include <string_view>

#include "report/ledger.h"
#include "report/text.h"

namespace layertrace::cards {
namespace {

// `of` tells whose notes they are, where there are several cards.
void add_notes(std::vector<std::string>& lines, const ModelCard& card, std::string_view of) {
  const auto add = [&](const std::string& note) {
    lines.push_back(fmt::format("Note{}: {}.", of, note));
  };
  for (const Error& failure : card.failures) add(failure.message());
  for (const std::string& note : card.notes) {
    if (note != simulated_note(card)) add(note);  // a line of its own says so
  }
}

std::string simulation_line(const ModelCard& card) {
  return card.simulated.empty() ? "" : report::simulation_note("timed", card.simulated, false);
}

}  // namespace

std::string title_of(const ModelCard& card, bool ascii) {
  const std::string_view dot = report::glyphs_for(ascii).dot;
  std::string text = report::clean(card.name, ascii);
  const auto add = [&](const std::string& part) { text += fmt::format(" {} {}", dot, part); };
  const std::string& device = card.simulated.empty() ? card.device : card.simulated;
  if (!device.empty()) add(report::clean(device, ascii));
  if (card.batch_size != 0) add(fmt::format("batch size {}", card.batch_size));
  return text;
}

std::string simulated_note(const ModelCard& card) {
  return fmt::format("it ran on a {}: no time is a real GPU's", card.simulated);
}

std::vector<std::string> note_lines(const ModelCard& card) {
  std::vector<std::string> lines = {title_of(card, false), simulation_line(card)};
  add_notes(lines, card, "");
  return lines;
}

std::vector<std::string> note_lines(const CardComparison& comparison) {
  std::vector<std::string> lines;
  lines.reserve(comparison.cards.size());
  for (const ModelCard& card : comparison.cards) lines.push_back(title_of(card, false));
  for (const ModelCard& card : comparison.cards) {
    if (card.simulated.empty()) continue;
    lines.push_back(simulation_line(card));
    break;  // which of them ran there is in their titles
  }
  for (const ModelCard& card : comparison.cards) add_notes(lines, card, " on " + card.name);
  for (const std::string& note : comparison.notes) lines.push_back(fmt::format("Note: {}.", note));
  return lines;
}

}  // namespace layertrace::cards
