// The names under which a worker uses the types of its shard document, which are the link's (weir/link/shard.hpp), as
// its manager writes it. Any thread.
#pragma once

#include "weir/link/shard.hpp"

namespace weir::worker {

using link::LeaseGrant;
using link::ShardConfig;
using link::Source;
using link::read_leases;
using link::read_shard_config;
using link::read_source;
using link::write_lease;

}  // namespace weir::worker
