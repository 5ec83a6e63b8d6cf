#include "weir/base/spawn.hpp"

#include "weir/base/log.hpp"

#include <boost/asio/co_spawn.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace weir {

namespace {

std::string sentence_of(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

// Destructors may wait for what is broken, so none of them runs.
[[noreturn]] void end_broken(std::string_view what, const std::exception_ptr& failed) {
  log::error("program.broken", fmt::format("{}: {}", what, sentence_of(failed)));
  std::fflush(stdout);
  std::_Exit(kExitBroken);
}

}  // namespace

void spawn(const boost::asio::any_io_executor& on, boost::asio::awaitable<void> work, std::string_view what,
           std::function<void()> ended) {
  auto at_end = [name = std::string(what), ended = std::move(ended)](const std::exception_ptr& failed) {
    if (failed) end_broken(name, failed);
    if (ended) ended();
  };
  boost::asio::co_spawn(on, std::move(work), std::move(at_end));
}

}  // namespace weir
