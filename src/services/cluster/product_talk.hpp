// ProductTalk: what a process of a cluster and a product that listens there say to each other, over a WebSocket.
//
// Each message is one JSON object with a `type`; docs/cluster.md shows every one. A product hears all detections, or
// those of the subscriptions that it names. So that it always knows an id that is still kept, it is told how far the
// cluster has come: at the beginning, where it names no id, and after every so many detections that it does not hear. An
// instance belongs to one connection, and knows no socket. Loop thread only.
#pragma once

#include "weir/cluster/front.hpp"

#include <optional>
#include <set>
#include <string_view>

namespace weir::cluster {

struct Wishes {
  std::optional<std::set<std::string>> subscriptions = {};  // nothing: all
  bool events = true;
};

// What a product says: which subscriptions it wants to hear from now on, or its answer to a SessionPatched.
struct Listen {
  std::optional<std::set<std::string>> subscriptions = {};
};
using ProductMessage = std::variant<Listen, PatchSessionResult>;
// Errors name the field, or have the reason `bad_subscription_identifier`.
Result<ProductMessage> read_product_message(std::string_view text);

std::string write_refusal(const Error& why);

class ProductTalk {
 public:
  static constexpr int kPositionEvery = 500;  // detections that are not heard

  explicit ProductTalk(Wishes wishes) : wishes_(std::move(wishes)) {}
  // Answers what the product hears from now on.
  std::string listen_to(std::optional<std::set<std::string>> subscriptions);
  std::string greeting() const;
  // What the product is told of it; nothing where it does not want it.
  std::optional<std::string> write(const Notice& notice);

 private:
  bool wants(std::string_view subscription) const;
  std::optional<std::string> write_detection_seen(const DetectionSeen& seen);

  Wishes wishes_;
  int unheard_ = 0;
};

}  // namespace weir::cluster
