#include "model_link.hpp"

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

const net::TokenKey kKey = *net::TokenKey::create(Secret(std::string(32, 'k')));
const WallTime kNow(std::chrono::seconds(1'700'000'000));
const std::string kSum(64, 'a');

// The values of a query with two parameters.
struct Link {
  explicit Link(const std::string& query)
      : expires(query.substr(8, query.find('&') - 8)), signature(query.substr(query.rfind('=') + 1)) {}
  std::string expires, signature;
};

std::string reason(const Status& status) { return status ? "ok" : status.error().reason; }

TEST(ModelLink, FitsOneModelWithOneFile_UntilItExpires) {
  const Link link(link_query(kKey, 7, kSum, kNow + 3600s));
  EXPECT_EQ(link.expires, "1700003600");
  auto check = [&](ModelId model, const std::string& sum, const std::string& expires, const std::string& signature,
                   WallTime now) { return reason(check_link(kKey, model, sum, expires, signature, now)); };
  EXPECT_EQ(check(7, kSum, link.expires, link.signature, kNow), "ok");
  EXPECT_EQ(check(7, kSum, link.expires, link.signature, kNow + 3599s), "ok");
  EXPECT_EQ(check(7, kSum, link.expires, link.signature, kNow + 3600s), "signature_expired");
  EXPECT_EQ(check(8, kSum, link.expires, link.signature, kNow), "signature_invalid");
  EXPECT_EQ(check(7, std::string(64, 'b'), link.expires, link.signature, kNow), "signature_invalid");
  for (const char* expires : {"1700003601", "01700003600", "1700003600 ", "+1700003600", "", "1e9"})
    EXPECT_EQ(check(7, kSum, expires, link.signature, kNow), "signature_invalid") << expires;
  std::string changed = link.signature;
  changed[0] = changed[0] == 'A' ? 'B' : 'A';
  for (const std::string& signature : {changed, link.signature.substr(1), link.signature + "=", std::string()})
    EXPECT_EQ(check(7, kSum, link.expires, signature, kNow), "signature_invalid") << signature;
  net::TokenKey other = *net::TokenKey::create(Secret(std::string(32, 'o')));
  EXPECT_EQ(reason(check_link(other, 7, kSum, link.expires, link.signature, kNow)), "signature_invalid");
}

TEST(ModelLink, TokenAndSignature_NeverPassForEachOther) {
  std::string token = kKey.sign({.sub = "x", .role = net::Role::admin, .expires = kNow + 1h}).reveal();
  std::string signed_part = token.substr(0, token.rfind('.')), signature = token.substr(token.rfind('.') + 1);
  EXPECT_FALSE(kKey.is_signed_for("links to models' files", signed_part, signature));
  EXPECT_FALSE(kKey.is_signed_for("", signed_part, signature));
  for (const char* purpose : {"links to models' files", ""}) {
    std::string forged = signed_part + "." + kKey.sign_for(purpose, signed_part);
    EXPECT_FALSE(kKey.verify(forged, kNow)) << purpose;
  }
  EXPECT_TRUE(kKey.is_signed_for("a", "text", kKey.sign_for("a", "text")));
  EXPECT_FALSE(kKey.is_signed_for("b", "text", kKey.sign_for("a", "text")));
}

}  // namespace
}  // namespace weir::control_plane
