#include "wire.hpp"

#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <cstring>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kSealedBytes = 16 << 10;

std::string_view view(asio::const_buffer buffer) { return {static_cast<const char*>(buffer.data()), buffer.size()}; }
}  // namespace

Wire::Wire(tcp::socket socket, std::unique_ptr<TlsSession> tls, std::string received)
    : socket_(std::move(socket)), tls_(std::move(tls)), received_(std::move(received)),
      last_read_(std::chrono::steady_clock::now()), last_write_(last_read_) {}

void Wire::close() {
  error_code ignored;
  socket_.close(ignored);
}

void Wire::cut() {
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
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
  char* place = static_cast<char*>(to.data());
  if (!tls_ && received_.empty()) {
    out.bytes = co_await read_some(socket_, place, to.size(), out.failed);
    last_read_ = std::chrono::steady_clock::now();
    co_return out;
  }
  while (received_.empty() && !out.failed) co_await receive_sealed(out.failed);
  out.bytes = std::min(received_.size(), to.size());
  std::memcpy(place, received_.data(), out.bytes);
  received_.erase(0, out.bytes);
  if (out.bytes > 0) out.failed.clear();  // what came before the end is read first
  co_return out;
}

// What TLS itself wants to say in reply goes out with the next write: a second writer would tear its records apart.
asio::awaitable<void> Wire::receive_sealed(error_code& failed) {
  bool closed = false;
  Status opened = tls_->decrypt(received_, closed);  // something may have come with the handshake
  if (opened && received_.empty() && !closed) {
    std::string sealed(kSealedBytes, '\0');
    size_t got = co_await read_some(socket_, sealed.data(), sealed.size(), failed);
    if (failed) co_return;
    last_read_ = std::chrono::steady_clock::now();
    tls_->feed(std::string_view(sealed).substr(0, got));
    opened = tls_->decrypt(received_, closed);
  }
  if (!opened)
    failed = asio::error::connection_reset;
  else if (closed)
    failed = asio::error::eof;
}

asio::awaitable<Wire::Moved> Wire::write(asio::const_buffer first, asio::const_buffer second) {
  Moved out;
  if (tls_) {
    Result<std::string> sealed = tls_->encrypt(view(first), view(second));
    if (!sealed)
      out.failed = asio::error::connection_reset;
    else
      co_await write_all(socket_, *sealed, {}, out.failed);
  } else {
    co_await write_all(socket_, view(first), view(second), out.failed);
  }
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
  if (server) socket_.shutdown(tcp::socket::shutdown_send, failed);
  std::string dropped(kSealedBytes, '\0');
  while (!failed) co_await read_some(socket_, dropped.data(), dropped.size(), failed);
  close();
  co_return Moved{};
}

}  // namespace weir::net
