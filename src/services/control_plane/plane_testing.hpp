// PlaneTest: a control plane over a scripted store, asked as the HTTP server asks it, in virtual time.
//
// It serves every test of the routes; what such a test adds is how it asks. `start_ticker` also runs what the control
// plane does unasked.
// The test's thread only.
#pragma once

#include "fake_model_disk.hpp"
#include "scripted_store.hpp"
#include "weir/control_plane/control_plane.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

#include <sstream>

namespace weir::control_plane {

class PlaneTest : public testing::Test {
 protected:
  PlaneTest() { plane_.add_routes(router_); }

  void start_ticker() {
    auto ended = [this](std::exception_ptr failure) {
      EXPECT_FALSE(failure);
      ticking_ = false;
    };
    ticking_ = true;
    boost::asio::co_spawn(io_, plane_.ticker(), boost::asio::bind_cancellation_slot(stop_ticker_.slot(), ended));
  }
  void stop_ticker() {
    stop_ticker_.emit(boost::asio::cancellation_type::all);
    pass(1s);
    EXPECT_FALSE(ticking_);
  }
  void pass(Duration time) { clock_.run(clock_.now() + time); }

  std::string token(net::Role role, std::string sub = "r-1", std::string tenant = "", Duration life = 1h) {
    net::Claims claims{std::move(sub), role, TenantId::trusted(std::move(tenant))};
    claims.expires = clock_.wall() + life;
    return key_.sign(claims).reveal();
  }
  // What is answered within `time`. The path may have a query; the credential is a bearer's unless it names its scheme.
  net::Response respond(net::Method method, std::string path, std::string body, const std::string& credential,
                        Duration time) {
    net::Request request;
    request.method = method;
    std::istringstream target(path);
    std::getline(target, path, '?');
    for (std::string pair; std::getline(target, pair, '&');)
      request.query[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    if (path == "/v1/events") request.query["follow"] = "false";
    request.path = path;
    request.body = std::move(body);
    bool bare = credential.find(' ') == std::string::npos;
    if (!credential.empty()) request.headers["authorization"] = bare ? "Bearer " + credential : credential;
    auto match = router_.find(method, path, request);
    EXPECT_TRUE(match) << path;
    std::optional<net::Response> response;
    auto run = [&]() -> boost::asio::awaitable<void> { response = co_await (*match->handler)(request); };
    boost::asio::co_spawn(io_, run(), [](std::exception_ptr failure) { EXPECT_FALSE(failure); });
    pass(time);
    EXPECT_TRUE(response) << path;
    return response.value_or(net::Response{500, "{}"});
  }

  static json::object body_of(const net::Response& response) { return json::parse_text(response.body)->as_object(); }
  // The code of the error that a body holds, "" where it holds none.
  static std::string code_of(const net::Response& response) {
    auto parsed = json::parse_text(response.body);
    if (!parsed || !parsed->is_object() || !parsed->as_object().contains("error")) return "";
    return std::string(parsed->at("error").at("code").as_string());
  }
  static bool has_header(const net::Response& response, std::string_view name) {
    return std::ranges::any_of(response.headers, [&](const auto& header) { return header.first == name; });
  }

  boost::asio::io_context io_;
  VirtualClock clock_{io_};
  net::Metrics metrics_;
  ScriptedStore store_;
  MemoryPictures pictures_;
  test::FakeModelDisk model_disk_;
  net::TokenKey key_ = *net::TokenKey::create(Secret(std::string(32, 'k')));
  ControlPlane plane_{store_, store_, store_, store_, pictures_, model_disk_, clock_, key_, metrics_, ControlPlaneSettings{}};
  net::Router router_;
  boost::asio::cancellation_signal stop_ticker_;
  bool ticking_ = false;
};

}  // namespace weir::control_plane
