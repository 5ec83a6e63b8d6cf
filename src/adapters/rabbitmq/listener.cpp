#include "listener.hpp"

#include <fmt/format.h>

#include <pthread.h>

#include <csignal>

namespace weir::rabbitmq {

namespace {

constexpr size_t kUntakenMax = 1000;  // then the broker is not told that they were read, and sends no more
constexpr Duration kLook = 50ms;      // how often the thread looks whether it should stop
constexpr std::uint64_t kAckEvery = 50;

}  // namespace

Listener::Listener(const Config& config, event::TopicPattern pattern, std::optional<std::int64_t> offset,
                   std::function<void()> signal)
    : config_(config), pattern_(std::move(pattern)), offset_(offset), signal_(std::move(signal)) {
  thread_ = std::thread([this] { run(); });
}

Listener::~Listener() {
  stop();
  thread_.join();
}

void Listener::stop() { stop_ = true; }

Listener::News Listener::take() {
  std::lock_guard guard(mutex_);
  untaken_ = 0;
  return std::exchange(news_, {});
}

void Listener::run() {
  ::pthread_setname_np(::pthread_self(), "rabbitmq-in");
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto opened = Connection::open(config_);
  Status going = opened ? (*opened)->declare_events() : opened.error();
  if (going) {
    amqp_field_value_t from{};
    from.kind = offset_ ? AMQP_FIELD_KIND_I64 : AMQP_FIELD_KIND_UTF8;
    if (offset_) from.value.i64 = *offset_;
    else from.value.bytes = amqp_cstring_bytes("next");
    going = (*opened)->listen(from);
  }
  if (going) going = read(**opened);
  if (going) (*opened)->say_goodbye();
  {
    std::lock_guard guard(mutex_);
    news_.ended = going ? unavailable("the subscription was ended") : going.error();
  }
  ended_ = true;
  signal_();
}

Status Listener::read(Connection& connection) {
  std::uint64_t heard_to = 0, told_to = 0;
  while (!stop_) {
    TRY(heard, connection.hear(kLook));
    if (heard) {
      heard_to = heard->delivery;
      put(*std::move(heard));
    }
    bool due = heard_to - told_to >= kAckEvery || (!heard && heard_to > told_to);
    if (!due || untaken_ >= kUntakenMax) continue;
    TRY(told, connection.acknowledge(heard_to));
    told_to = heard_to;
  }
  return ok();
}

// The broker begins at the block that holds the offset, which may be a little earlier.
void Listener::put(Connection::Heard heard) {
  if (offset_ && heard.offset < *offset_) return;
  bool gap = std::exchange(first_, false) && offset_ && *offset_ > 0 && heard.offset > *offset_;
  bool wanted = pattern_.matches(heard.event.routing_key);
  {
    std::lock_guard guard(mutex_);
    news_.progress = fmt::to_string(heard.offset + 1);
    if (wanted) {
      heard.event.cursor = news_.progress;
      heard.event.after_gap = gap;
      news_.events.push_back(std::move(heard.event));
      ++untaken_;
    }
  }
  if (wanted) signal_();
}

}  // namespace weir::rabbitmq
