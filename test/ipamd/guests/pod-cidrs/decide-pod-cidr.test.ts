import test from 'ava';
import { numberBlocks } from '../../../../ipamd/config/cidr-blocks.ts';
import {
  type BlockState,
  type CidrNode,
  doubtGift,
  observeBlocks,
  takeBack,
} from '../../../../ipamd/guests/pod-cidrs/block-state.ts';
import { stateOf } from '../../../../ipamd/guests/pod-cidrs/convert-record.ts';
import { countBlocks, decidePodCidrs } from '../../../../ipamd/guests/pod-cidrs/decide-pod-cidr.ts';

const MINUTE_MS = 60_000;
const HOLD_MS = 10 * MINUTE_MS;
/** Eight blocks, the last two of Services. */
const BLOCKS = numberBlocks({ clusterCidrs: ['10.4.0.0/21'], serviceCidr: '10.4.6.0/23', maskSize: 24 });
const EMPTY = stateOf(BLOCKS, undefined, [], 0);

function node(name: string, change: Partial<CidrNode> = {}): CidrNode {
  const machineId = `ins-${name}`;
  return { name, uid: `uid-${name}`, createdAt: name, machineId, podCidrs: [], isServed: true, ...change };
}

type Facts = Parameters<typeof decidePodCidrs>[1];

/** Reads the nodes and decides, as one round does. */
function round(state: BlockState, nodes: readonly CidrNode[], change: Partial<Facts> = {}) {
  const base = { blocks: BLOCKS, nodes, monotonicMs: 0, holdMs: HOLD_MS, routes: 'none' } as const;
  const facts: Facts = { ...base, reserved: new Set(), paused: new Set(), limit: 64, ...change };
  const { state: observed, conflicts } = observeBlocks(BLOCKS, state, nodes, facts.monotonicMs);
  const decision = decidePodCidrs(observed, facts);
  const given = decision.gifts.map(({ node: { name }, block }) => `${name} ${BLOCKS.cidrOf(block)}`);
  return { ...decision, given, conflicts, counts: countBlocks(decision.state, facts) };
}

test('decidePodCidrs: goes round, oldest Node first, and does not come back to a freed block before the end', (t) => {
  const first = round(EMPTY, [node('b'), node('a')]);
  t.deepEqual(first.given, ['a 10.4.0.0/24', 'b 10.4.1.0/24']);
  const nodes = [node('a', { podCidrs: ['10.4.0.0/24'] }), node('b', { podCidrs: ['10.4.1.0/24'] })];
  const seen = round(first.state, nodes);
  t.deepEqual(seen.given, []);
  const later = { monotonicMs: 2 * HOLD_MS };
  const freed = round(seen.state, nodes.slice(1));
  t.is(freed.counts.held, 1);
  const joined = round(freed.state, [...nodes.slice(1), node('c')], later);
  t.deepEqual(joined.given, ['c 10.4.2.0/24']);
  t.deepEqual(joined.counts, { total: 8, reserved: 2, used: 2, held: 0, free: 4 });
});

test('decidePodCidrs: never gives a block of Services, of a subnet, or of another writer', (t) => {
  const foreign = node('x', { podCidrs: ['10.4.0.0/25'] });
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const { given, unserved, counts } = round(EMPTY, [foreign, ...names.map((name) => node(name))], {
    reserved: new Set([2]),
  });
  t.deepEqual(given, ['a 10.4.1.0/24', 'b 10.4.3.0/24', 'c 10.4.4.0/24', 'd 10.4.5.0/24']);
  t.deepEqual(
    unserved.map(({ name }) => name),
    ['e', 'f', 'g'],
  );
  t.deepEqual(counts, { total: 8, reserved: 3, used: 5, held: 0, free: 0 });
});

test('decidePodCidrs: the same node gets its block back within the hold, another node does not', (t) => {
  const { state } = round(EMPTY, [node('a', { podCidrs: ['10.4.3.0/24'] })]);
  const gone = round(state, []).state;
  const again = { uid: 'uid-2' };
  t.deepEqual(round(gone, [node('a', again)]).given, ['a 10.4.3.0/24']);
  t.deepEqual(round(gone, [node('a', { ...again, machineId: 'ins-other' })]).given, ['a 10.4.0.0/24']);
  t.deepEqual(round(gone, [node('a', again)], { monotonicMs: HOLD_MS }).given, ['a 10.4.0.0/24']);
});

test('decidePodCidrs: waits for the machine of a Node whose name had a block, for half a minute', (t) => {
  const { state } = round(EMPTY, [node('a', { podCidrs: ['10.4.3.0/24'] })]);
  const unknown = node('a', { uid: 'uid-2', machineId: undefined });
  const waiting = round(state, [unknown, node('b')]);
  t.deepEqual(waiting.given, ['b 10.4.0.0/24']);
  t.deepEqual(round(waiting.state, [node('a', { uid: 'uid-2' })], { monotonicMs: 20_000 }).given, ['a 10.4.3.0/24']);
  t.deepEqual(round(waiting.state, [unknown], { monotonicMs: 30_000 }).given, ['a 10.4.1.0/24']);
});

