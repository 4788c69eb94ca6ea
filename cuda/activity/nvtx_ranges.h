// Layers as NVTX ranges, for tools such as Nsight Systems: a domain `layertrace`, a category for
// each phase, the module's path as message.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <memory>

#include "base/handle_table.h"
#include "capture/layer_marks.h"
#include "record/definitions.h"

namespace layertrace::cuda {

class NvtxRanges final : public LayerMarks {
 public:
  // Nothing where no tool listens: then there is nothing to pay.
  static std::shared_ptr<NvtxRanges> make(const Definitions& definitions);

  NvtxRanges(nvtxDomainHandle_t domain, const Definitions& definitions)
      : domain_(domain), definitions_(definitions) {}

  void begin_layer(LayerId layer, Phase phase, std::uint64_t frame) noexcept override;
  void begin_region(NameId name, Phase phase) noexcept override;
  void end() noexcept override;

 private:
  void push(nvtxStringHandle_t message, Phase phase) noexcept;

  nvtxDomainRegistration* const domain_;
  const Definitions& definitions_;
  HandleTable<nvtxStringHandle_t> layers_;
  HandleTable<nvtxStringHandle_t> names_;
};

}  // namespace layertrace::cuda
