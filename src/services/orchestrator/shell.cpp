#include "shell.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"
#include "weir/stream/view.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::orchestrator {

namespace asio = boost::asio;
using stream::Role;
using stream::StreamId;

namespace {
constexpr Duration kReachMin = 5s;  // longer than the longest pause between two questions about the shortest lease
constexpr Duration kOutputTakes = 10s;  // at most, from a worker's start until it publishes
// A memory holds ages as of the moment of telling, so what has not changed is told again now and then.
constexpr Duration kToldAgain = 60s;
constexpr Duration kReadAgain = 5s;      // after a record that could not be read
constexpr Duration kSaidLook = 20ms;     // at whether an announcement has been made, or may be made
constexpr Duration kOutrunWithin = 2s;   // a version that made an announcement stale is known

SubjectId subject(const StreamId& id) { return SubjectId::trusted(id.str()); }
bool runs(const Stream& stream, Role role) { return stream.state.child(role).life == stream::Life::running; }

// Both are looked at as of one moment: the ages in memories of two moments always differ.
bool says_the_same(const stream::State& a, const stream::State& b, Instant now, WallTime wall) {
  return stream::remember(a, now) == stream::remember(b, now) &&
         stream::write_view(a, now, wall) == stream::write_view(b, now, wall);
}
}  // namespace

std::optional<lease::Home> read_home(const StreamRecord& record) {
  if (record.tenant.empty() || record.site.empty()) return std::nullopt;
  return lease::Home{record.tenant, record.site};
}

Shell::Shell(asio::io_context& loop, OrchestratorPorts reached, net::Metrics& metrics, OrchestratorSettings given)
    : io(loop), ports(reached), settings(std::move(given)), report(metrics),
      desk(loop, ports.plane, ports.clock, settings.owner, settings.home, settings.lease,
           [this](const SubjectId& id, const LeaseNews& news) { hear_lease(id, news); }),
      changed(loop, ports.clock), look_soon(loop, ports.clock), ended(loop, ports.clock) {}

void Shell::spawn(asio::awaitable<void> work, std::string_view what) {
  weir::spawn(io.get_executor(), std::move(work), what);
}

Stream& Shell::open(const StreamId& id) {
  auto [at, fresh] = streams.try_emplace(id);
  if (fresh) {
    at->second.state.id = id;
    spawn(load(id), "a stream's record");
  }
  return at->second;
}

void Shell::feed(const StreamId& id, stream::Event event) {
  if (over) return;
  if (!adopted) {
    if (early_.size() < kEarlyMax) early_.emplace_back(id, std::move(event));
    return;
  }
  Stream& known = open(id);
  if (known.loading) known.waiting.push_back(std::move(event));
  else step(known, event);
}

void Shell::begin() {
  adopted = true;
  for (auto& [id, event] : std::exchange(early_, {})) feed(id, std::move(event));
}

// Reads the operator's wishes before the machine hears of the publisher, so that the worker starts as they say. Where the
// record cannot be read, the stream starts without them, and takes them up when it can be.
asio::awaitable<void> Shell::load(StreamId id) {
  bool read = co_await read_wishes(id);
  Stream& stream = streams.at(id);
  stream.loading = false;
  settings_changed(stream);
  while (!stream.waiting.empty()) {
    stream::Event event = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    step(stream, event);
  }
  while (!read && !over && streams.contains(id)) {
    co_await ports.clock.wait(kReadAgain);
    read = co_await read_wishes(id);
  }
}

asio::awaitable<bool> Shell::read_wishes(StreamId id) {
  auto record = co_await ports.plane.record(subject(id));
  bool nobody_wishes = !record && record.error().code == Errc::not_found;
  auto at = streams.find(id);
  if (at == streams.end()) co_return true;
  if (!record && !nobody_wishes) co_return false;
  Stream& stream = at->second;
  if (record) stream.home = read_home(*record);
  auto wishes = record ? stream::read_wishes(record->wishes) : Result<stream::Wishes>(stream::Wishes{});
  stream.wishes = wishes ? *wishes : stream::Wishes{.problem = wishes.error().message};
  if (!stream.loading) settings_changed(stream);
  co_return true;
}