test('decidePodCidrs: with routes, a freed block waits for a later read without its route, and at least a minute', (t) => {
  const full = ['a', 'b', 'c', 'd', 'e', 'f'].map((name, at) => node(name, { podCidrs: [`10.4.${at}.0/24`] }));
  const { state } = round(EMPTY, full);
  const gone = round(state, full.slice(1), {
    monotonicMs: 1_000,
    routes: { readMs: 500, hasRoute: () => false },
  }).state;
  const nodes = [...full.slice(1), node('z')];
  const given = (monotonicMs: number, readMs: number, routes: readonly string[]) =>
    round(gone, nodes, { monotonicMs, routes: { readMs, hasRoute: (cidr) => routes.includes(cidr) } }).given;
  t.deepEqual(given(3_600_000, 3_500_000, ['10.4.0.0/24']), []);
  t.deepEqual(given(3_600_000, 900, []), []);
  t.deepEqual(given(60_999, 2_000, []), []);
  t.deepEqual(given(61_000, 2_000, []), ['z 10.4.0.0/24']);
});

test('decidePodCidrs: gives nothing before routes were read, and no block to which a route leads', (t) => {
  t.deepEqual(round(EMPTY, [node('a')], { routes: 'unread' }).unserved, []);
  t.deepEqual(round(EMPTY, [node('a')], { routes: 'unread' }).given, []);
  const routes = { readMs: 0, hasRoute: (cidr: string) => cidr === '10.4.0.0/24' };
  t.deepEqual(round(EMPTY, [node('a')], { routes }).given, ['a 10.4.1.0/24']);
});

test('decidePodCidrs: repeats the block whose write is not visible, and gives none to super nodes', (t) => {
  const { state } = round(EMPTY, [node('a'), node('s', { isServed: false })]);
  t.deepEqual(round(state, [node('a')]).given, ['a 10.4.0.0/24']);
  t.deepEqual(round(state, [node('a')], { paused: new Set(['uid-a']) }).given, []);
  // The Node went before its block was seen: it may have had it.
  t.is(round(state, []).counts.held, 1);
});

test('takeBack: a block that was held, or may have been written, is held since; any other is free', (t) => {
  const { state } = round(EMPTY, [node('a', { podCidrs: ['10.4.3.0/24'] })]);
  const again = node('a', { uid: 'uid-2' });
  const repeated = round(round(state, []).state, [again], { monotonicMs: 1_000 });
  t.deepEqual(repeated.given, ['a 10.4.3.0/24']);
  const held = [[3, { node: 'a', machineId: 'ins-a', freedMs: 0 }]];
  t.deepEqual([...takeBack(repeated.state, 'uid-2').held], held);
  t.deepEqual([...takeBack(round(repeated.state, [again]).state, 'uid-2').held], held);
  // It shows another block, of another writer.
  const other = { ...again, podCidrs: ['10.4.4.0/24'] };
  t.deepEqual([...round(repeated.state, [other], { monotonicMs: 2_000 }).state.held], held);
  const first = round(EMPTY, [node('b')]).state;
  t.deepEqual(takeBack(first, 'uid-b'), { ...first, given: new Map() });
  const doubted = takeBack(doubtGift(first, 'uid-b', 7_000), 'uid-b');
  t.deepEqual([...doubted.held], [[0, { node: 'b', machineId: 'ins-b', freedMs: 7_000 }]]);
  t.is(doubtGift(first, 'uid-gone', 7_000), first);
  t.deepEqual(takeBack(first, 'uid-gone'), first);
});

test('decidePodCidrs: gives at most as many as the limit, and says what is exhausted even at the limit', (t) => {
  const nodes = Array.from({ length: 7 }, (_, at) => node(`n${at}`));
  t.is(round(EMPTY, nodes, { limit: 2 }).given.length, 2);
  t.is(round(EMPTY, nodes).given.length, 6);
  const full = nodes.slice(0, 6).map((one, at) => ({ ...one, podCidrs: [`10.4.${at}.0/24`] }));
  t.deepEqual(
    round(EMPTY, [...full, node('z')], { limit: 0 }).unserved.map(({ name }) => name),
    ['z'],
  );
});

const conflict = test.macro((t, cidrs: readonly string[], want: readonly string[]) => {
  const nodes = cidrs.map((cidr, at) => node(`n${at}`, { podCidrs: [cidr] }));
  t.deepEqual(
    round(EMPTY, nodes).conflicts.map(({ node: name, reason }) => `${name} ${reason}`),
    want,
  );
});
test('observeBlocks: two Nodes with one block', conflict, ['10.4.0.0/24', '10.4.0.0/24'], ['n1 CIDROverlap']);
test('observeBlocks: two that overlap', conflict, ['10.4.0.0/25', '10.4.0.0/24'], ['n1 CIDROverlap']);
test('observeBlocks: one of Services', conflict, ['10.4.7.0/24'], ['n0 CIDROverlap']);
test(
  'observeBlocks: one outside, and IPv6, which is of others',
  conflict,
  ['172.16.0.0/24', 'fd00::/64'],
  ['n0 CIDROutOfRange'],
);
test('observeBlocks: one that is partly outside', conflict, ['10.4.0.0/20'], ['n0 CIDROverlap']);
test('observeBlocks: blocks of the range', conflict, ['10.4.0.0/24', '10.4.1.0/24'], []);
