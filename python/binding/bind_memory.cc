#include "bindings.h"

namespace layertrace::python {

void bind_memory(nb::module_& m) {
  nb::class_<MemoryStats>(m, "MemoryStats")
      .def("__repr__", repr_of("allocated", "freed", "kept", "peak"))
      .def_ro("allocated", &MemoryStats::allocated)
      .def_ro("freed", &MemoryStats::freed)
      .def_ro("kept", &MemoryStats::kept)
      .def_ro("peak", &MemoryStats::peak);
  nb::class_<DeviceMemory>(m, "DeviceMemory")
      .def("__repr__", repr_of("device", "allocated", "freed", "peak", "peak_layer", "peak_phase"))
      .def_prop_ro("device", [](const DeviceMemory& each) { return index_or_none(each.device); })
      .def_ro("allocated", &DeviceMemory::allocated)
      .def_ro("freed", &DeviceMemory::freed)
      .def_ro("peak", &DeviceMemory::peak)
      .def_prop_ro("peak_layer",
                   [](const DeviceMemory& each) { return index_or_none(each.peak_layer); })
      .def_prop_ro("peak_phase",
                   [](const DeviceMemory& each) { return phase_name(each.peak_phase); })
      .def_ro("peak_ns", &DeviceMemory::peak_ns)
      .def_ro("timeline", &DeviceMemory::timeline);
  nb::class_<MemoryForecast>(m, "MemoryForecast")
      .def("__repr__", repr_of("parameters", "gradients", "optimizer", "activations", "total"))
      .def_ro("parameters", &MemoryForecast::parameters)
      .def_ro("gradients", &MemoryForecast::gradients)
      .def_ro("optimizer", &MemoryForecast::optimizer)
      .def_ro("activations", &MemoryForecast::activations)
      .def_ro("optimizer_known", &MemoryForecast::optimizer_known)
      .def_prop_ro("total", &MemoryForecast::total);
}

}  // namespace layertrace::python
