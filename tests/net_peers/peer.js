// A WebSocket peer that is not Weir's: the npm package ws, whose folder is the first argument.
//
//     node peer.js FOLDER client URL    talks to Weir's server, checks what it says, exits 0 if all is as it should be
//     node peer.js FOLDER server        listens on a free port of 127.0.0.1, prints it, and prints how each connection
//                                       was closed
//
// peer.py does the same with another library.
'use strict';
const { once } = require('events');
const [folder, role, url] = process.argv.slice(2);
const WebSocket = require(folder + '/websocket.js');
const WebSocketServer = require(folder + '/websocket-server.js');

const MEGABYTE = 1 << 20;
const noise = Buffer.from(Uint8Array.from({ length: MEGABYTE }, (_, i) => Math.floor((i * i) / 128)));

function check(holds, what) {
  if (holds) return;
  console.log('not as it should be: ' + what);
  process.exit(1);
}

async function open(path, options) {
  const socket = new WebSocket(url + path, { maxPayload: 0, ...options });
  socket.on('error', () => {});
  await once(socket, 'open');
  return socket;
}

async function closed(socket) {
  const [code, reason] = await once(socket, 'close');
  return [code, reason.toString()];
}

async function client() {
  const socket = await open('/echo', { perMessageDeflate: { threshold: 0 } });
  check(socket.extensions === 'permessage-deflate', 'compression is agreed');
  const texts = ['hello', '', 'x'.repeat(300), 'ünïcödé'.repeat(20000), 'x'.repeat(MEGABYTE)];
  for (const message of [...texts, Buffer.alloc(5), noise]) {
    socket.send(message);
    const [back, binary] = await once(socket, 'message');
    check(binary === Buffer.isBuffer(message) && back.equals(Buffer.from(message)), `${message.length} come back`);
  }
  socket.send('in ', { fin: false });
  socket.send('three ', { fin: false });
  socket.send('frames', { fin: true });
  check((await once(socket, 'message'))[0].toString() === 'in three frames', 'fragments are joined');
  socket.ping('are you there');
  check((await once(socket, 'pong'))[0].toString() === 'are you there', 'a ping is answered');
  socket.close(4002, 'enough of it');
  check((await closed(socket))[0] === 4002, "the server answers with the client's code");
  const bye = await closed(await open('/bye'));
  check(bye[0] === 4003 && bye[1] === 'good bye', "the server's code and text arrive");
  for (const perMessageDeflate of [false, true]) {
    const large = await open('/echo', { perMessageDeflate });
    large.send(Buffer.alloc(50 * MEGABYTE));
    check((await closed(large))[0] === 1009, `50 MB are refused, compression ${perMessageDeflate}`);
  }
  const deaf = await open('/flood');
  deaf.pause();
  const witness = await open('/flooded');
  check((await once(witness, 'message'))[0].toString() === 'cut off', 'a peer that does not read is cut off');
  console.log('all is well');
  process.exit(0);
}

function serve(socket, request) {
  const path = request.url;
  socket.on('error', () => {});
  socket.on('close', (code) => console.log(`${path} closed ${code}`));
  if (path === '/echo') socket.on('message', (message, binary) => socket.send(message, { binary }));
  if (path === '/fragments') {
    for (const part of ['in ', 'three ']) socket.send(part, { fin: false });
    socket.send('frames', { fin: true });
    socket.send(noise.subarray(0, 1000), { fin: false });
    socket.send(Buffer.alloc(0), { fin: false });
    socket.send(noise.subarray(1000), { fin: true });
  }
  if (path === '/bye') socket.close(4003, 'good bye');
  if (path === '/large') socket.send(Buffer.alloc(50 * MEGABYTE));
  if (path === '/deaf') socket.pause();
}

function server() {
  const options = { host: '127.0.0.1', port: 0, maxPayload: 0, perMessageDeflate: { threshold: 0 } };
  const listening = new WebSocketServer(options, () => console.log('port ' + listening.address().port));
  listening.on('connection', serve);
}

if (role === 'client') client();
else server();
