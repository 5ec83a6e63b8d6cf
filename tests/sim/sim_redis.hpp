// SimRedis: the Redis that the processes of a simulated cluster share, and their connections to it.
//
// What it keeps, it keeps by the implementation in src/adapters/in_process. A process has one connection for questions
// and one for listening, as the real adapter has. On each nothing overtakes anything; a connection that breaks takes
// with it what is under way, and what was sent on it just before may still arrive. A question that is not answered
// within two seconds fails, and with it all others that are open. Redis can be away, and can forget everything, with
// its clients' connections or without. One thread.
#pragma once

#include "cluster_checks.hpp"
#include "cluster_process.hpp"

namespace weir::sim {

class SimRedis {
 public:
  SimRedis(Timeline& time, Network& network, ClusterChecks& checks, Planted planted);
  ~SimRedis();
  SimRedis(const SimRedis&) = delete;

  // The way of this process, from its host. It ends with the process.
  std::unique_ptr<Coordination> connect(const ClusterHost& host, const ClusterProcessPtr& p);
  void away_until(TrueTime when);
  void empty(bool restarted);
  // What is under way is lost. The process notices it soon.
  void break_connections(const ClusterHost& host);
  void heal() { away_until_ = 0; }

 private:
  class Way;
  class OpenEar;
  // One connection for questions.
  struct Talk {
    const ClusterHost& host;
    const ClusterProcessPtr process;
    bool broken = false;     // nothing arrives any more
    bool given_up = false;   // by the process
    TrueTime out = 0, in = 0;  // when the last word arrives
    std::vector<std::function<void()>> open = {};  // fail, where they were not answered
  };
  // One connection for listening, and one of the process's listeners on it.
  struct Line {
    const ClusterHost& host;
    const ClusterProcessPtr process;
    int connection = 0;  // which one this is
    TrueTime in = 0;
  };
  struct Ear {
    std::shared_ptr<Line> line;
    std::vector<std::string> channels;
    std::function<void(const Heard&)> each;
    bool closed = false;
    std::unique_ptr<Listening> inner = {};  // at Redis; none while the connection is broken
  };
  using TalkPtr = std::shared_ptr<Talk>;
  using EarPtr = std::shared_ptr<Ear>;

  bool away() const { return time_.now() < away_until_; }
  bool unreachable(const ClusterHost& host) const { return away() || time_.now() < host.redis_cut_until; }
  static void give_up(const TalkPtr& talk);
  void send(const TalkPtr& talk, std::function<std::function<void()>()> serve);
  std::vector<TalkPtr> open_talks();
  void begin_later(const EarPtr& ear, Duration delay);
  void hook(const EarPtr& ear);
  void bring(const EarPtr& ear, const Heard& heard);
  void break_line(Line& line);
  void make_anew();
  template <class T>
  Result<T> at_once(Async<T> work);

  Timeline& time_;
  Network& network_;
  ClusterChecks& checks_;
  const Planted planted_;
  asio::io_context io_{1};  // on which what is kept runs, each step to its end
  std::unique_ptr<Coordination> kept_;
  int lives_ = 0;
  bool quiet_ = false;      // listeners are taken over by a new life without their noticing
  TrueTime away_until_ = 0;
  std::vector<std::weak_ptr<Ear>> ears_;
  std::vector<std::weak_ptr<Talk>> talks_;
};

}  // namespace weir::sim
