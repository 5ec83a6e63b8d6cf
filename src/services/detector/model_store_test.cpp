#include "weir/detector/model_store.hpp"

#include "fake_model_disk.hpp"
#include "loop_testing.hpp"

#include "weir/base/log.hpp"
#include "weir/net/server.hpp"
#include "weir/net/token.hpp"

#include <gtest/gtest.h>

namespace weir::detector {
namespace {

namespace asio = boost::asio;
using testing::on;

// A host of models: a control plane as far as this matters, where `tagged`.
class ModelStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    router_.add(net::Method::get, "/models/{id}", [this](net::Request& request) -> asio::awaitable<net::Response> {
      asked_.push_back(std::string(to_string(request.method)) + " " + request.param("id"));
      if (!request.header("if-none-match").empty() && request.header("if-none-match") == tag(request.param("id"))) {
        net::Response unchanged;
        unchanged.status = 304;
        co_return unchanged;
      }
      if (request.method == net::Method::head && !answers_head_)
        co_return net::Response::failure({Errc::forbidden, "no_head", "links hold for reading alone"});
      if (request.query_value("signature").value_or("") == "old")
        co_return net::Response::failure({Errc::forbidden, "signature_expired", "this link has expired"});
      auto found = files_.find(request.param("id"));
      if (found == files_.end()) co_return net::Response::failure({Errc::unavailable, "away", "it is away"});
      net::Response response;
      response.content_type = "application/octet-stream";
      response.headers = {{"ETag", tag(request.param("id"))}};
      response.body = lies_ ? "another file" : found->second;
      ++under_way_;
      most_under_way_ = std::max(most_under_way_, under_way_);
      co_await clock_.wait(10ms);
      --under_way_;
      co_return response;
    });
    router_.add(net::Method::get, "/elsewhere", [this](net::Request&) -> asio::awaitable<net::Response> {
      net::Response response;
      response.status = 302;
      response.headers = {{"Location", "http://" + server_.address() + "/models/7"}};
      co_return response;
    });
    ASSERT_TRUE(server_.listen("127.0.0.1:0"));
    make();
  }
  void make(ModelStoreConfig config = {}) {
    if (config.hosts.empty()) config.hosts = HostList::loopback();
    store_ = std::make_unique<ModelStore>(
        io_, clock_, disk_, std::move(config),
        [this](std::string sha256) -> Async<ModelFacts> {
          if (disk_.files.at(sha256).starts_with("no model"))
            co_return Error{Errc::unsupported, "MODEL_ERROR", "no model"};
          ModelFacts facts;
          facts.detector = "onnx";
          co_return facts;
        },
        [this] { return in_use_; });
  }
  std::string tag(const std::string& id) {
    std::string sum = files_.contains(id) ? net::sha256_hex(files_.at(id)) : "";
    return "\"" + (tagged_ ? sum : sum.substr(0, 10)) + "\"";
  }
  Result<StoredModel> get(const std::string& target) {
    return on(io_, store_->get(Secret("http://" + server_.address() + target)));
  }
  size_t times(const std::string& question) { return static_cast<size_t>(std::ranges::count(asked_, question)); }

  asio::io_context io_{1};
  RealClock clock_;
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, {}};
  test::FakeModelDisk disk_;
  std::set<std::string> in_use_;
  std::unique_ptr<ModelStore> store_;
  std::map<std::string, std::string> files_ = {{"7", "seven"}};
  bool tagged_ = true, answers_head_ = true, lies_ = false;
  int under_way_ = 0, most_under_way_ = 0;
  std::vector<std::string> asked_;
};

TEST_F(ModelStoreTest, FileIsFetchedOnce_AndNotAgainWhileItIsTheSame) {
  auto first = get("/models/7?signature=a");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->sha256, net::sha256_hex("seven"));
  EXPECT_EQ(first->facts.detector, "onnx");
  ASSERT_TRUE(get("/models/7?signature=b"));
  EXPECT_EQ(times("GET 7"), 1u);
  make();  // a restart
  ASSERT_TRUE(get("/models/7?signature=c"));
  EXPECT_EQ(times("GET 7"), 1u) << "the disk has it still";
  files_["7"] = "seven, but better";
  auto better = get("/models/7?signature=d");
  ASSERT_TRUE(better);
  EXPECT_EQ(better->sha256, net::sha256_hex("seven, but better"));
  EXPECT_EQ(times("GET 7"), 2u);
}

