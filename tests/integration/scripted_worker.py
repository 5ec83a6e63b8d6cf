#!/usr/bin/env python3
"""A detection worker for tests: it looks at no camera, misbehaves as its manner says, and keeps a diary.

    scripted_worker.py PORT NAME DIARY [--manner MANNER] [--cpu PERCENT] [--linger SECONDS] [--tell SUBSCRIPTION]…

    good      runs what it is given, and sends a result of each subscription twice a second
    mute      takes every connection and sends nothing
    denier    reports that it runs nothing, whatever it is given
    liar      reports that it runs what --tell names, and nothing else, whatever it is told
    stranger  good, but sends results for what --tell names too
    garbled   good, but sends messages between its reports that nobody can read
    huge      good, but sends a message of 50 MB one second after each connection

Each line of DIARY is a JSON object: `at` (milliseconds since 1970), `what` (started, connected, closed, subscribe,
unsubscribe, said), `connection`, `subscription`, and `wanted`, the payload of a subscribe. With --linger it goes on
sending results of a subscription for so long after an unsubscribe. Each result's licensePlateText is NAME and the
milliseconds since 1970 at which it was sent, and the diary has those (said) of which a test wants to be sure that they
were sent: of what was taken from the worker, and the first ones of each connection.
"""
import argparse
import asyncio
import datetime
import json
import time

import websockets

REPORT_EVERY_S, RESULT_EVERY_S = 2, 0.5
UNREADABLE = ["no JSON at all", "{", "[]", "7", "{}", '{"type":7}', '{"type":"unheard of"}', "[" * 100_000,
              '{"type":"imageDetection"}', '{"type":"imageDetection","subscriptionIdentifier":12}',
              '{"type":"imageDetection","subscriptionIdentifier":"no semicolon","timestamp":"now","data":[]}',
              '{"type":"stateReport","cpuUsage":"much","cameraConnections":"none"}',
              '{"type":"patchSession","sessionId":"seven"}', b"\xff\xfe\x00"]


def now_ms():
    return int(time.time() * 1000)


class Worker:
    def __init__(self, options):
        self.options, self.master, self.connections = options, None, 0
        self.running, self.lingering = {}, {}
        self.diary = open(options.diary, "a", buffering=1)
        self.over = asyncio.get_running_loop().create_future()  # which never comes
        self.note("started")

    async def pause(self, seconds):
        await asyncio.wait([self.over], timeout=seconds)

    def note(self, what, **more):
        self.diary.write(json.dumps({"at": now_ms(), "what": what, "connection": self.connections, **more}) + "\n")

    async def say(self, message):
        if self.master is not None and self.options.manner != "mute":
            try:
                await self.master.send(message if isinstance(message, (str, bytes)) else json.dumps(message))
            except websockets.ConnectionClosed:
                pass

    async def report(self):
        if self.options.manner == "denier":
            listed = []
        elif self.options.manner == "liar":
            listed = [{"subscriptionIdentifier": each, "modelId": 7, "modelName": "motion", "online": True}
                      for each in self.options.tell]
        else:
            listed = [{"subscriptionIdentifier": identifier, "online": True,
                       **{name: value for name, value in wanted.items() if name.startswith(("crop", "modelI", "modelN"))}}
                      for identifier, wanted in self.running.items()]
        await self.say({"type": "stateReport", "cpuUsage": self.options.cpu, "memoryUsage": 0, "cameraConnections": listed})

    async def result(self, identifier, note=False):
        at = now_ms()
        if note:
            self.note("said", subscription=identifier)
        iso = datetime.datetime.utcfromtimestamp(at / 1000).isoformat(timespec="milliseconds") + "Z"
        await self.say({"type": "imageDetection", "subscriptionIdentifier": identifier, "timestamp": iso,
                        "data": {"detection": {"licensePlateText": f"{self.options.name} {at}"}, "modelId": 7,
                                 "modelName": "motion"}})

    async def obey(self, command, connection):
        kind, payload = command.get("type"), command.get("payload") or {}
        identifier = payload.get("subscriptionIdentifier")
        if kind not in ("subscribe", "unsubscribe"):
            return await self.report()
        more = {"wanted": payload} if kind == "subscribe" else {}
        self.note(kind, **{"connection": connection, "subscription": identifier, **more})
        if kind == "subscribe":
            self.running[identifier] = payload
            self.lingering.pop(identifier, None)
        elif self.running.pop(identifier, None) is not None:
            self.lingering[identifier] = now_ms() + 1000 * self.options.linger
        await self.report()

    async def serve(self, socket, _path=None):
        """One connection at a time counts: the master's newest. What an older one still says is noted as its own."""
        self.connections += 1
        mine, self.master = self.connections, socket
        self.note("connected")
        for identifier in list(self.running):
            await self.result(identifier, note=True)
        huge = asyncio.create_task(self.send_hugely()) if self.options.manner == "huge" else None
        try:
            async for text in socket:
                await self.obey(json.loads(text), mine)
        except websockets.ConnectionClosed:
            pass
        finally:
            if huge is not None:
                huge.cancel()
            self.note("closed", connection=mine)
            if self.master is socket:
                self.master = None

    async def send_hugely(self):
        await self.pause(1)
        await self.say(b"\0" * (50 << 20))

    async def report_on(self):
        while True:
            await self.report()
            for message in UNREADABLE if self.options.manner == "garbled" else []:
                await self.say(message)
            await self.pause(REPORT_EVERY_S)

    async def detect_on(self):
        while True:
            if self.options.manner not in ("denier", "liar"):
                for identifier in list(self.running):
                    await self.result(identifier)
            for identifier, until in list(self.lingering.items()):
                if now_ms() < until:
                    await self.result(identifier, note=True)
                else:
                    del self.lingering[identifier]
            for identifier in self.options.tell if self.options.manner == "stranger" else []:
                await self.result(identifier)
            await self.pause(RESULT_EVERY_S)


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("name")
    parser.add_argument("diary")
    parser.add_argument("--manner", default="good",
                        choices=["good", "mute", "denier", "liar", "stranger", "garbled", "huge"])
    parser.add_argument("--cpu", type=float, default=0)
    parser.add_argument("--linger", type=float, default=0)
    parser.add_argument("--tell", action="append", default=[])
    worker = Worker(parser.parse_args())
    async with websockets.serve(worker.serve, "127.0.0.1", worker.options.port, ping_interval=None):
        await asyncio.gather(worker.report_on(), worker.detect_on())


if __name__ == "__main__":
    asyncio.run(main())
