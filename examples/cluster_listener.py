#!/usr/bin/env python3
"""A product that listens to a Weir detector cluster, to begin one's own from (docs/cluster.md has the messages).

    export WEIR_TOKEN=$(weir token --role runner --sub my-product)
    examples/cluster_listener.py --url http://127.0.0.1:8087                 # needs Debian's python3-websockets
    examples/cluster_listener.py --url http://host-1:8087 --url http://host-2:8087 \\
        --subscribe 'kiosk;cam-1' --model 7

It prints each detection as one JSON line. When a connection ends it goes on at the next address, and says which
detection it got last; so it gets each at least once, whichever process dies. It agrees to every change of a session: put
your own in the place of `patch_session`.
"""
import argparse
import asyncio
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

import websockets

# What newer versions of the library call the headers of the request.
HEADERS = "extra_headers" if int(websockets.__version__.split(".")[0]) < 14 else "additional_headers"


def complain(text):
    print(text, file=sys.stderr, flush=True)


def patch_session(message):
    """A worker wants a session changed; the first answer of any product within five seconds counts."""
    return {"sessionId": message["sessionId"], "success": True, "message": "agreed by Python"}


def subscribe(url, token, subscription, model):
    body = json.dumps({"subscription_identifier": subscription, "model_id": model}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/cluster/subscriptions", body, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        warning = json.load(answer).get("warning")
        if warning:
            complain(warning)


class Listener:
    def __init__(self, token, only, after):
        self.headers = {HEADERS: {"Authorization": f"Bearer {token}"}}
        self.only, self.last = only, after

    def address(self, url):
        query = {"events": "false"}
        if self.only:
            query["subscription"] = ",".join(self.only)
        if self.last:
            query["after"] = self.last
        return f"{url.replace('http', 'ws', 1)}/v1/cluster/listen?{urllib.parse.urlencode(query)}"

    async def listen(self, url):
        async with websockets.connect(self.address(url), open_timeout=5, max_size=4 << 20, **self.headers) as socket:
            async for text in socket:
                await self.hear(socket, json.loads(text))

    async def hear(self, socket, message):
        kind = message["type"]
        if kind == "detection":
            print(json.dumps(message), flush=True)
        elif kind == "patchSession":
            await socket.send(json.dumps({"type": "patchSessionResult", "payload": patch_session(message)}))
        elif kind == "gap":
            complain("some detections are lost: the cluster does not keep them any more")
        elif kind == "error":
            complain(message["message"])
        # While Redis is away detections carry no id; a position names the last of those that were not wanted here.
        self.last = message.get("streamId") or self.last


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", action="append", required=True, help="a process of the cluster; several may be given")
    parser.add_argument("--only", action="append", default=[], metavar="DISPLAY;CAMERA", help="instead of all")
    parser.add_argument("--subscribe", metavar="DISPLAY;CAMERA", help="subscribe to this first")
    parser.add_argument("--model", type=int, help="the model for it")
    parser.add_argument("--after", default="", help="the stream id of the last detection that is known")
    options = parser.parse_args()
    token = os.environ.get("WEIR_TOKEN", "")
    if options.subscribe:
        try:
            subscribe(options.url[0], token, options.subscribe, options.model)
        except urllib.error.HTTPError as refused:
            sys.exit(refused.read().decode())
    listener = Listener(token, options.only, options.after)
    while True:
        for url in options.url:
            try:
                await listener.listen(url)
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException) as failed:
                complain(f"{url}: {failed}")
            await asyncio.sleep(0.5)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
