import test from 'ava';
import { ByteCollector, SpareBuffers } from '../../runtime/byte-collector.ts';

test('SpareBuffers: what is given back is collected into again, and each message is what its sender sent', (t) => {
  const spare = new SpareBuffers(1, 1_000);
  const collect = (text: string): Buffer<ArrayBuffer> => {
    const collector = new ByteCollector(10_000, spare.take());
    for (const piece of text.match(/.{1,7}/g) ?? []) collector.append(Buffer.from(piece));
    return collector.take();
  };
  const first = collect('x'.repeat(300));
  t.is(first.toString(), 'x'.repeat(300));
  const { buffer } = first;
  spare.giveBack(first);
  const second = collect('a shorter one');
  t.is(second.toString(), 'a shorter one');
  t.is(second.buffer, buffer);
  // While one is in use, another message has its own.
  const third = collect('meanwhile');
  t.not(third.buffer, buffer);
  t.is(second.toString(), 'a shorter one');
});

test('SpareBuffers: neither more than so many are kept, nor larger ones', (t) => {
  const spare = new SpareBuffers(1, 100);
  spare.giveBack(Buffer.allocUnsafeSlow(101));
  t.is(spare.take().length, 0);
  for (const size of [100, 50]) spare.giveBack(Buffer.allocUnsafeSlow(size));
  t.is(spare.take().length, 100);
  t.is(spare.take().length, 0);
});
