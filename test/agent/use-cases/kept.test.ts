import test from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { endCooldowns } from '../../../agent/attachment/end-cooldowns.ts';
import type { ClaimMark, Supply } from '../../../agent/journal/supply.ts';
import type { StaticIpLookup } from '../../../agent/pods/static-ip-lookup.ts';
import { addOf, createTestNode, PATIENT, supplyOf, type TestNode } from './fixtures.ts';

const WEB_0 = { namespace: 'default', name: 'web-0' };
const ofWeb0 = (number: number, podUid: string) => addOf(number, { podName: 'web-0', podUid });

/** A supply of addresses from 10.0.0.10 on, each with its mark or none, on a node that keeps addresses. */
function marked(marks: readonly (ClaimMark | undefined)[], epoch = 2): Supply {
  const supply = supplyOf(marks.length, epoch);
  const enis = supply.enis.map((eni) => ({
    ...eni,
    addresses: eni.addresses.map((address, i) => {
      const claim = marks[i];
      return claim === undefined ? address : { ...address, claim };
    }),
  }));
  return { ...supply, enis, isStaticIpEnabled: true };
}

function put(node: TestNode, supply: Supply): void {
  node.state.supply = supply;
  node.state.pool.applySupply(supply);
  node.state.changed.notify();
}

/** Pods that say of themselves whether they keep their address, by uid. */
const wordOf = (words: Readonly<Record<string, boolean>>): StaticIpLookup => ({
  cached: ({ uid }) => words[uid],
  fetch: async () => ({ why: 'nobody answers' }),
});

function nodeWith(marks: readonly (ClaimMark | undefined)[], words: Readonly<Record<string, boolean>> = {}): TestNode {
  const node = createTestNode(marks.length);
  put(node, marked(marks));
  node.state.staticIpLookup = wordOf(words);
  return node;
}

const ipOf = (outcome: Awaited<ReturnType<typeof attach>>) =>
  outcome.kind === 'attached' ? outcome.lease.addresses.map(({ ip }) => ip).join() : outcome.failure;

test('attach: gives the kept address to the Pod that its mark names, its last connections flushed', async (t) => {
  const node = nodeWith([undefined, { ...WEB_0, uid: 'u1' }]);
  t.teardown(node.close);
  t.is(ipOf(await attach(node.deps, ofWeb0(1, 'u1'), PATIENT)), '10.0.0.11');
  t.deepEqual(node.flushed, ['10.0.0.11']);
});

test('detach: frees a kept address for its next Pod at once, and never while the last one has it', async (t) => {
  const node = nodeWith([{ ...WEB_0, uid: 'u1' }], { u1: true, u2: true });
  t.teardown(node.close);
  t.is(ipOf(await attach(node.deps, ofWeb0(1, 'u1'), PATIENT)), '10.0.0.10');
  put(node, marked([{ ...WEB_0, uid: 'u2' }], 3));
  const held = ipOf(await attach(node.deps, ofWeb0(2, 'u2'), PATIENT));
  t.like(held, {
    msg: 'address 10.0.0.10 kept for default/web-0 is held by the sandbox c1 of its predecessor (waited 0 s)',
  });
  t.is(await detach(node.deps, { containerId: 'c1', ifName: 'eth0' }), undefined);
  t.is(node.deps.journal.load().cooldowns.length, 1, 'it rests for other names');
  endCooldowns(node.deps);
  t.is(node.deps.journal.load().cooldowns.length, 1);
  t.is(ipOf(await attach(node.deps, ofWeb0(2, 'u2'), PATIENT)), '10.0.0.10');
  t.deepEqual(node.deps.journal.load().cooldowns, []);
  t.deepEqual(node.flushed, ['10.0.0.10', '10.0.0.10']);
});

test('attach: leases no kept address while its last connections cannot be ended', async (t) => {
  const node = nodeWith([{ ...WEB_0, uid: 'u1' }]);
  t.teardown(node.close);
  const conntrack = { ...node.deps.conntrack, flushOrThrow: () => Promise.reject(new Error('no such tool')) };
  const failure = ipOf(await attach({ ...node.deps, conntrack }, ofWeb0(1, 'u1'), PATIENT));
  t.like(failure, { code: 105, details: 'no such tool' });
  t.deepEqual(node.state.pool.counts(), {
    total: 1,
    free: 0,
    kept: 1,
    leased: 0,
    cooling: 0,
    withdrawn: 0,
    missing: 0,
  });
  t.is(ipOf(await attach(node.deps, ofWeb0(1, 'u1'), PATIENT)), '10.0.0.10');
});

test('attach: leases no kept address that goes to another node while its last connections end', async (t) => {
  const node = nodeWith([{ ...WEB_0, uid: 'u1' }]);
  t.teardown(node.close);
  const flushOrThrow = async (): Promise<void> => put(node, marked([], 3));
  const deps = { ...node.deps, conntrack: { ...node.deps.conntrack, flushOrThrow } };
  t.like(ipOf(await attach(deps, ofWeb0(1, 'u1'), PATIENT)), { code: 101 });
  t.deepEqual([node.state.leases.size, node.state.pool.state.addresses.size], [0, 0]);
});

test('attach: tells the runtime to try again while nobody can say whether a Pod keeps its address', async (t) => {
  const node = nodeWith([undefined]);
  t.teardown(node.close);
  const failure = ipOf(await attach(node.deps, addOf(1, { podUid: 'u9' }), PATIENT));
  t.like(failure, { code: 11, details: 'nobody answers' });
  t.is(node.state.pool.counts().free, 1);
});

test('attach: serves the Pod of a mark through an outage of the API server', async (t) => {
  const node = nodeWith([undefined, { ...WEB_0, uid: 'u1' }]);
  t.teardown(node.close);
  node.state.staticIpLookup = { cached: () => undefined, fetch: async () => ({ why: 'the API server is down' }) };
  t.is(ipOf(await attach(node.deps, ofWeb0(1, 'u1'), PATIENT)), '10.0.0.11');
});
