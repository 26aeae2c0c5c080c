import test from 'ava';
import fc from 'fast-check';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { endCooldowns } from '../../../agent/attachment/end-cooldowns.ts';
import { poolReply } from '../../../agent/ops/pool-reply.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { decidePublication } from '../../../agent/supply/decide-publication.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { assertLaw } from '../../support/law.ts';
import { addOf, createTestNode, PATIENT, supplyOf, type TestNode } from './fixtures.ts';

const HOUR_MS = 3_600_000;
const LIMIT_MS = 2 * HOUR_MS;

/** Puts a list of the controller in force, as a change of the NodeENIConfig does. */
function publish(node: TestNode, ips: readonly string[] | undefined): void {
  const { registeredIps: _before, ...rest } = node.state.supply ?? supplyOf(0);
  const supply = ips === undefined ? rest : { ...rest, registeredIps: ips };
  node.state.supply = supply;
  node.deps.journal.putSupply(supply);
  node.state.acceptRegistered(ips);
}

function pass(node: TestNode, ms: number): void {
  node.clock.advance(ms);
  endCooldowns(node.deps);
}

/** Starts the agent again from its journal, without the API server. */
function restart(node: TestNode): TestNode {
  const state = new NodeState(systemClock);
  state.registeredWaitMs = LIMIT_MS;
  for (const id of node.state.readyEnis) state.readyEnis.add(id);
  for (const [id, eni] of node.state.enis) state.enis.set(id, eni);
  state.restore(node.deps.journal.load());
  return { ...node, state, deps: { ...node.deps, state } };
}

const ipOf = ({ state }: TestNode, pod: number) =>
  [...state.leases.values()].find(({ podName }) => podName === `p${pod}`)?.addresses[0]?.ip;

function createNode(ipCount: number): TestNode {
  const node = createTestNode(ipCount);
  node.state.registeredWaitMs = LIMIT_MS;
  return node;
}

test('attach: an address that a load balancer has goes to no other Pod, over a restart, until it is taken out', async (t) => {
  const before = createNode(1);
  t.teardown(before.close);
  await attach(before.deps, addOf(1), PATIENT);
  const ip = ipOf(before, 1) ?? '';
  publish(before, [ip]);
  await detach(before.deps, addOf(1));
  const node = restart(before);
  pass(node, HOUR_MS);
  const failed = await attach(node.deps, addOf(2), PATIENT);
  t.like(failed, { kind: 'failed' });
  const text = JSON.stringify(failed);
  t.regex(text, /in load balancers 1/);
  t.regex(text, /tke-cloud-controller-manager/);
  const { desired, surplus } = node.state.pool.demand({ min: 1, max: 1 });
  t.is(desired, 2, 'another one is asked for');
  t.deepEqual(surplus, []);
  const { addresses = [] } = poolReply(node.state, {
    ...{ bootMs: node.clock.bootMs(), cooldownMs: 0, warm: { min: 0, max: 0 }, outside: { waiting: 0, floor: 0 } },
  });
  t.is(addresses[0]?.state, 8);
  publish(node, []);
  t.is((await attach(node.deps, addOf(2), PATIENT)).kind, 'attached');
});

test('attach: the wait ends at the limit, once, with an event, also over a restart', async (t) => {
  const first = createNode(1);
  t.teardown(first.close);
  await attach(first.deps, addOf(1), PATIENT);
  publish(first, [ipOf(first, 1) ?? '']);
  await detach(first.deps, addOf(1));
  pass(first, LIMIT_MS / 2);
  const node = restart(first);
  const reported: string[] = [];
  const deps = { ...node.deps, events: { report: (_type: string, reason: string) => void reported.push(reason) } };
  const seen = { ...node, deps: { ...deps, events: { ...node.deps.events, ...deps.events } } };
  pass(seen, LIMIT_MS / 2 - 1);
  t.is((await attach(node.deps, addOf(2), PATIENT)).kind, 'failed');
  t.deepEqual(reported, []);
  pass(seen, 1);
  pass(seen, 1_000);
  t.deepEqual(reported, ['RegisteredTooLong']);
  t.is((await attach(node.deps, addOf(2), PATIENT)).kind, 'attached');
  // Nobody changes the list any more: it holds nothing a second time.
  await detach(node.deps, addOf(2));
  pass(seen, node.deps.settings.ipCooldownMs);
  t.is((await attach(node.deps, addOf(3), PATIENT)).kind, 'attached');
  // Another list has a living writer.
  publish(node, [ipOf(node, 3) ?? '', '10.0.0.99']);
  await detach(node.deps, addOf(3));
  pass(seen, node.deps.settings.ipCooldownMs);
  t.is((await attach(node.deps, addOf(4), PATIENT)).kind, 'failed');
});

