// The files of a server's certificate and key, good ones and every wrong kind.
#include "tls_testing.hpp"

#include "temp_files.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/tls_identity.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

using testing::Authority;

class TlsIdentityFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  test::TempDir folder_;
  const Authority authority_;
};

TEST_F(TlsIdentityFiles, SayWhenTheFirstOfTheirCertificatesEnds) {
  auto own = authority_.issue("IP:127.0.0.1", 7200), above = authority_.issue("", 3600);
  own->write(path("own.pem"));
  own->write_key(path("own.key"));
  above->write(path("above.pem"));
  std::ofstream(path("chain.pem")) << test::text_in_file(path("own.pem")) << test::text_in_file(path("above.pem"))
                                   << test::text_in_file(path("own.key"));
  auto alone = TlsIdentity::load(path("own.pem"), path("own.key"));
  auto chain = TlsIdentity::load(path("chain.pem"), path("chain.pem"));  // all in one file
  ASSERT_TRUE(alone && chain);
  EXPECT_EQ((*alone)->ends() - (*chain)->ends(), 1h);
  EXPECT_LT(std::chrono::abs((*chain)->ends() - wall_now() - 1h), 1min);
  auto ended = authority_.issue("IP:127.0.0.1", -60);
  ended->write(path("old.pem"));
  ended->write_key(path("old.key"));
  auto old = TlsIdentity::load(path("old.pem"), path("old.key"));
  ASSERT_TRUE(old);
  EXPECT_LT((*old)->ends(), wall_now());
}

TEST_F(TlsIdentityFiles, ThatAreWrong_AreNamed_WithWhatIsWrong) {
  auto own = authority_.issue("IP:127.0.0.1"), other = authority_.issue("IP:127.0.0.1");
  own->write(path("own.pem"));
  own->write_key(path("own.key"));
  other->write_key(path("other.key"));
  own->write_key(path("locked.key"), "secret");
  std::ofstream(path("empty")) << "";
  std::ofstream(path("text")) << "no PEM\n";
  std::string whole = test::text_in_file(path("own.pem"));
  std::ofstream(path("damaged.pem")) << whole << whole.substr(0, whole.size() / 2);
  struct Row {
    std::string certificate, key, setting, said;
  };
  for (const Row& row : std::vector<Row>{
           {"absent", "own.key", "tls_certificate_file", "absent cannot be read: No such file or directory"},
           {"own.pem", "absent", "tls_key_file", "absent cannot be read: No such file or directory"},
           {"empty", "own.key", "tls_certificate_file", "holds no certificate in PEM form"},
           {"own.key", "own.key", "tls_certificate_file", "holds no certificate in PEM form"},
           {"damaged.pem", "own.key", "tls_certificate_file", "chain that is damaged"},
           {"own.pem", "text", "tls_key_file", "holds no private key in PEM form"},
           {"own.pem", "own.pem", "tls_key_file", "holds no private key in PEM form"},
           {"own.pem", "locked.key", "tls_key_file", "is locked with a password"},
           {"own.pem", "other.key", "tls_key_file", "does not belong to the first certificate in tls_certificate_file"}}) {
    auto loaded = TlsIdentity::load(path(row.certificate), path(row.key));
    ASSERT_FALSE(loaded) << row.said;
    EXPECT_TRUE(loaded.error().message.starts_with(row.setting + " ")) << loaded.error().message;
    EXPECT_TRUE(loaded.error().message.find(row.said) != std::string::npos) << loaded.error().message;
  }
}

}  // namespace
}  // namespace weir::net
