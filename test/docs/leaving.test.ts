/**
 * The commands of docs/uninstall.md themselves, against a simulated API server and cloud with all that this system puts a finalizer
 * on or makes in the cloud. `test/cluster/leaving.test.ts` runs them with kubectl, on real nodes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { startCcm } from '../../cloud-controller-manager/ccm.ts';
import { FINALIZED_KINDS } from '../../crd/left-behind.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { INGRESSES, NODES, SECRETS, SERVICES } from '../../kube/resource-types.ts';
import { routeDescription } from '../../pod-routes/decide-routes.ts';
import { silentLogger } from '../../runtime/log.ts';
import { makeCertificate } from '../../runtime/make-certificate.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import { ccmConfig } from '../cloud-controller-manager/ccm-scene.ts';
import { shellCommandsOf } from '../cluster/doc-commands.ts';
import { DirectCluster } from '../ipamd/direct/direct-cluster.ts';
import type { PodCluster } from '../ipamd/shell/pod-cluster.ts';
import { StaticCluster } from '../ipamd/static/static-cluster.ts';
import { hasOurFinalizer, PageKubectl } from './page-kubectl.ts';

const LINES = shellCommandsOf(readFileSync(join(import.meta.dirname, '../../docs/uninstall.md'), 'utf8')).flatMap(
  ({ heading, lines }) => lines.map((line) => ({ heading, line })),
);
const CLUSTER = 'cls-shell001';
const VPC = 'vpc-00000001';
const DAY_MS = 86_400_000;
const CCM_FLAGS = [
  '--load-balancers=clb',
  '--ingress=clb',
  '--routes=global',
  '--cluster-cidr=172.16.0.0/16',
  `--clusterid=${CLUSTER}`,
  `--vpc-id=${VPC}`,
  '--leader-elect=false',
];
const EIP = 'tke.cloud.tencent.com/eip-attributes';

/** How many of each thing there are in the cloud. */
function cloudOf({ scene }: PodCluster) {
  const { model } = scene.host;
  model.advance(scene.clock.nowMs());
  const { state } = model;
  const enis = [...state.enis.values()];
  return {
    ENIs: enis.filter((eni) => !eni.isPrimary).length,
    EIPs: state.eips.size,
    'reserved addresses': state.reservedIps.reservations.size,
    'load balancers': state.clb.balancers().size,
    'security groups': state.securityGroups.madeAsOf(state.nowMs).size,
    certificates: state.certificates.all().length,
    routes: state.globalRoutes.size,
  };
}

/** `plural` of all objects with a finalizer of ours. */
function finalizedOf({ scene: { server } }: PodCluster): readonly string[] {
  const groups = ['', 'networking.k8s.io', 'networking.tke.cloud.tencent.com'];
  return FINALIZED_KINDS.flatMap(({ plural }) =>
    groups.flatMap((group) =>
      (server.objects(plural, group) as readonly KubeObject[]).flatMap(({ metadata }) =>
        hasOurFinalizer(metadata) ? [plural] : [],
      ),
    ),
  );
}

async function create(
  cluster: PodCluster,
  type: Parameters<PodCluster['scene']['kube']['create']>[0],
  object: KubeObject,
) {
  await cluster.run(cluster.scene.kube.create(type, object));
}

/** A Node with a podCIDR and an address, as load balancers and routes need it. */
async function joinNode(cluster: PodCluster, name: string): Promise<void> {
  const { state } = cluster.scene.host.model;
  const instanceId = `ins-node${name}`;
  state.addInstance({ instanceId, subnetId: 'subnet-node0001', cores: 8 });
  const [address = ''] = state.enisOf(instanceId).flatMap((eni) => [...eni.ips.keys()]);
  await create(cluster, NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { providerID: `qcloud:///100003/${instanceId}`, podCIDR: '172.16.1.0/24', podCIDRs: ['172.16.1.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address }], conditions: [{ type: 'Ready', status: 'True' }] },
  });
}

async function startController(cluster: PodCluster) {
  const { clock, host, server } = cluster.scene;
  const random = seededRandom(9);
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random });
  const kube = server.client({ userAgent: 'ccm' });
  const about = { release: 'test', identity: 'ccm' };
  return await startCcm(ccmConfig(...CCM_FLAGS), { clock, log: silentLogger, random, kube, cloud, ...about });
}

