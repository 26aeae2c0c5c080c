import test from 'ava';
import { seedList } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { tellingSeed } from '../../support/with-seed.ts';
import { StaticCluster } from './static-cluster.ts';

const NAMES = ['web-0', 'web-1', 'web-2', 'web-3'] as const;
const STEPS = 40;

/** One random life of four names on three nodes: moved, deleted by force, scaled, forgotten, while ipamd is killed. */
async function live(seed: number): Promise<readonly string[]> {
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const cluster = await StaticCluster.make({ a: 3, b: 3, c: 4 }, [
    '--claim-expired-duration=5m',
    '--static-takeover-after=30s',
  ]);
  await cluster.startIpamd();
  const alive = new Map<string, string>();
  const told: string[] = [];
  const remove = async (name: string, isForced: boolean): Promise<void> => {
    if (alive.delete(name)) await cluster.deletePod(name, isForced);
  };
  const create = async (name: string): Promise<void> => {
    if (!alive.has(name)) alive.set(name, await cluster.createPod(name, pick(['a', 'a', 'b', 'b', 'c'])));
  };
  for (let step = 0; step < STEPS; step++) {
    const name = pick(NAMES);
    const dice = random();
    if (dice < 0.35) await create(name);
    else if (dice < 0.5) {
      await remove(name, false);
      await create(name);
    } else if (dice < 0.6) {
      const old = alive.get(name);
      await remove(name, true);
      await create(name);
      await cluster.pass(random() * 3_000);
      if (old !== undefined) cluster.stopSandbox(old);
    } else if (dice < 0.7) await remove(name, false);
    else if (dice < 0.78 && cluster.claim(name) !== undefined) await cluster.deleteClaim(name);
    else if (dice < 0.88) await cluster.killIpamd();
    else if (dice < 0.94) await cluster.setReady('b', cluster.deadNodes.has('b'));
    else await cluster.pass(random() * 40_000);
    await cluster.pass(random() * 4_000);
    told.push(...cluster.broken());
  }
  if (cluster.deadNodes.has('b')) await cluster.setReady('b', true);
  await cluster.until(
    () => [...alive].every(([name, uid]) => cluster.ipOf(uid) !== undefined || isElsewhere(cluster, name)),
    `seed ${seed}: waits for ever: ${NAMES.map((name) => `${name} ${cluster.why(name)}`).join('; ')}`,
  );
  for (const name of [...alive.keys()]) await remove(name, false);
  await cluster.until(
    () => cluster.objects('vpcipclaims').length + cluster.objects('vpcips').length === 0,
    `seed ${seed}: outlives its expiry`,
  );
  await cluster.pass(30_000);
  for (const node of ['a', 'b', 'c']) {
    const marked = (cluster.statusOf(node).eniInfos ?? []).flatMap(({ addresses = [] }) =>
      addresses.filter(({ claim }) => claim !== undefined),
    );
    if (marked.length > 0) told.push(`marks are left on ${node}`);
  }
  told.push(...cluster.broken());
  await cluster.stopIpamd();
  return told;
}

function isElsewhere(cluster: StaticCluster, name: string): boolean {
  return cluster.why(name).startsWith('AddressElsewhere');
}

for (const seed of seedList(IS_LONG ? 6 : 2)) {
  test(`startIpamd: keeps, moves and ends addresses through a random life (seed ${seed})`, async (t) => {
    await tellingSeed(t, async () => t.deepEqual(await live(seed), []));
  });
}
