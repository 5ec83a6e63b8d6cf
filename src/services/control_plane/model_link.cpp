#include "model_link.hpp"

#include <fmt/format.h>

#include <charconv>

namespace weir::control_plane {

namespace {
constexpr std::string_view kPurpose = "links to models' files";

std::string signed_text(ModelId model, std::string_view sha256, std::string_view expires) {
  return fmt::format("{}\n{}\n{}", model, sha256, expires);
}
}  // namespace

std::string link_query(const net::TokenKey& key, ModelId model, std::string_view sha256, WallTime expires) {
  std::string moment = fmt::format("{}", std::chrono::floor<std::chrono::seconds>(expires).time_since_epoch().count());
  return fmt::format("expires={}&signature={}", moment, key.sign_for(kPurpose, signed_text(model, sha256, moment)));
}

Status check_link(const net::TokenKey& key, ModelId model, std::string_view sha256, std::string_view expires,
                  std::string_view signature, WallTime now) {
  if (!key.is_signed_for(kPurpose, signed_text(model, sha256, expires), signature)) return link_invalid();
  // The moment was written by link_query, because it is signed.
  std::int64_t moment = 0;
  std::from_chars(expires.data(), expires.data() + expires.size(), moment);
  if (now < WallTime(std::chrono::seconds(moment))) return ok();
  return Error{Errc::forbidden, "signature_expired", "this link to a model's file has expired; ask for a new one"};
}

Error link_invalid() {
  return {Errc::forbidden, "signature_invalid",
          "the signature does not fit: the link was changed, or the model has another file now"};
}

}  // namespace weir::control_plane
