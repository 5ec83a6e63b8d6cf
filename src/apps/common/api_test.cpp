#include "api.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

TEST(Api, Unanswered_SaysWhatIsKnown) {
  Error late{Errc::unavailable, "timeout", "x did not answer in time"};
  Error refused{Errc::unavailable, "unreachable", "connection refused"};
  auto said = [](const Error& why, net::Method method, bool of_folder) {
    return unanswered(why, {.method = method, .target = "/"}, "http://x", of_folder).message;
  };
  EXPECT_EQ(said(late, net::Method::get, true), "the control plane at http://x did not answer within 10 s");
  for (net::Method method : {net::Method::post, net::Method::patch, net::Method::del})
    EXPECT_EQ(said(late, method, true),
              "the control plane at http://x did not answer within 10 s; whether it was done is not known");
  EXPECT_EQ(said(refused, net::Method::post, true),
            "cannot reach the control plane at http://x: is it running? start it with `weir up` (connection refused)");
  EXPECT_EQ(said(refused, net::Method::post, false),
            "cannot reach the control plane at http://x: is it running? (connection refused)");
  EXPECT_EQ(said({Errc::unavailable, "tls_expired", "its certificate"}, net::Method::get, true), "its certificate");
}

}  // namespace
}  // namespace weir::apps
