#include "testing.hpp"

#include "log_lines.hpp"
#include "record.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace weir::spool {

namespace fs = std::filesystem;

namespace {
std::vector<event::Event> numbered(int from, int to, size_t payload_bytes = 100) {
  std::vector<event::Event> all;
  for (int n = from; n < to; ++n) all.push_back(event(n, payload_bytes));
  return all;
}
void append(Spool& spool, int from, int to, size_t payload_bytes = 100) {
  for (const event::Event& each : numbered(from, to, payload_bytes)) ASSERT_TRUE(spool.append(kCamera, kTenure, each));
}
unsigned mode_of(const fs::path& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0);
  return found.st_mode & 0777;
}
}  // namespace

TEST(SpoolRecord, ChecksumIsCrc32c) { EXPECT_EQ(crc32c("123456789"), 0xE3069283u); }

TEST(SpoolRecord, AnyChangedByte_IsNoticed) {
  std::string record = encode(event(1));
  ASSERT_EQ(decode(record), event(1));
  for (size_t at = 0; at < record.size(); ++at) {
    std::string changed = record;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_FALSE(decode(changed)) << "byte " << at;
  }
}

TEST(SpoolRecord, ItsBytes_AreThoseOfEveryEarlierVersion) {
  using namespace std::string_literals;
  const std::string record = "\x42\0\0\0\x12\x3c\x6e\x55"s +               // length of the body, and its checksum
                             "\x02"s + "\x87\xd6\x12\0\0\0\0\0"s +         // an error, captured at 1.234567 s
                             "\x0c\0\0\0"s + "status.topic" + "\x12\0\0\0"s + "stream.error.t.s.c" +
                             "\x04\0\0\0"s + "id-1" + "\x07\0\0\0"s + "{\"a\":1}";
  const event::Event kept{"status.topic", "stream.error.t.s.c", "id-1", "{\"a\":1}", event::Kind::error,
                           WallTime(Duration(1'234'567))};
  EXPECT_EQ(decode(record), kept);
  EXPECT_EQ(encode(kept), record);
}

TEST(FileSpool, EventsComeBackInOrder_AndNothingIsLeftOnDisk) {
  TempDir folder;
  auto spool = opened(folder, {.segment_bytes = 1000});
  append(*spool, 0, 100);
  EXPECT_GT(segment_files(folder).size(), 5u);
  EXPECT_EQ(drained(*spool), numbered(0, 100));
  EXPECT_EQ(folders_left(folder), 0u);
  EXPECT_EQ(spool->counts().bytes, 0u);
  EXPECT_EQ(spool->counts().drained, 100u);
}

TEST(FileSpool, FilesAreTheUsersAlone) {
  TempDir folder;
  auto spool = opened(folder);
  append(*spool, 0, 2);
  spool->advance(kCamera, kTenure, spool->peek(kCamera, kTenure, 1, 1000).first + 1);
  EXPECT_EQ(mode_of(folder.path() + "/spool"), 0700u);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() + "/spool")) {
    EXPECT_EQ(mode_of(entry.path()), entry.is_directory() ? 0700u : 0600u) << entry.path();
    files += entry.is_directory() ? 0 : 1;
  }
  EXPECT_EQ(files, 3u);  // name, position, one segment
}

TEST(FileSpool, Peek_TakesNothing_AndKeepsItsLimits) {
  TempDir folder;
  auto spool = opened(folder);
  append(*spool, 0, 10, 1000);
  EXPECT_EQ(spool->peek(kCamera, kTenure, 3, 1 << 20).events, numbered(0, 3, 1000));
  EXPECT_EQ(spool->peek(kCamera, kTenure, 100, 2500).events, numbered(0, 2, 1000));
  EXPECT_EQ(spool->peek(kCamera, kTenure, 100, 1).events, numbered(0, 1, 1000));
  EXPECT_EQ(spool->peek(kCamera, kTenure, 100, 1 << 20).events, numbered(0, 10, 1000));
}

