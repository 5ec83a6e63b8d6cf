#include "weir/runner_disk/file_disk.hpp"

#include "fake_spool.hpp"
#include "run.hpp"
#include "stall.hpp"
#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace weir::runner_disk {
namespace {

class FileDiskTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  boost::asio::io_context io_{1};
  test::TempDir folder_;
  test::FakeDisk shared_;
  test::FakeSpool spool_{shared_};
  FileDisk disk_{io_, folder_.path(), spool_};
};

TEST_F(FileDiskTest, CrashRecord_NamesTheCamera_AndIsUsedUp) {
  std::string path = file("crash-1.json", R"({"event":"worker.crashed","signal":11,"camera_uuid":"cam-1"})");
  EXPECT_EQ(test::run(io_, disk_.culprit(path)).str(), "cam-1");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(test::run(io_, disk_.culprit(path)).empty());
}

TEST_F(FileDiskTest, DamagedCrashRecord_NamesNobody) {
  for (const char* text : {"", "{", "[]", R"({"camera_uuid":7})"})
    EXPECT_TRUE(test::run(io_, disk_.culprit(file("crash-1.json", text))).empty()) << text;
}

TEST_F(FileDiskTest, ListOfCameras_IsThereForTheNextStart) {
  EXPECT_EQ(disk_.kept_cameras(), "");
  EXPECT_TRUE(disk_.keep_cameras(R"({"cameras":[]})"));
  EXPECT_TRUE(test::eventually(10s, [&] { return disk_.kept_cameras() == R"({"cameras":[]})"; }));
}

TEST_F(FileDiskTest, Spools_AreListedAndDropped_UnlessSomebodyWritesThere) {
  lease::Tenure tenure{BootId::trusted("b"), {1}};
  CameraId left = CameraId::trusted("left"), written = CameraId::trusted("written");
  test::FakeSpool writer(shared_);
  {
    test::FakeSpool dead(shared_);
    ASSERT_TRUE(dead.append(left, tenure, {}));
  }
  ASSERT_TRUE(writer.append(written, tenure, {}));
  EXPECT_EQ(test::run(io_, disk_.spools()).size(), 2u);
  EXPECT_EQ(test::run(io_, disk_.drop({left, tenure, 0})), 1u);
  EXPECT_EQ(test::run(io_, disk_.drop({written, tenure, 0})), 0u);
  EXPECT_EQ(test::run(io_, disk_.spools()).size(), 1u);
}

}  // namespace
}  // namespace weir::runner_disk
