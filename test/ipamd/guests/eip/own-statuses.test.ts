import test from 'ava';
import type { EipClaim } from '../../../../crd/eip-claim.ts';
import { OwnStatuses } from '../../../../ipamd/guests/eip/own-statuses.ts';

const MINUTE_MS = 60_000;

function claimOf(message: string, uid = 'u1'): EipClaim {
  return { metadata: { name: 'web-0', namespace: 'shop', uid }, object: {}, status: { phase: 'Pending', message } };
}

/** What a leader has whose term began at 0. */
function openStatuses() {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
  const taken: string[] = [];
  return { clock, taken, own: new OwnStatuses(clock, { startedMs: 0 }, (key) => taken.push(key)) };
}

test('OwnStatuses: a state that differs in the first minute of a term may be the former leader’s, and is taken', (t) => {
  const { clock, own, taken } = openStatuses();
  t.is(own.editOf('shop/web-0', claimOf('first')), undefined);
  t.deepEqual(taken, []);
  clock.nowMs = MINUTE_MS - 1;
  t.is(own.editOf('shop/web-0', claimOf('late')), undefined);
  t.deepEqual(taken, ['shop/web-0']);
  clock.nowMs = MINUTE_MS;
  t.is(own.editOf('shop/web-0', claimOf('late')), undefined);
  t.deepEqual(own.editOf('shop/web-0', claimOf('edited'))?.fields, ['status.message']);
});

test('OwnStatuses: what comes after the first own write is an edit', (t) => {
  const { own } = openStatuses();
  own.editOf('shop/web-0', claimOf('first'));
  own.note('shop/web-0', claimOf('own'));
  t.deepEqual(own.editOf('shop/web-0', claimOf('edited'))?.part.status.message, 'own');
});

test('OwnStatuses: so is what comes after a write whose answer was lost, and that is there', (t) => {
  const { own } = openStatuses();
  own.editOf('shop/web-0', claimOf('first'));
  own.noteAttempt('shop/web-0', { status: claimOf('own').status ?? {} });
  t.is(own.editOf('shop/web-0', claimOf('own')), undefined);
  t.deepEqual(own.editOf('shop/web-0', claimOf('edited'))?.fields, ['status.message']);
});

test('OwnStatuses: a claim of another uid is new', (t) => {
  const { own } = openStatuses();
  own.note('shop/web-0', claimOf('own'));
  t.is(own.editOf('shop/web-0', claimOf('other', 'u2')), undefined);
});
