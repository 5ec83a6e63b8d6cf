#include "weir/model_disk/folder_disk.hpp"

#include "run.hpp"
#include "stall.hpp"
#include "temp_files.hpp"
#include "weir/net/sha256.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

namespace weir::model_disk {
namespace {

std::string sha256_of(std::string_view bytes) {
  net::Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

class FolderDiskTest : public ::testing::Test {
 protected:
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return test::run(io_, std::move(what));
  }
  std::unique_ptr<ModelDisk::Incoming> coming(FolderDisk& disk, const std::string& bytes) {
    auto incoming = run(disk.receive());
    EXPECT_TRUE(incoming) << (incoming ? "" : incoming.error().message);
    EXPECT_TRUE(run((*incoming)->write(bytes.substr(0, bytes.size() / 2))));
    EXPECT_TRUE(run((*incoming)->write(bytes.substr(bytes.size() / 2))));
    return *std::move(incoming);
  }
  Result<std::string> store(FolderDisk& disk, const std::string& bytes, std::string expected = "") {
    auto incoming = coming(disk, bytes);
    return run(incoming->keep(std::move(expected)));
  }
  std::string content(FolderDisk& disk, const std::string& sha256) {
    auto outgoing = run(disk.open(sha256));
    if (!outgoing) return outgoing.error().reason;
    std::string all;
    for (;;) {
      auto piece = run((*outgoing)->read_some());
      EXPECT_TRUE(piece);
      if (!piece || piece->empty()) break;
      all += *piece;
    }
    EXPECT_EQ(all.size(), (*outgoing)->bytes());
    return all;
  }
  std::set<std::string> entries() {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(path_, none)) names.insert(entry.path().filename());
    return names;
  }

  boost::asio::io_context io_{1};
  test::TempDir folder_;
  const std::string path_ = folder_.path() + "/state/models";
  FolderDisk disk_{path_};
};

TEST_F(FolderDiskTest, AFile_LiesUnderItsChecksum_AndOnlyItsOwnerReadsIt) {
  std::string bytes(1'000'003, 'x');
  bytes += std::string("\0\xff end", 6);
  auto kept = store(disk_, bytes, sha256_of(bytes));
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, sha256_of(bytes));
  EXPECT_EQ(content(disk_, *kept), bytes);
  EXPECT_EQ(entries(), (std::set<std::string>{*kept, "lock"}));
  struct stat facts {};
  ASSERT_EQ(::stat((path_ + "/" + *kept).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  EXPECT_TRUE(store(disk_, bytes)) << "the same file may come again";
}

TEST_F(FolderDiskTest, OfAFileThatIsNotKept_NothingRemains) {
  auto broken_off = coming(disk_, "half of it");
  EXPECT_EQ(entries().size(), 1u);
  broken_off.reset();
  EXPECT_TRUE(test::eventually(10s, [&] { return entries().empty(); }));

  auto wrong = store(disk_, "this one", sha256_of("another one"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().reason, "wrong_checksum");
  EXPECT_EQ(wrong.error().code, Errc::unprocessable);
  EXPECT_NE(wrong.error().message.find(sha256_of("this one")), std::string::npos) << wrong.error().message;
  EXPECT_TRUE(test::eventually(10s, [&] { return entries().empty(); }));
}

TEST_F(FolderDiskTest, AFileThatIsNotThere_IsAnError_AndNoOtherNameIsRead) {
  EXPECT_EQ(content(disk_, sha256_of("nothing")), "file_missing");
  ASSERT_TRUE(store(disk_, "something"));
  for (const char* name : {"lock", "../models/lock", "", "/etc/passwd"})
    EXPECT_EQ(content(disk_, name), "file_missing") << name;
  FolderDisk nowhere("/proc/nowhere/models");
  auto refused = run(nowhere.receive());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unavailable);
  EXPECT_NE(refused.error().message.find("model_files_dir"), std::string::npos) << refused.error().message;
}

TEST_F(FolderDiskTest, WhatNobodyNames_IsRemoved_OnceItHasLainLongEnough) {
  EXPECT_EQ(*run(disk_.remove_unnamed({})), 0) << "the folder is not there yet";
  std::string named = *store(disk_, "named"), unnamed = *store(disk_, "unnamed");
  std::ofstream(path_ + "/incoming-of-a-killed-process") << "left behind";
  std::ofstream(path_ + "/somebody-elses") << "not ours";
  EXPECT_EQ(*run(disk_.remove_unnamed({named})), 0) << "a model may be about to name it";
  FolderDisk impatient(path_, 0s);
  auto reading = run(impatient.open(unnamed));
  ASSERT_TRUE(reading);
  EXPECT_EQ(*run(impatient.remove_unnamed({named})), 2);
  EXPECT_EQ(entries(), (std::set<std::string>{named, "lock", "somebody-elses"}));
  EXPECT_EQ(*run((*reading)->read_some()), "unnamed") << "whoever reads it goes on";
}

TEST_F(FolderDiskTest, AnOldFileThatComesAgain_CountsAsNew) {
  std::string old = *store(disk_, "old");
  timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (path_ + "/" + old).c_str(), long_ago, 0), 0);
  ASSERT_TRUE(store(disk_, "old"));
  EXPECT_EQ(*run(disk_.remove_unnamed({})), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, (path_ + "/" + old).c_str(), long_ago, 0), 0);
  EXPECT_EQ(*run(disk_.remove_unnamed({})), 1);
}

}  // namespace
}  // namespace weir::model_disk
