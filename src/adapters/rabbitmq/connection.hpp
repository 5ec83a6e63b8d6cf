// Connection: one connection with a broker, with one channel. Private to this folder.
//
// Opening it and asking the broker for something (`declare_events`, `listen`) may block for a few times
// `connect_within`. It has a small send buffer, and closing it throws away what the kernel has not sent. The first
// error ends it: it is thrown away and another one opened. The library sends heartbeats while `read` is called often
// enough. One thread, but for `reset`.
#pragma once

#include "weir/rabbitmq/rabbit_bus.hpp"

#include <amqp.h>

#include <variant>

namespace weir::rabbitmq {

inline constexpr std::string_view kStream = "weir.events";

Error unavailable(std::string_view why);

// What the broker says unasked.
struct Answered {  // to events that were published
  std::uint64_t number = 0;
  bool all_up_to = false;
  bool accepted = false;
};
struct Returned {  // no queue takes the event
  std::string event_id;
};
struct Blocked {  // because the broker is short of memory or disk
  bool blocked = false;
  std::string why = {};
};
using Word = std::variant<Answered, Returned, Blocked>;

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const Config& config);
  ~Connection();
  Connection(const Connection&) = delete;

  int fd() const;
  // The exchanges, and the stream in which what is published to them is kept. What is there already stays as it is.
  Status declare_events();
  // From here on the broker confirms what is published.
  Status begin_confirms();
  // Blocks where the kernel takes no more; it always takes some bytes after `takes_more`.
  Status publish(const event::Event& event);
  bool takes_more() const;
  // The next word that has come; none where none has. It does not wait.
  Result<std::optional<Word>> read();
  // Begins to read the stream; `offset` is an AMQP value of x-stream-offset.
  Status listen(amqp_field_value_t offset);
  // The next event of the stream; none where none comes within `wait`. It is called after `listen` only.
  struct Heard {
    DeliveredEvent event;
    std::int64_t offset = 0;
    std::uint64_t delivery = 0;
  };
  Result<std::optional<Heard>> hear(Duration wait);
  Status acknowledge(std::uint64_t delivery);
  // Takes leave of the broker, which otherwise logs a connection that was lost.
  void say_goodbye();

 private:
  explicit Connection(const Config& config);
  Status connect();
  Status log_in();
  Status checked(const amqp_rpc_reply_t& reply, std::string_view what) const;
  Status answered(std::string_view what) const;
  Status declare_stream();
  Result<std::optional<Word>> read_method(const amqp_frame_t& frame);
  const std::string& exchange_of(const std::string& topic) const;
  std::string topic_of(std::string_view exchange) const;

  const Config& config_;
  std::map<std::string, std::string> exchanges_;  // by topic
  const amqp_connection_state_t state_;
};

// Ends the connection behind this descriptor at once, and throws away what the kernel has not sent. Any thread, while
// the descriptor is open.
void reset(int fd);

}  // namespace weir::rabbitmq
