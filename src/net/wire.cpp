#include "wire.hpp"

#include <boost/asio/co_spawn.hpp>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kDroppedBytes = 16 << 10;

std::string_view view(asio::const_buffer buffer) { return {static_cast<const char*>(buffer.data()), buffer.size()}; }
}  // namespace

Wire::Wire(SealedSocket socket)
    : socket_(std::move(socket)), last_read_(std::chrono::steady_clock::now()), last_write_(last_read_) {}

void Wire::close() { socket_.close(); }

void Wire::cut() {
  error_code ignored;
  socket_.raw().set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close();
}

void Wire::start(asio::awaitable<Moved> work, Done done) {
  asio::co_spawn(socket_.get_executor(), std::move(work),
                 [done = std::move(done)](const std::exception_ptr& thrown, Moved moved) {
                   if (thrown) std::rethrow_exception(thrown);
                   done(moved.failed, moved.bytes);
                 });
}

asio::awaitable<Wire::Moved> Wire::read(asio::mutable_buffer to) {
  Moved out;
  do {
    out.bytes = co_await socket_.read_some(static_cast<char*>(to.data()), to.size(), out.failed);
    if (!out.failed) last_read_ = std::chrono::steady_clock::now();
  } while (out.bytes == 0 && to.size() > 0 && !out.failed);
  co_return out;
}

asio::awaitable<Wire::Moved> Wire::write(asio::const_buffer first, asio::const_buffer second) {
  Moved out;
  co_await socket_.write_all(view(first), view(second), out.failed);
  if (!out.failed) {
    out.bytes = first.size() + second.size();
    last_write_ = std::chrono::steady_clock::now();
  }
  co_return out;
}

// The server closes first, and both read to the end, so that the last frame is not lost by a reset. However that ends,
// the reason of the whole was known before.
asio::awaitable<Wire::Moved> Wire::drain(bool server) {
  error_code failed;
  if (server) socket_.shutdown_send();
  std::string dropped(kDroppedBytes, '\0');
  while (!failed) co_await read_some(socket_.raw(), dropped.data(), dropped.size(), failed);
  close();
  co_return Moved{};
}

}  // namespace weir::net
