/** What the port says about a change holds while one request in five goes wrong. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancerTask } from '../../cloud/load-balancers.ts';
import type { RefusedTargets, WeightedTarget } from '../../cloud/targets.ts';
import type { FaultRule } from '../../sim/vpc/api/faults.ts';
import { assertLaw } from '../support/law.ts';
import { contextOf, inProcess, SPEC, type TestCloud } from './cloud-fixture.ts';

const WRITES = [
  ...['CreateListener', 'DeleteLoadBalancerListeners', 'BatchRegisterTargets', 'BatchDeregisterTargets'],
  'BatchModifyTargetWeight',
];
const EACH = 0.2 / 7;
/** Together: a write in five, a read in seven. */
const FAULTS: readonly FaultRule[] = [
  { fault: { kind: 'error', code: 'InternalError' }, probability: EACH },
  { fault: { kind: 'error', code: 'InternalError', after: true }, probability: EACH },
  { fault: { kind: 'reset', after: true }, probability: EACH },
  { fault: { kind: 'http', status: 502 }, probability: EACH },
  { fault: { kind: 'hang', after: true }, probability: EACH },
  { fault: { kind: 'task', fate: 'fail' }, probability: EACH, actions: WRITES },
  { fault: { kind: 'refuse-one' }, probability: 3 * EACH, actions: WRITES },
  { fault: { kind: 'task', fate: 'vanish' }, probability: EACH, actions: WRITES },
  { fault: { kind: 'partial' }, probability: EACH, actions: ['DescribeListeners', 'DescribeTargets'] },
];

/** Weights of targets, `ip:port`, by listener, by port: what a change is to make true. */
type Truth = ReadonlyMap<number, ReadonlyMap<string, number>>;

/** One step: which change, on the listeners of which ports, with which targets. */
type Step = {
  readonly kind: 'create' | 'delete' | 'register' | 'deregister' | 'weigh';
  readonly ports: readonly number[];
  readonly targets: readonly number[];
  readonly weight: number;
};

const PORTS = [80, 81, 82];
const TARGET_PORTS = [8_000, 8_001, 8_002];
const STEP: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('create', 'register', 'register', 'weigh', 'deregister', 'delete'),
  ports: fc.subarray(PORTS, { minLength: 1 }),
  targets: fc.subarray(TARGET_PORTS, { minLength: 1 }),
  weight: fc.integer({ min: 0, max: 100 }),
});

test('a change is in force, is not, or is for the caller to find out, as the port says; lists are true', async (t) => {
  await assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(fc.nat(), fc.array(STEP, { minLength: 6, maxLength: 16 }), async (seed, steps) => {
        const on = await inProcess({ seed });
        await on.wait(play(inner, on, steps));
      }),
    { numRuns: 20 },
  );
});

async function play(t: ExecutionContext, on: TestCloud, steps: readonly Step[]): Promise<void> {
  const { loadBalancers, instances } = on.cloud;
  const spec = { type: 'INTERNAL', name: 'lb', vpcId: SPEC.vpcId, subnetId: 'subnet-large000' } as const;
  const made = await loadBalancers.settle(await loadBalancers.create(spec, contextOf()), contextOf());
  const [id = ''] = made.kind === 'done' ? made.loadBalancerIds : [];
  const [instance] = await instances.describe(['ins-cores008'], contextOf());
  for (const rule of FAULTS) on.host.faults.add(rule);
  for (const step of steps) await playStep(t, on, id, step, instance?.privateIps[0] ?? '');
}

/** Plays a step that is possible now, and compares what came of it with what the port said. */
async function playStep(t: ExecutionContext, on: TestCloud, id: string, step: Step, ip: string): Promise<void> {
  const before = truthOf(on, id);
  const ports = step.ports.filter((port) => before.has(port) !== (step.kind === 'create'));
  const ids = idsOf(on, id);
  const isOfTargets = step.kind !== 'create' && step.kind !== 'delete';
  const targets = ports.flatMap((port) =>
    step.targets
      .filter((one) => before.get(port)?.has(`${ip}:${one}`) !== (step.kind === 'register'))
      .map((one): WeightedTarget => ({ listenerId: ids.get(port) ?? '', ip, port: one, weight: step.weight })),
  );
  if (ports.length === 0 || (isOfTargets && targets.length === 0)) return;
  const wanted = after(before, step.kind, ports, targets, ids);
  const said = await outcomeOf(on, id, step.kind, ports, targets);
  // What the cloud still works on has ended by then.
  await on.host.clock.sleep(30_000);
  await on.host.catchUp();
  const now = truthOf(on, id);
  for (const port of PORTS) {
    const isRefused = said.refused.includes(ids.get(port) ?? '');
    const is = (truth: Truth): boolean => same(truth.get(port), now.get(port));
    const what = `${step.kind} ${port}: ${said.kind}${isRefused ? ', refused' : ''}`;
    if (said.kind === 'unknown') t.true(is(before) || is(wanted), what);
    else t.true(is(said.kind === 'done' && !isRefused ? wanted : before), what);
  }
  await compareLists(t, on, id, now);
}

