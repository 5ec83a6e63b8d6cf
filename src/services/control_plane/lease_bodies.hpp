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

// A request of the routes for one camera, which has no key.
struct SingleAsk {
  lease::Batch batch;
  LeaseNote note = {};  // what the asker says of its side
};
Result<SingleAsk> read_single(const json::value& body, lease::Operation operation, TtlBounds bounds,
                              lease::Kind kind = lease::Kind::camera);

Result<lease::Batch> read_batch(const json::value& body, lease::Operation operation, TtlBounds bounds,
                                lease::Kind kind = lease::Kind::camera);
std::string write_batch(std::span<const lease::Answer> answers, lease::Kind kind = lease::Kind::camera);

// The answer of the routes for one camera to an acquire or a renewal.
json::object write_single(const SingleAsk& ask, const lease::Answer& answer);
// `delivers`: whether its owner was heard of delivering.
json::object write_lease(const LeaseView& view, bool delivers = true);
// What the routes for one camera answer instead of a lease.
Error refusal_error(const lease::Answer& answer, lease::Kind kind = lease::Kind::camera);

}  // namespace weir::control_plane
