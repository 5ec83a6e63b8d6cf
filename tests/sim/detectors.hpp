// Detectors: the detection workers of a simulated cluster, and their connections with its processes.
//
// A worker runs what it is told, reports every two seconds and when it is asked, and sends a result about each of its
// subscriptions now and then, to whoever is connected. It goes on while nobody is. A connection is TCP's: nothing
// overtakes anything, nothing is lost while it stands, and what meets a cut arrives after it; but it may be half-open,
// so that nothing arrives any more and neither side learns of it. Some workers close the connection before when another
// process connects, as Weir's own do; others serve all. Workers crash, stand still, are cut off, and are deaf for a
// while: then they run nothing that they are told. One thread.
#pragma once

#include "cluster_checks.hpp"
#include "cluster_process.hpp"
#include "rng.hpp"

#include "weir/cluster/worker_protocol.hpp"

#include <deque>

namespace weir::sim {

struct DetectorHost;

// One connection between a process and a worker.
struct DetectorTalk;
using DetectorTalkPtr = std::shared_ptr<DetectorTalk>;

struct Detector : Process {
  std::map<std::string, cluster::Subscribe> runs;  // by subscription
  std::vector<DetectorTalkPtr> talks;
};
using DetectorPtr = std::shared_ptr<Detector>;

struct DetectorHost {
  int index = 0;
  std::string address;
  bool one_master = true;  // the newest connection closes the others
  double cpu_percent = 10;
  TrueTime cut_until = 0, deaf_until = 0;
  DetectorPtr detector;
};

struct DetectorTalk {
  struct Word {
    std::string text;
    int result = 0;  // its number; 0: it is none
  };
  const ClusterHost& process_host;
  const ClusterProcessPtr process;
  DetectorHost& host;
  const DetectorPtr worker;
  std::weak_ptr<Bell> bell = {};     // the process waits for it
  std::deque<Word> inbox = {};       // of the process
  bool open = true;                  // as the process sees it
  bool closed_by_worker = false;
  bool served = false;               // as the worker sees it
  bool silent = false;               // half-open
  TrueTime down = 0, up = 0;         // when the last word to the worker, and to the process, arrives
  TrueTime trouble = -kForever;      // a word is late until then
};

class Detectors {
 public:
  struct Surroundings {
    Timeline& time;
    Network& network;
    Rng& rng;
    ClusterChecks& checks;
    Planted planted;
  };
  Detectors(Surroundings around, int workers);
  ~Detectors();
  Detectors(const Detectors&) = delete;

  void begin();
  std::vector<std::string> addresses() const;
  int count() const { return static_cast<int>(hosts_.size()); }
  std::unique_ptr<DetectorLink> link_for(const ClusterHost& host, const ClusterProcessPtr& p);

  // ---- faults ----
  void crash(int worker, Duration until_restart);
  void freeze(int worker, Duration how_long);
  void cut(int worker, Duration how_long);
  void deafen(int worker, Duration how_long);
  void load(int worker, double cpu_percent) { at(worker).cpu_percent = cpu_percent; }
  void break_a_connection(int worker);  // it is half-open from then on
  void heal();

  // What a worker really runs: nothing while it is down or stands still.
  const std::map<std::string, cluster::Subscribe>& runs(int worker) const;
  // The process is connected to it, and nothing delays what they say.
  bool hears(int worker, const ClusterProcessPtr& process) const;

 private:
  class Socket;
  class Link;
  using Dialled = Done<std::unique_ptr<WorkerSocket>>;
  DetectorHost& at(int worker) { return *hosts_[static_cast<size_t>(worker)]; }
  void start(DetectorHost& host);
  void dial(const ClusterHost& from, const ClusterProcessPtr& p, const std::string& address, const Dialled& done);
  void accept(const DetectorTalkPtr& talk, const Dialled& done);
  void connected(const DetectorTalkPtr& talk, const Dialled& done);
  void carry(const DetectorTalkPtr& talk, bool to_process, std::function<void()> what);
  void arrive(const DetectorTalkPtr& talk, const std::function<void()>& what);
  TrueTime cut_until(const DetectorTalk& talk) const;
  void hang_up(const DetectorTalkPtr& talk);
  void close(const DetectorTalkPtr& talk);
  void heard(const DetectorTalkPtr& talk, const DetectorTalk::Word& word);
  Status post(const DetectorTalkPtr& talk, const std::string& text);
  void obey(const DetectorTalkPtr& talk, const cluster::Command& command);
  void say(const DetectorTalkPtr& talk, const DetectorTalk::Word& word);
  void report(const DetectorHost& host, const DetectorTalkPtr& talk);
  void keep_reporting(DetectorHost& host, const DetectorPtr& worker);
  void keep_seeing(DetectorHost& host, const DetectorPtr& worker);

  Timeline& time_;
  Network& network_;
  Rng& rng_;
  ClusterChecks& checks_;
  const Planted planted_;
  std::vector<std::unique_ptr<DetectorHost>> hosts_;
  std::map<std::pair<int, std::string>, DetectorTalkPtr> given_over_;  // planted: by process and subscription
};

}  // namespace weir::sim
