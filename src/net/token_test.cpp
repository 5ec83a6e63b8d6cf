#include "weir/net/token.hpp"

#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <thread>

namespace weir::net {
namespace {

// RFC 7515, appendix A.1.
constexpr std::string_view kRfcKey =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
constexpr std::string_view kRfcToken =
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
    "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

constexpr WallTime kNow = WallTime(std::chrono::seconds(1'700'000'000));

TokenKey key(char fill = 'k') {
  auto made = TokenKey::create(Secret(std::string(32, fill)));
  WEIR_ASSERT(bool(made));
  return *std::move(made);
}
Claims usual() {
  return {"runner-1", Role::runner, TenantId::trusted("t-01"), BootId::trusted("b-1"), kNow + 15min};
}
std::string reason(const Result<Claims>& result) { return result ? "ok" : result.error().reason; }

// RFC 2104 from SHA-256 alone, so that headers and claims that TokenKey would never write can be signed.
std::string hmac_by_hand(std::string_view secret, std::string_view text) {
  std::string inner(64, '\x36'), outer(64, '\x5c');
  for (size_t i = 0; i < secret.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ secret[i]);
    outer[i] = static_cast<char>(outer[i] ^ secret[i]);
  }
  auto raw = [](const std::string& bytes) {
    std::string hex = sha256_hex(bytes), out;
    for (size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
  };
  return raw(outer + raw(inner + std::string(text)));
}
std::string forge(std::string_view header, std::string_view payload, char fill = 'k') {
  std::string text = base64url(header) + "." + base64url(payload);
  return text + "." + base64url(hmac_by_hand(std::string(32, fill), text));
}
constexpr std::string_view kHeader = R"({"alg":"HS256","typ":"JWT"})";
std::string payload(std::string_view name = "", std::string_view value = "") {
  std::map<std::string, std::string, std::less<>> fields = {{"iss", R"("weir")"},    {"aud", R"("weir")"},
                                                            {"sub", R"("x")"},       {"role", R"("viewer")"},
                                                            {"exp", "1700000001"}};
  if (!name.empty()) fields[std::string(name)] = value;
  std::string out = "{";
  for (const auto& [field, text] : fields)
    if (!text.empty()) out += fmt::format("{}\"{}\":{}", out.size() > 1 ? "," : "", field, text);
  return out + "}";
}

TEST(Base64Url, RoundTrips_AndRefusesOtherTexts) {
  for (std::string_view text : {"", "f", "fo", "foo", "foob", "fooba", "foobar", "\xff\xfe\x00"})
    EXPECT_EQ(from_base64url(base64url(text)), text);
  EXPECT_EQ(base64url("\xfb\xff"), "-_8");
  EXPECT_EQ(base64url("fo"), "Zm8");
  for (std::string_view bad : {"A", "Zm8=", "Zm+v", "Zm/v", "Zm 8", "Zm9", "Z\n"})
    EXPECT_FALSE(from_base64url(bad)) << bad;
}

TEST(Sha256, EmptyText_HasItsKnownDigest) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Token, Rfc7515Vector_SignatureHolds_ClaimsAreForeign) {
  auto rfc = TokenKey::create(Secret(*from_base64url(kRfcKey)));
  ASSERT_TRUE(rfc);
  auto refused = rfc->verify(kRfcToken, WallTime{});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("iss"), std::string::npos);
  std::string tampered(kRfcToken);
  tampered[60] = tampered[60] == 'A' ? 'B' : 'A';
  refused = rfc->verify(tampered, WallTime{});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("signature"), std::string::npos);
}

TEST(Token, Signed_VerifiesToTheSameClaims) {
  Secret token = key().sign(usual());
  auto claims = key().verify(token.reveal(), kNow);
  ASSERT_TRUE(claims);
  EXPECT_EQ(*claims, usual());
  Claims bare{"admin", Role::admin, {}, {}, kNow + 1s};
  EXPECT_EQ(*key().verify(key().sign(bare).reveal(), kNow), bare);
  EXPECT_TRUE(token.reveal().starts_with(base64url(kHeader) + "."));
}

TEST(Token, Expiry_IsExact) {
  Secret token = key().sign(usual());
  EXPECT_EQ(reason(key().verify(token.reveal(), kNow + 15min - 1us)), "ok");
  EXPECT_EQ(reason(key().verify(token.reveal(), kNow + 15min)), "token_expired");
}

TEST(Token, AnyChangedCharacter_IsRefused) {
  std::string token = key().sign(usual()).reveal();
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(reason(key().verify(changed, kNow)), "token_invalid") << i;
  }
  EXPECT_EQ(reason(key('x').verify(token, kNow)), "token_invalid");
}

TEST(Token, ForgeryHelper_MakesTokensThatVerify) {
  EXPECT_EQ(reason(key().verify(forge(kHeader, payload()), kNow)), "ok");
  EXPECT_EQ(reason(key().verify(forge(R"({"typ":"JWT","alg":"HS256","kid":"1"})", payload()), kNow)), "ok");
}

