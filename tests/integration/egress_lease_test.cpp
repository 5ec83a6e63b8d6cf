// A forwarder with a right to send that ends: a supervisor extends it, and the forwarder is silent from the moment it
// is over.
#include "forward.hpp"
#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::test {
namespace {

class EgressLease : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = missing_servers(); !missing.empty()) GTEST_SKIP() << missing;
    hub_ = std::make_unique<Hub>(folder_, std::map<std::string, std::string>{{"s1", "h264"}});
    server_ = std::make_unique<RtmpServer>(folder_);
  }
  static std::int64_t in(Duration d) { return (boot_now() + d).time_since_epoch().count(); }
  std::unique_ptr<ForwarderProcess> start(Duration valid_for) {
    return std::make_unique<ForwarderProcess>(
        folder_, hub_->base(), server_->url("live", "key"),
        boost::json::object{{"lease_version", 7}, {"lease_valid_until_us", in(valid_for)},
                            {"lease_socket", socket_path()}});
  }
  std::string socket_path() const { return folder_.path() + "/lease.sock"; }
  TempDir folder_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<RtmpServer> server_;
};

// One supervisor's connection.
class Supervisor {
 public:
  explicit Supervisor(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  }
  ~Supervisor() { ::close(fd_); }
  std::string say(const std::string& line) {
    std::string text = line + "\n", answer;
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    for (char c = 0; ::recv(fd_, &c, 1, 0) == 1 && c != '\n';) answer += c;
    return answer;
  }
  std::string extend(std::int64_t version, std::int64_t until) {
    return say(fmt::format(R"({{"version":{},"valid_until_us":{}}})", version, until));
  }

 private:
  int fd_;
};

TEST_F(EgressLease, Extended_ItForwardsPastItsFirstDeadline_AndASupervisorsEndChangesNothing) {
  Instant first_end = boot_now() + 8s;
  auto forwarder = start(8s);
  { Supervisor first(socket_path()); EXPECT_NE(first.extend(7, in(60s)).find("\"version\":7"), std::string::npos); }
  ASSERT_TRUE(forwarder->forwarding()) << forwarder->child().log();
  ASSERT_TRUE(eventually(20s, [&] { return boot_now() > first_end + 1s; }));
  EXPECT_EQ(forwarder->metric("egress_forwarder_forwarding"), 1);
  EXPECT_TRUE(forwarder->events("egress.held").empty());
  // The next supervisor finds the same socket, under a higher version; the old one is refused from then on.
  Supervisor next(socket_path());
  EXPECT_NE(next.say("{}").find("\"version\":7"), std::string::npos);
  EXPECT_NE(next.extend(9, in(60s)).find("\"version\":9"), std::string::npos);
  EXPECT_NE(Supervisor(socket_path()).extend(7, in(3600s)).find("stale_version"), std::string::npos);
  EXPECT_NE(next.say("nonsense").find("bad_request"), std::string::npos);
  EXPECT_NE(next.say(R"({"version":"9"})").find("bad_request"), std::string::npos);
  EXPECT_EQ(forwarder->metric("egress_forwarder_forwarding"), 1);
}

TEST_F(EgressLease, PastIt_TheConnectionIsReset_ExtendedInTime_ItGoesOn) {
  auto forwarder = start(3600s);
  ASSERT_TRUE(forwarder->forwarding()) << forwarder->child().log();
  Supervisor next(socket_path());
  Instant end = boot_now() + 1s;
  next.extend(8, end.time_since_epoch().count());
  ASSERT_TRUE(forwarder->said("egress.held", 10s)) << forwarder->child().log();
  EXPECT_GE(boot_now(), end);
  EXPECT_EQ(forwarder->last("egress.forwarding.stopped", "reason"), "deadline");
  EXPECT_TRUE(eventually(5s, [&] { return server_->log().find("Connection reset by peer") != std::string::npos; }))
      << server_->log();
  EXPECT_EQ(forwarder->metric("egress_forwarder_forwarding"), 0);
  next.extend(8, in(60s));
  EXPECT_TRUE(forwarder->forwarding()) << forwarder->child().log();
}

TEST_F(EgressLease, PastIt_ButKept_ItForwardsOn_AndOpensNothingNew) {
  auto forwarder = start(3600s);
  ASSERT_TRUE(forwarder->forwarding()) << forwarder->child().log();
  Supervisor next(socket_path());
  Instant end = boot_now() + 1s;
  std::string answer = next.say(fmt::format(R"({{"version":8,"valid_until_us":{},"keep_until_us":{}}})",
                                            end.time_since_epoch().count(), in(60s)));
  EXPECT_NE(answer.find("keep_until_us"), std::string::npos) << answer;
  ASSERT_TRUE(eventually(20s, [&] { return boot_now() > end + 2s; }));
  EXPECT_EQ(forwarder->metric("egress_forwarder_forwarding"), 1);
  double sent = forwarder->metric("egress_forwarder_bytes_out_total");
  EXPECT_TRUE(eventually(10s, [&] { return forwarder->metric("egress_forwarder_bytes_out_total") > sent; }));
  EXPECT_TRUE(forwarder->events("egress.held").empty()) << forwarder->child().log();
  // The stream's publisher goes: nothing is dialled again until the right is valid.
  hub_.reset();
  ASSERT_TRUE(forwarder->said("egress.held", 20s)) << forwarder->child().log();
  size_t dials = forwarder->events("egress.input.connecting").size();
  next.extend(8, in(60s));
  EXPECT_TRUE(eventually(10s, [&] { return forwarder->events("egress.input.connecting").size() > dials; }))
      << forwarder->child().log();
}

TEST_F(EgressLease, PastIt_AndNotExtended_ItEndsWith40_30sLater) {
  Instant begun = boot_now();
  auto forwarder = start(2s);
  EXPECT_EQ(forwarder->child().wait(60s), 40) << forwarder->child().log();
  EXPECT_GE(boot_now() - begun, 31s);
  EXPECT_EQ(forwarder->last("egress.exit", "reason"), "deadline");
}

}  // namespace
}  // namespace weir::test
