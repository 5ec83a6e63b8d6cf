"""What the benchmark `egress` starts: a hub with a looped stream, an RTMP destination, the forwarders that are compared
and a proxy that breaks their connections; and what tells when a picture has arrived. Each ends with its `with` block,
and only by its own process id."""
import contextlib
import itertools
import json
import re
import select
import socket
import struct
import subprocess
import threading
import time
import urllib.parse
import xml.etree.ElementTree
import zlib

from processes import Folder, free_port
from worker_parts import FETCHED, ask, end, wait_until

MEDIAMTX, GSTREAMER = FETCHED / "bin/mediamtx", FETCHED / "bin/gst-launch-1.0"
NGINX, NGINX_RTMP = FETCHED / "bin/nginx", FETCHED / "lib/ngx_rtmp_module.so"
HANDSHAKE = 1 + 2 * 1536  # what an RTMP client sends before the first message


class Program:
    """A process and what it says on both outputs, as (time of arrival, line). `alarm` matches the lines in which it
    gives up on its destination."""

    def __init__(self, words, given=None, alarm="."):
        self.words, self.given, self.alarm = [str(word) for word in words], given, re.compile(alarm)
        self.lines, self.ended_at, self.folder = [], None, None

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL if self.given is None else subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if self.given is not None:
            self.process.stdin.write(self.given.encode())
            self.process.stdin.close()
        return self

    def __exit__(self, *_):
        end(self.process, 3)
        self.reader.join()
        self.process.stdout.close()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.decode(errors="replace").rstrip()))
        self.ended_at = time.monotonic()

    def said(self):
        return "\n".join(line for _, line in list(self.lines))

    def wait_for(self, word):
        wait_until(f"{self.words[0]} said {word!r}", lambda: word in self.said() or self.ended_at)
        if word not in self.said():
            raise RuntimeError(f"{self.words[0]} ended: {self.said()[-2000:]}")

    def noticed(self, since):
        """When it first said after `since` that it gives up, or ended; None if it did neither."""
        times = [at for at, line in list(self.lines) if at >= since and self.alarm.search(line)]
        return min(times + ([self.ended_at] if self.ended_at else []), default=None)


def private_mb(pid):
    """What a process shares with nobody; None where the kernel does not tell: of one that is not dumpable, as Weir's,
    it tells root alone."""
    try:
        text = open(f"/proc/{pid}/smaps_rollup").read()
    except PermissionError:
        return None
    return sum(int(kb) for kb in re.findall(r"^Private_(?:Clean|Dirty): +(\d+)", text, re.M)) / 1024


# ---- the two ends ----

def media_server(folder, name, settings):
    """MediaMTX with nothing but these settings; they may hold a key, so they lie in a file for its owner alone. It
    warns of a slow reader long before it gives up: that is no alarm, for a slow network looks the same."""
    off = {"api": False, "rtmp": False, "hls": False, "webrtc": False, "srt": False, "moq": False}
    path = folder / f"{name}.yml"
    path.touch(0o600)
    path.write_text(json.dumps({**off, **settings}))  # JSON is YAML
    return Program([MEDIAMTX, path], alarm=r"\bERR\b.*\bdest\b")


class Destination(Program):
    """nginx with its RTMP module, which takes any key."""

    def __init__(self, folder):
        self.port, web = free_port(), free_port()
        self.stat = f"http://127.0.0.1:{web}/stat"
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = " ".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
        (folder / "nginx.conf").write_text(f"""load_module {NGINX_RTMP};
daemon off; master_process off; pid {folder / "nginx.pid"}; error_log {folder / "nginx.log"};
events {{ worker_connections 1024; }}
rtmp {{ access_log off; server {{ listen 127.0.0.1:{self.port}; application live {{ live on; }} }} }}
http {{ access_log off; {folders} server {{ listen 127.0.0.1:{web}; location = /stat {{ rtmp_stat all; }} }} }}
""")
        super().__init__([NGINX, "-p", folder, "-e", folder / "nginx.log", "-c", folder / "nginx.conf"])

    def __enter__(self):
        super().__enter__()
        try:
            wait_until("nginx answered", lambda: self.taken() is not None, 10)
        except RuntimeError as vain:
            self.__exit__()
            raise RuntimeError(f"{vain}: {self.said()[-2000:]}") from None
        return self

    def taken(self):
        """Key → bytes that were received for it; None while nobody listens."""
        try:
            tree = xml.etree.ElementTree.fromstring(ask(self.stat)[0])
        except OSError:
            return None
        return {each.findtext("name"): int(each.findtext("bytes_in")) for each in tree.iter("stream")}


