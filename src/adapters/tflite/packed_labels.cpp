#include "packed_labels.hpp"

#include "weir/ports/model_files.hpp"

#include <cstdint>

namespace weir::tflite {

namespace {

// The sizes and marks of ZIP's three records, and where their fields stand.
constexpr std::string_view kEndMark("PK\5\6", 4), kEntryMark("PK\1\2", 4), kFileMark("PK\3\4", 4);
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kFileBytes = 30;

// Little-endian; 0 outside, which no check below takes for anything.
std::uint32_t number(std::string_view file, size_t at, size_t bytes) {
  std::uint32_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | (at + i < file.size() ? std::uint8_t(file[at + i]) : 0);
  return value;
}

std::string_view part(std::string_view file, size_t at, size_t bytes) {
  return at <= file.size() && bytes <= file.size() - at ? file.substr(at, bytes) : std::string_view{};
}

// Calls `each` with the name and the content of every file in the archive that is not compressed.
template <class Each>
void for_each_file(std::string_view file, Each each) {
  size_t end = file.rfind(kEndMark);
  if (end == file.npos || file.size() - end < kEndBytes) return;
  // Offsets count from the archive's begin, which is the file's or, where it was merely appended, lies further on.
  size_t directory_bytes = number(file, end + 12, 4), directory = number(file, end + 16, 4);
  if (directory_bytes > end || directory > end - directory_bytes) return;
  size_t begin = end - directory_bytes - directory;

  size_t entry = end - directory_bytes;
  for (size_t left = number(file, end + 10, 2); left > 0 && part(file, entry, 4) == kEntryMark; --left) {
    size_t name_bytes = number(file, entry + 28, 2);
    std::string_view name = part(file, entry + kEntryBytes, name_bytes);
    size_t at = begin + number(file, entry + 42, 4);
    bool stored = number(file, entry + 10, 2) == 0 && part(file, at, 4) == kFileMark;
    if (stored) {
      size_t head = kFileBytes + number(file, at + 26, 2) + number(file, at + 28, 2);
      each(name, part(file, at + head, number(file, entry + 20, 4)));
    }
    entry += kEntryBytes + name_bytes + number(file, entry + 30, 2) + number(file, entry + 32, 2);
  }
}

}  // namespace

std::vector<std::string> packed_labels(std::string_view file) {
  std::string_view chosen;
  for_each_file(file, [&](std::string_view name, std::string_view content) {
    if (name.ends_with(".txt") && (chosen.empty() || name.find("label") != name.npos)) chosen = content;
  });
  return split_labels(chosen);
}

std::string_view packed_text(std::string_view file, std::string_view name) {
  std::string_view found;
  for_each_file(file, [&](std::string_view each, std::string_view content) {
    if (each == name) found = content;
  });
  return found;
}

}  // namespace weir::tflite
