// The bodies of the lease routes: from JSON to the domain's questions, and from its answers to JSON.
//
// Renewals are the hot path of the whole product: a batch is read straight from the parsed tree and its answer is
// written straight into a string. Pure functions; no state.
#pragma once

#include "weir/base/json.hpp"
#include "weir/lease/decide.hpp"
#include "weir/ports/lease_store.hpp"

#include <span>
#include <string>

namespace weir::control_plane {

inline constexpr size_t kBatchItemsMax = 1000;
inline constexpr size_t kKeyBytesMax = 128;
inline constexpr std::int64_t kVersionMax = (std::int64_t{1} << 53) - 1;

struct TtlBounds {
  Duration low;
  Duration high;
};

// A question of the simple routes: one camera, no key.
struct SingleAsk {
  lease::Batch batch;
  std::string shard;
};
Result<SingleAsk> read_single(const json::value& body, lease::Operation operation, TtlBounds bounds);

Result<lease::Batch> read_batch(const json::value& body, lease::Operation operation, TtlBounds bounds);
std::string write_batch(std::span<const lease::Answer> answers);

// The id of a tenure: the version of its grant is unique in the store.
std::string lease_id(lease::Version grant);
// The answer of the simple routes. `seen` adds what only the row knows, where it is still the same tenure.
json::object write_single(const SingleAsk& ask, const lease::Answer& answer, const LeaseView* seen);
json::object write_lease(const LeaseView& view);
// What the simple routes answer instead of a lease.
Error refusal_error(const lease::Answer& answer);

}  // namespace weir::control_plane
