#include "sealed_socket.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kPieceBytes = 16 << 10;
constexpr size_t kRepliesBytesMax = 64 << 10;  // TLS's own, to a peer that makes it talk
}  // namespace

SealedSocket::SealedSocket(tcp::socket socket, std::unique_ptr<TlsSession> tls)
    : socket_(std::move(socket)), tls_(std::move(tls)) {}

// ---- reading ----
void SealedSocket::feed_now(error_code& failed) {
  std::array<char, kPieceBytes> block;
  size_t got = socket_.read_some(asio::buffer(block), failed);
  tls_->feed({block.data(), got});
}

// The block for what comes is there only once something has come: a silent connection costs none. It is waited for even
// where something has come already, so that one peer does not have the loop to itself.
asio::awaitable<void> SealedSocket::feed(error_code& failed) {
  do {
    failed.clear();
    co_await socket_.async_wait(tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, failed));
    if (!failed) feed_now(failed);
  } while (failed == asio::error::would_block || failed == asio::error::try_again);
}

asio::awaitable<void> SealedSocket::receive(error_code& failed) {
  bool closed = false;
  Status opened = tls_->decrypt(held_, closed);  // something may have come with the handshake
  if (opened && held_.empty() && !closed) {
    co_await feed(failed);
    if (failed == asio::error::eof) failed = asio::error::connection_reset;
    if (failed) co_return;
    opened = tls_->decrypt(held_, closed);
  }
  if (!opened) problem_ = opened.error();
  if (!opened || tls_->output_bytes() > kRepliesBytesMax)
    failed = asio::error::connection_reset;
  else if (closed)
    failed = asio::error::eof;
}

asio::awaitable<size_t> SealedSocket::read_some(char* to, size_t room, error_code& failed) {
  if (!tls_ && held_.empty()) co_return co_await net::read_some(socket_, to, room, failed);
  failed.clear();
  if (held_.empty()) co_await receive(failed);
  size_t got = std::min(held_.size(), room);
  std::memcpy(to, held_.data(), got);
  held_.erase(0, got);
  if (held_.empty() && held_.capacity() > kPieceBytes) held_ = {};
  if (got > 0) failed.clear();  // what came before the end is read first
  co_return got;
}

// ---- writing ----
bool SealedSocket::seal(std::string& bytes, size_t begin) {
  if (!tls_) return true;
  std::string sealed;
  Status done = tls_->encrypt(std::string_view(bytes).substr(begin), sealed);
  bytes.replace(begin, std::string::npos, sealed);
  return bool(done);
}

asio::awaitable<void> SealedSocket::write_all(std::string_view head, std::string_view body, error_code& failed,
                                              Instant write_by) {
  if (!tls_) {
    co_await net::write_all(socket_, head, body, failed, write_by);
    co_return;
  }
  failed.clear();
  // Piece by piece, so that a large body is not held twice.
  for (std::string piece(head); !failed && (!piece.empty() || !body.empty()); piece.clear()) {
    size_t more = std::min(body.size(), kPieceBytes - std::min(piece.size(), kPieceBytes));
    piece += body.substr(0, more);
    body.remove_prefix(more);
    if (seal(piece, 0))
      co_await net::write_all(socket_, piece, {}, failed, write_by);
    else
      failed = asio::error::connection_reset;
  }
}

// ---- beginning and end ----
asio::awaitable<Status> SealedSocket::shake_hands(error_code& failed) {
  failed.clear();
  while (tls_) {
    Status step = tls_->shake_hands();
    std::string output = tls_->take_output();  // where it failed, an alert that tells the peer why
    if (!output.empty()) co_await net::write_all(socket_, output, {}, failed);
    if (!step) co_return std::move(step).error();
    if (failed || tls_->established()) break;
    co_await feed(failed);
    if (failed) break;
  }
  co_return ok();
}

void SealedSocket::shutdown_send() {
  error_code ignored;
  if (tls_) socket_.write_some(asio::buffer(tls_->goodbye()), ignored);
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void SealedSocket::close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace weir::net
