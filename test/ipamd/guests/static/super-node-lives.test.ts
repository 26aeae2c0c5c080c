import test from 'ava';
import { seedList } from '../../../../sim/support/seed.ts';
import { seededRandom } from '../../../../sim/support/seeded-random.ts';
import type { FaultRule } from '../../../../sim/vpc/api/faults.ts';
import { IS_LONG, partOf } from '../../../support/suite-part.ts';
import { tellingSeed } from '../../../support/with-seed.ts';
import { StaticCluster } from './static-cluster.ts';
import { VirtualKubelet } from './super-nodes.ts';

const NAMES = ['web-0', 'web-1', 'web-2'] as const;
const PLACES = ['a', 'b', 'eklet-1', 'eklet-1', 'eklet-2'] as const;
const STEPS = 24;
const ACTIONS = ['CreateReserveIpAddresses', 'DescribeReserveIpAddresses', 'DeleteReserveIpAddresses'] as const;

/** One call in five goes wrong in one of these ways. */
const FAULTS: readonly FaultRule[] = [
  { fault: { kind: 'reset', after: true }, actions: ACTIONS, probability: 0.06 },
  { fault: { kind: 'error', code: 'InternalError', after: true }, actions: ACTIONS, probability: 0.04 },
  { fault: { kind: 'http', status: 502 }, actions: ACTIONS, probability: 0.04 },
  { fault: { kind: 'hang', after: true }, actions: ACTIONS, probability: 0.02 },
  { fault: { kind: 'error', code: 'RequestLimitExceeded' }, actions: ACTIONS, probability: 0.02 },
  { fault: { kind: 'stale', ms: 5_000 }, actions: ['DescribeReserveIpAddresses'], probability: 0.2 },
  { fault: { kind: 'partial' }, actions: ['DescribeReserveIpAddresses'], probability: 0.05 },
];

type Scene = { readonly cluster: StaticCluster; readonly eklet: VirtualKubelet };

async function open(flags: readonly string[]): Promise<Scene> {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, flags);
  const eklet = new VirtualKubelet(cluster);
  for (const name of ['eklet-1', 'eklet-2'])
    await eklet.join(name, { 'topology.kubernetes.io/zone': 'ap-guangzhou-3' });
  await cluster.startIpamd();
  return { cluster, eklet };
}

/** Deletes all claims and waits until nothing of them is left in the cluster and in the VPC. */
async function endAll({ cluster, eklet }: Scene, what: string): Promise<void> {
  const { reservations } = cluster.scene.host.model.state.reservedIps;
  const left = (): readonly string[] => [
    ...cluster.objects('vpcipclaims').map(({ metadata }) => metadata.name),
    ...cluster.objects('vpcips').map(({ metadata }) => metadata.name),
    ...[...reservations.values()].map(({ ip }) => `reserved ${ip}`),
  ];
  for (const { metadata } of cluster.objects('vpcipclaims')) await cluster.deleteClaim(metadata.name);
  await eklet.until(
    () => left().length === 0,
    () => `${what}: ${left().join(', ')}; ${NAMES.map((name) => cluster.why(name)).join('; ')}`,
  );
}

/** Kills ipamd at calls of reservations, with its answer lost; `pick` decides for each call, before and after it. */
function killAt({ cluster }: Scene, pick: (action: string, moment: 'before' | 'after') => boolean) {
  let isDue = false;
  cluster.scene.host.gate = async ({ action, moment }) => {
    if (!ACTIONS.some((one) => one === action) || isDue || !pick(action, moment)) return 'go';
    cluster.cutOff();
    isDue = true;
    return 'lose';
  };
  return async (): Promise<void> => {
    if (!isDue) return;
    await cluster.killIpamd();
    isDue = false;
  };
}

