#include "weir/cluster/subscription.hpp"

namespace weir::cluster {

Result<Identifier> Identifier::parse(std::string_view text) {
  size_t at = text.find(';');
  bool split = at != std::string_view::npos && text.find(';', at + 1) == std::string_view::npos;
  if (split && id_problem(text.substr(0, at)).empty() && id_problem(text.substr(at + 1)).empty())
    return Identifier{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
  return Error{Errc::invalid, "bad_subscription_identifier",
               "Invalid subscription identifier format: it must be displayId;cameraId", {}};
}

void read_value(const json::value& v, Identifier& out, const std::string& path, json::Context& ctx) {
  if (!v.is_string()) return ctx.add(path, "must be a string");
  auto parsed = Identifier::parse(std::string_view(v.get_string()));
  if (!parsed) return ctx.add(path, "must be displayId;cameraId");
  out = *std::move(parsed);
}

json::value write_value(const Identifier& v) { return json::value(v.text()); }

namespace {

// FNV-1a; each part is ended by its length, so that no two lists of parts look alike.
class Hash {
 public:
  Hash& add(std::string_view text) {
    for (char c : text) byte(static_cast<unsigned char>(c));
    return add(static_cast<std::int64_t>(text.size()));
  }
  Hash& add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) byte(static_cast<unsigned char>(number >> shift));
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  void byte(unsigned char b) { value_ = (value_ ^ b) * 0x100000001b3u; }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace

std::uint64_t DesiredSubscription::revision() const {
  Hash hash;
  hash.add(rtsp_url.reveal()).add(snapshot_url ? snapshot_url->reveal() : std::string());
  hash.add(snapshot_every ? std::int64_t{snapshot_every->count()} : -1);
  hash.add(model_id).add(model_name).add(model_checksum);
  if (crop) hash.add(crop->x1).add(crop->y1).add(crop->x2).add(crop->y2);
  return hash.value();
}

}  // namespace weir::cluster
