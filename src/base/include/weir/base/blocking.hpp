// JobQueue: how the loop hands work to the thread of a library that blocks, and hears back.
//
// The loop `submit`s a job and is resumed on its own thread when the job has ended; worker threads `take` jobs. The
// queue is bounded: when it is full, a job fails at once instead of waiting for ever, and a job whose turn does not
// come within kJobPatience fails as well. Closing fails the jobs that still wait. Jobs that must not wait for the
// rest have a turn of their own, with its own bound: a client that floods the queue with questions neither delays nor
// shuts out a lease request. `submit` belongs to the loop's thread; the rest may be called from any.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace weir {

// Which jobs go first; within a turn, the one that came first.
enum class Turn { tick, lease, usual };

struct Job {
  std::function<void()> work;            // on the worker's thread
  std::function<void(Error)> fail;       // instead of `work`, or after it when its effect was undone
  std::function<void()> done = {};       // resumes the submitter; set by the queue
  Turn turn = Turn::usual;
  Instant give_up = Instant::max();      // not begun by then: fails, because its asker has given up; set by the queue
};

// How long a job may wait for its turn. A lease attempt is abandoned after a second: work that nobody waits for must
// not delay work that somebody waits for.
inline constexpr Duration kJobPatience = 1s;

class JobQueue {
 public:
  explicit JobQueue(size_t jobs_max) : jobs_max_(jobs_max) {}
  boost::asio::awaitable<void> submit(Job job);
  // Waits for at least one job or `patience`; takes up to `most`. Empty when there was none.
  std::vector<Job> take(size_t most, Duration patience);
  // For a worker thread that took more jobs than it has time for: these are the next of their turn again.
  void put_back(std::vector<Job> jobs);
  // Fails what has waited for too long; also where the thread that should take it hangs. Any thread, now and then.
  void expire();
  void close();
  bool closed() const;
  size_t waiting() const;

 private:
  size_t count() const;
  std::vector<Job> take_late();
  static void fail_late(std::vector<Job> late);

  const size_t jobs_max_;  // of each turn
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::array<std::deque<Job>, 3> jobs_;
  bool closed_ = false;
};

// Runs `work` through the queue and returns what it returned.
template <class T>
boost::asio::awaitable<Result<T>> run_blocking(JobQueue& queue, std::function<Result<T>()> work,
                                               Turn turn = Turn::usual) {
  auto result = std::make_shared<Result<T>>(Error{Errc::unavailable, "store_closed", "the store is shut down"});
  // Named, not a braced temporary: GCC 12 destroys an aggregate built inside a co_await expression twice.
  Job job;
  job.work = [result, work = std::move(work)] { *result = work(); };
  job.fail = [result](Error error) { *result = std::move(error); };
  job.turn = turn;
  co_await queue.submit(std::move(job));
  co_return std::move(*result);
}

}  // namespace weir