TEST(Token, OtherAlgorithms_AreRefused) {
  for (std::string_view alg : {"none", "None", "HS384", "HS512", "RS256", "hs256", "Hs256", "HS256 ", ""})
    EXPECT_EQ(reason(key().verify(forge(fmt::format(R"({{"alg":"{}","typ":"JWT"}})", alg), payload()), kNow)),
              "token_invalid")
        << alg;
  for (std::string_view header : {"{}", R"({"alg":null})", R"({"alg":["HS256"]})", "[]", "x",
                                  R"({"alg":"HS256","crit":["exp"]})"})
    EXPECT_EQ(reason(key().verify(forge(header, payload()), kNow)), "token_invalid") << header;
  std::string unsigned_token = base64url(R"({"alg":"none"})") + "." + base64url(payload()) + ".";
  EXPECT_EQ(reason(key().verify(unsigned_token, kNow)), "token_invalid");
}

TEST(Token, WrongClaims_AreRefused) {
  struct Row {
    std::string_view name, value;
  };
  std::string long_sub = "\"" + std::string(256, 'a') + "\"";
  for (const Row& row : std::vector<Row>{
           {"exp", ""},        {"exp", "1700000001.0"},  {"exp", "1700000001.5"}, {"exp", R"("1700000001")"},
           {"exp", "1.7e9"},   {"exp", "null"},          {"exp", "-1"},           {"exp", "9223372036854775807"},
           {"exp", "18446744073709551615"},              {"iss", ""},             {"iss", R"("joe")"},
           {"iss", R"(["weir"])"},                       {"aud", ""},             {"aud", R"("Weir")"},
           {"aud", R"(["weir"])"},                       {"sub", ""},             {"sub", R"("")"},
           {"sub", "7"},       {"sub", long_sub},        {"sub", R"("a\nb")"},    {"role", ""},
           {"role", R"("root")"},                        {"role", R"("Admin")"},  {"role", "1"},
           {"tenant", "7"},    {"tenant", R"("")"},      {"boot_id", "[]"}})
    EXPECT_EQ(reason(key().verify(forge(kHeader, payload(row.name, row.value)), kNow)), "token_invalid")
        << row.name << " " << row.value;
  EXPECT_EQ(reason(key().verify(forge(kHeader, payload("exp", "1700000000")), kNow)), "token_expired");
}

TEST(Token, OtherShapes_AreRefused) {
  std::string good = forge(kHeader, payload());
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("a.b"), good + ".", good + ".x", "." + good,
        good + "=", " " + good, good + "\n", good + good, std::string(9000, 'a'), good.substr(0, good.rfind('.')),
        forge(kHeader, "[]"), forge(kHeader, "null"), forge(kHeader, payload() + "x"),
        forge(kHeader, payload("pad", "\"" + std::string(9000, 'a') + "\""))})
    EXPECT_EQ(reason(key().verify(text, kNow)), "token_invalid") << text.substr(0, 80);
}

TEST(Token, ShortKey_IsRefused) {
  EXPECT_FALSE(TokenKey::create(Secret(std::string(31, 'a'))));
  EXPECT_TRUE(TokenKey::create(Secret(std::string(32, 'a'))));
}

// ---- the key's file ----
struct Folder : test::TempDir {
  std::string file() const { return path() + "/key"; }
  void write(std::string_view text, mode_t mode = 0600) const {
    std::ofstream(file()) << text;
    ::chmod(file().c_str(), mode);
  }
};

TEST(TokenKeyFile, Absent_IsCreated0600_AndReadAgain) {
  Folder folder;
  auto first = TokenKey::load_or_create(folder.file());
  auto second = TokenKey::load_or_create(folder.file());
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(second->verify(first->sign(usual()).reveal(), kNow));
  struct stat facts {};
  ASSERT_EQ(::stat(folder.file().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_EQ(facts.st_size, 65);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(TokenKeyFile, ManyAtOnce_EndUpWithOneKey) {
  Folder folder;
  std::vector<std::string> tokens(8);
  std::vector<std::thread> threads;
  for (std::string& token : tokens)
    threads.emplace_back([&] {
      auto made = TokenKey::load_or_create(folder.file());
      if (made) token = made->sign(usual()).reveal();
    });
  for (auto& thread : threads) thread.join();
  auto shared = TokenKey::load_or_create(folder.file());
  ASSERT_TRUE(shared);
  for (const auto& token : tokens) EXPECT_TRUE(shared->verify(token, kNow));
}

TEST(TokenKeyFile, ReadableByOthers_IsRefusedWithTheCommandToType) {
  Folder folder;
  for (mode_t mode : {0640, 0604, 0660}) {
    folder.write(std::string(40, 'k'), mode);
    auto refused = TokenKey::load_or_create(folder.file());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("chmod 600 " + folder.file()), std::string::npos);
  }
}

TEST(TokenKeyFile, Content_IsTrimmed_AndMustBeLongEnough) {
  Folder folder;
  folder.write("  \n" + std::string(32, 'k') + "\r\n\n");
  auto loaded = TokenKey::load_or_create(folder.file());
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(key('k').verify(loaded->sign(usual()).reveal(), kNow));
  for (const std::string& bad : {std::string(), std::string(31, 'k'), std::string(31, 'k') + std::string(10, ' ')}) {
    folder.write(bad);
    auto refused = TokenKey::load_or_create(folder.file());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(folder.file()), std::string::npos);
  }
}

TEST(TokenKeyFile, MissingFolder_IsASentenceWithThePath) {
  auto refused = TokenKey::load_or_create("/nonexistent-weir/key");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("/nonexistent-weir/key"), std::string::npos);
  EXPECT_FALSE(TokenKey::load_or_create("/"));
}

}  // namespace
}  // namespace weir::net
