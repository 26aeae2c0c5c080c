/** Random lives of Services, Nodes and processes, while calls of the cloud go wrong: in the end all is as it is asked for. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { FaultRule } from '../../../sim/vpc/api/faults.ts';
import { assertLaw } from '../../support/law.ts';
import { ServiceWorld, SUBNET } from './service-world.ts';

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
const PORTS = [80, 81] as const;
const ALLOW = { 'tke.cloud.tencent.com/allow-address-change': 'true' };
const INTERNAL = 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid';

const STEP = fc.oneof(
  fc.record({ kind: fc.constant('create' as const), name: fc.constantFrom(...NAMES), isInternal: fc.boolean() }),
  fc.record({ kind: fc.constant('delete' as const), name: fc.constantFrom(...NAMES) }),
  fc.record({ kind: fc.constant('port' as const), name: fc.constantFrom(...NAMES), port: fc.constantFrom(...PORTS) }),
  fc.record({ kind: fc.constant('move' as const), name: fc.constantFrom(...NAMES), isInternal: fc.boolean() }),
  fc.record({ kind: fc.constant('drain' as const), isLeaving: fc.boolean() }),
  fc.record({ kind: fc.constant('replace' as const) }),
);

type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;
type Wanted = { port: number; isInternal: boolean };

test('Services end with one load balancer each, as they ask for it, whatever went wrong on the way', (t) =>
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
  const shown = own.map(({ type, tags, listeners }) => {
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
    return `${service?.metadata.name} ${type} ${all.join('; ')}`;
  });
  const targets = isLeaving ? [`${one} 0`, `${two} 10`] : [`${one} 10`, `${two} 10`];
  const textOf = ({ port, isInternal }: Wanted, bound: readonly string[]): string =>
    `${isInternal ? 'INTERNAL' : 'OPEN'} ${port}: ${[...bound].sort().join(', ')}`;
  const expected = [...wanted].map(([name, want]) => `${name} ${textOf(want, targets)}`);
  // A Node that leaves is not registered anew.
  const without = [...wanted].map(([name, want]) => `${name} ${textOf(want, [`${two} 10`])}`);
  t.is(shown.length, expected.length, shown.join(' | '));
  for (const [at, line] of expected.entries()) {
    t.true(
      shown.includes(line) || (isLeaving && shown.includes(without[at] ?? '')),
      `${line} is not in ${shown.join(' | ')}`,
    );
  }
  await world.stop();
}

async function take(world: ServiceWorld, wanted: Map<string, Wanted>, step: Step): Promise<void> {
  if (step.kind === 'replace') return await world.replace();
  if (step.kind === 'drain') {
    const taint = { key: 'ToBeDeletedByClusterAutoscaler', value: '1', effect: 'NoSchedule' };
    return await world.patchNode('n1', { spec: { taints: step.isLeaving ? [taint] : [] } });
  }
  const { name } = step;
  const now = wanted.get(name);
  if (step.kind === 'create') {
    // One that is being deleted has the name still.
    if (world.service(name) !== undefined) return;
    const annotations = { ...ALLOW, ...(step.isInternal ? { [INTERNAL]: SUBNET } : {}) };
    await world.create(name, { metadata: { annotations } });
    wanted.set(name, { port: 80, isInternal: step.isInternal });
  }
  if (now === undefined) return;
  if (step.kind === 'delete') {
    await world.delete(name);
    wanted.delete(name);
  }
  if (step.kind === 'port') {
    await world.patch(name, { spec: { ports: [{ port: step.port }] } });
    now.port = step.port;
  }
  if (step.kind === 'move') {
    await world.patch(name, { metadata: { annotations: { [INTERNAL]: step.isInternal ? SUBNET : null } } });
    now.isInternal = step.isInternal;
  }
}
