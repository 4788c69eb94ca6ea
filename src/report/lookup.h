// Layers that are asked for by path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>

namespace layertrace::report {

// The layers at the top: those without parents, or the start node; empty if there is no such node.
std::vector<int> roots_of(const Profile& profile, std::string_view start);

// `no layer "net.7" in this profile; "net" has 0, 1, 2`: names the deepest layer on the way that is
// there.
std::string unknown_layer(const Profile& profile, std::string_view asked, bool ascii);

}  // namespace layertrace::report
