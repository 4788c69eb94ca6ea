#include "perfetto/slice_strings.h"

namespace layertrace {
namespace {

template <typename Entry>
void set_interned(Entry* entry, std::uint64_t iid, std::string_view text) {
  entry->set_iid(iid);
  entry->set_name(text.data(), text.size());
}

}  // namespace

perfetto::protos::pbzero::InternedData& SliceStrings::interned() {
  if (interned_ == nullptr) interned_ = packets_.add(sequence_.id)->set_interned_data();
  return *interned_;
}

void SliceStrings::tell_name(std::uint32_t id, std::string_view text) {
  set_interned(interned().add_event_names(), id, text);
}

void SliceStrings::tell_category(std::uint32_t id, std::size_t category) {
  const std::string_view text = category == format::kStepCategory ? format::kStep
                                : category == kLostCategory
                                    ? "lost"
                                    : phase_name(static_cast<Phase>(category));
  set_interned(interned().add_event_categories(), id, text);
}

void SliceStrings::tell_string(std::uint32_t id, std::string_view text) {
  auto* value = interned().add_debug_annotation_string_values();
  value->set_iid(id);
  value->set_str(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

void tell_annotation_names(perfetto::protos::pbzero::TracePacket& packet, std::size_t count) {
  auto* data = packet.set_interned_data();
  for (std::size_t i = 0; i < count; ++i)
    set_interned(data->add_debug_annotation_names(), i + 1, kAnnotationNames[i]);
}

}  // namespace layertrace
