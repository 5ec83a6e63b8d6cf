"""What tools/metrics.py must see in the code and in queries, and what it must not let pass."""
import unittest

import metrics

KNOWN = {"stream_up": [({"camera_uuid"}, {"runner_id", "shard_id"})], "weir_epoch": [(set(), set())],
         "e2e_latency_seconds_bucket": [({"camera_uuid", "le"}, {"runner_id"})]}


class Declared(unittest.TestCase):
    def test_each_way_of_making_an_instrument_is_seen(self):
        declared = metrics.declared()
        for name, own, target in (
                ("streams_pending_total", set(), {"runner_id"}),
                ("runner_shards", {"runner_id"}, {"runner_id"}),
                ("stream_errors_total", {"camera_uuid", "code"}, {"runner_id", "shard_id"}),
                ("weir_pictures_received_total", {"camera_uuid"}, {"runner_id", "shard_id"}),
                ("weir_bus_errors_total", set(), {"runner_id", "shard_id"}),
                ("inference_latency_seconds_bucket", {"camera_uuid", "le"}, {"runner_id", "shard_id"}),
                ("egress_forwarder_retry_total", {"streamId", "runId", "error_kind"}, {"orchestrator_id", "stream_id"}),
                ("weir_stream_worker_up", {"streamId", "runId", "instanceId"}, {"orchestrator_id", "stream_id"}),
                ("weir_egress_dropped_packets_total", {"streamId", "runId"}, {"orchestrator_id", "stream_id"}),
                ("weir_orchestrator_child_restarts_total", {"stream_id", "role"}, {"orchestrator_id"}),
                ("weir_cluster_redis_away", set(), set())):
            self.assertIn((own, target), declared[name], name)


class Queries(unittest.TestCase):
    def test_good_ones_pass(self):
        for query, shown in (("max(stream_up) > 0", set()), ('stream_up{runner_id="a"} == 0', {"camera_uuid"}),
                             ("sum by (runner_id) (rate(stream_up[5m]))", {"runner_id"}),
                             ("histogram_quantile(0.5, sum by (le) (rate(e2e_latency_seconds_bucket[5m])))", set()),
                             ('up{job="weir-runner"} == 0', {"runner_id"}), ("count(stream_up) or vector(0)", set())):
            self.assertEqual(list(metrics.problems(query, KNOWN, shown)), [], query)

    def test_each_mistake_is_named(self):
        for query, shown, said in (("stream_upp == 0", set(), "stream_upp"), ('stream_up{camera="a"}', set(), "camera"),
                                   ("sum by (camera) (stream_up)", set(), "groups by camera"),
                                   ("weir_epoch", {"runner_id"}, "legend names runner_id"),
                                   ("sum(stream_up)", {"runner_id"}, "legend names runner_id"),
                                   ("sum by (runner_id) (stream_up)", {"camera_uuid"}, "legend names camera_uuid"),
                                   ("stream_up + weir_epocs", set(), "weir_epocs")):
            found = list(metrics.problems(query, KNOWN, shown))
            self.assertEqual(len(found), 1, (query, found))
            self.assertIn(said, found[0])


if __name__ == "__main__":
    unittest.main()
