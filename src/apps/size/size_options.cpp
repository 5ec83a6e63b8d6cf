#include "size_options.hpp"

#include <charconv>
#include <cmath>

namespace weir::apps {

namespace {

Result<camera::FrameSize> read_size(std::string_view text) {
  camera::FrameSize size;
  const char* end = text.data() + text.size();
  auto [at, bad_width] = std::from_chars(text.data(), end, size.width);
  bool crossed = bad_width == std::errc{} && at != end && *at == 'x';
  auto [last, bad_height] = std::from_chars(crossed ? at + 1 : end, end, size.height);
  bool sane = size.width >= 64 && size.width <= 8192 && size.height >= 64 && size.height <= 8192;
  if (!crossed || bad_height != std::errc{} || last != end || !sane || size.width % 2 != 0 || size.height % 2 != 0)
    return usage_error("--resolution must be WIDTHxHEIGHT, even numbers from 64 to 8192: 1920x1080");
  return size;
}

}  // namespace

Result<SizeOptions> read_size_options(const Arguments& arguments) {
  SizeOptions out;
  if (arguments.has("codec")) out.codec = arguments.text("codec");
  if (out.codec != "h264" && out.codec != "hevc" && out.codec != "mjpeg")
    return usage_error("--codec must be one of: h264, hevc, mjpeg");
  TRY(fps, arguments.number("stream-fps"));
  if (fps && (*fps < 1 || *fps > 60)) return usage_error("--stream-fps must be between 1 and 60");
  if (fps) out.stream_fps = static_cast<int>(std::lround(*fps));
  if (std::string model = arguments.text("model"); !model.empty()) {
    size_t slash = std::min(model.find('/'), model.size());
    out.model = {model.substr(0, slash), model.substr(std::min(slash + 1, model.size()))};
  }
  if (!arguments.has("resolution")) return out;
  out.sizes.clear();
  std::string all = arguments.text("resolution");
  for (size_t at = 0; at <= all.size();) {
    size_t end = std::min(all.find(',', at), all.size());
    TRY(size, read_size(std::string_view(all).substr(at, end - at)));
    out.sizes.push_back(size);
    at = end + 1;
  }
  return out;
}

}  // namespace weir::apps
