#include "socket_io.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>

namespace weir::net {

namespace asio = boost::asio;

asio::awaitable<size_t> read_some(tcp::socket& socket, char* to, size_t room, error_code& failed) {
  co_return co_await socket.async_read_some(asio::buffer(to, room), asio::redirect_error(asio::use_awaitable, failed));
}

asio::awaitable<void> write_all(tcp::socket& socket, std::string_view head, std::string_view body,
                                error_code& failed) {
  while (!head.empty() || !body.empty()) {
    std::array<asio::const_buffer, 2> parts = {asio::buffer(head.data(), head.size()),
                                               asio::buffer(body.data(), body.size())};
    failed.clear();
    size_t put = socket.write_some(parts, failed);
    if (failed == asio::error::would_block || failed == asio::error::try_again) {
      failed.clear();
      put = co_await socket.async_write_some(parts, asio::redirect_error(asio::use_awaitable, failed));
    }
    if (failed) co_return;
    size_t of_head = std::min(put, head.size());
    head.remove_prefix(of_head);
    body.remove_prefix(put - of_head);
  }
}

asio::awaitable<void> connect(tcp::socket& socket, const tcp::endpoint& to, error_code& failed) {
  co_await socket.async_connect(to, asio::redirect_error(asio::use_awaitable, failed));
}

asio::awaitable<tcp::socket> accept(tcp::acceptor& acceptor, error_code& failed) {
  co_return co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
}

asio::awaitable<void> wait(asio::steady_timer& timer) {
  error_code ended;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ended));
}

void prepare(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
}

}  // namespace weir::net
