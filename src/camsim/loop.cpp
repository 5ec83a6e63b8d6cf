#include "weir/camsim/loop.hpp"

#include "access_unit.hpp"
#include "encode.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <glib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace weir::camsim {

namespace fs = std::filesystem;

namespace {

constexpr int kCacheVersion = 1;  // raised when the same profile shall be encoded differently

Error broken(std::string_view what) {
  return Error{Errc::internal, "bad_loop", fmt::format("the encoded pictures form no loop: {}", what)};
}

Result<std::string> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string all{std::istreambuf_iterator<char>(file), {}};
  if (!file) return Error{Errc::not_found, "no_file", fmt::format("cannot read the file \"{}\"", path)};
  return all;
}

// A loop's file is one line of JSON, then the units' bytes: {"units":[[bytes,number,key],…]}.
std::string to_file(const Loop& loop) {
  json::array units;
  std::string data;
  for (const AccessUnit& unit : loop.units()) {
    units.push_back(json::array{unit.bytes, unit.number, unit.key});
    data += loop.data(unit);
  }
  return json::to_text(json::object{{"profile", to_text(loop.profile())}, {"units", std::move(units)}}) + "\n" + data;
}

Result<LoopPtr> from_file(const Profile& profile, const std::string& file) try {
  size_t line = file.find('\n');
  if (line == std::string::npos) return broken("no first line");
  // Not json::parse_text, whose bounds are for what strangers send.
  json::value head = boost::json::parse(std::string_view(file).substr(0, line));
  std::vector<AccessUnit> units;
  size_t offset = 0;
  for (const json::value& each : head.as_object().at("units").as_array()) {
    const json::array& row = each.as_array();
    units.push_back({offset, row.at(0).to_number<size_t>(), row.at(1).to_number<int>(), row.at(2).as_bool()});
    offset += units.back().bytes;
  }
  if (offset != file.size() - line - 1) return broken("bytes are missing");
  return Loop::create(profile, std::move(units), file.substr(line + 1));
} catch (const std::exception& bad) {
  return broken(bad.what());
}

Status write_whole(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  fs::path temporary = fmt::format("{}.{}", path.string(), random_hex(4));
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file) fs::rename(temporary, path, failed);
  if (file && !failed) return ok();
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return Error{Errc::unavailable, "no_cache", fmt::format("cannot write {}: {}", path.string(), std::strerror(errno))};
}

}  // namespace

Result<LoopPtr> Loop::create(const Profile& profile, std::vector<AccessUnit> units, std::string data) {
  if (units.empty() || !units[0].key) return broken("it does not begin with a keyframe");
  std::vector<bool> seen(units.size(), false);
  std::shared_ptr<Loop> loop(new Loop);
  int key = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    const AccessUnit& unit = units[i];
    auto number = static_cast<size_t>(unit.number);
    if (unit.number < 0 || number >= units.size() || seen[number]) return broken("frames are missing or doubled");
    if (unit.bytes == 0 || unit.offset + unit.bytes > data.size()) return broken("bytes are missing");
    seen[number] = true;
    if (unit.key) key = static_cast<int>(i);
    loop->key_before_.push_back(key);
    loop->reorder_ = std::max(loop->reorder_, unit.number - static_cast<int>(i));
  }
  loop->profile_ = profile;
  loop->units_ = std::move(units);
  loop->data_ = std::move(data);
  loop->sets_bytes_ = parameter_sets_bytes(profile.codec, loop->data(loop->units_[0]));
  return LoopPtr(std::move(loop));
}

Result<LoopPtr> LoopLibrary::get(const Profile& profile) {
  Profile pictures = profile;
  pictures.audio = false;
  std::lock_guard lock(mutex_);
  LoopPtr& known = loops_[to_text(pictures)];
  if (!known) {
    TRY(opened, open(pictures));
    known = std::move(opened);
  }
  return known;
}

Result<LoopPtr> LoopLibrary::open(const Profile& profile) {
  std::string source = fmt::format("{} {} ", kCacheVersion, to_text(profile));
  if (profile.scene != Scene::moving) {
    TRY(footage, read_whole(footage_file_));
    source += footage;
  }
  char* digest =
      g_compute_checksum_for_data(G_CHECKSUM_SHA256, reinterpret_cast<const guchar*>(source.data()), source.size());
  fs::path path = fs::path(cache_dir_) / fmt::format("{:.32}.loop", digest);
  g_free(digest);

  if (auto cached = read_whole(path.string())) {
    if (auto loop = from_file(profile, *cached)) return loop;
    log::warn("camsim.cache_broken", "encodes again").with("file", path.string());
  }
  log::info("camsim.encoding", "this profile is encoded once").with("profile", to_text(profile));
  TRY(loop, encode_loop(profile, footage_file_));
  if (auto kept = write_whole(path, to_file(*loop)); !kept) log::warn("camsim.not_cached", kept.error().message);
  return loop;
}

}  // namespace weir::camsim
