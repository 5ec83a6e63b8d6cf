// What FFmpeg's C interface needs to be owned in C++: pointers that free themselves, and its error numbers in words.
// Plain values; one thread at a time.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
}

#include <memory>
#include <new>
#include <string>

namespace weir::ffmpeg {

struct AvFree {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
  void operator()(AVIOContext* io) const { avio_closep(&io); }
};
template <class T>
using AvPtr = std::unique_ptr<T, AvFree>;

// Memory that runs out ends the process, as everywhere else.
template <class T>
AvPtr<T> owned(T* raw) {
  if (raw == nullptr) throw std::bad_alloc();
  return AvPtr<T>(raw);
}

class AvOptions {
 public:
  AvOptions() = default;
  AvOptions(const AvOptions&) = delete;
  ~AvOptions() { av_dict_free(&all_); }
  void set(const char* name, const std::string& value) { av_dict_set(&all_, name, value.c_str(), 0); }
  void set(const char* name, std::int64_t value) { av_dict_set_int(&all_, name, value, 0); }
  AVDictionary** get() { return &all_; }

 private:
  AVDictionary* all_ = nullptr;
};

inline std::string av_words(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  return text;
}

}  // namespace weir::ffmpeg
