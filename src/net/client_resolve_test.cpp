// A client follows what the resolver says, for as long as the resolver answers. Here this file is the resolver: names
// below weir.test are answered as the test says, all others by the system.
#include "testing.hpp"
#include "weir/net/client.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <netdb.h>

#include <atomic>

namespace {
enum class Resolver { answers, fails, hangs };
std::atomic<Resolver> g_resolver = Resolver::answers;
std::atomic<const char*> g_address = "127.0.0.1";
}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** out) {
  static auto* const real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || !std::string_view(node).ends_with(".weir.test")) return real(node, service, hints, out);
  g_resolver.wait(Resolver::hangs);
  return g_resolver == Resolver::fails ? EAI_AGAIN : real(g_address, service, hints, out);
}

namespace weir::net {
namespace {

namespace asio = boost::asio;
using testing::has;
using testing::RunningServer;

class ResolvedClient : public ::testing::Test {
 protected:
  ResolvedClient() {
    say(Resolver::answers);
    g_address = "127.0.0.1";
    serve(server_);
    client_ = *HttpClient::create(io_, fmt::format("http://plane.weir.test:{}", server_.start()));
  }
  ~ResolvedClient() override { say(Resolver::answers); }  // a thread that still asks must end

  static void say(Resolver now) {
    g_resolver = now;
    g_resolver.notify_all();
  }
  static void serve(RunningServer& server) {
    server.router.add(Method::get, "/x", [](Request&) -> asio::awaitable<Response> { co_return Response::text("ok"); });
  }
  // On a new connection.
  std::string outcome() {
    client_->close_idle();
    std::optional<std::string> out;
    auto ask = [](HttpClient& client, std::optional<std::string>& to) -> asio::awaitable<void> {
      ClientRequest request{.target = "/x", .timeout = 1s};
      auto answer = co_await client.send(std::move(request));
      to = answer ? answer->body : answer.error().message;
    };
    asio::co_spawn(io_, ask(*client_, out), [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
    io_.restart();
    auto end = std::chrono::steady_clock::now() + 3s;
    while (!out && std::chrono::steady_clock::now() < end) io_.run_one_for(10ms);
    return out.value_or("hung");
  }

  RunningServer server_;
  asio::io_context io_{1};
  std::optional<HttpClient> client_;
};

TEST_F(ResolvedClient, NameThatWasResolved_IsReached_WhileTheResolverFails) {
  EXPECT_EQ(outcome(), "ok");
  say(Resolver::fails);
  EXPECT_EQ(outcome(), "ok");
  std::string url = fmt::format("http://plane.weir.test:{}", server_.port());
  ASSERT_TRUE(client_->use(url + ",http://other.weir.test:1"));
  EXPECT_EQ(outcome(), "ok") << "another address beside it does not make it forgotten";
}

TEST_F(ResolvedClient, NameThatWasResolved_IsReached_WhileTheResolverIsSilent) {
  EXPECT_EQ(outcome(), "ok");
  say(Resolver::hangs);
  EXPECT_EQ(outcome(), "ok");
}

TEST_F(ResolvedClient, WhatWasRemembered_CountsOnlyWhileItAccepts) {
  EXPECT_EQ(outcome(), "ok");
  server_.stop(0s);
  say(Resolver::fails);
  EXPECT_TRUE(has(outcome(), "cannot resolve"));
  // The service has moved, and the resolver needs a while to say so.
  RunningServer moved;
  serve(moved);
  moved.start(fmt::format("127.0.0.2:{}", server_.port()));
  g_address = "127.0.0.2";
  say(Resolver::hangs);
  asio::steady_timer late(io_, 450ms);
  late.async_wait([](const boost::system::error_code&) { say(Resolver::answers); });
  EXPECT_EQ(outcome(), "ok");
  say(Resolver::fails);
  EXPECT_EQ(outcome(), "ok") << "the new address is remembered";
}

TEST_F(ResolvedClient, AnswerThatCameTooLate_IsThereForTheNextQuestion) {
  say(Resolver::hangs);
  EXPECT_TRUE(has(outcome(), "in time"));
  say(Resolver::answers);
  io_.restart();
  for (int i = 0; i < 200 && !io_.stopped(); ++i) io_.run_one_for(10ms);  // until nobody waits for the resolver
  say(Resolver::fails);
  EXPECT_EQ(outcome(), "ok");
}

TEST_F(ResolvedClient, NameThatNeverResolved_IsAnError) {
  say(Resolver::fails);
  EXPECT_TRUE(has(outcome(), "cannot resolve"));
}

}  // namespace
}  // namespace weir::net
