// Wire: the connection below a WebSocket, as Beast wants to read and write one.
//
// Beast's operations meet it through functions of one type, so that Asio's own are compiled once and not anew for each
// of Beast's. One read and one write may be under way at the same time. Loop thread only: what an operation completes
// with is delivered on the executor of the socket.
#pragma once

#include "sealed_socket.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/role.hpp>

#include <array>
#include <functional>
#include <memory>

namespace weir::net {

class Wire {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Done = std::function<void(error_code, size_t)>;
  using Moment = std::chrono::steady_clock::time_point;

  explicit Wire(SealedSocket socket);
  executor_type get_executor() { return socket_.get_executor(); }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& to, Handler&& handler) {
    start(read(nonempty<boost::asio::mutable_buffer, 1>(to)[0]), erased(std::forward<Handler>(handler)));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& from, Handler&& handler) {
    auto parts = nonempty<boost::asio::const_buffer, 2>(from);
    start(write(parts[0], parts[1]), erased(std::forward<Handler>(handler)));
  }
  template <class Handler>
  friend void async_teardown(boost::beast::role_type role, Wire& wire, Handler&& handler) {
    auto done = [shared = share(std::forward<Handler>(handler))](error_code failed, size_t) { (*shared)(failed); };
    wire.start(wire.drain(role == boost::beast::role_type::server), std::move(done));
  }
  friend void beast_close_socket(Wire& wire) { wire.close(); }

  void close();
  // Closes at once: bytes that the kernel still holds are thrown away.
  void cut();
  Moment last_read() const { return last_read_; }
  Moment last_write() const { return last_write_; }

 private:
  struct Moved {
    error_code failed = {};
    size_t bytes = 0;
  };
  template <class Handler>
  static auto share(Handler&& handler) {
    return std::make_shared<std::decay_t<Handler>>(std::forward<Handler>(handler));
  }
  template <class Handler>
  static Done erased(Handler&& handler) {
    return [shared = share(std::forward<Handler>(handler))](error_code failed, size_t bytes) {
      (*shared)(failed, bytes);
    };
  }
  // The first parts that hold anything: "some" of a sequence is enough.
  template <class Buffer, size_t kParts, class Buffers>
  static std::array<Buffer, kParts> nonempty(const Buffers& all) {
    std::array<Buffer, kParts> out;
    size_t count = 0;
    auto end = boost::asio::buffer_sequence_end(all);
    for (auto at = boost::asio::buffer_sequence_begin(all); at != end && count < kParts; ++at)
      if (Buffer part = *at; part.size() > 0) out[count++] = part;
    return out;
  }
  void start(boost::asio::awaitable<Moved> work, Done done);
  boost::asio::awaitable<Moved> read(boost::asio::mutable_buffer to);
  boost::asio::awaitable<Moved> write(boost::asio::const_buffer first, boost::asio::const_buffer second);
  boost::asio::awaitable<Moved> drain(bool server);

  SealedSocket socket_;
  Moment last_read_, last_write_;
};

}  // namespace weir::net
