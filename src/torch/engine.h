// How autograd's nodes are seen: by standing in for its engine, or by PyTorch's own callbacks.
//
// Standing in takes one of two ways. Where layertrace comes first in the lookup order (a program
// that links it, or preloads it), our definitions of the engine's functions are the ones that
// LibTorch calls. Where it comes later (Python, which imports torch first), the entries by which
// LibTorch calls these functions are pointed at ours while something is recorded.
#pragma once

namespace layertrace {

// Our definitions come first in the lookup order.
bool engine_is_interposed();

// Points LibTorch's entries at our functions, and back at its own. False where an entry cannot be
// found or written; then nothing has changed.
bool redirect_engine() noexcept;
void restore_engine() noexcept;

// Nodes are recorded there; false while callbacks do it instead.
bool engine_is_followed() noexcept;
void set_engine_followed(bool followed) noexcept;

}  // namespace layertrace
