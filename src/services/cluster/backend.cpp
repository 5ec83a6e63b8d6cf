#include "weir/cluster/backend.hpp"

#include "membership.hpp"
#include "request_line.hpp"
#include "state.hpp"
#include "term.hpp"
#include "topics.hpp"

#include "weir/base/log.hpp"

#include <algorithm>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr Duration kReleaseWithin = 3s;
constexpr Duration kAgain = 1s;            // after a feed that ended
constexpr Duration kIdle = 60s;
constexpr size_t kLargeState = 256 << 10;  // some thousand subscriptions, whose text takes milliseconds to make
constexpr Duration kShownFor = 300ms;
constexpr Duration kPassOnApart = 300ms;   // two announcements to the master that rows have changed
// What a change of rows is announced by: one feed each, because a pattern knows no "or".
constexpr std::string_view kChanges[] = {"*.created.#", "*.updated.#", "*.deleted.#"};

}  // namespace

struct Backend::Parts {
  Parts(asio::io_context& loop, BackendPorts reached, net::Metrics& all, BackendSettings given);

  void look_at_lease();
  asio::awaitable<void> serve_term();
  asio::awaitable<void> follow(std::string pattern);
  asio::awaitable<void> pass_on();
  Async<Nothing> ask_for_regeneration(std::string reason);
  asio::awaitable<void> give_back();
  json::object head() const;

  bool may_act() const { return !over && lease.valid(); }
  Term* acting_term() const { return term != nullptr && term->goes_on() ? term.get() : nullptr; }

  asio::io_context& io;
  const BackendPorts ports;
  net::Metrics& metrics;
  const BackendSettings settings;
  const std::string id;
  EpochJudge judge;
  LeaseKeeper lease;
  Crew crew;
  Feed feed;
  Membership membership;
  RequestLine master_line;
  TableView tables;
  Alarm change_heard;
  std::string change;  // the announced one that the master has not been told of
  std::unique_ptr<Term> term;
  std::string shown;  // the state, where it is large: made anew when this time has passed
  Instant shown_until{};
  bool term_runs = false, over = false;
};

Backend::Parts::Parts(asio::io_context& loop, BackendPorts reached, net::Metrics& all, BackendSettings given)
    : io(loop), ports(reached), metrics(all), settings(std::move(given)), id(settings.owner.runner.str()),
      lease(loop, ports.plane, ports.clock, settings.owner, {settings.tenant, {}}, settings.lease, settings.cluster,
            [this] { look_at_lease(); }),
      crew(loop, ports.clock),
      feed(loop, ports.coordination, ports.clock, judge, all, [this] { membership.soon(); }),
      membership(loop, ports.coordination, ports.clock, judge, id, [this] { return feed.listeners(); }),
      master_line(loop, ports.coordination, ports.clock, judge, id), tables(ports.coordination, ports.clock, crew),
      change_heard(loop, ports.clock) {}

// ---- the term ----

void Backend::Parts::look_at_lease() {
  judge.admit(lease.highest().n);
  if (term) term->look();
  if (over || term_runs || !lease.valid()) return;
  term_runs = true;
  spawn(io.get_executor(), serve_term(), "a term as master");
}

asio::awaitable<void> Backend::Parts::serve_term() {
  term = std::make_unique<Term>(Term::Process{io, ports, metrics, settings, lease, feed, [this] { return may_act(); }});
  co_await term->run();
  term.reset();
  shown_until = {};
  term_runs = false;
  look_at_lease();
}

// ---- changes of rows ----

asio::awaitable<void> Backend::Parts::follow(std::string pattern) {
  while (!over) {
    Subscription subscription{.pattern = pattern};
    Status ended = co_await ports.bus.subscribe(std::move(subscription), [this](const DeliveredEvent& event) {
      change = event.routing_key.empty() ? "rows have changed" : event.routing_key;
      change_heard.ring();
      if (term) term->rows_changed();
      return !over;
    });
    if (over) co_return;
    if (!ended) log::debug("cluster.feed_ended", ended.error().message).with(kTopic, kClusterTopic);
    if (term) term->rows_changed();  // what was announced meanwhile was not heard
    co_await ports.clock.wait(kAgain);
  }
}

// A master whose own feed is cut off learns of changes from the other processes.
asio::awaitable<void> Backend::Parts::pass_on() {
  while (!over) {
    if (change.empty()) {
      co_await change_heard.wait_until(ports.clock.now() + kIdle);
      continue;
    }
    std::string reason = std::exchange(change, {});
    if (acting_term() == nullptr) (void)co_await ask_for_regeneration(std::move(reason));
    if (!over) co_await ports.clock.wait(kPassOnApart);
  }
}

Async<Nothing> Backend::Parts::ask_for_regeneration(std::string reason) {
  Announcement wanted{.epoch = judge.highest(), .timestamp = ports.clock.wall(),
                      .what = RegenerateSubscriptions{std::move(reason), id}};
  co_return co_await ports.coordination.tell(std::string(kMasterCommands), write_announcement(wanted));
}

