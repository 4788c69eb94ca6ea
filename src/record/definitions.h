// What the ids in records stand for: the layers and parameters of the models of one session, and
// the names of operators, autograd nodes and regions. Defined on slow paths under a mutex, always
// before the first record that uses the id, and read by the drain after it has seen that record.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/ids.h"

namespace layertrace {

struct LayerDef {
  std::string path = {};
  std::string name = {};
  std::string type = {};
  LayerId parent = kNoLayer;
  bool registered = true;
  std::string shared_with = {};
  std::string kernel_size = {};  // "3 × 3"
};

// A parameter or a buffer, as a layer has it. Several layers may have the same.
struct ParameterDef {
  std::uint64_t address = 0;  // what tells it from others
  LayerId owner = kNoLayer;
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  std::string dtype = {};  // "float32"
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  bool trainable = false;
  bool buffer = false;
  // Since when it is known. Before, another tensor may have been told from others by the same.
  std::uint64_t since_ticks = 0;

  friend bool operator==(const ParameterDef&, const ParameterDef&) = default;
};

class Definitions {
 public:
  LayerId add_layer(LayerDef layer);
  void add_parameter(ParameterDef parameter);

  // For hooks: which layer owns this parameter, and which layers are around it, the outermost
  // first. They do not wait: where someone else is at it, or nothing is known, nothing is found.
  LayerId try_owner_of(std::uint64_t address) const noexcept;
  std::size_t try_ancestors(LayerId layer, std::span<LayerId> ancestors) const noexcept;
  // The outermost of those layers; the layer itself where nothing is found.
  LayerId try_root(LayerId layer) const noexcept;
  // "blocks.0.conv1", or the type where that is empty.
  std::string path_or_type(LayerId layer) const;

  // Appends to both vectors what they lack. They must have been filled by this function alone.
  void copy_new(std::vector<LayerDef>& layers, std::vector<ParameterDef>& parameters) const;

 private:
  mutable std::mutex mutex_;
  std::vector<LayerDef> layers_;
  std::vector<ParameterDef> parameters_;
  std::unordered_map<std::uint64_t, LayerId> owners_;  // a tied weight is its first owner's
};

// Names outlive sessions, since threads cache their ids. There is one table per process, and it is
// bounded: a program that makes up names without end gets "(too many names)" for the later ones.
class NameTable {
 public:
  static constexpr std::size_t kMaxNames = 1 << 16;

  static NameTable& instance();

  NameId intern(std::string_view name);
  // Stable for the life of the process.
  const std::string& text(NameId id) const;
  std::size_t size() const;

  // Appends the names that `known` lacks.
  void copy_new(std::vector<std::string>& known) const;

 private:
  NameTable();
  mutable std::mutex mutex_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, NameId> ids_;
};

}  // namespace layertrace
