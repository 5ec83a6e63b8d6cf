#!/usr/bin/env python3
"""A detection worker for a Weir detector cluster, to begin one's own from (docs/cluster.md has the protocol).

    examples/detector_worker.py --port 8000            # needs Debian's python3-websockets and ffmpeg

It looks at each camera once a second with ffmpeg and reports how much of the picture has changed since the last look: a
detector without a model. Put your own in the place of `Camera.look`. It fetches the model that it is given, to the folder
that --models names, and never twice under one name and number. When a display has a session, the first thing that is seen
there afterwards is written into it. `GET /camera/{camera}/image` answers what was looked at last.
"""
import argparse
import asyncio
import datetime
import http
import json
import os
import pathlib
import urllib.parse
import urllib.request

import websockets

WIDTH, HEIGHT = 160, 90
CHANGED_BY = 25          # of 255: less is noise
REPORT_EVERY_S = 2


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def usage():
    """Percent of the processors and of the memory in use, as the kernel says it."""
    cpu = 100 * os.getloadavg()[0] / (os.cpu_count() or 1)
    lines = dict(line.split(":") for line in open("/proc/meminfo"))
    total, free = (int(lines[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return min(100.0, cpu), 100 * (total - free) / total


class Camera:
    """One subscription: its stream, looked at once a second."""

    def __init__(self, wanted, saw, models):
        self.wanted, self.saw, self.models = wanted, saw, models
        self.online, self.picture = False, None
        self.task = asyncio.create_task(self.run())

    async def run(self):
        while True:
            try:
                await self.fetch_model()
                await self.look_on()
            except OSError as failed:
                print(f"{self.wanted['subscriptionIdentifier']}: {failed}", flush=True)
            self.online = False
            await asyncio.sleep(1)

    async def fetch_model(self):
        file = self.models / f"{self.wanted['modelId']}-{self.wanted['modelName'].replace('/', '_')}"
        if self.wanted.get("modelUrl") and not file.exists():
            def fetch():
                fresh = file.with_suffix(f".{id(self)}.new")  # two cameras may want one model at once
                urllib.request.urlretrieve(self.wanted["modelUrl"], fresh)
                fresh.rename(file)
            await asyncio.get_running_loop().run_in_executor(None, fetch)

    async def look_on(self):
        command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", self.wanted["rtspUrl"],
                   "-vf", f"fps=1,scale={WIDTH}:{HEIGHT}", "-f", "rawvideo", "-pix_fmt", "gray", "-"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            before = None
            while True:
                picture = await process.stdout.readexactly(WIDTH * HEIGHT)
                self.online, self.picture = True, picture
                if before is not None:
                    await self.look(before, picture)
                before = picture
        except asyncio.IncompleteReadError:
            pass
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def look(self, before, picture):
        changed = sum(abs(a - b) > CHANGED_BY for a, b in zip(before, picture)) / len(picture)
        if changed > 0:
            await self.saw({"type": "imageDetection", "timestamp": now(),
                            "subscriptionIdentifier": self.wanted["subscriptionIdentifier"],
                            "data": {"detection": {}, "modelId": self.wanted["modelId"],
                                     "modelName": self.wanted["modelName"],
                                     "boxes": [{"label": "motion", "score": min(1.0, changed),
                                                "box": [0, 0, WIDTH, HEIGHT]}]}})


class Worker:
    def __init__(self, models):
        self.models, self.cameras, self.master = models, {}, None
        self.sessions = {}  # by display, until something was seen there

    async def say(self, message):
        if self.master is not None:
            try:
                await self.master.send(json.dumps(message))
            except websockets.ConnectionClosed:
                pass

    async def saw(self, result):
        await self.say(result)
        session = self.sessions.pop(result["subscriptionIdentifier"].split(";")[0], None)
        if session is not None:
            await self.say({"type": "patchSession", "sessionId": session, "data": {"seenAt": result["timestamp"]}})

    async def report(self):
        cpu, memory = usage()
        connections = []
        for identifier, camera in self.cameras.items():
            entry = {"subscriptionIdentifier": identifier, "modelId": camera.wanted["modelId"],
                     "modelName": camera.wanted["modelName"], "online": camera.online}
            entry.update({name: value for name, value in camera.wanted.items() if name.startswith("crop")})
            connections.append(entry)
        await self.say({"type": "stateReport", "cpuUsage": cpu, "memoryUsage": memory, "cameraConnections": connections})

    async def obey(self, command):
        kind, payload = command.get("type"), command.get("payload") or {}
        identifier = payload.get("subscriptionIdentifier")
        if kind == "subscribe" and not self.runs(identifier, payload):
            self.stop(identifier)
            self.cameras[identifier] = Camera(payload, self.saw, self.models)
        elif kind == "unsubscribe":
            self.stop(identifier)
        elif kind == "setSessionId":
            self.sessions[payload["displayIdentifier"]] = payload["sessionId"]
        elif kind == "patchSessionResult":
            print(f"session {payload['sessionId']} changed: {payload['success']}, {payload.get('message')}", flush=True)
        await self.report()

    def runs(self, identifier, wanted):
        """Whether this very subscription runs already: a new master gives again what it finds, with a fresh model URL."""
        same = dict(wanted, modelUrl=None)
        return identifier in self.cameras and dict(self.cameras[identifier].wanted, modelUrl=None) == same

    def stop(self, identifier):
        if identifier in self.cameras:
            self.cameras.pop(identifier).task.cancel()

    async def image(self, camera):
        """The newest picture of a camera as a JPEG; None where there is none."""
        for identifier, each in self.cameras.items():
            if identifier.split(";")[1] == camera and each.picture is not None:
                command = ["ffmpeg", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{WIDTH}x{HEIGHT}",
                           "-i", "-", "-f", "mjpeg", "-"]
                pipe = asyncio.subprocess.PIPE
                process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
                return (await process.communicate(each.picture))[0]
        return None

    async def answer(self, first, second):
        """A plain request. websockets 10 hands over its path and headers, later versions a connection and the request."""
        words = urllib.parse.urlsplit(first if isinstance(first, str) else second.path).path.split("/")
        if len(words) != 4 or words[1] != "camera" or words[3] != "image":
            return None  # a WebSocket
        image = await self.image(urllib.parse.unquote(words[2]))
        status = http.HTTPStatus.OK if image else http.HTTPStatus.NOT_FOUND
        body, kind = (image, "image/jpeg") if image else (b"no picture", "text/plain")
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Connection", "close")]
        if isinstance(first, str):
            return status, headers, body
        return websockets.http11.Response(status.value, status.phrase, websockets.datastructures.Headers(headers), body)

    async def serve(self, socket, _path=None):
        """One connection at a time counts: the master's newest. The cameras go on while nobody is connected."""
        self.master = socket
        try:
            async for text in socket:
                await self.obey(json.loads(text))
        except websockets.ConnectionClosed:
            pass
        finally:
            if self.master is socket:
                self.master = None

    async def report_on(self):
        while True:
            await self.report()
            await asyncio.sleep(REPORT_EVERY_S)


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("models"), help="a folder for models")
    options = parser.parse_args()
    options.models.mkdir(parents=True, exist_ok=True)
    worker = Worker(options.models)
    async with websockets.serve(worker.serve, options.host, options.port, process_request=worker.answer) as server:
        print(f"listening on ws://{options.host}:{server.sockets[0].getsockname()[1]}", flush=True)
        await worker.report_on()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
