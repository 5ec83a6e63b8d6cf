// Sender: the thread that owns the connection for publishing, and the gate. Private to this folder.
//
// It keeps a connection all the time and opens a new one after a pause. A publication is answered on this thread.
// `submit` and `give_up` may be called from any thread, and neither waits for the broker.
#pragma once

#include "connection.hpp"
#include "outbox.hpp"

#include "weir/base/clock.hpp"

#include <atomic>
#include <mutex>
#include <thread>

namespace weir::rabbitmq {

class Sender {
 public:
  explicit Sender(const Config& config);  // the configuration outlives it
  ~Sender();
  Sender(const Sender&) = delete;

  void submit(PublicationPtr publication);
  // When it returns, no byte of the publication is written any more, and none that the kernel holds is sent.
  void give_up(Publication& publication);

 private:
  void run();
  void take_new();
  void connect();
  void drop(const Error& why);
  Status write();
  bool may_begin(Publication& publication);
  Status read();
  Status take(const Word& word);
  void show_alarm(bool now, const std::string& why);
  void wait();
  bool may_write() const { return connection_ && !blocked_ && boot_now() >= resume_at_; }

  // Constant after construction.
  const Config& config_;
  int wake_fd_ = -1;
  // Any thread.
  std::atomic<bool> stop_ = false;
  std::mutex gate_;
  std::deque<PublicationPtr> fresh_;  // under the gate
  size_t publications_ = 0;           // under the gate; that wait or are under way
  int open_fd_ = -1;                  // under the gate; what `give_up` may reset
  // The sender's thread only.
  Outbox outbox_;
  std::unique_ptr<Connection> connection_;
  bool blocked_ = false;  // this connection
  bool alarmed_ = false;  // the broker, as the log was told
  Instant resume_at_{};   // after a refusal
  int failures_ = 0;      // since an event was confirmed
  Instant retry_at_{};
  Error down_;  // why there is no connection
  std::thread thread_;
};

}  // namespace weir::rabbitmq
