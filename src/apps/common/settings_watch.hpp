// SettingsWatch: settings that change while a process runs.
//
// They are read again when the process is told to (SIGHUP), and when the settings file has changed, which is looked at
// every two seconds. Each reading is handed to `apply`, which takes the `live` ones from it; the log says by name what
// took effect and what needs a restart. The log level is always live. A file that cannot be read or holds a mistake is
// refused as a whole, with the mistake in the log. Loop thread only.
#pragma once

#include "command.hpp"

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <string>
#include <vector>

namespace weir::apps {

class SettingsWatch {
 public:
  using Apply = std::function<Status(const Settings& fresh)>;

  SettingsWatch(boost::asio::io_context& io, const Arguments& arguments, Settings current,
                std::vector<std::string_view> live = {}, Apply apply = {});
  void start();
  void stop();
  void read_again();

 private:
  void look();
  std::string state_of_file() const;

  const Arguments arguments_;
  const Settings started_;
  Settings current_;
  const std::vector<std::string_view> live_;
  const Apply apply_;
  std::string seen_;  // the file's state at the last reading
  boost::asio::steady_timer timer_;
  bool stopped_ = false;
};

}  // namespace weir::apps
