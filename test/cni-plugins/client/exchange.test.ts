import test from 'ava';
import fc from 'fast-check';
import { Exchange, MAX_REPLY_BYTES } from '../../../cni-plugins/client/exchange.ts';
import {
  encodeFrame,
  encodeSettings,
  encodeUint32,
  FLAG,
  FRAME,
  FrameReader,
} from '../../../cni-plugins/client/frames.ts';
import { assertLaw } from '../../support/law.ts';

const CALL = { path: '/s/m', request: Buffer.from('request'), timeoutMs: 1000, userAgent: 'test' };
const NONE = Buffer.alloc(0);

/** What a server sends for a good answer: SETTINGS, an ACK, HEADERS, DATA, trailers. */
function answer(message: string, padding = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const grpc = Buffer.concat([prefix, Buffer.from(message)]);
  const data =
    padding === 0
      ? encodeFrame(FRAME.DATA, 0, 1, grpc)
      : encodeFrame(FRAME.DATA, FLAG.PADDED, 1, Buffer.concat([Buffer.of(padding), grpc, Buffer.alloc(padding)]));
  return Buffer.concat([
    encodeFrame(FRAME.SETTINGS, 0, 0, encodeSettings([[3, 100]])),
    encodeFrame(FRAME.SETTINGS, FLAG.ACK, 0, NONE),
    encodeFrame(FRAME.HEADERS, FLAG.END_HEADERS, 1, Buffer.of(0x88)),
    data,
    encodeFrame(FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, 1, Buffer.of(0x88)),
  ]);
}

function framesOf(bytes: Buffer) {
  const frames = new FrameReader().push(bytes);
  return frames === 'too-large' ? [] : frames;
}

test('Exchange: has the answer however its bytes are cut', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(
        fc.string({ unit: 'binary-ascii', maxLength: 300 }),
        fc.nat({ max: 255 }),
        fc.array(fc.nat()),
        (text, padding, cuts) => {
          const bytes = answer(text, padding);
          const ends = [...cuts.map((cut) => cut % bytes.length), bytes.length].sort((a, b) => a - b);
          const exchange = new Exchange(CALL);
          exchange.start();
          let from = 0;
          for (const end of ends) {
            exchange.receive(bytes.subarray(from, end));
            from = end;
          }
          t.deepEqual(exchange.outcome, { kind: 'message', message: Buffer.from(text) });
        },
      ),
    { numRuns: 200 },
  );
});

test('Exchange: survives any bytes and has an outcome when they end', async (t) => {
  const anyFrame = fc
    .tuple(fc.nat({ max: 10 }), fc.nat({ max: 255 }), fc.nat({ max: 2 }), fc.uint8Array({ maxLength: 40 }))
    .map(([type, flags, streamId, payload]) => encodeFrame(type, flags, streamId, payload));
  const anyBytes = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes));
  await assertLaw(
    t,
    (t) =>
      fc.property(fc.array(fc.oneof(anyFrame, anyFrame, anyBytes), { maxLength: 12 }), (chunks) => {
        const exchange = new Exchange(CALL);
        exchange.start();
        for (const chunk of chunks) exchange.receive(chunk);
        exchange.end('CLOSED', 'end');
        t.truthy(exchange.outcome);
      }),
    { numRuns: 1000 },
  );
});

test('Exchange: acknowledges SETTINGS and PING, and not their acknowledgements', (t) => {
  const exchange = new Exchange(CALL);
  exchange.start();
  const payload = Buffer.from('12345678');
  const sent = framesOf(
    exchange.receive(
      Buffer.concat([
        encodeFrame(FRAME.SETTINGS, 0, 0, NONE),
        encodeFrame(FRAME.SETTINGS, FLAG.ACK, 0, NONE),
        encodeFrame(FRAME.PING, 0, 0, payload),
        encodeFrame(FRAME.PING, FLAG.ACK, 0, payload),
      ]),
    ),
  );
  t.deepEqual(sent, [
    { type: FRAME.SETTINGS, flags: FLAG.ACK, streamId: 0, payload: NONE },
    { type: FRAME.PING, flags: FLAG.ACK, streamId: 0, payload },
  ]);
});

test('Exchange: sends no more than the windows allow, and the rest when they open', (t) => {
  const exchange = new Exchange({ ...CALL, request: Buffer.alloc(70_000) });
  const sentBytes = (bytes: Buffer) =>
    framesOf(bytes)
      .filter((frame) => frame.type === FRAME.DATA)
      .reduce((sum, frame) => sum + frame.payload.length, 0);
  const preface = 24;
  t.is(sentBytes(exchange.start().subarray(preface)), 65_535);
  const stream = encodeFrame(FRAME.WINDOW_UPDATE, 0, 1, encodeUint32(100_000));
  t.is(sentBytes(exchange.receive(stream)), 0, 'the connection window is still closed');
  const connection = encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, encodeUint32(1_000));
  t.is(sentBytes(exchange.receive(connection)), 1_000);
  const smaller = encodeFrame(FRAME.SETTINGS, 0, 0, encodeSettings([[4, 0]]));
  t.is(sentBytes(exchange.receive(smaller)), 0);
  const last = framesOf(exchange.receive(encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, encodeUint32(100_000))));
  t.is(last.at(-1)?.payload.length, 70_005 - 66_535);
  t.is(last.at(-1)?.flags, FLAG.END_STREAM);
});

