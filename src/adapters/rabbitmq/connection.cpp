#include "connection.hpp"

#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <fmt/format.h>
#include <openssl/ssl.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>

namespace weir::rabbitmq {

namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr int kFrameBytesMax = 131072;
constexpr int kSendBufferBytes = 16 << 10;  // what a killed process may still send after its end
constexpr int kPrefetch = 200;              // events of the stream that wait for a listener
// How much and how long the stream keeps: what the control plane's own log keeps, within a bound on the disk.
constexpr std::string_view kStreamAge = "1h";
constexpr std::int64_t kStreamBytes = 1LL << 30, kSegmentBytes = 50LL << 20;

amqp_bytes_t bytes_of(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
std::string_view view_of(amqp_bytes_t bytes) { return {static_cast<const char*>(bytes.bytes), bytes.len}; }

timeval timeval_of(Duration d) {
  auto whole = std::chrono::floor<std::chrono::seconds>(d);
  return {.tv_sec = static_cast<time_t>(whole.count()), .tv_usec = static_cast<suseconds_t>((d - whole).count())};
}

amqp_field_value_t value_of(std::string_view text) {
  amqp_field_value_t out{};
  out.kind = AMQP_FIELD_KIND_UTF8;
  out.value.bytes = bytes_of(text);
  return out;
}
amqp_field_value_t value_of(std::int64_t number) {
  amqp_field_value_t out{};
  out.kind = AMQP_FIELD_KIND_I64;
  out.value.i64 = number;
  return out;
}
amqp_field_value_t value_of(amqp_table_t table) {
  amqp_field_value_t out{};
  out.kind = AMQP_FIELD_KIND_TABLE;
  out.value.table = table;
  return out;
}
amqp_field_value_t yes() {
  amqp_field_value_t out{};
  out.kind = AMQP_FIELD_KIND_BOOLEAN;
  out.value.boolean = 1;
  return out;
}
amqp_table_entry_t entry(std::string_view name, amqp_field_value_t value) { return {bytes_of(name), value}; }
template <size_t n>
amqp_table_t table_of(std::array<amqp_table_entry_t, n>& entries) {
  return {static_cast<int>(n), entries.data()};
}

std::string said(amqp_method_number_t method, void* decoded) {
  if (method == AMQP_CONNECTION_CLOSE_METHOD)
    return std::string(view_of(static_cast<amqp_connection_close_t*>(decoded)->reply_text));
  if (method == AMQP_CHANNEL_CLOSE_METHOD)
    return std::string(view_of(static_cast<amqp_channel_close_t*>(decoded)->reply_text));
  if (method == AMQP_BASIC_CANCEL_METHOD) return "the broker ended the reading of " + std::string(kStream);
  return fmt::format("the broker said something unexpected ({:#x})", method);
}

}  // namespace

Error unavailable(std::string_view why) {
  return {Errc::unavailable, "bus_unavailable", fmt::format("RabbitMQ: {}", why)};
}

void reset(int fd) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  ::connect(fd, &nobody, sizeof nobody);
}

Connection::Connection(const Config& config)
    : config_(config), exchanges_(config.exchanges), state_(amqp_new_connection()) {
  for (std::string_view topic : {event::kDetectionsTopic, event::kStatusTopic, event::kControlTopic})
    exchanges_.emplace(topic, topic);
}

Connection::~Connection() { amqp_destroy_connection(state_); }

int Connection::fd() const { return amqp_get_sockfd(state_); }

const std::string& Connection::exchange_of(const std::string& topic) const { return exchanges_.find(topic)->second; }

std::string Connection::topic_of(std::string_view exchange) const {
  for (const auto& [topic, name] : exchanges_)
    if (name == exchange) return topic;
  return std::string(exchange);
}

Status Connection::checked(const amqp_rpc_reply_t& reply, std::string_view what) const {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return ok();
  std::string why = reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION    ? said(reply.reply.id, reply.reply.decoded)
                    : reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION ? amqp_error_string2(reply.library_error)
                                                                          : "no answer";
  return unavailable(fmt::format("{}: {}", what, why));
}
Status Connection::answered(std::string_view what) const { return checked(amqp_get_rpc_reply(state_), what); }

