// TcpLink: the TCP connection underneath FFmpeg's RTMP or RTSP, which FFmpeg does not hand out.
//
// Found among this process's own descriptors by the port of its peer, and held by a descriptor of our own, so that it
// can be looked at and ended from any thread while FFmpeg uses it.
#pragma once

#include "weir/forward/flow.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace weir::ffmpeg {

class TcpLink {
 public:
  // Descriptors of connections to that port.
  static std::vector<int> all(int peer_port);
  // A connection that was not among those `before`: the hub's connection may lead to the same port. Null where there
  // is none.
  static std::unique_ptr<TcpLink> find(int peer_port, const std::vector<int>& before);
  // Every connection to that port, found or not yet found, is reset at once; what was not sent is thrown away.
  static void reset_all(int peer_port);

  explicit TcpLink(int fd) : fd_(fd) {}  // takes it over
  TcpLink(const TcpLink&) = delete;
  ~TcpLink();

  forward::Progress progress() const;
  enum class State { open, ended, reset };  // ended: in good order, by the peer
  State state() const;
  // Ends the connection in good order if the peer takes the rest within that time, else resets it: a peer that still has
  // minutes of old data before it would take this publisher for alive.
  void finish(Duration within, const std::function<bool()>& may_send) const;
  // How much the kernel keeps of what the peer has not taken, as far as this user may say that.
  void hold_at_most(int bytes) const;
  // Whether so much more fits. Always true where the kernel holds little, so that even a packet larger than the whole
  // buffer leaves at last. The bytes that are asked for count as written.
  bool has_room(size_t bytes);
  // What is written leaves at once where it is not corked, also while earlier bytes are not acknowledged.
  void send_at_once() const;
  // While corked, what is written is gathered; uncorking sends it without waiting for more.
  void cork(bool on) const;

 private:
  const int fd_;
  size_t known_room_ = 0;  // the kernel need not be asked again for so many bytes
};

}  // namespace weir::ffmpeg
