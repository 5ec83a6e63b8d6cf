// The spool in memory, which unit tests use, against the spool in files: two processes that share a
// disk do random things, and both disks must show the same.
#include "fake_spool.hpp"
#include "temp_files.hpp"

#include "weir/spool/file_spool.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

namespace weir::test {
namespace {

constexpr int kProcesses = 2;

class Pair {
 public:
  explicit Pair(unsigned seed) : rng_(seed) {
    for (int process = 0; process < kProcesses; ++process) restart(process);
  }

  void step() {
    Both& both = processes_[pick(kProcesses)];
    CameraId camera = CameraId::trusted(fmt::format("c{}", pick(2)));
    lease::Tenure tenure = tenure_of(pick(3)), other = tenure_of(pick(3));
    switch (pick(10)) {
      case 0: return opens(both, camera, tenure);
      case 1: return takes(both, camera, tenure);
      case 2: return each(both, [&](Spool& spool) { spool.close(camera, tenure); });
      case 3:
        if (tenure == other) return;
        return same(both, [&](Spool& spool) { return bool(spool.adopt(camera, tenure, other)); }, "adopt");
      case 4:
        if (pick(3) > 0) return;
        return same(both, [&](Spool& spool) { return spool.drop(camera, tenure); }, "drop");
      case 5:
        if (pick(3) > 0) return;
        return same(both, [&](Spool& spool) { return spool.drop_others(camera, tenure); }, "drop_others");
      case 6:
        if (pick(5) == 0) restart(pick(kProcesses));
        return;
      default: return appends(both, camera, tenure);
    }
  }
  void compare() {
    auto seen = [](Spool& spool) {
      std::set<std::string> all;
      for (const SpoolContent& each : spool.list())
        all.insert(fmt::format("{} {}", each.camera, each.tenure.boot));
      return all;
    };
    same(processes_[0], seen, "list");
  }

 private:
  struct Both {
    std::unique_ptr<Spool> fake, files;
  };
  int pick(int below) { return static_cast<int>(rng_() % static_cast<unsigned>(below)); }
  static lease::Tenure tenure_of(int n) { return {BootId::trusted(fmt::format("b{}", n)), {n + 1}}; }

  void restart(int process) {
    Both& both = processes_[process];
    both.fake.reset();
    both.files.reset();
    both.fake = std::make_unique<FakeSpool>(disk_);
    auto files = spool::open_file_spool(folder_.path() + "/spool", {.segment_bytes = 400});
    ASSERT_TRUE(files) << files.error().message;
    both.files = std::move(*files);
  }
  template <class What>
  void each(Both& both, What what) {
    what(*both.fake);
    what(*both.files);
  }
  template <class What>
  void same(Both& both, What what, const char* name) {
    auto fake = what(*both.fake), files = what(*both.files);
    EXPECT_EQ(fake, files) << name;
  }

  void opens(Both& both, const CameraId& camera, const lease::Tenure& tenure) {
    auto fake = both.fake->open(camera, tenure), files = both.files->open(camera, tenure);
    ASSERT_EQ(bool(fake), bool(files)) << "open";
    if (!fake) return;
    EXPECT_EQ(fake->events, files->events);
    EXPECT_EQ(fake->newest, files->newest);
  }
  void appends(Both& both, const CameraId& camera, const lease::Tenure& tenure) {
    event::Event event{"topic", "key", fmt::to_string(++events_)};
    event.payload = std::string(static_cast<size_t>(pick(200)), 'x');
    event.captured = WallTime(Duration(events_));
    same(both, [&](Spool& spool) { return spool.append(camera, tenure, event); }, "append");
  }
  // A page may end earlier in one than in the other: what both show must be equal.
  void takes(Both& both, const CameraId& camera, const lease::Tenure& tenure) {
    size_t most = 1 + static_cast<size_t>(pick(8));
    SpoolPage fake = both.fake->peek(camera, tenure, most, 1 << 20);
    SpoolPage files = both.files->peek(camera, tenure, most, 1 << 20);
    ASSERT_EQ(fake.events.empty(), files.events.empty()) << "peek";
    size_t shown = std::min(fake.events.size(), files.events.size());
    fake.events.resize(shown);
    files.events.resize(shown);
    EXPECT_EQ(fake.events, files.events);
    auto taken = static_cast<std::uint64_t>(pick(static_cast<int>(shown) + 1));
    both.fake->advance(camera, tenure, fake.first + taken);
    both.files->advance(camera, tenure, files.first + taken);
  }

  std::mt19937 rng_;
  TempDir folder_;
  FakeDisk disk_;
  Both processes_[kProcesses];
  std::int64_t events_ = 0;
};

}  // namespace

TEST(DifferentialSpool, RandomUse_TheSpoolInMemoryDoesWhatTheOneInFilesDoes) {
  for (unsigned seed = 1; seed <= 20 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Pair pair(seed);
    for (int step = 0; step < 400 && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(step);
      pair.step();
      pair.compare();
    }
  }
}

}  // namespace weir::test
