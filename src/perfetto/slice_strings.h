// The strings that one slice refers to by their ids. What is new to its sequence goes into a packet
// before the slice's own, which is begun once all of them have been asked for.
#pragma once

#include <perfetto.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <layertrace/profile.h>

#include "attribute/span.h"
#include "perfetto/packet_block.h"
#include "perfetto/sequence.h"

namespace layertrace {

// Whose a slice is: the path of its layer, and why it has that one, or none. 0 where there is none.
struct Owner {
  std::uint32_t path = 0;
  std::uint32_t cause = 0;

  template <typename Event>
  void annotate(Event& event) const {
    if (path != 0) event.annotate_string(annotation::kPath, path);
    if (cause != 0) {
      event.annotate_string(path != 0 ? annotation::kInferred : annotation::kUnattributed, cause);
    }
  }
};

class SliceStrings {
 public:
  SliceStrings(PacketBlock& packets, const Dictionary& dictionary, Sequence& sequence)
      : packets_(packets), dictionary_(dictionary), sequence_(sequence) {}

  std::uint32_t name(NameId name) {
    const auto [id, fresh] = sequence_.event_names.id(kFixedNames + 2 * std::size_t{index(name)});
    if (fresh) [[unlikely]]
      tell_name(id, dictionary_.names[index(name)]);
    return id;
  }
  // Its path; of a model, its class.
  std::uint32_t name(LayerId layer) {
    const std::size_t key = kFixedNames + 2 * std::size_t{index(layer)} + 1;
    const auto [id, fresh] = sequence_.event_names.id(key);
    if (fresh) [[unlikely]]
      tell_name(id, label(dictionary_.layers[index(layer)]));
    return id;
  }
  std::uint32_t name(FixedName name, std::string_view text) {
    const auto [id, fresh] = sequence_.event_names.id(name);
    if (fresh) [[unlikely]]
      tell_name(id, text);
    return id;
  }
  std::uint32_t category(std::size_t category) {
    const auto [id, fresh] = sequence_.categories.id(category);
    if (fresh) [[unlikely]]
      tell_category(id, category);
    return id;
  }
  std::uint32_t category(Phase phase) { return category(static_cast<std::size_t>(phase)); }
  Owner owner(LayerId layer, Cause cause) {
    Owner owner;
    if (layer != kNoLayer) {
      owner.path = string(kCauseCount + 2 * std::size_t{index(layer)},
                          dictionary_.layers[index(layer)].path);
    }
    if (cause != Cause::kNone)
      owner.cause = string(static_cast<std::size_t>(cause), cause_text(cause));
    return owner;
  }
  // A name as the value of an annotation.
  std::uint32_t text(NameId name) {
    return string(kCauseCount + 2 * std::size_t{index(name)} + 1, dictionary_.names[index(name)]);
  }

  static const std::string& label(const LayerDef& layer) {
    return layer.path.empty() ? layer.type : layer.path;
  }

 private:
  std::uint32_t string(std::size_t key, std::string_view text) {
    const auto [id, fresh] = sequence_.strings.id(key);
    if (fresh) [[unlikely]]
      tell_string(id, text);
    return id;
  }
  perfetto::protos::pbzero::InternedData& interned();
  void tell_name(std::uint32_t id, std::string_view text);
  void tell_category(std::uint32_t id, std::size_t category);
  void tell_string(std::uint32_t id, std::string_view text);

  PacketBlock& packets_;
  const Dictionary& dictionary_;
  Sequence& sequence_;
  perfetto::protos::pbzero::InternedData* interned_ = nullptr;
};

// The names of the first so many annotations, as a sequence's first packet tells them.
void tell_annotation_names(perfetto::protos::pbzero::TracePacket& packet, std::size_t count);

}  // namespace layertrace
