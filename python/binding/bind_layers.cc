#include <array>
#include <cstdint>

#include "bindings.h"

namespace layertrace::python {
namespace {

nb::dict phase_ns_dict(const std::array<std::uint64_t, kPhaseCount>& phases) {
  nb::dict dict;
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    dict[std::string(phase_name(static_cast<Phase>(i))).c_str()] = phases[i];
  return dict;
}

}  // namespace

nb::dict phase_dict(const std::array<PhaseStats, kPhaseCount>& phases) {
  nb::dict dict;
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    dict[std::string(phase_name(static_cast<Phase>(i))).c_str()] = phases[i];
  return dict;
}

void bind_layers(nb::module_& m) {
  nb::class_<Stat>(m, "Stat")
      .def("__repr__", repr_of("mean", "min", "max", "median", "stdev"))
      .def_ro("mean", &Stat::mean)
      .def_ro("min", &Stat::min)
      .def_ro("max", &Stat::max)
      .def_ro("median", &Stat::median)
      .def_ro("stdev", &Stat::stdev);
  nb::class_<PhaseStats>(m, "PhaseStats")
      .def("__repr__",
           repr_of("calls", "host_ns", "self_host_ns", "activities", "activity_ns",
                   "self_activity_ns", "busy_ns", "copies", "launches", "event_ns", "idle_ns"))
      .def_ro("calls", &PhaseStats::calls)
      .def_ro("host_ns", &PhaseStats::host_ns)
      .def_ro("self_host_ns", &PhaseStats::self_host_ns)
      .def_ro("activities", &PhaseStats::activities)
      .def_ro("activity_ns", &PhaseStats::activity_ns)
      .def_ro("self_activity_ns", &PhaseStats::self_activity_ns)
      .def_ro("busy_ns", &PhaseStats::busy_ns)
      .def_ro("copies", &PhaseStats::copies)
      .def_ro("launches", &PhaseStats::launches)
      .def_ro("event_ns", &PhaseStats::event_ns)
      .def_ro("idle_ns", &PhaseStats::idle_ns)
      .def_ro("amounts", &PhaseStats::amounts)
      .def_ro("self_amounts", &PhaseStats::self_amounts)
      .def_ro("memory", &PhaseStats::memory)
      .def_ro("rates", &PhaseStats::rates)
      .def_prop_ro("empty", &PhaseStats::empty);
  nb::class_<Parameter>(m, "Parameter")
      .def("__repr__", repr_of("name", "shape", "dtype"))
      .def_ro("name", &Parameter::name)
      .def_prop_ro("shape",
                   [](const Parameter& parameter) { return nb::tuple(nb::cast(parameter.shape)); })
      .def_ro("dtype", &Parameter::dtype)
      .def_ro("elements", &Parameter::elements)
      .def_ro("bytes", &Parameter::bytes)
      .def_ro("trainable", &Parameter::trainable)
      .def_ro("buffer", &Parameter::buffer)
      .def_ro("shared_with", &Parameter::shared_with);
  nb::class_<CallShapes>(m, "CallShapes")
      .def("__repr__", repr_of("input", "output", "calls"))
      .def_ro("input", &CallShapes::input)
      .def_ro("output", &CallShapes::output)
      .def_ro("calls", &CallShapes::calls);
  nb::class_<Layer>(m, "Layer")
      .def("__repr__", repr_of("path", "type", "calls"))
      .def_ro("path", &Layer::path)
      .def_ro("name", &Layer::name)
      .def_ro("type", &Layer::type)
      .def_prop_ro("parent", [](const Layer& layer) { return index_or_none(layer.parent); })
      .def_ro("children", &Layer::children)
      .def_ro("calls", &Layer::calls)
      .def_ro("ran", &Layer::ran)
      .def_ro("registered", &Layer::registered)
      .def_ro("shared_with", &Layer::shared_with)
      .def_ro("params", &Layer::params)
      .def_ro("params_trainable", &Layer::params_trainable)
      .def_ro("param_bytes", &Layer::param_bytes)
      .def_ro("buffer_bytes", &Layer::buffer_bytes)
      .def_ro("self_params", &Layer::self_params)
      .def_ro("self_params_trainable", &Layer::self_params_trainable)
      .def_ro("self_param_bytes", &Layer::self_param_bytes)
      .def_ro("parameters", &Layer::parameters)
      .def_ro("kernel_size", &Layer::kernel_size)
      .def_ro("shapes", &Layer::shapes)
      .def_prop_ro("phases", [](const Layer& layer) { return phase_dict(layer.phases); })
      .def_prop_ro("forward", [](const Layer& layer) { return layer.phase(Phase::kForward); })
      .def_prop_ro("backward", [](const Layer& layer) { return layer.phase(Phase::kBackward); })
      .def_prop_ro("recompute", [](const Layer& layer) { return layer.phase(Phase::kRecompute); });
  nb::class_<Step>(m, "Step")
      .def("__repr__", repr_of("index", "wall_ns"))
      .def_ro("index", &Step::index)
      .def_ro("start_ns", &Step::start_ns)
      .def_ro("wall_ns", &Step::wall_ns)
      .def_prop_ro("phase_ns", [](const Step& step) { return phase_ns_dict(step.phase_ns); })
      .def_ro("devices", &Step::devices);
  bind_sequence<Layer>(m, "Layers");
  bind_sequence<Step>(m, "Steps");
}

}  // namespace layertrace::python