Result<std::unique_ptr<Connection>> Connection::open(const Config& config) {
  std::unique_ptr<Connection> made(new Connection(config));
  TRY(connected, made->connect());
  TRY(in, made->log_in());
  return made;
}

Status Connection::connect() {
  const Address& at = config_.address;
  amqp_socket_t* socket = at.tls ? amqp_ssl_socket_new(state_) : amqp_tcp_socket_new(state_);
  if (socket == nullptr) return unavailable("out of memory");
  if (at.tls) {
    SSL_CTX_set_default_verify_paths(static_cast<SSL_CTX*>(amqp_ssl_socket_get_context(socket)));
    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 1);
    amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
    if (!config_.ca_file.empty() && amqp_ssl_socket_set_cacert(socket, config_.ca_file.c_str()) != AMQP_STATUS_OK)
      return unavailable(fmt::format("the certificates in {} cannot be read", config_.ca_file));
  }
  timeval limit = timeval_of(config_.connect_within);
  amqp_set_handshake_timeout(state_, &limit);
  amqp_set_rpc_timeout(state_, &limit);
  int failed = amqp_socket_open_noblock(socket, at.host.c_str(), at.port, &limit);
  if (failed != AMQP_STATUS_OK) return unavailable(fmt::format("{}: {}", shown(at), amqp_error_string2(failed)));
  linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::setsockopt(fd(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
  int no_delay = 1;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
  return ok();
}

Status Connection::log_in() {
  std::array capabilities{entry("publisher_confirms", yes()), entry("basic.nack", yes()),
                          entry("connection.blocked", yes()), entry("consumer_cancel_notify", yes()),
                          entry("authentication_failure_close", yes())};
  std::array properties{entry("product", value_of("Weir")), entry("capabilities", value_of(table_of(capabilities)))};
  amqp_table_t about = table_of(properties);
  const Address& at = config_.address;
  auto heartbeat = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(config_.heartbeat).count());
  TRY(in, checked(amqp_login_with_properties(state_, at.vhost.c_str(), 0, kFrameBytesMax, heartbeat, &about,
                                             AMQP_SASL_METHOD_PLAIN, at.user.c_str(), at.password.reveal().c_str()),
                  "login"));
  amqp_channel_open(state_, kChannel);
  return answered("channel");
}

Status Connection::declare_events() {
  for (const auto& [topic, exchange] : exchanges_) {
    amqp_exchange_declare(state_, kChannel, bytes_of(exchange), bytes_of("topic"), 0, 1, 0, 0, amqp_empty_table);
    TRY(declared, answered("exchange " + exchange));
  }
  TRY(stream, declare_stream());
  for (const auto& [topic, exchange] : exchanges_) {
    amqp_queue_bind(state_, kChannel, bytes_of(kStream), bytes_of(exchange), bytes_of("#"), amqp_empty_table);
    TRY(bound, answered("binding of " + exchange));
  }
  return ok();
}

Status Connection::declare_stream() {
  std::array arguments{entry("x-queue-type", value_of("stream")), entry("x-max-age", value_of(kStreamAge)),
                       entry("x-max-length-bytes", value_of(kStreamBytes)),
                       entry("x-stream-max-segment-size-bytes", value_of(kSegmentBytes))};
  amqp_queue_declare(state_, kChannel, bytes_of(kStream), 0, 1, 0, 0, table_of(arguments));
  return answered("stream " + std::string(kStream));
}

Status Connection::begin_confirms() {
  amqp_confirm_select(state_, kChannel);
  return answered("confirms");
}

bool Connection::takes_more() const {
  pollfd socket{fd(), POLLOUT, 0};
  return ::poll(&socket, 1, 0) > 0;
}

Status Connection::publish(const event::Event& event) {
  amqp_basic_properties_t about{};
  about._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  about.delivery_mode = AMQP_DELIVERY_PERSISTENT;
  about.content_type = bytes_of("application/json");
  about.message_id = bytes_of(event.event_id);
  int failed = amqp_basic_publish(state_, kChannel, bytes_of(exchange_of(event.topic)), bytes_of(event.routing_key), 1,
                                  0, &about, bytes_of(event.payload));
  if (failed != AMQP_STATUS_OK) return unavailable(amqp_error_string2(failed));
  return ok();
}

