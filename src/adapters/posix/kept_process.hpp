// KeptProcess: the handle to one kept process, made by KeeperHost at its start or when it is adopted. Loop thread only.
#pragma once

#include "kept_record.hpp"
#include "nonce_lock.hpp"

#include "weir/posix/keeper_host.hpp"

#include <boost/asio/io_context.hpp>

namespace weir::posix {

// What the handle and its coroutines share: a coroutine that was begun may outlive the handle.
struct KeptState {
  boost::asio::io_context& io;
  const KeeperSettings settings;
  const KeptFolder folder;
  KeptRecord record;
  const NonceLock lock;
  std::unique_ptr<ProcessWatch> keeper;  // null where it is dead, or was never found
  std::int64_t version = record.version;
  Instant ends_at = record.ends_at;
  std::string control = {};
  std::optional<Instant> kill_orphans_at = {};  // where the keeper is dead and the child has been told to stop
  bool collected = false;
  std::optional<int> code = {};

  bool running() const { return (keeper && keeper->running()) || lock.held(); }
};

class KeptProcess final : public Kept {
 public:
  explicit KeptProcess(std::shared_ptr<KeptState> state) : state_(std::move(state)) {}
  const std::string& name() const override { return state_->record.name; }
  const std::string& note() const override { return state_->record.note; }
  std::int64_t version() const override { return state_->version; }
  Instant ends_at() const override { return state_->ends_at; }
  const std::string& control() const override { return state_->control; }
  bool running() const override { return state_->running(); }
  boost::asio::awaitable<Status> extend(std::int64_t version, Term term) override;
  void stop() override;
  void kill() override;
  boost::asio::awaitable<std::optional<int>> wait() override;

 private:
  const std::shared_ptr<KeptState> state_;
};

}  // namespace weir::posix
