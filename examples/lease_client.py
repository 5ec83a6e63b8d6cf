#!/usr/bin/env python3
"""A program that processes cameras without Weir's runner: leases by id, with an API key.

    API_KEY=$(weir key add --role admin --sub my-runner) \
        python3 examples/lease_client.py --url http://127.0.0.1:8080 --runner my-runner --add cam-001

It registers, takes the leases of its site's cameras, says by each lease's own heartbeat how the work goes, renews in
time, reads what it holds, and on Ctrl-C releases everything and takes itself off the list. With `--add` it first adds a
camera with a zone, as an administrator may; its tenant and site are made where they are missing. One line of JSON for
each thing it does. Python's standard library only.
"""
import argparse
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone

CAMERA = {
    "rtsp_url": "rtsp://camera.example/stream",
    "zones": [{"zone_id": 1, "name": "driveway", "kind": "include", "priority": 100,
               "polygon": [[100, 100], [700, 100], [700, 500], [200, 500]],
               "allow_labels": ["person", "car"], "min_score": 0.25}],
    "motion_gating": {"enabled": True, "downscale": 0.5, "min_area_px": 1500, "cooldown_frames": 2},
    "allow_labels": ["person", "car", "truck"],
    "min_score": 0.30,
    "zone_test": "center",
    "iou_threshold": 0.10,
}


def say(what, **more):
    print(json.dumps({"did": what, **more}), flush=True)


def quoted(text):
    return urllib.parse.quote(text, safe="")


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class ControlPlaneClient:
    """Each call answers the status and the body; status 0 where nobody answered."""

    def __init__(self, base_url, api_key):
        self.base_url, self.api_key = base_url.rstrip("/") + "/api/v1", api_key

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.base_url + path, method=method)
        request.add_header("Authorization", "Bearer " + self.api_key)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read() or b"{}")
        except OSError as failed:
            return 0, {"error": {"message": str(failed)}}

    def must(self, method, path, body=None):
        status, answer = self.ask(method, path, body)
        if status not in (200, 201):
            sys.exit(f"{method} {path}: {status} {answer.get('error', {}).get('message', '')}")
        return answer


class Manager:
    def __init__(self, client, given):
        self.client, self.given, self.leases, self.running = client, given, {}, True
        self.place = f"/tenants/{quoted(given.tenant)}/sites/{quoted(given.site)}"

    def add(self, camera):
        body = {"camera_uuid": camera, "tenant_id": self.given.tenant, "site_id": self.given.site, **CAMERA}
        self.client.must("POST", self.place + "/cameras/", body)
        self.client.must("POST", self.place + "/zones/", {
            "camera_uuid": camera, "zone_id": 2, "name": "tree", "kind": "exclude", "priority": 10,
            "polygon": [[0, 0], [90, 0], [90, 200]]})
        say("added", camera=camera, zones=len(self.client.must("GET", f"/cameras/{quoted(camera)}/")["zones"]))

    def register(self):
        known = self.client.must("POST", "/runners/register/", {
            "runner_id": self.given.runner, "tenant_id": self.given.tenant, "site_id": self.given.site,
            "deployment_group": "production", "deployment_version": "v1.2.3", "host": "worker-01.example.com",
            "port": 8080, "capacity": 16, "metrics_port": 9108,
            "capabilities": ["rtsp", "motion_detection", "zone_filtering"]})
        say("registered", runner=known["runner_id"], at=known["registered_at"], assigned=known["assigned_cameras"])

    def acquire(self):
        version = self.client.must("GET", self.place + "/config/version")
        for camera in self.client.must("GET", self.place + "/cameras/")["items"]:
            uuid = camera["camera_uuid"]
            if uuid in self.leases or not camera["enabled"]:
                continue
            status, lease = self.client.ask("POST", "/leases/acquire/", {
                "camera_uuid": uuid, "runner_id": self.given.runner, "shard_id": "shard-1",
                "tenant_id": self.given.tenant, "site_id": self.given.site, "ttl_seconds": self.given.ttl,
                "config_version": version["config_version"], "zone_version": version["zone_version"]})
            if status == 200:
                self.leases[uuid] = lease
                say("acquired", camera=uuid, lease=lease["lease_id"], shard=lease["shard_id"], status=lease["status"])

    def renew(self):
        half = timedelta(seconds=self.given.ttl / 2)
        for uuid, lease in list(self.leases.items()):
            if moment(lease["expires_at"]) - datetime.now(timezone.utc) > half:
                continue
            status, fresh = self.client.ask("PUT", f"/leases/{quoted(lease['lease_id'])}/renew/")
            if status == 200:
                self.leases[uuid] = fresh
                say("renewed", camera=uuid, lease=fresh["lease_id"])
            elif status == 404:
                del self.leases[uuid]
                say("lost", camera=uuid)

    def heartbeat(self):
        self.client.ask("PUT", f"/runners/{quoted(self.given.runner)}/heartbeat/",
                        {"status": "active", "current_load": len(self.leases), "metrics": {"gpu_pct": 12.5}})
        for uuid, lease in self.leases.items():
            status, _ = self.client.ask("POST", f"/leases/{quoted(lease['lease_id'])}/heartbeat/",
                                        {"processing_stats": {"frames": 120, "fps": 5.9}})
            say("beat", camera=uuid, status=status)

    def look(self):
        held = self.client.must("GET", f"/leases/runner/{quoted(self.given.runner)}/")["items"]
        say("holds", leases=[[each["camera_uuid"], each["status"], each["processing_stats"]] for each in held])

    def end(self):
        for uuid, lease in self.leases.items():
            status, _ = self.client.ask("DELETE", f"/leases/{quoted(lease['lease_id'])}/release/")
            say("released", camera=uuid, status=status)
        status, _ = self.client.ask("DELETE", f"/runners/{quoted(self.given.runner)}/")
        say("ended", status=status)

    def run(self):
        for camera in self.given.add:
            self.add(camera)
        self.register()
        while self.running:
            self.acquire()
            self.heartbeat()
            self.renew()
            self.look()
            time.sleep(min(10, self.given.ttl / 6))
        self.end()

    def stop(self, *_):
        self.running = False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--tenant", default="tenant-1")
    parser.add_argument("--site", default="site-1")
    parser.add_argument("--ttl", type=int, default=60, help="seconds that a lease lasts")
    parser.add_argument("--add", action="append", default=[], metavar="CAMERA", help="add this camera first")
    given = parser.parse_args()
    key = os.environ.get("API_KEY")
    if not key:
        sys.exit("API_KEY is not set")
    manager = Manager(ControlPlaneClient(given.url, key), given)
    signal.signal(signal.SIGINT, manager.stop)
    signal.signal(signal.SIGTERM, manager.stop)
    manager.run()


if __name__ == "__main__":
    main()