def encode(path, size, kbit_s, fps, seconds=20, footage=None):
    """Footage, or noise, so that the rate is met and no two pictures are alike; one slice a picture, a keyframe every
    second."""
    rate = ["-b:v", f"{kbit_s}k", "-maxrate", f"{kbit_s}k", "-bufsize", f"{kbit_s // 2}k"]
    shown = ["-i", footage, "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-vf",
             f"fps={fps},scale={size.replace('x', ':')}"] if footage else [
        "-f", "lavfi", "-i", f"testsrc2=size={size}:rate={fps},noise=alls=24:allf=t", "-f", "lavfi", "-i",
        "sine=frequency=440:sample_rate=48000"]
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", "-y", *shown, "-t", str(seconds), "-c:v", "libx264",
                    "-preset", "ultrafast", "-x264-params", "slices=1:sliced-threads=0", "-pix_fmt", "yuv420p", "-bf",
                    "0", "-g", str(fps), *rate, "-c:a", "aac", "-b:a", "96k", path], check=True)


class Rig:
    """A hub where `path` is published, coded beforehand and repeated for ever, and a destination."""

    def __init__(self, build, size="1280x720", kbit_s=4000, fps=25, path="live/s1/out", footage=None):
        self.build, self.coding, self.numbers = build, (size, kbit_s, fps), itertools.count()
        self.path, self.footage = path, footage

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(Folder())
            encode(self.folder / "source.mp4", *self.coding, footage=self.footage)
            ports = free_port(), free_port()
            hub = stack.enter_context(media_server(self.folder, "hub", {
                "rtspAddress": f"127.0.0.1:{ports[0]}", "rtspTransports": ["tcp"], "rtmp": True,
                "rtmpAddress": f"127.0.0.1:{ports[1]}", "paths": {"all_others": {}}}))
            hub.wait_for("[RTMP] started")
            self.hub = f"rtsp://127.0.0.1:{ports[0]}"
            self.source = f"{self.hub}/{self.path}"
            # By RTMP, because ffmpeg's RTSP cannot be told to send a picture's last bytes at once.
            stack.enter_context(Program(["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-stream_loop", "-1", "-i",
                                         self.folder / "source.mp4", "-c", "copy", "-f", "flv", "-tcp_nodelay", "1",
                                         f"rtmp://127.0.0.1:{ports[1]}/{self.path}"]))
            hub.wait_for("is publishing")
            self.destination = stack.enter_context(Destination(self.folder))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    # ---- what forwards live/s1/out to this port, under this key ----

    def weir(self, key, port=None):
        name = f"weir-{next(self.numbers)}"
        program = Program([self.build / "src/apps/weir-egress", "--config", "-", "--egress-enabled", "true",
                           "--stream-id", "s1", "--run-id", "bench", "--instance-id", name, "--mediamtx-rtsp-base",
                           self.hub, "--prom-egress-port", "0", "--log-dir", self.folder / name],
                          given=f'dest_rtmp_url: "{self.app(port)}/{key}"\n',
                          alarm='"egress.(forwarding.stopped|retry.scheduled)"')
        program.folder = self.folder / name
        return program

    def ffmpeg(self, key, port=None):
        return Program(["ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", self.source, "-c",
                        "copy", "-f", "flv", f"{self.app(port)}/{key}"],
                       alarm=r"av_interleaved_write_frame|\[(rtmp|flv)|^rtmp")

    def mediamtx(self, key, port=None):
        """Its forward, in a process that reads the hub as the others do."""
        path = {"source": self.source, "rtspTransport": "tcp", "forward": [{"dest": f"{self.app(port)}#{key}"}]}
        return media_server(self.folder, f"mediamtx-{next(self.numbers)}", {"rtsp": False, "paths": {"out": path}})

    def gstreamer(self, key, port=None):
        return Program([GSTREAMER, *f"rtspsrc name=in protocols=tcp location={self.source} flvmux name=mux"
                        " streamable=true in. ! queue ! rtph264depay ! h264parse ! mux. in. ! queue ! rtpmp4gdepay !"
                        f" aacparse ! mux. mux. ! rtmp2sink location={self.app(port)}/{key}".split()], alarm="ERROR")

    def app(self, port):
        return f"rtmp://127.0.0.1:{port or self.destination.port}/live"

    def kinds(self):
        """Name → how one is made and what it is called; GStreamer only where its tool could be had."""
        kinds = {"weir": (self.weir, "Weir"), "mediamtx": (self.mediamtx, "MediaMTX's own forward"),
                 "gstreamer": (self.gstreamer, "GStreamer (gst-launch, rtspsrc to rtmp2sink)"),
                 "ffmpeg": (self.ffmpeg, "ffmpeg -c copy")}
        return {name: kind for name, kind in kinds.items() if name != "gstreamer" or GSTREAMER.exists()}


