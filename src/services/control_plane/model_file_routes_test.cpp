// The files of detector clusters' models, over HTTP: who may store and read them, how links are refused, what is kept.
#include "fake_store.hpp"
#include "plane_testing.hpp"

#include <deque>

namespace weir::control_plane {
namespace {

using net::Method;
using net::Role;

std::string sha256_of(std::string_view bytes) { return net::sha256_hex(bytes); }

// A body that comes in pieces; where it is broken off, the client goes away after them.
struct Pieces final : net::BodyReader {
  explicit Pieces(std::deque<std::string> given, bool broken = false) : pieces(std::move(given)), broken_off(broken) {}
  boost::asio::awaitable<Result<std::string>> read_some() override {
    if (pieces.empty() && broken_off) co_return Error{Errc::unavailable, "client_gone", "the client went away"};
    if (pieces.empty()) co_return std::string();
    std::string piece = std::move(pieces.front());
    pieces.pop_front();
    co_return piece;
  }
  std::deque<std::string> pieces;
  const bool broken_off;
};

// A control plane over the fake store, which has models 7 and 8 of tenant t-1, and 9 of t-2.
class ModelFileRoutes : public PlaneTest {
 protected:
  ModelFileRoutes() {
    router_ = net::Router();
    fake_plane_.add_routes(router_);
    boost::asio::co_spawn(io_, fake_plane_.ticker(),
                          boost::asio::bind_cancellation_slot(stop_.slot(), [this](std::exception_ptr failure) {
                            EXPECT_FALSE(failure);
                            ended_ = true;
                          }));
    for (const char* tenant : {"t-1", "t-2"})
      EXPECT_EQ(send(Method::post, "/v1/tenants", fmt::format(R"({{"tenant_id":"{}"}})", tenant)).status, 201);
    using Row = std::pair<int, const char*>;
    for (auto [id, tenant] : {Row{7, "t-1"}, Row{8, "t-1"}, Row{9, "t-2"}}) {
      auto body = fmt::format(R"({{"model_id":{},"tenant_id":"{}","name":"yolo"}})", id, tenant);
      EXPECT_EQ(send(Method::post, "/v1/models", body).status, 201);
    }
  }
  ~ModelFileRoutes() override {
    stop_.emit(boost::asio::cancellation_type::all);
    pass(1s);
    EXPECT_TRUE(ended_);
  }