// ---- the whole ----

// The lease is given back last: by then the term has ended, and this process has no listener any more.
asio::awaitable<void> Backend::Parts::give_back() {
  membership.stop();
  while (term_runs) co_await ports.clock.wait(20ms);
  co_await feed.end();
  lease.close();
}

json::object Backend::Parts::head() const {
  json::object out;
  out["processId"] = id;
  out["slaveId"] = id;
  out["cluster"] = settings.cluster.str();
  out["isMaster"] = term != nullptr;
  std::int64_t epoch = term ? lease.version().n : judge.highest();
  if (epoch == 0) out["epoch"] = nullptr;
  else out["epoch"] = epoch;
  return out;
}

Backend::Backend(asio::io_context& io, BackendPorts ports, net::Metrics& metrics, BackendSettings settings)
    : parts_(std::make_unique<Parts>(io, ports, metrics, std::move(settings))) {}
Backend::~Backend() = default;

asio::awaitable<void> Backend::run() {
  Parts& p = *parts_;
  for (std::string_view pattern : kChanges)
    spawn(p.io.get_executor(), p.follow(std::string(pattern)), "the announcements of changes");
  p.crew.spawn(p.pass_on(), "changes for the master");
  p.crew.spawn(p.membership.run(), "the process's record");
  co_await p.lease.run(kReleaseWithin);
  co_await p.crew.wait();
}

// The term ends first, so that nothing is said any more when the lease is given back.
void Backend::stop() {
  Parts& p = *parts_;
  if (std::exchange(p.over, true)) return;
  if (p.term) p.term->look();
  p.change_heard.ring();
  p.crew.spawn(p.give_back(), "the lease's end");
}

bool Backend::ready() const { return parts_->lease.answered(); }
bool Backend::is_master() const { return parts_->term != nullptr; }

// ---- what products get ----

std::unique_ptr<Hearing> Backend::listen(std::string after, std::function<void(const Notice&)> each,
                                         std::function<bool()> has_room) {
  return parts_->feed.listen(std::move(after), std::move(each), std::move(has_room));
}

Async<std::string> Backend::state_text() {
  Parts& p = *parts_;
  if (!p.term) co_return co_await p.tables.state_text(p.head());
  Instant now = p.ports.clock.now();
  if (now < p.shown_until) co_return p.shown;
  std::string text = master_state_text(p.head(), p.term->master(), p.term->roster(), p.id);
  if (text.size() > kLargeState) {
    p.shown = text;
    p.shown_until = now + kShownFor;
  }
  co_return std::move(text);
}

Async<json::object> Backend::state() {
  CO_TRY(text, co_await state_text());
  CO_TRY(read, json::parse_text(text));
  co_return std::move(read.as_object());
}

Async<Nothing> Backend::regenerate(std::string reason) {
  Parts& p = *parts_;
  if (Term* term = p.acting_term()) {
    term->rows_changed();
    co_return ok();
  }
  co_return co_await p.ask_for_regeneration(std::move(reason));
}

Async<Nothing> Backend::set_session(std::string display, std::optional<std::int64_t> session) {
  Parts& p = *parts_;
  if (Term* term = p.acting_term()) co_return term->set_session({std::move(display), session});
  Saying wanted = SessionSet{.display = std::move(display), .session = session};
  co_return co_await p.master_line.ask(std::move(wanted));
}

Async<Nothing> Backend::answer_patch(PatchSessionResult result) {
  Parts& p = *parts_;
  if (Term* term = p.acting_term()) co_return term->answer_patch(result);
  Saying answer = PatchAnswered{.result = std::move(result)};
  co_return co_await p.master_line.ask(std::move(answer));
}

Async<Nothing> Backend::resubscribe(std::string camera) {
  Parts& p = *parts_;
  if (Term* term = p.acting_term()) co_return term->resubscribe(camera);
  Saying wanted = CameraResubscribed{.camera = std::move(camera)};
  co_return co_await p.master_line.ask(std::move(wanted));
}

// At any other process than the master the tables name workers without credentials; this process's own settings have
// them.
Async<std::vector<std::string>> Backend::workers_of(std::string camera) {
  Parts& p = *parts_;
  std::vector<std::string> out;
  if (p.term) {
    for (const auto& [id, each] : p.term->master().world().assignments)
      if (!each.worker.empty() && id.ends_with(";" + camera)) out.push_back(each.worker);
  } else {
    CO_TRY(shown, co_await p.tables.workers_of(std::move(camera)));
    for (const std::string& each : shown) {
      auto own = std::ranges::find(p.settings.master.workers, each, redact_url);
      out.push_back(own == p.settings.master.workers.end() ? each : *own);
    }
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  co_return std::move(out);
}

}  // namespace weir::cluster
