/** Random lives of Ingresses and processes, while calls of the cloud go wrong: in the end all is as it is asked for. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { FaultRule } from '../../../sim/vpc/api/faults.ts';
import { assertLaw } from '../../support/law.ts';
import { DIRECT, IngressWorld, ruleOf } from './ingress-world.ts';

const WRITES = [
  'CreateLoadBalancer',
  'CreateListener',
  'CreateRule',
  'ModifyRule',
  'BatchModifyTargetWeight',
  'Delete*',
];
const EACH = 0.06;
const FAULTS: readonly FaultRule[] = [
  { fault: { kind: 'error', code: 'InternalError' }, probability: EACH },
  { fault: { kind: 'error', code: 'InternalError', after: true }, probability: EACH },
  { fault: { kind: 'reset', after: true }, probability: EACH },
  { fault: { kind: 'hang', after: true }, probability: EACH },
  { fault: { kind: 'partial' }, probability: EACH, actions: ['Describe*'] },
  { fault: { kind: 'stale', ms: 20_000 }, probability: 3 * EACH, actions: ['Describe*'] },
  { fault: { kind: 'refuse-one' }, probability: 2 * EACH, actions: ['BatchRegisterTargets', 'BatchDeregisterTargets'] },
  { fault: { kind: 'task', fate: 'fail' }, probability: EACH, actions: WRITES },
  { fault: { kind: 'task', fate: 'vanish' }, probability: EACH, actions: WRITES },
];

const NAMES = ['a', 'b', 'c'] as const;
const PATHS = ['/x', '/y'] as const;
const SERVICES = ['web', 'api'] as const;
const HOST = 'www.example.com';
const EXISTING = 'kubernetes.io/ingress.existLbId';
const GROUP = 'ingress.cloud.tencent.com/enable-group';
const CLASS = 'kubernetes.io/ingress.class';
const CHANGE = 'tke.cloud.tencent.com/allow-address-change';

const MODE = 'ingress.cloud.tencent.com/mode';
/** A malformed annotation, a class that is missing, and a load balancer that is left alone for a while. */
const MISTAKES = [{ [DIRECT]: 'odd' }, { [CLASS]: null }, { [MODE]: 'skip' }] as const;

const name = fc.constantFrom(...NAMES);
const path = fc.constantFrom(...PATHS);
const service = fc.constantFrom(...SERVICES);
const STEP = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant('create' as const), name, isGrouped: fc.boolean() }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constant('delete' as const), name }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('change' as const), name, path, service }), weight: 2 },
  // Into a group it cannot go.
  { arbitrary: fc.record({ kind: fc.constant('leaveGroup' as const), name }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('class' as const), name, isOurs: fc.boolean() }), weight: 1 },
  // They are corrected in the end.
  {
    arbitrary: fc.record({ kind: fc.constant('harm' as const), name, mistake: fc.constantFrom(...MISTAKES) }),
    weight: 1,
  },
  { arbitrary: fc.record({ kind: fc.constant('replace' as const) }), weight: 1 },
);

type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;
type Wanted = { path: string; service: string; isGrouped: boolean; isOurs: boolean };

test('Ingresses end with their rules, alone or in a group, whatever went wrong on the way', (t) =>
  assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(
        fc.array(fc.tuple(STEP, fc.integer({ min: 0, max: 40_000 })), { minLength: 5, maxLength: 12 }),
        async (steps) => await play(inner, steps),
      ),
    { numRuns: 6, endOnFailure: true },
  ));

