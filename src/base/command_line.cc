#include "base/command_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string_view>

namespace layertrace {
namespace {

constexpr std::string_view kMask = "***";

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "--api-key", "wandb.token", "HF_TOKEN"; but not "--tokenizer" or "--max-tokens".
bool names_a_secret(std::string_view option) {
  constexpr std::array<std::string_view, 10> kWords = {
      "token", "secret", "secrets", "password",   "passwd",
      "pwd",   "apikey", "auth",    "passphrase", "credentials"};
  constexpr std::array<std::string_view, 4> kEnds = {"apikey", "accesskey", "privatekey",
                                                     "secretkey"};
  std::string together;
  std::string word;
  for (const char c : lower(option) + "-") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (std::ranges::find(kWords, word) != kWords.end()) return true;
    together += word;
    word.clear();
  }
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return together.ends_with(end); });
}

// By how the tokens of well-known services begin.
bool is_token(std::string_view value) {
  constexpr std::array<std::string_view, 9> kBeginnings = {
      "hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA"};
  constexpr std::size_t kShortest = 16;
  return value.size() >= kShortest && std::ranges::any_of(kBeginnings, [&](std::string_view each) {
           return value.starts_with(each);
         });
}

// https://user:password@host: without what stands before the host.
std::string without_password(std::string_view value) {
  const std::size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return std::string(value);
  const std::size_t first = scheme + 3;
  const std::size_t host = value.find('@', first);
  const bool is_before_path = host != std::string_view::npos && host < value.find('/', first);
  if (!is_before_path) return std::string(value);
  return std::string(value.substr(0, first)) + std::string(kMask) + std::string(value.substr(host));
}

std::string masked_value(std::string_view value) {
  return is_token(value) ? std::string(kMask) : without_password(value);
}

// An option with its value, or a value.
std::string masked_word(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return masked_value(word);
  const std::string_view name = word.substr(0, equals);
  // A URL's query is no option.
  if (name.find("://") != std::string_view::npos) return masked_value(word);
  const std::string_view value = word.substr(equals + 1);
  return std::string(name) + "=" +
         (names_a_secret(name) && !value.empty() ? std::string(kMask) : masked_value(value));
}

std::string quoted(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 ||
           std::string_view("-_./=:,@%+*").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace

std::vector<std::string> command_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string shown_command(const std::vector<std::string>& words) {
  std::string out;
  bool is_secret = false;  // the word before said so
  for (const std::string& word : words) {
    const bool is_option = word.starts_with("-");
    const std::string shown = is_secret && !is_option ? std::string(kMask) : masked_word(word);
    is_secret = is_option && word.find('=') == std::string::npos && names_a_secret(word);
    if (!out.empty()) out += ' ';
    out += quoted(shown);
  }
  return out;
}

}  // namespace layertrace
