import test from 'ava';
import { qdiscLimits } from '../../netlink/qdisc-message.ts';
import { filterEffect } from '../../netlink/traffic-filter-message.ts';

// Kinds that not every kernel has. The bytes are written by hand after uapi/linux/pkt_sched.h and pkt_cls.h.

/** 32-bit words in host order. */
const words = (...values: readonly number[]): Uint8Array => new Uint8Array(Uint32Array.from(values).buffer);

/** An attribute with its padding. */
function attribute(type: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array((4 + payload.length + 3) & ~3);
  new Uint16Array(bytes.buffer).set([4 + payload.length, type]);
  bytes.set(payload, 4);
  return bytes;
}

const join = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));
const name = (text: string): Uint8Array => new TextEncoder().encode(`${text}\0`);

test('qdiscLimits: netem has a limit and a share that it drops', (t) => {
  const options = join(words(0, 1_000, 0xffffffff, 0, 0, 0), attribute(1, words(0, 0)));
  t.deepEqual(qdiscLimits({ kind: 'netem', options }), { limit: 1_000, loss: 1 });
  const half = qdiscLimits({ kind: 'netem', options: words(0, 5, 0x80000000, 0, 0, 0) });
  t.true(Math.abs((half.loss ?? 0) - 0.5) < 1e-6);
});

test('qdiscLimits: a kind that is not known, or without parameters, has none', (t) => {
  t.deepEqual(qdiscLimits({ kind: 'fq_codel', options: words(1, 2, 3) }), {});
  t.deepEqual(qdiscLimits({ kind: 'pfifo' }), {});
});

const GACT_DROP = attribute(
  1,
  join(attribute(1, name('gact')), attribute(2 | 0x8000, attribute(2, words(1, 0, 2, 1, 1)))),
);
const GACT_PASS = attribute(
  2,
  join(attribute(1, name('gact')), attribute(2 | 0x8000, attribute(2, words(1, 0, 0xffffffff, 1, 1)))),
);

for (const [kind, type] of [
  ['matchall', 2],
  ['flower', 3],
  ['basic', 3],
  ['u32', 7],
] as const) {
  test(`filterEffect: ${kind} with two actions`, (t) => {
    const options = join(attribute(99, words(7)), attribute(type | 0x8000, join(GACT_DROP, GACT_PASS)));
    t.deepEqual(filterEffect({ kind, options }), {
      actions: [
        { kind: 'gact', control: 2 },
        { kind: 'gact', control: -1 },
      ],
    });
  });
}

test('filterEffect: a program that does not decide by itself is none', (t) => {
  const options = join(attribute(7, name('prog')), attribute(8, words(0)));
  t.deepEqual(filterEffect({ kind: 'bpf', options }), { actions: [] });
});
