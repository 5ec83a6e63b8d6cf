// Published streams in the simulated world: a media server, publishers that come and go, and one to three hosts with an
// orchestrator each, the product's own, over simulated ports.
//
// stream_world.cpp sets it up, breaks it and judges its rest; orchestrator.cpp is an orchestrator's process and the
// control plane as it sees it, kept.cpp its children with their keepers, media.cpp the media server. One thread.
#pragma once

#include "bell.hpp"
#include "disk.hpp"
#include "neighbour.hpp"
#include "stream_checks.hpp"

#include "keeper/leash.hpp"
#include "weir/orchestrator/orchestrator.hpp"
#include "weir/posix/boot_file.hpp"

namespace weir::sim {

// A child process and the keeper above it, which are stopped and go on together.
struct Child : Process {
  Child(int number, const orchestrator::ChildNote& note, KeptSpec given, BootId by, const keeper::Task& task)
      : process(number), stream(SubjectId::trusted(note.stream.str())), role(note.role), spec(std::move(given)),
        boot(std::move(by)), version{spec.version}, ends_at(spec.valid_until), leash(task), told{spec.version},
        until(spec.valid_until), keep(spec.valid_until) {}

  const int process;
  const SubjectId stream;
  const stream::Role role;
  const KeptSpec spec;
  // The record on the disk, which the next orchestrator of that boot finds.
  const BootId boot;
  lease::Version version;
  Instant ends_at;
  std::optional<int> code = {};                    // how the child ended
  // The keeper's.
  keeper::Leash leash;
  TrueTime alarm = kForever;                       // when it looks at the leash next
  std::vector<std::function<void()>> at_end = {};  // what waits for the end
  // The child's own.
  lease::Version told;
  Instant until, keep;                             // until when it may open connections, and keep them
  Instant silent_since{};                          // without a connection and without the right to open one
  bool open = false;                               // it is connected, and sends
  Duration waited{};                               // for what it reads
  bool heeds = true;                               // an order to stop

  // A program that is not Weir's knows no deadline: its keeper ends it.
  bool knows_deadline() const { return !spec.lease_socket.empty(); }
  bool worker() const { return role == stream::Role::worker; }
  Sender sender() const { return {process, stream, role, told}; }
};
using ChildPtr = std::shared_ptr<Child>;

// The product's orchestrator, over ports that lead into the world. Its coroutines go on only in `go_on`, and end with
// it where they stand: that is how a process dies.
struct OrchestratorMind {
  struct Ports {
    std::unique_ptr<Clock> clock;
    std::unique_ptr<StreamPlane> plane;
    std::unique_ptr<KeptHost> children;
    std::unique_ptr<MediaServer> media;
  };
  OrchestratorMind(Ports given, orchestrator::OrchestratorSettings settings)
      : ports(std::move(given)),
        orchestrator(io, {*ports.plane, *ports.children, *ports.media, *ports.clock}, metrics, std::move(settings)) {}
  void go_on() {
    io.restart();
    while (io.poll() > 0) continue;
  }
  asio::io_context io{1};
  const Ports ports;
  net::Metrics metrics;
  orchestrator::Orchestrator orchestrator;
};

struct Orchestrator : Process {
  lease::Owner owner;
  std::optional<posix::BootFile> boot;  // its lock is this process's
  HeardRights heard;
  std::function<void(const StreamOrder&)> orders;  // once it listens to them
  std::unique_ptr<OrchestratorMind> mind;
};
using OrchestratorPtr = std::shared_ptr<Orchestrator>;

struct StreamHost : HostClock, Wire {
  int index = 0;
  RunnerId id;
  int kernel = 0;                       // which start of the machine this is
  Disk disk;                            // the state folder
  BootId copied = {};                   // planted: the boot that a copied folder names
  OrchestratorPtr orchestrator;
  std::vector<ChildPtr> records;        // in the state folder: of children whose end nobody has collected
  std::vector<ChildPtr> processes;      // that live
  TrueTime media_away_until = 0;
  bool down = true;
};

// A stream on the media server.
struct Channel {
  stream::StreamId id;
  std::string source;  // who publishes `in`; "": nobody
  ChildPtr out;        // who publishes `out`
  bool forwarded = false;
};

struct StreamFaults : NetworkFaults {
  bool cuts, kills, pauses, crashes, reboots, copies, media_outages, media_restarts, revocations, orders, unauthorized,
      clock_rates, blips;
  explicit StreamFaults(Rng& rng) {
    for (bool* each : {&loss, &delay, &duplication, &cuts, &kills, &pauses, &crashes, &reboots, &copies, &media_outages,
                       &media_restarts, &revocations, &orders, &unauthorized, &clock_rates, &blips})
      *each = rng.chance(0.4);
    // What a boot is continued by, and must not be, is what these worlds are for.
    kills |= rng.chance(0.5);
    copies |= rng.chance(0.3);
  }
};

class StreamWorld final : public Neighbour {
 public:
  // Whether there are streams in the world of these options.
  static bool exists(const Options& options);

  StreamWorld(const Options& options, Surroundings around);
  ~StreamWorld() override;
  StreamWorld(const StreamWorld&) = delete;
  void begin() override;
  // What runs is what the media server's publishers call for.
  bool at_rest() const override;
  Duration rest_within() const override;
  std::string_view unrest() const override { return "what runs for a stream is not what its publisher calls for"; }
  void describe() override;

 private:
  class Plane;
  class Children;
  class Handle;
  class Media;
  using Reply = Network::Reply;
  using Answers = std::vector<lease::Answer>;

