#include "feed.hpp"

#include "topics.hpp"

#include "weir/base/log.hpp"
#include "weir/cluster/routing.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <set>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr Duration kAgain = 500ms;     // after Redis did not answer
constexpr size_t kHeldMax = 5'000;     // detections for one listener that is held
constexpr int kPage = 200;

std::pair<std::uint64_t, std::uint64_t> place_of(std::string_view id) {
  std::pair<std::uint64_t, std::uint64_t> out{};
  auto [at, failed] = std::from_chars(id.data(), id.data() + id.size(), out.first);
  if (failed == std::errc{} && at != id.data() + id.size()) std::from_chars(at + 1, id.data() + id.size(), out.second);
  return out;
}

bool saw_something(const ImageDetection& detection) { return detection.detection != Detection{} || !detection.boxes.empty(); }

// What is told of one detection, made once for all listeners.
struct Seen {
  Notice detection, event;
};
std::shared_ptr<const Seen> seen(std::string id, DetectionRouted what) {
  ClusterEvent event{"worker:detection_result", {{"url", "cluster-managed"},
                                                 {"cameraId", what.detection.subscription.text()},
                                                 {"detections", saw_something(what.detection) ? 1 : 0}}};
  return std::make_shared<const Seen>(
      Seen{DetectionSeen{std::move(id), std::move(what.worker), std::move(what.detection)}, std::move(event)});
}

}  // namespace

struct Feed::Listener {
  std::function<void(const Notice&)> each;
  std::string place;  // "" while it is not known
  std::deque<std::shared_ptr<const Seen>> held_back = {};
  bool held = true, reading = false, again = false, closed = false;

  void tell(const Seen& what) {
    const auto& detection = std::get<DetectionSeen>(what.detection);
    if (!detection.stream_id.empty()) {
      if (!place.empty() && place_of(detection.stream_id) <= place_of(place)) return;
      place = detection.stream_id;
    }
    if (!closed) each(what.detection);
    if (!closed) each(what.event);
  }
  void hear(const std::shared_ptr<const Seen>& what) {
    if (!held) return tell(*what);
    if (held_back.size() < kHeldMax) return held_back.push_back(what);
    held_back.clear();
    again = true;
  }
};

struct Feed::Parts : std::enable_shared_from_this<Parts> {
  Parts(asio::io_context& io, Coordination& coordination, Clock& time, EpochJudge& epochs, net::Metrics& all,
        std::function<void()> told)
      : on(coordination), clock(time), judge(epochs), metrics(all), audience(std::move(told)), crew(io, time) {}

  void add(const std::shared_ptr<Listener>& listener);
  void remove(const std::shared_ptr<Listener>& listener);
  void listen_anew();
  void heard(const Heard& heard);
  bool learn(const Routes& routes);
  asio::awaitable<void> look_at_routes(std::uint64_t which);
  void hold(const std::shared_ptr<Listener>& listener);
  asio::awaitable<void> find_place(std::shared_ptr<Listener> listener);
  asio::awaitable<void> catch_up(std::shared_ptr<Listener> listener);
  asio::awaitable<bool> read_missed(std::shared_ptr<Listener> listener);

  Coordination& on;
  Clock& clock;
  EpochJudge& judge;
  net::Metrics& metrics;
  const std::function<void()> audience;
  Crew crew;
  std::vector<std::shared_ptr<Listener>> listeners;
  std::set<std::string> slaves;      // whose channels are listened to
  std::unique_ptr<Listening> events;
  std::unique_ptr<Listening> listening;  // to detections and their routes, in one, so that they keep their order
  std::uint64_t beginning = 0;       // numbers the beginnings of listening
  bool live = false;                 // nothing on the channels is missed from here on
  bool over = false;
};

// ---- who listens ----