void Shell::settings_changed(Stream& stream) {
  auto at = settings.file.find(stream.state.id);
  stream::Wishes file = at == settings.file.end() ? stream::Wishes{} : at->second;
  stream::Wishes query = stream::wishes_of(stream::read_query(stream.state.publisher.source.query),
                                           settings.destination_in_query);
  stream::Settings merged = stream::merge(stream.wishes, file, query);
  if (!(merged == stream.state.settings)) step(stream, stream::SettingsChanged{std::move(merged)});
}

void Shell::step(Stream& stream, const stream::Event& event) {
  if (over) return;
  // What a publisher says of itself counts from its first word on.
  if (const auto* ready = std::get_if<stream::PublisherReady>(&event); ready && !ready->source.query.empty()) {
    stream.state.publisher.source.query = ready->source.query;
    settings_changed(stream);
  }
  stream::Draw draw{settings.draw(), random_hex(8)};
  bool worker_ran = runs(stream, Role::worker), forwarder_ran = runs(stream, Role::forwarder);
  auto [next, actions] = stream::step(std::move(stream.state), event, ports.clock.now(), settings.policy, draw);
  stream.state = std::move(next);
  workers_ += runs(stream, Role::worker) - worker_ran;
  forwarders_ += runs(stream, Role::forwarder) - forwarder_ran;
  report.counts(workers_, forwarders_);
  agenda.set(stream.state.id, wake_at(stream));
  for (const stream::Action& action : actions) perform(stream, action);
  tell_if_changed(stream);
  changed.ring();
}

// An idle stream is looked at again when it may be forgotten.
std::optional<Instant> Shell::wake_at(const Stream& stream) const {
  auto due = stream::wake_at(stream.state, settings.policy);
  if (due || stream.state.phase != stream::Phase::idle) return due;
  return std::max(stream.state.since + Stream::kRemembered, ports.clock.now() + 1s);
}

bool Shell::forget(const StreamId& id) {
  auto at = streams.find(id);
  if (at == streams.end()) return true;
  if (!at->second.forgettable(ports.clock.now())) return false;
  report.forget(at->second.state);
  desk.forget(subject(id));
  streams.erase(at);
  return true;
}

void Shell::perform(Stream& stream, const stream::Action& action) {
  const StreamId& id = stream.state.id;
  Instant now = ports.clock.now();
  if (std::holds_alternative<stream::AcquireLease>(action)) return desk.want(subject(id));
  if (std::holds_alternative<stream::NeedFreshVersion>(action)) return desk.rotate(subject(id));
  if (std::holds_alternative<stream::ReleaseLease>(action)) return spawn(release(id), "a stream's release");
  if (const auto* worker = std::get_if<stream::StartWorker>(&action)) {
    // Also while forwarding is off: it may be switched on without a worker that starts anew.
    AboutStream about{home_of(stream), !stream.state.settings.destination.empty()};
    KeptSpec spec = worker_spec(settings.programs, id, about, *worker, now, desk.valid_until(subject(id)));
    return spawn(start(id, Role::worker, worker->instance, std::move(spec)), "a worker's start");
  }
  if (const auto* forwarder = std::get_if<stream::StartForwarder>(&action)) {
    KeptSpec spec = forwarder_spec(settings.programs, id, *forwarder, now, desk.valid_until(subject(id)));
    return spawn(start(id, Role::forwarder, forwarder->instance, std::move(spec)), "a forwarder's start");
  }
  if (const auto* stop = std::get_if<stream::StopChild>(&action)) {
    if (auto& child = stream.child(stop->role)) child->stop();
    return;
  }
  if (const auto* kill = std::get_if<stream::KillChild>(&action)) {
    if (auto& child = stream.child(kill->role)) child->kill();
    return;
  }
  const auto& what = std::get<stream::Record>(action);
  report.record(stream.state, what);
  announce(stream, publication(stream.state, what, origin_of(stream)));
}

// ---- what is published of a stream's state ----

EventOrigin Shell::origin_of(const Stream& stream) const {
  return {settings.owner.runner, home_of(stream), ports.clock.wall(), random_hex(8)};
}

// What happens before the lease is granted is published once it is.
void Shell::announce(Stream& stream, std::optional<event::Event> event) {
  if (!event) return;
  if (stream.unsaid.size() == Stream::kUnsaidMax) stream.unsaid.pop_front();
  stream.unsaid.push_back(*std::move(event));
  say_soon(stream);
}