TEST_F(ModelStoreTest, HostWithTagsOfItsOwn_IsBelievedThatAFileIsTheSame) {
  tagged_ = false;
  ASSERT_TRUE(get("/models/7"));
  ASSERT_TRUE(get("/models/7"));
  EXPECT_EQ(times("GET 7"), 1u);
  answers_head_ = false;
  auto same = get("/models/7");
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->sha256, net::sha256_hex("seven"));
  EXPECT_EQ(times("GET 7"), 2u) << "asked with If-None-Match";
  disk_.files.clear();
  ASSERT_TRUE(get("/models/7"));
  EXPECT_EQ(disk_.files.size(), 1u);
}

TEST_F(ModelStoreTest, ManyWhoAskAtOnce_FetchItOnce) {
  int done = 0;
  for (int i = 0; i < 20; ++i) {
    auto ask = [](ModelStore& store, std::string url, int& count) -> asio::awaitable<void> {
      auto got = co_await store.get(Secret(std::move(url)));
      if (got) ++count;
    };
    asio::co_spawn(io_, ask(*store_, "http://" + server_.address() + "/models/7", done),
                   [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
  }
  EXPECT_TRUE(testing::runs_until(io_, [&] { return done == 20; }));
  EXPECT_EQ(times("GET 7"), 1u);
  EXPECT_EQ(most_under_way_, 1);
}

TEST_F(ModelStoreTest, FileWithAnotherChecksumThanItsHostSaid_IsNotKept) {
  lies_ = true;
  auto got = get("/models/7");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, "wrong_checksum");
  EXPECT_TRUE(disk_.files.empty());
  EXPECT_EQ(disk_.coming, 0);
}

TEST_F(ModelStoreTest, OtherHostsAndRedirects_AreRefusedWithASentence) {
  make({.hosts = *HostList::parse("plane.example")});
  auto elsewhere = get("/models/7");
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().reason, "model_host_refused");
  EXPECT_NE(elsewhere.error().message.find("detector_model_hosts"), std::string::npos);
  EXPECT_TRUE(asked_.empty());
  make();
  auto redirected = get("/elsewhere");
  ASSERT_FALSE(redirected);
  EXPECT_EQ(redirected.error().reason, "redirected");
  EXPECT_TRUE(asked_.empty());
  for (const char* url : {"nonsense", "ftp://127.0.0.1/x", "http://user:pw@127.0.0.1/models/7"})
    EXPECT_FALSE(on(io_, store_->get(Secret(url)))) << url;
}

TEST_F(ModelStoreTest, OnlyWhatMayBeBetterLater_IsUnavailable) {
  EXPECT_EQ(get("/models/8").error().code, Errc::unavailable) << "a 503";
  auto expired = get("/models/7?signature=old");
  EXPECT_EQ(expired.error().code, Errc::forbidden);
  EXPECT_EQ(expired.error().reason, "signature_expired");
  EXPECT_EQ(expired.error().message.find("signature=old"), std::string::npos);
  files_["9"] = "no model at all";
  EXPECT_EQ(get("/models/9").error().reason, "MODEL_ERROR");
  auto nobody = on(io_, store_->get(Secret("http://127.0.0.1:1/models/7")));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Errc::unavailable);
}

TEST_F(ModelStoreTest, TooLargeAFile_IsNotKept) {
  make({.bytes_max = 4});
  EXPECT_FALSE(get("/models/7"));
  EXPECT_TRUE(disk_.files.empty());
}

TEST_F(ModelStoreTest, FilesThatNobodyUses_AreRemoved_ButForTheLastFew) {
  make({.unused_max = 2});
  in_use_ = {net::sha256_hex("file 0")};
  for (int i = 0; i < 5; ++i) {
    files_[std::to_string(i)] = fmt::format("file {}", i);
    ASSERT_TRUE(get(fmt::format("/models/{}", i)));
  }
  std::set<std::string> left;
  for (const auto& [sum, file] : disk_.files) left.insert(file);
  EXPECT_EQ(left, (std::set<std::string>{"file 0", "file 3", "file 4"}));
}

}  // namespace
}  // namespace weir::detector
