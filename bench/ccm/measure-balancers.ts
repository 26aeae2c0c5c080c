import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DIRECT_ACCESS_ANNOTATION } from '../../crd/names.ts';
import { ENDPOINT_SLICES, NODES, PODS, SERVICES } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { connectInProcess } from '../../sim/kube-api/in-process.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { CloudServer } from '../../sim/vpc/api/http-server.ts';
import { createTempDir } from '../../test/support/temp-dir.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { createWhole } from '../support/create-whole.ts';
import { readStatusMib } from '../support/process-memory.ts';
import { startCcm } from './start-ccm.ts';

/** What one real process takes that keeps many load balancers; MiB. */
type BalancersProcessReport = { readonly rssMib: number; readonly anonMib: number; readonly peakMib: number };

const VPC = 'vpc-0000bench';
const SUBNET = 'subnet-bench001';
const NAMESPACE = 'default';
const NODE_COUNT = 50;
const SETTLE_MS = 20_000;

/** Runs the packaged process until each Service has its load balancer with all of its Pods, and reads its memory. */
export async function measureBalancersProcess(services: number, endpoints: number): Promise<BalancersProcessReport> {
  await using undo = new AsyncDisposableStack();
  const dir = undo.adopt(createTempDir('bench-ccm'), (one) => one.close()).path;
  const subnets = [{ subnetId: SUBNET, zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' }];
  const host = new CloudHost({ vpcId: VPC, subnets }, systemClock, { taskMs: [200, 800] });
  const { state } = host.model;
  Object.assign(state.clb.limits, { openBalancers: services });
  const cloud = undo.adopt(new CloudServer(host), (one) => one.close());
  writeFileSync(join(dir, 'key.json'), JSON.stringify(cloud.credentials.add('AKIDbench', 'secret')));
  await cloud.start();
  const server = undo.adopt(await startKubeApi(), (one) => one.close());
  const admin = connectInProcess(server.api, { clock: systemClock }).client();
  for (let index = 0; index < NODE_COUNT; index++) {
    const instanceId = `ins-bench${String(index).padStart(3, '0')}`;
    state.addInstance({ instanceId, cores: 4, subnetId: SUBNET });
    const [address = ''] = state.enisOf(instanceId).flatMap((eni) => [...eni.ips.keys()]);
    await createWhole(admin, NODES, {
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: `n${index}` } },
      spec: { providerID: `qcloud:///100003/${instanceId}` },
      status: { addresses: [{ type: 'InternalIP', address }], conditions: [{ type: 'Ready', status: 'True' }] },
    });
  }
  for (let index = 0; index < services; index++) {
    const name = `web-${index}`;
    const found = [];
    for (let pod = 0; pod < endpoints; pod++) {
      const [eni] = state.enisOf(`ins-bench${String(pod % NODE_COUNT).padStart(3, '0')}`);
      const ip = state.subnet(SUBNET).pool.take();
      eni?.ips.set(ip, { ip, isPrimary: false, state: 'AVAILABLE' });
      const metadata = { name: `${name}-${pod}`, namespace: NAMESPACE, labels: { app: name } };
      const conditions = ['ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' }));
      await createWhole(admin, PODS, {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata },
        spec: { nodeName: `n${pod % NODE_COUNT}`, containers: [{ name: 'web', image: 'web' }] },
        status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions },
      });
      const targetRef = { kind: 'Pod', name: metadata.name, namespace: NAMESPACE };
      found.push({ addresses: [ip], conditions: { ready: true, serving: true, terminating: false }, targetRef });
    }
    await admin.create(ENDPOINT_SLICES, {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
      metadata: { name, namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': name } },
      ...{ ports: [{ name: '', protocol: 'TCP', port: 8_080 }], endpoints: found },
    });
    await admin.create(SERVICES, {
      ...{ apiVersion: 'v1', kind: 'Service' },
      metadata: { name, namespace: NAMESPACE, annotations: { [DIRECT_ACCESS_ANNOTATION]: 'true' } },
      spec: {
        type: 'LoadBalancer',
        selector: { app: name },
        ports: [{ port: 80 }],
        allocateLoadBalancerNodePorts: false,
      },
    });
  }
  const flags = { 'leader-elect': 'false', 'load-balancers': 'clb', clusterid: 'cls-0000bench', 'vpc-id': VPC };
  const ccm = undo.adopt(startCcm(dir, cloud.endpoint, server.url, flags), async (child) => void (await child.stop()));
  const bound = (): number =>
    [...state.clb.balancers().values()]
      .flatMap(({ listeners }) => [...listeners.values()])
      .reduce((sum, { targets }) => sum + targets.size, 0);
  await waitUntil(() => bound() === services * endpoints, {
    what: `${services * endpoints} targets`,
    timeoutMs: 900_000,
    everyMs: 1_000,
    explain: () => `${bound()} targets\n${ccm.stdout.slice(-2_000)}${ccm.stderr.slice(-2_000)}`,
  });
  await systemClock.sleep(SETTLE_MS);
  const read = (field: 'VmRSS' | 'RssAnon' | 'VmHWM'): number => readStatusMib(ccm.pid, field);
  return { rssMib: read('VmRSS'), anonMib: read('RssAnon'), peakMib: read('VmHWM') };
}
