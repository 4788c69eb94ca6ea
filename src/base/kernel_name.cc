#include "base/kernel_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace layertrace {
namespace {

constexpr std::size_t kLongest = 72;
constexpr std::size_t kMostFunctors = 2;

constexpr std::string_view kAnonymous = "(anonymous namespace)";

// Types of elements, which tell what a kernel works on, not what it does.
constexpr std::array<std::string_view, 16> kElementTypes{
    "float",  "double", "int",      "long",   "short",  "bool",          "char",       "unsigned",
    "signed", "Half",   "BFloat16", "__half", "half_t", "__nv_bfloat16", "bfloat16_t", "complex"};
// How a kernel reads and counts, not what it does.
constexpr std::array<std::string_view, 8> kPlumbing{
    "array", "Array", "tuple", "OffsetCalculator", "Metadata", "traits", "Cast", "Params"};

bool opens(char c) noexcept { return c == '<' || c == '(' || c == '{' || c == '['; }
bool closes(char c) noexcept { return c == '>' || c == ')' || c == '}' || c == ']'; }

// Calls visit(i) for each character outside any brackets, until it answers false.
template <typename Visit>
void each_outside(std::string_view text, Visit visit) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool arrow = text[i] == '>' && i > 0 && text[i - 1] == '-';
    if (depth == 0 && !visit(i)) return;
    if (closes(text[i]) && !arrow) depth = std::max(0, depth - 1);
    if (opens(text[i])) ++depth;
  }
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The text between separators that are outside any brackets.
std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  each_outside(text, [&](std::size_t i) {
    if (i >= start && text.substr(i).starts_with(separator)) {
      parts.push_back(trimmed(text.substr(start, i - start)));
      start = i + separator.size();
    }
    return true;
  });
  parts.push_back(trimmed(text.substr(start)));
  return parts;
}

// "plus<float>" in "std::plus<float>". Of a lambda: the function that it is in.
std::string_view last_component(std::string_view expression) {
  std::string_view last;
  for (const std::string_view part : split(expression, "::")) {
    const bool telling = !part.empty() && part != kAnonymous && !part.starts_with('{') &&
                         !part.starts_with("operator");
    if (telling) last = part;
  }
  return last;
}

// The name of a component, without what its template is made of and its arguments.
std::string_view identifier(std::string_view component) {
  return trimmed(component.substr(0, component.find_first_of("<(")));
}

std::vector<std::string_view> template_arguments(std::string_view component) {
  const std::size_t open = component.find('<');
  if (open == std::string_view::npos || component.find('(') < open) return {};
  std::size_t close = component.size();
  each_outside(component.substr(open + 1), [&](std::size_t i) {
    if (component[open + 1 + i] != '>') return true;
    close = open + 1 + i;
    return false;
  });
  return split(component.substr(open + 1, close - open - 1), ",");
}

bool is_element_type(std::string_view name) {
  const std::string_view word = name.substr(0, name.find_first_of(" *&"));
  return std::find(kElementTypes.begin(), kElementTypes.end(), word) != kElementTypes.end();
}

bool is_plumbing(std::string_view name) {
  return std::any_of(kPlumbing.begin(), kPlumbing.end(), [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

bool is_value(std::string_view name) {
  const auto is_name = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
  };
  return name.empty() || !is_name(name[0]) || name == "true" || name == "false" || name == "void";
}

// The innermost function or functor of an argument of a template; "" if it has none.
std::string functor(std::string_view argument, int depth = 0) {
  const std::string_view component = last_component(argument);
  const std::string_view name = identifier(component);
  if (is_value(name) || is_element_type(name) || is_plumbing(name)) return "";
  const auto arguments = template_arguments(component);
  constexpr int kDeepest = 16;  // a file may name anything
  for (const std::string_view inner : arguments) {
    if (depth == kDeepest) break;
    if (std::string found = functor(inner, depth + 1); !found.empty()) return found;
  }
  std::string text(name);
  if (arguments.empty()) return text;
  const std::string_view type = identifier(last_component(arguments.front()));
  return is_element_type(type) ? text.append("<").append(type).append(">") : text;
}

// "ns::kernel<…>" of "void ns::kernel<…>(int, float*)".
std::string_view without_result_and_arguments(std::string_view name) {
  std::size_t start = 0;
  std::size_t end = name.size();
  each_outside(name, [&](std::size_t i) {
    if (name[i] == '(' && !name.substr(i).starts_with(kAnonymous)) {
      end = i;
      return false;
    }
    if (name[i] == ' ') start = i + 1;
    return true;
  });
  return start < end ? name.substr(start, end - start) : name;
}

std::string without_middle(std::string text) {
  constexpr std::string_view kMark = "...";
  constexpr std::size_t kTail = 24;
  if (text.size() <= kLongest) return text;
  return text.substr(0, kLongest - kTail - kMark.size())
      .append(kMark)
      .append(text, text.size() - kTail);
}

}  // namespace

std::string short_kernel_name(std::string_view name) {
  const std::string_view component = last_component(without_result_and_arguments(name));
  std::string text(identifier(component));
  if (text.empty()) return std::string(name);
  std::vector<std::string> functors;
  for (const std::string_view argument : template_arguments(component)) {
    std::string found = functor(argument);
    const bool known = std::find(functors.begin(), functors.end(), found) != functors.end();
    if (!found.empty() && !known && functors.size() < kMostFunctors)
      functors.push_back(std::move(found));
  }
  if (functors.empty()) return without_middle(std::move(text));
  // CUTLASS's kernels are all one, of what it is made of.
  if (text == "Kernel" || text == "Kernel2" || text == "device_kernel")
    return without_middle(std::move(functors.front()));
  text += "<" + functors.front();
  for (std::size_t i = 1; i < functors.size(); ++i) text += ", " + functors[i];
  return without_middle(text + ">");
}

}  // namespace layertrace
