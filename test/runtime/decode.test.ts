import test from 'ava';
import {
  boolean,
  ConfigError,
  decodeOrThrow,
  Faults,
  integer,
  list,
  MAX_FAULTS,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../../runtime/decode.ts';

const pool = record(
  {
    name: required(text(/^[a-z]+$/, 'lower-case letters')),
    mode: required(oneOf(['compact', 'per-pod'])),
    mtu: optional(integer(1280, 9216)),
    quick: optional(boolean),
    ips: optional(list(text())),
  },
  'reject',
);

const faulty = test.macro((t, value: unknown, wanted: string) => {
  const error = t.throws(() => decodeOrThrow(pool, value, 'pool.yaml'), { instanceOf: ConfigError });
  t.is(error?.message, wanted);
});

test('record: returns the typed value when all is well', (t) => {
  t.deepEqual(decodeOrThrow(pool, { name: 'a', mode: 'compact', ips: ['10.0.0.1'] }, 'x'), {
    name: 'a',
    mode: 'compact',
    ips: ['10.0.0.1'],
  });
});

test('record: takes null as absent', (t) => {
  t.deepEqual(decodeOrThrow(pool, { name: 'a', mode: 'per-pod', mtu: null }, 'x'), { name: 'a', mode: 'per-pod' });
});

test(
  'record: names every fault at once',
  faulty,
  { name: 'A', mtu: 100, quick: 'yes', ips: ['a', 1], colour: 'red' },
  'pool.yaml: name: expected lower-case letters, got "A"; mode: expected a value, got nothing; ' +
    'mtu: expected a whole number from 1280 to 9216, got 100; quick: expected true or false, got "yes"; ' +
    'ips[1]: expected a text, got 1; ' +
    'colour: expected no such field; known are name, mode, mtu, quick, ips, got "red"',
);
test('record: rejects a list', faulty, [], 'pool.yaml: the whole: expected an object, got []');
test('record: rejects nothing', faulty, undefined, 'pool.yaml: the whole: expected an object, got nothing');
test(
  'oneOf: lists what is allowed',
  faulty,
  { name: 'a', mode: 'fast' },
  'pool.yaml: mode: expected one of "compact", "per-pod", got "fast"',
);

test('record: ignores unknown keys where asked', (t) => {
  const tolerant = record({ a: required(integer(0, 9)) }, 'ignore');
  t.deepEqual(decodeOrThrow(tolerant, { a: 1, b: 2 }, 'x'), { a: 1 });
});

test('Faults: describes what no JSON can say', (t) => {
  const circle: unknown[] = [];
  circle.push(circle);
  const error = t.throws(() => decodeOrThrow(pool, { name: circle, mode: 1n }, 'pool.yaml'), {
    instanceOf: ConfigError,
  });
  t.regex(
    error?.message ?? '',
    /^pool\.yaml: name: expected lower-case letters, got \[a value that refers to itself\]; mode: expected one of .*, got 1$/,
  );
});

test('ConfigError: names the first faults and counts the rest when there are thousands', (t) => {
  const decoder = list(integer(0, 1));
  const error = t.throws(() => decodeOrThrow(decoder, Array(4096).fill(7), 'supply'), { instanceOf: ConfigError });
  t.is(error?.faults.length, MAX_FAULTS);
  t.is(error?.count, 4096);
  t.regex(error?.message ?? '', /; \[19\]: expected a whole number from 0 to 1, got 7; and 4076 more$/);
});

test('Faults: texts stay short, whatever the size of what is wrong', (t) => {
  const long = 'x'.repeat(1_000_000);
  const many = Array(1_000_000).fill(1);
  for (const value of [long, many, { [long]: long }, { [long]: many }, [[[[many]]]], { name: many, [long]: 1 }]) {
    const error = t.throws(() => decodeOrThrow(pool, value, 'pool.yaml'), { instanceOf: ConfigError });
    t.true((error?.message.length ?? 0) < 2_000, `${error?.message.length}`);
  }
});

test('Faults: keeps the first fault of a field that comes after a hundred faults of another', (t) => {
  const faults = new Faults();
  for (let index = 0; index < 5_000; index++) faults.add(`spec.ips[${index}]`, 'an address', index);
  faults.add('spec.mac', 'a MAC', 1);
  t.is(faults.count, 5_001);
  t.is(faults.list.length, MAX_FAULTS + 1);
  t.is(faults.list.at(-1)?.path, 'spec.mac');
});
