#include "trial.hpp"

#include "weir/ports/model_files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace weir::tflite {
namespace {

using namespace std::chrono_literals;

std::string outcome(std::chrono::milliseconds limit, const std::function<Status()>& work) {
  Status status = try_in_child("some.model", limit, work);
  return status ? "fine" : status.error().reason + " " + status.error().message;
}

TEST(Trial, WorkInAChildMayFailCrashOrHang) {
  EXPECT_EQ(outcome(30s, [] { return ok(); }), "fine");
  EXPECT_EQ(outcome(30s, [] { return Status(model_failure("too strange")); }), "MODEL_ERROR too strange");
  EXPECT_EQ(outcome(30s, [] { return raise(SIGSEGV), ok(); }),
            "MODEL_ERROR some.model is damaged: its library crashed when it was tried");
  EXPECT_EQ(outcome(30s, [] { return std::abort(), ok(); }),
            "MODEL_ERROR some.model is damaged: its library crashed when it was tried");
  EXPECT_EQ(outcome(50ms, [] { return pause(), ok(); }),
            "MODEL_ERROR some.model is damaged: its library did not answer when it was tried");
}

// A lock or a connection that this process gives up meanwhile must not live on in there.
TEST(Trial, WorkInAChildHasNoDescriptorsOfThisProcess) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto has_none = [&] {
    bool gone = ::fcntl(ends[0], F_GETFD) < 0 && ::fcntl(ends[1], F_GETFD) < 0;
    return gone ? ok() : Status(model_failure("it has them"));
  };
  EXPECT_EQ(outcome(30s, has_none), "fine");
  for (int end : ends) ::close(end);
}

TEST(Trial, WorkInAChildChangesNothingHere) {
  int touched = 0;
  EXPECT_EQ(outcome(30s, [&] { return ++touched, ok(); }), "fine");
  EXPECT_EQ(touched, 0);
}

}  // namespace
}  // namespace weir::tflite
