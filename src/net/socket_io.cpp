#include "socket_io.hpp"

#include "weir/base/clock.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace weir::net {

namespace asio = boost::asio;

asio::awaitable<size_t> read_some(tcp::socket& socket, char* to, size_t room, error_code& failed) {
  co_return co_await socket.async_read_some(asio::buffer(to, room), asio::redirect_error(asio::use_awaitable, failed));
}

asio::awaitable<void> write_all(tcp::socket& socket, std::string_view head, std::string_view body,
                                error_code& failed, Instant write_by) {
  while (!head.empty() || !body.empty()) {
    if (write_by != Instant::max() && boot_now() >= write_by) {
      failed = asio::error::timed_out;
      co_return;
    }
    std::array<asio::const_buffer, 2> parts = {asio::buffer(head.data(), head.size()),
                                               asio::buffer(body.data(), body.size())};
    failed.clear();
    size_t put = socket.write_some(parts, failed);
    if (failed == asio::error::would_block || failed == asio::error::try_again) {
      failed.clear();
      co_await socket.async_wait(tcp::socket::wait_write, asio::redirect_error(asio::use_awaitable, failed));
      put = 0;  // and look at the clock again
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
  tcp::socket socket(acceptor.get_executor());
  for (;;) {
    failed.clear();
    int fd = ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      tcp protocol = acceptor.local_endpoint(failed).protocol();
      if (!failed) socket.assign(protocol, fd, failed);
      if (failed) ::close(fd);
      co_return std::move(socket);
    }
    failed.assign(errno, boost::system::system_category());
    if (failed == asio::error::interrupted) continue;
    if (failed != asio::error::would_block && failed != asio::error::try_again) co_return std::move(socket);
    failed.clear();
    co_await acceptor.async_wait(tcp::acceptor::wait_read, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return std::move(socket);
  }
}

asio::awaitable<void> next_turn() { co_await asio::post(asio::use_awaitable); }

asio::awaitable<void> wait(asio::steady_timer& timer) {
  error_code ended;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ended));
}

namespace {
template <class Socket>
void open_on_exec_closed(Socket& socket, const tcp& protocol, error_code& failed) {
  failed.clear();
  int fd = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
  if (fd < 0) {
    failed.assign(errno, boost::system::system_category());
    return;
  }
  socket.assign(protocol, fd, failed);
  if (failed) ::close(fd);
}
}  // namespace

void open_private(tcp::socket& socket, const tcp& protocol, error_code& failed) {
  open_on_exec_closed(socket, protocol, failed);
}
void open_private(tcp::acceptor& acceptor, const tcp& protocol, error_code& failed) {
  open_on_exec_closed(acceptor, protocol, failed);
  if (!failed) acceptor.non_blocking(true, failed);
}

void prepare(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
}

}  // namespace weir::net
