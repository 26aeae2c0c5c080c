// Whole programs, with waits: five seconds of a core.
import { join } from 'node:path';
import test from 'ava';
import { decodeNode } from '../../../../ipamd/cache/node-entry.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { NODES } from '../../../../kube/resource-types.ts';
import { writeFileAtomically } from '../../../../runtime/atomic-file.ts';
import { systemClock } from '../../../../runtime/clock.ts';
import { Child } from '../../../../sim/support/child.ts';
import { CloudHost } from '../../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../../sim/vpc/api/http-server.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { waitUntil } from '../../../support/wait-until.ts';
import { startCluster } from '../../../system/cluster.ts';
import { addInstance, CLOUD, nodeOf } from '../../shell/shell-scene.ts';

const MAIN = join(import.meta.dirname, '..', '..', '..', '..', 'ipamd', 'main.ts');

test('the program gives podCIDRs with the published rights, through a kill, and its record outlives it', async (t) => {
  t.timeout(120_000);
  const files = createTempDir('pod-cidrs');
  const cluster = await startCluster({ TKE_ENI_IPAMD_SUBNET_ID: '' });
  const host = new CloudHost(CLOUD, systemClock, { seed: 3, taskMs: [50, 150] });
  const cloud = new CloudServer(host, { region: 'ap-guangzhou' });
  await cloud.start();
  const key = cloud.credentials.add('AKIDcidrs', 'secret-cidrs');
  writeFileAtomically(files.join('key.json'), JSON.stringify(key));
  const { path } = cluster.kubeconfig('tke-eni-ipamd', files.path, new URL(cluster.server.url).host);
  const start = (name: string): Child =>
    new Child([
      ...[process.execPath, MAIN, '--clusterid=cls-cidrs001', '--region=ap-guangzhou', '--protocol=http'],
      ...[`--endpoint=${cloud.endpoint}`, '--credentials=file', `--credentials-file=${files.join('key.json')}`],
      ...[`--kubeconfig=${path}`, '--metrics-address=', '--leader-elect-lease=5s', '--leader-elect-renew=1s'],
      ...['--leader-elect-retry=200ms', '--cloud-timeout=5s', `--leader-elect-name=${name}`],
      ...['--allocate-node-cidrs', '--cluster-cidr=192.168.0.0/20', '--service-cluster-ip-range=192.168.12.0/22'],
      ...['--max-pods-per-node=64', '--default-network=tke-bridge'],
    ]);
  let child = start('lock-1');
  t.teardown(async () => {
    await child.stop('SIGKILL');
    await cloud.close();
    await cluster.close();
    files.close();
  });
  const add = async (name: string): Promise<void> => {
    const instanceId = `ins-shell${name}`;
    if (!host.model.state.instances.has(instanceId)) addInstance(host, instanceId);
    await cluster.admin.create(NODES, nodeOf(name, instanceId));
  };
  const cidrOf = (name: string): Promise<string> =>
    waitUntil(
      () => {
        const nodes = cluster.server.objects('nodes', '') as readonly KubeObject[];
        const node = nodes.find(({ metadata }) => metadata.name === name);
        return node === undefined ? undefined : decodeNode(node).podCidrs[0];
      },
      { what: `the podCIDR of ${name}`, timeoutMs: 30_000, explain: () => child.stdout + child.stderr },
    );
  for (const name of ['n1', 'n2', 'n3']) {
    await add(name);
    await cidrOf(name);
  }
  // The second block of 64 addresses: its bridge is 192.168.0.65.
  t.deepEqual(await Promise.all(['n1', 'n2', 'n3'].map(cidrOf)), [
    '192.168.0.0/26',
    '192.168.0.64/26',
    '192.168.0.128/26',
  ]);
  await child.stop('SIGKILL');
  await cluster.admin.delete(NODES, { name: 'n3' });
  // Another lock: the lease of the killed one is not waited for.
  child = start('lock-2');
  await add('n4');
  t.is(await cidrOf('n4'), '192.168.0.192/26');
  // Whose the block was is not in the record, as its Node went while no ipamd ran: it rests.
  await cluster.admin.delete(NODES, { name: 'n2' });
  await waitUntil(
    () => (recordOf(cluster.server.objects('configmaps', ''))['held']?.includes('"n2"') ? true : undefined),
    {
      what: 'the hold of n2 in the record',
      timeoutMs: 20_000,
      explain: () => child.stdout + child.stderr,
    },
  );
  await add('n2');
  t.is(await cidrOf('n2'), '192.168.0.64/26');
  t.is(recordOf(cluster.server.objects('configmaps', ''))['taken'], '0-3');
  const calls = Object.keys(host.counts()).filter((action) => /NetworkInterfaces?$|PrivateIp/.test(action));
  t.deepEqual(calls, []);
  t.notRegex(child.stdout, /FORBIDDEN/);
});

function recordOf(maps: readonly object[]): Readonly<Record<string, string>> {
  const found = (maps as readonly KubeObject[]).find(({ metadata }) => metadata.name === 'tke-eni-pod-cidrs');
  // The store's objects are those of the API.
  return (found?.['data'] ?? {}) as Readonly<Record<string, string>>;
}
