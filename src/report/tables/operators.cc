// Operators, per step: a row for each; or for each layer and phase that calls it, too. Where none
// were counted, only their calls and times are known.
#include <string>
#include <vector>

#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace::tables {
namespace {

struct OperatorRow {
  const Operator* op = nullptr;
  Operator::Use sum;  // of the uses that are asked for
  bool whole = true;  // all of them, of which more is known
};

std::vector<OperatorRow> operator_rows(const Profile& profile, const TableOptions& options) {
  const ChosenLayers layers(profile, options);
  std::vector<OperatorRow> rows;
  for (const Operator& op : profile.operators) {
    if (layers.is_whole() && !options.by_layer) {
      rows.push_back({&op, {.calls = op.calls, .amounts = op.amounts}, true});
      continue;
    }
    Operator::Use sum;
    for (const Operator::Use& use : op.uses) {
      if (!layers.has(use.layer)) continue;
      if (options.by_layer) {
        rows.push_back({&op, use, false});
      } else {
        sum.calls += use.calls;
        sum.amounts += use.amounts;
      }
    }
    if (sum.calls > 0 || !sum.amounts.empty()) rows.push_back({&op, sum, false});
  }
  return rows;
}

}  // namespace

Table operators_table(const Profile& profile, const TableOptions& options) {
  Sheet<OperatorRow> sheet("operators", operator_rows(profile, options));
  double all_flops = 0;
  for (const OperatorRow& row : sheet.rows()) all_flops += row.sum.amounts.flops;
  const auto if_whole = [](const OperatorRow& row, double value) {
    return row.whole ? cell(value) : TableValue();
  };
  const auto if_counted = [](const OperatorRow& row, double value) {
    return row.op->counted ? cell(value) : TableValue();
  };
  sheet.text("name", [](const OperatorRow& row) { return row.op->name; });
  if (options.by_layer) {
    sheet
        .text("path",
              [&](const OperatorRow& row) { return shown_path(profile, row.sum.layer, options); })
        .text("phase", [](const OperatorRow& row) { return phase_name(row.sum.phase); });
  }
  sheet.real("calls", "per step", [](const OperatorRow& row) { return row.sum.calls; })
      .real("uncounted", "per step",
            [=](const OperatorRow& row) {
              return row.whole ? if_counted(row, row.op->uncounted) : TableValue();
            })
      .detail()
      .real("flops", "FLOP",
            [=](const OperatorRow& row) { return if_counted(row, row.sum.amounts.flops); })
      .real("flops_share", "share",
            [=](const OperatorRow& row) {
              return all_flops > 0 ? cell(row.sum.amounts.flops / all_flops) : TableValue();
            })
      .real("macs", "MAC",
            [=](const OperatorRow& row) { return if_counted(row, row.sum.amounts.macs()); })
      .detail()
      .real("aux_flops", "FLOP",
            [=](const OperatorRow& row) { return if_counted(row, row.sum.amounts.aux_flops); })
      .real("moved_bytes", "bytes",
            [=](const OperatorRow& row) { return if_counted(row, row.sum.amounts.bytes); })
      .real("activations", "elements",
            [=](const OperatorRow& row) { return if_counted(row, row.sum.amounts.activations); })
      .detail()
      .real("host_ns", "ns", [=](const OperatorRow& row) {
        return profile.run.ops && !profile.run.summary ? if_whole(row, row.op->host_ns)
                                                       : TableValue();
      });
  return sheet.take();
}

}  // namespace layertrace::tables
