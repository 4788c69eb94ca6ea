#include <array>

#include "bindings.h"

namespace layertrace::python {
namespace {

// By the name of a number format; those that have any.
template <std::size_t kCount>
nb::dict format_dict(const std::array<double, kCount>& values) {
  nb::dict dict;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (values[i] > 0) dict[std::string(format_name(i)).c_str()] = values[i];
  }
  return dict;
}

}  // namespace

void bind_amounts(nb::module_& m) {
  nb::class_<Amounts>(m, "Amounts")
      .def("__repr__", repr_of("flops", "aux_flops", "bytes", "activations"))
      .def_ro("flops", &Amounts::flops)
      .def_prop_ro("macs", &Amounts::macs)
      .def_ro("aux_flops", &Amounts::aux_flops)
      .def_ro("flops_causal", &Amounts::flops_causal)
      .def_ro("bytes", &Amounts::bytes)
      .def_ro("activations", &Amounts::activations)
      .def_ro("fvcore_flops", &Amounts::fvcore_flops)
      .def_ro("fvcore_activations", &Amounts::fvcore_activations)
      .def_prop_ro("flops_by_format",
                   [](const Amounts& amounts) { return format_dict(amounts.flops_by_format); })
      .def_prop_ro("empty", &Amounts::empty);
  nb::class_<Rates>(m, "Rates")
      .def("__repr__", repr_of("flops_per_s", "bytes_per_s", "intensity", "roof", "roof_share"))
      .def_ro("flops_per_s", &Rates::flops_per_s)
      .def_ro("bytes_per_s", &Rates::bytes_per_s)
      .def_ro("intensity", &Rates::intensity)
      .def_prop_ro("roof", [](const Rates& rates) { return roof_name(rates.roof); })
      .def_ro("roof_share", &Rates::roof_share)
      .def_ro("unexplained_ns", &Rates::unexplained_ns);
  nb::class_<Operator> op(m, "Operator");
  nb::class_<Operator::Use>(op, "Use")
      .def("__repr__", repr_of("layer", "phase", "calls"))
      .def_prop_ro("layer", [](const Operator::Use& use) { return index_or_none(use.layer); })
      .def_prop_ro("phase", [](const Operator::Use& use) { return phase_name(use.phase); })
      .def_ro("calls", &Operator::Use::calls)
      .def_ro("amounts", &Operator::Use::amounts);
  op.def("__repr__", repr_of("name", "calls", "uncounted", "amounts"))
      .def_ro("name", &Operator::name)
      .def_ro("calls", &Operator::calls)
      .def_ro("counted", &Operator::counted)
      .def_ro("uncounted", &Operator::uncounted)
      .def_ro("amounts", &Operator::amounts)
      .def_ro("host_ns", &Operator::host_ns)
      .def_ro("uses", &Operator::uses);
  bind_sequence<Operator>(m, "Operators");
  nb::class_<DeviceInfo>(m, "DeviceInfo")
      .def("__repr__", repr_of("name", "origin", "flops_per_s", "bytes_per_s"))
      .def_ro("name", &DeviceInfo::name)
      .def_ro("origin", &DeviceInfo::origin)
      .def_prop_ro("flops_per_s",
                   [](const DeviceInfo& device) { return format_dict(device.flops_per_s); })
      .def_ro("bytes_per_s", &DeviceInfo::bytes_per_s)
      .def_ro("source", &DeviceInfo::source)
      .def_ro("count", &DeviceInfo::count);
}

}  // namespace layertrace::python
