// Names on a command line: tables of {…, name}, and the error that lists them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <layertrace/result.h>

#include "report/text.h"

namespace layertrace::report {

template <typename Infos>
auto find_name(const Infos& infos, std::string_view name) {
  return std::find_if(infos.begin(), infos.end(),
                      [name](const auto& info) { return info.name == name; });
}

template <typename Infos>
Error unknown_name(std::string_view what, std::string_view name, const Infos& infos) {
  std::string known;
  for (const auto& info : infos) known += fmt::format("{}{}", known.empty() ? "" : ", ", info.name);
  return {fmt::format("cannot use \"{}\" as a {}", clean(name, false), what), "no such name",
          fmt::format("Use one of: {}", known)};
}

}  // namespace layertrace::report
