#include <array>
#include <cstdint>

#include "bindings.h"

namespace layertrace::python {

void bind_device(nb::module_& m) {
  nb::class_<DeviceStep>(m, "DeviceStep")
      .def("__repr__", repr_of("device", "busy_ns", "idle_ns", "exposed_copy_ns"))
      .def_ro("device", &DeviceStep::device)
      .def_ro("busy_ns", &DeviceStep::busy_ns)
      .def_ro("idle_ns", &DeviceStep::idle_ns)
      .def_ro("exposed_copy_ns", &DeviceStep::exposed_copy_ns)
      .def_ro("exposed_communication_ns", &DeviceStep::exposed_communication_ns);
  nb::class_<Idle>(m, "Idle")
      .def("__repr__", repr_of("layer", "phase", "cause", "ns", "gaps"))
      .def_prop_ro("layer", [](const Idle& idle) { return index_or_none(idle.layer); })
      .def_prop_ro("phase", [](const Idle& idle) { return phase_name(idle.phase); })
      .def_prop_ro("cause", [](const Idle& idle) { return idle_cause_name(idle.cause); })
      .def_ro("ns", &Idle::ns)
      .def_ro("gaps", &Idle::gaps);
  const auto triple = [](const std::array<std::uint32_t, 3>& size) {
    return nb::make_tuple(size[0], size[1], size[2]);
  };
  nb::class_<Kernel> kernel(m, "Kernel");
  nb::class_<Kernel::Launch>(kernel, "Launch")
      .def("__repr__", repr_of("grid", "block", "registers", "shared_bytes", "occupancy"))
      .def_prop_ro("grid", [=](const Kernel::Launch& launch) { return triple(launch.grid); })
      .def_prop_ro("block", [=](const Kernel::Launch& launch) { return triple(launch.block); })
      .def_ro("registers", &Kernel::Launch::registers)
      .def_ro("shared_bytes", &Kernel::Launch::shared_bytes)
      .def_ro("occupancy", &Kernel::Launch::occupancy);
  nb::class_<Kernel::Use>(kernel, "Use")
      .def("__repr__", repr_of("layer", "phase", "count", "ns"))
      .def_prop_ro("layer", [](const Kernel::Use& use) { return index_or_none(use.layer); })
      .def_prop_ro("phase", [](const Kernel::Use& use) { return phase_name(use.phase); })
      .def_ro("count", &Kernel::Use::count)
      .def_ro("ns", &Kernel::Use::ns)
      .def_ro("outside_count", &Kernel::Use::outside_count)
      .def_ro("outside_ns", &Kernel::Use::outside_ns)
      .def_ro("longest", &Kernel::Use::longest);
  kernel.def("__repr__", repr_of("short_name", "kind", "count", "ns"))
      .def_ro("name", &Kernel::name)
      .def_ro("short_name", &Kernel::short_name)
      .def_ro("kind", &Kernel::kind)
      .def_ro("count", &Kernel::count)
      .def_ro("ns", &Kernel::ns)
      .def_ro("min_ns", &Kernel::min_ns)
      .def_ro("max_ns", &Kernel::max_ns)
      .def_ro("bytes", &Kernel::bytes)
      .def_ro("outside_count", &Kernel::outside_count)
      .def_ro("outside_ns", &Kernel::outside_ns)
      .def_prop_ro("grid", [=](const Kernel& k) { return triple(k.grid); })
      .def_prop_ro("block", [=](const Kernel& k) { return triple(k.block); })
      .def_ro("registers", &Kernel::registers)
      .def_ro("shared_bytes", &Kernel::shared_bytes)
      .def_ro("occupancy", &Kernel::occupancy)
      .def_ro("uses", &Kernel::uses);
  bind_sequence<Kernel>(m, "Kernels");
}

}  // namespace layertrace::python
