import test from 'ava';
import type { ClaimMark, SupplyAddress, SupplyEni } from '../../../agent/journal/supply.ts';
import { applySupply } from '../../../agent/pool/apply-supply.ts';
import { findClaimUids, leaseStatic, type PodIdentity } from '../../../agent/pool/lease-static.ts';
import { adopt, adoptCooldowns, adoptOffers, lease, release, tick } from '../../../agent/pool/pool.ts';
import { EMPTY_POOL, type PoolState } from '../../../agent/pool/pool-state.ts';
import type { Family } from '../../../dataplane/ip-prefix.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from './supply-sample.ts';

const POD = { namespace: 'ns', name: 'web-0', uid: 'u1' };
const IP = '10.0.0.5';

function poolOf(addresses: readonly SupplyAddress[], eni: Partial<SupplyEni> = {}): PoolState {
  return applySupply(EMPTY_POOL, sampleSupply([sampleEni('eni-a', [], { ...eni, addresses })])).state;
}

const kept = (uid?: string, change: Partial<SupplyAddress> = {}): SupplyAddress => {
  const claim: ClaimMark = { namespace: 'ns', name: 'web-0', ...(uid === undefined ? {} : { uid }) };
  return sampleAddress(IP, { claim, ...change });
};

const ask = (state: PoolState, pod = POD, enis?: ReadonlySet<string>, families: readonly Family[] = [4]) =>
  leaseStatic(state, { key: 'c1/eth0', pod, families, ...(enis === undefined ? {} : { enis }) });

const waits = test.macro((t, state: PoolState, reason: string, pod: PodIdentity = POD, enis?: ReadonlySet<string>) => {
  const asked = ask(state, pod, enis);
  t.deepEqual(asked.result, { kind: 'waits', reason });
  t.is(asked.state, state);
});

const WHOSE = 'kept for ns/web-0';
test(
  'leaseStatic: waits for an address that is not there',
  waits,
  poolOf([]),
  `the address ${WHOSE} is not on this node yet`,
);
test(
  'leaseStatic: waits for its predecessor',
  waits,
  adopt(poolOf([kept('u1')]), [sampleLease('old', 'eni-a', [IP])]).state,
  `address ${IP} ${WHOSE} is held by the sandbox old of its predecessor`,
);
test(
  'leaseStatic: waits while the mark names nobody',
  waits,
  poolOf([kept()]),
  `address ${IP} ${WHOSE} is on this node, but for no Pod yet`,
);
test(
  'leaseStatic: waits while the mark names another',
  waits,
  poolOf([kept('u2')]),
  `address ${IP} ${WHOSE} is for the Pod with uid u2, not for this one with uid u1`,
);
test(
  'leaseStatic: waits for nothing that is being taken off',
  waits,
  poolOf([kept('u1', { state: 'releasing' })]),
  `address ${IP} ${WHOSE} is being taken off this node`,
);
test(
  'leaseStatic: waits until the offer is out',
  waits,
  adoptOffers(poolOf([kept('u1')]), [{ ip: IP, family: 4, eniId: 'eni-a', assignmentId: `as-${IP}` }]).state,
  `address ${IP} ${WHOSE} is offered back; the offer is being taken out`,
);
test(
  'leaseStatic: waits for the ENI',
  waits,
  poolOf([kept('u1')]),
  `address ${IP} ${WHOSE} is on eni-a, which does not serve now`,
  POD,
  new Set<string>(),
);
test(
  'leaseStatic: knows no Pod without a uid',
  waits,
  poolOf([kept('u1')]),
  `the runtime names no uid (K8S_POD_UID), and no other Pod may have an address ${WHOSE}`,
  { ...POD, uid: '' },
);

test('leaseStatic: gives both families where both are kept, and the one that is where only one is', (t) => {
  const six = sampleAddress('fd00::5', { claim: POD });
  const both = ask(poolOf([six, kept('u1')]), POD, undefined, [4, 6]).result;
  t.deepEqual(both.kind === 'leased' ? both.addresses.map(({ ip }) => ip) : both, [IP, 'fd00::5']);
  const one = ask(poolOf([kept('u1')]), POD, undefined, [4, 6]).result;
  t.deepEqual(one.kind === 'leased' ? one.addresses.map(({ ip }) => ip) : one, [IP]);
  t.is(ask(poolOf([six]), POD, undefined, [4, 6]).result.kind, 'waits');
});

test('leaseStatic: gives a key what it has already', (t) => {
  const { state } = ask(poolOf([kept('u1')]));
  const again = ask(state);
  t.like(again.result, { kind: 'leased', isNew: false });
  t.is(again.state, state);
});

const END = { key: 'c1/eth0', nowMs: 10, cooldownMs: 120_000 };
const supplied = (state: PoolState, addresses: readonly SupplyAddress[], epoch: number): PoolState =>
  applySupply(state, sampleSupply([sampleEni('eni-a', [], { addresses })], epoch)).state;
const stateOf = ({ addresses }: PoolState) => addresses.get(IP)?.state;