void Shell::say_soon(Stream& stream) {
  bool may = desk.version(subject(stream.state.id)).n != 0;
  if (stream.saying || stream.unsaid.empty() || !may || over) return;
  stream.saying = true;
  spawn(say(stream.state.id), "a publication");
}

// One after the other, so that they arrive in order. What does not arrive can be read in the list of streams.
asio::awaitable<void> Shell::say(StreamId id) {
  Stream& stream = streams.at(id);
  while (!stream.unsaid.empty() && desk.version(subject(id)).n != 0 && !over) {
    event::Event next = std::move(stream.unsaid.front());
    stream.unsaid.pop_front();
    Status said = co_await publish(id, std::move(next));
    if (said) continue;
    log::debug("publication.unsent", said.error().message).with("streamId", id);
    if (said.error().code != Errc::conflict) stream.unsaid.clear();
  }
  stream.saying = false;
}

// A version that was drawn meanwhile makes the one before it stale: the event is sent again under the newer one. That it
// is stale may be heard before the newer version is.
asio::awaitable<Status> Shell::publish(StreamId id, event::Event event) {
  for (;;) {
    lease::Version version = desk.version(subject(id));
    event::Event stamped = event::stamped(event, event::Stamp{subject(id), version, Instant::max()});
    auto sent = co_await ports.plane.publish(std::move(stamped));
    if (sent) co_return ok();
    if (sent.error().code != Errc::conflict) co_return std::move(sent).error();
    for (Instant until = ports.clock.now() + kOutrunWithin; ports.clock.now() < until && !over;) {
      if (desk.version(subject(id)) != version) break;
      co_await ports.clock.wait(kSaidLook);
    }
    if (!(desk.version(subject(id)) > version)) co_return std::move(sent).error();
  }
}

// The outcome is an event of its own, which the machine hears after it has finished this step. Meanwhile the machine may
// have changed its mind; it waits for the child's end then. Where this process ends first, the next one adopts the child.
asio::awaitable<void> Shell::start(StreamId id, Role role, std::string instance, KeptSpec spec) {
  co_await asio::post(io, asio::use_awaitable);
  if (role == Role::worker) co_await see_foreign_output(id);
  if (over) co_return;
  auto started = co_await ports.children.start(std::move(spec));
  if (over) co_return;
  if (!started) {
    feed(id, stream::ChildStartFailed{role, instance, started.error().message});
    co_return;
  }
  Stream& stream = streams.at(id);
  stream.child(role) = *std::move(started);
  if (stream.state.child(role).life == stream::Life::stopping) stream.child(role)->stop();
  if (stream.state.child(role).life == stream::Life::killed) stream.child(role)->kill();
  look_soon.ring();
  feed(id, stream::ChildStarted{role, instance});
  watch(id, role, instance);
}

// Notes which connection publishes `out` before the worker starts: it is not this worker's. The path itself is asked for,
// because a list in pages may lack it. Where MediaMTX does not answer, looks within kOutputTakes do not count.
asio::awaitable<void> Shell::see_foreign_output(StreamId id) {
  auto out = co_await ports.media.find(stream::output_path(id));
  auto at = streams.find(id);
  if (at == streams.end()) co_return;
  stream::State& state = at->second.state;
  if (!out) state.out_heard_at = ports.clock.now() + kOutputTakes;
  else if (*out && (*out)->ready) state.foreign_out = (*out)->source_id;
}

void Shell::watch(const StreamId& id, Role role, const std::string& instance) {
  spawn(wait_for(id, role, instance), "a child's end");
}

asio::awaitable<void> Shell::wait_for(StreamId id, Role role, std::string instance) {
  std::shared_ptr<Kept> child = streams.at(id).child(role);
  if (child == nullptr) co_return;
  std::optional<int> code = co_await child->wait();
  if (over) co_return;
  if (auto& known = streams.at(id).child(role); known == child) known.reset();
  look_soon.ring();
  feed(id, stream::ChildExited{role, instance, code});
}

