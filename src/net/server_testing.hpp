// The usual server of the server's tests, and the requests they send it. See testing.hpp for the threads.
#pragma once

#include "testing.hpp"

#include <fmt/format.h>

namespace weir::net::testing {

inline asio::awaitable<Response> say_ok(Request&) { co_return Response::text("ok"); }
inline asio::awaitable<Response> echo(Request& request) { co_return Response::text(request.body); }

inline void add_usual_routes(Router& router) {
  router.add(Method::get, "/ok", say_ok);
  router.add(Method::post, "/v1/echo", echo);
  router.add(Method::get, "/v1/things/{id}", [](Request& request) -> asio::awaitable<Response> {
    co_return Response::text(request.param("id") + "|" + request.query_value("q").value_or("-"));
  });
}

struct Usual : RunningServer {
  explicit Usual(ServerLimits limits = {}, std::function<void(const Finished&)> observer = {})
      : RunningServer(limits, std::move(observer)) {
    add_usual_routes(router);
    start();
  }
};

inline std::string get(std::string_view target, std::string_view more = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", target, more);
}
inline std::string post(std::string_view body, std::string_view more = "") {
  return fmt::format("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}", body.size(), more, body);
}

}  // namespace weir::net::testing
