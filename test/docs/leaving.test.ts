/**
 * The commands of docs/uninstall.md themselves, in a shell, against a simulated API server and cloud with all that can be installed,
 * that this system puts a finalizer on, or makes in the cloud. `test/cluster/leaving.test.ts` runs them with kubectl, on real nodes.
 */
import test, { type ExecutionContext } from 'ava';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { startCcm } from '../../cloud-controller-manager/ccm.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { FINALIZED_KINDS } from '../../crd/left-behind.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { INGRESSES, NODES, resourceTypeOf, SECRETS, SERVICES } from '../../kube/resource-types.ts';
import { routeDescription } from '../../pod-routes/decide-routes.ts';
import { silentLogger } from '../../runtime/log.ts';
import { makeCertificate } from '../../runtime/make-certificate.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import { ccmConfig } from '../cloud-controller-manager/ccm-scene.ts';
import { DirectCluster } from '../ipamd/exclusive/exclusive-cluster.ts';
import { StaticCluster } from '../ipamd/guests/static/static-cluster.ts';
import type { PodCluster } from '../ipamd/shell/pod-cluster.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { install, OVERLAY, oursOf } from './installed.ts';
import { type DeployedProgram, PageKubectl } from './page-kubectl.ts';
import { openPageShell, type PageShell } from './page-shell.ts';
import { balancedIn, lastResort, type PageCommand, perNamespace, STEPS } from './page-uninstall.ts';

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
/** Hosts with a certificate each: more than twenty in ten minutes would take away in time. */
const HOSTS = Array.from({ length: 65 }, (_, at) => `h${at}.example.com`);
const TAINT = 'tke.cloud.tencent.com/eni-ip-unavailable';
const TOLERATION = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' };

/** What the kinds have that are created in a test of the last resort, where they need more than a name. */
const SPECS: Readonly<Record<string, object>> = {
  vpcipclaims: { mode: 'route-eni' },
  vpcenis: { mode: 'route-eni' },
  services: { ports: [{ port: 80 }] },
  ingresses: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
};

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
      (server.objects(plural, group) as readonly KubeObject[]).flatMap(({ metadata: { finalizers = [] } }) =>
        FINALIZED_KINDS.some(({ finalizer }) => finalizers.includes(finalizer)) ? [plural] : [],
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

async function annotate(cluster: PodCluster, service: string, annotations: Readonly<Record<string, string>>) {
  const patch = { kind: 'merge', body: { metadata: { annotations } } } as const;
  await cluster.run(cluster.scene.kube.patch(SERVICES, { name: service, namespace: 'default' }, patch));
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

/** Makes a Service with a load balancer. */
async function serve(
  cluster: PodCluster,
  name: string,
  spec: object = {},
  annotations: Readonly<Record<string, string>> = {},
): Promise<void> {
  await create(cluster, SERVICES, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default', annotations },
    spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80 }], ...spec },
  });
}

/** Services with load balancers of their own, shared, with source ranges, and kept; an Ingress whose hosts have certificates. */
async function balance(cluster: PodCluster): Promise<void> {
  await serve(cluster, 'web');
  await serve(cluster, 'ranged', { loadBalancerSourceRanges: ['10.0.0.0/8'] });
  await serve(cluster, 'shared', {}, { [SERVICE_ANNOTATION.pool]: 'edge' });
  await serve(cluster, 'retained', {}, { 'service.cloud.tencent.com/loadbalance-retain': 'true' });
  await serve(cluster, 'skipped');
  const nowMs = cluster.scene.clock.nowMs();
  const validity = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS };
  const textOf = (text: string): string => Buffer.from(text).toString('base64');
  for (const host of HOSTS) {
    const { cert, key } = makeCertificate({ commonName: host, use: 'server', names: [host], ...validity });
    await create(cluster, SECRETS, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: host, namespace: 'default' },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': textOf(cert), 'tls.key': textOf(key) },
    });
  }
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const paths = [{ path: '/', pathType: 'ImplementationSpecific', backend }];
  await create(cluster, INGRESSES, {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'site', namespace: 'default', annotations: { 'kubernetes.io/ingress.class': 'qcloud' } },
    spec: {
      tls: HOSTS.map((host) => ({ hosts: [host], secretName: host })),
      rules: HOSTS.map((host) => ({ host, http: { paths } })),
    },
  });
}

/** Somebody who follows the page, in a shell. */
class Visitor {
  readonly #cluster: PodCluster;
  readonly #shell: PageShell;
  /** Pods whose deletion stands for that of their workload. */
  readonly #owners: readonly string[];
  /** What has a load balancer, as the page has it listed. */
  #balanced: ReturnType<typeof balancedIn> = [];
  /** Commands that were carried out. */
  #count = 0;