# ---- between a forwarder and its destination ----

class Proxy:
    """Passes connections on and keeps what publishers sent, as (connection, time of arrival, bytes). `hole` neither
    reads nor closes nor answers; `cut` resets what is connected and refuses everything else."""

    def __init__(self, to, receive_bytes=None):
        self.to, self.receive_bytes, self.port = to, receive_bytes, free_port()
        self.state, self.seen, self.threads = "passing", [], []

    def __enter__(self):
        self.listen()
        self.threads.append(threading.Thread(target=self.accept, daemon=True))
        self.threads[0].start()
        return self

    def __exit__(self, *_):
        self.state = "ended"
        for each in self.threads:
            each.join()
        self.listener.close()

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=16)
        if self.receive_bytes:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_bytes)

    def accept(self):
        while self.state != "ended":
            if self.state == "cut":
                self.listener.close()
                while self.state == "cut":
                    time.sleep(0.01)
                self.listen()
            if self.state == "hole" or not select.select([self.listener], [], [], 0.02)[0]:
                time.sleep(0.01)
                continue
            taken = len(self.threads), self.listener.accept()[0]
            self.threads.append(threading.Thread(target=self.pass_on, args=taken, daemon=True))
            self.threads[-1].start()

    def pass_on(self, number, publisher):
        with publisher, socket.create_connection(("127.0.0.1", self.to)) as server:
            for each in (publisher, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self.state not in ("ended", "cut"):
                if self.state == "hole":
                    time.sleep(0.01)
                    continue
                for each in select.select([publisher, server], [], [], 0.02)[0]:
                    try:
                        data = each.recv(1 << 18)
                        if each is publisher:
                            self.seen.append((number, time.monotonic(), data))
                        (server if each is publisher else publisher).sendall(data)
                    except OSError:
                        data = b""
                    if not data:
                        return
            publisher.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close resets

    def pictures(self):
        """What arrived, as (connection, time of arrival of its last byte, mark)."""
        wires = {}
        return [(number, at, mark) for number, at, data in list(self.seen)
                for mark in wires.setdefault(number, Publisher()).feed(data)]


# ---- telling pictures apart ----

def mark_of(unit):
    """What tells one coded picture from another, wherever it arrives; None for anything but a picture."""
    return (len(unit), zlib.crc32(unit)) if unit and unit[0] & 31 in (1, 5) else None


class Publisher:
    """Reads what an RTMP client sends, from its first byte on."""

    def __init__(self):
        self.bytes, self.chunk_size, self.shaken, self.streams = bytearray(), 128, False, {}

    def feed(self, data):
        self.bytes += data
        marks = []
        if not self.shaken and len(self.bytes) >= HANDSHAKE:
            self.shaken, self.bytes = True, self.bytes[HANDSHAKE:]
        while self.shaken and (message := self.next_chunk()) is not None:
            kind, body = message
            if kind == 1:
                self.chunk_size = int.from_bytes(body, "big")
            if kind == 9 and len(body) > 9 and body[0] & 15 == 7 and body[1] == 1:  # H.264, not its settings
                at = 5
                while at < len(body):
                    size = int.from_bytes(body[at:at + 4], "big")
                    marks.append(mark_of(bytes(body[at + 4:at + 4 + size])))
                    at += 4 + size
        return [mark for mark in marks if mark]

    def next_chunk(self):
        """(kind, body) of a message that is whole now, (None, None) within one, None if bytes are missing."""
        data = self.bytes
        if len(data) < 3:
            return None
        form, stream = data[0] >> 6, data[0] & 63
        basic = 1 + (stream < 2) + (stream == 1)
        stream = bytes(data[:basic]) if stream < 2 else stream
        header = basic + (11, 7, 3, 0)[form]
        if len(data) < header + 4:
            return None
        length, kind, long, body = self.streams.get(stream, (0, 0, False, bytearray()))
        if form < 3:
            long = data[basic:basic + 3] == b"\xff\xff\xff"
        if form < 2:
            length, kind = int.from_bytes(data[basic + 3:basic + 6], "big"), data[basic + 6]
        header += 4 * long
        taken = min(self.chunk_size, length - len(body))
        if len(data) < header + taken:
            return None
        body = body + data[header:header + taken]
        del data[:header + taken]
        whole = len(body) >= length
        self.streams[stream] = (length, kind, long, bytearray() if whole else body)
        return (kind, body) if whole else (None, None)


class Reader:
    """Reads a stream's video of the hub by RTSP over TCP, directly from a socket: nothing is held back. `seen` is what
    came, as (time of arrival, bytes); pictures are looked for afterwards."""

    def __init__(self, url):
        self.url, self.seen, self.ended, self.sequence, self.session = url, [], False, 0, ""

    def __enter__(self):
        where = urllib.parse.urlsplit(self.url)
        self.socket = socket.create_connection((where.hostname, where.port), timeout=10)
        self.file = self.socket.makefile("rb")
        description, base = self.call("DESCRIBE", self.url, "Accept: application/sdp")
        control = re.search(r"a=control:(\S+)", description[description.index("m=video"):])[1]
        self.call("SETUP", urllib.parse.urljoin(base.rstrip("/") + "/", control),
                  "Transport: RTP/AVP/TCP;unicast;interleaved=0-1")
        self.call("PLAY", base)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()
        self.socket.close()

    def call(self, method, url, header="User-Agent: bench"):
        self.sequence += 1
        head = f"{method} {url} RTSP/1.0\r\nCSeq: {self.sequence}\r\n{self.session}{header}\r\n\r\n"
        self.socket.sendall(head.encode())
        head = b"".join(iter(self.file.readline, b"\r\n")).decode()
        if " 200 " not in head.splitlines()[0]:
            raise RuntimeError(f"the hub answers {method} with {head.splitlines()[0]}")
        fields = dict(line.split(": ", 1) for line in head.splitlines()[1:])
        if "Session" in fields:
            self.session = f"Session: {fields['Session'].split(';')[0]}\r\n"
        return self.file.read(int(fields.get("Content-Length", 0))).decode(), fields.get("Content-Base", url)

    def read(self):
        first = self.file.peek()  # what came with the last answer, or after it
        self.seen.append((time.monotonic(), first))
        while not self.ended:
            if select.select([self.socket], [], [], 0.1)[0]:
                self.seen.append((time.monotonic(), self.socket.recv(1 << 18)))

    def pictures(self):
        """Mark → times of arrival: the stream repeats itself."""
        data, found, parts = bytearray(), {}, bytearray()
        for at, more in self.seen:
            data += more
            while len(data) >= 4 and len(data) >= (size := 4 + int.from_bytes(data[2:4], "big")):
                if data[0] != 0x24:
                    raise RuntimeError("what the hub sends is not understood")
                packet, channel = bytes(data[4:size]), data[1]
                del data[:size]
                unit = self.unit_of(packet, parts) if channel == 0 else None
                if unit and mark_of(unit):
                    found.setdefault(mark_of(unit), []).append(at)
        return found

    @staticmethod
    def unit_of(packet, parts):
        """The unit that this RTP packet completes; units that share one packet are no pictures."""
        start = 12 + 4 * (packet[0] & 15)
        if packet[0] & 16:
            start += 4 + 4 * int.from_bytes(packet[start + 2:start + 4], "big")
        unit = packet[start:]
        if unit[0] & 31 != 28:
            return unit
        if unit[1] & 0x80:
            parts[:] = bytes([unit[0] & 0xe0 | unit[1] & 31])
        parts += unit[2:]
        return bytes(parts) if unit[1] & 0x40 else None
