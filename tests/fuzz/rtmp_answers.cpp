#include "rtmp_answers.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <initializer_list>
#include <utility>

namespace weir::fuzz {
namespace {

constexpr size_t kHandshakeBytes = 1 + 1536 + 1536;
constexpr char kSetChunkSize = 1, kAcknowledged = 3, kUserControl = 4, kWindow = 5, kPeerBandwidth = 6, kAudio = 8,
               kData = 18, kCommand = 20;

struct Message {
  char type = kCommand;
  std::string body;
  size_t channel = 3;
  std::uint32_t stream = 0;
};
using Messages = std::vector<Message>;

const Words kAmf = {"_result",
                    "_error",
                    "onStatus",
                    "onBWDone",
                    "publish",
                    "play",
                    "FCPublish",
                    "createStream",
                    "level",
                    "error",
                    "code",
                    "description",
                    "NetStream.Publish.Start",
                    "NetStream.Play.Stop",
                    "NetStream.Seek.Notify",
                    "authmod=adobe",
                    "authmod=llnw",
                    "?reason=needauth&user=",
                    "code=403 need auth",
                    "%s%n",
                    "\n",
                    "\xFF",
                    "\xC3\xA4",
                    kKey,
                    kToken,
                    kUser,
                    kPassword,
                    {"\0", 1},
                    {"\0\0\0\0\0\0\0\0\0", 9},
                    {"\0\x40\x10\0\0\0\0\0\0", 9},
                    {"\0\x7F\xF8\0\0\0\0\0\0", 9},
                    {"\0\xFF\xF0\0\0\0\0\0\0", 9},
                    {"\1\1", 2},
                    {"\2\0\0", 3},
                    {"\2\xFF\xFF", 3},
                    {"\3\0\0\x09", 4},
                    {"\3\0\1x\3", 5},
                    "\5",
                    "\6",
                    {"\x08\0\0\0\1", 5},
                    {"\x0A\0\0\0\1", 5},
                    "\x0A\xFF\xFF\xFF\xFF",
                    "\x0B",
                    {"\x0C\0\0\0\4long", 9},
                    "\x0C\xFF\xFF\xFF\xFF",
                    "\x0D",
                    "\x11"};
const Words kChunks = {{"\0\0", 2},
                       {"\1\0\0", 3},
                       {"\1\xFF\xFF", 3},
                       {"\2\0\0\0\0\0\4\1\0\0\0\0\0\0\0\0", 16},
                       {"\2\0\0\0\0\0\4\1\0\0\0\0\0\0\0\1", 16},
                       {"\2\0\0\0\0\0\4\1\0\0\0\0\x7F\xFF\xFF\xFF", 16},
                       {"\2\0\0\0\0\0\4\1\0\0\0\0\x80\0\0\0", 16},
                       {"\2\0\0\0\0\0\6\4\0\0\0\0\0\6\0\0\0\1", 18},
                       {"\2\0\0\0\0\0\2\4\0\0\0\0\0\x1A", 14},
                       {"\2\0\0\0\0\0\0\1\0\0\0\0", 12},
                       {"\3\0\0\0\0\0\0\x14\0\0\0\0", 12},
                       {"\3\xFF\xFF\xFF\0\0\1\x14\0\0\0\0\xFF\xFF\xFF\xFF", 16},
                       {"\3\0\0\0\xFF\xFF\xFF\x14\0\0\0\0", 12},
                       {"\x43\0\0\0\0\0\1\x14", 8},
                       {"\x83\0\0\0", 4},
                       "\xC0",
                       "\xC1",
                       "\xC2",
                       "\xC3",
                       "\xC5",
                       "\x3F",
                       "HTTP/1.1 400 Bad Request\r\n\r\n"};

std::string big_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i));
  return out;
}

// ---- AMF, the form of commands and their answers ----

std::string number(double value) { return '\0' + big_endian(std::bit_cast<std::uint64_t>(value), 8); }
std::string name(std::string_view value) { return big_endian(value.size(), 2).append(value); }
std::string text(std::string_view value) { return '\2' + name(value); }
std::string object(std::initializer_list<std::pair<std::string_view, std::string>> members) {
  std::string out = "\3";
  for (const auto& [key, value] : members) out += name(key) + value;
  return out + name("") + '\x09';
}
const std::string kNull = "\5";

