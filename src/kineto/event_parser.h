// Takes one event out of the text: its own fields, and of its arguments those that its category
// has.
#pragma once

#include <string>

#include "kineto/category.h"
#include "kineto/json_cursor.h"
#include "kineto/raw_event.h"

namespace layertrace::kineto {

class EventParser {
 public:
  // False where the text ends too early or is broken; the cursor tells which.
  bool parse(JsonCursor& cursor, RawEvent& event);
  Category category() const noexcept { return category_; }

 private:
  bool field(JsonCursor& cursor, std::string_view key, RawEvent& event);
  bool arguments(JsonCursor& cursor, RawEvent& event);
  bool argument(JsonCursor& cursor, std::string_view key, RawArgs& args) const;
  void know_category(std::string_view cat);

  std::string last_cat_;  // of the event before, which most often has the same
  Category last_category_ = Category::kNone;
  Category category_ = Category::kNone;
  bool has_category_ = false;
  const char* arguments_at_ = nullptr;  // that came before the category did
};

}  // namespace layertrace::kineto
