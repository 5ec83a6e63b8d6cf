// The functions of the module weir-hog.so, in C's terms because it is loaded at run time. Any thread.
#pragma once

extern "C" {

struct WeirHogPerson {
  double x, y, width, height;  // pixels of the picture
  double score;                // 0 to 1
};

// People in a packed RGB picture: how many were written, -1 where OpenCV failed.
using WeirHogPeople = int (*)(const unsigned char* rgb, int width, int height, WeirHogPerson* people, int people_max);
}
