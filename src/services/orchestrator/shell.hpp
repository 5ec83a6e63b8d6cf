// Shell: what the parts of an orchestrator share: its ports, its settings, and the streams it knows. Loop thread only.
#pragma once

#include "lease_desk.hpp"
#include "report.hpp"

#include "weir/base/alarm.hpp"
#include "weir/orchestrator/orchestrator.hpp"
#include "weir/stream/memory.hpp"

#include <deque>

namespace weir::orchestrator {

// Where the record says that the stream stands; none where it does not say so.
std::optional<lease::Home> read_home(const StreamRecord& record);

// What the plane knows of a stream: its state when it was told last.
struct Told {
  stream::State state;
  Instant at{};
};

// One stream: the machine's state, and the handles of what it started.
struct Stream {
  stream::State state;
  stream::Wishes wishes = {};               // the operator's
  std::optional<lease::Home> home = {};     // as its record says; none where nobody has named it yet
  std::shared_ptr<Kept> worker, forwarder;  // none where no process is known; shared with calls that are under way
  bool loading = true;                      // its record is being read: events wait
  std::deque<stream::Event> waiting = {};
  std::optional<Told> told = {};
  bool telling = false;
  std::deque<event::Event> unsaid = {};     // changes of state that are published next, in this order
  bool saying = false;                      // one of them is under way

  static constexpr size_t kUnsaidMax = 16;

  static constexpr Duration kRemembered = 60s;  // for as long as it is idle
  // Long idle, and nothing of it under way. A stream that comes back is read again.
  bool forgettable(Instant now) const {
    return state.phase == stream::Phase::idle && now >= state.since + kRemembered && !loading && !telling && !saying &&
           !state.session() && !state.publisher.live && !worker && !forwarder && state.lease.holding == stream::Holding::none;
  }
  std::shared_ptr<Kept>& child(stream::Role role) { return role == stream::Role::worker ? worker : forwarder; }
};

struct Shell {
  Shell(boost::asio::io_context& loop, OrchestratorPorts reached, net::Metrics& metrics, OrchestratorSettings given);

  // Tells the stream's machine, and performs what it decides. Makes the stream where it is not known.
  void feed(const stream::StreamId& id, stream::Event event);
  // From now on streams hear events; those that came before are heard first.
  void begin();
  // Reads the stream's record before its machine hears anything.
  Stream& open(const stream::StreamId& id);
  // Reads what an operator wishes now. False where nobody answered; a record that was removed wishes nothing.
  boost::asio::awaitable<bool> read_wishes(stream::StreamId id);
  const lease::Home& home_of(const Stream& stream) const { return stream.home ? *stream.home : settings.home; }
  void settings_changed(Stream& stream);
  // Whether the stream was long idle, and is known no more.
  bool forget(const stream::StreamId& id);
  // Watches a process until its end.
  void watch(const stream::StreamId& id, stream::Role role, const std::string& instance);
  void spawn(boost::asio::awaitable<void> work, std::string_view what);

  boost::asio::io_context& io;
  const OrchestratorPorts ports;
  const OrchestratorSettings settings;
  Report report;
  LeaseDesk desk;
  std::map<stream::StreamId, Stream> streams;
  Agenda<stream::StreamId> agenda;  // when a stream's machine hears that time has passed
  Alarm changed, look_soon, ended;
  bool over = false;
  bool adopted = false;  // what an earlier orchestrator left is known

 private:
  static constexpr size_t kEarlyMax = 10'000;  // more are left to the first look at MediaMTX
  std::deque<std::pair<stream::StreamId, stream::Event>> early_;
  int workers_ = 0, forwarders_ = 0;  // that run

  void step(Stream& stream, const stream::Event& event);
  std::optional<Instant> wake_at(const Stream& stream) const;
  void perform(Stream& stream, const stream::Action& action);
  boost::asio::awaitable<void> start(stream::StreamId id, stream::Role role, std::string instance, KeptSpec spec);
  void hear_lease(const SubjectId& id, const LeaseNews& news);
  void extend(Stream& stream, lease::Version version, Term term);
  void keep_what_stands(Stream& stream);
  boost::asio::awaitable<void> extend_child(stream::StreamId id, stream::Role role, std::string instance,
                                            lease::Version version, Term term);
  boost::asio::awaitable<void> see_foreign_output(stream::StreamId id);
  boost::asio::awaitable<void> wait_for(stream::StreamId id, stream::Role role, std::string instance);
  boost::asio::awaitable<void> load(stream::StreamId id);
  void announce(Stream& stream, std::optional<event::Event> event);
  void say_soon(Stream& stream);
  boost::asio::awaitable<void> say(stream::StreamId id);
  boost::asio::awaitable<Status> publish(stream::StreamId id, event::Event event);
  EventOrigin origin_of(const Stream& stream) const;
  boost::asio::awaitable<void> release(stream::StreamId id);
  void tell_if_changed(Stream& stream);
  boost::asio::awaitable<void> tell(stream::StreamId id);
  StreamTold word_of(const Stream& stream) const;
};

}  // namespace weir::orchestrator
