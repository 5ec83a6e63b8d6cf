// PlaneWatch: what a runner's log says about its control plane: that it is away, for which reason, and that it is back.
//
// The manager tells it how every request ended. One kind of request may fail where others are answered, so the plane
// counts as away from the first failure on until no kind fails. Each reason is logged once in that time, and seldom
// enough that a plane which comes and goes does not fill the log. Loop thread only.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace weir::runner {

// "does not answer", "refuses this runner" …: each sends a person to look for something else.
std::string_view what_it_does(const Error& why);

class PlaneWatch {
 public:
  template <class T>
  void note(std::string_view question, const Result<T>& outcome, Instant now) {
    if (outcome) answered(question, now);
    else failed(question, outcome.error(), now);
  }

 private:
  void answered(std::string_view question, Instant now);
  void failed(std::string_view question, const Error& why, Instant now);

  std::map<std::string, Instant> failing_;  // the questions, and when they last failed
  Instant since_{};
  std::set<std::string> said_;              // the reasons; none: nobody knows yet that it is away
  std::optional<Instant> last_line_;
};

}  // namespace weir::runner
