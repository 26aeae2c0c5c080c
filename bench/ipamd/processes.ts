import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { connectInProcess } from '../../sim/kube-api/in-process.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { createTempDir } from '../../test/support/temp-dir.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { createWhole } from '../support/create-whole.ts';
import { readProcessCpu } from '../support/process-cpu.ts';
import { readStatusMib } from '../support/process-memory.ts';
import { instanceOf, startCloud, ZONE } from './cloud-process.ts';
import { startIpamdProcess } from './ipamd-process.ts';

/** What one real ipamd takes for a cluster of real size. */
type ProcessReport = {
  readonly nodes: number;
  readonly joinSeconds: number;
  readonly rssMib: number;
  readonly peakMib: number;
  /** Share of one processor while nothing happens, percent. */
  readonly idleCpuPercent: number;
  readonly joinCpuSeconds: number;
  readonly pods: number;
  /** Writes of ipamd for each Pod that came and went. */
  readonly writesPerPod: number;
};

const NODES_COUNT = 1_000;
const POD_COUNT = 1_000;
const IDLE_MS = 20_000;

/** Runs the packaged ipamd against an API server and a cloud over HTTP, each apart from it. */
export async function measureProcesses(): Promise<ProcessReport> {
  await using undo = new AsyncDisposableStack();
  const dir = undo.adopt(createTempDir('bench-ipamd'), (one) => one.close()).path;
  const cloud = undo.adopt(await startCloud(dir, NODES_COUNT), async ({ child }) => void (await child.stop()));
  const server = undo.adopt(await startKubeApi(), (one) => one.close());
  const admin = connectInProcess(server.api, { clock: systemClock }).client();
  await fillCluster(admin);
  const ipamd = undo.adopt(
    startIpamdProcess({ dir, cloud, kube: { url: server.url } }),
    async (child) => void (await child.stop('SIGTERM', 30_000)),
  );
  const { pid } = ipamd;
  const startedMs = performance.now();
  const necs = (): readonly KubeObject[] => server.objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com');
  const explain = (): string => `${ipamd.stdout.slice(-2_000)}${ipamd.stderr.slice(-2_000)}`;
  await waitUntil(async () => (necs().length === NODES_COUNT && necs().every(isReady) ? true : undefined), {
    what: `${NODES_COUNT} nodes with their addresses`,
    timeoutMs: 240_000,
    everyMs: 1_000,
    explain,
  });
  const joinSeconds = (performance.now() - startedMs) / 1000;
  const joinCpuSeconds = readProcessCpu(pid).ownS;
  await systemClock.sleep(IDLE_MS);
  const idleCpuPercent = ((readProcessCpu(pid).ownS - joinCpuSeconds) / (IDLE_MS / 1000)) * 100;
  const memory = { rssMib: readStatusMib(pid, 'VmRSS'), peakMib: readStatusMib(pid, 'VmHWM') };
  const writesPerPod = await podWrites(admin, necs(), () => server.store.revision);
  const left = server.objects('vpcips', 'networking.tke.cloud.tencent.com').length;
  if (left > 0) throw new Error(`${left} VpcIPs are left of Pods that are gone`);
  return {
    nodes: NODES_COUNT,
    joinSeconds,
    joinCpuSeconds,
    idleCpuPercent,
    ...memory,
    pods: POD_COUNT,
    writesPerPod,
  };
}

async function fillCluster(admin: KubeClient): Promise<void> {
  await admin.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'tke-eni-ipamd', namespace: 'kube-system' },
    data: { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-bench000:subnet-bench001', TKE_ENI_IPAMD_VPC_ID: 'vpc-0000bench' },
  });
  for (let index = 0; index < NODES_COUNT; index++) {
    await createWhole(admin, NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `node-${index}`, labels: { 'cloud.tencent.com/node-instance-id': instanceOf(index) } },
      spec: { providerID: `tencentcloud:///${ZONE}/${instanceOf(index)}` },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
  }
}

/** One Pod on each node comes and goes: what ipamd writes of it, ours left out. */
async function podWrites(admin: KubeClient, necs: readonly KubeObject[], revision: () => number): Promise<number> {
  const before = revision();
  let own = 0;
  for (const [index, nec] of necs.entries()) {
    const ip = firstIp(nec);
    const name = `pod-${index}`;
    await admin.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', annotations: { 'tke.cloud.tencent.com/networks': 'tke-route-eni' } },
      // No kubelet is there to end it with grace.
      spec: {
        nodeName: nec.metadata.name,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'main', image: 'none' }],
      },
    });
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] };
    await admin.patch(PODS, { namespace: 'default', name }, { kind: 'merge', body: { status }, subresource: 'status' });
    own += 2;
  }
  await atRest(revision);
  for (const index of necs.keys()) {
    await admin.delete(PODS, { namespace: 'default', name: `pod-${index}` });
    own += 1;
  }
  await atRest(revision);
  // The claim goes with its Pod: by the API server's garbage collection, not by ipamd.
  const collected = necs.length;
  return (revision() - before - own - collected) / necs.length;
}

const LOOK_MS = 2_000;
/** Records wait 10 s, `--record-delay`, before they are written. */
const QUIET_LOOKS = 8;

/** Waits until nothing but the leader's lock is written any more. @throws Error when that takes longer than four minutes */
async function atRest(revision: () => number): Promise<void> {
  let seen = -1;
  let quietLooks = 0;
  for (let look = 0; look < 120; look++) {
    const now = revision();
    quietLooks = now - seen <= 3 ? quietLooks + 1 : 0;
    if (quietLooks === QUIET_LOOKS) return;
    seen = now;
    await systemClock.sleep(LOOK_MS);
  }
  throw new Error('ipamd did not come to rest');
}

function firstIp(nec: KubeObject): string {
  // ipamd's own fields, decoded by whoever wrote them.
  const status = nec['status'] as { eniInfos?: { addresses?: { ip: string }[] }[] } | undefined;
  const ip = status?.eniInfos?.[0]?.addresses?.[0]?.ip;
  if (ip === undefined) throw new Error(`${nec.metadata.name} has no address`);
  return ip;
}

function isReady(nec: KubeObject): boolean {
  const status = nec['status'] as { conditions?: { type: string; status: string }[] } | undefined;
  return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
}
