import { readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { decodeMessage, encodeMessage, type Field, type InitOf, type MessageTable } from '../../../agent/api/codec.ts';
import * as messages from '../../../agent/api/messages.ts';
import * as ops from '../../../agent/api/ops-messages.ts';
import { OPS_METHODS, OPS_SERVICE } from '../../../agent/api/ops-service.ts';
import { AGENT_METHODS, RUN_METHOD } from '../../../agent/api/service.ts';
import { CodecError } from '../../../agent/api/wire.ts';
import { constantName } from '../../../tools/gen-messages.ts';
import { assertLaw } from '../../support/law.ts';

// Both are of one package: a name that both declare would be a fault.
const proto = new protobuf.Root();
for (const file of ['agent.proto', 'ops.proto']) {
  protobuf.parse(readFileSync(new URL(`../../../agent/api/${file}`, import.meta.url), 'utf8'), proto);
}
const PACKAGE = 'tke.eni.v1';

/** The tables by the names of their messages. `make check` compares them with the contracts that they are made from. */
const TABLES: Readonly<Record<string, MessageTable>> = Object.fromEntries(
  declaredMessages().map((name) => [name, Reflect.get({ ...messages, ...ops }, constantName(name))]),
);
const NAME_OF = new Map(Object.entries(TABLES).map(([name, table]) => [table, name]));

function declaredMessages(): readonly string[] {
  const types = proto.lookup(PACKAGE);
  if (!(types instanceof protobuf.Namespace)) throw new Error(`no package ${PACKAGE}`);
  return types.nestedArray.filter((nested) => nested instanceof protobuf.Type).map((nested) => nested.name);
}

test('message tables: there is one for each message', (t) => {
  const missing = Object.keys(TABLES).filter((name) => TABLES[name] === undefined);
  t.deepEqual(missing, []);
  t.true(Object.keys(TABLES).length > 40);
});

test('OPS_METHODS: has the calls of ops.proto, the watch alone a stream', (t) => {
  const declared = proto.lookupService(`${PACKAGE}.Ops`).methodsArray.map((method) => ({
    path: `/${PACKAGE}.Ops/${method.name}`,
    request: method.requestType,
    reply: method.responseType,
    requestStream: method.requestStream ?? false,
    responseStream: method.responseStream ?? false,
  }));
  const ours = Object.entries(OPS_METHODS).map(([name, { path, request, reply }]) => {
    const { requestStream, responseStream } = OPS_SERVICE[name as keyof typeof OPS_SERVICE];
    return { path, request: NAME_OF.get(request), reply: NAME_OF.get(reply), requestStream, responseStream };
  });
  t.deepEqual<unknown, unknown>(ours, declared);
});

test('AGENT_METHODS: has the calls of agent.proto', (t) => {
  const service = proto.lookupService(`${PACKAGE}.Agent`);
  const declared = service.methodsArray.map((method) => ({
    path: `/${PACKAGE}.Agent/${method.name}`,
    request: method.requestType,
    reply: method.responseType,
    streams: method.requestStream === true || method.responseStream === true,
  }));
  const ours = [...Object.values(AGENT_METHODS), RUN_METHOD].map(({ path, request, reply }) => ({
    path,
    request: NAME_OF.get(request),
    reply: NAME_OF.get(reply),
    streams: false,
  }));
  t.deepEqual<unknown, unknown>(ours, declared);
});

type Message = InitOf<MessageTable> & Record<string, unknown>;

/** Makes random messages of a table; strings are well-formed, as proto3 demands of a sender. */
function arbitraryOf(table: MessageTable): fc.Arbitrary<Message> {
  const fields = Object.entries(table).map(([name, field]) => [name, arbitraryField(field)] as const);
  return fc.record(Object.fromEntries(fields)).map((message) => {
    // Of a oneof at most one member is set.
    const taken = new Set<string>();
    const kept = Object.entries(message).filter(([name, value]) => {
      const field = table[name];
      const oneof = field?.type === 'message' && field.repeated !== true ? field.oneof : undefined;
      if (value === undefined || (oneof !== undefined && taken.has(oneof))) return false;
      if (oneof !== undefined) taken.add(oneof);
      return true;
    });
    // What the arbitraries above made fits the table that they were made from.
    return Object.fromEntries(kept) as Message;
  });
}

function arbitraryField(field: Field): fc.Arbitrary<unknown> {
  if (field.type === 'message') {
    const message = fc.constant(null).chain(() => arbitraryOf(field.message));
    return field.repeated === true ? fc.array(message, { maxLength: 4 }) : fc.option(message, { nil: undefined });
  }
  const text = fc.string({ unit: 'grapheme', maxLength: 200 });
  if (field.type === 'string') return field.repeated === true ? fc.array(text, { maxLength: 4 }) : text;
  const scalar = arbitraryScalar(field.type);
  return field.repeated === true ? fc.array(scalar, { maxLength: 5 }) : scalar;
}

function arbitraryScalar(type: Exclude<Field['type'], 'message' | 'string'>): fc.Arbitrary<unknown> {
  return {
    bytes: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    bool: fc.boolean(),
    uint32: fc.oneof(fc.nat(), fc.integer({ min: 0, max: 0xffff_ffff })),
    int32: fc.oneof(fc.constant(-1), fc.integer()),
    enum: fc.integer({ min: 0, max: 3 }),
    uint64: fc.oneof(fc.nat(), fc.maxSafeNat()),
  }[type];
}

/** Shows any decoded message alike: bytes as hex, no nulls, plain prototypes. */
function shown(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== null && item !== undefined)
      .map(([key, item]) => [key, shown(item)]),
  );
}

