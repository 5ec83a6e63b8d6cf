// Many clients want one camera at the same moment: exactly one gets it, every time.
#include "api_store.hpp"
#include "api_talk.hpp"

namespace weir::test {
namespace {

constexpr int kClients = 64;
constexpr int kRounds = 100;

struct Contender {
  std::string runner, boot;
  Secret token;
};
enum class Identity { own_runner, own_boot };

std::vector<Contender> contenders(const WeirProcess& process, Identity identity) {
  std::vector<Contender> all;
  for (int n = 1; n <= kClients; ++n) {
    bool own_runner = identity == Identity::own_runner;
    std::string runner = own_runner ? fmt::format("runner-{}", n) : "runner-1";
    std::string boot = own_runner ? "boot-1" : fmt::format("boot-{}", n);
    all.push_back({runner, boot, process.token("runner", runner)});
  }
  return all;
}

net::ClientRequest lease_request(std::string_view operation, const Contender& who, boost::json::object more) {
  more["runner_id"] = who.runner;
  more["boot_id"] = who.boot;
  more["camera_uuid"] = "cam-1";
  net::ClientRequest request =
      request_for(net::Method::post, fmt::format("/v1/leases/camera/{}", operation), more, who.token);
  request.timeout = 60s;  // two loaded cores
  return request;
}

// Everybody asks; returns who was granted the lease, or fails the test.
std::optional<size_t> winner_of(const std::vector<Reply>& replies) {
  std::optional<size_t> winner;
  int granted = 0, held = 0;
  std::string others;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].status == 200) {
      ++granted;
      winner = i;
    } else if (replies[i].status == 409 && replies[i].code() == "lease_held") {
      ++held;
    } else {
      others += fmt::format("{} {}\n", replies[i].status, replies[i].text);
    }
  }
  EXPECT_EQ(others, "");
  EXPECT_EQ(granted, 1);
  EXPECT_EQ(held, kClients - 1);
  return granted == 1 && held == kClients - 1 ? winner : std::nullopt;
}

void race(const std::vector<const WeirProcess*>& planes, Identity identity) {
  std::vector<Contender> all = contenders(*planes[0], identity);
  Crowd crowd;
  for (int n = 0; n < kClients; ++n) crowd.add(*planes[static_cast<size_t>(n) % planes.size()]);

  std::int64_t last_version = 0;
  for (int round = 1; round <= kRounds; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    std::vector<net::ClientRequest> requests;
    for (const Contender& who : all) requests.push_back(lease_request("acquire", who, {{"ttl_seconds", 60}}));
    std::vector<Reply> replies = crowd.ask_all(std::move(requests));
    auto winner = winner_of(replies);
    ASSERT_TRUE(winner);

    const Contender& who = all[*winner];
    const Reply& lease = replies[*winner];
    EXPECT_EQ(lease.field("runner_id"), who.runner);
    EXPECT_EQ(lease.field("boot_id"), who.boot);
    std::int64_t version = lease.body.at("version").as_int64();
    EXPECT_GT(version, last_version);
    last_version = version;

    std::vector<net::ClientRequest> release;
    release.push_back(lease_request("release", who, {{"version", version}}));
    Reply released = crowd.ask_all(std::move(release))[0];
    ASSERT_EQ(released.status, 200) << released.text;
    ASSERT_EQ(released.field("released"), "true");
  }
}

void race_over_sqlite(Identity identity) {
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(1);
  race({&plane}, identity);
}

void race_over_postgres(Identity identity) {
  TempDir folder;
  auto database = new_store(StoreKind::postgres, folder);
  SKIP_WITHOUT_POSTGRES(database);
  WeirProcess one(folder.path(), *database), two(folder.path(), *database);
  one.furnish(1);
  race({&one, &two}, identity);
}

TEST(Race, Sqlite_64Runners_OneGrantAnd63Refusals_AHundredTimes) { race_over_sqlite(Identity::own_runner); }
TEST(Race, Sqlite_OneRunner64Boots_OneGrantAnd63Refusals_AHundredTimes) { race_over_sqlite(Identity::own_boot); }
TEST(Race, TwoPlanesOnPostgres_64Runners_OneGrantAnd63Refusals_AHundredTimes) {
  race_over_postgres(Identity::own_runner);
}
TEST(Race, TwoPlanesOnPostgres_OneRunner64Boots_OneGrantAnd63Refusals_AHundredTimes) {
  race_over_postgres(Identity::own_boot);
}

}  // namespace
}  // namespace weir::test
