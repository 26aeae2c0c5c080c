/** A Service that is changed in quick turns, while Pods come and go: something healthy serves at each moment, and in the end all is as asked for. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../../support/law.ts';
import { published, startWithLists, unprotected } from './published-lists.ts';

const DIRECT = 'service.cloud.tencent.com/direct-access';
const GROUPS = 'service.cloud.tencent.com/security-groups';
const STEP_MS = 500;

const FLIP = fc.oneof(
  fc.record({ kind: fc.constant('direct' as const), value: fc.boolean() }),
  fc.record({ kind: fc.constant('targetPort' as const), value: fc.constantFrom(8_080, 9_090) }),
  fc.record({ kind: fc.constant('name' as const), value: fc.constantFrom('http', 'web'), lagMs: fc.nat(8_000) }),
  fc.record({ kind: fc.constant('affinity' as const), value: fc.boolean() }),
  fc.record({ kind: fc.constant('policy' as const), value: fc.boolean() }),
  fc.record({ kind: fc.constant('refused' as const), value: fc.boolean() }),
  fc.record({ kind: fc.constant('run' as const) }),
  fc.record({ kind: fc.constant('end' as const) }),
  fc.record({ kind: fc.constant('restart' as const) }),
);
type Flip = typeof FLIP extends fc.Arbitrary<infer T> ? T : never;

test('whatever is changed in quick turns, something healthy serves, and what is a target is published', (t) =>
  assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(
        fc.array(fc.tuple(FLIP, fc.oneof(fc.nat(3_000), fc.nat(90_000))), { minLength: 4, maxLength: 10 }),
        async (flips) => await play(inner, flips),
      ),
    { numRuns: 5, endOnFailure: true },
  ));

async function play(t: ExecutionContext, flips: readonly (readonly [Flip, number])[]): Promise<void> {
  const { world, pods } = await startWithLists();
  const spec = { ports: [{ name: 'http', port: 80, nodePort: 30_080 }] };
  await world.create('web', { metadata: { annotations: { [DIRECT]: 'true' } }, spec });
  const kept = await pods.run('web', 'kept', { node: 'n1' });
  const others = new Map<string, string>();
  await world.advance(60_000);
  let what = 'the start';
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      await world.advance(STEP_MS);
      t.true(world.healthy('TCP', 80).length > 0, `after ${what}: ${world.listeners()['TCP/80']}`);
      const nodes = ['n1', 'n2'].map((name) => world.nodeIp(name));
      t.deepEqual(
        unprotected(world).filter((ip) => !nodes.includes(ip)),
        [],
        what,
      );
    }
  };
  const refuse = async (isRefused: boolean): Promise<void> =>
    await world.patch('web', { metadata: { annotations: { [GROUPS]: isRefused ? 'nonsense' : null } } });
  let [isDirect, port] = [true, 8_080];
  for (const [at, [flip, waitMs]] of flips.entries()) {
    what = `${at} ${JSON.stringify(flip)}`;
    if (flip.kind === 'direct') {
      isDirect = flip.value;
      await world.patch('web', { metadata: { annotations: { [DIRECT]: String(flip.value) } } });
    } else if (flip.kind === 'targetPort') {
      port = flip.value;
      await pods.setTargetPort('web', flip.value);
    } else if (flip.kind === 'name') {
      pods.holdSlices();
      await world.patch('web', { spec: { ports: [{ name: flip.value, port: 80, nodePort: 30_080 }] } });
      await advance(flip.lagMs);
      await pods.releaseSlices();
    } else if (flip.kind === 'affinity') {
      await world.patch('web', { spec: { sessionAffinity: flip.value ? 'ClientIP' : 'None' } });
    } else if (flip.kind === 'policy') {
      const [externalTrafficPolicy, internalTrafficPolicy] = flip.value ? ['Local', 'Local'] : ['Cluster', 'Cluster'];
      await world.patch('web', { spec: { externalTrafficPolicy, internalTrafficPolicy } });
    } else if (flip.kind === 'refused') {
      await refuse(flip.value);
    } else if (flip.kind === 'run') others.set(`p${at}`, await pods.run('web', `p${at}`, { node: 'n2' }));
    else if (flip.kind === 'end') {
      const [name] = [...others.keys()];
      if (name === undefined) continue;
      others.delete(name);
      await pods.end(name);
    } else await world.replace();
    await advance(waitMs);
  }
  what = 'all';
  await refuse(false);
  await advance(200_000);
  const nodes = ['n1', 'n2'].map((name) => `${world.nodeIp(name)}:30080 10`);
  const bound = [kept, ...others.values()].map((ip) => `${ip}:${port} 10`);
  t.deepEqual(world.listeners()['TCP/80'], (isDirect ? bound : nodes).toSorted());
  if (isDirect) t.deepEqual(published(world, 'n1'), [kept]);
  await world.stop();
}
