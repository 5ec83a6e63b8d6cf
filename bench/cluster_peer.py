"""The peer of benchmark `cluster`: the way of a detection from a worker to a listener, as one writes it with asyncio,
websockets and Redis's own client. Like Weir's processes, the master checks whose result it is, keeps it in a stream of
10,000 and publishes it; the slave passes it on to whoever listens.

    cluster_peer.py master REDIS_PORT WORKERS_ADDRESS SUBSCRIPTION…    spreads them over ws://ADDRESS/w/0 …, one a word
    cluster_peer.py slave REDIS_PORT                                   prints the port at which it can be listened to
"""
import asyncio
import json
import sys

import redis.asyncio
import websockets

CHANNEL, STREAM, KEPT = "worker:slave:peer", "peer:detections", 10_000


class Master:
    def __init__(self, port):
        self.redis = redis.asyncio.Redis(port=port, decode_responses=True)

    async def drive(self, url, subscriptions):
        """One worker: everything that it says is taken in its order."""
        async with websockets.connect(url) as socket:
            for identifier in subscriptions:
                await socket.send(json.dumps({"type": "subscribe", "payload": {
                    "subscriptionIdentifier": identifier, "rtspUrl": "rtsp://camera.example/stream", "modelId": 7,
                    "modelName": "vehicles", "modelUrl": "http://camera.example/model"}}))
            async for text in socket:
                message = json.loads(text)
                if message["type"] == "stateReport":
                    await self.redis.hset("peer:connections", url, json.dumps(message))
                elif message["type"] == "imageDetection" and message["subscriptionIdentifier"] in subscriptions:
                    await self.pass_on(message)

    async def pass_on(self, message):
        message["type"] = "detection"
        message["streamId"] = await self.redis.xadd(STREAM, {"text": json.dumps(message)}, maxlen=KEPT, approximate=True)
        await self.redis.publish(CHANNEL, json.dumps(message))

    async def run(self, address, subscriptions):
        workers = {}
        for number, words in enumerate(subscriptions):
            workers[f"ws://{address}/w/{number}"] = set(words.split(","))
        await asyncio.gather(*(self.drive(url, each) for url, each in workers.items()))


class Slave:
    def __init__(self, port):
        self.redis = redis.asyncio.Redis(port=port, decode_responses=True)
        self.listeners = set()

    async def serve(self, socket):
        self.listeners.add(socket)
        try:
            await socket.wait_closed()
        finally:
            self.listeners.discard(socket)

    async def run(self):
        pubsub = self.redis.pubsub()
        await pubsub.subscribe(CHANNEL)
        async with websockets.serve(self.serve, "127.0.0.1", 0) as server:
            print(server.sockets[0].getsockname()[1], flush=True)
            async for message in pubsub.listen():
                if message["type"] != "message":
                    continue
                detection = json.loads(message["data"])
                text = json.dumps({name: detection[name] for name in ("type", "streamId", "subscriptionIdentifier",
                                                                      "timestamp", "data")})
                for socket in list(self.listeners):
                    await socket.send(text)


if __name__ == "__main__":
    if sys.argv[1] == "master":
        asyncio.run(Master(int(sys.argv[2])).run(sys.argv[3], sys.argv[4:]))
    else:
        asyncio.run(Slave(int(sys.argv[2])).run())
