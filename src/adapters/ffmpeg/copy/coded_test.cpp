#include "coded.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace weir::ffmpeg {
namespace {

using namespace std::string_view_literals;

CodedFormat h264(std::string_view told) {
  CodedFormat format;
  format.video = Parameters(avcodec_parameters_alloc());
  format.video->codec_id = AV_CODEC_ID_H264;
  format.video->extradata = static_cast<std::uint8_t*>(av_mallocz(told.size() + AV_INPUT_BUFFER_PADDING_SIZE));
  format.video->extradata_size = static_cast<int>(told.size());
  std::memcpy(format.video->extradata, told.data(), told.size());
  return format;
}

// A publisher that comes back is the same stream, whether its sets were read in the description or in the first picture:
// the destination need not be dialled again.
TEST(CodedFormat, TheSameSets_AreTheSameFormat_WhateverStandsBeforeThem) {
  CodedFormat described = h264("\0\0\0\1\x67SPS\0\0\0\1\x68PPS"sv), pictured = h264("\0\0\1\x67SPS\0\0\1\x68PPS"sv);
  EXPECT_TRUE(described.same_as(pictured));
  EXPECT_TRUE(pictured.same_as(h264("\0\0\1\x68PPS\0\0\1\x67SPS"sv)));
  EXPECT_FALSE(described.same_as(h264("\0\0\0\1\x67SPX\0\0\0\1\x68PPS"sv)));
  EXPECT_FALSE(described.same_as(h264("\0\0\0\1\x67SPS"sv)));
  EXPECT_FALSE(described.same_as(h264(""sv)));
  EXPECT_FALSE(h264("\1avcC"sv).same_as(h264("\1avcD"sv)));
  EXPECT_FALSE(described.same_as(CodedFormat()));
}

}  // namespace
}  // namespace weir::ffmpeg