Message command(std::string_view verb, size_t id, const std::string& rest) {
  return {kCommand, text(verb) + number(static_cast<double>(id)) + rest};
}
Message status(std::string_view level, std::string_view code, std::string_view description) {
  std::string said = object({{"level", text(level)}, {"code", text(code)}, {"description", text(description)}});
  return {kCommand, text("onStatus") + number(0) + kNull + said, 5, 1};
}
Message refusal(size_t id, std::string_view description) {
  return command("_error", id, kNull + object({{"level", text("error")}, {"description", text(description)}}));
}
Message control(char type, std::uint32_t value, std::string_view more = {}) {
  return {type, big_endian(value, 4).append(more), 2};
}
Message ping(std::uint16_t kind) { return {kUserControl, big_endian(kind, 2) + big_endian(1, 4), 2}; }

std::string description(Mutator& mutate) {
  static const std::vector<std::string> kAll = {
      "ok",
      "",
      fmt::format("Stream {} is already publishing", kKey),
      fmt::format("{}?auth={} is not authorised", kKey, kToken),
      fmt::format("user {} with password {} may not", kUser, kPassword),
      std::string(245, 'x') + std::string(kKey),
      std::string(300, 'x'),
      "Ung\xFCltig \x1B[2J \xC3",
      "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] :"};
  return mutate.any(kAll);
}

// Authentication takes two more connections: one to be told how, one to be let in.
Messages challenge(Mutator& mutate) {
  static const Words kAll = {
      "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] :",
      "[ AccessManager.Reject ] : [ authmod=adobe ] : "
      "?reason=needauth&user=xyzzy-user&salt=c2FsdA==&challenge=Y2g=&opaque=b3A=",
      "[ code=403 need auth; authmod=llnw ]",
      "authmod=llnw ?reason=needauth&user=xyzzy-user&nonce=bm9uY2U=&odd&xyzzy-pass=1",
      "authmod=adobe ?reason=authfailed&opaque=xyzzy-key",
      "authmod=adobe ?reason=nosuchuser",
      "authmod=adobe"};
  return {refusal(1, mutate.any(kAll))};
}

Messages greeting(Mutator& mutate, bool asks) {
  static constexpr std::array<std::uint32_t, 6> kSizes = {1, 2, 128, 4096, 65536, 0x7FFFFFFF};
  static constexpr std::array<std::uint32_t, 3> kWindows = {1, 2, 2'500'000};
  Messages all = {control(kWindow, mutate.any(kWindows)), control(kPeerBandwidth, 2'500'000, "\2")};
  if (!mutate.one_in(4)) all.push_back(control(kSetChunkSize, mutate.one_in(3) ? mutate.any(kSizes) : 4096));
  if (mutate.one_in(2)) all.push_back(ping(0));
  if (asks) all.push_back(command("onBWDone", 0, kNull));
  all.push_back(command("_result", 1,
                        object({{"fmsVer", text("FMS/3,0,1,123")}, {"capabilities", number(31)}}) +
                            object({{"level", text("status")},
                                    {"code", text("NetConnection.Connect.Success")},
                                    {"description", text(description(mutate))},
                                    {"objectEncoding", number(0)}})));
  if (mutate.one_in(20)) all.back() = refusal(1, description(mutate));
  return all;
}

// `first` is the number of the client's first command after `connect`.
Messages creation(Mutator& mutate, size_t first) {
  Messages all;
  if (mutate.one_in(2)) all.push_back(refusal(first, description(mutate)));
  if (mutate.one_in(2)) all.push_back(command("onFCPublish", 0, kNull + object({{"code", text("x")}})));
  all.push_back(command("_result", first + 2, kNull + number(mutate.one_in(4) ? -1 : 1)));
  return all;
}

Messages consent(Mutator& mutate, size_t first) {
  switch (mutate.below(10)) {
    case 0: return {status("error", "NetStream.Publish.BadName", description(mutate))};
    case 1: return {refusal(first + 3, description(mutate))};
    // As if the client were the server.
    case 2: return {command("publish", 1, kNull + text("something") + text("live"))};
    default: return {ping(0), status("status", "NetStream.Publish.Start", description(mutate))};
  }
}

