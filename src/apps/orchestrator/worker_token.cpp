#include "worker_token.hpp"

#include "common/files.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/elapsed.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

namespace weir::apps {

namespace asio = boost::asio;

namespace {
constexpr Backoff kRetry{.first = 250ms, .cap = 5s};

asio::awaitable<Result<Duration>> renew(http_plane::HttpStreamPlane& plane, BootId boot, const std::string& path) {
  CO_TRY(lent, co_await plane.worker_token(std::move(boot)));
  CO_TRY(written, write_file(path, lent.token.reveal(), 0600));
  co_return lent.life;
}
}  // namespace

asio::awaitable<void> keep_worker_token(http_plane::HttpStreamPlane& plane, Clock& clock, BootId boot,
                                        std::string path) {
  for (int failures = 0;;) {
    auto life = co_await renew(plane, boot, path);
    if (!life) {
      if (failures == 0)
        log::warn("orchestrator.token_failed", "stream workers have no fresh token: what they see may not be published")
            .with("error", life.error().message);
      co_await clock.wait(kRetry.delay(failures++, random_unit()));
      continue;
    }
    failures = 0;
    co_await wait_elapsed(clock, std::max<Duration>(*life / 3, 1s), [] { return false; });
  }
}

}  // namespace weir::apps
