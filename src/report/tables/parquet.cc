// A Parquet file in its plainest form: columns that may be null, values as they are, one page for
// each column of a row group, nothing compressed. The footer has the table's name, its note and its
// columns' units as key-value metadata.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/trace.h>

#include "report/json_parts.h"
#include "report/tables/thrift.h"
#include "report/tables/values.h"
#include "report/text.h"

namespace layertrace {
namespace tables {
namespace {

static_assert(std::endian::native == std::endian::little, "Parquet's numbers are little-endian");

constexpr std::string_view kMagic = "PAR1";
constexpr std::size_t kRowsInGroup = 65536;  // a page's size is a 32-bit number

// The format's numbers.
constexpr std::int32_t kPlain = 0;
constexpr std::int32_t kRle = 3;
constexpr std::int32_t kOptional = 1;
constexpr std::int32_t kUtf8 = 0;
constexpr std::int32_t kUncompressed = 0;
constexpr std::int32_t kDataPage = 0;

std::int32_t physical_type(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kBoolean:
      return 0;
    case ColumnKind::kInteger:
      return 2;
    case ColumnKind::kReal:
      return 5;
    case ColumnKind::kText:
      return 6;
  }
  return 6;
}

template <typename T>
void put_plain(std::string& out, T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  out.append(bytes.data(), bytes.size());
}

// 1 where there is a value, in runs.
std::string definition_levels(const TableColumn& column, std::size_t first, std::size_t last) {
  std::string runs;
  for (std::size_t row = first; row < last;) {
    const bool level = has_value(column, row);
    std::size_t end = row;
    while (end < last && has_value(column, end) == level) ++end;
    put_varint(runs, (end - row) << 1U);
    runs += static_cast<char>(level);
    row = end;
  }
  std::string out;
  put_plain(out, static_cast<std::uint32_t>(runs.size()));
  return out + runs;
}

// Booleans are bits, the lowest first.
std::string plain_booleans(const TableColumn& column, std::size_t first, std::size_t last) {
  std::string out;
  std::size_t bit = 0;
  for (std::size_t row = first; row < last; ++row) {
    const auto value = boolean_of(value_at(column, row));
    if (!value) continue;
    if (bit % 8 == 0) out += '\0';
    if (*value) out.back() = static_cast<char>(out.back() | (1 << (bit % 8)));
    ++bit;
  }
  return out;
}

std::string plain_values(const TableColumn& column, std::size_t first, std::size_t last) {
  if (column.kind == ColumnKind::kBoolean) return plain_booleans(column, first, last);
  std::string out;
  for (std::size_t row = first; row < last; ++row) {
    if (!has_value(column, row)) continue;
    const TableValue& value = value_at(column, row);
    if (column.kind == ColumnKind::kInteger) {
      put_plain(out, integer_of(value).value_or(0));
    } else if (column.kind == ColumnKind::kReal) {
      put_plain(out, real_of(value).value_or(0));
    } else {
      const std::string text = text_of(value).value_or("");
      put_plain(out, static_cast<std::uint32_t>(text.size()));
      out += text;
    }
  }
  return out;
}

std::string page(const TableColumn& column, std::size_t first, std::size_t last) {
  const std::string body =
      definition_levels(column, first, last) + plain_values(column, first, last);
  const auto size = static_cast<std::int32_t>(body.size());
  const std::string data = ThriftStruct()
                               .integer(1, static_cast<std::int32_t>(last - first))
                               .integer(2, kPlain)
                               .integer(3, kRle)
                               .integer(4, kRle)
                               .take();
  return ThriftStruct()
             .integer(1, kDataPage)
             .integer(2, size)
             .integer(3, size)
             .structure(5, data)
             .take() +
         body;
}

std::string column_chunk(const TableColumn& column, std::size_t rows, std::size_t offset,
                         std::size_t size) {
  const std::string metadata = ThriftStruct()
                                   .integer(1, physical_type(column.kind))
                                   .integers(2, {kPlain, kRle})
                                   .texts(3, {column.name})
                                   .integer(4, kUncompressed)
                                   .integer64(5, static_cast<std::int64_t>(rows))
                                   .integer64(6, static_cast<std::int64_t>(size))
                                   .integer64(7, static_cast<std::int64_t>(size))
                                   .integer64(9, static_cast<std::int64_t>(offset))
                                   .take();
  return ThriftStruct()
      .integer64(2, static_cast<std::int64_t>(offset))
      .structure(3, metadata)
      .take();
}

// Writes the columns of these rows, and gives what the footer says of them.
std::string row_group(const Table& table, std::size_t first, std::size_t last, std::string& file) {
  const std::size_t start = file.size();
  std::vector<std::string> chunks;
  for (const TableColumn& column : table.columns) {
    const std::size_t offset = file.size();
    file += page(column, first, last);
    chunks.push_back(column_chunk(column, last - first, offset, file.size() - offset));
  }
  return ThriftStruct()
      .structures(1, chunks)
      .integer64(2, static_cast<std::int64_t>(file.size() - start))
      .integer64(3, static_cast<std::int64_t>(last - first))
      .take();
}

std::vector<std::string> schema(const Table& table) {
  std::vector<std::string> elements{ThriftStruct()
                                        .text(4, "schema")
                                        .integer(5, static_cast<std::int32_t>(table.columns.size()))
                                        .take()};
  for (const TableColumn& column : table.columns) {
    ThriftStruct element;
    element.integer(1, physical_type(column.kind)).integer(3, kOptional).text(4, column.name);
    if (column.kind == ColumnKind::kText) {
      const std::string string_type = ThriftStruct().structure(1, ThriftStruct().take()).take();
      element.integer(6, kUtf8).structure(10, string_type);
    }
    elements.push_back(element.take());
  }
  return elements;
}

std::vector<std::string> metadata(const Table& table) {
  report::Json units = report::Json::object();
  for (const TableColumn& column : table.columns) {
    if (!column.unit.empty()) units[column.name] = column.unit;
  }
  std::vector<std::string> pairs;
  const auto add = [&](std::string_view key, const std::string& value) {
    pairs.push_back(ThriftStruct().text(1, key).text(2, value).take());
  };
  add("layertrace.table", table.name);
  add("layertrace.units", report::dump(units));
  if (!table.note.empty()) add("layertrace.note", report::replace_invalid_utf8(table.note));
  return pairs;
}

}  // namespace
}  // namespace tables

std::string to_parquet(const Table& table) {
  using tables::ThriftStruct;
  std::string file(tables::kMagic);
  std::vector<std::string> groups;
  for (std::size_t row = 0; row < table.rows(); row += tables::kRowsInGroup) {
    const std::size_t last = std::min(table.rows(), row + tables::kRowsInGroup);
    groups.push_back(tables::row_group(table, row, last, file));
  }
  const std::string footer = ThriftStruct()
                                 .integer(1, 1)
                                 .structures(2, tables::schema(table))
                                 .integer64(3, static_cast<std::int64_t>(table.rows()))
                                 .structures(4, groups)
                                 .structures(5, tables::metadata(table))
                                 .text(6, std::string("layertrace version ") + kVersion)
                                 .take();
  file += footer;
  tables::put_plain(file, static_cast<std::uint32_t>(footer.size()));
  return file.append(tables::kMagic);
}

}  // namespace layertrace
