import test from 'ava';
import { ForeignChanges } from '../../../agent/repair/foreign-changes.ts';
import { objectOf } from '../../../agent/repair/object-of.ts';
import { openOwnWrites } from '../../../agent/repair/own-writes.ts';
import { RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import type { MonitorEvent } from '../../../netlink/monitor.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { rpFilter } from '../../../sysctl/sysctl-key.ts';

const OURS = 4_711;
const THEIRS = 99;
const KERNEL = 0;

const ROUTE: Operation = {
  kind: 'replace-route',
  route: { table: 4_007, dst: '0.0.0.0/0', gateway: '10.0.0.1', oif: 7, oifname: 'eth1' },
};
const RULE: Operation = { kind: 'add-rule', rule: { family: 4, priority: 1_537, src: '10.0.0.2/32', table: 4_007 } };
const NFT: Operation = { kind: 'load-nft', commands: '' };
const LINK: Operation = { kind: 'set-link', ifindex: 7, ifname: 'eth1', change: { up: true }, before: { up: false } };
const PORT: Operation = {
  ...{ kind: 'set-port', ifindex: 7, ifname: 'eni1' },
  ...{ change: { hairpin: true }, before: { hairpin: false } },
};
const BRIDGE: Operation = { kind: 'make-bridge', bridge: { ifindex: 7, ifname: 'cbr0' } };
const SYSCTL: Operation = { kind: 'set-sysctl', key: rpFilter('eth1'), value: '2', before: '1' };
const ADDRESS_V6: Operation = { kind: 'add-address', address: { ifindex: 7, ifname: 'eth1', prefix: 'fd00::2/128' } };

/** Only the fields that the decision looks at matter. */
const event = (fields: object): MonitorEvent => fields as MonitorEvent;
const routeGone = (portid: number): MonitorEvent =>
  event({
    kind: 'route',
    op: 'del',
    portid,
    message: { family: AF_INET, table: 4_007, oif: 7, protocol: RTPROT_TKE_ENI },
  });
const ruleGone = (portid: number): MonitorEvent =>
  event({
    ...{ kind: 'rule', op: 'del', portid },
    message: { family: AF_INET, priority: 1_537, src: '10.0.0.2/32', table: 4_007, protocol: RTPROT_TKE_ENI },
  });
const linkDown = event({ kind: 'link', op: 'new', portid: KERNEL, message: { ifindex: 7, flags: 0 } });
const addressGone = event({
  ...{ kind: 'address', op: 'del', portid: KERNEL },
  message: { family: AF_INET6, ifindex: 7, address: 'fd00::2', prefixlen: 128 },
});

const nameOf = (operation: Operation, ifindex = 7): string => objectOf(operation, () => ifindex);

function changes() {
  const own = openOwnWrites({ portid: OURS });
  return { own, changes: new ForeignChanges(own) };
}

type Row = {
  readonly what: string;
  readonly events: readonly MonitorEvent[];
  readonly operation: Operation;
  readonly isForeign: boolean;
  readonly wasDone?: boolean;
};

const ROWS: readonly Row[] = [
  { what: 'a route that a process deleted', events: [routeGone(THEIRS)], operation: ROUTE, isForeign: true },
  {
    what: 'a route that vanished with its link',
    events: [routeGone(KERNEL)],
    operation: ROUTE,
    isForeign: false,
    wasDone: true,
  },
  { what: 'a route that we deleted', events: [routeGone(OURS)], operation: ROUTE, isForeign: false },
  { what: 'a rule that a process deleted', events: [ruleGone(THEIRS)], operation: RULE, isForeign: true },
  { what: 'a rule, when a process deleted a route', events: [routeGone(THEIRS)], operation: RULE, isForeign: false },
  { what: 'a rule that nobody deleted', events: [], operation: RULE, isForeign: false, wasDone: true },
  {
    what: 'nftables that a process changed',
    events: [event({ kind: 'nftables', portid: THEIRS, pid: THEIRS })],
    operation: NFT,
    isForeign: true,
  },
  { what: 'a link that we had set', events: [], operation: LINK, isForeign: true, wasDone: true },
  { what: 'a port that we had set', events: [], operation: PORT, isForeign: true, wasDone: true },
  { what: 'a bridge that we had made', events: [], operation: BRIDGE, isForeign: true, wasDone: true },
  { what: 'a link that we had not set', events: [], operation: LINK, isForeign: false },
  { what: 'a setting that we had set', events: [], operation: SYSCTL, isForeign: true, wasDone: true },
  {
    what: 'an IPv6 address that we had set',
    events: [addressGone],
    operation: ADDRESS_V6,
    isForeign: true,
    wasDone: true,
  },
  {
    what: 'an IPv6 address that went with its link',
    events: [linkDown, addressGone],
    operation: ADDRESS_V6,
    isForeign: false,
    wasDone: true,
  },
  {
    what: 'what we wrote, after notifications were lost',
    events: [event({ kind: 'overrun' })],
    operation: RULE,
    isForeign: true,
    wasDone: true,
  },
  {
    what: 'what we did not write, after notifications were lost',
    events: [event({ kind: 'overrun' })],
    operation: RULE,
    isForeign: false,
  },
];

for (const { what, events, operation, isForeign, wasDone = false } of ROWS) {
  test(`ForeignChanges: ${isForeign ? 'another process changed' : 'nobody else changed'} ${what}`, (t) => {
    const { changes: known } = changes();
    if (wasDone) known.noteDone(nameOf(operation), 0);
    for (const one of events) known.note(one, 5);
    t.is(known.changedAtMs(nameOf(operation), operation, 10) !== undefined, isForeign);
  });
}

test('ForeignChanges: one change is counted until the repair, and not after it', (t) => {
  const { changes: known } = changes();
  known.note(routeGone(THEIRS), 0);
  known.noteDone(nameOf(ROUTE), 1);
  t.is(known.changedAtMs(nameOf(ROUTE), ROUTE, 2), undefined);
});

test('ForeignChanges: the first change since the repair counts', (t) => {
  const { changes: known } = changes();
  for (const nowMs of [5, 6, 7]) known.note(routeGone(THEIRS), nowMs);
  t.is(known.changedAtMs(nameOf(ROUTE), ROUTE, 10), 5);
});

test('ForeignChanges: a change that made no difference explains no later one', (t) => {
  const { changes: known } = changes();
  known.note(routeGone(THEIRS), 5);
  known.note(ruleGone(THEIRS), 5);
  known.noteDifferent(new Set([nameOf(RULE)]));
  t.is(known.changedAtMs(nameOf(ROUTE), ROUTE, 10), undefined);
  t.is(known.changedAtMs(nameOf(RULE), RULE, 10), 5);
});

test('ForeignChanges: the settings of a link that came back with another index are others', (t) => {
  const { changes: known } = changes();
  known.noteDone(nameOf(SYSCTL, 7), 0);
  t.is(known.changedAtMs(nameOf(SYSCTL, 8), SYSCTL, 1), undefined);
});

test('ForeignChanges: forgets what explains no difference any more', (t) => {
  const { changes: known } = changes();
  known.note(routeGone(THEIRS), 0);
  known.removeExpired(10_000);
  t.is(known.changedAtMs(nameOf(ROUTE), ROUTE, 10_000), undefined);
});

test('openOwnWrites: knows the nft that we run by its port or its pid, and no other', (t) => {
  const { own } = changes();
  own.noteProcess(500);
  t.true(own.isOwn(event({ kind: 'nftables', portid: 500, pid: 90_500 })), 'another PID namespace');
  t.true(own.isOwn(event({ kind: 'nftables', portid: 4_000_000_000, pid: 500 })), 'its port was taken');
  t.false(own.isOwn(event({ kind: 'nftables', portid: 501, pid: 501 })));
});

test('openOwnWrites: knows the socket before and after it was replaced', (t) => {
  const socket = { portid: 1 };
  const own = openOwnWrites(socket);
  socket.portid = 2;
  t.true(own.isOwn(ruleGone(2)));
  t.true(own.isOwn(ruleGone(1)));
  t.false(own.isOwn(ruleGone(KERNEL)));
  t.false(own.isOwn(ruleGone(THEIRS)));
});