  // ---- set-up and faults: stream_world.cpp ----
  void fault();
  void break_host(StreamHost& host, int which);
  void break_stream(Channel& channel, int which);
  void heal();
  StreamHost& any_host() { return *hosts_[static_cast<size_t>(rng_.below(static_cast<int>(hosts_.size())))]; }
  void kill(StreamHost& host, Duration until_restart);
  void reboot(StreamHost& host);
  void copy_folder(const StreamHost& from, StreamHost& to);
  void freeze(StreamHost& host, bool children_too, Duration how_long);
  bool is_planted(Planted fault) const { return options_.planted == fault; }

  // ---- the orchestrator: orchestrator.cpp ----
  void start(StreamHost& host);
  void start_later(StreamHost& host, Duration delay);
  static void die(Orchestrator& o);
  std::unique_ptr<OrchestratorMind> make_mind(StreamHost& host, const OrchestratorPtr& o);
  std::unique_ptr<StreamPlane> plane_for(StreamHost& host, const OrchestratorPtr& o);
  std::unique_ptr<KeptHost> children_for(StreamHost& host, const OrchestratorPtr& o);
  std::unique_ptr<MediaServer> media_for(const StreamHost& host, const OrchestratorPtr& o);
  // Runs `what` in the orchestrator's process and lets it go on.
  void think(const OrchestratorPtr& o, std::function<void()> what);
  WorldClock::World clock_of(const StreamHost& host, const OrchestratorPtr& o);
  orchestrator::OrchestratorSettings settings_of(const Orchestrator& o);
  // A question that is given up after a while; `begin` is given what to answer to.
  template <class T>
  asio::awaitable<Result<T>> question(OrchestratorPtr o, std::function<void(Done<T> done)> begin) {
    return ask<T>([this, o, begin = std::move(begin)](Done<T> done) {
      begin(done);
      time_.in(2s, [this, o, done] {
        if (done.wanted()) think(o, [done] { done(Error{Errc::unavailable, "timeout", "no answer in time"}); });
      });
    });
  }
  // To the control plane: `work` runs where the store is, `hear` in the orchestrator's process.
  template <class T>
  asio::awaitable<Result<T>> consult(StreamHost& host, OrchestratorPtr o, std::function<Result<T>()> work,
                                     std::function<void(const T& answer)> hear = [](const T&) {}) {
    return question<T>(o, [this, &host, o, work = std::move(work), hear = std::move(hear)](Done<T> done) {
      auto serve = [this, o, work, hear, done]() -> Reply {
        return [this, o, hear, done, answer = work()] {
          think(o, [hear, done, answer] {
            if (answer) hear(*answer);
            done(answer);
          });
        };
      };
      auto refused = [this, o, done] {
        think(o, [done] { done(Error{Errc::unavailable, "unavailable", "the control plane says nothing about it"}); });
      };
      network_.request(host, o, serve, refused);
    });
  }
  Answers serve_leases(const lease::Batch& batch);
  void use_unknown_versions(const lease::Batch& batch, Answers& answers);
  void hear(StreamHost& host, Orchestrator& o, TrueTime asked, const Answers& answers);
  bool accept(const Orchestrator& o, const SubjectId& stream, lease::Version version, TrueTime said);

  // ---- its children: kept.cpp ----
  Result<ChildPtr> start_child(StreamHost& host, const OrchestratorPtr& o, const KeptSpec& spec);
  void extend(StreamHost& host, const OrchestratorPtr& o, const ChildPtr& c, lease::Version version, Term term,
              const Done<Nothing>& done);
  Status hear_extension(const StreamHost& host, const ChildPtr& c, lease::Version version, Term term);
  void watch_leash(StreamHost& host, const ChildPtr& c);
  void stop_child(StreamHost& host, const ChildPtr& c);
  void kill_child(StreamHost& host, const ChildPtr& c);
  asio::awaitable<std::optional<int>> end_of(StreamHost& host, OrchestratorPtr o, ChildPtr c);
  void end_child(StreamHost& host, const ChildPtr& c, std::optional<int> code);
  void work(StreamHost& host, const ChildPtr& c);
  void work_later(StreamHost& host, const ChildPtr& c, Duration delay);

  // ---- the media server: media.cpp ----
  Channel& channel_of(const Child& c);
  bool input_there(const Child& c) { return c.worker() ? !channel_of(c).source.empty() : channel_of(c).out != nullptr; }
  void connect(const ChildPtr& c);
  void disconnect(const ChildPtr& c);
  void end_readers(const Channel& channel, stream::Role role);
  void publish(Channel& channel);
  void unpublish(Channel& channel);
  void restart_media();
  void call_hooks(const Channel& channel, const std::string& source, bool ready);
  std::vector<MediaPath> paths() const;
  // A path that comes or goes while the pages of a list are read can push another one out of them.
  bool left_out() { return network_.faulty() && rng_.chance(0.02); }

  const Options options_;
  Timeline& time_;
  SimStore& store_;
  Checks& all_checks_;
  const Troubles& troubles_;
  Rng rng_;
  StreamFaults faults_;
  Network network_;
  StreamChecks checks_;
  std::vector<std::unique_ptr<StreamHost>> hosts_;
  std::vector<Channel> channels_;
  lease::HolderPolicy lease_{.kind = lease::Kind::stream};
  stream::Policy policy_;
  bool foreign_worker_ = false;  // a program that knows no deadline
  int processes_ = 0, sources_ = 0;
};

}  // namespace weir::sim
