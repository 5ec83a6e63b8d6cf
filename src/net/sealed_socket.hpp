// SealedSocket: a socket whose bytes are encrypted where TLS is spoken, so that nobody above it has to know.
//
// One read and one write may be under way at the same time. What TLS itself wants to say in reply goes out with the
// next write: a second writer would tear its records apart. The end of an encrypted conversation is what the peer says
// within it; where the connection ends without that word, the read fails, because anybody on the way can close a
// connection. Operations are those of socket_io.hpp, on a socket that was prepared. Loop thread only.
#pragma once

#include "socket_io.hpp"
#include "tls.hpp"

#include <memory>
#include <optional>
#include <string>

namespace weir::net {

class SealedSocket {
 public:
  explicit SealedSocket(tcp::socket socket, std::unique_ptr<TlsSession> tls = nullptr);
  SealedSocket(SealedSocket&&) = default;

  tcp::socket& raw() { return socket_; }
  tcp::socket::executor_type get_executor() { return socket_.get_executor(); }
  bool sealed() const { return tls_ != nullptr; }
  // From here on, in the clear or under another session.
  void speak(std::unique_ptr<TlsSession> tls) { tls_ = std::move(tls); }
  // The handshake, where there is one to make. An error is what TLS found; `failed` is the socket's.
  boost::asio::awaitable<Status> shake_hands(error_code& failed);
  // What TLS found wrong after the handshake, where that is why a read failed.
  const std::optional<Error>& problem() const { return problem_; }

  // 0 bytes without an error: what came was TLS's own.
  boost::asio::awaitable<size_t> read_some(char* to, size_t room, error_code& failed);
  // Is read before what still comes.
  void put_back(std::string_view received) { held_.insert(0, received); }
  boost::asio::awaitable<void> write_all(std::string_view head, std::string_view body, error_code& failed,
                                         Instant write_by = Instant::max());
  // Turns the bytes from `begin` on into those that are to be written to the raw socket; nothing where TLS is not
  // spoken. False where the conversation is over. For a writer that keeps what the kernel does not take.
  bool seal(std::string& bytes, size_t begin);

  // Tells the peer that nothing follows, if the kernel takes that at once. Not within a write, and nothing after it.
  void shutdown_send();
  void close();

 private:
  boost::asio::awaitable<void> receive(error_code& failed);
  boost::asio::awaitable<void> feed(error_code& failed);
  void feed_now(error_code& failed);

  tcp::socket socket_;
  std::unique_ptr<TlsSession> tls_;
  std::string held_;  // received and decrypted
  std::optional<Error> problem_;
};

}  // namespace weir::net
