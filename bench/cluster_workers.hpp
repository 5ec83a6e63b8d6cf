// SimulatedWorkers: any number of detection workers in one process, each a WebSocket at a path of its own: /w/0, /w/1 …
//
// Each reports every two seconds, and when it is asked, that it runs what it was given, and looks at no camera. What it
// reports is made once and kept until it is given something else, because the generator shares its cores with what it
// measures. One loop thread serves all of them; the functions below may be called from any thread.
#pragma once

#include "load.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/server.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace weir::bench {

class SimulatedWorkers {
 public:
  explicit SimulatedWorkers(int workers);
  ~SimulatedWorkers();
  SimulatedWorkers(const SimulatedWorkers&) = delete;

  // "127.0.0.1:43121"
  std::string address() const { return server_->address(); }
  struct Counts {
    int connected = 0;
    size_t subscriptions = 0;
  };
  Counts counts();
  // They run nothing any more, as if they had been started anew.
  void forget();
  // When the subscription was given to a worker first; nothing where that did not happen within the patience.
  std::optional<Moment> given(const std::string& subscription, Span patience);
  // Sends results from now on, so many a second, each of another subscription than the one before; the n-th names `n`
  // in its licence plate. Returns when each was due.
  std::vector<Moment> send(int rate, size_t count, size_t first);

 private:
  struct Worker {
    net::WebSocket* socket = nullptr;  // the newest connection
    std::map<std::string, std::string> running = {};  // subscription → its entry in the report
    std::string report = {};                          // "" where it is to be made anew
  };
  boost::asio::awaitable<void> converse(size_t worker, net::WebSocket& socket);
  boost::asio::awaitable<void> report_on();
  boost::asio::awaitable<void> send_on(int rate, size_t count, size_t first, std::vector<Moment>& due);
  void obey(Worker& worker, const std::string& text);
  void report(Worker& worker);
  // Asks on the loop's thread, and waits for the answer.
  template <class Question>
  auto ask(Question question);

  boost::asio::io_context io_{1};
  RealClock clock_;
  net::Router router_;
  std::vector<Worker> workers_;
  std::unique_ptr<net::HttpServer> server_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable came_;
  std::map<std::string, Moment> given_;
  std::thread thread_;
};

}  // namespace weir::bench
