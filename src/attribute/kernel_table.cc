#include "attribute/kernel_table.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "attribute/step_sums.h"
#include "base/kernel_name.h"

namespace layertrace {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"kernel", "copy", "set"};
constexpr std::uint64_t kKindCount = kKinds.size();

// Which entry, and the place of its layer and phase, those outside any layer first.
constexpr unsigned kPlaceBits = 40;
std::uint64_t use_key(std::uint32_t entry, LayerId layer, Phase phase) noexcept {
  const std::uint64_t place =
      layer == kNoLayer ? static_cast<std::uint64_t>(phase) : kPhaseCount + slot(layer, phase);
  return std::uint64_t{entry} << kPlaceBits | place;
}
std::size_t entry_of_key(std::uint64_t key) noexcept { return key >> kPlaceBits; }

}  // namespace

std::uint32_t KernelTable::entry_of(NameId name, DeviceKind kind) {
  const auto key = [kind](NameId id) {
    return std::uint64_t{index(id)} * kKindCount + static_cast<std::uint64_t>(kind);
  };
  const auto known = entry_ids_.find(key(name));
  if (known != entry_ids_.end()) return known->second;
  if (entries_.size() >= most_names_ && name != kNoName) return entry_of(kNoName, kind);
  const auto id = static_cast<std::uint32_t>(entries_.size());
  entry_ids_.emplace(key(name), id);
  entries_.push_back({name, kind});
  return id;
}

KernelTable::Use& KernelTable::use_of(std::uint64_t key) {
  // Steps repeat: what came next the last time mostly comes next now.
  if (!uses_.empty()) {
    const std::uint32_t next = uses_[last_use_].next;
    if (uses_[next].key == key) return uses_[last_use_ = next];
  }
  const auto [known, fresh] = use_ids_.try_emplace(key, static_cast<std::uint32_t>(uses_.size()));
  if (fresh) uses_.push_back({.key = key});
  uses_[last_use_].next = known->second;
  return uses_[last_use_ = known->second];
}

void KernelTable::take_longest(Use& use, const LaunchShape& launch, std::uint64_t ns) {
  if (ns > use.max_ns || (ns == use.max_ns && launch > use.longest)) use.longest = launch;
  use.max_ns = std::max(use.max_ns, ns);
}

void KernelTable::add(const DeviceSpan& span, bool outside) {
  const std::uint64_t ns = span.end_ns - std::min(span.end_ns, span.start_ns);
  const std::uint32_t id = entry_of(span.what.name, span.what.kind);
  Use& use = use_of(use_key(id, span.layer, span.phase));
  ++use.count;
  use.ns += ns;
  use.min_ns = std::min(use.min_ns, ns);
  use.bytes += span.what.bytes;
  const DeviceActivity& what = span.what;
  take_longest(use, {what.grid, what.block, what.registers, what.shared_bytes, what.occupancy}, ns);
  if (!outside) return;
  ++use.outside_count;
  use.outside_ns += ns;
}

void KernelTable::merge(const KernelTable& other, bool outside) {
  constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  std::vector<std::uint32_t> ids(other.entries_.size(), kUnknown);  // here, of those in use there
  for (const Use& from : other.uses_) {
    if (from.count == 0) continue;
    std::uint32_t& id = ids[entry_of_key(from.key)];
    if (id == kUnknown) {
      const Entry& entry = other.entries_[entry_of_key(from.key)];
      id = entry_of(entry.name, entry.kind);
    }
    const std::uint64_t place = from.key & ((std::uint64_t{1} << kPlaceBits) - 1);
    Use& to = use_of(std::uint64_t{id} << kPlaceBits | place);
    to.count += from.count;
    to.ns += from.ns;
    to.min_ns = std::min(to.min_ns, from.min_ns);
    take_longest(to, from.longest, from.max_ns);
    to.bytes += from.bytes;
    to.outside_count += outside ? from.count : from.outside_count;
    to.outside_ns += outside ? from.ns : from.outside_ns;
  }
}

void KernelTable::clear() {
  for (Use& use : uses_) use = {.key = use.key, .next = use.next};
}

// What it comes to for all that it serves. Here since whoever leaves out some of these needs it
// again.
void add_up_uses(Kernel& kernel) {
  kernel.count = kernel.ns = kernel.max_ns = kernel.bytes = 0;
  kernel.outside_count = kernel.outside_ns = 0;
  kernel.min_ns = kernel.uses.empty() ? 0 : kernel.uses.front().min_ns;
  const Kernel::Use* longest = nullptr;
  for (const Kernel::Use& use : kernel.uses) {
    kernel.count += use.count;
    kernel.ns += use.ns;
    kernel.min_ns = std::min(kernel.min_ns, use.min_ns);
    kernel.max_ns = std::max(kernel.max_ns, use.max_ns);
    kernel.bytes += use.bytes;
    kernel.outside_count += use.outside_count;
    kernel.outside_ns += use.outside_ns;
    const bool is_longer = longest == nullptr || std::tie(use.max_ns, use.longest) >
                                                     std::tie(longest->max_ns, longest->longest);
    if (is_longer) longest = &use;
  }
  if (longest == nullptr) return;
  kernel.grid = longest->longest.grid;
  kernel.block = longest->longest.block;
  kernel.registers = longest->longest.registers;
  kernel.shared_bytes = longest->longest.shared_bytes;
  kernel.occupancy = longest->longest.occupancy;
}

std::vector<Kernel> KernelTable::kernels(const std::vector<std::string>& names) const {
  std::vector<Kernel> result;
  for (const Entry& entry : entries_) {
    Kernel kernel;
    const bool named = index(entry.name) < names.size();
    kernel.name = named ? names[index(entry.name)] : "(too many names)";
    const bool is_kernel = entry.kind == DeviceKind::kKernel;
    kernel.short_name = named && is_kernel ? short_kernel_name(kernel.name) : kernel.name;
    kernel.kind = kKinds[static_cast<std::size_t>(entry.kind)];
    result.push_back(std::move(kernel));
  }
  for (const Use& use : uses_) {
    const std::uint64_t place = use.key & ((std::uint64_t{1} << kPlaceBits) - 1);
    result[entry_of_key(use.key)].uses.push_back(
        {.layer = static_cast<int>(place / kPhaseCount) - 1,
         .phase = static_cast<Phase>(place % kPhaseCount),
         .count = use.count,
         .ns = use.ns,
         .min_ns = use.min_ns,
         .max_ns = use.max_ns,
         .bytes = use.bytes,
         .outside_count = use.outside_count,
         .outside_ns = use.outside_ns,
         .longest = {use.longest.grid, use.longest.block, use.longest.registers,
                     use.longest.shared_bytes, static_cast<double>(use.longest.occupancy)}});
  }
  for (Kernel& kernel : result) {
    add_up_uses(kernel);
    std::ranges::sort(kernel.uses, [](const Kernel::Use& a, const Kernel::Use& b) {
      return std::tie(b.ns, a.layer, a.phase) < std::tie(a.ns, b.layer, b.phase);
    });
  }
  std::ranges::sort(result, [](const Kernel& a, const Kernel& b) {
    return std::tie(b.ns, a.name, a.kind) < std::tie(a.ns, b.name, b.kind);
  });
  return result;
}

}  // namespace layertrace
