#include "weir/mediamtx/control_api.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

namespace weir::mediamtx {
namespace {

namespace asio = boost::asio;
using net::Response;

// What MediaMTX 1.13.1 and 1.21.0 said of one publisher with one reader, and of a path that is waited for.
constexpr std::string_view kOld = R"({"itemCount":2,"pageCount":1,"items":[
{"name":"live/demo/in","confName":"all_others","source":{"type":"rtspSession","id":"d1bfd3ac"},"ready":true,
 "readyTime":"2026-11-18T14:29:14.24843097Z","tracks":["H264","MPEG-4 Audio"],"bytesReceived":167874,
 "bytesSent":72199,"readers":[{"type":"rtspSession","id":"1d19f0bb"}]},
{"name":"live/x/in","confName":"live/x/in","source":null,"ready":false,"readyTime":null,"tracks":[],
 "bytesReceived":0,"bytesSent":0,"readers":[]}]})";
constexpr std::string_view kNew = R"({"itemCount":2,"pageCount":1,"items":[
{"name":"live/demo/in","confName":"all_others","ready":true,"readyTime":"2026-11-18T14:29:05.816543926Z",
 "available":true,"availableTime":"2026-11-18T14:29:05.816543926Z","online":true,
 "onlineTime":"2026-11-18T14:29:05.816546009Z","source":{"type":"rtspSession","id":"d1bfd3ac"},
 "tracks":["H264","MPEG-4 Audio"],"tracks2":[
 {"codec":"H264","codecProps":{"width":320,"height":240,"profile":"Baseline","level":"1.1"}},
 {"codec":"MPEG-4 Audio","codecProps":{"sampleRate":44100,"channelCount":1}}],
 "readers":[{"type":"rtspSession","id":"1d19f0bb"}],"inboundBytes":167874,"outboundBytes":72328,
 "inboundFramesInError":0,"bytesReceived":167874,"bytesSent":72328},
{"name":"live/x/in","confName":"live/x/in","ready":false,"readyTime":null,"available":false,"availableTime":null,
 "online":false,"onlineTime":null,"source":null,"tracks":[],"tracks2":[],"readers":[],"inboundBytes":0,
 "outboundBytes":0,"inboundFramesInError":0,"bytesReceived":0,"bytesSent":0}]})";
// As a later version may say it, without what is deprecated today.
constexpr std::string_view kNext = R"({"itemCount":2,"pageCount":1,"items":[
{"name":"live/demo/in","available":true,"online":true,"source":{"type":"rtspSession","id":"d1bfd3ac"},
 "tracks2":[{"codec":"H264","codecProps":null},{"codec":"MPEG-4 Audio"}],
 "readers":[{"type":"rtspSession","id":"1d19f0bb"}],"inboundBytes":167874},
{"name":"live/x/in","available":false,"online":false,"source":null,"tracks2":[],"readers":[],"inboundBytes":0}]})";

const MediaPath kDemo{.name = "live/demo/in",
                      .ready = true,
                      .source_type = "rtspSession",
                      .source_id = "d1bfd3ac",
                      .readers = {{"rtspSession", "1d19f0bb"}},
                      .tracks = {"H264", "MPEG-4 Audio"},
                      .inbound_bytes = 167874};

bool every(std::string_view) { return true; }

