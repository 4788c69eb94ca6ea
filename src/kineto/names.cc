#include "kineto/names.h"

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "kineto/composite_operators.h"

namespace layertrace::kineto {
namespace {

constexpr std::string_view kEvaluationPrefix = "autograd::engine::evaluate_function: ";

std::uint32_t hash_of(std::string_view text) noexcept {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::uint64_t hash = text.size() * kFactor;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  };
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, text.data(), text.size());
  mix(rest);
  return static_cast<std::uint32_t>(hash >> 32);
}

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

// "AddmmBackward0", "torch::autograd::AccumulateGrad", "CopyBackwards"; no "aten::max_backward".
bool is_node_name(std::string_view name) noexcept {
  if (contains(name, "AccumulateGrad")) return true;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward") || name.ends_with("Backwards");
}

// "## forward ##", as some loops are annotated.
Phase phase_of_words(std::string_view name) noexcept {
  constexpr std::string_view kFrame = "#*=-_ []";
  const std::size_t first = name.find_first_not_of(kFrame);
  if (first == std::string_view::npos) return Phase::kOther;
  name = name.substr(first, name.find_last_not_of(kFrame) - first + 1);
  for (std::size_t p = 0; p + 1 < kPhaseCount; ++p) {
    const auto phase = static_cast<Phase>(p);
    if (phase_name(phase) == name) return phase;
  }
  return Phase::kOther;
}

CallKind call_kind_of(std::string_view name) noexcept {
  if (contains(name, "Synchronize")) return CallKind::kWait;
  if (contains(name, "Memcpy") || contains(name, "Memset")) return CallKind::kCopy;
  return CallKind::kAsk;
}

bool names_collective(std::string_view name) noexcept {
  return name.starts_with("nccl") || contains(name, "ncclKernel") ||
         contains(name, "ncclDevKernel") || name.starts_with("rccl") || name.starts_with("msccl");
}

}  // namespace

NameMeaning meaning_of(std::string_view name) {
  NameMeaning meaning;
  meaning.call = call_kind_of(name);
  meaning.launches_graph = contains(name, "GraphLaunch");
  meaning.is_collective = names_collective(name);
  meaning.is_composite = is_composite_operator(name);
  constexpr std::string_view kStep = "ProfilerStep#";
  constexpr std::array<std::pair<std::string_view, Phase>, 4> kPrefixes{
      {{"Optimizer.step#", Phase::kOptimizer},
       {"Optimizer.zero_grad#", Phase::kOptimizer},
       {"enumerate(DataLoader)#", Phase::kData},
       {"nccl:", Phase::kCommunication}}};
  if (name.starts_with(kStep)) {
    const char* const begin = name.data() + kStep.size();
    const char* const end = name.data() + name.size();
    const auto [behind, error] = std::from_chars(begin, end, meaning.step);
    if (error == std::errc() && behind == end) meaning.kind = NameKind::kStep;
    return meaning;
  }
  if (name.starts_with(kEvaluationPrefix)) {
    meaning.kind = NameKind::kEvaluation;
    meaning.accumulates = contains(name, "AccumulateGrad");
    return meaning;
  }
  if (is_node_name(name)) {
    meaning.kind = NameKind::kNode;
    meaning.accumulates = contains(name, "AccumulateGrad");
    return meaning;
  }
  meaning.phase = phase_of_words(name);
  for (const auto& [prefix, phase] : kPrefixes) {
    if (name.starts_with(prefix)) meaning.phase = phase;
  }
  if (meaning.phase != Phase::kOther) meaning.kind = NameKind::kPhase;
  return meaning;
}

Names::Names() : places_(1U << 12) {}

NameId Names::intern(std::string_view name) {
  const std::uint32_t hash = hash_of(name);
  const std::size_t mask = places_.size() - 1;
  std::size_t at = hash & mask;
  for (; places_[at].id != 0; at = (at + 1) & mask) {
    if (places_[at].hash == hash && texts_[places_[at].id - 1] == name)
      return NameId{places_[at].id - 1};
  }
  const auto id = static_cast<std::uint32_t>(texts_.size());
  places_[at] = {hash, id + 1};
  texts_.emplace_back(name);
  meanings_.push_back(meaning_of(name));
  if (2 * texts_.size() > places_.size()) grow();
  if (meanings_[id].kind == NameKind::kEvaluation) {
    const std::string node = texts_[id].substr(kEvaluationPrefix.size());
    const NameId shown = intern(node);
    meanings_[id].shown = shown;
  }
  return NameId{id};
}

void Names::grow() {
  std::vector<Place> old(2 * places_.size());
  old.swap(places_);
  const std::size_t mask = places_.size() - 1;
  for (const Place& place : old) {
    if (place.id == 0) continue;
    std::size_t at = place.hash & mask;
    while (places_[at].id != 0) at = (at + 1) & mask;
    places_[at] = place;
  }
}

}  // namespace layertrace::kineto
