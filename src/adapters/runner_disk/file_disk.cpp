#include "weir/runner_disk/file_disk.hpp"

#include "weir/base/json.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace weir::runner_disk {

namespace asio = boost::asio;

namespace {

std::string read_all(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

CameraId camera_in(const std::string& text) {
  auto parsed = json::parse_text(text);
  const json::value* camera = parsed && parsed->is_object() ? parsed->get_object().if_contains("camera_uuid") : nullptr;
  return camera != nullptr && camera->is_string() ? CameraId::trusted(std::string(camera->get_string())) : CameraId();
}

// Replaces the file as a whole or not at all.
void replace_file(const std::string& path, const std::string& text) {
  std::string fresh = path + ".new";
  int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (written) ::rename(fresh.c_str(), path.c_str());
}

}  // namespace

// Reads the camera that the worker's signal handler wrote down.
asio::awaitable<CameraId> FileDisk::culprit(std::string crash_file) {
  struct Answer {
    asio::steady_timer due;
    CameraId camera = {};
  };
  auto answer = std::make_shared<Answer>(Answer{asio::steady_timer(io_)});
  asio::post(threads_, [this, answer, crash_file = std::move(crash_file)]() mutable {
    std::string text = read_all(crash_file);
    std::remove(crash_file.c_str());
    asio::post(io_, [answer = std::move(answer), text = std::move(text)] {
      answer->camera = camera_in(text);
      answer->due.cancel();
    });
  });
  boost::system::error_code was_read;
  answer->due.expires_after(std::chrono::milliseconds(500));
  co_await answer->due.async_wait(asio::redirect_error(asio::use_awaitable, was_read));
  co_return answer->camera;
}

bool FileDisk::keep_cameras(std::string list) {
  if (writing_.exchange(true)) return false;
  asio::post(threads_, [this, list = std::move(list)] {
    replace_file(cameras_, list);
    writing_ = false;
  });
  return true;
}

std::string FileDisk::kept_cameras() { return read_all(cameras_); }

asio::awaitable<std::vector<SpoolContent>> FileDisk::spools() {
  auto list = [](Spool* spool) -> asio::awaitable<std::vector<SpoolContent>> { co_return spool->list(); };
  co_return co_await asio::co_spawn(threads_, list(&spool_), asio::use_awaitable);
}

asio::awaitable<std::uint64_t> FileDisk::drop(SpoolContent left) {
  auto drop_one = [](Spool* spool, SpoolContent what) -> asio::awaitable<std::uint64_t> {
    co_return spool->drop(what.camera, what.tenure);
  };
  co_return co_await asio::co_spawn(threads_, drop_one(&spool_, std::move(left)), asio::use_awaitable);
}

}  // namespace weir::runner_disk
