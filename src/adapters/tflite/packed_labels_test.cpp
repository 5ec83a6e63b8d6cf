#include "packed_labels.hpp"

#include <gtest/gtest.h>

namespace weir::tflite {
namespace {

std::string number(size_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

struct Entry {
  std::string name, text;
  int method = 0;
};

// A ZIP archive behind `before`; its offsets count from the archive's begin or, `whole`, from the file's.
std::string archive(const std::string& before, const std::vector<Entry>& entries, bool whole = false) {
  std::string files, directory;
  for (const Entry& e : entries) {
    std::string sizes = number(0, 4) + number(e.text.size(), 4) + number(e.text.size(), 4) + number(e.name.size(), 2);
    std::string common = number(20, 2) + number(0, 2) + number(size_t(e.method), 2) + number(0, 4) + sizes;
    directory += "PK\1\2" + number(20, 2) + common + number(0, 2) + number(0, 2) + number(0, 8) +
                 number(files.size() + (whole ? before.size() : 0), 4) + e.name;
    files += "PK\3\4" + common + number(3, 2) + e.name + "xyz" + e.text;
  }
  return before + files + directory + "PK\5\6" + number(0, 4) + number(entries.size(), 2) + number(entries.size(), 2) +
         number(directory.size(), 4) + number(files.size() + (whole ? before.size() : 0), 4) + number(0, 2);
}

using Labels = std::vector<std::string>;

TEST(PackedLabels, AreReadFromTheArchiveBehindTheModel) {
  EXPECT_EQ(packed_labels(archive("model", {{"labelmap.txt", "person\nbicycle\r\n???\n"}})),
            (Labels{"person", "bicycle", "???"}));
  EXPECT_EQ(packed_labels(archive("model", {{"labelmap.txt", "person\n"}}, true)), Labels{"person"});
  EXPECT_EQ(packed_labels(archive("m", {{"a.txt", "no"}, {"b_labels.txt", "yes"}, {"c.txt", "no"}})), Labels{"yes"});
  EXPECT_EQ(packed_labels(archive("m", {{"a.bin", "no"}, {"names.txt", "yes\n\nno"}})), (Labels{"yes", "", "no"}));
}

TEST(PackedLabels, AnotherTextBesideThem_IsFoundByItsName) {
  std::string model =
      archive("model", {{"labelmap.txt", "person"}, {"weir_fields.json", "{}"}, {"late.json", "no", 8}});
  EXPECT_EQ(packed_text(model, "weir_fields.json"), "{}");
  EXPECT_EQ(packed_text(model, "fields.json"), "");
  EXPECT_EQ(packed_text(model, "late.json"), "") << "compressed";
  EXPECT_EQ(packed_labels(model), Labels{"person"});
}

TEST(PackedLabels, AreEmptyWhereThereAreNone) {
  EXPECT_EQ(packed_labels(""), Labels{});
  EXPECT_EQ(packed_labels("only a model"), Labels{});
  EXPECT_EQ(packed_labels(archive("m", {{"labels.txt", "person", 8}})), Labels{}) << "compressed";
  EXPECT_EQ(packed_labels(archive("m", {})), Labels{});
}

// Any damage may lose the labels, none may read outside of the file (the sanitizers look).
TEST(PackedLabels, SurviveDamage) {
  const std::string whole = archive("some model", {{"a.txt", "x"}, {"labels.txt", "person\ncar"}});
  size_t right = 0;
  for (size_t cut = 0; cut <= whole.size(); ++cut) right += packed_labels(std::string_view(whole).substr(cut)).size();
  for (size_t cut = 0; cut < whole.size(); ++cut) packed_labels(std::string_view(whole).substr(0, cut));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value : {0, 1, 0x7F, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      right += packed_labels(damaged).size() == 2;
    }
  }
  EXPECT_GT(right, 0u);
}

}  // namespace
}  // namespace weir::tflite
