#!/usr/bin/env python3
"""A program that processes cameras without Weir's runner: leases by camera, with a token.

    WEIR_TOKEN=$(weir token --role runner --sub my-runner --ttl 1h) \
        python3 examples/camera_manager.py --url http://127.0.0.1:8080 --runner my-runner

It says by heartbeats that it lives, asks for its orders, takes the lease of every enabled camera it has room for and one
token of the camera's site, renews every two seconds, says every five how the streams are, and releases everything on
Ctrl-C. Where a real one would open the stream and look at it, `process` counts. One line of JSON for each thing it does.
Python's standard library only.
"""
import argparse
import json
import os
import random
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone

TTL_S, RENEW_S, HEARTBEAT_S, SUMMARY_S = 10, 2, 1, 5


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def say(what, **more):
    print(json.dumps({"did": what, **more}), flush=True)


class Plane:
    """The control plane: each call answers the status and the body; status 0 where nobody answered."""

    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/"), token

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", "Bearer " + self.token)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=2) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read() or b"{}")
        except OSError as failed:
            say("unheard", path=path, why=str(failed))
            return 0, {}

    def cameras(self, tenant, site):
        cursor = ""
        while cursor is not None:
            query = urllib.parse.urlencode(
                {"enabled": "true", "tenant_id": tenant, "site_id": site, "limit": 100, "cursor": cursor})
            status, page = self.ask("GET", "/v1/cameras?" + query)
            if status != 200:
                return
            yield from page["items"]
            cursor = page["next_cursor"]


class Owned:
    """A camera that this program holds, until `good_until`: counted from before it asked, less a margin."""

    def __init__(self, camera, asked):
        self.camera, self.site, self.frames, self.paid = camera["camera_uuid"], camera["site_id"], 0, False
        self.renewed(asked)

    def renewed(self, asked):
        self.good_until = asked + TTL_S - 2

    def process(self):
        if self.paid and time.monotonic() < self.good_until:
            self.frames += 1

    def status(self, runner):
        state = "STREAMING" if self.frames else "CONNECTING"
        return {"type": "stream.status", "camera_uuid": self.camera, "runner_id": runner, "shard_id": "shard-0",
                "state": state, "last_frame_ts": now(), "last_frame_age_s": 0.0, "fps": 6.0, "ts": now()}


class Manager:
    def __init__(self, plane, runner, tenant, site):
        self.plane, self.runner, self.tenant, self.site = plane, runner, tenant, site
        self.owned, self.running = {}, True

    def heartbeat(self):
        self.plane.ask("POST", "/v1/runners/heartbeat", {
            "type": "runner.heartbeat", "runner_id": self.runner, "streams_owned": len(self.owned), "shards": 1,
            "cpu_pct": 1.0, "mem_mb": 32, "ts": now()})

    def orders(self):
        status, flags = self.plane.ask("GET", "/v1/runners/" + urllib.parse.quote(self.runner, safe=""))
        return flags if status == 200 else {"cordoned": True, "drain_mode": "none", "capacity_streams": 0}

    def lease(self, what, camera):
        body = {"runner_id": self.runner, "camera_uuid": camera}
        if what != "release":
            body["ttl_seconds"] = TTL_S
        return self.plane.ask("POST", "/v1/leases/camera/" + what, body)

    def acquire(self, room):
        for camera in self.plane.cameras(self.tenant, self.site):
            if camera["camera_uuid"] in self.owned or len(self.owned) >= room:
                continue
            asked = time.monotonic()
            status, lease = self.lease("acquire", camera["camera_uuid"])
            if status == 200:
                self.owned[camera["camera_uuid"]] = Owned(camera, asked)
                say("acquired", camera=lease["camera_uuid"], owner=lease["owner_id"], version=lease["version"],
                    expires_at=lease["expires_at"])
            elif status == 409:
                say("held", camera=camera["camera_uuid"])

    def pay(self):
        for owned in self.owned.values():
            if owned.paid:
                continue
            status, _ = self.plane.ask("POST", f"/v1/sites/{urllib.parse.quote(owned.site, safe='')}/budget/consume")
            owned.paid = status == 200
            if status == 409:
                time.sleep(random.uniform(0, 0.2))

    def renew(self):
        for camera, owned in list(self.owned.items()):
            asked = time.monotonic()
            status, _ = self.lease("renew", camera)
            if status == 200:
                owned.renewed(asked)
                say("renewed", camera=camera)
            elif status == 404:
                del self.owned[camera]
                say("lost", camera=camera)

    def tell(self):
        items = [owned.status(self.runner) for owned in self.owned.values()]
        if items:
            status, _ = self.plane.ask("POST", "/v1/streams/status/batch", {"items": items})
            say("told", status=status, cameras=len(items))

    def release(self):
        for camera in list(self.owned):
            status, _ = self.lease("release", camera)
            say("released", camera=camera, status=status)
            del self.owned[camera]

    def run(self):
        due = {self.heartbeat: 0.0, self.step: 0.0, self.renew: time.monotonic() + RENEW_S, self.tell: 0.0}
        every = {self.heartbeat: HEARTBEAT_S, self.step: HEARTBEAT_S, self.renew: RENEW_S, self.tell: SUMMARY_S}
        while self.running:
            for work in due:
                if time.monotonic() >= due[work]:
                    due[work] = time.monotonic() + every[work]
                    work()
            for owned in self.owned.values():
                owned.process()
            time.sleep(0.05)
        self.release()

    def step(self):
        flags = self.orders()
        if flags["drain_mode"] != "none":
            self.release()
        elif not flags["cordoned"]:
            self.acquire(flags["capacity_streams"])
            self.pay()

    def stop(self, *_):
        self.running = False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--tenant", default="", help="take cameras of this tenant only")
    parser.add_argument("--site", default="", help="take cameras of this site only")
    given = parser.parse_args()
    token = os.environ.get("WEIR_TOKEN")
    if not token:
        sys.exit("WEIR_TOKEN is not set")
    manager = Manager(Plane(given.url, token), given.runner, given.tenant, given.site)
    signal.signal(signal.SIGINT, manager.stop)
    signal.signal(signal.SIGTERM, manager.stop)
    manager.run()


if __name__ == "__main__":
    main()
