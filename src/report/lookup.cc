#include "report/lookup.h"

#include <fmt/format.h>

#include "report/text.h"

namespace layertrace::report {

std::vector<int> roots_of(const Profile& profile, std::string_view start) {
  std::vector<int> roots;
  if (start.empty()) {
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
      if (profile.layers[i].parent < 0) roots.push_back(static_cast<int>(i));
    }
  } else if (const Layer* found = profile.find(start)) {
    roots.push_back(static_cast<int>(found - profile.layers.data()));
  }
  return roots;
}

std::string unknown_layer(const Profile& profile, std::string_view asked, bool ascii) {
  constexpr std::size_t kNamesOffered = 8;
  std::string text = fmt::format("no layer \"{}\" in this profile", clean(asked, ascii));
  std::string_view path = asked;
  const Layer* parent = nullptr;
  while (parent == nullptr && !path.empty()) {
    const std::size_t dot = path.rfind('.');
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
    parent = profile.find(path);
  }
  if (parent == nullptr || parent->children.empty()) return text + '\n';
  text += fmt::format("; \"{}\" has ",
                      clean(path.empty() ? std::string_view(parent->name) : path, ascii));
  for (std::size_t i = 0; i < parent->children.size(); ++i) {
    if (i > 0) text += ", ";
    if (i == kNamesOffered) return fmt::format("{}{}\n", text, glyphs_for(ascii).ellipsis);
    text += clean(profile.layers[parent->children[i]].name, ascii);
  }
  return text + '\n';
}

}  // namespace layertrace::report
