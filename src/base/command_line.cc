#include "base/command_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

namespace layertrace {
namespace {

constexpr std::string_view kMask = "***";

// Its words in lower case: "api" and "key" of "--api-key", "API_KEY" and "apiKey".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words = {""};
  bool was_small = false;
  for (const char letter : name) {
    const auto c = static_cast<unsigned char>(letter);
    const bool is_word = std::isalnum(c) != 0;
    const bool begins = was_small && std::isupper(c) != 0;
    if ((!is_word || begins) && !words.back().empty()) words.emplace_back();
    if (is_word) words.back() += static_cast<char>(std::tolower(c));
    was_small = is_word && std::isupper(c) == 0;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool any_is(const std::vector<std::string>& words, std::span<const std::string_view> known) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::find(known, word) != known.end();
  });
}

// Whose key it is cannot be listed, so all are secret but those that programs sort and look up by.
bool is_secret_key(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 32> kOrdinary = {
      "sort",  "primary", "foreign", "partition", "cache",  "group",  "join",    "order",
      "index", "dict",    "json",    "column",    "row",    "hash",   "lookup",  "public",
      "text",  "image",   "label",   "input",     "output", "data",   "feature", "target",
      "query", "state",   "batch",   "metric",    "loss",   "config", "dataset", "model"};
  return words.size() > 1 && words.back() == "key" &&
         std::ranges::find(kOrdinary, words[words.size() - 2]) == kOrdinary.end();
}

// "--api-key", "wandb.token", "HF_TOKEN"; but not "--tokenizer", "--max-tokens" or "--sort-key".
bool names_a_secret(std::string_view option) {
  constexpr std::array<std::string_view, 10> kWords = {
      "token", "secret", "secrets", "password",   "passwd",
      "pwd",   "apikey", "auth",    "passphrase", "credentials"};
  constexpr std::array<std::string_view, 4> kEnds = {"apikey", "accesskey", "privatekey",
                                                     "secretkey"};
  std::string small(option);
  std::ranges::transform(small, small.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto is_secret = [&](const std::vector<std::string>& words) {
    if (any_is(words, kWords) || is_secret_key(words)) return true;
    return !words.empty() && std::ranges::any_of(kEnds, [&](std::string_view end) {
      return words.back().ends_with(end);
    });
  };
  return is_secret(words_of(option)) || is_secret(words_of(small));  // "apiKey", "passWord"
}

// Of a URL's query, where short names are usual: "sig", "X-Amz-Signature", "key".
bool query_names_a_secret(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords = {"sig", "signature", "credential",
                                                      "key", "jwt",       "pass"};
  return names_a_secret(name) || any_is(words_of(name), kWords);
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

// "a=b&token=c": with the values of secrets masked.
std::string masked_query(std::string_view query) {
  std::string out;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find_first_of("&;?#"), query.size());
    const std::string_view part = query.substr(0, end);
    const std::size_t equals = part.find('=');
    const bool has_value = equals != std::string_view::npos && equals + 1 < part.size();
    if (has_value &&
        (query_names_a_secret(part.substr(0, equals)) || is_token(part.substr(equals + 1)))) {
      out += std::string(part.substr(0, equals + 1)) + std::string(kMask);
    } else {
      out += part;
    }
    out += query.substr(end, 1);
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return out;
}

// https://user:password@host/path?token=value, wherever in the text: without what stands before the
// host, and what a query keeps secret.
std::string masked_urls(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  constexpr std::string_view kNotInUrls = " \t\n\"'<>";
  std::string out;
  for (std::size_t scheme = text.find(kScheme); scheme != std::string_view::npos;
       scheme = text.find(kScheme)) {
    out += text.substr(0, scheme + kScheme.size());
    text.remove_prefix(scheme + kScheme.size());
    // A password may have any character but a slash; where it is not sure that it is one, it is
    // masked all the same.
    const std::string_view authority = text.substr(0, text.find_first_of("/ \t\n"));
    const std::size_t host = authority.rfind('@');
    const bool is_user = host < authority.find_first_of("?#\"'<>") || authority.find(':') < host;
    if (host != std::string_view::npos && is_user) {
      out += kMask;
      text.remove_prefix(host);
    }
    // A query may have another URL as a value: what is behind its scheme is looked at by itself.
    const std::size_t end =
        std::min({text.find_first_of(kNotInUrls), text.find(kScheme), text.size()});
    const std::string_view url = text.substr(0, end);
    text.remove_prefix(end);
    const std::size_t query = std::min(url.find_first_of("?#"), url.size());
    out += std::string(url.substr(0, query)) + masked_query(url.substr(query));
  }
  return out + std::string(text);
}

std::string masked_value(std::string_view value) {
  return is_token(value) ? std::string(kMask) : masked_urls(value);
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
