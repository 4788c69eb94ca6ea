// The tables, each from a Profile, and what they have in common: which layers are asked for, and
// how their paths read.
#pragma once

#include <string>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::tables {

// A layer that is asked for.
struct LayerRow {
  const Layer* layer = nullptr;
  std::size_t index = 0;  // in Profile::layers
  int depth = 0;          // below its root
};

// Those that the options leave, in the order of the Profile.
class ChosenLayers {
 public:
  ChosenLayers(const Profile& profile, const TableOptions& options);

  const std::vector<LayerRow>& rows() const noexcept { return rows_; }
  // What is outside any layer is asked for with all of them only.
  bool has(int layer) const noexcept {
    return layer < 0 ? is_whole_ : chosen_[static_cast<std::size_t>(layer)];
  }
  // Whether something is left out.
  bool is_whole() const noexcept { return is_whole_; }

 private:
  std::vector<LayerRow> rows_;
  std::vector<bool> chosen_;
  bool is_whole_;
};

std::string shown_path(const std::string& path, const TableOptions& options);

// Nothing outside any layer.
TableValue shown_path(const Profile& profile, int layer, const TableOptions& options);

// An error where the module that is asked for is no layer's path.
Result<void> check_module(const Profile& profile, const TableOptions& options);

// Only the columns and rows that are asked for. An unknown column is an error that lists the names.
Result<Table> chosen(Table table, const TableOptions& options);

// The lines of a table's note; those that are empty are left out.
std::string note_of(const std::vector<std::string>& lines);

Table layers_table(const Profile& profile, const TableOptions& options);
Table kernels_table(const Profile& profile, const TableOptions& options);
Table operators_table(const Profile& profile, const TableOptions& options);
Table steps_table(const Profile& profile, const TableOptions& options);
Table parameters_table(const Profile& profile, const TableOptions& options);
Table sizes_table(const Profile& profile, const TableOptions& options);
Table ledger_table(const Profile& profile, const TableOptions& options);
Table metrics_table(const Profile& profile, const TableOptions& options);

}  // namespace layertrace::tables