/** What the port says about a change. */
type Said = { readonly kind: 'done' | 'nothing' | 'unknown'; readonly refused: readonly string[] };

async function outcomeOf(
  on: TestCloud,
  id: string,
  kind: Step['kind'],
  ports: readonly number[],
  targets: readonly WeightedTarget[],
): Promise<Said> {
  const { loadBalancers } = on.cloud;
  try {
    const result = await change(on, id, kind, ports, targets);
    if ('refused' in result) return { kind: 'done', refused: result.refused.map(({ listenerId }) => listenerId) };
    const outcome = await loadBalancers.settle(result.task, contextOf());
    const said = { done: 'done', failed: 'nothing', lost: 'unknown', pending: 'unknown' } as const;
    return { kind: said[outcome.kind], refused: [] };
  } catch (error) {
    if (!isCloudError(error)) throw error;
    return { kind: error.retry === 'resolve' ? 'unknown' : 'nothing', refused: [] };
  }
}

async function change(
  on: TestCloud,
  id: string,
  kind: Step['kind'],
  ports: readonly number[],
  targets: readonly WeightedTarget[],
): Promise<{ readonly task: LoadBalancerTask } | { readonly refused: readonly RefusedTargets[] }> {
  const { listeners, targets: port } = on.cloud;
  switch (kind) {
    case 'create': {
      const wanted = ports.map((one) => ({ port: one, name: `u1/${one}` }));
      return await listeners.create(id, { protocol: 'TCP', ports: wanted, settings: {} }, contextOf());
    }
    case 'delete': {
      const ids = idsOf(on, id);
      const doomed = ports.map((one) => ids.get(one) ?? '');
      return { task: await listeners.delete(id, doomed, contextOf()) };
    }
    case 'register':
      return { refused: await port.register(id, targets, contextOf()) };
    case 'deregister':
      return { refused: await port.deregister(id, targets, contextOf()) };
    case 'weigh':
      return { task: await port.setWeights(id, targets, contextOf()) };
  }
}

/** Lists may fail; what they answer is true. */
async function compareLists(t: ExecutionContext, on: TestCloud, id: string, truth: Truth): Promise<void> {
  try {
    const found = await on.cloud.listeners.list(id, contextOf());
    t.deepEqual(found.map(({ port }) => port).sort(), [...truth.keys()].sort());
    const ids = found.map(({ listenerId }) => listenerId);
    const targets = await on.cloud.targets.list(id, ids, contextOf());
    for (const { listenerId, port } of found) {
      const listed = targets.filter((target) => target.listenerId === listenerId);
      t.true(same(truth.get(port), new Map(listed.map((one) => [`${one.ip}:${one.port}`, one.weight]))));
    }
  } catch (error) {
    if (!isCloudError(error)) throw error;
  }
}

function truthOf({ host }: TestCloud, id: string): Truth {
  const listeners = [...host.model.state.clb.balancer(id).listeners.values()];
  return new Map(
    listeners.map(({ port, targets }) => [port, new Map([...targets].map(([key, { weight }]) => [key, weight]))]),
  );
}

function idsOf({ host }: TestCloud, id: string): ReadonlyMap<number, string> {
  return new Map([...host.model.state.clb.balancer(id).listeners.values()].map((one) => [one.port, one.listenerId]));
}

function after(
  before: Truth,
  kind: Step['kind'],
  ports: readonly number[],
  targets: readonly WeightedTarget[],
  ids: ReadonlyMap<number, string>,
): Truth {
  const now = new Map(before);
  for (const port of ports) {
    if (kind === 'delete') now.delete(port);
    else {
      const ofPort = targets.filter(({ listenerId }) => listenerId === ids.get(port));
      const weights = new Map(now.get(port) ?? []);
      for (const { ip, port: own, weight } of ofPort) {
        if (kind === 'deregister') weights.delete(`${ip}:${own}`);
        else weights.set(`${ip}:${own}`, weight);
      }
      now.set(port, weights);
    }
  }
  return now;
}

function same(a: ReadonlyMap<string, number> | undefined, b: ReadonlyMap<string, number> | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
}