TEST(FileSpool, LargeEvents_PassThroughTheWindow) {
  TempDir folder;
  auto spool = opened(folder);
  append(*spool, 0, 3, 300'000);
  EXPECT_EQ(drained(*spool), numbered(0, 3, 300'000));
  EXPECT_FALSE(spool->append(kCamera, kTenure, event(9, 2 << 20)));
}

TEST(FileSpool, ReopenedHalfRead_GoesOnWhereItWas) {
  TempDir folder;
  auto spool = opened(folder, {.segment_bytes = 2000});
  append(*spool, 0, 50);
  for (int n = 0; n < 23; ++n) spool->advance(kCamera, kTenure, spool->peek(kCamera, kTenure, 1, 1 << 20).first + 1);
  spool = opened(folder, {.segment_bytes = 2000});
  EXPECT_EQ(spool->open(kCamera, kTenure)->events, 27u);
  append(*spool, 50, 60);
  EXPECT_EQ(drained(*spool), numbered(23, 60));
}

TEST(FileSpool, Open_TellsTheNewestCaptureTime) {
  TempDir folder;
  append(*opened(folder), 0, 5);
  auto spool = opened(folder);
  EXPECT_EQ(spool->open(kCamera, kTenure)->newest, event(4).captured);
  EXPECT_EQ(spool->open(kCamera, kLater)->events, 0u);
}

TEST(FileSpool, LostPosition_SendsAgain_LosesNothing) {
  TempDir folder;
  auto spool = opened(folder);
  append(*spool, 0, 10);
  spool->advance(kCamera, kTenure, spool->peek(kCamera, kTenure, 4, 1 << 20).first + 4);
  spool.reset();
  auto position = segment_files(folder).at(0).parent_path() / "position";
  std::fstream(position, std::ios::in | std::ios::out).put('!');
  spool = opened(folder);
  EXPECT_EQ(spool->open(kCamera, kTenure)->events, 10u);
  EXPECT_EQ(drained(*spool), numbered(0, 10));
}

TEST(FileSpool, FolderLeftWithOnlyAPosition_HidesNoLaterEvent) {
  TempDir folder;
  auto spool = opened(folder, {.segment_bytes = 200});
  append(*spool, 0, 10);
  for (int n = 0; n < 8; ++n) spool->advance(kCamera, kTenure, spool->peek(kCamera, kTenure, 1, 1 << 20).first + 1);
  spool.reset();
  for (const auto& file : segment_files(folder)) fs::remove(file);
  for (int life = 0; life < 2; ++life) append(*opened(folder), 10 + life, 11 + life);
  spool = opened(folder);
  EXPECT_EQ(spool->open(kCamera, kTenure)->events, 2u);
  EXPECT_EQ(drained(*spool), numbered(10, 12));
}

TEST(FileSpool, TornTail_IsCutOff_AtEveryByte) {
  TempDir folder;
  append(*opened(folder), 0, 3);
  auto file = segment_files(folder).at(0);
  auto whole = fs::file_size(file), last = whole / 3;
  std::string bytes(whole, '\0');
  std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(whole));
  for (auto size = whole - last; size < whole; ++size) {
    for (bool zeros : {false, true}) {
      std::string torn = bytes.substr(0, size) + std::string(zeros ? whole - size : 0, '\0');
      std::ofstream(file, std::ios::binary | std::ios::trunc) << torn;
      auto spool = opened(folder);
      ASSERT_EQ(spool->open(kCamera, kTenure)->events, 2u) << size;
      append(*spool, 2, 4);
      ASSERT_EQ(spool->peek(kCamera, kTenure, 2, 1 << 20).events, numbered(0, 2)) << size;
      spool->advance(kCamera, kTenure, 2);
      ASSERT_EQ(drained(*spool), numbered(2, 4)) << size;
      ASSERT_EQ(spool->counts().damaged, 0u) << size;
      fs::create_directory(file.parent_path());
    }
  }
}

TEST(FileSpool, DamagedRecordInTheMiddle_SkipsTheRestOfItsSegment_AndCounts) {
  TempDir folder;
  auto spool = opened(folder, {.segment_bytes = 2000});
  append(*spool, 0, 30);
  spool.reset();
  auto files = segment_files(folder);
  ASSERT_GE(files.size(), 3u);
  int in_segment = static_cast<int>(fs::file_size(files[0]) / encode(event(0)).size());
  auto damaged = std::fstream(files[0], std::ios::in | std::ios::out);
  damaged.seekp(static_cast<std::streamoff>(2 * encode(event(0)).size() + 30));
  damaged.put('!');
  damaged.close();
  spool = opened(folder, {.segment_bytes = 2000});
  EXPECT_EQ(spool->open(kCamera, kTenure)->events, 30u);
  auto expected = numbered(0, 2), rest = numbered(in_segment, 30);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(drained(*spool), expected);
  EXPECT_EQ(spool->counts().damaged, static_cast<std::uint64_t>(in_segment - 2));
}

// So many descriptors are left while it lives.
class Descriptors {
 public:
  explicit Descriptors(unsigned left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    int lowest = ::dup(0);
    ::close(lowest);
    rlimit few{.rlim_cur = static_cast<unsigned>(lowest) + left, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~Descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  Descriptors(const Descriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(FileSpool, WithoutDescriptors_NothingIsTakenForEmptyOrDamaged) {
  TempDir folder;
  {
    auto earlier = opened(folder, {.segment_bytes = 1000});
    append(*earlier, 0, 100);
  }
  auto spool = opened(folder, {.segment_bytes = 1000});
  for (unsigned left : {0u, 1u}) {
    Descriptors few(left);
    EXPECT_FALSE(spool->open(kCamera, kTenure)) << "with " << left << " it said that nothing is there";
  }
  auto found = spool->open(kCamera, kTenure);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->events, 100u);
  {
    Descriptors none(0);
    SpoolPage page = spool->peek(kCamera, kTenure, 10, 1 << 20);
    EXPECT_TRUE(page.events.empty() && page.later);
  }
  EXPECT_EQ(drained(*spool), numbered(0, 100));
  EXPECT_EQ(spool->counts().damaged, 0u);
}

TEST(FileSpool, BoundOfACamera_ForgetsItsOldest_AndCounts) {
  TempDir folder;
  auto spool = opened(folder, {.camera_bytes = 10'000, .segment_bytes = 1'000});
  append(*spool, 0, 500);
  EXPECT_LE(spool->counts().bytes, 10'000u);
  auto kept = drained(*spool);
  EXPECT_EQ(kept.size() + spool->counts().overflowed, 500u);
  EXPECT_EQ(kept, numbered(500 - static_cast<int>(kept.size()), 500));
  EXPECT_GT(kept.size(), 30u);
}

TEST(FileSpool, WhatAFullSpoolLoses_IsSaidOnceWhileItIsFull_AndCountedWhenItIsEmpty) {
  TempDir folder;
  test::LogLines log;
  auto spool = opened(folder, {.camera_bytes = 10'000, .segment_bytes = 1'000});
  append(*spool, 0, 20);
  EXPECT_EQ(log.all(), "");
  append(*spool, 20, 500);
  EXPECT_EQ(log.count("\"event\":\"spool.full\""), 1u) << log.all();
  EXPECT_EQ(log.count(fmt::format("\"camera_uuid\":\"{}\"", kCamera)), 1u) << log.all();
  drained(*spool);
  auto last = log.with("\"event\":\"spool.lost\"");
  ASSERT_EQ(last.size(), 1u) << log.all();
  EXPECT_NE(last[0].find(fmt::format("\"events\":{}", spool->counts().overflowed)), std::string::npos) << last[0];
  append(*spool, 0, 20);
  drained(*spool);
  EXPECT_EQ(log.count("spool."), 2u) << "nothing more was lost\n" << log.all();
}

TEST(FileSpool, BoundOfAll_ForgetsTheOldestOfTheLargest) {
  TempDir folder;
  auto spool = opened(folder, {.total_bytes = 20'000, .segment_bytes = 1'000});
  CameraId quiet = CameraId::trusted("quiet");
  for (int n = 0; n < 10; ++n) ASSERT_TRUE(spool->append(quiet, kTenure, event(n)));
  append(*spool, 0, 500);
  EXPECT_LE(spool->counts().bytes, 20'000u);
  EXPECT_EQ(drained(*spool, quiet), numbered(0, 10));
  EXPECT_EQ(drained(*spool).size() + spool->counts().overflowed, 500u);
}

TEST(FileSpool, SegmentForgottenWhileItsPageIsOut_AdvancesNothingTwice) {
  TempDir folder;
  auto spool = opened(folder, {.camera_bytes = 3'000, .segment_bytes = 1'000});
  append(*spool, 0, 10);
  SpoolPage page = spool->peek(kCamera, kTenure, 3, 1 << 20);
  append(*spool, 10, 40);
  spool->advance(kCamera, kTenure, page.first + page.events.size());
  auto kept = drained(*spool);
  EXPECT_EQ(kept, numbered(40 - static_cast<int>(kept.size()), 40));
  EXPECT_EQ(kept.size() + spool->counts().overflowed, 40u);
}

TEST(FileSpool, Adopt_GivesTheEventsToTheNewTenure) {
  TempDir folder;
  append(*opened(folder), 0, 10);
  auto spool = opened(folder);
  ASSERT_TRUE(spool->adopt(kCamera, kTenure, kLater));
  EXPECT_EQ(spool->open(kCamera, kTenure)->events, 0u);
  EXPECT_EQ(drained(*spool, kCamera, kLater), numbered(0, 10));
  EXPECT_TRUE(spool->adopt(kCamera, kTenure, kLater)) << "nothing to adopt is no error";
}

TEST(FileSpool, AdoptOfAnOpenLog_GoesOnInIt) {
  TempDir folder;
  auto spool = opened(folder);
  append(*spool, 0, 4);
  SpoolPage page = spool->peek(kCamera, kTenure, 2, 1 << 20);
  ASSERT_TRUE(spool->adopt(kCamera, kTenure, kLater));
  spool->advance(kCamera, kLater, page.first + 2);
  ASSERT_TRUE(spool->append(kCamera, kLater, event(4)));
  EXPECT_EQ(drained(*spool, kCamera, kLater), numbered(2, 5));
}

TEST(FileSpool, AdoptIntoATenureThatSpooledAlready_IsRefused) {
  TempDir folder;
  auto spool = opened(folder);
  append(*spool, 0, 4);
  ASSERT_TRUE(spool->append(kCamera, kLater, event(9)));
  EXPECT_EQ(spool->adopt(kCamera, kTenure, kLater).error().code, Errc::conflict);
  EXPECT_EQ(spool->drop_others(kCamera, kLater), 4u);
  EXPECT_EQ(drained(*spool, kCamera, kLater), numbered(9, 10));
}

TEST(FileSpool, DropOthers_DropsTheCamerasOtherTenures_AndNoOtherCamera) {
  TempDir folder;
  CameraId other = CameraId::trusted("other");
  auto spool = opened(folder);
  append(*spool, 0, 4);
  ASSERT_TRUE(spool->append(kCamera, kLater, event(9)));
  ASSERT_TRUE(spool->append(other, kTenure, event(5)));
  EXPECT_EQ(spool->drop_others(kCamera, kLater), 4u);
  EXPECT_EQ(spool->counts().dropped, 4u);
  EXPECT_EQ(drained(*spool, kCamera, kLater), numbered(9, 10));
  EXPECT_EQ(drained(*spool, other), numbered(5, 6));
}

TEST(FileSpool, List_NamesWhatLiesThere) {
  TempDir folder;
  CameraId longest = CameraId::trusted(std::string(250, 'z') + "/..");
  opened(folder)->append(longest, kTenure, event(1));
  auto spool = opened(folder);
  auto idle = spool->list();
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_EQ(idle[0].camera, longest);
  EXPECT_EQ(idle[0].tenure, kTenure);
  EXPECT_EQ(idle[0].bytes, encode(event(1)).size());
}

TEST(FileSpool, WhatIsClosed_IsFree_AlsoWhileAForkedChildHasTheDescriptors) {
  TempDir folder;
  auto spool = opened(folder);
  append(*spool, 0, 4);
  int lifeline[2];
  ASSERT_EQ(::pipe(lifeline), 0);
  pid_t child = ::fork();
  if (child == 0) {
    char end = 0;
    ::close(lifeline[1]);
    ::_exit(static_cast<int>(::read(lifeline[0], &end, 1)));
  }
  spool->close(kCamera, kTenure);
  auto next = opened(folder);
  auto found = next->open(kCamera, kTenure);
  EXPECT_TRUE(found && found->events == 4);
  for (int end : lifeline) ::close(end);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(FileSpool, List_IsInNobodysWay) {
  TempDir folder;
  auto spool = opened(folder), other = opened(folder);
  append(*spool, 0, 4);
  spool->close(kCamera, kTenure);
  std::jthread looks([&](const std::stop_token& enough) {
    while (!enough.stop_requested()) other->list();
  });
  for (int n = 0; n < 2000; ++n) {
    ASSERT_TRUE(spool->open(kCamera, kTenure)) << n;
    spool->close(kCamera, kTenure);
  }
}

}  // namespace weir::spool
