#include "report/json_amounts.h"

#include <string>
#include <utility>
#include <vector>

#include "report/amount_sentences.h"

namespace layertrace::report {
namespace {

Json parameter_json(const Parameter& parameter) {
  return {{"name", parameter.name},     {"shape", parameter.shape},
          {"dtype", parameter.dtype},   {"elements", parameter.elements},
          {"bytes", parameter.bytes},   {"trainable", parameter.trainable},
          {"buffer", parameter.buffer}, {"shared_with", text_or_null(parameter.shared_with)}};
}

// Of its model's.
double params_share(const Profile& profile, const Layer& layer) {
  const Layer* root = &layer;
  while (root->parent >= 0) root = &profile.layers[static_cast<std::size_t>(root->parent)];
  if (root->params == 0) return 0;
  return static_cast<double>(layer.params) / static_cast<double>(root->params);
}

// As columns: an object for each point would be five times as long.
Json timeline_json(const std::vector<MemoryPoint>& timeline) {
  Json out = {{"ns", Json::array()}, {"bytes", Json::array()}, {"phase", Json::array()}};
  for (const MemoryPoint& point : timeline) {
    out["ns"].push_back(number(point.ns));
    out["bytes"].push_back(number(point.bytes));
    out["phase"].push_back(phase_name(point.phase));
  }
  return out;
}

Json device_memory_json(const Profile& profile, const DeviceMemory& memory) {
  const bool has_layer = memory.peak_layer >= 0;
  const auto& layers = profile.layers;
  return {{"device", memory.device >= 0 ? Json(memory.device) : Json(nullptr)},
          {"allocated", number(memory.allocated)},
          {"freed", number(memory.freed)},
          {"peak", number(memory.peak)},
          {"peak_layer", has_layer ? Json(layers[static_cast<std::size_t>(memory.peak_layer)].path)
                                   : Json(nullptr)},
          {"peak_phase", phase_name(memory.peak_phase)},
          {"peak_ns", number(memory.peak_ns)},
          {"timeline", timeline_json(memory.timeline)}};
}

}  // namespace

Json memory_json(const Profile& profile) {
  Json devices = Json::array();
  for (const DeviceMemory& memory : profile.device_memory)
    devices.push_back(device_memory_json(profile, memory));
  const MemoryForecast all = forecast(profile);
  return {{"devices", std::move(devices)},
          {"gradient_bytes", number(profile.gradient_bytes)},
          {"optimizer_bytes", number(profile.optimizer_bytes)},
          {"optimizer_state_bytes",
           profile.optimizer_state_bytes ? number(*profile.optimizer_state_bytes) : Json(nullptr)},
          {"forecast",
           {{"parameters", number(all.parameters)},
            {"gradients", number(all.gradients)},
            {"optimizer", all.optimizer_known ? number(all.optimizer) : Json(nullptr)},
            {"activations", number(all.activations)},
            {"total", number(all.total())}}}};
}

Json known(double value) { return value > 0 ? number(value) : Json(nullptr); }

void put_amounts(Json& out, const PhaseStats& stats) {
  const Amounts& all = stats.amounts;
  const Amounts& own = stats.self_amounts;
  out["flops"] = number(all.flops);
  out["macs"] = number(all.macs());
  out["aux_flops"] = number(all.aux_flops);
  out["flops_causal"] = number(all.flops_causal);
  out["bytes"] = number(all.bytes);
  out["activations"] = number(all.activations);
  out["self_flops"] = number(own.flops);
  out["self_macs"] = number(own.macs());
  out["self_aux_flops"] = number(own.aux_flops);
  out["self_bytes"] = number(own.bytes);
  out["self_activations"] = number(own.activations);
  out["memory"] = {{"peak", number(stats.memory.peak)},
                   {"kept", number(stats.memory.kept)},
                   {"freed", number(stats.memory.freed)},
                   {"allocated", number(stats.memory.allocated)}};
  const Rates& rates = stats.rates;
  const bool has_roof = rates.roof != Roof::kNone;
  out["flops_per_s"] = number(rates.flops_per_s);
  out["bytes_per_s"] = number(rates.bytes_per_s);
  out["intensity"] = number(rates.intensity);
  out["roof"] = has_roof ? Json(roof_name(rates.roof)) : Json(nullptr);
  out["roof_share"] = has_roof ? number(rates.roof_share) : Json(nullptr);
  out["unexplained_ns"] = has_roof ? number(rates.unexplained_ns) : Json(nullptr);
}

void put_facts(Json& out, const Profile& profile, const Layer& layer) {
  out["params"] = layer.params;
  out["params_share"] = number(params_share(profile, layer));
  out["params_trainable"] = layer.params_trainable;
  out["param_bytes"] = layer.param_bytes;
  out["buffer_bytes"] = layer.buffer_bytes;
  out["self_params"] = layer.self_params;
  out["self_params_trainable"] = layer.self_params_trainable;
  out["self_param_bytes"] = layer.self_param_bytes;
  Json& parameters = out["parameters"] = Json::array();
  for (const Parameter& parameter : layer.parameters)
    parameters.push_back(parameter_json(parameter));
  out["kernel_size"] = text_or_null(layer.kernel_size);
  for (const char* key : {"input_shapes", "output_shapes", "shape_calls"}) out[key] = Json::array();
  for (const CallShapes& shapes : layer.shapes) {
    out["input_shapes"].push_back(shapes.input);
    out["output_shapes"].push_back(shapes.output);
    out["shape_calls"].push_back(number(shapes.calls));
  }
}

Json device_json(const DeviceInfo& device) {
  if (device.origin.empty()) return nullptr;
  Json peaks = Json::object();
  for (std::size_t i = 0; i < device.flops_per_s.size(); ++i)
    peaks[std::string(format_name(i))] = known(device.flops_per_s[i]);
  return {{"name", device.name},
          {"origin", device.origin},
          {"count", device.count},
          {"peaks", std::move(peaks)},
          {"bytes_per_s", known(device.bytes_per_s)},
          {"source", device.source}};
}

Json operator_json(const Operator& op) {
  return {{"name", op.name},
          {"calls", number(op.calls)},
          {"counted", op.counted},
          {"flops", number(op.amounts.flops)},
          {"macs", number(op.amounts.macs())},
          {"aux_flops", number(op.amounts.aux_flops)},
          {"flops_causal", number(op.amounts.flops_causal)},
          {"bytes", number(op.amounts.bytes)},
          {"activations", number(op.amounts.activations)},
          {"host_ns", number(op.host_ns)}};
}

Json uncounted_json(const Profile& profile, const Operator& op) {
  return {{"name", op.name},
          {"calls", number(op.uncounted)},
          {"share", number(operator_time_share(profile, op))}};
}

}  // namespace layertrace::report