// The client looks for a message now and then while it sends.
Message remark(Mutator& mutate) {
  switch (mutate.below(10)) {
    case 0: return control(kAcknowledged, 1 << 20);
    case 1: return ping(6);
    case 2: return ping(26);
    case 3: return control(kSetChunkSize, mutate.one_in(2) ? 1 : 60000);
    case 4: return status("error", "NetStream.Publish.Failed", description(mutate));
    case 5: return status("status", "NetStream.Unpublish.Success", description(mutate));
    case 6: return command(mutate.one_in(2) ? "FCPublish" : "createStream", 9, kNull + text(kKey));
    case 7: return refusal(9, description(mutate));
    case 8: return command("onBWDone", 0, kNull);
    default: return {mutate.one_in(2) ? kData : kAudio, std::string(5000, 'x'), 4, 1};
  }
}

// ---- the form of messages: chunks, each behind a header ----

class Chunks {
 public:
  // As the client will take them apart, which follows the sizes that it is told.
  std::string of(const Message& message) {
    std::string out = header(0, message.channel) + big_endian(0, 3) + big_endian(message.body.size(), 3) + message.type;
    for (int i = 0; i < 4; ++i) out += static_cast<char>(message.stream >> (8 * i));
    for (size_t at = 0; at < message.body.size(); at += size_) {
      if (at > 0) out += header(3, message.channel);
      out += message.body.substr(at, size_);
    }
    if (message.type == kSetChunkSize && message.body.size() >= 4) {
      size_t told = 0;
      for (size_t i = 0; i < 4; ++i) told = told << 8 | static_cast<unsigned char>(message.body[i]);
      if (told > 0) size_ = told;
    }
    return out;
  }

 private:
  static std::string header(int form, size_t channel) {
    char high = static_cast<char>(form << 6);
    if (channel < 64) return {static_cast<char>(high | static_cast<char>(channel))};
    char low = static_cast<char>(channel - 64);
    if (channel < 64 + 256) return {high, low};
    return {static_cast<char>(high | 1), low, static_cast<char>((channel - 64) >> 8)};
  }
  size_t size_ = 128;
};

void change(Mutator& mutate, Messages& messages) {
  static constexpr std::array<size_t, 9> kChannels = {2, 3, 4, 5, 63, 64, 319, 320, 65599};
  if (messages.empty()) return;
  Message& one = mutate.any(messages);
  switch (mutate.below(8)) {
    case 0: one.type = static_cast<char>(mutate.below(24)); break;
    case 1: one.channel = mutate.any(kChannels); break;
    case 2: one.stream = static_cast<std::uint32_t>(mutate.below(3)) - 1; break;
    case 3: mutate.shuffle(messages); break;
    default: one.body = mutate.bytes(one.body, kAmf, mutate.any(messages).body); break;
  }
}

std::string manners(Mutator& mutate) {
  char ending = mutate.one_in(50)   ? kDeaf
                : mutate.one_in(12) ? kHolds
                : mutate.one_in(8)  ? kHangsUp
                : mutate.one_in(8)  ? kEnds
                                    : kReads;
  char leaving = mutate.one_in(8) ? kResets : mutate.one_in(8) ? kInterrupted : kCloses;
  return {ending, static_cast<char>('0' + mutate.below(kUrls)), leaving};
}

}  // namespace

Input draw_rtmp_answers(Mutator& mutate) {
  bool asks = mutate.one_in(4);
  size_t first = asks ? 3 : 2;
  std::vector<Messages> said = {greeting(mutate, asks), creation(mutate, first), consent(mutate, first)};
  for (size_t remarks = mutate.below(5); remarks > 0; --remarks) said.back().push_back(remark(mutate));
  for (size_t challenges = mutate.one_in(8) ? 1 + mutate.below(3) : 0; challenges > 0; --challenges)
    said.push_back(challenge(mutate));
  if (mutate.one_in(2))
    for (size_t changes = 1 + mutate.below(3); changes > 0; --changes) change(mutate, mutate.any(said));

  std::string handshake = '\3' + std::string(kHandshakeBytes - 1, 'h');
  if (mutate.one_in(25)) handshake = mutate.bytes(handshake, kChunks);
  Input input = {manners(mutate), handshake};
  Chunks usual;
  for (size_t i = 0; i < said.size(); ++i) {
    Chunks other;
    std::string bytes;
    for (const Message& each : said[i]) bytes += (kConnect + i < kChallenges ? usual : other).of(each);
    if (mutate.one_in(12)) bytes = mutate.bytes(bytes, kChunks, input.back());
    if (mutate.one_in(25)) bytes.resize(mutate.below(bytes.size() + 1));
    input.push_back(bytes);
  }
  return input;
}

}  // namespace weir::fuzz
