// What an RTMP server says from its handshake to the middle of a stream, right and changed.
//
// An input's first part is three letters: how the server behaves at the end, which URL it is reached under, and how the
// client leaves. The second is the handshake; the next three answer `connect`, `createStream` and `publish`, the last
// of them together with what is said while the stream flows. Each further part is a challenge: the run's first
// connections get one each in answer to `connect`, which makes the client connect again. Any thread.
#pragma once

#include "target.hpp"

namespace weir::fuzz {

// Stand in every URL, and a server may repeat them.
inline constexpr std::string_view kUser = "xyzzy-user", kPassword = "xyzzy-pass", kKey = "xyzzy-key",
                                  kToken = "xyzzy-token";

// The places in an input.
inline constexpr size_t kManners = 0, kHandshake = 1, kConnect = 2, kCreate = 3, kPublish = 4, kChallenges = 5;

// What the server does when it has said everything: it reads on until the client falls silent, ends its own side
// before that, hangs up without reading, reads on for longer than any call may take, or reads nothing more and stays.
inline constexpr char kReads = 'r', kEnds = 'e', kHangsUp = 'u', kHolds = 'h', kDeaf = 'd';
// What the client does when it has written everything: it says goodbye, breaks off, or is interrupted before.
inline constexpr char kCloses = 'c', kResets = 'r', kInterrupted = 'i';
inline constexpr size_t kUrls = 4;

Input draw_rtmp_answers(Mutator& mutate);

}  // namespace weir::fuzz
