#include "weir/ws_detector/ws_link.hpp"

#include "weir/net/client.hpp"

#include <algorithm>

namespace weir::ws_detector {

namespace asio = boost::asio;

namespace {

class WsSocket final : public WorkerSocket {
 public:
  explicit WsSocket(net::WebSocket socket) : socket_(std::move(socket)) {}
  // A worker may send its texts as binary messages.
  asio::awaitable<std::optional<std::string>> receive() override {
    auto message = co_await socket_.receive();
    if (!message) co_return std::nullopt;
    co_return std::move(message->bytes);
  }
  Status post(std::string text) override { return socket_.post({std::move(text), false}); }
  void cut() override { socket_.cut(); }
  bool orderly() const override {
    return socket_.end() && socket_.end()->why == net::WebSocketEnd::Why::closed_by_peer;
  }
  std::string reason() const override {
    if (!socket_.end()) return "the connection is open";
    const net::WebSocketEnd& end = *socket_.end();
    return fmt::format("{} (code {}{}{})", why(end.why), end.code, end.text.empty() ? "" : ": ", end.text);
  }

 private:
  static std::string_view why(net::WebSocketEnd::Why why) {
    using Why = net::WebSocketEnd::Why;
    switch (why) {
      case Why::closed_by_peer: return "the worker closed the connection";
      case Why::closed_here: return "the connection was closed here";
      case Why::silent: return "the worker answered no ping";
      case Why::too_large: return "the worker sent a message that is too large";
      case Why::bad_message: return "the worker broke the WebSocket protocol";
      case Why::too_slow: return "the worker did not take what it was sent";
      case Why::lost: break;
    }
    return "the connection broke";
  }
  net::WebSocket socket_;
};

// A worker's address in two parts: which server, and what is asked of it, exactly as it was configured. Many servers
// know their WebSocket by one spelling only: "/ws" is not "/ws/".
struct WorkerAddress {
  std::string server, target;
};
WorkerAddress split(const std::string& url) {
  size_t scheme = url.find("//");
  size_t end = std::min(url.find_first_of("/?", scheme == std::string::npos ? 0 : scheme + 2), url.size());
  std::string target = url.substr(end);
  return {url.substr(0, end), target.starts_with('/') ? target : "/" + target};
}

}  // namespace

asio::awaitable<Result<std::unique_ptr<WorkerSocket>>> WsLink::dial(std::string worker) {
  WorkerAddress address = split(worker);
  CO_TRY(client, net::HttpClient::create(io_, address.server, {.ca_file = config_.ca_file}));
  net::ClientRequest request{.target = address.target, .bearer = config_.token, .timeout = config_.dial_within};
  CO_TRY(socket, co_await client.web_socket(std::move(request), config_.limits));
  co_return std::unique_ptr<WorkerSocket>(new WsSocket(std::move(socket)));
}

}  // namespace weir::ws_detector