void Shell::hear_lease(const SubjectId& which, const LeaseNews& news) {
  auto id = stream::StreamId::trusted(which.str());
  auto at = streams.find(id);
  if (at == streams.end() || over) return;
  if (const auto* granted = std::get_if<Granted>(&news)) {
    extend(at->second, granted->version, {granted->valid_until, granted->valid_until});
    say_soon(at->second);
    return feed(id, stream::LeaseGranted{granted->version});
  }
  if (const auto* taken = std::get_if<TakenByAnother>(&news)) return feed(id, stream::LeaseHeld{taken->why});
  if (std::holds_alternative<Lost>(news)) {
    at->second.unsaid.clear();  // another orchestrator speaks for the stream
    return feed(id, stream::LeaseLost{});
  }
  if (std::holds_alternative<Silent>(news)) {
    keep_what_stands(at->second);
    return feed(id, stream::LeaseSilent{});
  }
  feed(id, stream::LeaseReleased{});
}

// The control plane did not answer a renewal: children may keep their open connections for as long as an answer would have
// allowed, so that they outlive a restart of this process and end soon after its death, but no longer than the outage
// grace after the lease's end. A lease that this process was not granted, or has lost, keeps nothing.
void Shell::keep_what_stands(Stream& stream) {
  SubjectId id = subject(stream.state.id);
  Instant valid_until = desk.valid_until(id);
  if (valid_until == Instant{}) return;
  Duration reach = std::max(settings.lease.ttl - lease::safety_margin(settings.lease.ttl), kReachMin);
  Instant keep_until = std::min(ports.clock.now() + reach, valid_until + settings.policy.outage_grace);
  if (keep_until > valid_until) extend(stream, desk.version(id), {valid_until, keep_until});
}

void Shell::extend(Stream& stream, lease::Version version, Term term) {
  for (Role role : {Role::worker, Role::forwarder})
    if (stream.child(role) != nullptr && stream.state.child(role).alive())
      spawn(extend_child(stream.state.id, role, stream.state.child(role).instance, version, term), "an extension");
}

// A child that cannot be told ends at its deadline; its end is what counts.
asio::awaitable<void> Shell::extend_child(StreamId id, Role role, std::string instance, lease::Version version,
                                          Term term) {
  std::shared_ptr<Kept> child = streams.at(id).child(role);
  Status told = co_await child->extend(version.n, term);
  if (!told)
    log::debug("stream.not_extended", told.error().message).with("streamId", id).with("instanceId", instance);
}

// The last event and the last word about the session have to come under its lease. Where the lease was lost meanwhile, it
// may be this process's again, for another session: that one is not given up.
asio::awaitable<void> Shell::release(StreamId id) {
  auto releasing = [&] {
    auto at = streams.find(id);
    return at != streams.end() && at->second.state.lease.holding == stream::Holding::releasing;
  };
  if (desk.version(subject(id)).n != 0) {
    Stream& stream = streams.at(id);
    if (stream.state.session()) announce(stream, last_publication(stream.state, origin_of(stream)));
    while (releasing() && streams.at(id).saying) co_await ports.clock.wait(kSaidLook);
    if (!releasing()) co_return;
    StreamTold last = word_of(streams.at(id));
    last.view["state"] = "idle";
    (void)co_await ports.plane.tell(std::move(last));
  }
  if (!releasing()) co_return;
  streams.at(id).told.reset();
  streams.at(id).unsaid.clear();
  desk.release(subject(id));
}

StreamTold Shell::word_of(const Stream& stream) const {
  Instant now = ports.clock.now();
  return {subject(stream.state.id), settings.owner, desk.version(subject(stream.state.id)),
          stream::write_memory(stream::remember(stream.state, now)),
          stream::write_view(stream.state, now, ports.clock.wall())};
}

void Shell::tell_if_changed(Stream& stream) {
  if (stream.telling || stream.state.lease.holding != stream::Holding::held) return;
  Instant now = ports.clock.now();
  bool lately = stream.told && now < stream.told->at + kToldAgain;
  if (lately && says_the_same(stream.told->state, stream.state, now, ports.clock.wall())) return;
  stream.told = Told{stream.state, now};
  stream.telling = true;
  spawn(tell(stream.state.id), "a word about a stream");
}

// One word at a time; what changes meanwhile follows.
asio::awaitable<void> Shell::tell(StreamId id) {
  StreamTold word = word_of(streams.at(id));
  auto kept = co_await ports.plane.tell(std::move(word));
  Stream& stream = streams.at(id);
  stream.telling = false;
  if (!kept) {
    log::debug("stream.untold", kept.error().message).with("streamId", id);
    stream.told.reset();  // told again with the next change
    co_return;
  }
  tell_if_changed(stream);
}

}  // namespace weir::orchestrator
