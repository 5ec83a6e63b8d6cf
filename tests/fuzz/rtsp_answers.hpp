// RtspAnswers: what a camera says from OPTIONS to the last packet of its stream, in the dialects that exist, and
// changed.
//
// An input's first part says how: 't' or 'u' for the transport, 'h' to hold the connection at the end or 'c' to close
// it. Each further part answers one request; the stream follows PLAY's answer. One thread only.
#pragma once

#include "target.hpp"

namespace weir::fuzz {

// Stand in an answer for what the request said.
inline constexpr std::string_view kNumber = "{cseq}", kUrl = "{url}", kLogin = "{login}";

class RtspAnswers {
 public:
  RtspAnswers();
  Input draw(Mutator& mutate) const;

 private:
  struct Stream {
    std::string description;
    std::vector<std::string> packets;  // interleaved
  };
  Input changed(Mutator& mutate) const;
  std::string media(Mutator& mutate, const Stream& stream) const;

  std::vector<Stream> streams_;
};

}  // namespace weir::fuzz
