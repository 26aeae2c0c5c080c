import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemHttpGet } from '../../../cloud/tencent/credentials/fetch-sources.ts';
import { findRegion, openCloud } from '../../../cloud/tencent/open-cloud.ts';
import { type RunningIpamd, startIpamd } from '../../../ipamd/ipamd.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { openKubeClient } from '../../../kube/open-client.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { writeFileAtomically } from '../../../runtime/atomic-file.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../sim/vpc/api/http-server.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { startCluster } from '../../system/cluster.ts';
import { CLOUD, ipamdConfig, nodeOf } from './shell-scene.ts';

const NECS = ['nodeeniconfigs', 'networking.tke.cloud.tencent.com'] as const;
const HOME = 'ins-ipamdhome';

/** An API server that asks for rights and tokens, a cloud that asks for signatures, both over HTTP, and ipamd. */
async function start(t: ExecutionContext, flags: (server: CloudServer, dir: string) => readonly string[]) {
  const dir = mkdtempSync(join(tmpdir(), 'tke-test-shell-'));
  const cluster = await startCluster({ TKE_ENI_IPAMD_SUBNET_ID: 'subnet-pods0001' });
  const host = new CloudHost(CLOUD, systemClock, { seed: 3, taskMs: [50, 150] });
  host.model.state.addInstance({ instanceId: HOME, cores: 4, subnetId: 'subnet-node0001', role: 'ipamd' });
  const cloudServer = new CloudServer(host, { region: 'ap-guangzhou' });
  await cloudServer.start();
  const { path, rotate } = cluster.kubeconfig('tke-eni-ipamd', dir, new URL(cluster.server.url).host);
  const read = ipamdConfig(
    '--region=',
    `--endpoint=${cloudServer.endpoint}`,
    '--protocol=http',
    `--metadata-url=${cloudServer.metadataUrl(HOME)}`,
    `--kubeconfig=${path}`,
    ...flags(cloudServer, dir),
  );
  const config = { ...read, metricsAddress: '127.0.0.1:0' };
  const random = seededRandom(1);
  const metrics = createIpamdMetrics(systemClock, { release: 'test' });
  const kube = openKubeClient({
    kubeconfig: path,
    env: {},
    qps: config.kubeClientQps,
    burst: config.kubeClientBurst,
    userAgent: 'tke-eni-ipamd/test',
    clock: systemClock,
    log: silentLogger,
    observer: metrics.kube,
  });
  const region = await findRegion(config, systemHttpGet);
  const { cloud } = openCloud(config, region, {
    clock: systemClock,
    random,
    env: {},
    get: systemHttpGet,
    sessionName: 'test',
    observer: metrics.cloud,
  });
  let serial = 0;
  const ids = { next: () => (++serial).toString(16).padStart(16, '0'), now: () => new Date().toISOString() };
  const runtime = { clock: systemClock, log: silentLogger, random, ids, kube, cloud, release: 'test', metrics };
  const ipamd: RunningIpamd = await startIpamd(config, runtime);
  t.teardown(async () => {
    await ipamd.close();
    kube.close();
    await cloudServer.close();
    await cluster.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const join_ = async (name: string): Promise<void> => {
    const instanceId = `ins-shell${name}`;
    host.model.state.addInstance({ instanceId, cores: 8, subnetId: 'subnet-node0001' });
    await cluster.admin.create(NODES, nodeOf(name, instanceId));
  };
  const awaitWarm = (name: string): Promise<readonly unknown[]> =>
    waitUntil(
      () => {
        const nec = cluster.server.objects(...NECS).find(({ metadata }) => metadata['name'] === name);
        const status = nec?.['status'] as { routeENIIPs?: number; eniInfos?: readonly unknown[] } | undefined;
        return (status?.routeENIIPs ?? 0) >= 5 ? status?.eniInfos : undefined;
      },
      {
        what: `addresses of ${name}`,
        timeoutMs: 30_000,
        explain: () => JSON.stringify(cluster.server.objects(...NECS)),
      },
    );
  const get = async (path_: string): Promise<string> => (await fetch(`http://${ipamd.address}${path_}`)).text();
  return { dir, cluster, host, cloudServer, ipamd, rotate, join: join_, awaitWarm, get };
}

test('ipamd over HTTP: gets a node its ENI, with the key of its instance role and the published ClusterRole', async (t) => {
  const scene = await start(t, () => ['--credentials=role']);
  await scene.join('n1');
  const enis = await scene.awaitWarm('n1');
  t.is(enis.length, 1);
  const tagged = [...scene.host.model.state.enis.values()].filter((eni) => eni.tags['tke-node'] === 'n1');
  t.is(tagged.length, 1);
  t.is(await scene.get('/readyz'), 'ok\n');
  t.is(await scene.get('/healthz'), 'ok\n');
  const metrics = await scene.get('/metrics');
  t.regex(metrics, /^tke_eni_ipamd_cloud_calls_total\{action="CreateNetworkInterface",code="ok"\} 1$/m);
  t.regex(metrics, /^tke_eni_ipamd_addresses\{subnet="subnet-pods0001",state="Assigned"\} 5$/m);
  t.notRegex(metrics, /outcome="FORBIDDEN"/);
});

test('ipamd over HTTP: goes on with rotated credentials, of the cloud and of the API server', async (t) => {
  const scene = await start(t, (server, dir) => {
    const key = server.credentials.add('AKIDfirst', 'secret-first');
    writeFileAtomically(join(dir, 'key.json'), JSON.stringify(key));
    return ['--credentials=file', `--credentials-file=${join(dir, 'key.json')}`];
  });
  await scene.join('n1');
  await scene.awaitWarm('n1');
  const { secretId, secretKey } = scene.cloudServer.credentials.add('AKIDsecond', 'secret-second');
  writeFileAtomically(join(scene.dir, 'key.json'), JSON.stringify({ secretId, secretKey }));
  scene.cloudServer.credentials.revoke('AKIDfirst');
  scene.rotate();
  scene.cluster.server.disconnectWatches();
  await scene.join('n2');
  t.is((await scene.awaitWarm('n2')).length, 1);
});