function decodedByProtobufjs(type: protobuf.Type, bytes: Uint8Array): unknown {
  return shown(type.toObject(type.decode(bytes), { defaults: true, longs: Number, bytes: Buffer }));
}

for (const [name, table] of Object.entries(TABLES)) {
  const type = proto.lookupType(`${PACKAGE}.${name}`);

  test(`encodeMessage: ${name} is read alike by protobufjs and by us, and holds what went in`, async (t) => {
    await assertLaw(
      t,
      (t) =>
        fc.property(arbitraryOf(table), (message) => {
          const bytes = encodeMessage(table, message);
          const decoded = decodeMessage(table, bytes);
          t.deepEqual(shown(decoded), decodedByProtobufjs(type, bytes));
          t.deepEqual(shown(decoded), shown(withDefaults(table, message)));
          t.deepEqual(encodeMessage(table, decoded), bytes, 'encoding is canonical');
        }),
      { numRuns: 60 },
    );
  });

  test(`decodeMessage: ${name} is read from what protobufjs writes`, async (t) => {
    await assertLaw(
      t,
      (t) =>
        fc.property(arbitraryOf(table), (message) => {
          const bytes = type.encode(type.fromObject(message)).finish();
          t.deepEqual(shown(decodeMessage(table, bytes)), shown(withDefaults(table, message)));
        }),
      { numRuns: 60 },
    );
  });

  test(`decodeMessage: ${name} survives any bytes`, async (t) => {
    await assertLaw(
      t,
      (t) =>
        fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
          t.true(survives(() => decodeMessage(table, bytes)));
        }),
      { numRuns: 200 },
    );
    await assertLaw(
      t,
      (t) =>
        fc.property(arbitraryOf(table), fc.nat(), fc.nat({ max: 255 }), (message, at, byte) => {
          const bytes = encodeMessage(table, message);
          t.true(survives(() => decodeMessage(table, bytes.subarray(0, at % (bytes.length + 1)))));
          if (bytes.length > 0) bytes[at % bytes.length] = byte;
          t.true(survives(() => decodeMessage(table, bytes)));
        }),
      { numRuns: 100 },
    );
  });
}

function survives(decode: () => unknown): boolean {
  try {
    return decode() !== undefined;
  } catch (error) {
    if (error instanceof CodecError) return true;
    throw error;
  }
}

/** Fills in proto3's defaults; independent of the codec. */
function withDefaults(table: MessageTable, message: Record<string, unknown>): unknown {
  const zero = { string: '', bytes: new Uint8Array(), bool: false, uint32: 0, int32: 0, uint64: 0, enum: 0 };
  const filled = Object.entries(table).map(([name, field]) => {
    const value = message[name];
    if (field.type === 'message') {
      const fill = (item: unknown) => withDefaults(field.message, item as Record<string, unknown>);
      if (field.repeated === true) return [name, ((value ?? []) as unknown[]).map(fill)];
      return [name, value === undefined ? undefined : fill(value)];
    }
    return [name, value ?? (field.repeated === true ? [] : zero[field.type])];
  });
  return Object.fromEntries(filled);
}

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

test('encodeMessage: writes a negative int32 in ten bytes', (t) => {
  t.deepEqual(encodeMessage(messages.ADDRESS, { interfaceIndex: -1 }), hex('18 ffffffffffffffffff01'));
});

test('encodeMessage: writes numbers above 32 bits', (t) => {
  const bytes = encodeMessage(messages.ATTACH_REQUEST, { deadlineUnixMs: 1_763_000_000_000 });
  t.is(decodeMessage(messages.ATTACH_REQUEST, bytes).deadlineUnixMs, 1_763_000_000_000);
});

