#include "kineto/event_parser.h"

namespace layertrace::kineto {
namespace {

// Three numbers: of a grid or a block.
bool extent(JsonCursor& cursor, std::array<std::string_view, 3>& size) {
  if (cursor.peek() != '[') return cursor.skip();
  cursor.take('[');
  for (std::size_t i = 0; cursor.peek() != ']'; ++i) {
    std::string_view unused;
    if (!cursor.scalar(i < size.size() ? size[i] : unused)) return false;
    if (!cursor.take(',') && cursor.peek() != ']') return cursor.fail();
  }
  return cursor.expect(']');
}

bool device_argument(JsonCursor& cursor, std::string_view key, RawArgs& args) {
  switch (key.size()) {
    case 4:
      if (key == "grid") return extent(cursor, args.grid);
      break;
    case 5:
      if (key == "block") return extent(cursor, args.block);
      if (key == "bytes") return cursor.scalar(args.bytes);
      break;
    case 6:
      if (key == "device") return cursor.scalar(args.device);
      if (key == "stream") return cursor.scalar(args.stream);
      break;
    case 7:
      if (key == "context") return cursor.scalar(args.context);
      break;
    case 11:
      if (key == "correlation") return cursor.scalar(args.correlation);
      break;
    case 13:
      if (key == "shared memory") return cursor.scalar(args.shared_memory);
      if (key == "graph node id") return cursor.scalar(args.graph_node);
      break;
    case 15:
      if (key == "Collective name") return cursor.scalar(args.collective);
      break;
    case 20:
      if (key == "registers per thread") return cursor.scalar(args.registers);
      break;
    case 25:
      if (key == "est. achieved occupancy %") return cursor.scalar(args.occupancy);
      break;
    default:
      break;
  }
  return cursor.skip();
}

// ROCm tells of a kernel's shape and a copy's size with the call that asked for it.
bool call_argument(JsonCursor& cursor, std::string_view key, RawArgs& args) {
  switch (key.size()) {
    case 4:
      if (key == "grid") return extent(cursor, args.grid);
      if (key == "size") return cursor.scalar(args.bytes);
      break;
    case 5:
      if (key == "block") return extent(cursor, args.block);
      break;
    case 11:
      if (key == "correlation") return cursor.scalar(args.correlation);
      break;
    case 13:
      if (key == "shared memory") return cursor.scalar(args.shared_memory);
      break;
    default:
      break;
  }
  return cursor.skip();
}

bool memory_argument(JsonCursor& cursor, std::string_view key, RawArgs& args) {
  if (key == "Total Allocated") return cursor.scalar(args.total_allocated);
  if (key == "Device Id") return cursor.scalar(args.device_id);
  if (key == "Device Type") return cursor.scalar(args.device_type);
  return cursor.skip();
}

// Goes through an object, and gives each key to `visit`, which takes its value.
template <typename Visit>
bool each_member(JsonCursor& cursor, Visit visit) {
  if (!cursor.expect('{')) return false;
  if (cursor.take('}')) return true;
  for (;;) {
    std::string_view key;
    if (!cursor.string(key) || !cursor.expect(':') || !visit(key)) return false;
    if (cursor.take(',')) [[likely]]
      continue;
    return cursor.expect('}');
  }
}

}  // namespace

bool EventParser::parse(JsonCursor& cursor, RawEvent& event) {
  event = {};
  category_ = Category::kNone;
  has_category_ = false;
  arguments_at_ = nullptr;
  if (!each_member(cursor, [&](std::string_view key) { return field(cursor, key, event); }))
    return false;
  if (arguments_at_ == nullptr) return true;
  const char* const behind = cursor.at();
  cursor.move_to(arguments_at_);
  if (!arguments(cursor, event)) return false;
  cursor.move_to(behind);
  return true;
}

bool EventParser::field(JsonCursor& cursor, std::string_view key, RawEvent& event) {
  switch (key.size()) {
    case 2:
      if (key == "ts") return cursor.scalar(event.ts);
      if (key == "ph") return cursor.scalar(event.ph);
      if (key == "id") return cursor.scalar(event.id);
      break;
    case 3:
      if (key == "dur") {
        event.has_dur = true;
        return cursor.scalar(event.dur);
      }
      if (key == "pid") return cursor.scalar(event.pid);
      if (key == "tid") return cursor.scalar(event.tid);
      if (key == "cat") {
        if (!cursor.scalar(event.cat)) return false;
        know_category(event.cat);
        return true;
      }
      break;
    case 4:
      if (key == "name") return cursor.scalar(event.name);
      if (key == "args") {
        // Which of them matter is known by the category; metadata has none.
        if (has_category_ || event.ph == "M") return arguments(cursor, event);
        cursor.peek();
        arguments_at_ = cursor.at();
      }
      break;
    default:
      break;
  }
  return cursor.skip();
}

void EventParser::know_category(std::string_view cat) {
  if (cat != last_cat_) {
    last_cat_ = cat;
    last_category_ = category_of(cat);
  }
  category_ = last_category_;
  has_category_ = true;
}

bool EventParser::arguments(JsonCursor& cursor, RawEvent& event) {
  const bool is_metadata = event.ph == "M";
  const bool is_read = is_metadata || is_device_activity(category_) ||
                       category_ == Category::kCall || category_ == Category::kOperator ||
                       category_ == Category::kAnnotation || category_ == Category::kInstant ||
                       category_ == Category::kNone;
  if (!is_read || cursor.peek() != '{') return cursor.skip();
  if (!is_metadata) {
    return each_member(cursor,
                       [&](std::string_view key) { return argument(cursor, key, event.args); });
  }
  return each_member(cursor, [&](std::string_view key) {
    if (key == "name") return cursor.scalar(event.args.name);
    if (key == "labels") return cursor.scalar(event.args.labels);
    return cursor.skip();
  });
}

bool EventParser::argument(JsonCursor& cursor, std::string_view key, RawArgs& args) const {
  switch (category_) {
    case Category::kCall:
      return call_argument(cursor, key, args);
    case Category::kOperator:
    case Category::kAnnotation:
      if (key == "Sequence number") return cursor.scalar(args.sequence);
      if (key == "Fwd thread id") return cursor.scalar(args.forward_thread);
      return cursor.skip();
    case Category::kInstant:
    case Category::kNone:
      return memory_argument(cursor, key, args);
    default:
      return device_argument(cursor, key, args);
  }
}

}  // namespace layertrace::kineto