void Feed::Parts::add(const std::shared_ptr<Listener>& listener) {
  listeners.push_back(listener);
  if (listeners.size() == 1) {
    // Events have a subscription of their own: listen_anew() replaces that of the detections alone.
    std::vector<std::string> channels{std::string(kEvents)};
    events = on.listen(std::move(channels), [this](const Heard& each) {
      if (!each.begun) heard(each);
    });
    listen_anew();
  }
  if (listener->place.empty()) {
    listener->held = !live;
    crew.spawn(find_place(listener), "the place of a listener");
  } else if (live) {
    hold(listener);
  }
  audience();
}

void Feed::Parts::remove(const std::shared_ptr<Listener>& listener) {
  listener->closed = true;
  std::erase(listeners, listener);
  if (listeners.empty()) {
    events.reset();
    listening.reset();
    slaves.clear();
    live = false;
    ++beginning;
  }
  if (!over) audience();
}

// "From now on" begins here, not when Redis has confirmed that it is listened to.
asio::awaitable<void> Feed::Parts::find_place(std::shared_ptr<Listener> listener) {
  auto self = shared_from_this();
  auto newest = co_await on.detections_after("", 1);
  if (newest && listener->place.empty()) listener->place = newest->last;
}

// ---- what is heard ----

void Feed::Parts::listen_anew() {
  live = false;
  ++beginning;
  for (const auto& listener : listeners) listener->held = true;
  std::vector<std::string> channels{std::string(kAssignmentsChanged)};
  for (const std::string& slave : slaves) channels.push_back(slave_channel(slave));
  listening = on.listen(std::move(channels), [this](const Heard& each) { heard(each); });
}

void Feed::Parts::heard(const Heard& heard) {
  if (heard.begun) {
    live = false;
    for (const auto& listener : listeners) listener->held = true;
    crew.spawn(look_at_routes(++beginning), "the routes of detections");
    return;
  }
  auto said = read_announcement(heard.text);
  if (!said) {
    metrics.counter("weir_cluster_unread_total", "Announcements of the cluster's processes that could not be read.").add();
    log::debug("cluster.unread", said.error().message).with(kTopic, kClusterTopic).with("channel", heard.channel);
    return;
  }
  if (!judge.admit(said->epoch)) {
    metrics.counter("weir_cluster_stale_total", "Announcements under an earlier epoch, which were dropped.").add();
    if (!said->stream_id.empty() && live)
      for (const auto& listener : listeners) hold(listener);
    return;
  }
  if (auto* detection = std::get_if<DetectionRouted>(&said->what)) {
    auto what = seen(std::move(said->stream_id), std::move(*detection));
    for (const auto& listener : std::vector(listeners)) listener->hear(what);
  } else if (const auto* updated = std::get_if<AssignmentsUpdated>(&said->what)) {
    if (learn(updated->slave_of)) listen_anew();
  } else if (auto* happened = std::get_if<ClusterHappened>(&said->what)) {
    Notice notice = ClusterEvent{std::move(happened->event), std::move(happened->payload)};
    for (const auto& listener : std::vector(listeners))
      if (!listener->closed) listener->each(notice);
  } else if (auto* patch = std::get_if<PatchRequested>(&said->what)) {
    Notice notice = SessionPatched{patch->session, std::move(patch->data)};
    for (const auto& listener : std::vector(listeners))
      if (!listener->closed) listener->each(notice);
  }
}

bool Feed::Parts::learn(const Routes& routes) {
  bool news = false;
  for (const auto& [worker, slave] : routes) news |= slaves.insert(slave).second;
  return news;
}

// Before a detection goes by a new route, the route is announced; so whoever knows the routes of this moment and hears
// every announcement after it misses nothing.
asio::awaitable<void> Feed::Parts::look_at_routes(std::uint64_t which) {
  auto self = shared_from_this();
  for (;;) {
    auto routes = co_await on.table(ClusterTable::assignments);
    if (which != beginning) co_return;
    if (routes && learn(*routes)) {
      listen_anew();
      co_return;
    }
    if (routes) break;
    co_await clock.wait(kAgain);
    if (which != beginning) co_return;
  }
  live = true;
  for (const auto& listener : std::vector(listeners)) hold(listener);
}

