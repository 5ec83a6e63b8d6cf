#include "rtsp_answers.hpp"

#include "camera_testing.hpp"

namespace weir::fuzz {
namespace {

namespace testing = ffmpeg::testing;

const Words kWords = {"\r\n",
                      "\n",
                      "\r\n\r\n",
                      ":",
                      ";",
                      ",",
                      "=",
                      "\"",
                      " ",
                      "%s%n",
                      "-1",
                      kUrl,
                      kLogin,
                      kNumber,
                      "RTSP/1.0 200 OK\r\n",
                      "RTSP/1.0 302 Found\r\n",
                      "RTSP/1.0 301 \r\n",
                      "RTSP/1.0 401 Unauthorized {login} {url}\r\n",
                      "RTSP/1.0 454 {login}\r\n",
                      "RTSP/2.0 999999999999\r\n",
                      "HTTP/1.1 302 Found\r\n",
                      "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n",
                      "ANNOUNCE {url} RTSP/1.0\r\nCSeq: 2\r\nContent-Length: 3\r\n\r\nv=0",
                      "REDIRECT {url} RTSP/1.0\r\nCSeq: 3\r\nLocation: rtsp://10.9.9.9/\r\n\r\n",
                      "Location: rtsp://10.9.9.9:554/x\r\n",
                      "Location: rtsp://127.0.0.1:9/x\r\n",
                      "Location: rtsps://elsewhere.invalid/\r\n",
                      "Location: {url}\r\n",
                      "Location: http://10.9.9.9/\r\n",
                      "Location: file:///etc/passwd\r\n",
                      "Location: \r\n",
                      "Content-Base: rtsp://10.9.9.9/\r\n",
                      "Content-Base: {url}\r\n",
                      "Content-Location: rtsp://elsewhere.invalid/\r\n",
                      "Content-Length: 0\r\n",
                      "Content-Length: -1\r\n",
                      "Content-Length: 2147483647\r\n",
                      "Content-Length: 99999999999\r\n",
                      "Session: \r\n",
                      "Session: 1;timeout=0\r\n",
                      "Session: 1;timeout=-5\r\n",
                      "Session: 2147483647;timeout=2147483647\r\n",
                      "Transport: RTP/AVP;unicast;client_port=1-2;server_port=9-10;source=10.9.9.9\r\n",
                      "Transport: RTP/AVP;multicast;destination=239.1.1.1;port=5000-5001;ttl=16\r\n",
                      "RTP/AVP/UDP",
                      "RTP/AVP/TCP",
                      "RAW/RAW/UDP",
                      "x-real-rdt/tcp",
                      "x-pn-tng/tcp",
                      "interleaved=255-256",
                      "interleaved=0-0",
                      "server_port=0-0",
                      "client_port=0",
                      "source=elsewhere.invalid",
                      "destination=10.9.9.9",
                      "mode=record",
                      "WWW-Authenticate: Basic realm=\"{login}\"\r\n",
                      "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5-sess\r\n",
                      "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", algorithm=SHA-256, stale=true\r\n",
                      "Server: RealServer\r\n",
                      "Server: WMServer/9.1\r\n",
                      "RealChallenge1: abcdefabcdefabcdefabcdefabcdefab\r\n",
                      "Notice: 2101 End\r\n",
                      "X-Accept-Dynamic-Rate: 1\r\n",
                      "Range: npt=0-\r\n",
                      "RTP-Info: url={url};seq=1;rtptime=4294967295\r\n",
                      "Public: GET_PARAMETER\r\n",
                      "Connection: close\r\n"};
const Words kLines = {
    "\r\n",
    "m=audio 0 RTP/AVP 0\r\n",
    "m=video 0 RTP/AVP 96 97 98\r\n",
    "m=video 5000 RTP/AVP 33\r\n",
    "m=application 0 RTP/AVP 107\r\n",
    "m=data 0 RTP/AVP 99\r\n",
    "c=IN IP4 10.9.9.9\r\n",
    "c=IN IP4 239.1.1.1/16\r\n",
    "c=IN IP6 ff02::1\r\n",
    "a=control:*\r\n",
    "a=control:rtsp://10.9.9.9/track\r\n",
    "a=control:{url}\r\n",
    "a=rtpmap:96 H264/90000\r\n",
    "a=rtpmap:96 H265/90000\r\n",
    "a=rtpmap:96 JPEG/0\r\n",
    "a=rtpmap:96 MP4V-ES/90000\r\n",
    "a=rtpmap:96 VP8/90000\r\n",
    "a=rtpmap:96 VP9/90000\r\n",
    "a=rtpmap:96 AV1/90000\r\n",
    "a=rtpmap:96 H263-2000/90000\r\n",
    "a=rtpmap:96 theora/90000\r\n",
    "a=rtpmap:96 X-QT/90000\r\n",
    "a=rtpmap:96 raw/90000\r\n",
    "a=rtpmap:96 MPEG4-GENERIC/44100/2\r\n",
    "a=rtpmap:96 x-asf-pf/1000\r\n",
    "a=rtpmap:96 MP2T/90000\r\n",
    "a=rtpmap:96 DV/90000\r\n",
    "a=fmtp:96 "
    "packetization-mode=1;profile-level-id=640028;sprop-parameter-sets=Z2QACqzZX4iIhAAAAwAEAAADAFA8SJZY,aOvjyyLA\r\n",
    "a=fmtp:96 sprop-parameter-sets=,,,AA==,!!!!\r\n",
    "a=fmtp:96 sprop-vps=QAEMAf//; sprop-sps=; sprop-pps=AA\r\n",
    "a=fmtp:96 config=000001B001000001B58913\r\n",
    "a=fmtp:96 mode=AAC-hbr;sizelength=64;indexlength=-1;config=\r\n",
    "a=fmtp:96 sampling=YCbCr-4:2:2; width=65535; height=65535; depth=10\r\n",
    "a=fmtp:96 configuration=AAAAAQ==\r\n",
    "a=framesize:96 -1-65536\r\n",
    "a=framerate:0\r\n",
    "a=framerate:1e400\r\n",
    "a=range:npt=now-\r\n",
    "a=range:clock=20260101T000000Z-\r\n",
    "a=source-filter: incl IN IP4 * 10.9.9.9\r\n",
    "a=IsRealDataType:integer;1\r\n",
    "a=OpaqueData:buffer;\"AAAA\"\r\n",
    "a=ASMRuleBook:string;\"\"\r\n",
    "a=StreamCount:integer;9999\r\n",
    "a=pgmpu:data:application/vnd.ms.wms-hdr.asfv1;base64,MCaydQ==\r\n",
    "a=SSRC: 1\r\n",
    "b=AS:-1\r\n",
    "a=mpeg4-esid:1\r\n",
    "a=cliprect:0,0,1,1\r\n",
    "a=rtcp-mux\r\n",
    "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAAA\r\n"};
const Words kPacket = {"$",
                       {"$\0\xFF\xFF", 4},
                       {"$\1\0\0", 4},
                       {"$\0\0\0", 4},
                       {"$\0\0\14", 4},
                       "\x80\x60",
                       "\x80\xE0",
                       "\xB0\x60",
                       "\x9F\x60",
                       "\xFF\xFF",
                       "\x78",
                       "\x79",
                       "\x7A",
                       "\x7B",
                       "\x7C\x85",
                       "\x7C\x45",
                       "\x7C\x05",
                       "\x7D\x85",
                       {"\x78\0\0\0\1", 5},
                       "\x78\xFF\xFF",
                       "\x60\x01",
                       "\x62\x01\x93",
                       {"\x81\xC8\0\x06", 4},
                       {"\x80\xC9\0\1", 4},
                       {"\x81\xCB\0\1", 4},
                       {"\0\0\1", 3},
                       {"\x67\x64", 2},
                       "RTSP/1.0 200 OK\r\nCSeq: 9\r\n\r\n"};

std::string described(std::string_view media) {
  return fmt::format("v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=control:*\r\n{}a=control:track1\r\n", media);
}

// A clip as the camera of the source's own tests sends it, taken apart again.
std::vector<std::string> sent(const testing::ClipSpec& spec) {
  testing::Clip clip = testing::encode(spec);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("no sockets");
  std::string bytes;
  std::thread reader([&] {
    char part[4096];
    for (ssize_t size; (size = recv(ends[1], part, sizeof part, 0)) > 0;) bytes.append(part, static_cast<size_t>(size));
  });
  testing::Dial dial(ends[0]);
  testing::play(dial, clip);
  ::close(ends[0]);
  reader.join();
  ::close(ends[1]);
  std::vector<std::string> packets;
  for (std::string_view rest = bytes; rest.size() > 4;) {
    size_t size =
        4 + (static_cast<size_t>(static_cast<unsigned char>(rest[2])) << 8 | static_cast<unsigned char>(rest[3]));
    packets.emplace_back(rest.substr(0, size));
    rest.remove_prefix(packets.back().size());
  }
  return packets;
}

// The same headers before another kind of payload.
std::vector<std::string> with_payload(std::vector<std::string> packets, std::string_view payload, char type) {
  for (std::string& packet : packets) {
    packet.resize(16);
    packet += payload;
    packet[2] = static_cast<char>((packet.size() - 4) >> 8);
    packet[3] = static_cast<char>(packet.size() - 4);
    packet[5] = static_cast<char>((packet[5] & 0x80) | type);
  }
  return packets;
}

std::string answer(std::string_view headers, std::string_view body = {}) {
  return fmt::format("RTSP/1.0 200 OK\r\nCSeq: {}\r\n{}Content-Length: {}\r\n\r\n{}", kNumber, headers, body.size(),
                     body);
}

// Two payload types described in one section: FFmpeg forgets to free what it made for the first, a few hundred bytes a
// dial. Nothing else would be found behind that.
bool maps_twice(std::string_view text) {
  for (size_t at = text.find("rtpmap:"), next; at != std::string_view::npos; at = next) {
    next = text.find("rtpmap:", at + 1);
    if (next != std::string_view::npos && text.substr(at, next - at).find("\nm=") == std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace

RtspAnswers::RtspAnswers() {
  testing::ClipSpec small{.width = 176, .height = 144, .pictures = 8, .group = 4};
  auto change = [&](auto by) {
    testing::ClipSpec spec = small;
    by(spec);
    return spec;
  };
  std::vector<std::string> h264 = sent(small);
  std::string sender_report("$\1\0\x1C\x80\xC8\0\6\0\0\x12\x34\xEC\0\0\0\0\0\0\0\0\0\3\xE8\0\0\0\1\0\0\1\0", 32);
  h264.insert(h264.begin(), sender_report);
  std::string_view jpeg("\0\0\0\0\1\x32\x16\x12\xA5\x5A\x33\xCC\0\xFF\xD9", 15);
  std::string_view asf("\xC0\0\0\x20\x82\0\0\x5D\0\0\0\0\x81\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
  streams_ = {
      {described("m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n"), h264},
      {described("m=audio 0 RTP/AVP 0\r\na=control:track0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 "
                 "H264/90000\r\na=framerate:10\r\n"),
       sent(change([](auto& s) { s.b_frames = 2, s.group = 8; }))},
      {described("m=video 0 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\n"),
       sent(change([](auto& s) { s.encoder = "libx265"; }))},
      {described("m=video 0 RTP/AVP 26\r\na=framesize:26 176-144\r\n"), with_payload(h264, jpeg, 26)},
      {described("m=video 0 RTP/AVP 96\r\na=rtpmap:96 MP4V-ES/90000\r\na=fmtp:96 profile-level-id=1\r\n"), h264},
      {described("m=video 0 RTP/AVP 33\r\n"), with_payload(h264, std::string(188, 'G'), 33)},
      {described("m=video 0 RTP/AVP 96\r\na=rtpmap:96 x-asf-pf/1000\r\n"), with_payload(h264, asf, 96)},
      {described("m=video 0 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n"), h264},
  };
}

std::string RtspAnswers::media(Mutator& mutate, const Stream& stream) const {
  std::vector<std::string> packets = stream.packets;
  for (size_t changes = mutate.below(6); changes > 0; --changes) {
    std::string& packet = mutate.any(packets);
    // Mostly the headers: interleaving, RTP, and the payload's first bytes.
    size_t head = mutate.one_in(3) ? packet.size() : std::min<size_t>(packet.size(), 24);
    std::string changed =
        mutate.bytes(packet.substr(0, head), kPacket, mutate.any(stream.packets)) + packet.substr(head);
    // With a right size, so that what follows is still found; or with a wrong one.
    if (changed.size() >= 4 && !mutate.one_in(4)) {
      changed[0] = '$';
      changed[2] = static_cast<char>((changed.size() - 4) >> 8);
      changed[3] = static_cast<char>(changed.size() - 4);
    }
    packet = changed;
    if (mutate.one_in(4)) mutate.shuffle(packets);
    if (packets.empty()) return "";
  }
  std::string bytes;
  for (const std::string& packet : packets) {
    bytes += packet;
    if (mutate.one_in(100)) bytes += mutate.any(kWords);
  }
  return bytes;
}

Input RtspAnswers::draw(Mutator& mutate) const {
  for (;;) {
    Input input = changed(mutate);
    if (std::ranges::none_of(input, maps_twice)) return input;
  }
}

Input RtspAnswers::changed(Mutator& mutate) const {
  const Stream& stream = mutate.one_in(2) ? streams_[mutate.below(2)] : mutate.any(streams_);
  const Stream& other = mutate.any(streams_);
  bool udp = mutate.one_in(12);
  std::string description = stream.description;
  if (mutate.one_in(2)) description = mutate.bytes(description, kLines, other.description);
  std::vector<std::string> answers = {answer("Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n"),
                                      answer("Content-Type: application/sdp\r\nContent-Base: {url}/\r\n", description)};
  if (mutate.one_in(6)) {
    std::string_view kind = mutate.one_in(2) ? "Basic realm=\"r\"" : "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"";
    answers.insert(answers.begin() + 1,
                   fmt::format("RTSP/1.0 401 Unauthorized\r\nCSeq: {}\r\nWWW-Authenticate: {}\r\n\r\n", kNumber, kind));
  }
  std::string_view source = mutate.one_in(3) ? ";source=10.9.9.9" : mutate.one_in(3) ? ";source=elsewhere.invalid" : "";
  std::string transport =
      udp ? "RTP/AVP/UDP;unicast;client_port=5000-5001;server_port=6000-6001" : "RTP/AVP/TCP;interleaved=0-1";
  for (size_t at = 0; (at = description.find("m=video", at)) != std::string::npos; ++at)
    answers.push_back(answer(fmt::format("Transport: {}{}\r\nSession: 1;timeout=60\r\n", transport, source)));
  answers.push_back(answer("Session: 1\r\nRTP-Info: url={url};seq=0;rtptime=1000\r\n"));
  if (mutate.one_in(2))
    for (size_t changes = 1 + mutate.below(2); changes > 0; --changes) {
      std::string& changed = mutate.any(answers);
      changed = mutate.bytes(changed, kWords, mutate.any(answers));
    }
  if (mutate.one_in(20)) mutate.shuffle(answers);
  if (answers.empty()) answers.emplace_back();
  answers.back() += media(mutate, stream);
  answers.insert(answers.begin(), {udp ? 'u' : 't', mutate.one_in(40) ? 'h' : 'c'});
  return answers;
}

}  // namespace weir::fuzz
