#include "weir/worker/publisher_thread.hpp"

#include <boost/asio/co_spawn.hpp>

#include <pthread.h>

namespace weir::worker {

namespace asio = boost::asio;

namespace {
// No coroutine of this thread may end by an exception: its cameras would fall silent without any sign of it.
void must_not_fail(std::exception_ptr failed) { WEIR_ASSERT(!failed); }
}  // namespace

PublisherThread::PublisherThread(const BusFactory& make_bus, std::unique_ptr<Spool> spool, PublisherSettings settings,
                                 PublisherHooks hooks)
    : patience_(settings.disk_within),
      bus_(make_bus(io_)),
      spool_(std::move(spool)),
      publisher_(io_, clock_, *bus_, *spool_, std::move(settings), std::move(hooks)) {
  asio::co_spawn(io_, publisher_.run(), [this](std::exception_ptr failed) {
    must_not_fail(failed);
    io_.stop();  // whatever the bus still has open
  });
  asio::co_spawn(io_, beat(), must_not_fail);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "publisher");
    io_.run();
  });
}

asio::awaitable<void> PublisherThread::beat() {
  for (Duration every = std::min<Duration>(patience_ / 4, 1s);; co_await clock_.wait(every)) pulse_.back_within(patience_);
}

PublisherThread::~PublisherThread() {
  asio::co_spawn(io_, publisher_.flush_and_stop(Instant::min()), must_not_fail);
  thread_.join();
}

}  // namespace weir::worker