test('Exchange: goes on when an agent that drains says GOAWAY but takes the call', (t) => {
  const exchange = new Exchange(CALL);
  exchange.start();
  exchange.receive(encodeFrame(FRAME.GOAWAY, 0, 0, Buffer.concat([encodeUint32(1), encodeUint32(0)])));
  t.is(exchange.outcome, undefined);
  exchange.receive(answer('done'));
  t.deepEqual(exchange.outcome, { kind: 'message', message: Buffer.from('done') });
});

test('Exchange: fails when GOAWAY says that the call was not taken', (t) => {
  const exchange = new Exchange(CALL);
  exchange.start();
  exchange.receive(encodeFrame(FRAME.GOAWAY, 0, 0, Buffer.concat([encodeUint32(0), encodeUint32(11)])));
  t.like(exchange.outcome, { kind: 'failure', failure: 'CLOSED' });
});

test('Exchange: takes a complete message although the connection breaks before the trailers', (t) => {
  const exchange = new Exchange(CALL);
  exchange.start();
  exchange.receive(encodeFrame(FRAME.DATA, 0, 1, Buffer.from([0, 0, 0, 0, 2, 104, 105])));
  t.is(exchange.outcome, undefined);
  exchange.end('CLOSED', 'gone');
  t.deepEqual(exchange.outcome, { kind: 'message', message: Buffer.from('hi') });
});

for (const [what, bytes, failure] of [
  ['the stream ends without a message', encodeFrame(FRAME.HEADERS, FLAG.END_STREAM, 1, NONE), 'NO_MESSAGE'],
  ['the message is cut short', encodeFrame(FRAME.DATA, FLAG.END_STREAM, 1, Buffer.of(0, 0, 0, 0, 9, 1)), 'NO_MESSAGE'],
  ['the message is compressed', encodeFrame(FRAME.DATA, 0, 1, Buffer.of(1, 0, 0, 0, 1, 1)), 'PROTOCOL'],
  ['the stream is reset', encodeFrame(FRAME.RST_STREAM, 0, 1, encodeUint32(7)), 'CLOSED'],
  ['the server pushes', encodeFrame(FRAME.PUSH_PROMISE, 0, 1, NONE), 'PROTOCOL'],
  ['a frame is padding alone', encodeFrame(FRAME.DATA, FLAG.PADDED, 1, Buffer.of(9, 0)), 'PROTOCOL'],
  ['a text protocol answers', Buffer.from('SSH-2.0-OpenSSH_9.2'), 'PROTOCOL'],
] as const) {
  test(`Exchange: fails with ${failure} when ${what}`, (t) => {
    const exchange = new Exchange(CALL);
    exchange.start();
    exchange.receive(bytes);
    t.like(exchange.outcome, { kind: 'failure', failure });
  });
}

test('Exchange: fails with PROTOCOL when the reply is without end', (t) => {
  const exchange = new Exchange(CALL);
  exchange.start();
  const frame = encodeFrame(FRAME.DATA, 0, 1, Buffer.alloc(16_384));
  for (let bytes = 0; bytes <= MAX_REPLY_BYTES; bytes += 16_384) exchange.receive(frame);
  t.like(exchange.outcome, { kind: 'failure', failure: 'PROTOCOL' });
});

for (const [what, frame, reason] of [
  ['an answer in frames of one byte', encodeFrame(FRAME.DATA, 0, 1, Buffer.of(0)), /too many pieces/],
  ['pings', encodeFrame(FRAME.PING, 0, 0, Buffer.alloc(8)), /frames that are no answer/],
  ['settings', encodeFrame(FRAME.SETTINGS, 0, 0, NONE), /frames that are no answer/],
  ['headers that go on and on', encodeFrame(0x9, 0, 1, Buffer.alloc(1)), /frames that are no answer/],
  ['frames of no data', encodeFrame(FRAME.DATA, 0, 1, NONE), /frames that are no answer/],
] as const) {
  test(`Exchange: ends the call of a server that sends 30,000 times ${what}`, (t) => {
    const exchange = new Exchange(CALL);
    exchange.start();
    exchange.receive(encodeFrame(FRAME.DATA, 0, 1, Buffer.from([0, 0, 15, 0, 0])));
    for (let sent = 0; sent < 30_000; sent++) exchange.receive(frame);
    const { outcome } = exchange;
    t.like(outcome, { kind: 'failure', failure: 'PROTOCOL' });
    t.regex(outcome?.kind === 'failure' ? outcome.reason : '', reason);
  });
}
