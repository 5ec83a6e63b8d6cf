#include "weir/net/token.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace weir::net {

namespace {
constexpr size_t kTokenBytesMax = 8 << 10;
constexpr size_t kKeyBytesMin = 32;
constexpr size_t kKeyFileBytesMax = 64 << 10;
constexpr std::int64_t kExpMax = 253'402'300'799;  // the year 9999: far, and no duration overflows
constexpr std::string_view kWeir = "weir";
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr auto kBase64Values = [] {
  std::array<signed char, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kBase64.size(); ++i)
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<signed char>(i);
  return values;
}();

// base64url of {"alg":"HS256","typ":"JWT"}
constexpr std::string_view kHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out;
  unsigned length = 0;
  auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &length);
  WEIR_ASSERT(done != nullptr && length == out.size());
  return std::string(reinterpret_cast<const char*>(out.data()), out.size());
}
}  // namespace

std::optional<std::string_view> credential_of(std::string_view authorization, std::string_view scheme) {
  if (authorization.size() <= scheme.size() || authorization[scheme.size()] != ' ') return std::nullopt;
  auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  if (!std::ranges::equal(authorization.substr(0, scheme.size()), scheme, same)) return std::nullopt;
  std::string_view rest = authorization.substr(scheme.size());
  size_t first = rest.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::nullopt;
  return rest.substr(first, rest.find_last_not_of(' ') - first + 1);
}

std::string base64url(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (unsigned char c : bytes) {
    bits = bits << 8 | c;
    for (held += 8; held >= 6; held -= 6) out += kBase64[bits >> (held - 6) & 63];
  }
  if (held > 0) out += kBase64[bits << (6 - held) & 63];
  return out;
}

// One text for one value: padding, foreign characters and stray low bits are refused.
std::optional<std::string> from_base64url(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int held = 0;
  for (unsigned char c : text) {
    int value = kBase64Values[c];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) out += static_cast<char>(bits >> (held -= 8) & 255);
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

// ---- tokens ----
namespace {
Error refused(std::string_view why) {
  return Error{Errc::unauthorized, "token_invalid", fmt::format("the token is not valid: {}", why)};
}

struct Parts {
  std::string_view header, payload, signature, signed_text;
};

std::optional<Parts> split(std::string_view token) {
  size_t first = token.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) return std::nullopt;
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1),
               token.substr(0, second)};
}

std::optional<json::object> decode_object(std::string_view part) {
  auto text = from_base64url(part);
  if (!text) return std::nullopt;
  auto parsed = json::parse_text(*text);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  return std::move(parsed->get_object());
}

std::optional<std::string_view> text_claim(const json::object& claims, std::string_view name) {
  const json::value* v = claims.if_contains(name);
  if (v == nullptr || !v->is_string()) return std::nullopt;
  return std::string_view(v->get_string());
}

// The key decides the algorithm; a header may only agree. `crit` asks for extensions that nobody here knows.
bool header_agrees(std::string_view part) {
  if (part == kHeader) return true;
  auto header = decode_object(part);
  return header && text_claim(*header, "alg") == "HS256" && !header->contains("crit");
}

template <class IdType>
Status optional_id(const json::object& claims, std::string_view name, IdType& out) {
  if (!claims.contains(name)) return ok();
  auto text = text_claim(claims, name);
  if (!text) return refused(fmt::format("{} must be a string", name));
  auto parsed = IdType::parse(*text);
  if (!parsed) return refused(fmt::format("{} is not an id", name));
  out = *std::move(parsed);
  return ok();
}

bool sane_subject(std::string_view sub) {
  if (sub.empty() || sub.size() > 255) return false;
  return std::ranges::none_of(sub, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

Status read_expiry(const json::object& claims, WallTime now, Claims& out) {
  const json::value* exp = claims.if_contains("exp");
  if (exp == nullptr || !exp->is_int64()) return refused("exp must be a whole number of seconds");
  if (exp->get_int64() < 0 || exp->get_int64() > kExpMax) return refused("exp is out of range");
  out.expires = WallTime(std::chrono::seconds(exp->get_int64()));
  if (out.expires <= now) return Error{Errc::unauthorized, "token_expired", "the token has expired; ask for a new one"};
  return ok();
}

Result<Claims> read_claims(const json::object& claims, WallTime now) {
  if (text_claim(claims, "iss") != kWeir) return refused("iss must be \"weir\"");
  if (text_claim(claims, "aud") != kWeir) return refused("aud must be \"weir\"");
  Claims out;
  TRY(in_time, read_expiry(claims, now, out));
  auto sub = text_claim(claims, "sub");
  if (!sub || !sane_subject(*sub)) return refused("sub must have 1 to 255 bytes");
  out.sub = *sub;
  auto role = text_claim(claims, "role");
  auto known = std::ranges::find_if(kRoleNames, [&](const auto& each) { return role == each.name; });
  if (known == kRoleNames.end()) return refused("its role is unknown");
  out.role = known->value;
  TRY(tenant, optional_id(claims, "tenant", out.tenant));
  TRY(boot, optional_id(claims, "boot_id", out.boot));
  out.key = text_claim(claims, "key_id").value_or("");
  return out;
}

// Not inlined: knowing the length, GCC 12 warns about the short-string branch of the move that follows.
[[gnu::noinline]] bool long_enough(const Secret& key) { return key.reveal().size() >= kKeyBytesMin; }

std::int64_t whole_seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}
}  // namespace

