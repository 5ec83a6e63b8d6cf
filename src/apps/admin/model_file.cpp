// The files of detector clusters' models: up to the control plane, and down from it.
#include "admin.hpp"
#include "common/api.hpp"
#include "common/files.hpp"
#include "common/print.hpp"

#include "weir/net/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace weir::apps {

namespace {

constexpr std::string_view kModels = "/v1/models";
constexpr size_t kPieceBytes = 256 << 10;

// A file that is read or written piece by piece.
class PiecewiseFile {
 public:
  static Result<std::shared_ptr<PiecewiseFile>> open(std::string path, int flags) {
    int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    std::shared_ptr<PiecewiseFile> file(new PiecewiseFile(fd, std::move(path)));
    if (fd < 0) return file->failure("open");
    return file;
  }
  ~PiecewiseFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  PiecewiseFile(const PiecewiseFile&) = delete;

  Result<std::string> read() {
    std::string piece(kPieceBytes, '\0');
    ssize_t got = -1;
    do got = ::read(fd_, piece.data(), piece.size());
    while (got < 0 && errno == EINTR);
    if (got < 0) return failure("read");
    piece.resize(static_cast<size_t>(got));
    return piece;
  }
  Status write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t put = ::write(fd_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return failure("write");
      bytes.remove_prefix(static_cast<size_t>(put));
    }
    return ok();
  }
  Status rewind() {
    if (::lseek(fd_, 0, SEEK_SET) != 0) return failure("read");
    return ok();
  }

 private:
  PiecewiseFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Error failure(std::string_view what) const {
    return {Errc::unavailable, std::string(kFileFailed),
            fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno))};
  }
  const int fd_;
  const std::string path_;
};

struct Measured {
  std::string sha256;
  std::uint64_t bytes = 0;
};
Result<Measured> measure(PiecewiseFile& file) {
  net::Sha256 sum;
  for (std::uint64_t bytes = 0;;) {
    TRY(piece, file.read());
    if (piece.empty()) return Measured{sum.hex(), bytes};
    sum.add(piece);
    bytes += piece.size();
  }
}

// The file is read twice, so that the control plane can refuse what changed on its way.
Result<int> model_upload(const Arguments& arguments) {
  std::string id = arguments.text("<model>"), path = arguments.text("<file>");
  TRY(file, PiecewiseFile::open(path, O_RDONLY));
  TRY(measured, measure(*file));
  TRY(again, file->rewind());
  net::BodySource source;
  source.bytes = measured.bytes;
  source.next = [file]() -> boost::asio::awaitable<Result<std::string>> { co_return file->read(); };
  std::string name = arguments.has("name") ? arguments.text("name") : std::filesystem::path(path).filename().string();
  std::string target = route(kModels, id, "/file");
  add_query(target, "name", name);
  TRY(api, Api::connect(arguments));
  TRY(answer, api.upload(std::move(target), std::move(source), {"X-Content-SHA256", measured.sha256}));
  return done(arguments, answer,
              fmt::format("uploaded {} as the file of model {}: {} bytes, sha256 {}", path, id, measured.bytes,
                          measured.sha256));
}

// Removes what it was given unless that was kept.
struct Unfinished {
  std::string path;
  ~Unfinished() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

// The file appears under its name when it is complete.
Result<int> model_download(const Arguments& arguments) {
  std::string id = arguments.text("<model>"), path = arguments.text("<file>");
  TRY(api, Api::connect(arguments));
  TRY(model, api.get(route(kModels, id)));
  const json::value* about = model.is_object() ? model.get_object().if_contains("file") : nullptr;
  if (about == nullptr || !about->is_object())
    return Error{Errc::conflict, "no_file",
                 fmt::format("model {} has no file yet; upload one with: weir model upload {} FILE", id, id)};
  Unfinished part{path + ".part"};
  net::Sha256 sum;
  {
    TRY(file, PiecewiseFile::open(part.path, O_WRONLY | O_CREAT | O_TRUNC));
    TRY(loaded, api.download(route(kModels, id, "/file"), [&](std::string_view piece) {
          sum.add(piece);
          return file->write(piece);
        }));
  }
  std::string sha256 = sum.hex();
  if (sha256 != cell(*about, "sha256"))
    return Error{Errc::conflict, "wrong_checksum",
                 fmt::format("the file that arrived has the SHA-256 {}, not {}: the model was given another one "
                             "meanwhile, or it is damaged; nothing was written",
                             sha256, cell(*about, "sha256"))};
  if (::rename(part.path.c_str(), path.c_str()) != 0)
    return Error{Errc::unavailable, std::string(kFileFailed),
                 fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  part.path.clear();
  return done(arguments, *about,
              fmt::format("wrote {}: {} bytes, sha256 {}", path, cell(*about, "bytes"), sha256));
}

}  // namespace

std::vector<Command> model_file_commands() {
  return {{"model upload", "Upload the file of a model, in place of one that it has",
           "weir model upload 7 yolo11n.onnx", "admin",
           with_api_options({{"<model>", "N", "The model's number", true},
                             {"<file>", "FILE", "Where the file lies on this machine", true},
                             {"name", "NAME", "What the file is called; by default as on this machine"}}),
           model_upload},
          {"model download", "Download the file of a model, and check that it arrived as it was uploaded",
           "weir model download 7 yolo11n.onnx", "admin",
           with_api_options({{"<model>", "N", "The model's number", true},
                             {"<file>", "FILE", "Where to write it; a file that is there is replaced", true}}),
           model_download}};
}

}  // namespace weir::apps
