import { Readable } from 'node:stream';
import test from 'ava';
import fc from 'fast-check';
import { ByteCollector, collectStream } from '../../runtime/byte-collector.ts';
import { assertLaw } from '../support/law.ts';

test('ByteCollector: has the same bytes however they are cut, and never takes twice as many', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.array(fc.nat()), (bytes, cuts) => {
        const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
        const collector = new ByteCollector(bytes.length);
        let [from, grown] = [0, 0];
        for (const end of ends) {
          grown += collector.growthFor(end - from);
          t.is(collector.append(bytes.subarray(from, end)), undefined);
          t.true(grown >= collector.length && grown <= Math.max(2 * collector.length, 0));
          from = end;
        }
        t.true(grown <= bytes.length);
        t.deepEqual(collector.take(), Buffer.from(bytes));
        t.is(collector.length, 0);
      }),
    { numRuns: 300 },
  );
});

test('ByteCollector: keeps no memory of what its pieces are cut from', (t) => {
  const slab = Buffer.alloc(64 * 1024, 1);
  const collector = new ByteCollector(10);
  collector.append(slab.subarray(0, 1));
  slab.fill(2);
  t.deepEqual(collector.take(), Buffer.of(1));
});

test('ByteCollector: takes no byte above its limit, and begins again', (t) => {
  const collector = new ByteCollector(3);
  t.is(collector.append(Buffer.alloc(3)), undefined);
  t.is(collector.append(Buffer.alloc(1)), 'too-many-bytes');
  t.is(collector.take().length, 3);
  t.is(collector.append(Buffer.alloc(3)), undefined);
});

for (const [title, bytes, pieces, expected] of [
  ['16,000 pieces of one byte', 1, 16_000, undefined],
  ['20,000 pieces of one byte', 1, 20_000, 'too-many-pieces'],
  ['20,000 pieces of no byte', 0, 20_000, 'too-many-pieces'],
  ['60,000 pieces of 256 bytes', 256, 60_000, undefined],
] as const) {
  test(`collectStream: ${title}: ${expected ?? 'all'}`, async (t) => {
    const collector = new ByteCollector(Number.MAX_SAFE_INTEGER);
    const stream = new Readable({ read: () => undefined });
    const outcome = collectStream(stream, collector);
    // An empty piece ends here, as no stream gives one on.
    for (let piece = 0; piece < pieces && bytes > 0; piece++) stream.push(Buffer.alloc(bytes));
    for (let piece = 0; piece < pieces && bytes === 0; piece++) collector.append(Buffer.alloc(0));
    stream.push(null);
    if (bytes > 0) t.is(await outcome, expected);
    else t.is(collector.append(Buffer.alloc(1)), expected);
  });
}

test('collectStream: rejects when the stream breaks, and stops where it may not grow', async (t) => {
  const broken = new Readable({ read: () => undefined });
  const outcome = collectStream(broken, new ByteCollector(10));
  broken.push('a');
  broken.destroy();
  await t.throwsAsync(outcome);
  const refused = Readable.from([Buffer.from('ab'), Buffer.from('cd')]);
  t.is(await collectStream(refused, new ByteCollector(10), () => false), 'refused');
  t.false(refused.destroyed);
});
