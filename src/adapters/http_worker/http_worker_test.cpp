#include "weir/http_worker/http_worker.hpp"

#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::http_worker {
namespace {

namespace asio = boost::asio;

// A process that says one line and is otherwise the test's server.
class FakeChild final : public Child {
 public:
  explicit FakeChild(std::string line) : line_(std::move(line)) {}
  int pid() const override { return 7; }
  asio::awaitable<Result<std::string>> read_line() override { co_return line_; }
  asio::awaitable<int> wait() override { co_return 0; }
  bool running() override { return true; }
  void signal(int) const override {}
  Duration cpu_time() const override { return 3s; }

 private:
  const std::string line_;
};

struct FakeProcesses final : ProcessHost {
  Result<std::unique_ptr<Child>> start(const Program& program) override {
    started = program;
    return std::unique_ptr<Child>(new FakeChild(line));
  }
  Program started;
  std::string line;
};

class HttpWorkerTest : public ::testing::Test {
 protected:
  HttpWorkerTest() {
    EXPECT_TRUE(server_.listen("127.0.0.1:0"));
    processes_.line = json::to_text(json::object{{"control", "http://" + server_.address()}, {"pid", 7}});
  }
  void serve(net::Method method, std::string_view path, std::string body, int status = 200) {
    auto answer = [this, body, status](net::Request& request) -> asio::awaitable<net::Response> {
      asked_.push_back(request.path);
      bearer_ = std::string(request.header("authorization"));
      body_ = request.body;
      co_return net::Response::text(body, status);
    };
    router_.add(method, path, answer);
  }
  std::unique_ptr<WorkerLink> start() {
    HttpWorkers workers(io_, processes_, {"weir-worker", {"--log-level=info"}});
    auto link = workers.start({.runner = RunnerId::trusted("r"), .control_token = Secret("0123456789abcdef")});
    EXPECT_TRUE(link);
    return std::move(*link);
  }
  template <class T>
  T run(asio::awaitable<T> work) {
    std::optional<T> result;
    auto keep = [&]() -> asio::awaitable<void> { result.emplace(co_await std::move(work)); };
    asio::co_spawn(io_, keep(), asio::detached);
    while (!result) io_.run_one();
    return std::move(*result);
  }

  asio::io_context io_{1};
  RealClock clock_;
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, net::ServerLimits{}};
  FakeProcesses processes_;
  std::vector<std::string> asked_;
  std::string bearer_, body_;
};

constexpr const char* kLook = R"({"protocol":1,"cameras":[{"camera_uuid":"a","streaming":true}],"stuck":[]})";

TEST_F(HttpWorkerTest, Worker_GetsItsDocumentWithoutAName_AndNoSecretOfTheRunner) {
  auto link = start();
  EXPECT_EQ(processes_.started.path, "weir-worker");
  EXPECT_EQ(processes_.started.arguments.back(), "--log-level=info");
  EXPECT_NE(processes_.started.document.reveal().find(R"("runner_id":"r")"), std::string::npos);
  EXPECT_NE(std::ranges::find(processes_.started.unset, "API_KEY"), processes_.started.unset.end());
  EXPECT_EQ(link->pid(), 7);
  EXPECT_EQ(link->cpu_time(), 3s);
}

TEST_F(HttpWorkerTest, FirstLineThatNamesNoAddress_IsAnError) {
  for (const char* line : {"", "hello", "[]", R"({"control":5})", R"({"control":"ftp//nowhere"})"}) {
    processes_.line = line;
    auto link = start();
    EXPECT_FALSE(run(link->ready())) << line;
    EXPECT_FALSE(run(link->look())) << line;
  }
}

TEST_F(HttpWorkerTest, Look_IsAskedWithTheToken_AndRead) {
  serve(net::Method::get, "/look", kLook);
  auto link = start();
  ASSERT_TRUE(run(link->ready()));
  auto look = run(link->look());
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->protocol, 1);
  EXPECT_EQ(look->cameras[0].camera.str(), "a");
  EXPECT_EQ(bearer_, "Bearer 0123456789abcdef");
}

TEST_F(HttpWorkerTest, WorkerFromBeforeTheLook_IsMeasuredByItsPageForPeople) {
  serve(net::Method::get, "/state",
        R"({"ready":true,"cameras":[{"camera_uuid":"a","state":"STREAMING","inferred":4}]})");
  auto link = start();
  ASSERT_TRUE(run(link->ready()));
  for (int n = 0; n < 2; ++n) {
    auto look = run(link->look());
    ASSERT_TRUE(look) << look.error().message;
    EXPECT_EQ(look->protocol, 0);
    EXPECT_TRUE(look->cameras[0].streaming);
    EXPECT_EQ(look->cameras[0].inferred, 4);
  }
  EXPECT_EQ(asked_, (std::vector<std::string>{"/state", "/state"}));
}

TEST_F(HttpWorkerTest, NonsenseAndRefusals_AreErrors) {
  serve(net::Method::get, "/look", R"({"cameras":[{"camera_uuid":7}]})");
  serve(net::Method::post, "/silence", R"({"silent":[{"camera_uuid":"a","last_cap)");
  serve(net::Method::post, "/drain", R"({"error":{"code":"x","message":"no"}})", 503);
  auto link = start();
  ASSERT_TRUE(run(link->ready()));
  EXPECT_FALSE(run(link->look()));
  EXPECT_FALSE(run(link->tell(link::Silence{{CameraId::trusted("a")}})));
  EXPECT_FALSE(run(link->tell(link::Drain{})));
}

TEST_F(HttpWorkerTest, Message_GoesToItsRoute_AndTheAnswerSaysWhenTheCameraWasLastSpokenFor) {
  serve(net::Method::post, "/silence",
        R"({"silent":[{"camera_uuid":"a","last_capture":"2026-01-31T09:05:07.123456Z"}]})");
  auto link = start();
  ASSERT_TRUE(run(link->ready()));
  auto said = run(link->tell(link::Silence{{CameraId::trusted("a")}}));
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->at(0).last_capture, from_iso("2026-01-31T09:05:07.123456Z"));
  EXPECT_EQ(body_, R"({"cameras":["a"]})");
}

}  // namespace
}  // namespace weir::http_worker
