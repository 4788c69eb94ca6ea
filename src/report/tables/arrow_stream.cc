// A table as an Arrow stream: batches of rows, made when they are asked for.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/tables/arrow_abi.h"
#include "report/tables/arrow_schema.h"
#include "report/tables/values.h"

namespace layertrace {
namespace tables {
namespace {

constexpr std::size_t kRowsInBatch = 65536;  // a text's place in its column is a 32-bit number

// What an array points to. As with schemas, each child has its own.
struct ArrayData {
  std::string valid;   // a bit for each row
  std::string values;  // of fixed size; of texts their bounds
  std::string texts;
  std::array<const void*, 3> buffers{};
  std::vector<std::unique_ptr<ArrowArray>> children;
  std::vector<ArrowArray*> pointers;
};

extern "C" void release_array(ArrowArray* array) {
  const auto* data = static_cast<ArrayData*>(array->private_data);
  for (ArrowArray* child : data->pointers) {
    if (child->release != nullptr) child->release(child);
  }
  delete data;
  array->release = nullptr;
}

void set_bit(std::string& bits, std::size_t at) {
  bits[at / 8] = static_cast<char>(bits[at / 8] | (1 << (at % 8)));
}

template <typename T>
void put_raw(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Adds the value of one row, or what stands in for nothing.
void put_cell(ArrayData& data, const TableColumn& column, std::size_t row, std::size_t place) {
  const TableValue& value = value_at(column, row);
  switch (column.kind) {
    case ColumnKind::kText:
      data.texts += text_of(value).value_or("");
      put_raw(data.values, static_cast<std::int32_t>(data.texts.size()));
      break;
    case ColumnKind::kInteger:
      put_raw(data.values, integer_of(value).value_or(0));
      break;
    case ColumnKind::kReal:
      put_raw(data.values, real_of(value).value_or(0));
      break;
    case ColumnKind::kBoolean:
      if (boolean_of(value).value_or(false)) set_bit(data.values, place);
      break;
  }
}

ArrowArray make_array(std::size_t rows, std::int64_t nulls, std::int64_t buffers,
                      std::unique_ptr<ArrayData> data) {
  ArrowArray array{};
  array.length = static_cast<std::int64_t>(rows);
  array.null_count = nulls;
  array.n_buffers = buffers;
  array.n_children = static_cast<std::int64_t>(data->pointers.size());
  array.buffers = data->buffers.data();
  array.children = data->pointers.data();
  array.release = release_array;
  array.private_data = data.release();
  return array;
}

ArrowArray column_array(const TableColumn& column, std::size_t first, std::size_t last) {
  const std::size_t rows = last - first;
  auto data = std::make_unique<ArrayData>();
  data->valid.resize((rows + 7) / 8);
  if (column.kind == ColumnKind::kBoolean) data->values.resize((rows + 7) / 8);
  if (column.kind == ColumnKind::kText) put_raw(data->values, std::int32_t{0});
  std::int64_t nulls = 0;
  for (std::size_t row = first; row < last; ++row) {
    put_cell(*data, column, row, row - first);
    if (has_value(column, row)) {
      set_bit(data->valid, row - first);
    } else {
      ++nulls;
    }
  }
  data->buffers = {data->valid.data(), data->values.data(), data->texts.data()};
  return make_array(rows, nulls, column.kind == ColumnKind::kText ? 3 : 2, std::move(data));
}

ArrowArray batch(const Table& table, std::size_t first, std::size_t last) {
  auto data = std::make_unique<ArrayData>();
  for (const TableColumn& column : table.columns) {
    data->children.push_back(std::make_unique<ArrowArray>(column_array(column, first, last)));
    data->pointers.push_back(data->children.back().get());
  }
  return make_array(last - first, 0, 1, std::move(data));
}

struct StreamData {
  Table table;
  std::size_t next = 0;  // row
};

// Nothing may be thrown through a caller that is C.
extern "C" int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  try {
    export_schema(static_cast<StreamData*>(stream->private_data)->table, out);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

extern "C" int stream_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto* data = static_cast<StreamData*>(stream->private_data);
  *out = {};
  const std::size_t rows = data->table.rows();
  if (data->next >= rows) return 0;  // an array that is released already: the end
  try {
    const std::size_t last = std::min(rows, data->next + kRowsInBatch);
    *out = batch(data->table, data->next, last);
    data->next = last;
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

extern "C" const char* stream_error(ArrowArrayStream* /*stream*/) { return "out of memory"; }

extern "C" void stream_release(ArrowArrayStream* stream) {
  delete static_cast<StreamData*>(stream->private_data);
  stream->release = nullptr;
}

}  // namespace
}  // namespace tables

void ReleaseArrow::operator()(ArrowArrayStream* stream) const noexcept {
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

std::unique_ptr<ArrowArrayStream, ReleaseArrow> arrow_stream(const Table& table) {
  auto data = std::make_unique<tables::StreamData>(tables::StreamData{table});
  std::unique_ptr<ArrowArrayStream, ReleaseArrow> stream(new ArrowArrayStream{});
  stream->get_schema = tables::stream_schema;
  stream->get_next = tables::stream_next;
  stream->get_last_error = tables::stream_error;
  stream->release = tables::stream_release;
  stream->private_data = data.release();
  return stream;
}

}  // namespace layertrace
