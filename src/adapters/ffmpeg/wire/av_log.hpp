// LogTap: the lines that FFmpeg logs while a source works: credentials are taken out, and the lines tell what went
// wrong.
//
// FFmpeg has one log callback a process. Each line goes to the tap that listens on the thread it was written on, which
// remembers what tells causes apart; the reasons behind FFmpeg's bare error numbers stand nowhere else. Lines worth
// reading go on to Weir's log, a few at a time, through a redactor that knows the credentials of every living tap.
// A tap listens on one thread at a time; the callback may come from any.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/base/time.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::ffmpeg {

// FFmpeg's lines go to Weir's log from now on. Any number of times; the first tap does it too.
void take_over_log();

class LogTap {
 public:
  // `more` are further texts that nobody may read.
  explicit LogTap(const Secret& url, const std::vector<Secret>& more = {});
  LogTap(const LogTap&) = delete;
  ~LogTap();

  // While one lives, this thread's lines are the tap's.
  class Listening {
   public:
    explicit Listening(LogTap& tap);
    Listening(const Listening&) = delete;
    ~Listening();

   private:
    LogTap* before_;
  };

  struct Heard {
    bool connected = false;       // the TCP connection stood
    bool answered = false;        // the camera wrote at least one line
    bool tls = false;             // the TLS layer complained
    bool redirected = false;
    bool audio = false;           // announced by the stream's description
    int status = 0;               // of the last method that failed
    std::string method = {};
    bool publishing = false;      // RTMP: the stream key was presented
    std::string complaint = {};   // RTMP: the server's own words, without secrets
  };
  Heard heard;
  // Only somebody who looks for faults wants to read this tap's lines.
  bool quiet = false;
  // Called when the stream is about to follow a redirect, on the listening thread.
  std::function<void()> on_redirect;

  void line(std::string_view speaker, int level, std::string_view text);
  void http_status(int status);
  // One line of an RTSP answer, before FFmpeg reads it.
  void answer(char* line);

 private:
  Instant window_{};
  int shown_ = 0, hidden_ = 0;
};

}  // namespace weir::ffmpeg
