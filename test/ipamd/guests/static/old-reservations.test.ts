import test from 'ava';
import { StaticCluster } from './static-cluster.ts';
import { VirtualKubelet } from './super-nodes.ts';

const STALE = { fault: { kind: 'stale', ms: 40_000 }, actions: ['DescribeReserveIpAddresses'] } as const;

/** Super nodes whose reservations are described as of before. */
async function sceneOf() {
  const cluster = await StaticCluster.make({ a: 3 });
  const eklet = new VirtualKubelet(cluster);
  await eklet.join('eklet-1');
  await cluster.startIpamd();
  const { host } = cluster.scene;
  host.faults.add(STALE);
  const { reservations } = host.model.state.reservedIps;
  const start = async (): Promise<string | undefined> => {
    const uid = await cluster.createPod('web-0', 'eklet-1');
    await eklet.until(
      () => eklet.ipOf(uid) !== undefined && cluster.phase('web-0') === 'Bound',
      () => cluster.why('web-0'),
    );
    return eklet.ipOf(uid);
  };
  const end = async (): Promise<void> => {
    await eklet.deletePod('web-0');
    await cluster.deleteClaim('web-0');
    await eklet.until(
      () => cluster.claim('web-0') === undefined,
      () => cluster.why('web-0'),
    );
  };
  return { cluster, start, end, reserved: () => [...reservations.values()].map(({ ip }) => ip) };
}

test('a reservation that was released a moment ago is not taken for that of the next claim of the name', async (t) => {
  const { cluster, start, end, reserved } = await sceneOf();
  await start();
  // Until descriptions show it.
  await cluster.run(cluster.scene.clock.sleep(45_000));
  await end();
  const ip = await start();
  t.deepEqual(reserved(), [ip]);
  await end();
  t.deepEqual(reserved(), []);
  await cluster.stopIpamd();
});
