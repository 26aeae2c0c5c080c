/**
 * Random lives of Services while two replicas take the lock in turns: one is killed at a call, or cut off from the API server, while
 * calls of both sides go wrong and people copy Services and edit load balancers. In the end all is as it is asked for.
 */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { RunningCcm } from '../../../cloud-controller-manager/ccm.ts';
import { CONTROLLERS } from '../../../cloud-controller-manager/term/controllers.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { SERVICES } from '../../../kube/resource-types.ts';
import type { FaultRule as KubeFault } from '../../../sim/kube-api/faults.ts';
import { assertLaw } from '../../support/law.ts';
import { type Crash, ProcessLives } from '../process-lives.ts';
import { CLOUD_FAULTS, FAULT_CHANCE, remaindersOf, shownOf } from './lives-oracle.ts';
import { doDeed, PORTS, RANGES, type Wanted } from './service-deeds.ts';
import { CLUSTER, ServiceWorld } from './service-world.ts';

const FLAGS = ['--load-balancers=clb', `--clusterid=${CLUSTER}`, '--vpc-id=vpc-00000001'];
const LEASE_MS = 15_000;
/** Until everything is compared again, whatever went wrong. */
const SETTLE_MS = 1_500_000;
const PERSON = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;

const KUBE_FAULTS: readonly KubeFault[] = [
  { action: { kind: 'status', code: 500 }, chance: FAULT_CHANCE },
  { action: { kind: 'status', code: 409, reason: 'Conflict' }, chance: FAULT_CHANCE, verbs: ['update', 'patch'] },
  { action: { kind: 'drop-before' }, chance: FAULT_CHANCE },
  { action: { kind: 'drop-after' }, chance: FAULT_CHANCE, verbs: ['update', 'patch', 'create'] },
  { action: { kind: 'watch-delay', ms: 3_000 }, chance: 0.2, verbs: ['watch'] },
  { action: { kind: 'watch-end', ms: 5_000 }, chance: 0.2, verbs: ['watch'] },
];

const NAMES = ['a', 'b'] as const;
const ALL_NAMES = ['a', 'b', 'a-copy', 'b-copy'] as const;

const anyOf = fc.constantFrom(...ALL_NAMES);
const STEP = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('create' as const), name: fc.constantFrom(...NAMES) }) },
  fc.record({ kind: fc.constant('copy' as const), name: fc.constantFrom(...NAMES) }),
  fc.record({ kind: fc.constant('delete' as const), name: anyOf }),
  fc.record({ kind: fc.constant('port' as const), name: anyOf, port: fc.constantFrom(...PORTS) }),
  fc.record({ kind: fc.constant('move' as const), name: anyOf, isInternal: fc.boolean() }),
  fc.record({ kind: fc.constant('ranges' as const), name: anyOf, range: fc.constantFrom(...RANGES) }),
  fc.record({ kind: fc.constant('edit' as const), name: anyOf, what: fc.constantFrom('weight', 'deregister') }),
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('kill' as const),
      replica: fc.constantFrom(...(['one', 'two'] as const)),
      of: fc.constantFrom(...(['change', 'read'] as const)),
      calls: fc.integer({ min: 1, max: 12 }),
      moment: fc.constantFrom(...(['before', 'after'] as const)),
    }),
  },
  fc.record({ kind: fc.constant('cut' as const), replica: fc.constantFrom(...(['one', 'two'] as const)) }),
);

type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;
type ReplicaName = 'one' | 'two';

/** Two replicas that contend for the lock; one that died is there again after a while. */
class Replicas {
  readonly #world: ServiceWorld;
  readonly #running = new Map<ReplicaName, { readonly ccm: RunningCcm; readonly lives: ProcessLives }>();
  readonly #ending: Promise<void>[] = [];
  kills = 0;

  constructor(world: ServiceWorld) {
    this.#world = world;
  }

  async start(name: ReplicaName): Promise<void> {
    const lives = new ProcessLives();
    const { scene } = this.#world.world;
    const ccm = await scene.start(name, FLAGS, CONTROLLERS, lives.begin());
    this.#running.set(name, { ccm, lives });
  }

  /** Kills a replica at one of its next calls. */
  killAt(name: ReplicaName, { of, at, moment }: Crash): void {
    const lives = this.#running.get(name)?.lives;
    if (lives !== undefined) lives.crash = { of, at: lives.made[of] + at, moment };
  }

