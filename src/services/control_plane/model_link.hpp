// ModelLink: how somebody without a token reads one file of one model until a moment in time: with a signature in the
// query, made with the installation's token key.
//
// It covers the model's id, the file's checksum and the moment. So it fits no other model, and no longer the same one
// once that has another file. Pure functions; any thread.
#pragma once

#include "weir/net/token.hpp"
#include "weir/ports/models.hpp"

namespace weir::control_plane {

// "expires=…&signature=…"; `expires` counts in whole seconds.
std::string link_query(const net::TokenKey& key, ModelId model, std::string_view sha256, WallTime expires);
// Fails with "signature_invalid" or "signature_expired"; `expires` and `signature` as the query has them.
Status check_link(const net::TokenKey& key, ModelId model, std::string_view sha256, std::string_view expires,
                  std::string_view signature, WallTime now);
// The same error for a model that is not there or has no file: a wrong link tells nothing about the models there are.
Error link_invalid();

}  // namespace weir::control_plane
