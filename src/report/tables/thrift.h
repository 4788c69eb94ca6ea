// Thrift's compact protocol, as far as the headers and the footer of a Parquet file need it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace layertrace::tables {

// Writes one struct. Fields go in by rising number; the end comes with take().
class ThriftStruct {
 public:
  ThriftStruct& integer(int field, std::int32_t value);
  ThriftStruct& integer64(int field, std::int64_t value);
  ThriftStruct& text(int field, std::string_view value);
  ThriftStruct& structure(int field, const std::string& taken);
  ThriftStruct& structures(int field, const std::vector<std::string>& taken);
  ThriftStruct& integers(int field, const std::vector<std::int32_t>& values);
  ThriftStruct& texts(int field, const std::vector<std::string>& values);

  std::string take() { return std::move(bytes_) + '\0'; }

 private:
  void head(int field, int type);
  void list_head(int field, std::size_t size, int type);

  std::string bytes_;
  int last_ = 0;
};

// Base 128, the lowest seven bits first.
void put_varint(std::string& out, std::uint64_t value);

}  // namespace layertrace::tables
