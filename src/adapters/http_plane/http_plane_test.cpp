#include "weir/http_plane/http_plane.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace weir::http_plane {
namespace {

namespace asio = boost::asio;
using net::Response;

// A control plane, or whatever else listens at its address: it answers what the test says.
struct Site {
  using Answer = std::function<Response(net::Request&)>;

  explicit Site(asio::io_context& io) : server(io, clock, router, net::ServerLimits{}) {
    add(net::Method::post, "/v1/leases/camera/renew-batch", leases);
    add(net::Method::post, "/v1/runners/register", registration);
    add(net::Method::post, "/v1/auth/token", tokens);
    add(net::Method::get, "/v1/cameras", cameras);
    add(net::Method::get, "/v1/leases", all_leases);
    add(net::Method::get, "/v1/sites/{site_id}/budget", budget);
    EXPECT_TRUE(server.listen("127.0.0.1:0"));
  }
  void add(net::Method method, const char* path, Answer& answer) {
    router.add(method, path, [this, &answer](net::Request& request) -> asio::awaitable<Response> {
      ++asked;
      if (request.path == hangs) {
        while (!hangs.empty()) co_await clock.wait(1ms);
        co_return Response::text("too late", 500);
      }
      if (!gate) co_return answer(request);
      while (asked < gate) co_await clock.wait(1ms);
      co_return answer(request);
    });
  }
  std::string url() { return "http://" + server.address(); }

