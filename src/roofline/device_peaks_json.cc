#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <span>
#include <sstream>

#include <nlohmann/json.hpp>

#include "roofline/device_peaks.h"

namespace layertrace::roofline {
namespace {

using Json = nlohmann::json;

struct Key {
  std::string_view name;
  Dtype dtype;
  double Peak::*peak;
};

constexpr std::array kKeys = {
    Key{"fp64_tflops", Dtype::kFp64, &Peak::vector},
    Key{"fp64_matrix_tflops", Dtype::kFp64, &Peak::matrix},
    Key{"fp32_tflops", Dtype::kFp32, &Peak::vector},
    Key{"fp32_matrix_tflops", Dtype::kFp32, &Peak::matrix},
    Key{"tf32_tflops", Dtype::kTf32, &Peak::matrix},
    Key{"fp16_tflops", Dtype::kFp16, &Peak::matrix},
    Key{"bf16_tflops", Dtype::kBf16, &Peak::matrix},
    Key{"fp8_tflops", Dtype::kFp8, &Peak::matrix},
    Key{"int8_tops", Dtype::kInt8, &Peak::matrix},
    Key{"fp4_tflops", Dtype::kFp4, &Peak::matrix},
};
constexpr std::string_view kName = "name";
constexpr std::string_view kSource = "source";
constexpr std::string_view kBandwidth = "bandwidth_gbs";

std::string all_keys() {
  std::string keys(kName);
  for (const Key& key : kKeys) keys += fmt::format(", {}", key.name);
  return keys + fmt::format(", {}, {}", kBandwidth, kSource);
}

Error cannot_read(std::string cause) {
  return {
      "cannot read a device's peaks", std::move(cause),
      fmt::format("Give an object with these keys: {}; name and one figure at least", all_keys())};
}

std::string shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<double> read_figure(std::string_view key, const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
    return cannot_read(
        fmt::format("\"{}\" is {}, and must be a number above 0", key, shown(value)));
  }
  return value.get<double>();
}

Result<std::string> read_text(std::string_view key, const Json& value) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    return cannot_read(fmt::format("\"{}\" is {}, and must be a text", key, shown(value)));
  }
  return value.get<std::string>();
}

Result<void> read_member(DevicePeaks& peaks, std::string_view key, const Json& value) {
  if (key == kName || key == kSource) {
    auto text = read_text(key, value);
    if (!text) return text.error();
    (key == kName ? peaks.name : peaks.source) = std::move(*text);
    return {};
  }
  const auto* known =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == key; });
  if (known == kKeys.end() && key != kBandwidth) {
    return cannot_read(fmt::format("\"{}\" is no key of it", key));
  }
  const auto figure = read_figure(key, value);
  if (!figure) return figure.error();
  if (known == kKeys.end()) {
    peaks.bytes_per_s = *figure * 1e9;
  } else {
    peaks.of(known->dtype).*(known->peak) = *figure * 1e12;
  }
  return {};
}

// What the parser says is wrong, and where, without its own codes in front.
std::string without_code(std::string_view what) {
  const std::size_t code = what.find("] ");
  return std::string(code == std::string_view::npos ? what : what.substr(code + 2));
}

bool has_figure(const DevicePeaks& peaks) {
  return peaks.bytes_per_s > 0 || std::any_of(peaks.flops_per_s.begin(), peaks.flops_per_s.end(),
                                              [](const Peak& peak) { return peak != Peak{}; });
}

Result<DevicePeaks> read_peaks(const Json& object) {
  if (!object.is_object())
    return cannot_read(fmt::format("it is {}, not an object", shown(object)));
  DevicePeaks peaks;
  peaks.origin = Origin::kGiven;
  peaks.source = "given by the user";
  for (const auto& [key, value] : object.items()) {
    const auto read = read_member(peaks, key, value);
    if (!read) return read.error();
  }
  if (peaks.name.empty()) return cannot_read("it has no \"name\"");
  if (!has_figure(peaks)) return cannot_read(fmt::format("\"{}\" has no figure", peaks.name));
  return peaks;
}

}  // namespace

Result<DevicePeaks> parse_device_peaks(std::string_view json) {
  try {
    return read_peaks(Json::parse(json));
  } catch (const Json::exception& problem) {
    return cannot_read(fmt::format("it is not JSON: {}", without_code(problem.what())));
  }
}

Result<DevicePeaks> read_device_peaks(const std::string& json_or_path) {
  const std::size_t first = json_or_path.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && json_or_path[first] == '{')
    return parse_device_peaks(json_or_path);
  std::ifstream file(json_or_path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return cannot_read(fmt::format("the file {} cannot be read", json_or_path));
  return parse_device_peaks(text.str());
}

}  // namespace layertrace::roofline
