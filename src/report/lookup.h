// Layers that are asked for by path.
#pragma once

#include <string>
#include <string_view>

#include <layertrace/profile.h>

namespace layertrace::report {

// `no layer "net.7" in this profile; "net" has 0, 1, 2`: names the deepest layer on the way that is
// there.
std::string unknown_layer(const Profile& profile, std::string_view asked, bool ascii);

}  // namespace layertrace::report
