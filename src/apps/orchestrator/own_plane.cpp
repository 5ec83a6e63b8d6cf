#include "own_plane.hpp"

#include "common/files.hpp"

#include "weir/base/log.hpp"
#include "weir/lease/lease_time.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr int kPage = 200;
// What one host publishes is little, and nobody resumes a feed of it after a day.
constexpr EventRetention kRetention{.age = std::chrono::hours(24), .events_max = 100'000};

asio::awaitable<bool> cancelled() {
  co_return (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none;
}

}  // namespace

Result<std::unique_ptr<OwnPlane>> OwnPlane::open(const std::string& state_dir, RunnerId orchestrator, Clock& clock,
                                                 Duration ttl_max) {
  TRY(made, make_private_folder(state_dir));
  auto store = sqlite::SqliteStore::open({.path = state_dir + "/orchestrator.db", .limits = {.ttl_max = ttl_max}});
  if (!store && store.error().reason == "store_locked")
    return Error{Errc::conflict, "store_locked", fmt::format("another orchestrator runs in the folder {}", state_dir)};
  if (!store) return std::move(store).error();
  return std::unique_ptr<OwnPlane>(new OwnPlane(*std::move(store), std::move(orchestrator), clock));
}

// ---- records and events ----

Async<StreamRecord> OwnPlane::record(SubjectId id) {
  TenantId any;
  return streams().show_stream(std::move(id), std::move(any));
}

Async<std::vector<StreamRecord>> OwnPlane::records() {
  std::vector<StreamRecord> out;
  for (;;) {
    TenantId any;
    SubjectId after = out.empty() ? SubjectId() : out.back().id;
    CO_TRY(page, co_await streams().list_streams(std::move(any), std::move(after), kPage));
    bool last = page.size() < kPage;
    std::ranges::move(page, std::back_inserter(out));
    if (last) co_return std::move(out);
  }
}

Async<Nothing> OwnPlane::publish(event::Event event) {
  std::vector<event::Event> events{std::move(event)};
  EventSpeaker speaker{orchestrator_};
  CO_TRY(answers, co_await store_->append(std::move(events), std::move(speaker)));
  if (answers.size() != 1 || answers[0] == Confirmation::stale) co_return stale_word();
  co_return ok();
}

// ---- orders ----

Status OwnPlane::order(StreamOrder order) {
  if (orders_.size() == kOrdersMax)
    return Error{Errc::too_many, "orders_waiting", "too many orders wait to be carried out; give this one again later"};
  orders_.push_back(std::move(order));
  if (ordered_) ordered_->cancel();
  return ok();
}

asio::awaitable<Status> OwnPlane::follow(std::function<void(const StreamOrder&)> each) {
  if (!ordered_) ordered_.emplace(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  // Looked at right here: a call of another coroutine throws in one that is cancelled.
  while ((co_await asio::this_coro::cancellation_state).cancelled() == asio::cancellation_type::none) {
    if (orders_.empty()) {
      co_await ordered_->async_wait(asio::as_tuple(asio::use_awaitable));
      continue;
    }
    StreamOrder next = std::move(orders_.front());
    orders_.pop_front();
    each(next);
  }
  co_return Error{Errc::unavailable, "cancelled", "nobody listens to the orders any more"};
}

// ---- what a control plane does unasked ----

// Lease time moves on in the store by itself. Asking it also ends the questions that a stuck disk keeps waiting.
asio::awaitable<void> OwnPlane::watch_store() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  bool up = true;
  while (!co_await cancelled()) {
    auto report = co_await store_->tick();
    if (bool(report) != up) {
      up = bool(report);
      if (up) log::info("store.reachable", "the orchestrator's store answers again");
      else log::warn("store.unreachable", report.error().message).with("error_code", report.error().reason);
    }
    if (co_await cancelled()) co_return;
    co_await clock_.wait(lease::kTickEvery);
  }
}

asio::awaitable<void> OwnPlane::forget_events() {
  constexpr int kStep = 2000;
  constexpr Duration kSoon = 200ms, kLater = 60s;
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!co_await cancelled()) {
    auto forgotten = co_await store_->trim(kRetention, kStep);
    if (co_await cancelled()) co_return;
    co_await clock_.wait(forgotten && *forgotten == kStep ? kSoon : kLater);
  }
}

asio::awaitable<void> OwnPlane::run() {
  using namespace asio::experimental::awaitable_operators;
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await (watch_store() && forget_events());
}

}  // namespace weir::apps
