// Talk: a kept connection to a control plane, for tests that ask many questions one after the other; and Crowd: many
// such connections that ask at the same moment.
//
// Both run their own loop inside each call and return when every answer is there. One thread.
#pragma once

#include "run.hpp"
#include "weir_process.hpp"

#include "weir/base/json.hpp"

#include <boost/asio/co_spawn.hpp>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weir::test {

inline Reply reply_of(Result<net::ClientResponse> response) {
  if (!response) return {0, nullptr, response.error().message, {}};
  Reply reply{response->status, nullptr, std::move(response->body), std::move(response->headers)};
  if (auto parsed = json::parse_text(reply.text)) reply.body = *std::move(parsed);
  return reply;
}

inline net::ClientRequest request_for(net::Method method, std::string target, const boost::json::value& body,
                                      Secret token) {
  net::ClientRequest request;
  request.method = method;
  request.target = std::move(target);
  if (!body.is_null()) request.body = json::to_text(body);
  request.bearer = std::move(token);
  return request;
}

// What an error says about the field that was wrong, or "".
inline std::string wrong_field(const Reply& reply) {
  boost::system::error_code none;
  const auto* field = reply.body.find_pointer("/error/details/field", none);
  return field != nullptr && field->is_string() ? std::string(field->get_string()) : std::string();
}

inline const boost::json::array& items_of(const Reply& reply) {
  static const boost::json::array nothing;
  const auto* object = reply.body.if_object();
  const auto* items = object != nullptr ? object->if_contains("items") : nullptr;
  return items != nullptr && items->is_array() ? items->get_array() : nothing;
}
// How many a list has; an error, which has none either, fails the test.
inline size_t count_of(const Reply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.text;
  return items_of(reply).size();
}

class Talk {
 public:
  Talk(const WeirProcess& process, Secret token) : token_(std::move(token)) {
    auto client = net::HttpClient::create(io_, process.url());
    WEIR_ASSERT(client);
    client_ = std::make_unique<net::HttpClient>(std::move(*client));
  }

  Reply send(net::ClientRequest request) { return reply_of(run(io_, client_->send(std::move(request)))); }
  Reply ask(net::Method method, std::string target, const boost::json::value& body = nullptr) {
    return send(request_for(method, std::move(target), body, token_));
  }
  // A body that need not be JSON. An answer must come within five seconds.
  Reply say(net::Method method, std::string target, std::string text) {
    net::ClientRequest request = request_for(method, std::move(target), nullptr, token_);
    request.body = std::move(text);
    request.timeout = 5s;
    return send(std::move(request));
  }
  Reply get(std::string target) { return ask(net::Method::get, std::move(target)); }
  Reply del(std::string target) { return ask(net::Method::del, std::move(target)); }
  Reply post(std::string target, const boost::json::value& body = nullptr) {
    return ask(net::Method::post, std::move(target), body);
  }
  Reply put(std::string target, const boost::json::value& body) {
    return ask(net::Method::put, std::move(target), body);
  }
  Reply patch(std::string target, const boost::json::value& body) {
    return ask(net::Method::patch, std::move(target), body);
  }

 private:
  boost::asio::io_context io_{1};
  const Secret token_;
  std::unique_ptr<net::HttpClient> client_;
};

class Crowd {
 public:
  void add(const WeirProcess& process) {
    auto client = net::HttpClient::create(io_, process.url());
    WEIR_ASSERT(client);
    clients_.push_back(std::make_unique<net::HttpClient>(std::move(*client)));
  }
  size_t size() const { return clients_.size(); }

  // The n-th request goes over the n-th connection, all at once.
  std::vector<Reply> ask_all(std::vector<net::ClientRequest> requests) {
    WEIR_ASSERT(requests.size() <= clients_.size());
    std::vector<Reply> replies(requests.size());
    io_.restart();
    for (size_t i = 0; i < requests.size(); ++i)
      boost::asio::co_spawn(io_, ask(*clients_[i], std::move(requests[i]), replies[i]), [](std::exception_ptr failed) {
        if (failed) std::rethrow_exception(failed);
      });
    io_.run();
    return replies;
  }

 private:
  static boost::asio::awaitable<void> ask(net::HttpClient& client, net::ClientRequest request, Reply& reply) {
    auto response = co_await client.send(std::move(request));
    reply = reply_of(std::move(response));
  }

  boost::asio::io_context io_{1};
  std::vector<std::unique_ptr<net::HttpClient>> clients_;
};

}  // namespace weir::test