  int asked = 0;
  int gate = 0;  // nothing is answered before this many questions have come
  std::string hangs;  // a path that is not answered
  Answer registration = [](net::Request&) { return Response::json(json::object{{"will", "w"}}); };
  Answer leases = [](net::Request&) {
    json::object granted{{"camera_uuid", "c"}, {"result", "granted"}, {"version", 7}, {"ttl_ms", 9000}};
    return Response::json(json::object{{"items", json::array{granted}}});
  };
  Answer tokens = [](net::Request&) { return Response::json(json::object{{"token", "t"}, {"expires_in", 900}}); };
  Answer all_leases = [](net::Request&) { return Response::json(json::object{{"items", json::array()}}); };
  Answer cameras = [](net::Request&) { return Response::json(json::object{{"items", json::array()}}); };
  Answer budget = [](net::Request&) { return Response::json(json::object{{"tokens", 2.5}, {"capacity", 10}}); };
  RealClock clock;
  net::Router router;
  net::HttpServer server;
};

// Wall time that a test moves; nothing here waits on it.
class SetClock final : public Clock {
 public:
  Instant now() const override { return boot_now(); }
  WallTime wall() const override { return wall_now() + ahead; }
  asio::awaitable<void> wait_until(Instant) override { co_return; }
  Duration ahead{};
};

Response html(int status) { return Response::text("<html>sign in</html>", status, "text/html"); }

class Plane : public testing::Test {
 protected:
  Plane() {
    char name[] = "/tmp/weir-plane-XXXXXX";
    folder_ = ::mkdtemp(name);
    log_fd_ = ::open(file("log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    log::configure({.level = log::Level::warn, .fd = log_fd_});
  }
  ~Plane() override {
    log::configure({.level = log::Level::off});
    ::close(log_fd_);
    plane_.reset();
    for (Site* site : {&first_, &second_}) {
      auto stop = [](Site* which) -> asio::awaitable<Result<Nothing>> {
        co_await which->server.stop(0s);
        co_return ok();
      };
      EXPECT_TRUE(finish(stop(site)));
    }
    for (const char* each : {"log", "token"}) ::unlink(file(each).c_str());
    ::rmdir(folder_.c_str());
  }
  std::string file(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }
  void write(std::string_view name, std::string_view text) const { std::ofstream(file(name)) << text; }
  // The lines of the log with this event.
  std::vector<std::string> logged(std::string_view event) const {
    std::vector<std::string> out;
    std::ifstream lines(file("log"));
    for (std::string line; std::getline(lines, line);)
      if (line.find(event) != std::string::npos) out.push_back(line);
    return out;
  }

  void ask_at(const std::string& urls) {
    Config config{.url = urls, .runner = RunnerId::trusted("r"), .key = key_};
    plane_ = *HttpPlane::create(io_, clock_, std::move(config));
  }
  template <class T>
  Result<T> finish(asio::awaitable<Result<T>> work) {
    std::optional<Result<T>> out;
    auto keep = [](asio::awaitable<Result<T>> from, std::optional<Result<T>>& to) -> asio::awaitable<void> {
      to = co_await std::move(from);
    };
    asio::co_spawn(io_, keep(std::move(work), out), [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
    auto end = std::chrono::steady_clock::now() + 10s;
    while (!out && std::chrono::steady_clock::now() < end) io_.run_one_for(10ms);
    if (!out) return Error{Errc::internal, "hung", "no result in time"};
    return *std::move(out);
  }
  asio::awaitable<Result<std::vector<lease::Answer>>> renewal() {
    lease::Owner owner{RunnerId::trusted("r"), BootId::trusted("b")};
    lease::Batch batch{.operation = lease::Operation::renew, .owner = owner, .ttl = 9s};
    batch.asks.push_back({.subject = CameraId::trusted("c"), .version = lease::Version{7}});
    return plane_->apply(std::move(batch));
  }
  bool renewed() { return bool(finish(renewal())); }
  // How many of two that are asked at once are answered.
  int renewed_of_two() {
    int ended = 0, good = 0;
    auto one = [](Plane* self, int& ends, int& answered) -> asio::awaitable<void> {
      auto answers = co_await self->renewal();
      answered += answers ? 1 : 0;
      ++ends;
    };
    for (int i = 0; i < 2; ++i)
      asio::co_spawn(io_, one(this, ended, good), [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
    for (int i = 0; i < 500 && ended < 2; ++i) io_.run_one_for(10ms);
    EXPECT_EQ(ended, 2);
    return good;
  }

  std::string folder_;
  int log_fd_ = -1;
  asio::io_context io_{1};
  SetClock clock_;
  net::TokenKey key_ = *net::TokenKey::create(Secret(std::string(32, 'k')));
  Site first_{io_}, second_{io_};
  std::unique_ptr<HttpPlane> plane_;
};

// ---- "Lost is only a typed answer": unknown is asked again at the next address ----

TEST_F(Plane, LeaseAnswerThatSaysNothing_IsAskedAgainAtTheNextAddress) {
  std::vector<Site::Answer> answers;
  for (int status : {200, 302, 400, 401, 403, 404, 503})
    answers.push_back([status](net::Request&) { return html(status); });
  for (Errc code : {Errc::unauthorized, Errc::forbidden, Errc::not_found, Errc::too_many, Errc::invalid})
    answers.push_back([code](net::Request&) { return Response::failure({code, "no", "no"}); });
  for (const char* text : {"{}", "[]", R"({"items":[]})", R"({"items":[{"camera_uuid":"other","result":"granted"}]})"})
    answers.push_back([text](net::Request&) { return Response::text(text, 200, "application/json"); });
  for (size_t i = 0; i < answers.size(); ++i) {
    first_.leases = answers[i];
    ask_at(first_.url() + "," + second_.url());
    EXPECT_FALSE(renewed()) << i;
    EXPECT_TRUE(renewed()) << i;
  }
}

TEST_F(Plane, TwoQuestionsRefusedAtOnce_GoToTheNextAddress_NotPastIt) {
  first_.leases = [](net::Request&) { return html(404); };
  first_.gate = 2;
  ask_at(first_.url() + "," + second_.url());
  EXPECT_EQ(renewed_of_two(), 0);
  EXPECT_TRUE(renewed());
}

TEST_F(Plane, Registration_GoesOnFromAnAddressWhereSomethingElseListens) {
  std::vector<Site::Answer> answers = {[](net::Request&) { return html(404); }, [](net::Request&) { return html(200); },
                                       [](net::Request&) { return Response::json(json::object{{"status", "ok"}}); }};
  for (size_t i = 0; i < answers.size(); ++i) {
    first_.registration = answers[i];
    ask_at(first_.url() + "," + second_.url());
    EXPECT_FALSE(finish(plane_->register_runner({}))) << i;
    EXPECT_TRUE(finish(plane_->register_runner({}))) << i;
  }
}

TEST_F(Plane, ATypedRefusal_IsAnAnswer_AndTheAddressIsKept) {
  first_.registration = [](net::Request&) { return Response::failure({Errc::conflict, "boot_known", "known"}); };
  ask_at(first_.url() + "," + second_.url());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(finish(plane_->register_runner({})).error().reason, "boot_known");
  EXPECT_EQ(second_.asked, 0);
}

TEST_F(Plane, OneAddress_OnlyTheConnectionThatSaidNothingIsClosed) {
  ask_at(first_.url());
  first_.gate = 2;
  EXPECT_EQ(renewed_of_two(), 2);
  EXPECT_EQ(first_.server.connections(), 2u);
  first_.leases = [](net::Request&) { return html(404); };
  EXPECT_FALSE(renewed());
  for (int i = 0; i < 500 && first_.server.connections() == 2; ++i) io_.run_one_for(10ms);
  EXPECT_EQ(first_.server.connections(), 1u);
}

TEST_F(Plane, Leases_AreRead_AndThoseThatAreNotWhole_AreLeftOut) {
  json::object whole{{"camera_uuid", "c"}, {"runner_id", "r"}, {"boot_id", "b"},        {"version", 9},
                     {"grant_version", 7}, {"status", "released"}, {"assignable", false},
                     {"previous", json::object{{"boot_id", "a"}, {"grant_version", 5}}}};
  first_.all_leases = [&](net::Request&) {
    json::array items{whole};
    for (const char* name : {"camera_uuid", "boot_id", "grant_version"}) {
      json::object broken = whole;
      broken.erase(name);
      items.push_back(broken);
    }
    json::object odd = whole;
    odd["assignable"] = nullptr;
    items.push_back(odd);
    return Response::json(json::object{{"items", std::move(items)}});
  };
  ask_at(first_.url());
  auto rows = finish(plane_->leases());
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 1u);
  lease::LeaseRow row = rows->front();
  EXPECT_EQ(row.owner, (lease::Owner{RunnerId::trusted("r"), BootId::trusted("b")}));
  EXPECT_EQ(row.version, lease::Version{9});
  EXPECT_EQ(row.grant, lease::Version{7});
  EXPECT_EQ(row.previous, (lease::Tenure{BootId::trusted("a"), {5}}));
  EXPECT_TRUE(row.released);
  EXPECT_FALSE(row.assignable);
}

// ---- cameras ----

json::object camera(std::string_view id) {
  return {{"camera_uuid", id}, {"tenant_id", "t"}, {"site_id", "s"}, {"rtsp_url", "rtsp://camera/1"}};
}

TEST_F(Plane, TokensOfASite_AreRead_AndWhoMayNotSeeThem_IsToldSo) {
  ask_at(first_.url() + "," + second_.url());
  auto tokens = [&] {
    auto heard = finish(plane_->budget(SiteId::trusted("s")));
    return heard ? *heard : -1;
  };
  EXPECT_EQ(tokens(), 2.5);
  first_.budget = [](net::Request&) { return Response::json(json::object{{"tokens", "many"}}); };
  EXPECT_EQ(tokens(), -1);
  EXPECT_EQ(tokens(), 2.5) << "the next address knows";
  // As control planes answered before runners asked for this list.
  second_.budget = [](net::Request&) { return Response::failure({Errc::forbidden, "role", "not for runners"}); };
  int before = first_.asked;
  EXPECT_EQ(tokens(), -1);
  EXPECT_TRUE(renewed());
  EXPECT_EQ(first_.asked, before);
}

TEST_F(Plane, FieldsOfANewerControlPlane_AreIgnored) {
  first_.cameras = [](net::Request&) {
    json::object newer = camera("b");
    newer["colour"] = "blue";
    newer["motion_gating"] = json::object{{"min_area_px", 7}, {"mood", "calm"}};
    return Response::json(json::object{{"items", json::array{camera("a"), newer}}});
  };
  ask_at(first_.url());
  auto cameras = finish(plane_->desired({}));
  ASSERT_TRUE(cameras) << cameras.error().message;
  ASSERT_EQ(cameras->readable.size(), 2u);
  EXPECT_EQ(cameras->readable[1].config.motion_gating.min_area_px, 7);
}

TEST_F(Plane, ACameraThatCannotBeRead_IsListedAsSuch_HidesNoOther_AndIsNamedOnce) {
  std::string decode = "clairvoyant";
  first_.cameras = [&](net::Request&) {
    json::object newer = camera("cam-7");
    newer["decode"] = decode;
    return Response::json(json::object{{"items", json::array{camera("a"), newer}}});
  };
  ask_at(first_.url());
  for (int i = 0; i < 3; ++i) {
    auto cameras = finish(plane_->desired({}));
    ASSERT_TRUE(cameras) << cameras.error().message;
    ASSERT_EQ(cameras->readable.size(), 1u);
    EXPECT_EQ(cameras->readable[0].config.camera.str(), "a");
    EXPECT_EQ(cameras->unreadable, std::set{CameraId::trusted("cam-7")});
  }
  auto lines = logged("cameras.unreadable");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cam-7"), std::string::npos);
  EXPECT_NE(lines[0].find("decode must be one of"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[0].find("clairvoyant"), std::string::npos);
  decode = "full";
  EXPECT_EQ(finish(plane_->desired({}))->readable.size(), 2u);
  decode = "clairvoyant";
  EXPECT_EQ(finish(plane_->desired({}))->readable.size(), 1u);
  EXPECT_EQ(logged("cameras.unreadable").size(), 2u) << "it had been good in between";
}

// ---- a token from a file ----

class TokenFromFile : public Plane {
 protected:
  TokenFromFile() {
    // Sells a token for one that it knows, and takes only those.
    for (Site* site : {&first_, &second_}) site->tokens = [this](net::Request& request) {
      if (!knows(request)) return refused();
      valid_ = {fmt::format("bought-{}", ++sold_)};
      return Response::json(json::object{{"token", valid_.back()}, {"expires_in", 900}});
    };
    auto leases = first_.leases;
    first_.leases = [this, leases](net::Request& request) { return knows(request) ? leases(request) : refused(); };
    write("token", "given-1\n");
    Config config{.url = first_.url(), .runner = RunnerId::trusted("edge-1")};
    config.token = Secret("given-1");
    config.token_file = file("token");
    plane_ = *HttpPlane::create(io_, clock_, std::move(config));
  }
  bool knows(const net::Request& request) const {
    auto shown = [&](const std::string& each) { return request.header("authorization") == "Bearer " + each; };
    return std::ranges::any_of(valid_, shown);
  }
  static Response refused() {
    return Response::failure({Errc::unauthorized, "token_expired", "the token has expired"});
  }

  std::vector<std::string> valid_ = {"given-1"};
  int sold_ = 0;
};

TEST_F(TokenFromFile, AfterAnOutageLongerThanItsLife_ANewOneInTheFileIsTaken) {
  EXPECT_TRUE(renewed());
  EXPECT_EQ(valid_, std::vector<std::string>{"bought-1"});
  valid_.clear();  // all that this runner has is past its time
  clock_.ahead += 1h;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(renewed());
  auto lines = logged("runner.token_refused");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("weir token --role runner --sub edge-1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("> " + file("token")), std::string::npos) << lines[0];
  EXPECT_EQ(lines[0].find("given-1"), std::string::npos);
  valid_ = {"given-2"};
  write("token", "given-2\n");
  EXPECT_TRUE(renewed());
  EXPECT_EQ(valid_, std::vector<std::string>{"bought-2"});
}

TEST_F(TokenFromFile, WhileItsTokenLives_ARenewalDoesNotWaitForTheNextOne) {
  EXPECT_TRUE(renewed());
  first_.hangs = "/v1/auth/token";
  clock_.ahead += 10min;
  Instant asked = boot_now();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(renewed());
  EXPECT_LT(boot_now() - asked, 4s) << "one question's time, once";
  first_.hangs.clear();
  clock_.ahead += 10s;
  EXPECT_TRUE(renewed());
  EXPECT_EQ(sold_, 2);
}

TEST_F(TokenFromFile, ATokenThatIsRefusedBeforeItsTime_IsReplacedFromTheFile) {
  EXPECT_TRUE(renewed());
  valid_ = {"given-2"};  // the secret was replaced
  write("token", "  given-2");
  EXPECT_FALSE(renewed()) << "this is how it learns";
  EXPECT_TRUE(renewed());
  EXPECT_TRUE(logged("runner.token_refused").empty());
}

TEST_F(TokenFromFile, AnUnreadableFile_IsSaid_AndTheTokenInHandIsGoodUntilItEnds) {
  EXPECT_TRUE(renewed());
  ::unlink(file("token").c_str());
  clock_.ahead += 10min;
  EXPECT_TRUE(renewed()) << "what it bought buys the next one";
  EXPECT_EQ(sold_, 2);
  valid_.clear();
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(renewed());
  auto lines = logged("runner.token_refused");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cannot be read"), std::string::npos) << lines[0];
}

// At one of two addresses another secret is in force: what is good at the other must not be thrown away there.
TEST_F(TokenFromFile, ATokenRefusedAtOneAddress_IsGoodAtTheNext) {
  Site other{io_};
  other.leases = [](net::Request&) { return refused(); };
  other.tokens = other.leases;
  ASSERT_TRUE(plane_->use(first_.url() + "," + other.url(), {}));
  EXPECT_TRUE(renewed());
  write("token", "long gone");
  ASSERT_TRUE(plane_->use(other.url() + "," + first_.url(), {}));
  int good = 0;
  for (int i = 0; i < 4; ++i) good += renewed() ? 1 : 0;
  EXPECT_GE(good, 3);
  EXPECT_TRUE(logged("runner.token_refused").empty());
  auto stop = [](Site* which) -> asio::awaitable<Result<Nothing>> {
    co_await which->server.stop(0s);
    co_return ok();
  };
  EXPECT_TRUE(finish(stop(&other)));
}

}  // namespace
}  // namespace weir::http_plane