test('attach: without a list nothing waits, and none with a limit of 0', async (t) => {
  for (const [limitMs, ips] of [
    [LIMIT_MS, undefined],
    [0, ['10.0.0.10']],
  ] as const) {
    const node = createNode(1);
    t.teardown(node.close);
    node.state.registeredWaitMs = limitMs;
    await attach(node.deps, addOf(1), PATIENT);
    publish(node, ips);
    await detach(node.deps, addOf(1));
    t.is((await attach(node.deps, addOf(2), PATIENT)).kind, 'attached', 'its cooldown is cut short');
  }
});

test('decidePublication: an address that a load balancer has is not offered, on a draining ENI neither', (t) => {
  for (const isDraining of [false, true]) {
    const node = createNode(2);
    t.teardown(node.close);
    const supply = supplyOf(2);
    const [eni] = supply.enis;
    node.state.pool.applySupply({ ...supply, enis: eni === undefined ? [] : [{ ...eni, draining: isDraining }] });
    publish(node, ['10.0.0.10']);
    const { toOffer } = decidePublication({
      pool: node.state.pool.state,
      offers: new Map(),
      nec: {
        spec: { desired: 0, releasable: [], observedEpoch: 1, readyResources: [], life: 'l' },
        supplyEpoch: 1,
        addresses: new Map(),
      },
      warm: { min: 0, max: 0, isQuickRelease: true },
      outside: { waiting: 0, floor: 0 },
      pacing: { nowMs: 1e9, lastReleaseMs: 0, isQuick: true },
      readyResources: [],
      life: 'l',
    });
    t.deepEqual(
      toOffer.map(({ ip }) => ip),
      ['10.0.0.11'],
    );
  }
});

type Step =
  | { readonly kind: 'add' | 'delete' }
  | { readonly kind: 'register' | 'deregister'; readonly index: number }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'restart' };

const arbStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('add' as const, 'delete' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('register' as const, 'register' as const, 'deregister' as const),
      index: fc.integer({ min: 0, max: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('time' as const),
      ms: fc.constantFrom(1_000, 20_000, 130_000, LIMIT_MS / 4),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);

test('law: a Pod gets no address that a load balancer has for another Pod, for less than the limit', async (t) => {
  await assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(fc.array(arbStep, { minLength: 10, maxLength: 40 }), async (steps) => {
        let node = createNode(2);
        let nextPod = 100;
        /** Targets of listeners by address, with the Pod that each is meant for. Published before they are registered. */
        const targets = new Map<string, string>();
        const freedAtMs = new Map<string, number>();
        const ownerOf = (ip: string) =>
          [...node.state.leases.values()].find(({ addresses }) => addresses[0]?.ip === ip)?.podName;
        try {
          for (const step of steps) {
            if (step.kind === 'time') pass(node, step.ms);
            if (step.kind === 'restart') node = restart(node);
            if (step.kind === 'register' || step.kind === 'deregister') {
              const ip = `10.0.0.${10 + step.index}`;
              const owner = ownerOf(ip);
              if (step.kind === 'register' && owner !== undefined) targets.set(ip, owner);
              if (step.kind === 'deregister') targets.delete(ip);
              publish(node, [...targets.keys()]);
            }
            if (step.kind === 'add') {
              const pod = nextPod++;
              await attach(node.deps, addOf(pod), PATIENT);
              const ip = ipOf(node, pod);
              const target = ip === undefined ? undefined : targets.get(ip);
              if (target === undefined || ip === undefined) continue;
              const waitedMs = node.clock.bootMs() - (freedAtMs.get(ip) ?? 0);
              inner.true(waitedMs >= LIMIT_MS, `${ip} of ${target} went to p${pod} after ${waitedMs} ms`);
              // From here on the target is wrong, which the event has told.
              targets.set(ip, `p${pod}`);
            }
            const [lease] = [...node.state.leases.values()];
            if (step.kind === 'delete' && lease !== undefined) {
              freedAtMs.set(lease.addresses[0]?.ip ?? '', node.clock.bootMs());
              await detach(node.deps, addOf(Number(lease.podName.slice(1))));
            }
          }
        } finally {
          node.close();
        }
      }),
    { numRuns: 20, endOnFailure: true },
  );
});