class ControlApiTest : public testing::Test {
 protected:
  ControlApiTest() : server_(io_, clock_, router_, {}) {
    log::configure({.level = log::Level::off});
    auto serve = [this](net::Request& request) -> asio::awaitable<Response> {
      std::string line = fmt::format("{} {}", net::to_string(request.method), request.path);
      if (auto page = request.query_value("page"))
        line += fmt::format(" {}x{}", *page, *request.query_value("itemsPerPage"));
      asked_.push_back(line);
      authorization_ = request.header("authorization");
      while (hangs_) co_await clock_.wait(1ms);
      co_return answer_(request);
    };
    router_.add(net::Method::get, "/v3/paths/list", serve);
    router_.add(net::Method::get, "/v3/paths/get/{name}", serve);
    router_.add(net::Method::post, "/v3/{kind}/kick/{id}", serve);
    EXPECT_TRUE(server_.listen("127.0.0.1:0"));
    open({.url = Secret("http://" + server_.address())});
  }
  ~ControlApiTest() override {
    hangs_ = false;
    api_.reset();
    auto stop = [](net::HttpServer& server) -> asio::awaitable<Result<Nothing>> {
      co_await server.stop(0s);
      co_return ok();
    };
    EXPECT_TRUE(finish(stop(server_)));
  }
  void open(const Config& config) {
    auto api = ControlApi::create(io_, config);
    ASSERT_TRUE(api) << api.error().message;
    api_ = *std::move(api);
  }
  template <class T>
  Result<T> finish(asio::awaitable<Result<T>> work) {
    std::optional<Result<T>> out;
    auto keep = [](asio::awaitable<Result<T>> from, std::optional<Result<T>>& to) -> asio::awaitable<void> {
      to = co_await std::move(from);
    };
    asio::co_spawn(io_, keep(std::move(work), out), [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
    for (Instant end = boot_now() + 10s; !out && boot_now() < end;) io_.run_one_for(10ms);
    if (!out) return Error{Errc::internal, "hung", "no result in time"};
    return *std::move(out);
  }
  Result<std::vector<MediaPath>> list() { return finish(api_->list(every)); }
  void say(std::string_view body, int status = 200) {
    answer_ = [body = std::string(body), status](net::Request&) {
      return Response::text(body, status, "application/json");
    };
  }
  // Serves these names in pages of 100, as MediaMTX does.
  void serve_names(std::function<std::vector<std::string>()> names) {
    answer_ = [names = std::move(names)](net::Request& request) {
      auto all = names();
      size_t from = std::min(all.size(), std::stoul(*request.query_value("page")) * 100);
      json::array items;
      for (size_t i = from; i < std::min(all.size(), from + 100); ++i)
        items.push_back(json::object{{"name", all[i]}, {"ready", true}, {"source", nullptr}});
      return Response::json(json::object{
          {"itemCount", all.size()}, {"pageCount", (all.size() + 99) / 100}, {"items", std::move(items)}});
    };
  }
  static std::vector<std::string> numbered(int count) {
    std::vector<std::string> out;
    for (int i = 0; i < count; ++i) out.push_back(fmt::format("live/{:04}/in", i));
    return out;
  }

  asio::io_context io_{1};
  RealClock clock_;
  net::Router router_;
  net::HttpServer server_;
  std::function<Response(net::Request&)> answer_;
  bool hangs_ = false;
  std::vector<std::string> asked_;
  std::string authorization_;
  std::unique_ptr<ControlApi> api_;
};

// ---- paths ----

TEST_F(ControlApiTest, PathsOfEveryGeneration_AreReadAlike) {
  for (std::string_view body : {kOld, kNew, kNext}) {
    say(body);
    auto paths = list();
    ASSERT_TRUE(paths) << paths.error().message;
    EXPECT_EQ(*paths, (std::vector<MediaPath>{kDemo, {.name = "live/x/in"}}));
  }
  EXPECT_EQ(asked_[0], "GET /v3/paths/list 0x100");
  EXPECT_EQ(authorization_, "");
}

TEST_F(ControlApiTest, APathThatIsAvailableWithoutAPublisher_OrAnnouncedOnly_IsNotReady) {
  for (const char* flags : {R"("ready":true,"available":true,"online":false)",
                            R"("ready":false,"available":false,"online":true)"}) {
    say(fmt::format(R"({{"itemCount":1,"pageCount":1,"items":[{{"name":"a",{},"source":null}}]}})", flags));
    auto paths = list();
    ASSERT_TRUE(paths);
    EXPECT_FALSE(paths->at(0).ready) << flags;
  }
}

TEST_F(ControlApiTest, AllPages_AreRead_AndOnlyWantedNamesKept) {
  serve_names([] { return numbered(250); });
  auto paths = finish(api_->list([](std::string_view name) { return name.find("7/") != std::string_view::npos; }));
  ASSERT_TRUE(paths) << paths.error().message;
  EXPECT_EQ(paths->size(), 25u);
  EXPECT_EQ(paths->back().name, "live/0247/in");
  EXPECT_EQ(asked_, (std::vector<std::string>{"GET /v3/paths/list 0x100", "GET /v3/paths/list 1x100",
                                              "GET /v3/paths/list 2x100"}));
}

TEST_F(ControlApiTest, NoPathAtAll_IsAnEmptyList) {
  say(R"({"itemCount":0,"pageCount":0,"items":[]})");
  auto paths = list();
  ASSERT_TRUE(paths);
  EXPECT_TRUE(paths->empty());
}

TEST_F(ControlApiTest, APathThatGoesOrComesBetweenTwoPages_MakesTheListBeReadAgain) {
  for (bool goes : {true, false}) {
    asked_.clear();
    serve_names([&] {
      auto names = numbered(150);
      if (asked_.size() == 1) return names;
      if (goes) names.erase(names.begin());  // what was the first of the second page is now on the first
      else names.insert(names.begin(), "live/0/in");
      return names;
    });
    auto paths = list();
    ASSERT_TRUE(paths) << paths.error().message;
    EXPECT_EQ(paths->size(), goes ? 149u : 151u);
    EXPECT_EQ(asked_.size(), 4u);
  }
}

TEST_F(ControlApiTest, AListThatNeverStandsStill_IsAnErrorWithinTheTotalTime) {
  open({.url = Secret("http://" + server_.address()), .list_within = 200ms});
  serve_names([&] { return numbered(150 + static_cast<int>(asked_.size())); });
  Instant begun = boot_now();
  auto paths = list();
  ASSERT_FALSE(paths);
  EXPECT_EQ(paths.error().reason, "mediamtx_changing");
  EXPECT_LT(boot_now() - begun, 5s);
}

TEST_F(ControlApiTest, AnAnswerThatCannotBeRead_IsAnError) {
  for (const char* body :
       {"", "<html>", "[]", "{}", R"({"items":{}})", R"({"pageCount":1,"items":[7]})", R"({"items":[{"ready":true}]})",
        R"({"items":[{"name":"a"}]})", R"({"items":[{"name":"a","ready":"yes"}]})",
        R"({"items":[{"name":"a","ready":true,"source":"x"}]})", R"({"items":[{"name":"a","ready":true,"source":{}}]})",
        R"({"items":[{"name":"a","ready":true,"readers":3}]})",
        R"({"items":[{"name":"a","ready":true,"readers":[null]}]})", "{\"items\":[{\"name\":\"\xFF\"}]}"}) {
    say(body);
    auto paths = list();
    ASSERT_FALSE(paths) << body;
    EXPECT_EQ(paths.error().reason, "bad_answer") << body;
  }
}

TEST_F(ControlApiTest, AServerThatPromisesTooManyPages_IsAnError) {
  say(R"({"itemCount":9999999,"pageCount":99999,"items":[{"name":"a","ready":true}]})");
  auto paths = list();
  ASSERT_FALSE(paths);
  EXPECT_EQ(paths.error().reason, "mediamtx_paths");
}

TEST_F(ControlApiTest, APageThatIsTooLarge_OrComesTooLate_IsAnError) {
  open({.url = Secret("http://" + server_.address()), .answer_within = 100ms, .answer_bytes_max = 4000});
  say(std::string(5000, ' '));
  EXPECT_FALSE(list());
  hangs_ = true;
  Instant begun = boot_now();
  auto paths = list();
  ASSERT_FALSE(paths);
  EXPECT_EQ(paths.error().code, Errc::unavailable);
  EXPECT_LT(boot_now() - begun, 5s);
}

TEST_F(ControlApiTest, NobodyThere_IsAnError) {
  open({.url = Secret("http://127.0.0.1:1")});
  auto paths = list();
  ASSERT_FALSE(paths);
  EXPECT_EQ(paths.error().code, Errc::unavailable);
}

// ---- one path ----

TEST_F(ControlApiTest, OnePath_IsFoundByItsName) {
  auto all = json::parse_text(kNew);
  ASSERT_TRUE(all);
  say(json::to_text(all->at("items").at(0)));
  auto path = finish(api_->find("live/demo/in"));
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, kDemo);
  EXPECT_EQ(asked_.back(), "GET /v3/paths/get/live/demo/in");
}

TEST_F(ControlApiTest, AnAbsence_IsOneInMediaMtxsOwnWordsOnly) {
  for (const char* own : {R"({"error":"path not found"})", R"({"status":"error","error":"path not found"})"}) {
    say(own, 404);
    auto path = finish(api_->find("a"));
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_FALSE(*path);
  }
  for (const char* foreign : {"404 page not found", "", R"({"error":{"code":"not_found","message":"no"}})"}) {
    say(foreign, 404);
    EXPECT_FALSE(finish(api_->find("a"))) << foreign;
  }
  say(R"({"error":"path not found"})", 500);
  EXPECT_FALSE(finish(api_->find("a")));
}

// ---- ending connections ----

TEST_F(ControlApiTest, EveryTypeOfConnection_HasItsRoute) {
  say(R"({"status":"ok"})");
  for (auto [type, kind] : {std::pair{"rtspSession", "rtspsessions"}, {"rtspsSession", "rtspssessions"},
                            {"rtmpConn", "rtmpconns"}, {"rtmpsConn", "rtmpsconns"}, {"srtConn", "srtconns"},
                            {"webRTCSession", "webrtcsessions"}}) {
    EXPECT_TRUE(finish(api_->kick({type, "i d"}))) << type;
    EXPECT_EQ(asked_.back(), fmt::format("POST /v3/{}/kick/i d", kind));
  }
  say("");  // MediaMTX 1.13
  EXPECT_TRUE(finish(api_->kick({"rtmpConn", "1"})));
  auto source = finish(api_->kick({"rtspSource", "1"}));
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Errc::unsupported);
}

