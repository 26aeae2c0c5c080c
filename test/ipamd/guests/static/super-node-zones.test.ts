import test from 'ava';
import type { Fault } from '../../../../sim/vpc/api/faults.ts';
import { StaticCluster } from './static-cluster.ts';
import { VirtualKubelet } from './super-nodes.ts';

const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Super nodes whose label has a zone's number, or name; each Pod of its own name. */
async function sceneOf(labels: Readonly<Record<string, string>>) {
  const cluster = await StaticCluster.make({});
  const eklet = new VirtualKubelet(cluster);
  for (const [node, zone] of Object.entries(labels)) await eklet.join(node, { [ZONE_LABEL]: zone });
  await cluster.startIpamd();
  const { host } = cluster.scene;
  const asked = (): number => host.seen.filter(({ action }) => action === 'DescribeZones').length;
  const run = async (name: string, node: string): Promise<string> => {
    const uid = await cluster.createPod(name, node);
    await eklet.until(
      () => eklet.ipOf(uid) !== undefined,
      () => `${name}: ${cluster.why(name)}`,
    );
    return eklet.ipOf(uid) ?? '';
  };
  return { cluster, eklet, host, asked, run };
}

test('the number of a zone in the label of a super node: the address is of a subnet of that zone, also after a restart', async (t) => {
  const { cluster, eklet, asked, run } = await sceneOf({ three: '100003', four: '100004', named: 'ap-guangzhou-4' });
  t.regex(await run('web-0', 'three'), /^10\.1\./);
  t.regex(await run('web-1', 'four'), /^10\.2\./);
  t.regex(await run('web-2', 'three'), /^10\.1\./);
  t.regex(await run('web-3', 'named'), /^10\.2\./);
  t.is(asked(), 1);
  await cluster.killIpamd();
  await eklet.pass(10_000);
  for (const name of ['web-0', 'web-1']) t.regex(cluster.why(name), /^AddressBound/);
  // A subnet never leaves its zone, and the claim says so.
  await eklet.deletePod('web-0');
  await eklet.until(
    () => cluster.phase('web-0') === 'Retained',
    () => cluster.why('web-0'),
  );
  await cluster.createPod('web-0', 'four');
  await eklet.until(
    () => cluster.why('web-0').startsWith('AddressElsewhere'),
    () => cluster.why('web-0'),
  );
  t.regex(cluster.why('web-0'), /in zone ap-guangzhou-3, node four in zone ap-guangzhou-4/);
  await cluster.stopIpamd();
});

test('a number that no zone of the region has: any subnet, and the cloud is not asked for each Pod', async (t) => {
  const { cluster, asked, run } = await sceneOf({ far: '160001' });
  t.regex(await run('web-0', 'far'), /^10\./);
  t.regex(await run('web-1', 'far'), /^10\./);
  t.is(asked(), 1);
  await cluster.stopIpamd();
});

const FAILURES: readonly { readonly what: string; readonly fault: Fault; readonly waits: boolean }[] = [
  { what: 'does not answer', fault: { kind: 'http', status: 502 }, waits: true },
  { what: 'refuses', fault: { kind: 'error', code: 'UnauthorizedOperation' }, waits: false },
];

for (const { what, fault, waits } of FAILURES) {
  test(`the cloud ${what} when asked for zones: a Pod of a super node ${waits ? 'waits' : 'gets an address of any zone'}`, async (t) => {
    const { cluster, eklet, host } = await sceneOf({ four: '100004' });
    const remove = host.faults.add({ fault, actions: ['DescribeZones'], probability: 1 });
    const uid = await cluster.createPod('web-0', 'four');
    await eklet.pass(60_000);
    t.is(eklet.ipOf(uid) === undefined, waits);
    remove();
    await eklet.until(
      () => eklet.ipOf(uid) !== undefined,
      () => cluster.why('web-0'),
    );
    t.regex(eklet.ipOf(uid) ?? '', waits ? /^10\.2\./ : /^10\.[12]\./);
    await cluster.stopIpamd();
  });
}
