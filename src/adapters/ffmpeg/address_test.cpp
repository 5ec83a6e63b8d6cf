#include "wire/address.hpp"

#include "camera_testing.hpp"

#include "weir/ffmpeg/source.hpp"

namespace weir::ffmpeg {
namespace {

TEST(Address, Scheme_MayBeWrittenInCapitals) {
  struct Case {
    const char* url;
    int port;
    const char* at;
  };
  for (const Case& each : {Case{"RTSP://192.0.2.7/Main", 554, "rtsp://192.0.2.7/Main"},
                           Case{"Rtsps://192.0.2.7/x", 322, "rtsps://192.0.2.7/x"},
                           Case{"HTTPS://u:P@192.0.2.7/A.jpg?B=C", 443, "https://u:P@192.0.2.7/A.jpg?B=C"},
                           Case{"HTTP://192.0.2.7:8080/x", 8080, "http://192.0.2.7:8080/x"}}) {
    auto address = resolve(Secret(each.url), false);
    ASSERT_TRUE(bool(address)) << each.url;
    EXPECT_EQ(address->port, each.port) << each.url;
    EXPECT_EQ(url_at(Secret(each.url), *address).reveal(), each.at);
  }
}

// Each test has names of its own: what failed is remembered for the whole process.
std::string literal_of(const char* url, const std::vector<std::string>& literals) {
  auto address = resolve_by([&](const std::string&) { return literals; }, Secret(url), true);
  return address ? address->literal : address.error().reason;
}
const Error kRefused = stream_failure(restart::StreamErrorCode::tcp_refused, "the connection was refused");

TEST(Address, NameWithSeveral_IsDialledAtTheNext_AfterOneCouldNotBeReached) {
  const char* url = "rtsp://dual-stack.test/x";
  std::vector<std::string> both = {"2001:db8::7", "192.0.2.7"}, turned = {"192.0.2.7", "2001:db8::7"};
  Address address{"dual-stack.test", "2001:db8::7", 554};
  EXPECT_EQ(literal_of(url, both), "2001:db8::7");
  EXPECT_EQ(literal_of(url, both), "2001:db8::7") << "nothing is wrong with it";
  after_dial(address, kRefused, false);
  EXPECT_EQ(literal_of(url, both), "192.0.2.7");
  EXPECT_EQ(literal_of(url, turned), "192.0.2.7") << "in whatever order they are named";
  EXPECT_EQ(literal_of("rtsp://dual-stack.test:8554/x", both), "2001:db8::7") << "another camera behind the same name";
  EXPECT_EQ(literal_of(url, {"2001:db8::7"}), "2001:db8::7") << "when there is no other";
  address.literal = "192.0.2.7";
  after_dial(address, stream_failure(restart::StreamErrorCode::tcp_timeout, "no connection"), false);
  EXPECT_EQ(literal_of(url, both), "2001:db8::7");
}

TEST(Address, AnswerOfTheCamera_IsNoReasonForAnotherAddress) {
  std::vector<std::string> both = {"2001:db8::8", "192.0.2.8"};
  Address address{"answers.test", "2001:db8::8", 554};
  after_dial(address, stream_failure(restart::StreamErrorCode::rtsp_auth_failed, "401"), true);
  after_dial(address, stream_failure(restart::StreamErrorCode::tcp_timeout, "connected, but no answer"), true);
  EXPECT_EQ(literal_of("rtsp://answers.test/x", both), "2001:db8::8");
}

TEST(Address, EveryAddressOfAName_IsJudged_WhosesoeverTurnItIs) {
  EXPECT_EQ(literal_of("rtsp://inside.test/x", {"192.0.2.9", "169.254.0.1"}), "URL_REFUSED");
  EXPECT_EQ(literal_of("rtsp://nothing.test/x", {}), "DNS_FAILED");
}

// Nothing listens at the port: the dial itself says so.
TEST(Address, DialThatIsRefused_GivesTheTurnToTheNext) {
  int port = testing::ScriptedCamera([](testing::Dial&) {}).port();  // gone already
  for (std::string host : {"rtsp://127.0.0.1", "http://127.0.0.2"}) {
    std::string url = fmt::format("{}:{}/x", host, port), literal = host.substr(host.find("127"));
    EXPECT_EQ(literal_of(url.c_str(), {literal, "192.0.2.10"}), literal);
    SourceConfig config;
    config.url = Secret(url);
    config.loopback = true;
    auto source = make_source(config);
    ASSERT_TRUE(bool(source));
    EXPECT_EQ((*source)->open().error().reason, "TCP_REFUSED");
    EXPECT_EQ(literal_of(url.c_str(), {literal, "192.0.2.10"}), "192.0.2.10");
  }
}

}  // namespace
}  // namespace weir::ffmpeg