async function play(t: ExecutionContext, steps: readonly (readonly [Step, number])[]): Promise<void> {
  const world = await IngressWorld.start();
  const ips = { web: await world.serve('web'), api: await world.serve('api') };
  const bought = await world.services.buy();
  const calm = FAULTS.map((rule) => world.services.world.scene.host.faults.add(rule));
  const wanted = new Map<string, Wanted>();
  for (const [step, waitMs] of steps) {
    await take(world, wanted, step, bought);
    await world.advance(waitMs);
  }
  for (const end of calm) end();
  for (const [one, { isOurs }] of wanted) {
    const annotations = { [DIRECT]: 'true', [MODE]: null, [CLASS]: isOurs ? 'qcloud' : 'nginx' };
    await world.patch(one, { annotations });
  }
  await world.advance(1_500_000);
  const balancers = world.services.balancers();
  const shown = balancers
    .map(({ loadBalancerId, listeners }) => {
      const rules = [...listeners.values()].flatMap(({ layer7 }) =>
        [...(layer7?.rules.values() ?? [])].map(
          ({ url, targets }) => `${url} ${[...targets.values()].map(({ ip, weight }) => `${ip} ${weight}`).join()}`,
        ),
      );
      return `${loadBalancerId === bought ? 'bought' : 'own'} ${rules.toSorted().join('; ')}`;
    })
    .toSorted();
  const all = [...wanted].filter(([, { isOurs }]) => isOurs);
  const textOf = ({ path: its, service: backend }: Wanted): string => `${its} ${ips[backend as 'web' | 'api']} 10`;
  const alone = all.filter(([, { isGrouped }]) => !isGrouped).map(([, one]) => `own ${textOf(one)}`);
  const byPath = new Map<string, string>();
  for (const [, one] of all.filter(([, { isGrouped }]) => isGrouped).toSorted(([a], [b]) => age(world, a, b)))
    if (!byPath.has(one.path)) byPath.set(one.path, textOf(one));
  const grouped = `bought ${[...byPath.values()].toSorted().join('; ')}`;
  t.deepEqual(shown, [grouped, ...alone].toSorted());
  const vips = new Map(balancers.map(({ vip, loadBalancerId }) => [loadBalancerId, vip]));
  for (const one of NAMES) {
    const want = wanted.get(one);
    const isServed = want?.isOurs === true;
    t.is((world.ingress(one)?.metadata.finalizers ?? []).length, isServed ? 1 : 0, one);
    const id = world.annotation(one, 'kubernetes.io/ingress.qcloud-loadbalance-id') ?? '';
    if (isServed) t.deepEqual(world.addresses(one), [vips.get(id) ?? 'none'], one);
    if (isServed && want.isGrouped) t.is(id, bought);
  }
  await world.stop();
}

function age(world: IngressWorld, one: string, other: string): number {
  const [a, b] = [one, other].map((its) => {
    const { creationTimestamp = '', uid = '' } = world.ingress(its)?.metadata ?? {};
    return `${creationTimestamp} ${uid}`;
  });
  return (a ?? '') < (b ?? '') ? -1 : 1;
}

async function take(world: IngressWorld, wanted: Map<string, Wanted>, step: Step, bought: string): Promise<void> {
  if (step.kind === 'replace') return await world.services.replace();
  const now = wanted.get(step.name);
  if (step.kind === 'create') {
    // One that is being deleted has the name still.
    if (world.ingress(step.name) !== undefined) return;
    const annotations = step.isGrouped ? { [EXISTING]: bought, [GROUP]: 'true' } : {};
    await world.create(step.name, { annotations, spec: ruleOf('/x', HOST) });
    wanted.set(step.name, { path: '/x', service: 'web', isGrouped: step.isGrouped, isOurs: true });
    return;
  }
  if (now === undefined) return;
  if (step.kind === 'delete' || step.kind === 'class') {
    // What is left alone stays when its Ingress goes, or is of another class.
    await world.patch(step.name, { annotations: { [MODE]: null } });
    await world.advance(1_000);
  }
  if (step.kind === 'delete') {
    await world.delete(step.name);
    wanted.delete(step.name);
  } else if (step.kind === 'change') {
    await world.patch(step.name, { spec: ruleOf(step.path, HOST, step.service) });
    Object.assign(now, { path: step.path, service: step.service });
  } else if (step.kind === 'harm') {
    // One that is being released leaves its load balancer, if it is asked to.
    if (now.isOurs) await world.patch(step.name, { annotations: step.mistake });
  } else if (step.kind === 'leaveGroup') {
    if (now.isGrouped)
      await world.patch(step.name, { annotations: { [EXISTING]: null, [GROUP]: null, [CHANGE]: 'true' } });
    now.isGrouped = false;
  } else {
    await world.patch(step.name, { annotations: { [CLASS]: step.isOurs ? 'qcloud' : 'nginx' } });
    now.isOurs = step.isOurs;
  }
}