/** Services with load balancers of their own, shared, and with source ranges; an Ingress with a certificate. */
async function balance(cluster: PodCluster): Promise<void> {
  const service = (name: string, spec: object = {}, annotations: Readonly<Record<string, string>> = {}) =>
    create(cluster, SERVICES, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'default', annotations },
      spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80 }], ...spec },
    });
  await service('web');
  await service('ranged', { loadBalancerSourceRanges: ['10.0.0.0/8'] });
  await service('shared', {}, { [SERVICE_ANNOTATION.pool]: 'edge' });
  const nowMs = cluster.scene.clock.nowMs();
  const validity = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS };
  const { cert, key } = makeCertificate({
    commonName: 'a.example.com',
    use: 'server',
    names: ['a.example.com'],
    ...validity,
  });
  const textOf = (text: string): string => Buffer.from(text).toString('base64');
  await create(cluster, SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'tls', namespace: 'default' },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': textOf(cert), 'tls.key': textOf(key) },
  });
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const paths = [{ path: '/', pathType: 'ImplementationSpecific', backend }];
  await create(cluster, INGRESSES, {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'site', namespace: 'default', annotations: { 'kubernetes.io/ingress.class': 'qcloud' } },
    spec: {
      tls: [{ hosts: ['a.example.com'], secretName: 'tls' }],
      rules: [{ host: 'a.example.com', http: { paths } }],
    },
  });
}

/** Follows the page; returns what is in the cloud then. */
async function leave(t: ExecutionContext, cluster: PodCluster, kubectl: PageKubectl) {
  for (const { heading, line } of LINES)
    await kubectl.run(line).catch((error: Error) => {
      throw new Error(`${heading}: ${line}: ${error.message}`);
    });
  t.deepEqual(finalizedOf(cluster), []);
  return cloudOf(cluster);
}

test('docs/uninstall.md: load balancers, certificates, kept addresses and EIPs: nothing is left but the routes that it names', async (t) => {
  const cluster = await StaticCluster.make({ n1: 3 }, ['--reserve-kept-addresses=true']);
  await joinNode(cluster, 'n2');
  await cluster.startIpamd();
  const ccm = await startController(cluster);
  await cluster.createPod('db-0', 'n1', { [EIP]: '{"Bandwidth":50,"ISP":"BGP"}' });
  await cluster.createPod('db-1', 'n1');
  await cluster.until(() => cluster.sandboxes.size === 2, 'Pods');
  await cluster.deletePod('db-1');
  await balance(cluster);
  const all = {
    EIPs: 1,
    'reserved addresses': 1,
    'load balancers': 4,
    'security groups': 1,
    certificates: 1,
    routes: 1,
  };
  const isMade = (): boolean => {
    const there: Readonly<Record<string, number>> = cloudOf(cluster);
    return Object.entries(all).every(([name, count]) => there[name] === count);
  };
  await cluster.until(isMade).catch(() => t.like(cloudOf(cluster), all));
  const kinds = new Set(finalizedOf(cluster));
  for (const kind of ['nodeeniconfigs', 'vpcipclaims', 'eipclaims', 'services', 'ingresses'])
    t.true(kinds.has(kind), kind);
  const programs = {
    'tke-eni-ipamd': () => cluster.stopIpamd(),
    'tke-cloud-controller-manager': () => cluster.run(ccm.close()),
  };
  const left = await leave(t, cluster, new PageKubectl(cluster, programs, () => ['db-0']));
  const none = Object.fromEntries(Object.keys(left).map((name) => [name, 0]));
  t.deepEqual(left, { ...none, routes: 1 } as typeof left);
  const [route] = cluster.scene.host.model.state.globalRoutes.values();
  t.is(route?.description, routeDescription(CLUSTER), 'what the page says of them');
});

test('docs/uninstall.md: kept ENIs: nothing is left', async (t) => {
  const cluster = await DirectCluster.make({ n1: 3 }, { cores: 8 });
  await cluster.startIpamd();
  await cluster.createKept('db-0', 'n1');
  await cluster.createKept('db-1', 'n1');
  await cluster.until(() => cluster.sandboxes.size === 2, 'Pods');
  await cluster.deletePod('db-1');
  await cluster.pass(30_000);
  const kinds = new Set(finalizedOf(cluster));
  t.true(kinds.has('vpcenis'), [...kinds].join());
  t.true(cloudOf(cluster).ENIs >= 2);
  const programs = {
    'tke-eni-ipamd': () => cluster.stopIpamd(),
    'tke-cloud-controller-manager': async () => undefined,
  };
  const left = await leave(t, cluster, new PageKubectl(cluster, programs, () => ['db-0']));
  t.deepEqual(
    Object.entries(left).filter(([, count]) => count > 0),
    [],
  );
});
