// Leases by id: what the routes read that name a tenure in their path instead of a subject and an owner.
//
// The id is opaque to clients and holds the subject and the version of the grant, which is unique in the store; so the
// lease's own row says who the owner is, and no table of ids is needed. Renewal and release ask the store what the other
// routes ask, with that version: whoever spoke under another one since, by a rotation, asks with that. Pure functions.
#pragma once

#include "lease_bodies.hpp"

namespace weir::control_plane {

struct TenureId {
  SubjectId subject;
  lease::Version grant;
};
std::string lease_id(const SubjectId& subject, lease::Version grant);
// 404 where the text is not such an id.
Result<TenureId> read_lease_id(std::string_view text);

lease::Batch ask_by_id(lease::Operation operation, const TenureId& id, lease::Kind kind, lease::Owner owner);
// The optional body of a renewal: how long the lease shall last now, where it says that.
Result<std::optional<Duration>> read_renewal(const std::string& body, TtlBounds bounds);
// The optional body of a lease's heartbeat: its `processing_stats`, or the statistics themselves.
Result<LeaseWord> read_lease_word(const std::string& body, const TenureId& id);

}  // namespace weir::control_plane
