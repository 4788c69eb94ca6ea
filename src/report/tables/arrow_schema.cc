#include "report/tables/arrow_schema.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/text.h"

namespace layertrace {
namespace tables {
namespace {

constexpr std::int64_t kNullable = 2;

// What a schema points to. A child may be moved out of its parent and live on: each has its own.
struct SchemaData {
  std::string name;
  std::string metadata;
  std::vector<std::unique_ptr<ArrowSchema>> children;
  std::vector<ArrowSchema*> pointers;
};

extern "C" void release_schema(ArrowSchema* schema) {
  const auto* data = static_cast<SchemaData*>(schema->private_data);
  for (ArrowSchema* child : data->pointers) {
    if (child->release != nullptr) child->release(child);
  }
  delete data;
  schema->release = nullptr;
}

const char* arrow_format(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kText:
      return "u";
    case ColumnKind::kInteger:
      return "l";
    case ColumnKind::kReal:
      return "g";
    case ColumnKind::kBoolean:
      return "b";
  }
  return "n";
}

void put_size(std::string& out, std::size_t size) {
  const auto number = static_cast<std::int32_t>(size);
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

using Pairs = std::vector<std::pair<std::string_view, std::string>>;

// Keys and their values, in the machine's own order of bytes.
std::string arrow_metadata(const Pairs& pairs) {
  std::string out;
  put_size(out, pairs.size());
  for (const auto& [key, value] : pairs) {
    for (const std::string_view text : {key, std::string_view(value)}) {
      put_size(out, text.size());
      out += text;
    }
  }
  return out;
}

ArrowSchema make_schema(const char* format, std::int64_t flags, std::unique_ptr<SchemaData> data) {
  ArrowSchema schema{};
  schema.format = format;
  schema.name = data->name.c_str();
  schema.metadata = data->metadata.empty() ? nullptr : data->metadata.data();
  schema.flags = flags;
  schema.n_children = static_cast<std::int64_t>(data->pointers.size());
  schema.children = data->pointers.data();
  schema.release = release_schema;
  schema.private_data = data.release();
  return schema;
}

ArrowSchema column_schema(const TableColumn& column) {
  auto data = std::make_unique<SchemaData>();
  data->name = report::replace_invalid_utf8(column.name);
  if (!column.unit.empty()) data->metadata = arrow_metadata({{"unit", column.unit}});
  return make_schema(arrow_format(column.kind), kNullable, std::move(data));
}

}  // namespace

void export_schema(const Table& table, ArrowSchema* out) {
  auto data = std::make_unique<SchemaData>();
  Pairs pairs{{"layertrace.table", table.name}};
  if (!table.note.empty())
    pairs.emplace_back("layertrace.note", report::replace_invalid_utf8(table.note));
  data->metadata = arrow_metadata(pairs);
  for (const TableColumn& column : table.columns) {
    data->children.push_back(std::make_unique<ArrowSchema>(column_schema(column)));
    data->pointers.push_back(data->children.back().get());
  }
  *out = make_schema("+s", 0, std::move(data));
}

}  // namespace tables

void ReleaseArrow::operator()(ArrowSchema* schema) const noexcept {
  if (schema->release != nullptr) schema->release(schema);
  delete schema;
}

std::unique_ptr<ArrowSchema, ReleaseArrow> arrow_schema(const Table& table) {
  std::unique_ptr<ArrowSchema, ReleaseArrow> schema(new ArrowSchema{});
  tables::export_schema(table, schema.get());
  return schema;
}

}  // namespace layertrace
