/** Two packaged processes, of which the leader is killed, or stands still for longer than its lease: never two at work. */
import { writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { NODES } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { connectInProcess } from '../../sim/kube-api/in-process.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { CloudServer } from '../../sim/vpc/api/http-server.ts';
import { buildExecutables } from '../../tools/build.ts';
import { executablePath } from '../support/executables.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

const CLOUD = {
  vpcId: 'vpc-00000001',
  subnets: [{ subnetId: 'subnet-node0001', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' }],
} as const;
const LEASE_MS = 8_000;
const FLAGS = [
  `--leader-elect-lease-duration=${LEASE_MS / 1_000}s`,
  '--leader-elect-retry-period=500ms',
  '--node-monitor-period=1s',
  '--metrics-address=',
];
const TAINT = { key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' };
const GROUPS = ['system:masters', 'system:authenticated'];
const CHANGES: readonly string[] = ['create', 'update', 'patch', 'delete'];

/** A cluster with a Node that always gets work, and who did it, one after the other. */
async function open(t: ExecutionContext, lock: string) {
  const folder = createTempDir('ccm-two');
  const server = await startKubeApi({ authorization: 'rbac' });
  const admin = connectInProcess(server.api, { clock: systemClock }).client({ userAgent: 'admin' });
  const host = new CloudHost(CLOUD, systemClock, { seed: 3 });
  const cloud = new CloudServer(host, { region: 'ap-guangzhou' });
  await cloud.start();
  const workers: string[] = [];
  const draw = server.faults.actionsFor.bind(server.faults);
  server.faults.actionsFor = (sign) => {
    const isWork = sign.user !== 'kubernetes-admin' && sign.resource.startsWith('nodes') && CHANGES.includes(sign.verb);
    if (isWork) workers.push(sign.user);
    return draw(sign);
  };
  const { instanceId } = host.model.state.addInstance({
    instanceId: 'ins-two00001',
    cores: 4,
    subnetId: 'subnet-node0001',
  });
  const spec = { providerID: `tencentcloud:///ap-guangzhou-3/${instanceId}` };
  const status = { conditions: [{ type: 'Ready', status: 'True', reason: 'Kubelet' }] };
  await admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec, status });
  const ended = new AbortController();
  const giving = (async () => {
    while (!ended.signal.aborted) {
      const body = { spec: { taints: [TAINT] } };
      await admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body });
      await systemClock.sleep(100, ended.signal).catch(() => {});
    }
  })();
  const children: Child[] = [];
  t.teardown(async () => {
    ended.abort();
    await giving;
    for (const child of children) await child.stop();
    await cloud.close();
    await server.close();
    folder.close();
  });
  const start = (name: string): Child => {
    const { secretId, secretKey } = cloud.credentials.add(`AKID${name}`, 'good-secret');
    const path = folder.join(`kubeconfig-${name}`);
    writeFileSync(
      path,
      renderKubeconfig({ url: server.url, token: server.addToken({ username: name, groups: GROUPS }) }),
    );
    const own = [`--kubeconfig=${path}`, '--region=ap-guangzhou', `--endpoint=${cloud.endpoint}`, '--protocol=http'];
    const env = {
      PATH: childEnv()['PATH'] ?? '',
      POD_NAME: name,
      TENCENTCLOUD_SECRET_ID: secretId,
      TENCENTCLOUD_SECRET_KEY: secretKey,
    };
    const argv = [
      executablePath('tke-cloud-controller-manager'),
      ...own,
      ...FLAGS,
      `--leader-elect-resource-lock=${lock}`,
    ];
    const child = new Child(argv, { env });
    children.push(child);
    return child;
  };
  const untilWorks = async (name: string): Promise<void> => {
    const seen = workers.length;
    const explain = () => children.map(({ stdout, stderr }) => `${stdout}${stderr}`.slice(-3_000)).join('\n');
    const works = () => workers.slice(seen).filter((one) => one === name).length >= 3;
    await waitUntil(works, { what: `${name} works`, timeoutMs: 60_000, everyMs: 50, explain });
  };
  /** Who worked, without repetitions. */
  const turns = (): readonly string[] => workers.filter((one, index) => one !== workers[index - 1]);
  return { start, untilWorks, turns };
}

test.before('packages the executable', async (t) => {
  t.timeout(300_000);
  await buildExecutables(['tke-cloud-controller-manager']);
});

for (const lock of ['endpoints', 'leases']) {
  test.serial(`tke-cloud-controller-manager: two processes are never at work at once, by ${lock}`, async (t) => {
    t.timeout(240_000);
    const { start, untilWorks, turns } = await open(t, lock);
    const one = start('one');
    await untilWorks('one');
    const two = start('two');
    await systemClock.sleep(2_000);
    // A machine that stands still: its leader does not know that time passed.
    one.kill('SIGSTOP');
    await untilWorks('two');
    one.kill('SIGCONT');
    await systemClock.sleep(2 * LEASE_MS);
    await untilWorks('two');
    t.deepEqual(turns(), ['one', 'two']);
    two.kill('SIGKILL');
    await untilWorks('one');
    t.deepEqual(turns(), ['one', 'two', 'one']);
    one.kill('SIGKILL');
    start('three');
    await untilWorks('three');
    t.deepEqual(turns(), ['one', 'two', 'one', 'three']);
  });
}