  net::Response send(Method method, std::string path, std::string body) {
    return respond(method, std::move(path), std::move(body), admin_, 1s);
  }
  net::Request request_for(std::string target, const std::string& credential) {
    net::Request request;
    size_t question = target.find('?');
    if (question != std::string::npos) {
      std::istringstream pairs(target.substr(question + 1));
      for (std::string pair; std::getline(pairs, pair, '&');)
        request.query[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    }
    request.path = target.substr(0, question);
    request.headers["host"] = "plane.example:8080";
    if (!credential.empty()) request.headers["authorization"] = "Bearer " + credential;
    return request;
  }
  net::Response ask(Method method, net::Request request) {
    auto match = router_.find(method, request.path, request);
    EXPECT_TRUE(match) << request.path;
    streamed_ = match->body != nullptr;
    std::optional<net::Response> response;
    auto run = [&]() -> boost::asio::awaitable<void> { response = co_await (*match->handler)(request); };
    boost::asio::co_spawn(io_, run(), [](std::exception_ptr failure) { EXPECT_FALSE(failure); });
    pass(1s);
    EXPECT_TRUE(response) << request.path;
    return response.value_or(net::Response{500, "{}"});
  }
  net::Response put(const std::string& target, Pieces body, const std::string& credential,
                    const std::string& expected = "") {
    net::Request request = request_for(target, credential);
    request.streamed = &body;
    if (!expected.empty()) request.headers["x-content-sha256"] = expected;
    return ask(Method::put, std::move(request));
  }
  net::Response get(const std::string& target, const std::string& credential = "") {
    return ask(Method::get, request_for(target, credential));
  }
  json::object link_of(const std::string& model, const std::string& credential) {
    net::Response made = ask(Method::post, request_for("/v1/models/" + model + "/file-url", credential));
    EXPECT_EQ(made.status, 200) << made.body;
    return body_of(made);
  }
  // What a streamed answer holds.
  std::string content(const net::Response& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    std::string all;
    auto read = [&]() -> boost::asio::awaitable<void> {
      for (;;) {
        auto piece = co_await response.source.next();
        if (!piece || piece->empty()) co_return;
        all += *piece;
      }
    };
    if (response.source.next) boost::asio::co_spawn(io_, read(), [](std::exception_ptr f) { EXPECT_FALSE(f); });
    pass(1s);
    EXPECT_EQ(response.source.bytes, all.size());
    return all;
  }
  std::optional<ModelFile> row(ModelId id) { return fake_.rows().models[id].file; }
  std::string path_of(const json::object& link) { return std::string(link.at("path").as_string()); }

  test::FakeStore fake_{[this] { return clock_.wall(); }};
  net::Metrics fake_metrics_;
  ControlPlane fake_plane_{fake_,       fake_,  fake_, fake_,         pictures_,
                           model_disk_, clock_, key_,  fake_metrics_, ControlPlaneSettings{}};
  boost::asio::cancellation_signal stop_;
  bool ended_ = false, streamed_ = false;
  const std::string admin_ = token(Role::admin), viewer_ = token(Role::viewer), runner_ = token(Role::runner, "b-1"),
                    foreign_ = token(Role::admin, "a", "t-2");
};

TEST_F(ModelFileRoutes, AnUpload_IsKept_Announced_AndRead) {
  net::Response stored = put("/v1/models/7/file?name=yolo11n.onnx", Pieces({"first ", "second"}), admin_);
  ASSERT_EQ(stored.status, 200) << stored.body;
  EXPECT_TRUE(streamed_);
  std::string sum = sha256_of("first second");
  json::object file = body_of(stored).at("file").as_object();
  EXPECT_EQ(file.at("sha256").as_string(), sum);
  EXPECT_EQ(file.at("bytes"), 12);
  EXPECT_EQ(file.at("name").as_string(), "yolo11n.onnx");
  EXPECT_EQ(row(7), (ModelFile{"yolo11n.onnx", sum, 12}));
  pass(1s);
  ASSERT_FALSE(fake_.rows().events.empty());
  EXPECT_EQ(fake_.rows().events.rbegin()->second.routing_key, "model.updated.t-1.7");

  for (const std::string& credential : {admin_, runner_}) {
    net::Response loaded = get("/v1/models/7/file", credential);
    EXPECT_EQ(content(loaded), "first second");
    EXPECT_EQ(loaded.content_type, "application/octet-stream");
    EXPECT_EQ(loaded.headers[0], (std::pair<std::string, std::string>{"ETag", "\"" + sum + "\""}));
  }
  EXPECT_EQ(put("/v1/models/8/file", Pieces({"x"}), admin_).status, 200);
  EXPECT_EQ(row(8)->name, "model-8");
}

TEST_F(ModelFileRoutes, OnlyAdministratorsStore_AndViewersReadNoFile) {
  for (const std::string& credential : {viewer_, runner_, token(Role::worker)})
    EXPECT_EQ(code_of(put("/v1/models/7/file", Pieces({"x"}), credential)), "role_forbidden");
  EXPECT_EQ(put("/v1/models/7/file", Pieces({"x"}), "").status, 401);
  EXPECT_EQ(code_of(put("/v1/models/7/file", Pieces({"x"}), foreign_)), "model_not_found");
  EXPECT_EQ(code_of(put("/v1/models/10/file", Pieces({"x"}), admin_)), "model_not_found");
  EXPECT_TRUE(model_disk_.files.empty());
  EXPECT_FALSE(row(7));

  ASSERT_EQ(put("/v1/models/7/file", Pieces({"x"}), admin_).status, 200);
  EXPECT_EQ(get("/v1/models/7/file").status, 401);
  EXPECT_EQ(get("/v1/models/7/file", viewer_).status, 403);
  EXPECT_EQ(get("/v1/models/7/file", foreign_).status, 404);
  EXPECT_EQ(ask(Method::post, request_for("/v1/models/7/file-url", viewer_)).status, 403);
  EXPECT_EQ(ask(Method::post, request_for("/v1/models/7/file-url", foreign_)).status, 404);
  EXPECT_EQ(code_of(get("/v1/models/8/file", admin_)), "no_file");
  net::Response none = ask(Method::post, request_for("/v1/models/8/file-url", admin_));
  EXPECT_EQ(none.status, 409);
  EXPECT_EQ(code_of(none), "no_file");
}

TEST_F(ModelFileRoutes, WhatIsWrongWithAnUpload_IsSaid_AndTheRowStays) {
  ASSERT_EQ(put("/v1/models/7/file", Pieces({"good"}), admin_, sha256_of("good")).status, 200);
  auto before = row(7);
  net::Response other = put("/v1/models/7/file", Pieces({"bad"}), admin_, sha256_of("good"));
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(code_of(other), "wrong_checksum");
  EXPECT_EQ(code_of(put("/v1/models/7/file", Pieces({"bad"}), admin_, "abc")), "bad_field");
  EXPECT_EQ(code_of(put("/v1/models/7/file", Pieces({}), admin_)), "bad_field");
  for (const char* name : {"", ".hidden", "a/b", "a\\b", "a\nb"})
    EXPECT_EQ(code_of(put(fmt::format("/v1/models/7/file?name={}", name), Pieces({"bad"}), admin_)), "bad_field")
        << name;
  EXPECT_EQ(code_of(put("/v1/models/7/file", Pieces({"half "}, true), admin_)), "client_gone");
  model_disk_.broken = Error{Errc::unavailable, "model_files", "no space left"};
  EXPECT_EQ(put("/v1/models/7/file", Pieces({"bad"}), admin_).status, 503);
  EXPECT_EQ(row(7), before);
  EXPECT_EQ(model_disk_.files.size(), 1u);
  EXPECT_EQ(model_disk_.coming, 0);
}

TEST_F(ModelFileRoutes, ALink_IsReadWithoutAToken_ForAnHour) {
  ASSERT_EQ(put("/v1/models/7/file?name=a.onnx", Pieces({"bytes"}), admin_).status, 200);
  WallTime asked = clock_.wall();
  json::object link = link_of("7", runner_);
  std::string path = path_of(link);
  EXPECT_EQ(link.at("url").as_string(), "http://plane.example:8080" + path);
  EXPECT_EQ(link.at("sha256").as_string(), sha256_of("bytes"));
  EXPECT_EQ(link.at("bytes"), 5);
  EXPECT_EQ(link.at("name").as_string(), "a.onnx");
  auto expires = from_iso(link.at("expires_at").as_string());
  ASSERT_TRUE(expires);
  EXPECT_GE(*expires, asked + 3599s);
  EXPECT_LE(*expires, clock_.wall() + 1h);

  EXPECT_EQ(content(get(path)), "bytes");
  net::Request behind_proxy = request_for("/v1/models/7/file-url", admin_);
  behind_proxy.headers["x-forwarded-proto"] = "https";
  EXPECT_TRUE(body_of(ask(Method::post, behind_proxy)).at("url").as_string().starts_with("https://plane.example"));
  behind_proxy.headers["host"] = "evil\"><script>";
  EXPECT_EQ(code_of(ask(Method::post, behind_proxy)), "bad_field");

  clock_.run(clock_.now() + 1h);
  net::Response late = get(path);
  EXPECT_EQ(late.status, 403);
  EXPECT_EQ(code_of(late), "signature_expired");
}

TEST_F(ModelFileRoutes, ALinkThatDoesNotFit_IsRefused_AndTellsNothingElse) {
  for (const char* model : {"7", "8"})
    ASSERT_EQ(put(fmt::format("/v1/models/{}/file", model), Pieces({"of ", model}), admin_).status, 200);
  std::string path = path_of(link_of("7", admin_)), query = path.substr(path.find('?'));
  for (const std::string& wrong :
       {"/v1/models/8/file" + query, "/v1/models/9/file" + query, "/v1/models/99/file" + query,
        path.substr(0, path.size() - 1), std::string("/v1/models/7/file?signature=x"),
        std::string("/v1/models/7/file?expires=4000000000")}) {
    net::Response refused = get(wrong);
    EXPECT_EQ(refused.status, 403) << wrong;
    EXPECT_EQ(code_of(refused), "signature_invalid") << wrong;
    EXPECT_EQ(get(wrong, admin_).status, 403) << "a token does not mend a link: " << wrong;
  }
  EXPECT_EQ(content(get(path)), "of 7");
  ASSERT_EQ(put("/v1/models/7/file", Pieces({"another"}), admin_).status, 200);
  EXPECT_EQ(code_of(get(path)), "signature_invalid");
  EXPECT_EQ(content(get(path_of(link_of("7", admin_)))), "another");
}

TEST_F(ModelFileRoutes, FilesThatNoModelNames_GoWithTheNextUpload) {
  ASSERT_EQ(put("/v1/models/7/file", Pieces({"old"}), admin_).status, 200);
  ASSERT_EQ(put("/v1/models/9/file", Pieces({"shared"}), admin_).status, 200);
  ASSERT_EQ(put("/v1/models/7/file", Pieces({"shared"}), admin_).status, 200);
  EXPECT_EQ(model_disk_.files.size(), 1u) << "two models name one file";
  ASSERT_EQ(put("/v1/models/7/file", Pieces({"new"}), admin_).status, 200);
  EXPECT_EQ(content(get("/v1/models/9/file", admin_)), "shared");
  EXPECT_EQ(model_disk_.files.size(), 2u);
}

TEST_F(ModelFileRoutes, AFileThatTheDiskDoesNotHold_OrHoldsDamaged_IsUnavailable) {
  ASSERT_EQ(put("/v1/models/7/file", Pieces({"bytes"}), admin_).status, 200);
  model_disk_.files.begin()->second = "byte";
  EXPECT_EQ(code_of(get("/v1/models/7/file", admin_)), "file_damaged");
  model_disk_.files.clear();
  net::Response missing = get("/v1/models/7/file", admin_);
  EXPECT_EQ(missing.status, 503);
  EXPECT_EQ(code_of(missing), "file_missing");
}

}  // namespace
}  // namespace weir::control_plane
