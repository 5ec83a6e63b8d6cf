// LeaseStore: the one authority on who owns which camera, and which other subject of a lease. See docs/architecture.md and docs/lease-protocol.md.
//
// Every method is one atomic, durable step. Answers of a batch stand in the order of its asks. An error of class
// `unavailable` means that nothing is known: the step may or may not have been taken. Loop thread only; completions
// come back on it.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/bucket/bucket.hpp"
#include "weir/lease/decide.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace weir {

inline constexpr Duration kExpiryEvery = 500ms;

struct LeaseLimits {
  Duration ttl_max = 60s;       // how long a lease of a lost commit can live
  Duration runner_live = 10s;   // a runner is alive for this long after its last heartbeat
  friend bool operator==(const LeaseLimits&, const LeaseLimits&) = default;
};

// What the owner said of one tenure besides asking for it. For people to read: it decides nothing, renews nothing, and
// means nothing once another tenure has begun.
struct LeaseNote {
  std::string shard = {};           // where it processes the subject
  std::string config_version = {};  // of the configuration that it works with
  std::string zone_version = {};
  WallTime heard{};                 // its last heartbeat for this lease; the epoch: none
  boost::json::object stats = {};   // as that heartbeat had them
  friend bool operator==(const LeaseNote&, const LeaseNote&) = default;
};

// A word for the note of the tenure that `grant` began. What is left empty stays as it was.
struct LeaseWord {
  SubjectId subject;
  lease::Version grant;
  std::string shard = {};
  std::string config_version = {};
  std::string zone_version = {};
  bool heartbeat = false;
  std::optional<boost::json::object> stats = {};
};

// A lease as an operator sees it.
struct LeaseView {
  lease::LeaseRow row;
  WallTime expires_at{};
  bool expired = false;
  LeaseNote note = {};  // of the present or last tenure
};

struct LeaseFilter {
  TenantId tenant = {};
  RunnerId runner = {};
  BootId boot = {};
  bool only_held = false;
  lease::Kind kind = lease::Kind::camera;
  SubjectId after = {};
  int limit = 100;
};

struct TickReport {
  bool hold_opened = false;
  bool epoch_opened = false;
  std::int64_t epoch = 0;
};

struct BudgetAnswer {
  bool granted = false;
  double tokens = 0;
  double capacity = 0;
  Duration retry_after{};
};

struct BudgetUse {
  CameraId camera;
  lease::Version grant;
};

class LeaseStore {
 public:
  virtual ~LeaseStore() = default;
  virtual boost::asio::awaitable<Result<std::vector<lease::Answer>>> apply(lease::Batch batch) = 0;
  // Moves lease time on; called about every kTickEvery by each control plane.
  virtual boost::asio::awaitable<Result<TickReport>> tick() = 0;
  virtual boost::asio::awaitable<Result<LeaseView>> revoke(SubjectId subject, TenantId tenant) = 0;
  // The last will: releases every lease of the boot and refuses the boot everything from now on. Answers the rows
  // that it released; asked again, those of them that nobody has taken since. A runner of this boot no longer counts
  // as live.
  virtual boost::asio::awaitable<Result<std::vector<lease::LeaseRow>>> release_all(lease::Owner owner,
                                                                                   std::string will_sha256) = 0;
  // Leases that have run out and that others may take now, each expiry once, whichever control plane asks. At most
  // `most`; after a full answer there may be more at once. Asked about every kExpiryEvery; a store that several ask
  // looks that often, not more often.
  virtual boost::asio::awaitable<Result<std::vector<lease::LeaseRow>>> take_expired(int most) = 0;
  virtual boost::asio::awaitable<Result<std::vector<LeaseView>>> list(LeaseFilter filter) = 0;
  virtual boost::asio::awaitable<Result<LeaseView>> show(SubjectId subject, TenantId tenant) = 0;
  // Notes the word, where the tenure lasts; answers the lease as it is then, whosever it is.
  virtual boost::asio::awaitable<Result<LeaseView>> note(LeaseWord word, TenantId tenant) = 0;
  // Takes one token of the site. With `use`, at most once for that grant.
  virtual boost::asio::awaitable<Result<BudgetAnswer>> consume(SiteId site, TenantId tenant,
                                                               std::optional<BudgetUse> use) = 0;
};

}  // namespace weir
