/** Random lives of Services, Nodes and processes, while calls of the cloud go wrong: in the end all is as it is asked for. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { FaultRule } from '../../../sim/vpc/api/faults.ts';
import { assertLaw } from '../../support/law.ts';
import { doDeed, PORTS, RANGES, type Wanted } from './service-deeds.ts';
import { ServiceWorld } from './service-world.ts';

const WRITES = ['CreateLoadBalancer', 'CreateListener', 'ModifyListener', 'BatchModifyTargetWeight', 'Delete*'];
const EACH = 0.08;
const FAULTS: readonly FaultRule[] = [
  { fault: { kind: 'error', code: 'InternalError' }, probability: EACH },
  { fault: { kind: 'error', code: 'InternalError', after: true }, probability: EACH },
  { fault: { kind: 'reset', after: true }, probability: EACH },
  { fault: { kind: 'http', status: 502 }, probability: EACH },
  { fault: { kind: 'hang', after: true }, probability: EACH },
  { fault: { kind: 'partial' }, probability: EACH, actions: ['Describe*'] },
  { fault: { kind: 'stale', ms: 20_000 }, probability: 3 * EACH, actions: ['Describe*'] },
  { fault: { kind: 'refuse-one' }, probability: 2 * EACH, actions: ['BatchRegisterTargets', 'BatchDeregisterTargets'] },
  { fault: { kind: 'task', fate: 'fail' }, probability: EACH, actions: WRITES },
  { fault: { kind: 'task', fate: 'vanish' }, probability: EACH, actions: WRITES },
];

const NAMES = ['a', 'b'] as const;

const STEP = fc.oneof(
  fc.record({ kind: fc.constant('create' as const), name: fc.constantFrom(...NAMES), isInternal: fc.boolean() }),
  fc.record({ kind: fc.constant('delete' as const), name: fc.constantFrom(...NAMES) }),
  fc.record({ kind: fc.constant('port' as const), name: fc.constantFrom(...NAMES), port: fc.constantFrom(...PORTS) }),
  fc.record({ kind: fc.constant('move' as const), name: fc.constantFrom(...NAMES), isInternal: fc.boolean() }),
  fc.record({
    kind: fc.constant('ranges' as const),
    name: fc.constantFrom(...NAMES),
    range: fc.constantFrom(...RANGES),
  }),
  fc.record({ kind: fc.constant('drain' as const), isLeaving: fc.boolean() }),
  fc.record({ kind: fc.constant('replace' as const) }),
);

type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

test('Services end with one load balancer each, as they ask for it, with its security group, whatever went wrong on the way', (t) =>
  assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(
        fc.array(fc.tuple(STEP, fc.integer({ min: 0, max: 30_000 })), { minLength: 4, maxLength: 10 }),
        async (steps) => await play(inner, steps),
      ),
    { numRuns: 6, endOnFailure: true },
  ));

async function play(t: ExecutionContext, steps: readonly (readonly [Step, number])[]): Promise<void> {
  const world = await ServiceWorld.start();
  const [one, two] = [await world.join('n1'), await world.join('n2')];
  const bought = await world.buy();
  const [foreign] = world.balancers();
  const calm = FAULTS.map((rule) => world.world.scene.host.faults.add(rule));
  const wanted = new Map<string, Wanted>();
  let isLeaving = false;
  for (const [step, waitMs] of steps) {
    if (step.kind === 'drain') isLeaving = step.isLeaving;
    await take(world, wanted, step);
    await world.advance(waitMs);
  }
  for (const end of calm) end();
  await world.advance(1_500_000);
  t.is(
    world.balancers().find(({ loadBalancerId }) => loadBalancerId === bought),
    foreign,
  );
  const own = world.balancers().filter(({ loadBalancerId }) => loadBalancerId !== bought);
  const { securityGroups } = world.world.scene.host.model.state;
  const shown = own.map(({ type, tags, listeners, securityGroupIds }) => {
    const service = world.world.scene.server
      .objects('services')
      .find(({ metadata }) => tags['tke-eni-owner']?.endsWith(metadata.uid ?? ' '));
    const all = [...listeners.values()].map(
      (listener) =>
        `${listener.port}: ${[...listener.targets.values()]
          .map(({ ip, weight }) => `${ip} ${weight}`)
          .sort()
          .join(', ')}`,
    );
    const rules = securityGroups.rulesOf(securityGroupIds).map(({ port, cidr }) => ` from ${cidr} to ${port}`);
    return `${service?.metadata.name} ${type} ${all.join('; ')}${rules.join()}`;
  });
  const targets = isLeaving ? [`${one} 0`, `${two} 10`] : [`${one} 10`, `${two} 10`];
  const textOf = ({ port, isInternal, range }: Wanted, bound: readonly string[]): string => {
    const closed = range === '' ? '' : ` from ${range} to ${port}`;
    return `${isInternal ? 'INTERNAL' : 'OPEN'} ${port}: ${[...bound].sort().join(', ')}${closed}`;
  };
  const expected = [...wanted].map(([name, want]) => `${name} ${textOf(want, targets)}`);
  // A Node that leaves is not registered again.
  const without = [...wanted].map(([name, want]) => `${name} ${textOf(want, [`${two} 10`])}`);
  t.is(shown.length, expected.length, shown.join(' | '));
  for (const [at, line] of expected.entries()) {
    t.true(
      shown.includes(line) || (isLeaving && shown.includes(without[at] ?? '')),
      `${line} is not in ${shown.join(' | ')}`,
    );
  }
  t.is(securityGroups.made.size, [...wanted.values()].filter(({ range }) => range !== '').length);
  await world.stop();
}

async function take(world: ServiceWorld, wanted: Map<string, Wanted>, step: Step): Promise<void> {
  if (step.kind === 'replace') return await world.replace();
  if (step.kind === 'drain') {
    const taint = { key: 'ToBeDeletedByClusterAutoscaler', value: '1', effect: 'NoSchedule' };
    return await world.patchNode('n1', { spec: { taints: step.isLeaving ? [taint] : [] } });
  }
  await doDeed(world, wanted, step);
}