  /** Starts those that died, while the other one may have taken the lock. */
  async revive(): Promise<void> {
    for (const [name, { ccm, lives }] of [...this.#running]) {
      if (!lives.isOver) continue;
      this.kills += 1;
      // What is left of it in this process has no effect any more.
      this.#ending.push(ccm.close());
      this.#running.delete(name);
      await this.start(name);
    }
  }

  async stop(): Promise<void> {
    const ending = [...this.#ending, ...[...this.#running.values()].map(({ ccm }) => ccm.close())];
    await this.#world.world.scene.clock.run(Promise.all(ending));
  }
}

let kills = 0;

test('two replicas, one killed now and then: each Service ends with one load balancer as it asks, and nothing is left', async (t) => {
  t.timeout(1_200_000);
  const lived = fc.array(fc.tuple(STEP, fc.integer({ min: 0, max: 40_000 })), { minLength: 8, maxLength: 20 });
  await assertLaw(t, (inner) => fc.asyncProperty(lived, async (steps) => await play(inner, steps)), {
    numRuns: 10,
    endOnFailure: true,
  });
  t.log(`${kills} replicas were killed`);
  t.true(kills > 0);
});

async function play(t: ExecutionContext, steps: readonly (readonly [Step, number])[]): Promise<void> {
  const world = await ServiceWorld.start();
  await world.stop();
  const ips = [await world.join('n1'), await world.join('n2')];
  const bought = await world.buy();
  const [foreign = ''] = world.balancers().map(shownOf);
  const replicas = new Replicas(world);
  for (const name of ['one', 'two'] as const) await replicas.start(name);
  await world.advance(20_000);
  const { host, server } = world.world.scene;
  const left = (of: ReadonlyMap<string, Wanted>): readonly string[] => {
    const balancers = world.balancers();
    const { securityGroups } = host.model.state;
    const services = server.objects('services').filter(({ metadata }) => metadata.namespace === 'default');
    return remaindersOf({ balancers, securityGroups, services }, of, { bought, foreign, ips });
  };
  const calm = [...CLOUD_FAULTS.map((rule) => host.faults.add(rule))];
  // The people of this story are served.
  for (const userAgent of ['one', 'two'])
    for (const rule of KUBE_FAULTS) calm.push(server.api.faults.add({ ...rule, userAgent }));
  const wanted = new Map<string, Wanted>();
  for (const [step, waitMs] of steps) {
    if (step.kind === 'kill') replicas.killAt(step.replica, { of: step.of, at: step.calls, moment: step.moment });
    else if (step.kind === 'cut') {
      const { heal } = server.partition(step.replica);
      await world.advance(LEASE_MS + waitMs);
      heal();
    } else await take(world, wanted, step);
    await world.advance(waitMs);
    await replicas.revive();
  }
  for (const end of calm) end();
  await world.advance(LEASE_MS);
  await replicas.revive();
  await world.advance(SETTLE_MS);
  await replicas.revive();
  kills += replicas.kills;
  t.deepEqual(left(wanted), []);
  for (const name of ALL_NAMES) if (world.service(name) !== undefined && wanted.has(name)) await world.delete(name);
  await world.advance(SETTLE_MS);
  t.deepEqual(left(new Map()), []);
  await replicas.stop();
}

async function take(
  world: ServiceWorld,
  wanted: Map<string, Wanted>,
  step: Exclude<Step, { kind: 'kill' | 'cut' }>,
): Promise<void> {
  const { name } = step;
  const now = wanted.get(name);
  if (step.kind === 'copy') {
    if (now !== undefined) await copy(world, wanted, name, now);
  } else if (step.kind === 'edit') {
    if (now !== undefined) await edit(world, name, step.what);
  } else await doDeed(world, wanted, step.kind === 'create' ? { ...step, isInternal: false } : step);
}

/** As `kubectl get -o yaml`, another name, `kubectl apply`. */
async function copy(world: ServiceWorld, wanted: Map<string, Wanted>, name: string, now: Wanted): Promise<void> {
  const original = world.service(name);
  const other = `${name}-copy`;
  if (original === undefined || world.service(other) !== undefined) return;
  const { annotations = {} } = original.metadata;
  const spec = {
    ...{ type: 'LoadBalancer', selector: { app: name }, ports: [{ port: now.port }] },
    ...(now.range === '' ? {} : { loadBalancerSourceRanges: [now.range] }),
  };
  const metadata = { name: other, namespace: 'default', annotations };
  const object: KubeObject = { apiVersion: 'v1', kind: 'Service', metadata, spec };
  const { clock, admin } = world.world.scene;
  await clock.run(admin.create(SERVICES, object));
  wanted.set(other, { ...now });
}

/** A person changes a target in the console; nothing where there is none. */
async function edit(world: ServiceWorld, name: string, what: string): Promise<void> {
  const uid = world.service(name)?.metadata.uid ?? ' ';
  const balancer = world.balancers().find(({ tags }) => tags['tke-eni-owner']?.endsWith(uid));
  const [listener] = [...(balancer?.listeners.values() ?? [])];
  const [target] = [...(listener?.targets.values() ?? [])];
  if (balancer === undefined || listener === undefined || target === undefined) return;
  const { clock } = world.world.scene;
  const { targets } = world.cloud;
  const its = { listenerId: listener.listenerId, ip: target.ip, port: target.port };
  const act =
    what === 'weight'
      ? targets.setWeights(balancer.loadBalancerId, [{ ...its, weight: 3 }], PERSON)
      : targets.deregister(balancer.loadBalancerId, [its], PERSON);
  // What goes wrong for a person is tried by nobody again.
  await clock.run(
    Promise.resolve(act).then(
      () => undefined,
      () => undefined,
    ),
  );
}
