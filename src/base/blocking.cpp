#include "weir/base/blocking.hpp"

#include "weir/base/clock.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir {

namespace asio = boost::asio;

namespace {
template <class Jobs>
void fail_closed(Jobs& jobs) {
  for (Job& job : jobs) {
    job.fail({Errc::unavailable, "store_closed", "the store is shut down"});
    job.done();
  }
}
}  // namespace

asio::awaitable<void> JobQueue::submit(Job job) {
  auto initiate = [this, &job](auto handler) {
    // The executor's outstanding work keeps the loop alive until the job has ended.
    auto executor = asio::prefer(asio::get_associated_executor(handler), asio::execution::outstanding_work.tracked);
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    job.done = [shared, executor] { asio::post(executor, [shared]() mutable { std::move (*shared)(); }); };
    std::unique_lock lock(mutex_);
    std::deque<Job>& mine = jobs_[static_cast<size_t>(job.turn)];
    if (closed_ || mine.size() >= jobs_max_) {
      bool closed = closed_;
      lock.unlock();
      job.fail({Errc::unavailable, closed ? "store_closed" : "store_overloaded",
                closed ? "the store is shut down" : "the store has more work waiting than it can take"});
      return job.done();
    }
    job.give_up = boot_now() + kJobPatience;
    mine.push_back(std::move(job));
    lock.unlock();
    arrived_.notify_one();
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiate, asio::use_awaitable);
}

std::vector<Job> JobQueue::take(size_t most, Duration patience) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, patience, [this] { return closed_ || count() > 0; });
  std::vector<Job> taken, late = take_late();
  for (std::deque<Job>& waiting : jobs_)
    while (!waiting.empty() && taken.size() < most) {
      taken.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
  lock.unlock();
  fail_late(std::move(late));
  return taken;
}

void JobQueue::put_back(std::vector<Job> jobs) {
  std::unique_lock lock(mutex_);
  if (!closed_) {
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job)
      jobs_[static_cast<size_t>(job->turn)].push_front(std::move(*job));
    return;
  }
  lock.unlock();
  fail_closed(jobs);
}

void JobQueue::expire() {
  std::unique_lock lock(mutex_);
  std::vector<Job> late = take_late();
  lock.unlock();
  fail_late(std::move(late));
}

// Called with the lock held. The jobs of one turn wait in the order of their time limits.
std::vector<Job> JobQueue::take_late() {
  std::vector<Job> late;
  Instant now = boot_now();
  for (std::deque<Job>& waiting : jobs_)
    while (!waiting.empty() && waiting.front().give_up < now) {
      late.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
  return late;
}

void JobQueue::fail_late(std::vector<Job> late) {
  for (Job& job : late) {
    job.fail({Errc::unavailable, "store_overloaded", "the store did not get to this in time"});
    job.done();
  }
}

void JobQueue::close() {
  std::array<std::deque<Job>, 3> left;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    left.swap(jobs_);
  }
  arrived_.notify_all();
  for (std::deque<Job>& waiting : left) fail_closed(waiting);
}

bool JobQueue::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

size_t JobQueue::waiting() const {
  std::lock_guard lock(mutex_);
  return count();
}

size_t JobQueue::count() const { return jobs_[0].size() + jobs_[1].size() + jobs_[2].size(); }

}  // namespace weir
