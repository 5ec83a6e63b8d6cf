#include "kept_process.hpp"

#include "keeper_talk.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>

namespace weir::posix {

namespace asio = boost::asio;

namespace {

constexpr Duration kLook = 50ms;  // between two looks at the lock of a child whose keeper is dead

void keep_on_disk(KeptState& kept, std::int64_t version, Instant ends_at) {
  if (version < kept.record.version) return;
  kept.record.version = version;
  kept.record.ends_at = ends_at;
  // A full disk stops no stream: the next start finds an older version, and whoever uses that is refused.
  if (auto written = kept.folder.write(kept.record, KeptFolder::Durable::no); !written)
    log::warn("kept.record", written.error().message).with("name", kept.record.name);
}

// The keeper has one deadline, at which it ends the child: a child that knows both of its own is given the later one.
asio::awaitable<Status> extend_both(std::shared_ptr<KeptState> kept, std::int64_t version, Term term) {
  if (!kept->running())
    co_return Error{Errc::conflict, "ended", fmt::format("{} has ended", kept->record.name)};
  bool knows = !kept->record.lease_socket.empty();
  Instant ends_at = knows ? term.keep_until : term.valid_until;
  keep_on_disk(*kept, version, ends_at);
  // Named, not braced temporaries: GCC 12 destroys an aggregate that is built inside a co_await expression twice.
  Leased of_keeper{version, {ends_at, ends_at}}, of_child{version, term};
  CO_TRY(heard, co_await extend_at(kept->io, kept->folder.socket_path(kept->record.nonce), of_keeper));
  if (knows) {
    CO_TRY(child, co_await extend_at(kept->io, kept->record.lease_socket, of_child));
    kept->control = child.control;
  }
  kept->version = heard.version;
  kept->ends_at = heard.term.valid_until;
  co_return ok();
}

// The keeper's work, where it is dead: nobody else ends a child that knows no deadline.
void end_due_orphans(KeptState& kept) {
  Instant end = kept.record.ends_at + (kept.record.lease_socket.empty() ? 0s : kept.settings.backstop);
  if (boot_now() >= std::min(end, kept.kill_orphans_at.value_or(end))) kept.lock.signal_holders(SIGKILL);
}

asio::awaitable<std::optional<int>> wait_for_all(std::shared_ptr<KeptState> kept) {
  if (kept->keeper) co_await kept->keeper->wait();
  while (kept->running()) {
    end_due_orphans(*kept);
    asio::steady_timer look(kept->io, kLook);
    boost::system::error_code cancelled;
    co_await look.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  if (!std::exchange(kept->collected, true)) {
    kept->code = kept->folder.exit_code(kept->record.nonce);
    kept->folder.remove(kept->record.name, kept->record.nonce);
  }
  co_return kept->code;
}

}  // namespace

asio::awaitable<Status> KeptProcess::extend(std::int64_t version, Term term) {
  return extend_both(state_, version, term);
}

void KeptProcess::stop() {
  if (tell(state_->folder.socket_path(state_->record.nonce), "stop") || !state_->running()) return;
  if (state_->keeper && state_->keeper->running()) return;  // too many wait to be heard; the caller may ask again
  if (!state_->kill_orphans_at) state_->kill_orphans_at = boot_now() + state_->settings.stop_grace;
  state_->lock.signal_holders(SIGTERM);
}

void KeptProcess::kill() {
  if (tell(state_->folder.socket_path(state_->record.nonce), "kill") || !state_->running()) return;
  if (state_->keeper && state_->keeper->running()) return;
  state_->kill_orphans_at = boot_now();
  state_->lock.signal_holders(SIGKILL);
}

asio::awaitable<std::optional<int>> KeptProcess::wait() { return wait_for_all(state_); }

}  // namespace weir::posix
