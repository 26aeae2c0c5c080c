import test from 'ava';
import fc from 'fast-check';
import { decodeMessage, encodeMessage } from '../../../../agent/api/codec.ts';
import { POOL_REPLY } from '../../../../agent/api/ops-messages.ts';
import type { SupplyEni } from '../../../../agent/journal/supply.ts';
import { poolReply } from '../../../../agent/ops/pool-reply.ts';
import { demandInUnits } from '../../../../agent/pool/demand.ts';
import { NodeState } from '../../../../agent/state/node-state.ts';
import { buildAgentPool } from '../../../../cli/commands/pool/build-agent-pool.ts';
import { findPoolStays } from '../../../../cli/commands/pool/find-pool-stays.ts';
import { systemClock } from '../../../../runtime/clock.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from '../../../agent/pool/supply-sample.ts';
import { assertLaw } from '../../../support/law.ts';

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

test('findPoolStays: calls surplus what the agent calls surplus, and nothing else', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(NODE, (node) => {
        const state = stateOf(node);
        const warm = { ...node.warm, ...(node.limit === undefined ? {} : { limit: node.limit }) };
        const init = poolReply(state, { bootMs: BOOT_MS, cooldownMs: 61_000, warm, outside: node.outside });
        const reply = decodeMessage(POOL_REPLY, encodeMessage(POOL_REPLY, init));
        const stays = findPoolStays({ view: buildAgentPool(reply, 'n1'), supplySource: 'cluster' });
        const { surplus } = demandInUnits(state.pool.state, warm, node.outside);
        const going = new Set(surplus.flat().map(({ ip }) => ip));
        for (const [eniId, found] of stays) {
          const reasons = found.map(({ reason }) => reason);
          t.true(reasons.length > 0);
          const free = [...state.pool.state.addresses.values()].filter(
            (address) => address.eniId === eniId && address.state === 'free',
          );
          const isServing = state.pool.state.enis.get(eniId)?.serves === true;
          const isPaced = isServing && free.length > 0 && surplus.length > 0;
          t.is(reasons.includes('pace'), isPaced, 'pace');
          const isGoing = free.length > 0 && free.every(({ ip }) => going.has(ip));
          if (isGoing)
            t.deepEqual(
              reasons.filter((one) => one === 'warm' || one === 'demand'),
              [],
            );
          if (isServing && free.length > surplus.length)
            t.true(reasons.some((one) => one === 'warm' || one === 'demand'));
        }
      }),
    { numRuns: 500 },
  );
});
