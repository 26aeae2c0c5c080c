import test from 'ava';
import { ClaimWaits, MIN_WAIT_MS } from '../../../../ipamd/guests/static/claim-waits.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

test('ClaimWaits: says for how long it says nothing yet, so that a look that came too early is not the last', async (t) => {
  const clock = new VirtualClock();
  const book = new ClaimWaits(clock);
  t.is(book.dueInMs('ns/web-0'), undefined);
  book.note('n1', new Map([['ns/web-0', { message: 'no place', isNodeFull: true }]]));
  await clock.advance(MIN_WAIT_MS - 1);
  t.is(book.of('ns/web-0'), undefined);
  t.is(book.dueInMs('ns/web-0'), 1);
  await clock.advance(1);
  t.like(book.of('ns/web-0'), { message: 'no place', isNodeFull: true });
  t.is(book.dueInMs('ns/web-0'), undefined);
});
