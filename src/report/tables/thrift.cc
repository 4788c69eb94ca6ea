#include "report/tables/thrift.h"

namespace layertrace::tables {
namespace {

// The protocol's numbers of types.
constexpr int kI32 = 5;
constexpr int kI64 = 6;
constexpr int kBinary = 8;
constexpr int kList = 9;
constexpr int kStruct = 12;

// Small numbers of either sign become small numbers without one.
std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}

void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out += text;
}

}  // namespace

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

// The distance to the last field's number takes four bits; no struct of Parquet leaves more out.
void ThriftStruct::head(int field, int type) {
  bytes_ += static_cast<char>(((field - last_) << 4) | type);
  last_ = field;
}

void ThriftStruct::list_head(int field, std::size_t size, int type) {
  constexpr std::size_t kLong = 15;
  head(field, kList);
  if (size < kLong) {
    bytes_ += static_cast<char>((size << 4U) | static_cast<unsigned>(type));
  } else {
    bytes_ += static_cast<char>((kLong << 4U) | static_cast<unsigned>(type));
    put_varint(bytes_, size);
  }
}

ThriftStruct& ThriftStruct::integer(int field, std::int32_t value) {
  head(field, kI32);
  put_varint(bytes_, zigzag(value));
  return *this;
}

ThriftStruct& ThriftStruct::integer64(int field, std::int64_t value) {
  head(field, kI64);
  put_varint(bytes_, zigzag(value));
  return *this;
}

ThriftStruct& ThriftStruct::text(int field, std::string_view value) {
  head(field, kBinary);
  put_text(bytes_, value);
  return *this;
}

ThriftStruct& ThriftStruct::structure(int field, const std::string& taken) {
  head(field, kStruct);
  bytes_ += taken;
  return *this;
}

ThriftStruct& ThriftStruct::structures(int field, const std::vector<std::string>& taken) {
  list_head(field, taken.size(), kStruct);
  for (const std::string& each : taken) bytes_ += each;
  return *this;
}

ThriftStruct& ThriftStruct::integers(int field, const std::vector<std::int32_t>& values) {
  list_head(field, values.size(), kI32);
  for (const std::int32_t value : values) put_varint(bytes_, zigzag(value));
  return *this;
}

ThriftStruct& ThriftStruct::texts(int field, const std::vector<std::string>& values) {
  list_head(field, values.size(), kBinary);
  for (const std::string& value : values) put_text(bytes_, value);
  return *this;
}

}  // namespace layertrace::tables
