/** Random lives of Pods, their Service and processes, while calls of the cloud go wrong: in the end all is as it is asked for. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import type { FaultRule } from '../../../sim/vpc/api/faults.ts';
import { assertLaw } from '../../support/law.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const DIRECT = 'service.cloud.tencent.com/direct-access';
const SECOND_MS = 1_000;
const EACH = 0.06;
const FAULTS: readonly FaultRule[] = [
  { fault: { kind: 'error', code: 'InternalError' }, probability: EACH },
  { fault: { kind: 'error', code: 'InternalError', after: true }, probability: EACH },
  { fault: { kind: 'reset', after: true }, probability: EACH },
  { fault: { kind: 'stale', ms: 10_000 }, probability: 2 * EACH, actions: ['Describe*'] },
  { fault: { kind: 'refuse-one' }, probability: 3 * EACH, actions: ['BatchRegisterTargets', 'BatchDeregisterTargets'] },
  { fault: { kind: 'task', fate: 'fail' }, probability: EACH, actions: ['BatchModifyTargetWeight'] },
];

const NODES = ['n1', 'n2'] as const;
const STEP = fc.oneof(
  {
    arbitrary: fc.record({ kind: fc.constant('run' as const), node: fc.constantFrom(...NODES), gated: fc.boolean() }),
    weight: 4,
  },
  { arbitrary: fc.record({ kind: fc.constant('delete' as const), nth: fc.nat(5) }), weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant('end' as const), nth: fc.nat(5) }), weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant('ready' as const), nth: fc.nat(5), isReady: fc.boolean() }), weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant('switch' as const), isDirect: fc.boolean() }), weight: 1 },
  {
    arbitrary: fc.record({
      kind: fc.constant('crash' as const),
      of: fc.constantFrom('change' as const, 'read' as const),
      moment: fc.constantFrom('before' as const, 'after' as const),
      at: fc.integer({ min: 1, max: 12 }),
    }),
    weight: 1,
  },
);
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

test('targets and gates end as Pods and Service ask for, whatever went wrong on the way', (t) =>
  assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(
        fc.array(fc.tuple(STEP, fc.integer({ min: 0, max: 20_000 })), { minLength: 5, maxLength: 12 }),
        async (steps) => await play(inner, steps),
      ),
    { numRuns: 6, endOnFailure: true },
  ));

/** What becomes of a Pod here. */
type Life = { readonly ip: string; readonly isGated: boolean; isReady: boolean; isLeaving: boolean };

async function play(t: ExecutionContext, steps: readonly (readonly [Step, number])[]): Promise<void> {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  for (const node of NODES) await world.join(node);
  await world.create('web', {
    metadata: { annotations: { [DIRECT]: 'true' } },
    spec: { ports: [{ port: 80, nodePort: 30_080 }] },
  });
  const calm = FAULTS.map((rule) => world.world.scene.host.faults.add(rule));
  const lives = new Map<string, Life>();
  let isDirect = true;
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += SECOND_MS) {
      if (world.world.lives.isOver) await world.replace();
      await world.advance(SECOND_MS);
      await pods.sync();
    }
  };
  for (const [at, [step, waitMs]] of steps.entries()) {
    if (step.kind === 'switch') isDirect = step.isDirect;
    await take(world, pods, lives, step, `p${at}`);
    await advance(waitMs);
  }
  for (const end of calm) end();
  world.world.lives.crash = undefined;
  await advance(900_000);
  const ready = [...lives.values()].filter((life) => life.isReady && !life.isLeaving);
  const leaving = [...lives.values()].filter((life) => life.isLeaving);
  const nodes = NODES.map((name) => `${world.nodeIp(name)}:30080 10`);
  const expected = isDirect ? ready.map(({ ip }) => `${ip}:8080 10`) : nodes;
  const targets = world.listeners()['TCP/80'] ?? [];
  t.deepEqual(targets.filter((one) => !one.endsWith(' 0')).toSorted(), expected.toSorted());
  const drained = leaving.map(({ ip }) => `${ip}:8080 0`);
  t.deepEqual(
    targets.filter((one) => one.endsWith(' 0') && !(isDirect && drained.includes(one))),
    [],
  );
  for (const [name, life] of lives)
    if (life.isGated && life.isReady && !life.isLeaving) t.regex(pods.condition(name, GATE) ?? '', /^True/, name);
  await world.stop();
}

async function take(
  world: ServiceWorld,
  pods: ServicePods,
  lives: Map<string, Life>,
  step: Step,
  name: string,
): Promise<void> {
  if (step.kind === 'switch')
    return await world.patch('web', { metadata: { annotations: { [DIRECT]: String(step.isDirect) } } });
  if (step.kind === 'crash') {
    const { lives: processes } = world.world;
    processes.crash = { of: step.of, moment: step.moment, at: processes.made[step.of] + step.at };
    return;
  }
  if (step.kind === 'run') {
    const ip = await pods.run('web', name, { node: step.node, gates: step.gated ? [GATE] : [] });
    lives.set(name, { ip, isGated: step.gated, isReady: true, isLeaving: false });
    return;
  }
  const [known, life] = [...lives][step.nth] ?? [];
  if (known === undefined || life === undefined) return;
  if (step.kind === 'ready') {
    life.isReady = step.isReady;
    await pods.setContainersReady(known, step.isReady);
  } else if (step.kind === 'delete') {
    life.isLeaving = true;
    await pods.delete(known);
  } else {
    lives.delete(known);
    await pods.end(known);
  }
}
