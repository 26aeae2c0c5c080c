import test from 'ava';
import fc from 'fast-check';
import { decodeMessage, encodeMessage } from '../../../agent/api/codec.ts';
import { POOL_REPLY } from '../../../agent/api/ops-messages.ts';
import type { SupplyEni } from '../../../agent/journal/supply.ts';
import { poolReply } from '../../../agent/ops/pool-reply.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { decidePublication } from '../../../agent/supply/decide-publication.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { assertLaw } from '../../support/law.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from './supply-sample.ts';

/** What becomes of one address. */
const FATE = fc.constantFrom('free', 'free', 'leased', 'cooling', 'offered', 'releasing', 'static');
type Fate = 'free' | 'leased' | 'cooling' | 'offered' | 'releasing' | 'static';

const ENI = fc.record({
  fates: fc.array(FATE, { maxLength: 5 }) as fc.Arbitrary<readonly Fate[]>,
  draining: fc.boolean(),
  attached: fc.constantFrom(true, true, true, false),
});
const NODE = fc.record({
  enis: fc.array(ENI, { minLength: 1, maxLength: 3 }),
  warm: fc.tuple(fc.nat(3), fc.nat(3)).map(([min, more]) => ({ min, max: min + more })),
  limit: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
  outside: fc.record({ waiting: fc.nat(2), floor: fc.nat(4) }),
});
type RandomNode = typeof NODE extends fc.Arbitrary<infer T> ? T : never;

const BOOT_MS = 1_000_000;

/** Makes the pool of a node, by what an agent does with it. */
function stateOf({ enis }: RandomNode): NodeState {
  const state = new NodeState(systemClock);
  const all = enis.map(({ fates, draining, attached }, index): SupplyEni => {
    const addresses = fates.map((fate, nth) =>
      sampleAddress(`10.0.${index}.${nth + 10}`, {
        state: fate === 'releasing' ? 'releasing' : 'assigned',
        ...(fate === 'static' ? { claim: { namespace: 'shop', name: 'db-0' } } : {}),
      }),
    );
    return sampleEni(`eni-${index}`, [], { addresses, draining, attached });
  });
  const ipsOf = (wanted: Fate) =>
    enis.flatMap(({ fates }, index) =>
      fates.flatMap((fate, nth) => (fate === wanted ? [[index, `10.0.${index}.${nth + 10}`] as const] : [])),
    );
  state.supply = sampleSupply(all);
  state.pool.applySupply(state.supply);
  const leases = ipsOf('leased').map(([index, ip]) => sampleLease(`c-${ip}`, `eni-${index}`, [ip]));
  for (const lease of leases) state.leases.set(`${lease.containerId}/eth0`, lease);
  state.pool.adopt(leases);
  state.pool.adoptCooldowns(
    ipsOf('cooling').map(([index, ip]) => ({
      ...{ ip, family: 4, eniId: `eni-${index}`, assignmentId: `as-${ip}` },
      ...{ freedAtMs: BOOT_MS - 1_000, coolUntilMs: BOOT_MS + 60_000, cooldownMs: 61_000 },
    })),
  );
  state.pool.withdraw(ipsOf('offered').map(([, ip]) => ip));
  return state;
}

type Settings = { readonly everyMs: number; readonly isQuick: boolean };
const RELEASE: Settings = { everyMs: 120_000, isQuick: true };

/** Reasons of each ENI as `tke-eni` gets them. */
function staysOf(
  state: NodeState,
  { warm, limit, outside }: Pick<RandomNode, 'warm' | 'limit' | 'outside'>,
  release = RELEASE,
): ReadonlyMap<string, readonly { readonly reason: string; readonly text: string }[]> {
  const init = poolReply(state, {
    ...{ bootMs: BOOT_MS, cooldownMs: 61_000, outside, release },
    warm: { ...warm, ...(limit === undefined ? {} : { limit }) },
  });
  const { enis } = decodeMessage(POOL_REPLY, encodeMessage(POOL_REPLY, init));
  return new Map(enis.map(({ eniId, stays }) => [eniId, stays.map(({ reason, text }) => ({ reason, text }))]));
}

