#include "weir/rabbitmq/rabbit_bus.hpp"

#include "listener.hpp"
#include "sender.hpp"

#include "weir/base/clock.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace weir::rabbitmq {

namespace asio = boost::asio;

namespace {

constexpr size_t kNameBytesMax = 255;  // of a routing key and an event_id, in AMQP
constexpr Duration kProgressEvery = 2s;

// Something that one thread waits for on the loop and another one brings.
struct Awaited {
  explicit Awaited(asio::io_context& io) : timer(io) {}
  asio::steady_timer timer;
  bool signalled = false;
  std::optional<Result<std::vector<Confirmation>>> answer = {};
};
using AwaitedPtr = std::shared_ptr<Awaited>;

void signal(Awaited& awaited) {
  awaited.signalled = true;
  awaited.timer.cancel();
}

// Until the signal or for so long; a cancelled coroutine goes on as after the time.
asio::awaitable<void> wait(AwaitedPtr awaited, Duration most) {
  if (awaited->signalled) co_return;
  awaited->timer.expires_after(std::max(most, Duration(0)));
  boost::system::error_code ignored;
  co_await awaited->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Status check(const event::Event& event, size_t bytes_max) {
  auto wrong = [&](Errc code, std::string_view what) {
    return Error{code, "bad_event", fmt::format("an event cannot be published through RabbitMQ: {}", what)};
  };
  if (event.topic != event::kDetectionsTopic && event.topic != event::kStatusTopic &&
      event.topic != event::kControlTopic)
    return wrong(Errc::invalid, "its topic is none of Weir's");
  if (event.routing_key.empty() || event.routing_key.size() > kNameBytesMax ||
      event.routing_key.find_first_of("*# ") != std::string::npos || has_control_character(event.routing_key))
    return wrong(Errc::invalid,
                 "its routing key must have 1 to 255 bytes, without '*', '#', blanks and control characters");
  if (event.event_id.size() > kNameBytesMax) return wrong(Errc::invalid, "its event_id has more than 255 bytes");
  if (event.payload.size() > bytes_max)
    return wrong(Errc::too_large, fmt::format("it has more than {} bytes", bytes_max));
  return ok();
}

std::optional<Instant> earliest_deadline(const std::vector<event::Event>& events) {
  std::optional<Instant> earliest;
  for (const event::Event& event : events)
    if (event.stamp) earliest = earliest ? std::min(*earliest, event.stamp->deadline) : event.stamp->deadline;
  return earliest;
}

const Error kTooLate{Errc::unavailable, "deadline_passed", "the right to publish has ended"};

}  // namespace

RabbitBus::RabbitBus(asio::io_context& io, Config config)
    : config_(std::move(config)), io_(io), sender_(std::make_unique<Sender>(config_)) {}

RabbitBus::~RabbitBus() = default;

asio::awaitable<Result<std::vector<Confirmation>>> RabbitBus::publish(std::vector<event::Event> events) {
  if (events.empty()) co_return std::vector<Confirmation>();
  for (const event::Event& event : events) {
    Status fits = check(event, config_.event_bytes_max);
    if (!fits) co_return fits.error();
  }
  auto publication = std::make_shared<Publication>();
  publication->deadline = earliest_deadline(events);
  publication->events = std::move(events);
  Duration most = config_.answer_within;
  if (publication->deadline) most = std::min(most, *publication->deadline - boot_now());
  if (most <= Duration(0)) co_return kTooLate;
  auto awaited = std::make_shared<Awaited>(io_);
  publication->answer = [awaited, &io = io_](Result<std::vector<Confirmation>> said) {
    asio::post(io, [awaited, said = std::move(said)]() mutable {
      awaited->answer = std::move(said);
      signal(*awaited);
    });
  };
  sender_->submit(publication);
  co_await wait(awaited, most);
  if (awaited->answer) co_return *std::move(awaited->answer);
  sender_->give_up(*publication);
  if (publication->deadline && boot_now() >= *publication->deadline) co_return kTooLate;
  co_return unavailable("no answer in time");
}

asio::awaitable<Status> RabbitBus::subscribe(Subscription subscription,
                                             std::function<bool(const DeliveredEvent&)> each) {
  CO_TRY(pattern, event::TopicPattern::create(subscription.pattern));
  std::optional<std::int64_t> offset;
  if (const std::string& after = subscription.after; !after.empty()) {
    std::int64_t number = -1;
    auto [end, failed] = std::from_chars(after.data(), after.data() + after.size(), number);
    if (failed != std::errc{} || end != after.data() + after.size() || number < 0)
      co_return Error{Errc::invalid, "bad_cursor", "that is no place in RabbitMQ's stream"};
    offset = number;
  }
  std::erase_if(listeners_, [](const auto& old) { return old->ended() && old.use_count() == 1; });
  auto awaited = std::make_shared<Awaited>(io_);
  auto call = [awaited, &io = io_] { asio::post(io, [awaited] { signal(*awaited); }); };
  auto listener = std::make_shared<Listener>(config_, std::move(pattern), offset, std::move(call));
  listeners_.push_back(listener);
  struct Stop {
    Listener& listener;
    ~Stop() { listener.stop(); }
  } stop{*listener};
  for (;;) {
    co_await wait(awaited, kProgressEvery);
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
      co_return unavailable("the subscription was given up");
    awaited->signalled = false;
    Listener::News news = listener->take();
    for (const DeliveredEvent& event : news.events)
      if (!each(event)) co_return ok();
    if (subscription.progress && !news.progress.empty()) subscription.progress(news.progress);
    if (news.ended) co_return *std::move(news.ended);
  }
}

}  // namespace weir::rabbitmq
