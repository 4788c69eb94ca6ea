#include "perfetto/step_track.h"

#include <string>
#include <utility>

#include "perfetto/format.h"
#include "perfetto/slice_strings.h"

namespace layertrace {

using TrackEvent = perfetto::protos::pbzero::TrackEvent;

void StepTrack::window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) {
  // Something of another lane may have come between a step's end and the pause, and begun the step
  // that is not recorded.
  end_partial(ns);
  if (on) {
    await(lane, ns, step, /*is_window=*/true);
    begin();
    return;
  }
  is_waiting_ = false;
  Sequence& sequence = lanes_.sequence(lane, Track::kScopes, ns);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = strings.name(kPauseName, format::kPause);
  auto* event = lanes_.event(sequence, ns, TrackEvent::TYPE_INSTANT);
  event->set_track_uuid(format::kStepTrack);
  event->set_name_iid(name);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kWindow);
  annotation->set_uint_value(step);
}

void StepTrack::begin() {
  is_waiting_ = false;
  is_open_ = true;
  Sequence& sequence = lanes_.sequence(lane_, Track::kScopes, ns_);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t category = strings.category(format::kStepCategory);
  auto* event = lanes_.event(sequence, ns_, TrackEvent::TYPE_SLICE_BEGIN);
  event->set_track_uuid(format::kStepTrack);
  event->add_category_iids(category);
  event->set_name("step " + std::to_string(index_));
  if (is_window_) {
    auto* annotation = event->add_debug_annotations();
    annotation->set_name_iid(annotation::kWindow);
    annotation->set_uint_value(index_);
  }
}

void StepTrack::end_partial(std::uint64_t ns) {
  if (!std::exchange(is_open_, false)) return;
  auto* event =
      lanes_.event(lanes_.sequence(lane_, Track::kScopes, ns), ns, TrackEvent::TYPE_SLICE_END);
  event->set_track_uuid(format::kStepTrack);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kPartial);
  annotation->set_bool_value(true);
}

void StepTrack::step(Lane lane, std::uint64_t ns, std::uint64_t index) {
  begin_if_waiting();
  if (is_open_) {
    auto* event =
        lanes_.event(lanes_.sequence(lane, Track::kScopes, ns), ns, TrackEvent::TYPE_SLICE_END);
    event->set_track_uuid(format::kStepTrack);
    auto* annotation = event->add_debug_annotations();
    annotation->set_name_iid(annotation::kStep);
    annotation->set_uint_value(index);
  }
  await(lane, ns, index + 1, /*is_window=*/false);
}

void StepTrack::await(Lane lane, std::uint64_t ns, std::uint64_t index, bool is_window) {
  is_waiting_ = true;
  is_open_ = false;
  is_window_ = is_window;
  lane_ = lane;
  ns_ = ns;
  index_ = index;
}

}  // namespace layertrace
