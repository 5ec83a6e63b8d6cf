#!/usr/bin/env node
// A product that listens to a Weir detector cluster, to begin one's own from (docs/cluster.md has the messages). It
// needs Node 18 or later and no package.
//
//     export WEIR_TOKEN=$(weir token --role runner --sub my-product)
//     examples/cluster_listener.mjs --url http://127.0.0.1:8087
//     examples/cluster_listener.mjs --url http://host-1:8087 --url http://host-2:8087 \
//         --subscribe 'kiosk;cam-1' --model 7
//
// It prints each detection as one JSON line. When a connection ends it goes on at the next address, and says which
// detection it got last; so it gets each at least once, whichever process dies. It agrees to every change of a session:
// put your own in the place of `patchSession`.
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string', multiple: true }, // a process of the cluster; several may be given
    only: { type: 'string', multiple: true }, // DISPLAY;CAMERA, instead of all
    subscribe: { type: 'string' }, // DISPLAY;CAMERA: subscribe to this first
    model: { type: 'string' }, // the model for it
    after: { type: 'string', default: '' }, // the stream id of the last detection that is known
  },
});
if (!options.url) throw new Error('--url is needed');
const authorization = `Bearer ${process.env.WEIR_TOKEN ?? ''}`;
const silentFor = 45_000; // a process pings after 20 s of silence
let last = options.after;

// A worker wants a session changed; the first answer of any product within five seconds counts.
function patchSession(message) {
  return { sessionId: message.sessionId, success: true, message: 'agreed by JavaScript' };
}

function hear(message, say) {
  if (message.type === 'detection') console.log(JSON.stringify(message));
  else if (message.type === 'patchSession') say({ type: 'patchSessionResult', payload: patchSession(message) });
  else if (message.type === 'gap') console.error('some detections are lost: the cluster does not keep them any more');
  else if (message.type === 'error') console.error(message.message);
  // While Redis is away detections carry no id; a position names the last of those that were not wanted here.
  last = message.streamId ?? last;
}

async function subscribe(url) {
  const body = JSON.stringify({ subscription_identifier: options.subscribe, model_id: Number(options.model) });
  const headers = { authorization, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/v1/cluster/subscriptions`, { method: 'POST', headers, body });
  if (!answer.ok) throw new Error(await answer.text());
  const { warning } = await answer.json();
  if (warning) console.error(warning);
}

// ---- a WebSocket as RFC 6455 has it, as far as this program needs one ----

const TEXT = 1, CLOSE = 8, PING = 9, PONG = 10;

// What is sent is masked, and shorter than 64 KB.
function frame(opcode, payload) {
  const mask = randomBytes(4);
  const long = payload.length > 125;
  const head = Buffer.from([0x80 | opcode, 0x80 | (long ? 126 : payload.length)]);
  const length = long ? Buffer.from([payload.length >> 8, payload.length & 0xff]) : Buffer.alloc(0);
  return Buffer.concat([head, length, mask, payload.map((byte, i) => byte ^ mask[i % 4])]);
}

// The frames at the beginning of `bytes`, and what is left of it.
function framesIn(bytes) {
  const frames = [];
  for (;;) {
    if (bytes.length < 2) return [frames, bytes];
    let length = bytes[1] & 0x7f;
    const start = length < 126 ? 2 : length === 126 ? 4 : 10;
    if (bytes.length < start) return [frames, bytes];
    if (length === 126) length = bytes.readUInt16BE(2);
    else if (length === 127) length = Number(bytes.readBigUInt64BE(2));
    if (bytes.length < start + length) return [frames, bytes];
    frames.push({ last: bytes[0] >= 0x80, opcode: bytes[0] & 0x0f, payload: bytes.subarray(start, start + length) });
    bytes = bytes.subarray(start + length);
  }
}

// Until the connection ends.
function converse(socket, begun, ended) {
  let rest = Buffer.alloc(0), parts = [];
  const say = (message) => socket.write(frame(TEXT, Buffer.from(JSON.stringify(message))));
  const take = (bytes) => {
    const [frames, left] = framesIn(Buffer.concat([rest, bytes]));
    rest = left;
    for (const { last: complete, opcode, payload } of frames) {
      if (opcode === PING) socket.write(frame(PONG, payload));
      else if (opcode === CLOSE) socket.end(frame(CLOSE, payload));
      else if (opcode <= TEXT) {
        parts.push(payload);
        if (complete) hear(JSON.parse(Buffer.concat(parts.splice(0)).toString()), say);
      }
    }
  };
  socket.on('data', take).on('error', ended).on('close', () => ended(new Error('the connection is over')));
  socket.setTimeout(silentFor, () => socket.destroy(new Error('the process is silent')));
  take(begun);
}

function listen(url) {
  return new Promise((_, ended) => {
    const address = new URL('/v1/cluster/listen', url);
    address.searchParams.set('events', 'false');
    if (options.only) address.searchParams.set('subscription', options.only.join(','));
    if (last) address.searchParams.set('after', last);
    const key = randomBytes(16).toString('base64');
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    const headers = { authorization, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13',
                      'sec-websocket-key': key };
    const request = (address.protocol === 'https:' ? https : http).get(address, { headers, timeout: 5_000 });
    request.on('upgrade', (answer, socket, begun) => {
      if (answer.headers['sec-websocket-accept'] === accept) converse(socket, begun, ended);
      else socket.destroy(), ended(new Error('this is no WebSocket'));
    });
    request.on('response', (answer) => {
      answer.resume();
      ended(new Error(`the process answers ${answer.statusCode}`));
    });
    request.on('timeout', () => request.destroy(new Error('the process is silent')));
    request.on('error', ended);
  });
}

if (options.subscribe) await subscribe(options.url[0]);
for (;;) {
  for (const url of options.url) {
    await listen(url).catch((failed) => console.error(`${url}: ${failed.message}`));
    await pause(500);
  }
}
