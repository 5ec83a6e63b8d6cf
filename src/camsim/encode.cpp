#include "encode.hpp"

#include "access_unit.hpp"
#include "gst.hpp"
#include "scene.hpp"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

namespace weir::camsim {

namespace {

// One thread each, so that the same profile gives the same bytes; no scene cuts, so that keyframes come when due.
std::string encoder(const Profile& p) {
  int interval = p.keyframe_frames();
  switch (p.codec) {
    case Codec::h264:
      return fmt::format(
          "x264enc speed-preset=veryfast threads=1 sliced-threads=false aud=false byte-stream=true b-adapt=false "
          "key-int-max={} bframes={} intra-refresh={} {} {} option-string=\"scenecut=0:open-gop=0:min-keyint={}\" ! "
          "video/x-h264,stream-format=byte-stream,alignment=au",
          interval, p.bframes, p.intra_refresh, p.bframes == 0 ? "tune=zerolatency" : "",
          p.bitrate_kbps > 0 ? fmt::format("pass=cbr bitrate={}", p.bitrate_kbps) : "pass=qual quantizer=23", interval);
    case Codec::h265:
      return fmt::format(
          "x265enc speed-preset=superfast key-int-max={0} {1} option-string=\"scenecut=0:open-gop=0:min-keyint={0}:"
          "bframes={2}:b-adapt=0:repeat-headers=1:aud=0:pools=none:frame-threads=1:log-level=none:{3}{4}\" ! "
          "video/x-h265,stream-format=byte-stream,alignment=au",
          interval, p.bitrate_kbps > 0 ? fmt::format("bitrate={}", p.bitrate_kbps) : "", p.bframes,
          p.bitrate_kbps > 0 ? fmt::format("vbv-maxrate={0}:vbv-bufsize={0}", p.bitrate_kbps) : "crf=26",
          p.intra_refresh ? ":intra-refresh=1" : "");
    case Codec::mjpeg: return "jpegenc quality=80";
  }
  return {};
}

GstClockTime frame_time(int frame, int fps) {
  return gst_util_uint64_scale(GST_SECOND, static_cast<guint64>(frame), static_cast<guint64>(fps));
}

GstBuffer* raw_buffer(const Pixels& picture, int frame, const Profile& p) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, picture.size(), nullptr);
  gst_buffer_fill(buffer, 0, picture.data(), picture.size());
  if (p.stamp) {
    GstMapInfo map;
    WEIR_ASSERT(gst_buffer_map(buffer, &map, GST_MAP_WRITE));
    paint(Timeline{.fps = p.fps}.stamp(frame), map.data, p.width);
    gst_buffer_unmap(buffer, &map);
  }
  GST_BUFFER_PTS(buffer) = frame_time(frame, p.fps);
  GST_BUFFER_DURATION(buffer) = frame_time(1, p.fps);
  return buffer;
}

struct Encoded {
  std::vector<AccessUnit> units;
  std::vector<GstClockTime> times;
  std::string data;

  bool take(GstAppSink* sink, GstClockTime patience, Codec codec) {
    GstSample* sample = gst_app_sink_try_pull_sample(sink, patience);
    if (sample == nullptr) return false;
    GstBuffer* buffer = gst_sample_get_buffer(sample);
    size_t offset = data.size(), bytes = gst_buffer_get_size(buffer);
    data.resize(offset + bytes);
    gst_buffer_extract(buffer, 0, data.data() + offset, bytes);
    units.push_back({offset, bytes, 0, decodable_alone(codec, std::string_view(data).substr(offset))});
    times.push_back(GST_BUFFER_PTS(buffer));
    gst_sample_unref(sample);
    return true;
  }
  // Encoders may shift all times; the first frame's is the smallest.
  void number_units(int fps) {
    GstClockTime first = times.empty() ? 0 : *std::min_element(times.begin(), times.end());
    for (size_t i = 0; i < units.size(); ++i)
      units[i].number =
          static_cast<int>(gst_util_uint64_scale_round(times[i] - first, static_cast<guint64>(fps), GST_SECOND));
  }
};

}  // namespace

Result<LoopPtr> encode_loop(const Profile& p, const std::string& footage_file) {
  TRY(pipeline, Pipeline::create(fmt::format(
                    "appsrc name=in format=time block=true max-bytes=16000000 "
                    "caps=video/x-raw,format=I420,width={},height={},framerate={}/1,interlace-mode=progressive ! "
                    "{} ! appsink name=out sync=false",
                    p.width, p.height, p.fps, encoder(p))));
  TRY(scene, FrameSource::create(p, footage_file));
  auto in = pipeline.element<GstAppSrc>("in");
  auto out = pipeline.element<GstAppSink>("out");
  pipeline.play();

  Encoded encoded;
  for (int frame = 0;; ++frame) {
    TRY(picture, scene->next());
    if (picture == nullptr) break;
    if (gst_app_src_push_buffer(in.get(), raw_buffer(*picture, frame, p)) != GST_FLOW_OK) break;
    while (encoded.take(out.get(), 0, p.codec)) continue;
  }
  gst_app_src_end_of_stream(in.get());
  while (encoded.take(out.get(), 60 * GST_SECOND, p.codec)) continue;
  TRY(healthy, pipeline.status());
  encoded.number_units(p.fps);
  return Loop::create(p, std::move(encoded.units), std::move(encoded.data));
}

}  // namespace weir::camsim