test('release: a kept address does not cool for its name, and cools for every other', (t) => {
  const ended = release(ask(poolOf([kept('u1')])).state, { ...END, podKey: 'ns/web-0' });
  t.is(ended.result.kind === 'released' ? ended.result.cooldowns.length : 0, 1, 'it is on record');
  t.like(ended.state.addresses.get(IP), { state: 'kept', claim: { uid: 'u1' }, leaseKey: undefined });
  t.is(ask(ended.state).result.kind, 'leased');
  const other = { namespace: 'ns', name: 'web-1', uid: 'u1' };
  for (const claim of [undefined, other, { ...other, name: 'web-0', namespace: 'elsewhere' }]) {
    const passed = supplied(ended.state, [sampleAddress(IP, claim === undefined ? {} : { claim })], 2);
    t.is(stateOf(passed), 'cooling');
    t.is(lease(passed, { key: 'c2/eth0', families: [4], nowMs: 20 }).result.kind, 'exhausted');
    if (claim !== undefined) {
      const reason = `address ${IP} kept for ${claim.namespace}/${claim.name} rests after a Pod of another name`;
      t.deepEqual(ask(passed, claim).result, { kind: 'waits', reason });
    }
    t.is(stateOf(supplied(passed, [kept('u2')], 3)), 'kept', 'its own name has it at once');
    t.is(stateOf(tick(passed, 120_010).state), claim === undefined ? 'free' : 'kept');
  }
  t.is(stateOf(supplied(tick(ended.state, 120_010).state, [sampleAddress(IP)], 2)), 'free');
});

test('release: an address of the pool rests, also when it is kept for a name meanwhile', (t) => {
  const leased = lease(poolOf([sampleAddress(IP)]), { key: 'c1/eth0', families: [4], nowMs: 0 }).state;
  const ended = release(leased, { ...END, podKey: 'ns/web-5' }).state;
  t.is(stateOf(supplied(ended, [kept('u1')], 2)), 'cooling');
});

test('release: a kept address that left the supply rests, and is there for its name when it comes back', (t) => {
  const gone = supplied(ask(poolOf([kept('u1')])).state, [], 2);
  const rests = release(gone, { ...END, podKey: 'ns/web-0' });
  t.is(rests.result.kind === 'released' ? rests.result.cooldowns.length : 0, 1);
  t.is(stateOf(rests.state), 'cooling');
  t.is(stateOf(supplied(rests.state, [kept('u2')], 3)), 'kept');
  t.is(stateOf(supplied(rests.state, [sampleAddress(IP)], 3)), 'cooling');
  const left = supplied(release(ask(poolOf([kept('u1')])).state, { ...END, podKey: 'ns/web-0' }).state, [], 2);
  t.is(stateOf(supplied(left, [sampleAddress(IP)], 3)), 'cooling', 'also when it left after its Pod');
});

test('applySupply: a mark takes an address out of the pool, and its end puts it back', (t) => {
  const plain = poolOf([sampleAddress(IP)]);
  const marked = applySupply(plain, sampleSupply([sampleEni('eni-a', [], { addresses: [kept('u1')] })], 2)).state;
  t.is(marked.addresses.get(IP)?.state, 'kept');
  t.is(lease(marked, { key: 'c2/eth0', families: [4], nowMs: 0 }).result.kind, 'exhausted');
  const again = applySupply(marked, sampleSupply([sampleEni('eni-a', [IP])], 3)).state;
  t.like(again.addresses.get(IP), { state: 'free', claim: undefined });
});

test('applySupply: a Pod that runs when its address is marked goes on, and then it is kept', (t) => {
  const running = adopt(poolOf([sampleAddress(IP)]), [sampleLease('c1', 'eni-a', [IP])]).state;
  const marked = applySupply(running, sampleSupply([sampleEni('eni-a', [], { addresses: [kept('u1')] })], 2)).state;
  t.like(marked.addresses.get(IP), { state: 'leased', leaseKey: 'c1/eth0' });
  t.is(stateOf(release(marked, { ...END, podKey: 'ns/web-0' }).state), 'kept');
});

test('adoptCooldowns: a kept address rests for every name but its own', (t) => {
  const cooldown = {
    ip: IP,
    family: 4,
    eniId: 'eni-a',
    assignmentId: `as-${IP}`,
    freedAtMs: 0,
    coolUntilMs: 9,
    cooldownMs: 9,
  } as const;
  const adopted = adoptCooldowns(poolOf([kept('u1')]), [cooldown]).state;
  t.is(stateOf(adopted), 'kept');
  t.is(stateOf(supplied(adopted, [sampleAddress(IP)], 2)), 'cooling');
});

test('findClaimUids: knows the Pods that the marks of a name are for, and whether there are any', (t) => {
  t.is(findClaimUids(poolOf([sampleAddress(IP)]), POD), undefined);
  t.deepEqual(findClaimUids(poolOf([kept()]), POD)?.uids, new Set());
  t.deepEqual(findClaimUids(poolOf([kept('u1')]), POD)?.uids, new Set(['u1']));
  t.is(findClaimUids(poolOf([kept('u1')]), { ...POD, namespace: 'other' }), undefined);
});