// ---- what was missed ----

void Feed::Parts::hold(const std::shared_ptr<Listener>& listener) {
  listener->held = listener->again = true;
  if (!std::exchange(listener->reading, true)) crew.spawn(catch_up(listener), "what a listener has missed");
}

asio::awaitable<void> Feed::Parts::catch_up(std::shared_ptr<Listener> listener) {
  auto self = shared_from_this();
  while (live && !listener->closed) {
    listener->again = false;
    listener->held_back.clear();
    bool read = co_await read_missed(listener);
    if (!read) co_await clock.wait(kAgain);
    if (!read || listener->again || !live) continue;
    listener->held = false;
    for (auto heard_now = std::exchange(listener->held_back, {}); !heard_now.empty(); heard_now.pop_front())
      listener->tell(*heard_now.front());
    break;
  }
  listener->reading = false;
}

// False where Redis did not answer.
asio::awaitable<bool> Feed::Parts::read_missed(std::shared_ptr<Listener> listener) {
  for (;;) {
    auto page = co_await on.detections_after(listener->place, kPage);
    if (listener->closed) co_return true;
    bool no_id = !page && page.error().reason == "bad_stream_id";
    if (!page && !no_id) co_return false;
    if (no_id || page->gap) {
      listener->place.clear();
      listener->each(DetectionsLost{});
    }
    if (no_id) continue;
    for (KeptDetection& item : page->items) {
      auto said = read_announcement(item.text);
      auto* detection = said ? std::get_if<DetectionRouted>(&said->what) : nullptr;
      if (detection != nullptr) listener->tell(*seen(std::move(item.id), std::move(*detection)));
      if (listener->closed) co_return true;
    }
    listener->place = page->last;
    if (page->items.size() < static_cast<size_t>(kPage)) co_return true;
  }
}

// ---- the whole ----

class Feed::Open final : public Hearing {
 public:
  Open(std::weak_ptr<Parts> feed, std::shared_ptr<Listener> listener)
      : feed_(std::move(feed)), listener_(std::move(listener)) {}
  ~Open() override {
    listener_->closed = true;
    if (auto feed = feed_.lock()) feed->remove(listener_);
  }

 private:
  const std::weak_ptr<Parts> feed_;
  const std::shared_ptr<Listener> listener_;
};

Feed::Feed(asio::io_context& io, Coordination& on, Clock& clock, EpochJudge& judge, net::Metrics& metrics,
           std::function<void()> audience)
    : parts_(std::make_shared<Parts>(io, on, clock, judge, metrics, std::move(audience))) {}
Feed::~Feed() = default;

std::unique_ptr<Hearing> Feed::listen(std::string after, std::function<void(const Notice&)> each) {
  auto listener = std::make_shared<Listener>(Listener{.each = std::move(each), .place = std::move(after)});
  auto open = std::make_unique<Open>(parts_, listener);
  if (parts_->over) listener->closed = true;
  else parts_->add(listener);
  return open;
}

std::int64_t Feed::listeners() const { return std::ssize(parts_->listeners); }

void Feed::tell(const Notice& notice) {
  const auto* detection = std::get_if<DetectionSeen>(&notice);
  if (detection == nullptr) {
    for (const auto& listener : std::vector(parts_->listeners))
      if (!listener->closed) listener->each(notice);
    return;
  }
  auto what = seen(detection->stream_id, DetectionRouted{detection->worker, detection->detection});
  for (const auto& listener : std::vector(parts_->listeners)) listener->tell(*what);
}

asio::awaitable<void> Feed::end() {
  auto parts = parts_;
  parts->over = true;
  while (!parts->listeners.empty()) parts->remove(std::shared_ptr(parts->listeners.back()));
  co_await parts->crew.wait();
}

}  // namespace weir::cluster
