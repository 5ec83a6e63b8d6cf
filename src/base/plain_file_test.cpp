#include "weir/base/plain_file.hpp"

#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace weir {
namespace {

TEST(PlainFile, IsReadWhole_AndWhatIsNoneIsNamed) {
  test::TempDir folder;
  std::string path = folder.path() + "/model", missing = folder.path() + "/missing";
  auto said = [](const std::string& file, std::uintmax_t bytes_max) {
    auto read = read_plain_file(file, bytes_max);
    return read ? "read " + *read : read.error().message;
  };
  EXPECT_EQ(said(missing, 9), missing + " cannot be opened: No such file or directory");
  EXPECT_EQ(said(folder.path(), 9), folder.path() + " is empty or not a file");
  EXPECT_EQ(said("/dev/zero", 9), "/dev/zero is empty or not a file");
  std::ofstream(path) << "";
  EXPECT_EQ(said(path, 9), path + " is empty or not a file");
  std::ofstream(path) << std::string("a\0\n", 3);
  EXPECT_EQ(said(path, 3), std::string("read a\0\n", 8));
  EXPECT_EQ(said(path, 2), path + " is larger than 2 bytes");
}

}  // namespace
}  // namespace weir
