// PlaneTest: a control plane over a scripted store and keys, asked as the HTTP server asks it, in virtual time.
// The test's thread only.
#pragma once

#include "scripted_keys.hpp"
#include "scripted_store.hpp"
#include "weir/control_plane/control_plane.hpp"

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

#include <sstream>

namespace weir::control_plane {

class PlaneTest : public testing::Test {
 protected:
  PlaneTest() { plane_.add_routes(router_); }

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
    clock_.run(clock_.now() + time);
    EXPECT_TRUE(response) << path;
    return response.value_or(net::Response{500, "{}"});
  }

  boost::asio::io_context io_;
  VirtualClock clock_{io_};
  net::Metrics metrics_;
  ScriptedStore store_;
  ScriptedKeys keys_;
  MemoryPictures pictures_;
  net::TokenKey key_ = *net::TokenKey::create(Secret(std::string(32, 'k')));
  ControlPlane plane_{store_, store_, store_, keys_, pictures_, clock_, key_, metrics_, ControlPlaneSettings{}};
  net::Router router_;
};

}  // namespace weir::control_plane
