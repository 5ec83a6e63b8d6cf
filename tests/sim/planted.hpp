// Planted faults: ways in which the protocol has been got wrong. Each breaks one rule around the real code; a simulator
// that does not catch every one of them proves nothing.
#pragma once

#include <array>
#include <string_view>

namespace weir::sim {

enum class Planted {
  none,
  no_compare_and_set,
  stamp_after_reply,
  no_check_after_wait,
  relative_deadline,
  one_version_two_starts,
  duplicate_boot,
  fence_by_highest_seen,
  fence_as_snapshot,
  replay_does_not_renew,
  renew_after_release,
  renew_crosses_rotation,
  time_runs_in_outage,
  store_clock_step,
  version_reuse,
  unauthorized_is_lost,
  foreign_spool,
  never_lets_go,
  bucket_refills_twice,
  dial_before_token,
  confirm_before_commit,
  two_continue_a_boot,
  extended_from_memory,
  unknown_version_is_used,
  leash_from_arrival,
  hooks_alone,
  results_from_anyone,
  deadline_unchecked,
  epoch_not_compared,
  epoch_opened_unrenewed,
  loser_not_told,
  interruption_unheard,
};

struct PlantedName {
  Planted fault;
  std::string_view name;
};
inline constexpr std::array<PlantedName, 31> kPlanted = {{
    {Planted::no_compare_and_set, "no_compare_and_set"},
    {Planted::stamp_after_reply, "stamp_after_reply"},
    {Planted::no_check_after_wait, "no_check_after_wait"},
    {Planted::relative_deadline, "relative_deadline"},
    {Planted::one_version_two_starts, "one_version_two_starts"},
    {Planted::duplicate_boot, "duplicate_boot"},
    {Planted::fence_by_highest_seen, "fence_by_highest_seen"},
    {Planted::fence_as_snapshot, "fence_as_snapshot"},
    {Planted::replay_does_not_renew, "replay_does_not_renew"},
    {Planted::renew_after_release, "renew_after_release"},
    {Planted::renew_crosses_rotation, "renew_crosses_rotation"},
    {Planted::time_runs_in_outage, "time_runs_in_outage"},
    {Planted::store_clock_step, "store_clock_step"},
    {Planted::version_reuse, "version_reuse"},
    {Planted::unauthorized_is_lost, "unauthorized_is_lost"},
    {Planted::foreign_spool, "foreign_spool"},
    {Planted::never_lets_go, "never_lets_go"},
    {Planted::bucket_refills_twice, "bucket_refills_twice"},
    {Planted::dial_before_token, "dial_before_token"},
    {Planted::confirm_before_commit, "confirm_before_commit"},
    {Planted::two_continue_a_boot, "two_continue_a_boot"},
    {Planted::extended_from_memory, "extended_from_memory"},
    {Planted::unknown_version_is_used, "unknown_version_is_used"},
    {Planted::leash_from_arrival, "leash_from_arrival"},
    {Planted::hooks_alone, "hooks_alone"},
    {Planted::results_from_anyone, "results_from_anyone"},
    {Planted::deadline_unchecked, "deadline_unchecked"},
    {Planted::epoch_not_compared, "epoch_not_compared"},
    {Planted::epoch_opened_unrenewed, "epoch_opened_unrenewed"},
    {Planted::loser_not_told, "loser_not_told"},
    {Planted::interruption_unheard, "interruption_unheard"},
}};
// Those that concern published streams, and those that concern detector clusters: planted, these are in every world;
// the others are planted where neither is.
inline constexpr std::array<Planted, 5> kPlantedInStreams = {
    Planted::two_continue_a_boot, Planted::extended_from_memory, Planted::unknown_version_is_used,
    Planted::leash_from_arrival, Planted::hooks_alone};
inline constexpr std::array<Planted, 6> kPlantedInClusters = {
    Planted::results_from_anyone, Planted::deadline_unchecked, Planted::epoch_not_compared,
    Planted::epoch_opened_unrenewed, Planted::loser_not_told, Planted::interruption_unheard};

}  // namespace weir::sim
