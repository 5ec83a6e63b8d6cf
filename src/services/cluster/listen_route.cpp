#include "listen_route.hpp"

#include "admission.hpp"
#include "topics.hpp"

#include "weir/base/log.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr net::WebSocketLimits kLimits{.message_bytes_max = 256 << 10, .queue_bytes_max = 2 << 20, .compress = false};
constexpr size_t kRoomBytes = 512 << 10;  // what it missed is told while less than this is queued

struct Session {
  Front& front;
  net::Metrics& metrics;
  std::string after;
  Wishes wishes;
  bool may_answer;
  std::string remote;
};

Result<Wishes> read_wishes(const net::Request& request) {
  Wishes out;
  if (auto text = request.query_value("subscription")) {
    out.subscriptions.emplace();
    for (size_t begin = 0; begin <= text->size();) {
      size_t end = std::min(text->find(',', begin), text->size());
      TRY(id, Identifier::parse(std::string_view(*text).substr(begin, end - begin)));
      out.subscriptions->insert(id.text());
      begin = end + 1;
    }
  }
  auto events = request.query_value("events");
  if (events && *events != "true" && *events != "false")
    return Error{Errc::invalid, "bad_request", "events: must be true or false", {{"field", "events"}}};
  out.events = events != "false";
  return out;
}

void log_end(const net::WebSocket& socket, const Session& session) {
  bool cut = socket.end() && socket.end()->why == net::WebSocketEnd::Why::too_slow;
  if (cut)
    session.metrics.counter("weir_cluster_listeners_cut_total", "Products that did not take what they were told.").add();
  log::info("cluster.listener_gone", cut ? "it did not take what it was told" : "").with(kTopic, kClusterTopic)
      .with("remote", session.remote).with("code", socket.end() ? socket.end()->code : 0);
}

Async<Nothing> obey(const std::string& text, const Session& session, ProductTalk& talk, net::WebSocket& socket) {
  CO_TRY(said, read_product_message(text));
  if (auto* listen = std::get_if<Listen>(&said))
    co_return socket.post({talk.listen_to(std::move(listen->subscriptions)), false});
  if (!session.may_answer) co_return role_forbidden();
  co_return co_await session.front.answer_patch(std::get<PatchSessionResult>(std::move(said)));
}

// From the first message to the end of the connection.
asio::awaitable<void> converse(Session session, net::WebSocket& socket) {
  // An answer on its way to the master is not given up with the connection; it ends within seconds by itself.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  log::info("cluster.listener_came").with(kTopic, kClusterTopic).with("remote", session.remote)
      .with("after", session.after);
  ProductTalk talk(std::move(session.wishes));
  (void)socket.post({talk.greeting(), false});
  auto tell = [&](const Notice& notice) {
    if (auto words = talk.write(notice)) (void)socket.post({*std::move(words), false});
  };
  auto hearing = session.front.listen(session.after, tell, [&] { return socket.queued_bytes() < kRoomBytes; });
  while (auto message = co_await socket.receive()) {
    Status done = co_await obey(message->bytes, session, talk, socket);
    if (!done) (void)socket.post({write_refusal(done.error()), false});
  }
  log_end(socket, session);
}

}  // namespace

Result<net::Response> listen_response(Front& front, net::Metrics& metrics, const net::Request& request, bool may_answer) {
  TRY(wishes, read_wishes(request));
  Session session{front, metrics, request.query_value("after").value_or(""), std::move(wishes), may_answer,
                  request.remote};
  net::Response response;
  response.socket_limits = kLimits;
  response.socket = [session = std::move(session)](net::WebSocket& socket) { return converse(session, socket); };
  return response;
}

}  // namespace weir::cluster
