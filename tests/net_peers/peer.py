"""A WebSocket peer that is not Weir's: Debian's python3-websockets.

    peer.py client URL    talks to Weir's server, checks what it says, exits 0 if all is as it should be
    peer.py server [FILE] listens on a free port of 127.0.0.1, prints it, and prints how each connection was closed;
                          speaks TLS with the certificate and key in FILE

peer.js does the same with another library.
"""
import asyncio
import ssl
import sys

import websockets

MEGABYTE = 1 << 20
NOISE = bytes((i * i >> 7) & 255 for i in range(MEGABYTE))


def check(holds, what):
    if not holds:
        sys.exit(f"not as it should be: {what}")


async def closed(socket):
    """The code and text that the other side closed with."""
    try:
        while True:
            await asyncio.wait_for(socket.recv(), 20)
    except websockets.ConnectionClosed:
        return socket.close_code, socket.close_reason


async def client(url):
    async with websockets.connect(url + "/echo", max_size=None) as socket:
        check([type(each).__name__ for each in socket.extensions] == ["PerMessageDeflate"], "compression is agreed")
        for message in ("hello", "", "x" * 300, "ünïcödé" * 20_000, "x" * MEGABYTE, b"\0" * 5, NOISE):
            await socket.send(message)
            check(await socket.recv() == message, f"a message of {len(message)} comes back")
        await socket.send(["in ", "three ", "frames" * 100])
        check(await socket.recv() == "in three " + "frames" * 100, "fragments are joined")
        await socket.send([NOISE[:1000], b"", NOISE[1000:]])
        check(await socket.recv() == NOISE, "large fragments are joined")
        await (await socket.ping(b"are you there"))
        await socket.close(4002, "enough of it")
    async with websockets.connect(url + "/bye") as socket:
        check(await closed(socket) == (4003, "good bye"), "the server's code and text arrive")
    for compression in (None, "deflate"):
        async with websockets.connect(url + "/echo", compression=compression) as socket:
            try:
                await socket.send(b"\0" * (50 * MEGABYTE))
            except websockets.ConnectionClosed:
                pass
            check((await closed(socket))[0] == 1009, f"50 MB are refused, compression {compression}")
    # Nothing is read beyond the library's own buffers, until the server has had enough.
    deaf = await websockets.connect(url + "/flood", max_queue=1, ping_interval=None, close_timeout=1)
    async with websockets.connect(url + "/flooded") as witness:
        check(await asyncio.wait_for(witness.recv(), 30) == "cut off", "a peer that does not read is cut off")
    deaf.transport.abort()
    print("all is well", flush=True)


async def serve(socket, path):
    try:
        if path == "/echo":
            async for message in socket:
                await socket.send(message)
        elif path == "/fragments":
            await socket.send(["in ", "three ", "frames"])
            await socket.send([NOISE[:1000], b"", NOISE[1000:]])
            await socket.wait_closed()
        elif path == "/bye":
            await socket.close(4003, "good bye")
        elif path == "/large":
            await socket.send(b"\0" * (50 * MEGABYTE))
            await closed(socket)
        elif path == "/deaf":
            await asyncio.Future()
    except websockets.ConnectionClosed:
        pass
    print(f"{path} closed {socket.close_code}", flush=True)


async def server(certificate):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
    if tls:
        tls.load_cert_chain(certificate)
    async with websockets.serve(serve, "127.0.0.1", 0, ssl=tls, max_size=None, max_queue=1, ping_interval=None,
                                close_timeout=1) as listening:
        print(f"port {listening.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.Future()


asyncio.run(client(sys.argv[2]) if sys.argv[1] == "client" else server(sys.argv[2:] and sys.argv[2]))
