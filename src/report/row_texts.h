// What a row of a tree says in words: its name, types and shapes, and the note at its end.
#pragma once

#include <string>
#include <vector>

#include <layertrace/report.h>

#include "report/columns.h"
#include "report/fold_blocks.h"

namespace layertrace::report {

class RowTexts {
 public:
  RowTexts(const Profile& profile, const std::vector<Column>& columns, const CellStyle& style);

  std::string name(const Node& node) const;
  // Of a column of texts.
  std::string cell(Column column, const Node& node) const;
  std::string note(const Node& node) const;

 private:
  const Layer& first_layer(const Node& node) const;
  std::string cleaned(const std::string& text) const;
  std::string type(const Node& node) const;
  std::string of_layer(Column column, const Layer& layer) const;
  std::string spread(const Node& node) const;
  std::string flops_range(const Node& node) const;

  const Profile& profile_;
  const CellStyle& style_;
  std::vector<Column> leading_;  // the first columns of times, whose spread is told
  bool has_many_times_;
};

}  // namespace layertrace::report
