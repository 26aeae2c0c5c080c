import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { connectInProcess } from '../../sim/kube-api/in-process.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { createTempDir } from '../../test/support/temp-dir.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { createWhole } from '../support/create-whole.ts';
import { readStatusMib } from '../support/process-memory.ts';
import { startCcm } from './start-ccm.ts';

/** Memory of a process; MiB. `anonMib` is RssAnon: without the pages of the executable, which the kernel may drop. */
type Memory = { readonly rssMib: number; readonly anonMib: number };

/** What one real process takes for a cluster of real size. */
type CcmProcessReport = {
  readonly nodes: number;
  readonly startSeconds: number;
  /** All Nodes have been initialised. */
  readonly ready: Memory;
  /** None is ready, and sweeps went on for a while. */
  readonly notReady: Memory;
  readonly peakMib: number;
};

const ZONE = 'ap-guangzhou-3';
const VPC = 'vpc-0000bench';
const SEEN = 'tke.cloud.tencent.com/seen-instance';
const SETTLE_MS = 20_000;
/** As of a node with many images: most of a Node is of them. */
const IMAGES = 50;
const TAINT = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' };

/** Runs the packaged cloud controller manager against an API server and a cloud over HTTP, each apart from it. */
export async function measureCcmProcess(nodes: number): Promise<CcmProcessReport> {
  await using undo = new AsyncDisposableStack();
  const dir = undo.adopt(createTempDir('bench-ccm'), (one) => one.close()).path;
  const cloud = undo.adopt(await startCloud(dir, nodes), async ({ child }) => void (await child.stop()));
  const server = undo.adopt(await startKubeApi(), (one) => one.close());
  const admin = connectInProcess(server.api, { clock: systemClock }).client();
  for (let index = 0; index < nodes; index++) await createWhole(admin, NODES, nodeOf(index));
  const startedMs = performance.now();
  const ccm = undo.adopt(startCcm(dir, cloud.endpoint, server.url), async (child) => void (await child.stop()));
  const explain = (): string => `${ccm.stdout.slice(-2_000)}${ccm.stderr.slice(-2_000)}`;
  const isDone = ({ metadata }: KubeObject): boolean => metadata.annotations?.[SEEN] !== undefined;
  await waitUntil(() => server.objects('nodes').every(isDone), {
    what: `${nodes} Nodes that are initialised`,
    timeoutMs: 600_000,
    everyMs: 1_000,
    explain,
  });
  const startSeconds = (performance.now() - startedMs) / 1000;
  await systemClock.sleep(SETTLE_MS);
  const ready = memoryOf(ccm.pid);
  await setUnknown(admin, nodes);
  await systemClock.sleep(SETTLE_MS);
  return { nodes, startSeconds, ready, notReady: memoryOf(ccm.pid), peakMib: readStatusMib(ccm.pid, 'VmHWM') };
}

function memoryOf(pid: number): Memory {
  return { rssMib: readStatusMib(pid, 'VmRSS'), anonMib: readStatusMib(pid, 'RssAnon') };
}

async function startCloud(dir: string, nodes: number): Promise<{ readonly child: Child; readonly endpoint: string }> {
  const subnets = [{ subnetId: 'subnet-bench001', zone: ZONE, cidr: '10.0.0.0/16' }];
  const instances = Array.from({ length: nodes }, (_, index) => ({
    instanceId: instanceOf(index),
    instanceType: 'S5.2XLARGE16',
    cores: 8,
    subnetId: 'subnet-bench001',
  }));
  const spec = join(dir, 'cloud.json');
  writeFileSync(spec, JSON.stringify({ vpcId: VPC, subnets, instances, vpcEnis: 100_000 }));
  const child = new Child([process.execPath, 'sim/vpc/api/main.ts', '--spec', spec], { env: childEnv() });
  const line = await waitUntil(async () => (child.stdout.includes('\n') ? child.stdout : undefined), {
    what: 'the simulated cloud',
    timeoutMs: 60_000,
    everyMs: 50,
    explain: () => child.stderr,
  });
  const { endpoint, secretId, secretKey } = JSON.parse(line.split('\n')[0] ?? '{}');
  writeFileSync(join(dir, 'key.json'), JSON.stringify({ secretId, secretKey }));
  return { child, endpoint };
}

function nodeOf(index: number): KubeObject {
  const images = Array.from({ length: IMAGES }, (_, image) => ({
    names: [
      `ccr.ccs.tencentyun.com/library/image-${image}@sha256:${String(image).padStart(64, '0')}`,
      `ccr.ccs.tencentyun.com/library/image-${image}:v1.${image}`,
    ],
    sizeBytes: 100_000_000 + image,
  }));
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    reason: `Kubelet${type}`,
    message: `the kubelet reports on ${type} in some words`,
    lastHeartbeatTime: '2026-11-01T00:00:00Z',
    lastTransitionTime: '2026-11-01T00:00:00Z',
  }));
  const resources = { cpu: '8', memory: '32761968Ki', pods: '61', 'ephemeral-storage': '51474912Ki' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `node-${index}`,
      labels: { 'kubernetes.io/hostname': `node-${index}`, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
    },
    spec: { providerID: `tencentcloud:///${ZONE}/${instanceOf(index)}`, taints: [TAINT] },
    status: {
      addresses: [{ type: 'Hostname', address: `node-${index}` }],
      capacity: resources,
      allocatable: resources,
      conditions,
      images,
      nodeInfo: { kernelVersion: '5.4.241', osImage: 'TencentOS Server 3.1', kubeletVersion: 'v1.30.0' },
    },
  };
}

async function setUnknown(admin: KubeClient, nodes: number): Promise<void> {
  const body = { status: { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }] } };
  for (let index = 0; index < nodes; index++)
    await admin.patch(NODES, { name: `node-${index}` }, { kind: 'strategic', body, subresource: 'status' });
}

function instanceOf(index: number): string {
  return `ins-${index.toString(36).padStart(8, '0')}`;
}