Result<TokenKey> TokenKey::create(Secret key) {
  if (!long_enough(key))
    return Error{Errc::invalid, "key_too_short", fmt::format("a token key needs at least {} bytes", kKeyBytesMin)};
  return TokenKey(std::move(key));
}

Secret TokenKey::sign(const Claims& claims) const {
  json::object payload{{"iss", kWeir}, {"aud", kWeir}, {"sub", claims.sub}, {"role", json::write_value(claims.role)}};
  if (!claims.tenant.empty()) payload["tenant"] = claims.tenant.str();
  if (!claims.boot.empty()) payload["boot_id"] = claims.boot.str();
  if (!claims.key.empty()) payload["key_id"] = claims.key;
  payload["iat"] = whole_seconds(wall_now());
  payload["exp"] = whole_seconds(claims.expires);
  std::string token(kHeader);
  token += '.';
  token += base64url(json::to_text(payload));
  std::string signature = base64url(hmac_sha256(key_.reveal(), token));
  token += '.';
  token += signature;
  return Secret(std::move(token));
}

Result<Claims> TokenKey::verify(std::string_view token, WallTime now) const {
  if (token.size() > kTokenBytesMax) return refused("it is too long");
  auto parts = split(token);
  if (!parts) return refused("it must have three parts");
  if (!header_agrees(parts->header)) return refused("its header must say HS256");
  auto signature = from_base64url(parts->signature);
  if (!signature || !equal_constant_time(*signature, hmac_sha256(key_.reveal(), parts->signed_text)))
    return refused("its signature is wrong");
  auto claims = decode_object(parts->payload);
  if (!claims) return refused("its claims are not a JSON object");
  return read_claims(*claims, now);
}

// What a token's signature covers begins with kHeader, so no token's signature can be the key of a purpose.
std::string TokenKey::sign_for(std::string_view purpose, std::string_view text) const {
  std::string key = hmac_sha256(key_.reveal(), fmt::format("weir key for: {}", purpose));
  return base64url(hmac_sha256(key, text));
}

bool TokenKey::is_signed_for(std::string_view purpose, std::string_view text, std::string_view signature) const {
  return equal_constant_time(signature, sign_for(purpose, text));
}

// ---- the key's file ----
namespace {
// Closes and, for a temporary file, removes.
struct File {
  int fd = -1;
  std::string remove = {};
  ~File() {
    if (fd >= 0) ::close(fd);
    if (!remove.empty()) ::unlink(remove.c_str());
  }
};

Error file_error(std::string_view what, const std::string& path, int number) {
  Errc code = number == EACCES || number == EPERM ? Errc::forbidden : Errc::unavailable;
  return Error{code, "key_file", fmt::format("cannot {} the token key {}: {}", what, path, std::strerror(number))};
}

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 4096> block;
  for (;;) {
    ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read", path, errno);
    if (got == 0) return text;
    text.append(block.data(), static_cast<size_t>(got));
    if (text.size() > kKeyFileBytesMax)
      return Error{Errc::invalid, "key_file", fmt::format("the token key {} is too large to be a key", path)};
  }
}

Result<std::string> read_key(int fd, const std::string& path) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return file_error("look at", path, errno);
  if (!S_ISREG(facts.st_mode))
    return Error{Errc::invalid, "key_file", fmt::format("the token key {} is not a file", path)};
  if ((facts.st_mode & 077) != 0)
    return Error{Errc::forbidden, "key_file",
                 fmt::format("the token key {} can be read by other users; type: chmod 600 {}", path, path)};
  TRY(text, read_all(fd, path));
  size_t first = text.find_first_not_of(" \t\r\n");
  size_t last = text.find_last_not_of(" \t\r\n");
  std::string key = first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
  auto solid = std::ranges::count_if(key, [](unsigned char c) { return std::isspace(c) == 0; });
  if (static_cast<size_t>(solid) < kKeyBytesMin)
    return Error{Errc::invalid, "key_file",
                 fmt::format("the token key {} is too short: it needs at least {} characters", path, kKeyBytesMin)};
  return key;
}

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return file_error("write", path, errno);
    text.remove_prefix(static_cast<size_t>(put));
  }
  if (::fsync(fd) != 0) return file_error("write", path, errno);
  return ok();
}

// `link` fails when another process was first, and never shows a half-written file: the process that comes second
// reads the first one's key.
Status create_key(const std::string& path) {
  File temporary;
  std::string name = fmt::format("{}.{}", path, random_hex(8));
  temporary.fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (temporary.fd < 0) return file_error("create", path, errno);
  temporary.remove = name;
  TRY(written, write_all(temporary.fd, random_hex(32) + "\n", path));
  if (::link(name.c_str(), path.c_str()) != 0 && errno != EEXIST) return file_error("create", path, errno);
  std::string folder = std::filesystem::path(path).parent_path().string();
  File parent{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (parent.fd < 0 || ::fsync(parent.fd) != 0) return file_error("create", path, errno);
  return ok();
}
}  // namespace

Result<TokenKey> TokenKey::load_or_create(const std::string& path) {
  File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0 && errno == ENOENT) {
    TRY(created, create_key(path));
    file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (file.fd < 0) return file_error("open", path, errno);
  TRY(key, read_key(file.fd, path));
  return create(Secret(std::move(key)));
}

}  // namespace weir::net
