// The entries of a loaded library's tables through which it calls a function of another name: by
// writing to them, its calls can be led elsewhere, and back. Nothing of the library's code is
// changed.
#pragma once

#include <string_view>
#include <vector>

namespace layertrace {

struct CallSlot {
  void** entry = nullptr;
  bool read_only = false;  // the loader has protected it after start-up
  void* original = nullptr;
};

// All entries of the library (by the end of its file name) for that symbol; empty if it is not
// loaded or does not call it.
std::vector<CallSlot> find_call_slots(std::string_view library, std::string_view symbol);

// Writes an entry, whole. False where its page cannot be made writable.
bool set_call_slot(const CallSlot& slot, void* function) noexcept;

}  // namespace layertrace