/** A random life of three names on two nodes and two super nodes, with faults of the cloud and kills at its calls. */
async function live(seed: number, flags: readonly string[]): Promise<number> {
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const scene = await open(flags);
  const { cluster, eklet } = scene;
  const { host } = cluster.scene;
  const removes = FAULTS.map((rule) => host.faults.add(rule));
  const restart = killAt(scene, () => random() < 0.05);
  const alive = new Map<string, string>();
  const promised = new Map<string, string>();
  let served = 0;
  const check = (): void => {
    for (const [name, uid] of alive) {
      const ip = eklet.ipOf(uid) ?? cluster.ipOf(uid);
      if (ip === undefined) continue;
      if (promised.get(name) === undefined) served += 1;
      const before = promised.get(name) ?? ip;
      if (before !== ip) throw new Error(`seed ${seed}: ${name} had ${before} and has ${ip}`);
      promised.set(name, ip);
    }
  };
  const pass = async (ms: number): Promise<void> => {
    const untilMs = cluster.scene.clock.monotonicMs() + ms;
    while (cluster.scene.clock.monotonicMs() < untilMs) {
      await eklet.step();
      await restart();
      check();
    }
  };
  for (let step = 0; step < STEPS; step++) {
    const name = pick(NAMES);
    const dice = random();
    if (dice < 0.75) {
      if (alive.delete(name)) await eklet.deletePod(name);
      if (dice < 0.6) alive.set(name, await cluster.createPod(name, pick(PLACES)));
    } else if (dice < 0.85 && !alive.has(name) && cluster.claim(name) !== undefined) {
      await cluster.deleteClaim(name);
      promised.delete(name);
    } else if (dice < 0.92) await cluster.killIpamd();
    await pass(random() * 6_000);
  }
  for (const remove of removes) remove();
  host.gate = undefined;
  await restart();
  await eklet.until(
    () => [...alive.values()].every((uid) => (eklet.ipOf(uid) ?? cluster.ipOf(uid)) !== undefined),
    () => `seed ${seed} waits forever: ${NAMES.map((name) => `${name} ${cluster.why(name)}`).join('; ')}`,
  );
  check();
  for (const name of alive.keys()) await eklet.deletePod(name);
  await endAll(scene, `seed ${seed}`);
  await cluster.stopIpamd();
  return served;
}

for (const flags of [[], ['--reserve-kept-addresses']]) {
  for (const seed of seedList(IS_LONG ? 8 : 1)) {
    test(`ReservationRunner: no address is reserved twice, lost or left in a random life${flags.map((one) => ` with ${one}`).join('')} (seed ${seed})`, async (t) => {
      await tellingSeed(t, async () => t.true((await live(seed, flags)) > 0));
    });
  }
}

const MOMENTS = ACTIONS.flatMap((action) =>
  (['before', 'after'] as const).flatMap((moment) => [1, 2].map((nth) => ({ action, moment, nth }))),
);
const isShort = ({ moment, nth }: (typeof MOMENTS)[number]): boolean => moment === 'after' && nth === 1;

for (const { action, moment, nth } of partOf(MOMENTS, isShort)) {
  test(`ReservationRunner: a kill ${moment} call ${nth} of ${action} leaves one reservation, and none in the end`, async (t) => {
    const scene = await open(['--reserve-kept-addresses']);
    const { cluster, eklet } = scene;
    let calls = 0;
    const restart = killAt(scene, (called, at) => called === action && at === moment && ++calls === nth);
    const until = async (holds: () => boolean): Promise<void> => {
      const deadlineMs = cluster.scene.clock.monotonicMs() + 300_000;
      while (!holds()) {
        if (cluster.scene.clock.monotonicMs() > deadlineMs) throw new Error(cluster.why('web-0'));
        await eklet.step();
        await restart();
      }
    };
    const ips = new Set<string | undefined>();
    for (const node of ['eklet-1', 'a', 'eklet-2']) {
      const uid = await cluster.createPod('web-0', node);
      const ipOf = (): string | undefined => eklet.ipOf(uid) ?? cluster.ipOf(uid);
      await until(() => ipOf() !== undefined);
      ips.add(ipOf());
      await eklet.deletePod('web-0');
      await until(() => cluster.phase('web-0') === 'Retained');
    }
    t.is(ips.size, 1);
    await cluster.deleteClaim('web-0');
    const { reservations } = cluster.scene.host.model.state.reservedIps;
    await until(() => cluster.claim('web-0') === undefined);
    t.is(reservations.size, 0);
    // A second life, for calls that the first has only once.
    const uid = await cluster.createPod('web-0', 'eklet-1');
    await until(() => eklet.ipOf(uid) !== undefined);
    await eklet.deletePod('web-0');
    await cluster.deleteClaim('web-0');
    await until(() => cluster.claim('web-0') === undefined);
    t.is(reservations.size, 0);
    t.true(calls >= nth);
    await cluster.stopIpamd();
  });
}
