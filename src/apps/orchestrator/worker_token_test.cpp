#include "worker_token.hpp"

#include "temp_files.hpp"

#include "weir/base/spawn.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace weir::apps {
namespace {

TEST(WorkerToken, LiesInAFileOfThisUserAlone_AndIsReplacedLongBeforeItEnds) {
  boost::asio::io_context io{1};
  VirtualClock clock{io};
  net::TokenKey key = *net::TokenKey::create(Secret(std::string(32, 'k')));
  auto plane = http_plane::HttpStreamPlane::create(
      io, clock, {.url = "http://127.0.0.1:1", .runner = RunnerId::trusted("o-1"), .key = key});
  ASSERT_TRUE(plane) << plane.error().message;
  test::TempDir folder;
  std::string path = folder.path() + "/worker.token";
  spawn(io.get_executor(), keep_worker_token(**plane, clock, BootId::trusted("b-1"), path), "the workers' token");
  auto claims = [&] { return key.verify(test::text_in_file(path), clock.wall()); };

  clock.run(clock.now() + 1s);
  auto first = claims();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->sub, "o-1");
  EXPECT_EQ(first->role, net::Role::worker);
  EXPECT_EQ(first->boot.str(), "b-1");
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);

  clock.run(clock.now() + (first->expires - clock.wall()) / 2);
  auto second = claims();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_GT(second->expires, first->expires);
}

}  // namespace
}  // namespace weir::apps
