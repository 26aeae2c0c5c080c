import test from 'ava';
import {
  type BridgeEvidence,
  decideStaleReservations,
  RESERVATION_GRACE_MS,
  UNLISTED_RESERVATION_GRACE_MS,
} from '../../../agent/adopt/decide-stale-reservations.ts';
import type { CriSandbox } from '../../../agent/cri/sandbox-view.ts';

const reservation = { ip: '192.168.0.66', containerId: 'c1', ifName: 'eth0' };
const sandbox = (state: CriSandbox['state']): CriSandbox => ({
  ...{ id: 'c1', state, podName: 'p', podNamespace: 'ns', podUid: 'u' },
});

const isFree = test.macro((t, node: Partial<BridgeEvidence>, knownForMs: number, expected: boolean) => {
  const facts: BridgeEvidence = { ips: new Set(), sandboxes: [], netnsById: new Map(), ...node };
  t.is(decideStaleReservations([{ reservation, knownForMs }], facts).length === 1, expected);
});

const LONG = RESERVATION_GRACE_MS;
const UNLISTED = UNLISTED_RESERVATION_GRACE_MS;
test('decideStaleReservations: no runtime lists its sandbox for long', isFree, {}, UNLISTED, true);
test('decideStaleReservations: an unlisted sandbox may be in the making', isFree, {}, UNLISTED - 1, false);
test(
  'decideStaleReservations: the list of another runtime shortens nothing',
  isFree,
  { sandboxes: [{ ...sandbox('ready'), id: 'of-another' }] },
  UNLISTED - 1,
  false,
);
test(
  'decideStaleReservations: an address in a namespace is in use',
  isFree,
  { ips: new Set(['192.168.0.66']) },
  UNLISTED,
  false,
);
test(
  'decideStaleReservations: a namespace that was not read proves nothing',
  isFree,
  { ips: undefined },
  UNLISTED,
  false,
);
test('decideStaleReservations: its sandbox is ready', isFree, { sandboxes: [sandbox('ready')] }, UNLISTED, false);
test(
  'decideStaleReservations: stopped, without a namespace',
  isFree,
  { sandboxes: [sandbox('not-ready')] },
  LONG,
  true,
);
test(
  'decideStaleReservations: stopped, and its namespace is there',
  isFree,
  { sandboxes: [sandbox('not-ready')], netnsById: new Map([['c1', '/run/netns/c1']]) },
  LONG,
  false,
);
test('decideStaleReservations: no runtime answers', isFree, { sandboxes: undefined }, LONG, false);
test('decideStaleReservations: no runtime answers for long', isFree, { sandboxes: undefined }, UNLISTED, true);