for (const value of [-1, 1.5, Number.NaN, 2 ** 32]) {
  test(`encodeMessage: throws RANGE when a uint32 is ${value}`, (t) => {
    t.throws(() => encodeMessage(messages.ATTACH_REQUEST, { mtu: value }), { code: 'RANGE', message: /field mtu/ });
  });
}

test('decodeMessage: skips unknown fields of every wire type, nested groups included', (t) => {
  const unknown = [
    'a001 ffff01', // 20: varint
    'a101 0102030405060708', // 20: fixed64
    'a201 03 aabbcc', // 20: bytes
    'a301 08 01 ab01 1001 ac01 a401', // 20: group { 1: varint, 21: group { 2: varint } }
    'a501 01020304', // 20: fixed32
  ].map(hex);
  const known = encodeMessage(messages.ROUTE, { dst: '0.0.0.0/0' });
  const decoded = decodeMessage(messages.ROUTE, Buffer.concat([...unknown, known, ...unknown]));
  t.deepEqual(decoded, { dst: '0.0.0.0/0', gw: '' });
});

test('decodeMessage: skips a known field that comes with another wire type', (t) => {
  t.deepEqual(decodeMessage(messages.ROUTE, hex('08 05 12 01 61')), { dst: '', gw: 'a' });
});

test('decodeMessage: merges a sub-message that comes in two pieces', (t) => {
  const first = encodeMessage(messages.DETACH_REQUEST, { sandbox: { containerId: 'c1', ifName: 'eth0' } });
  const second = encodeMessage(messages.DETACH_REQUEST, { sandbox: { ifName: 'eth1' } });
  const merged = decodeMessage(messages.DETACH_REQUEST, Buffer.concat([first, second]));
  t.like(merged.sandbox, { containerId: 'c1', ifName: 'eth1' });
});

test('decodeMessage: keeps the last member of a oneof', (t) => {
  const attachment = encodeMessage(messages.ATTACH_REPLY, { attachment: { routes: [{ dst: '::/0' }] } });
  const error = encodeMessage(messages.ATTACH_REPLY, { error: { code: 11 } });
  t.deepEqual(decodeMessage(messages.ATTACH_REPLY, Buffer.concat([attachment, error])), {
    agentVersion: '',
    error: { code: 11, msg: '', details: '' },
  });
});

test('decodeMessage: reads repeated numbers packed, one by one, and mixed', (t) => {
  // Field 1 of WatchRequest: packed [1, 2], then 3 and 300 with a tag each.
  const bytes = hex('0a 02 01 02 08 03 08 ac02');
  t.deepEqual(decodeMessage(ops.WATCH_REQUEST, bytes).kinds, [1, 2, 3, 300]);
});

test('decodeMessage: throws TRUNCATED when a packed run ends inside a number', (t) => {
  t.throws(() => decodeMessage(ops.WATCH_REQUEST, hex('0a 02 01 ff')), { code: 'TRUNCATED' });
});

test('encodeMessage: throws RANGE when one of repeated numbers does not fit', (t) => {
  t.throws(() => encodeMessage(ops.POOL_REPLY, { families: [4, -1] }), { code: 'RANGE', message: /field families/ });
});

test('decodeMessage: keeps a present but empty sub-message', (t) => {
  const bytes = encodeMessage(messages.DETACH_REPLY, { error: {} });
  t.deepEqual(decodeMessage(messages.DETACH_REPLY, bytes).error, { code: 0, msg: '', details: '' });
});

test('decodeMessage: does not exhaust the stack when groups nest a million deep', (t) => {
  t.throws(() => decodeMessage(messages.ROUTE, Buffer.alloc(1_000_000, 0x1b)), { code: 'TRUNCATED' });
});

for (const [what, bytes, code] of [
  ['a length beyond the end', '0a 05 61', 'TRUNCATED'],
  ['a length of 2^63', '0a ffffffffffffffff7f', 'TRUNCATED'],
  ['a number without an end', '18 ff', 'TRUNCATED'],
  ['a number of eleven bytes', '18 ffffffffffffffffffffff', 'BAD_VARINT'],
  ['field number 0', '00 00', 'BAD_TAG'],
  ['an unassigned wire type', '0e', 'BAD_TAG'],
  ['the end of a group that did not start', '1c', 'BAD_GROUP'],
] as const) {
  test(`decodeMessage: throws ${code} on ${what}`, (t) => {
    t.throws(() => decodeMessage(messages.ADDRESS, hex(bytes)), { instanceOf: CodecError, code });
  });
}
