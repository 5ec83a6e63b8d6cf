"""What tools/schemas must not let pass: each mistake in an event, and each schema that says too little or too much."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

loader = importlib.machinery.SourceFileLoader("schemas", str(pathlib.Path(__file__).parent / "schemas"))
schemas = importlib.util.module_from_spec(importlib.util.spec_from_loader("schemas", loader))
loader.exec_module(schemas)
try:
    import jsonschema
except ImportError:
    jsonschema = None

BEAT = {"type": "runner.heartbeat", "runner_id": "r", "streams_owned": 3, "shards": 1, "cpu_pct": 41.2, "mem_mb": 1024,
        "ts": "2026-01-02T03:04:05.678Z", "event_id": "e"}


def event(payload, key="runner.heartbeat.r", topic="status.topic"):
    return {"topic": topic, "routing_key": key, "payload": payload}


@unittest.skipUnless(jsonschema, "python3-jsonschema is not installed")
class Schemas(unittest.TestCase):
    def found(self, *events, everything=False):
        return "\n".join(schemas.problems(events, everything, jsonschema))

    def test_a_good_event_passes(self):
        self.assertEqual(self.found(event(BEAT)), "")

    def test_each_mistake_is_named(self):
        for one, said in ((event(BEAT | {"colour": "red"}), "colour is no field of runner.heartbeat"),
                          (event({k: v for k, v in BEAT.items() if k != "shards"}), "'shards' is a required property"),
                          (event(BEAT | {"shards": "one"}), "shards: 'one' is not of type 'integer'"),
                          (event(BEAT | {"ts": "yesterday"}), "ts: 'yesterday' does not match"),
                          (event(BEAT, "runner.heartbeat"), "no schemas are meant for it"),
                          (event(BEAT, topic="control.topic"), "no schemas are meant for it")):
            self.assertIn(said, self.found(one))

    def test_a_schema_that_no_event_has_is_named_and_so_is_a_field_that_is_always_there(self):
        order = {"type": "publication.ordered", "stream_id": "s", "tenant_id": "t", "site_id": "s", "order": "stop",
                 "runner_id": "o", "ts": BEAT["ts"], "event_id": "e"}
        found = self.found(event(BEAT), event(order, "publication.ordered.t.s.s", "control.topic"), everything=True)
        for said in ("there is no event detections", "publication.ordered: runner_id is always there, so it is required",
                     "publication.ordered: no event has on"):
            self.assertIn(said, found)
        self.assertNotIn("runner.heartbeat", found)


if __name__ == "__main__":
    unittest.main()
