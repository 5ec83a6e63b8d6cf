#include "../hog_module.hpp"

#include <opencv2/imgproc.hpp>
#include <opencv2/objdetect.hpp>

#include <algorithm>
#include <cmath>

extern "C" int weir_hog_people(const unsigned char* rgb, int width, int height, WeirHogPerson* people,
                               int people_max) try {
  static const auto hog = [] {
    // Called only once: OpenCV builds its pool of threads anew with every call, while other threads may be using it.
    cv::setNumThreads(1);
    cv::HOGDescriptor made;
    made.setSVMDetector(cv::HOGDescriptor::getDefaultPeopleDetector());
    return made;
  }();
  if (width < hog.winSize.width || height < hog.winSize.height) return 0;
  // Gradients do not care for the order of colours.
  const cv::Mat picture(height, width, CV_8UC3, const_cast<unsigned char*>(rgb));
  std::vector<cv::Rect> boxes;
  std::vector<double> distances;
  hog.detectMultiScale(picture, boxes, distances, 0, cv::Size(8, 8), cv::Size(), 1.05, 2);
  int count = std::min<int>(people_max, static_cast<int>(boxes.size()));
  for (int i = 0; i < count; ++i) {
    const cv::Rect& b = boxes[static_cast<size_t>(i)];
    // The detector was taught with a margin of an eighth of the height on all sides of a person.
    people[i] = {b.x + 0.22 * b.width, b.y + 0.125 * b.height, 0.56 * b.width, 0.75 * b.height,
                 1 / (1 + std::exp(-distances[static_cast<size_t>(i)]))};
  }
  return count;
} catch (...) {
  return -1;
}
