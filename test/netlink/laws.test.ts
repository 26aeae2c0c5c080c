import { deepStrictEqual, ok, strictEqual, throws } from 'node:assert/strict';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { Address6 } from 'ip-address';
import { ADDRESS } from '../../netlink/address-message.ts';
import { viewOf } from '../../netlink/byte-view.ts';
import { ByteWriter } from '../../netlink/byte-writer.ts';
import { CodecError } from '../../netlink/codec-error.ts';
import { decodeNftablesNotifications, decodeRouteNotifications } from '../../netlink/decode-notification.ts';
import { readExtack } from '../../netlink/extack.ts';
import { LINK } from '../../netlink/link-message.ts';
import type { MessageCodec } from '../../netlink/message-codec.ts';
import { NEIGH } from '../../netlink/neigh-message.ts';
import { QDISC } from '../../netlink/qdisc-message.ts';
import { ROUTE } from '../../netlink/route-message.ts';
import { RULE } from '../../netlink/rule-message.ts';
import { BPF_FILTER, TRAFFIC_FILTER } from '../../netlink/traffic-filter-message.ts';
import { formatIp, parseIp } from '../../runtime/ip-text.ts';
import { assertLaw } from '../support/law.ts';
import { IS_LONG } from '../support/suite-part.ts';

const CODECS: readonly (readonly [string, MessageCodec<unknown>])[] = [
  ['LINK', LINK],
  ['ADDRESS', ADDRESS],
  ['ROUTE', ROUTE],
  ['RULE', RULE],
  ['NEIGH', NEIGH],
  ['QDISC', QDISC],
  ['TRAFFIC_FILTER', TRAFFIC_FILTER],
  ['BPF_FILTER', BPF_FILTER],
];

/** Bytes that look like attributes: random ones would be refused at the first length. */
const attribute: fc.Arbitrary<Buffer> = fc
  .tuple(fc.integer({ min: 0, max: 64 }), fc.uint8Array({ maxLength: 40 }), fc.boolean())
  .map(([type, payload, isNested]) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(payload.length + 4, 0);
    head.writeUInt16LE(type | (isNested ? 0x8000 : 0), 2);
    return Buffer.concat([head, payload, Buffer.alloc(-payload.length & 3)]);
  });
const nestedAttribute: fc.Arbitrary<Buffer> = fc
  .tuple(fc.integer({ min: 0, max: 64 }), fc.array(attribute, { maxLength: 4 }))
  .map(([type, inner]) => {
    const payload = Buffer.concat(inner);
    const head = Buffer.alloc(4);
    head.writeUInt16LE(payload.length + 4, 0);
    head.writeUInt16LE(type, 2);
    return Buffer.concat([head, payload]);
  });
const messageBytes = (headerBytes: number): fc.Arbitrary<Buffer> =>
  fc
    .tuple(
      fc.uint8Array({ minLength: headerBytes, maxLength: headerBytes }),
      fc.array(fc.oneof(attribute, nestedAttribute), { maxLength: 12 }),
    )
    .map(([header, attributes]) => Buffer.concat([header, ...attributes]));

function encode<M>(codec: MessageCodec<M>, message: M): Uint8Array {
  const writer = new ByteWriter(1 << 16);
  codec.write(writer, message as Partial<M>);
  return writer.written().slice();
}

async function holds<T>(t: ExecutionContext, inputs: fc.Arbitrary<T>, law: (input: T) => void): Promise<void> {
  await assertLaw(t, () => fc.property(inputs, law), { numRuns: IS_LONG ? 2_000 : 500 });
}

for (const [name, codec] of CODECS) {
  test(`${name}: what was read is written so that it reads the same, when any attributes come`, async (t) => {
    await holds(t, messageBytes(codec.headerBytes), (bytes) => {
      const message = codec.decode(bytes);
      const again = encode(codec, message);
      deepStrictEqual(codec.decode(again), message);
      // Encoding is canonical.
      deepStrictEqual(encode(codec, codec.decode(again)), again);
    });
  });

  test(`${name}: writes the same bytes whatever the order of the fields, and whatever was refused before`, async (t) => {
    // Messages about traffic control have no family.
    const field = 'family' in (codec.decode(new Uint8Array(codec.headerBytes)) as object) ? 'family' : 'ifindex';
    const small = encode(codec, { [field]: 2 });
    await holds(t, messageBytes(codec.headerBytes), (bytes) => {
      const message = codec.decode(bytes) as object;
      const reversed = Object.fromEntries(Object.entries(message).reverse());
      deepStrictEqual(encode(codec, reversed), encode(codec, message));
      throws(() => encode(codec, { ...message, [field]: -1 }), CodecError);
      deepStrictEqual(encode(codec, { [field]: 2 }), small);
    });
  });

  test(`${name}: reads or refuses any bytes, and ends`, async (t) => {
    await holds(t, fc.uint8Array({ maxLength: 300 }), (bytes) => {
      try {
        codec.decode(bytes);
      } catch (error) {
        ok(error instanceof CodecError, String(error));
      }
    });
  });
}

test('notifications and extended acks: any bytes are read to the end', async (t) => {
  await holds(t, fc.uint8Array({ maxLength: 400 }), (bytes) => {
    const view = viewOf(bytes);
    ok(decodeRouteNotifications(view, bytes.length).length <= bytes.length);
    ok(decodeNftablesNotifications(view, bytes.length).length <= bytes.length);
    const sent = { bytes: view, headerBytes: ROUTE.headerBytes, names: ROUTE };
    readExtack(view, 0, bytes.length, sent);
  });
});

test('parseIp: is the inverse of formatIp for all addresses', async (t) => {
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
    fc.uint8Array({ minLength: 16, maxLength: 16 }),
    fc.array(fc.constantFrom(0, 0, 0, 1, 255), { minLength: 16, maxLength: 16 }).map((list) => Uint8Array.from(list)),
  );
  await holds(t, bytes, (address) => {
    deepStrictEqual(parseIp(formatIp(address, 0, address.length)), address);
  });
});

test('formatIp: writes IPv6 as RFC 5952 and another library do', async (t) => {
  const groups = fc.array(fc.constantFrom(0, 0, 0, 1, 0xab, 0xfd00), { minLength: 8, maxLength: 8 });
  await holds(t, groups, (list) => {
    const address = Uint8Array.from(list.flatMap((group) => [group >> 8, group & 255]));
    const text = list.map((group) => group.toString(16)).join(':');
    strictEqual(formatIp(address, 0, 16), new Address6(text).correctForm());
  });
});

const refused = test.macro({
  exec: (t, text: string) => t.is(parseIp(text), undefined),
  title: (_, text) => `parseIp: refuses ${JSON.stringify(text)}`,
});
for (const text of ['', '1.2.3', '1.2.3.4.5', '01.2.3.4', '1.2.3.256', '1.2.3.4 ', '1..2.3', ':', ':::', '1::2::3']) {
  test(refused, text);
}
for (const text of [
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '12345::',
  'g::',
  '::1.2.3',
  'fe80::1%eth0',
  '1:2:3:4:5:6:7::8',
]) {
  test(refused, text);
}

test('ADDRESS: a label with a NUL behind letters beyond ASCII is no text, and is kept as bytes', (t) => {
  const bytes = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 3, 0, 0xc2, 0x80, 0, 0]);
  const message = ADDRESS.decode(bytes);
  t.is(message.label, undefined);
  t.deepEqual(Buffer.from(encode(ADDRESS, message)), bytes);
});
