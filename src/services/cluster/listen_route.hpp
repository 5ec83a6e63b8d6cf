// Listen route: the WebSocket over which a product hears of a cluster and answers it.
//
// What the product is told is queued at once, because nobody waits for a slow listener: one that leaves too much of it
// untaken is cut off. Only what it has missed is read no faster than it takes it. Loop thread only.
#pragma once

#include "product_talk.hpp"

#include "weir/net/http.hpp"
#include "weir/net/metrics.hpp"

namespace weir::cluster {

// `may_answer`: whether an answer of this product about a session counts.
Result<net::Response> listen_response(Front& front, net::Metrics& metrics, const net::Request& request, bool may_answer);

}  // namespace weir::cluster