/** Returns the addresses that the agent offers next, when its pace allows all. */
function offeredNext(state: NodeState, { warm, limit, outside }: RandomNode): readonly string[] {
  const all = [...state.pool.state.addresses.values()];
  const offers = all.filter(({ offered, supplyState }) => offered && supplyState === 'assigned');
  const { toOffer } = decidePublication({
    pool: state.pool.state,
    offers: new Map(offers.map(({ ip, family, eniId, assignmentId }) => [ip, { ip, family, eniId, assignmentId }])),
    nec: {
      spec: {
        ...{ desired: undefined, observedEpoch: undefined, readyResources: [], life: 'life-1' },
        releasable: offers.map(({ ip, assignmentId }) => ({ ip, assignmentId })),
      },
      supplyEpoch: state.pool.state.epoch,
      addresses: new Map(
        all.map(({ ip, assignmentId, supplyState }) => [
          ip,
          { assignmentId, state: supplyState === 'releasing' ? 'releasing' : 'assigned' },
        ]),
      ),
    },
    warm: { ...warm, ...(limit === undefined ? {} : { limit }) },
    ...{ outside, readyResources: [], life: 'life-1' },
    pacing: { nowMs: BOOT_MS, lastReleaseMs: 0, isQuick: true },
  });
  return toOffer.map(({ ip }) => ip);
}

test('whyStays: an ENI waits for the pace exactly where the agent offers of it next, and is wanted where a free address is not offered', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(NODE, (node) => {
        const state = stateOf(node);
        const next = new Set(offeredNext(state, node));
        for (const [eniId, stays] of staysOf(state, node)) {
          const reasons = stays.map(({ reason }) => reason);
          const free = [...state.pool.state.addresses.values()].filter(
            (address) => address.eniId === eniId && address.state === 'free',
          );
          const isServing = state.pool.state.enis.get(eniId)?.serves === true;
          t.is(reasons.includes('pace'), isServing && free.some(({ ip }) => next.has(ip)), `${eniId} pace`);
          const isWanted = reasons.some((one) => one !== 'pace');
          t.is(isWanted, isServing && free.some(({ ip }) => !next.has(ip)), `${eniId} wanted`);
        }
      }),
    { numRuns: 500 },
  );
});

/** A node with one ENI and three free addresses. */
function threeFree(parts: Partial<RandomNode> = {}): RandomNode {
  const eni = { fates: ['free', 'free', 'free'], draining: false, attached: true } as const;
  return { enis: [eni], warm: { min: 0, max: 0 }, limit: undefined, outside: { waiting: 0, floor: 0 }, ...parts };
}

const says = test.macro({
  exec: (t, parts: Partial<RandomNode>, wanted: readonly string[], release: Settings = RELEASE) => {
    const node = threeFree(parts);
    const stays = staysOf(stateOf(node), node, release).get('eni-0') ?? [];
    t.deepEqual(
      stays.map(({ reason, text }) => `${reason}: ${text}`),
      wanted,
    );
  },
  title: (_, __, wanted: readonly string[]) => `whyStays: says ${wanted.join('; ')}`,
});

const PACE = (count: number) => `pace: the node has ${count} more than it asks for: the agent offers all every 120 s`;
test(says, {}, [PACE(3)]);
test(says, { warm: { min: 1, max: 5 } }, ['warm: the node keeps 1 to 5 spare (warm target)']);
test(says, { warm: { min: 1, max: 1 } }, ['warm: the node keeps 1 spare (warm target)', PACE(2)]);
test(says, { outside: { waiting: 3, floor: 0 } }, ['waiting-adds: Pods that wait for an address: 3']);
test(says, { outside: { waiting: 0, floor: 3 } }, [
  'minimum: desired-route-eni-pod-num keeps at least 3 addresses on the node',
]);
test(
  says,
  {},
  ['pace: the node has 3 more than it asks for: the agent offers one, from the emptiest ENI first, every 30 s'],
  { everyMs: 30_000, isQuick: false },
);

test('whyStays: nothing is offered while supply comes from a file, or is not believed', (t) => {
  const node = threeFree();
  const state = stateOf(node);
  const init = poolReply(state, { bootMs: BOOT_MS, cooldownMs: 61_000, warm: node.warm, outside: node.outside });
  t.deepEqual(init.enis?.[0]?.stays, [
    { reason: 'supply-file', text: 'supply comes from a file: the agent offers nothing' },
  ]);
  state.distrusted = 'epoch 1 is below 2';
  t.deepEqual(staysOf(state, node).get('eni-0'), [
    { reason: 'supply-problem', text: 'the agent reports of its supply: epoch 1 is below 2' },
  ]);
});
