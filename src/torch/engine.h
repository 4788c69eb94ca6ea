// Whether autograd's nodes are seen by standing in for its engine, or by PyTorch's own callbacks.
#pragma once

namespace layertrace {

// Our definitions are the ones that LibTorch calls.
bool engine_is_interposed();

// Nodes are recorded there; false while callbacks do it instead.
bool engine_is_followed() noexcept;
void set_engine_followed(bool followed) noexcept;

}  // namespace layertrace