Result<std::optional<Word>> Connection::read() {
  for (;;) {
    amqp_maybe_release_buffers(state_);
    timeval none{};
    amqp_frame_t frame;
    int got = amqp_simple_wait_frame_noblock(state_, &frame, &none);
    if (got == AMQP_STATUS_TIMEOUT) return std::optional<Word>();
    if (got != AMQP_STATUS_OK) return unavailable(amqp_error_string2(got));
    if (frame.frame_type != AMQP_FRAME_METHOD) continue;
    return read_method(frame);
  }
}

Result<std::optional<Word>> Connection::read_method(const amqp_frame_t& frame) {
  void* decoded = frame.payload.method.decoded;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<amqp_basic_ack_t*>(decoded);
      return std::optional<Word>(Answered{ack->delivery_tag, ack->multiple != 0, true});
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<amqp_basic_nack_t*>(decoded);
      return std::optional<Word>(Answered{nack->delivery_tag, nack->multiple != 0, false});
    }
    case AMQP_BASIC_RETURN_METHOD: {
      amqp_message_t message;
      TRY(whole, checked(amqp_read_message(state_, frame.channel, &message, 0), "an event that came back"));
      Returned back{std::string(view_of(message.properties.message_id))};
      amqp_destroy_message(&message);
      return std::optional<Word>(std::move(back));
    }
    case AMQP_CONNECTION_BLOCKED_METHOD:
      return std::optional<Word>(
          Blocked{true, std::string(view_of(static_cast<amqp_connection_blocked_t*>(decoded)->reason))});
    case AMQP_CONNECTION_UNBLOCKED_METHOD: return std::optional<Word>(Blocked{false});
    default: return unavailable(said(frame.payload.method.id, decoded));
  }
}

Status Connection::listen(amqp_field_value_t offset) {
  amqp_basic_qos(state_, kChannel, 0, kPrefetch, 0);
  TRY(bounded, answered("prefetch"));
  std::array arguments{entry("x-stream-offset", offset)};
  amqp_basic_consume(state_, kChannel, bytes_of(kStream), amqp_empty_bytes, 0, 0, 0, table_of(arguments));
  return answered("reading " + std::string(kStream));
}

Result<std::optional<Connection::Heard>> Connection::hear(Duration wait) {
  amqp_maybe_release_buffers(state_);
  timeval limit = timeval_of(wait);
  amqp_envelope_t envelope;
  amqp_rpc_reply_t reply = amqp_consume_message(state_, &envelope, &limit, 0);
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_TIMEOUT)
    return std::optional<Heard>();
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_UNEXPECTED_STATE) {
    // Something else than an event: the connection is blocked or not any more, which does not concern a reader, or
    // ends.
    TRY(word, read());
    return std::optional<Heard>();
  }
  TRY(whole, checked(reply, "reading"));
  Heard heard;
  heard.delivery = envelope.delivery_tag;
  heard.event.topic = topic_of(view_of(envelope.exchange));
  heard.event.routing_key = view_of(envelope.routing_key);
  heard.event.event_id = view_of(envelope.message.properties.message_id);
  heard.event.payload = view_of(envelope.message.body);
  const amqp_table_t& headers = envelope.message.properties.headers;
  if ((envelope.message.properties._flags & AMQP_BASIC_HEADERS_FLAG) != 0)
    for (int n = 0; n < headers.num_entries; ++n)
      if (view_of(headers.entries[n].key) == "x-stream-offset") heard.offset = headers.entries[n].value.value.i64;
  amqp_destroy_envelope(&envelope);
  return std::optional<Heard>(std::move(heard));
}

Status Connection::acknowledge(std::uint64_t delivery) {
  int failed = amqp_basic_ack(state_, kChannel, delivery, 1);
  if (failed != AMQP_STATUS_OK) return unavailable(amqp_error_string2(failed));
  return ok();
}

void Connection::say_goodbye() {
  timeval limit = timeval_of(200ms);
  amqp_set_rpc_timeout(state_, &limit);
  amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
}

}  // namespace weir::rabbitmq
