import test from 'ava';
import { ByteWriter } from '../../netlink/byte-writer.ts';
import { CodecError } from '../../netlink/codec-error.ts';
import { CONNTRACK } from '../../netlink/conntrack-message.ts';
import { bodyOf, canonical, type Nests, readCapture } from './support/capture.ts';

const V4 = { srcV4: '127.0.0.1', dstV4: '127.0.0.1' };
const V6 = { srcV6: '::1', dstV6: '::1' };
const THERE = { number: 6, sport: 50_001, dport: 61_677 };
const BACK = { number: 6, sport: 61_677, dport: 50_001 };
const FLAGS = { flags: 0x23, mask: 0 };
const TCP = { state: 3, wscaleOriginal: 10, wscaleReply: 10, flagsOriginal: FLAGS, flagsReply: FLAGS };
const IN_ZONE = {
  ip: { srcV4: '10.0.0.1', dstV4: '10.0.0.2' },
  proto: { number: 6, sport: 5_001, dport: 80 },
};

const LEVEL = { skip: 0, nests: {} };
const TUPLE = { skip: 0, nests: { 1: LEVEL, 2: LEVEL } };
const NESTS: Nests = { 1: TUPLE, 2: TUPLE, 4: { skip: 0, nests: { 1: LEVEL } } };

function written(message: Parameters<typeof CONNTRACK.write>[1]): Buffer {
  const writer = new ByteWriter(512);
  CONNTRACK.write(writer, message);
  return Buffer.from(writer.written());
}

for (const [file, want] of [
  ['conntrack', { family: 2, tupleOrig: { ip: V4, proto: THERE }, tupleReply: { ip: V4, proto: BACK } }],
  ['conntrack-v6', { family: 10, tupleOrig: { ip: V6, proto: THERE }, tupleReply: { ip: V6, proto: BACK } }],
] as const) {
  test(`CONNTRACK: ${file}, as the kernel sent it, both ways`, (t) => {
    const bytes = bodyOf(readCapture(`${file}.answer`));
    const message = CONNTRACK.decode(bytes);
    t.like(message, { ...want, status: 0x0e, protoInfo: { tcp: TCP } });
    // A mark, a timeout and the like, which no field is for.
    t.deepEqual(
      message.unknown.map(({ type }) => type),
      [8, 12, 11, 7],
    );
    t.deepEqual(canonical(written(message), 4, NESTS), canonical(bytes, 4, NESTS));
  });
}

test('CONNTRACK: an entry of a zone', (t) => {
  const bytes = bodyOf(readCapture('conntrack-zone.answer'));
  const message = CONNTRACK.decode(bytes);
  t.like(message, { family: 2, version: 0, resId: 0, zone: 7, tupleOrig: IN_ZONE });
  t.deepEqual(canonical(written(message), 4, NESTS), canonical(bytes, 4, NESTS));
});

test('CONNTRACK: the request for assured entries is that of conntrack, byte for byte', (t) => {
  const bytes = bodyOf(readCapture('conntrack-list.request'));
  t.deepEqual(written({ status: 4, statusMask: 4 }), bytes);
  t.like(CONNTRACK.decode(bytes), { family: 0, status: 4, statusMask: 4, unknown: [] });
});

test('CONNTRACK: the request that changes an entry is that of conntrack', (t) => {
  const bytes = bodyOf(readCapture('conntrack-update.request'));
  const flags = { flags: 0x0a, mask: 0x0a };
  const mark = { type: 8, payload: Uint8Array.of(0, 0, 0, 5) };
  const protoInfo = { tcp: { flagsOriginal: flags, flagsReply: flags } };
  const update = { family: 0, tupleOrig: IN_ZONE, protoInfo, unknown: [mark] };
  t.like(CONNTRACK.decode(bytes), update);
  t.deepEqual(canonical(written(update), 4, NESTS), canonical(bytes, 4, NESTS));
  const marked = bytes.indexOf('08000800', 'hex');
  // Their order is the only difference: nesting and its flags are the same bytes.
  const inOurs = Buffer.concat([
    bytes.subarray(0, marked),
    bytes.subarray(marked + 8),
    bytes.subarray(marked, marked + 8),
  ]);
  t.deepEqual(written(update), inOurs);
});

test('CONNTRACK: refuses flags that are no byte', (t) => {
  const protoInfo = { tcp: { flagsReply: { flags: 8, mask: 256 } } };
  t.throws(() => written({ protoInfo }), { instanceOf: CodecError, message: /flagsReply\.mask/ });
});