  readonly #hasController: boolean;

  private constructor(cluster: PodCluster, shell: PageShell, owners: readonly string[], hasController: boolean) {
    this.#hasController = hasController;
    this.#cluster = cluster;
    this.#shell = shell;
    this.#owners = owners;
  }

  static async come(
    t: ExecutionContext,
    cluster: PodCluster,
    programs: Readonly<Record<string, DeployedProgram>>,
    owners: readonly string[] = [],
  ): Promise<Visitor> {
    const kubectl = new PageKubectl(cluster, programs, { OVERLAY, COPY: [] });
    const sleep = async ([seconds]: readonly string[]) => {
      await cluster.scene.clock.advance(Number(seconds) * 1_000);
      return { code: 0, stdout: '', stderr: '' };
    };
    const shell = await openPageShell({ kubectl: (argv) => kubectl.run(argv), sleep });
    t.teardown(() => shell.close());
    return new Visitor(cluster, shell, owners, 'tke-cloud-controller-manager' in programs);
  }

  /** Carries a command out, for each node and namespace that it is for. @returns what it printed. @throws RunError, Error */
  async follow({ heading, line }: PageCommand): Promise<string> {
    const nodes = this.#nodes();
    const filled = line
      .replace('NODE...', nodes.join(' '))
      .replace('OWNER...', this.#owners.map((pod) => `pod/${pod}`).join(' '))
      .replace('YOUR-OVERLAY', 'OVERLAY');
    if (line.includes('OWNER...') && this.#owners.length === 0) return '';
    const lines = /\bNODE\b/.test(filled)
      ? nodes.map((node) => filled.replaceAll(/\bNODE\b/g, node))
      : filled.includes('SERVICE-OR-INGRESS...')
        ? perNamespace(filled, this.#balanced)
        : [filled.replaceAll('NAMESPACE', 'default')];
    let printed = '';
    for (const one of lines)
      printed += await this.#shell.sh(one).catch((error: Error) => {
        throw new Error(`${heading}: ${error.message}`);
      });
    if (line.startsWith('kubectl get services,ingresses')) this.#balanced = balancedIn(printed);
    return printed;
  }

  /** Goes on with the page to its end, or to a command; looks at what commands print as the page says. */
  async followAll(until?: string): Promise<void> {
    for (let command = STEPS[this.#count]; command !== undefined; command = STEPS[++this.#count]) {
      const { line } = command;
      if (until !== undefined && line.startsWith(until)) return;
      const printed = await this.follow(command);
      const isLast = STEPS.findLastIndex((one) => one.line === line) === this.#count;
      if (line.startsWith('kubectl get services,ingresses') && isLast && this.#balanced.length > 0)
        throw new Error(`with a load balancer: ${printed}`);
      const isNone = line.startsWith('kubectl get nec,vip,veni,vipc,eipc ') || line.includes('spec.nodeName=');
      const left = isNone ? printed.split('\n').filter((row) => row !== '' && !/^pod\/tke-/.test(row)) : [];
      if (left.length > 0) throw new Error(`${line}: left: ${left.join()}`);
      if (line.includes('_manager_certificates{') && !this.#isNoCertificate(printed)) throw new Error(printed);
      if (line.includes('TAINTS:') && /tencent|eni-ip/.test(printed)) throw new Error(printed);
    }
  }

  /** Without a cloud controller manager nobody answers. */
  #isNoCertificate(printed: string): boolean {
    return this.#hasController ? /^([^\n]* 0\n){2}$/.test(printed) : printed === '';
  }

  #nodes(): readonly string[] {
    return this.#cluster.scene.server.objects('nodes').map(({ metadata }) => metadata.name);
  }
}

test('docs/uninstall.md: load balancers, certificates, kept addresses and EIPs: nothing is left but what it names', async (t) => {
  const cluster = await StaticCluster.make({ n1: 3 }, ['--reserve-kept-addresses=true']);
  await joinNode(cluster, 'n2');
  await cluster.startIpamd();
  const first = await startController(cluster);
  await cluster.createPod('db-0', 'n1', { [EIP]: '{"Bandwidth":50,"ISP":"BGP"}' });
  await cluster.createPod('db-1', 'n1');
  await cluster.until(() => cluster.sandboxes.size === 2, 'Pods');
  await cluster.deletePod('db-1');
  await balance(cluster);
  const all = {
    EIPs: 1,
    'reserved addresses': 1,
    'load balancers': 6,
    'security groups': 1,
    certificates: HOSTS.length,
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
  // The one that leaves has uploaded nothing itself.
  await cluster.run(first.close());
  const ccm = await startController(cluster);
  await annotate(cluster, 'skipped', { 'service.cloud.tencent.com/mode': 'skip' });
  await install(cluster, 'n2');
  const { kube } = cluster.scene;
  await cluster.run(
    kube.patch(
      NODES,
      { name: 'n2' },
      { kind: 'merge', body: { spec: { taints: [{ key: TAINT, effect: 'NoSchedule' }] } } },
    ),
  );
  t.true(oursOf(cluster).length > 50);
  const programs = {
    'tke-eni-ipamd': { stop: () => cluster.stopIpamd() },
    'tke-cloud-controller-manager': {
      stop: () => cluster.run(ccm.close()),
      metrics: () => ccm.metrics.registry.metrics(),
    },
  };
  const visitor = await Visitor.come(t, cluster, programs, ['db-0']);
  await visitor.followAll('kubectl cordon ');
  for (const name of Object.keys(programs)) {
    const [deployment] = cluster.scene.server
      .objects('deployments', 'apps')
      .filter(({ metadata }) => metadata.name === name);
    const tolerations = at(deployment, 'spec', 'template', 'spec', 'tolerations');
    t.true(JSON.stringify(tolerations).includes(JSON.stringify(TOLERATION)), `${name} starts on cordoned nodes`);
  }
  await visitor.followAll('kubectl delete crd tkeserviceconfigs');
  t.true(oursOf(cluster).includes('CustomResourceDefinition/tkeserviceconfigs.cloud.tencent.com'), 'as TKE needs it');
  await visitor.followAll();
  t.deepEqual(finalizedOf(cluster), []);
  t.deepEqual(oursOf(cluster), []);
  for (const { metadata, spec } of cluster.scene.server.objects('nodes'))
    t.notRegex(
      JSON.stringify([metadata.annotations ?? {}, at(spec, 'taints') ?? []]),
      /disable-node-eni|unavailable/,
      metadata.name,
    );
  const left = cloudOf(cluster);
  const none = Object.fromEntries(Object.keys(left).map((name) => [name, 0]));
  t.deepEqual(left, { ...none, 'load balancers': 2, routes: 1 } as typeof left);
  const { state } = cluster.scene.host.model;
  const [route] = state.globalRoutes.values();
  t.is(route?.description, routeDescription(CLUSTER), 'what the page says of them');
  const kept = [...state.clb.balancers().values()];
  t.true(
    kept.every(({ tags }) => JSON.stringify(tags).includes(OWNER_TAG)),
    'by what the page says they are found',
  );
  t.deepEqual(kept.map(({ name }) => name.startsWith('kept_')).toSorted(), [false, true]);
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
  await install(cluster, 'n1');
  const visitor = await Visitor.come(t, cluster, { 'tke-eni-ipamd': { stop: () => cluster.stopIpamd() } }, ['db-0']);
  await visitor.followAll();
  t.deepEqual(finalizedOf(cluster), []);
  t.deepEqual(oursOf(cluster), []);
  t.deepEqual(
    Object.entries(cloudOf(cluster)).filter(([, count]) => count > 0),
    [],
  );
});

for (const { plural, finalizer } of FINALIZED_KINDS)
  test(`docs/uninstall.md: the last resort takes our finalizer alone off ${plural}`, async (t) => {
    const cluster = await StaticCluster.make({ n1: 3 });
    const others = ['example.com/first', 'example.com/last'];
    const [before = '', after = ''] = others;
    const [type] = [SERVICES, INGRESSES, ...RESOURCE_KINDS.map((kind) => resourceTypeOf(kind))].filter(
      (one) => one.plural === plural,
    );
    if (type === undefined) return t.fail(plural);
    const { kube } = cluster.scene;
    const ref = { name: 'web', ...(type.isNamespaced ? { namespace: 'default' } : {}) };
    if (type.group.startsWith('networking.tke')) await cluster.run(installKinds(kube));
    const apiVersion = [type.group, type.version].filter((part) => part !== '').join('/');
    const metadata = { ...ref, finalizers: [before, finalizer, after] };
    await create(cluster, type, { apiVersion, kind: type.kind, metadata, spec: SPECS[plural] ?? {} });
    const visitor = await Visitor.come(t, cluster, {});
    const { list, patch } = lastResort(`${plural}/web`, finalizer);
    const shown: unknown = JSON.parse(await visitor.follow(list));
    t.deepEqual(shown, [before, finalizer, after]);
    await t.throwsAsync(visitor.follow(patch(0)), undefined, 'the place of another one');
    await t.throwsAsync(visitor.follow(patch('INDEX')), undefined, 'not filled in');
    const finalizers = async () => (await cluster.run(kube.get(type, ref)))?.metadata.finalizers;
    t.deepEqual(await finalizers(), [before, finalizer, after]);
    await visitor.follow(patch(1));
    t.deepEqual(await finalizers(), others);
  });
