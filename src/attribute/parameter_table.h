// Parameters and buffers, from what the models had into the layers of a profile: each layer's own,
// and sums over all below it, in which a tensor that several layers have counts once.
#pragma once

#include <layertrace/profile.h>

#include "attribute/span.h"

namespace layertrace {

// The profile's layers are the dictionary's, in its order.
void fill_parameters(Profile& profile, const Dictionary& dictionary);

}  // namespace layertrace
