// Flatbuffer: the tables of a FlatBuffers file, read in place without ever leaving it, and the small maps (FlexBuffers)
// that such files carry for operators of their own.
//
// The file comes from outside and may be anything. A place that lies outside it reads as if the field were absent, and
// is remembered in the `Damage` that all tables of a file share: read first, look at it once at the end. Lists have a
// bound, because a thousand tables may all point at the same large one. Plain values; not shared between threads.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::onnx {

struct Damage {
  bool found = false;
};

class Table {
 public:
  // The file's root; `mark` is the four letters that name its kind.
  static Table root(std::string_view file, std::string_view mark, Damage& damage);

  bool has(int field) const { return place(field) != 0; }
  template <class T>
  T number(int field, T otherwise = {}) const {
    size_t at = place(field);
    return at == 0 ? otherwise : read<T>(at);
  }
  // An empty table, of which every field is absent, where there is none.
  Table table(int field) const;
  std::vector<Table> tables(int field, size_t count_max) const;
  template <class T>
  std::vector<T> numbers(int field, size_t count_max) const {
    List list = this->list(field, sizeof(T), count_max);
    std::vector<T> values(list.count);
    if (list.count > 0) std::memcpy(values.data(), file_.data() + list.at, list.count * sizeof(T));
    return values;
  }
  std::string_view bytes(int field) const;

 private:
  struct List {
    size_t at = 0, count = 0;
  };
  Table(std::string_view file, size_t at, Damage& damage) : file_(file), at_(at), damage_(&damage) {}

  template <class T>
  T read(size_t at) const {
    T value{};
    if (!inside(at, sizeof(T))) return value;
    std::memcpy(&value, file_.data() + at, sizeof(T));
    return value;
  }
  bool inside(size_t at, size_t bytes) const;
  // Where a field's value, or the thing that its offset leads to, stands; 0 where it is absent.
  size_t place(int field) const;
  size_t follow(size_t at) const { return at + read<std::uint32_t>(at); }
  List list(int field, size_t each, size_t count_max) const;

  std::string_view file_;
  size_t at_;  // 0: the empty table
  Damage* damage_;
};

// A FlexBuffers map from names to numbers and truth values; those of other kinds are left out. Empty where it is none.
std::map<std::string, double> read_number_map(std::string_view bytes);

}  // namespace weir::onnx