TEST_F(ControlApiTest, AConnectionThatIsGone_IsNotFound) {
  say(R"({"status":"error","error":"session not found"})", 404);
  auto kicked = finish(api_->kick({"rtspSession", "1"}));
  ASSERT_FALSE(kicked);
  EXPECT_EQ(kicked.error().code, Errc::not_found);
}

// ---- who asks ----

TEST_F(ControlApiTest, UserAndPasswordOfTheUrl_AreSent_AndAppearInNoError) {
  open({.url = Secret("http://weir:p%40s%2Fs@" + server_.address())});
  say(kNew);
  EXPECT_TRUE(list());
  EXPECT_EQ(authorization_, "Basic d2VpcjpwQHMvcw==");
  say("", 401);
  auto refused = list();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unauthorized);
  open({.url = Secret("http://weir:secret@127.0.0.1:1")});
  auto unreachable = list();
  ASSERT_FALSE(unreachable);
  auto unreadable = ControlApi::create(io_, {.url = Secret("http://weir:sec/ret@127.0.0.1:1")});
  ASSERT_FALSE(unreadable);
  for (const Error* error : {&refused.error(), &unreachable.error(), &unreadable.error()})
    for (const char* secret : {"sec", "p@s", "d2Vp"})
      EXPECT_EQ(error->message.find(secret), std::string::npos) << error->message;
}

}  // namespace
}  // namespace weir::mediamtx
