import test, { type ExecutionContext } from 'ava';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { startCcm } from '../../../cloud-controller-manager/ccm.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { ENDPOINT_SLICES, INGRESSES, NODES, PODS, SECRETS, SERVICES } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { makeCertificate } from '../../../runtime/make-certificate.ts';
import { rulesOfIngresses, rulesOfLoadBalancers } from '../../../sim/kube-api/seed-roles.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { openTestClient } from '../../kube/kube-scene.ts';
import { contractClient } from '../../kube-api/contract/client.ts';
import { type RealApi, startRealApi } from '../../kube-api/real-api.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { bindRole } from '../../system/cluster.ts';
import { ccmConfig } from '../ccm-scene.ts';

const assets = process.env['KUBE_ASSETS'];
const ACCOUNT = 'tke-cloud-controller-manager';
const SUBJECT = { kind: 'ServiceAccount', name: ACCOUNT, namespace: 'kube-system' };
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
const CLUSTER_ROLES = { ...RBAC, plural: 'clusterroles', kind: 'ClusterRole', isNamespaced: false } as const;
const BINDINGS = { ...RBAC, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding', isNamespaced: false } as const;
const ROLES = { ...RBAC, plural: 'roles', kind: 'Role', isNamespaced: true } as const;
const ROLE_BINDINGS = { ...RBAC, plural: 'rolebindings', kind: 'RoleBinding', isNamespaced: true } as const;
const NAMESPACE = 'default';
const HOST = 'www.example.com';
const [INSTANCE, POD_IP, VPC] = ['ins-0000real', '10.0.0.77', 'vpc-00000001'] as const;
const NETWORK = { vpcId: VPC, subnets: [{ subnetId: 'subnet-node0001', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' }] };

/** Grants the published role, those of the components load-balancers and ingresses, and one Secret by name. */
async function grant(admin: KubeClient): Promise<void> {
  const apiVersion = `${RBAC.group}/${RBAC.version}`;
  const bound = (kind: string, name: string) => ({
    subjects: [SUBJECT],
    roleRef: { apiGroup: RBAC.group, kind, name },
  });
  await bindRole(admin, ACCOUNT);
  const rules = [...rulesOfLoadBalancers(), ...rulesOfIngresses()];
  await admin.create(CLUSTER_ROLES, { apiVersion, kind: 'ClusterRole', metadata: { name: 'more' }, rules });
  const all = { apiVersion, kind: 'ClusterRoleBinding', metadata: { name: 'more' } };
  await admin.create(BINDINGS, { ...all, ...bound('ClusterRole', 'more') });
  const metadata = { name: 'site-tls', namespace: NAMESPACE };
  const secret = { apiGroups: [''], resources: ['secrets'], resourceNames: ['site-tls'], verbs: ['get'] };
  await admin.create(ROLES, { apiVersion, kind: 'Role', metadata, rules: [secret] });
  await admin.create(ROLE_BINDINGS, { apiVersion, kind: 'RoleBinding', metadata, ...bound('Role', 'site-tls') });
}

/** A token of the ServiceAccount. */
async function tokenOf(api: RealApi): Promise<string> {
  const accounts = '/api/v1/namespaces/kube-system/serviceaccounts';
  const client = contractClient(api.url, api.token, api.ca);
  await client.call('POST', accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT } });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const { body } = await client.call('POST', `${accounts}/${ACCOUNT}/token`, request);
  return (body['status'] as { readonly token: string }).token;
}

/** A Node, a Service with a Pod, and its slice, as the control plane makes them. */
async function makeBackend(admin: KubeClient, address: string): Promise<void> {
  const named = (name: string, more: object = {}) => ({ name, namespace: NAMESPACE, ...more });
  await admin.create(NODES, {
    ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } },
    spec: { providerID: `qcloud:///100003/${INSTANCE}` },
  });
  const conditions = [{ type: 'Ready', status: 'True' }];
  const status = { addresses: [{ type: 'InternalIP', address }], conditions };
  await admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body: { status }, subresource: 'status' });
  await admin.create(SERVICES, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: named('web') },
    spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  });
  await admin.create(PODS, {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: named('web-0', { labels: { app: 'web' } }) },
    spec: { nodeName: 'n1', terminationGracePeriodSeconds: 0, containers: [{ name: 'web', image: 'none' }] },
  });
  const ready = ['ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' }));
  const ofPod = { phase: 'Running', podIP: POD_IP, podIPs: [{ ip: POD_IP }], conditions: ready };
  await admin.patch(PODS, named('web-0'), { kind: 'merge', body: { status: ofPod }, subresource: 'status' });
  const targetRef = { kind: 'Pod', name: 'web-0', namespace: NAMESPACE };
  await admin.create(ENDPOINT_SLICES, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: named('web-1', { labels: { 'kubernetes.io/service-name': 'web' } }),
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: [{ addresses: [POD_IP], conditions: { ready: true, serving: true, terminating: false }, targetRef }],
  });
}

async function open(t: ExecutionContext, folder: string) {
  const api = await startRealApi(folder);
  const clientAs = (token: string): KubeClient => {
    const { client, close } = openTestClient({ url: api.url, token, ca: api.ca });
    t.teardown(close);
    return client;
  };
  const admin = clientAs(api.token);
  await grant(admin);
  const host = new CloudHost(NETWORK, systemClock, { seed: 5, taskMs: [50, 150] });
  host.model.state.addInstance({ instanceId: INSTANCE, cores: 4, subnetId: 'subnet-node0001' });
  const [eni] = host.model.state.enisOf(INSTANCE);
  const [address = ''] = eni?.ips.keys() ?? [];
  eni?.ips.set(POD_IP, { ip: POD_IP, isPrimary: false, state: 'AVAILABLE' });
  const flags = ['--load-balancers=clb', '--ingress=clb', '--clusterid=cls-real', `--vpc-id=${VPC}`];
  const ccm = await startCcm(ccmConfig('--leader-elect=false', ...flags), {
    ...{ clock: systemClock, log: silentLogger, random: seededRandom(1), release: 'test' },
    kube: clientAs(await tokenOf(api)),
    cloud: createTencentCloud({ api: createInProcessApi(host), clock: systemClock, random: seededRandom(1) }),
  });
  t.teardown(async () => {
    await ccm.close();
    await api.close();
  });
  await makeBackend(admin, address);
  return { admin, host };
}

if (assets === undefined) {
  test.skip('a real kube-apiserver: an Ingress under the published roles (set KUBE_ASSETS to a folder with one)', () => {});
} else {
  test('a real kube-apiserver: an Ingress under the published roles', async (t) => {
    t.timeout(180_000);
    const { admin, host } = await open(t, assets);
    const spec = { commonName: HOST, use: 'server' as const, names: [HOST] };
    const valid = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 86_400_000 };
    const { cert, key } = makeCertificate({ ...spec, ...valid });
    await admin.create(SECRETS, {
      ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls' },
      metadata: { name: 'site-tls', namespace: NAMESPACE },
      stringData: { 'tls.crt': cert, 'tls.key': key },
    });
    const backend = { service: { name: 'web', port: { name: 'http' } } };
    const annotations = {
      'kubernetes.io/ingress.class': 'qcloud',
      'ingress.cloud.tencent.com/direct-access': 'true',
      'ingress.cloud.tencent.com/auto-rewrite': 'true',
    };
    await admin.create(INGRESSES, {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
      metadata: { name: 'site', namespace: NAMESPACE, annotations },
      spec: {
        tls: [{ hosts: [HOST], secretName: 'site-tls' }],
        rules: [{ host: HOST, http: { paths: [{ path: '/', pathType: 'ImplementationSpecific', backend }] } }],
      },
    });
    const site = () => admin.get(INGRESSES, { namespace: NAMESPACE, name: 'site' });
    const rules = (): readonly string[] =>
      [...host.model.state.clb.balancers().values()]
        .flatMap(({ listeners }) => [...listeners.values()])
        .flatMap(({ protocol, layer7 }) =>
          [...(layer7?.rules.values() ?? [])].map(({ domain, url, targets, rewriteTo }) => {
            const ips = [...targets.values()].map(({ ip, port }) => `${ip}:${port}`);
            return `${protocol} ${domain}${url} ${rewriteTo === undefined ? ips : 'redirect'}`;
          }),
        );
    const wanted = [`HTTPS ${HOST}/ ${POD_IP}:8080`, `HTTP ${HOST}/ redirect`].toSorted().join();
    const explain = (): string => `${rules()} ${JSON.stringify(host.counts())}`;
    const isServed = (): true | undefined => (rules().toSorted().join() === wanted ? true : undefined);
    await waitUntil(isServed, { what: 'the rules', timeoutMs: 60_000, explain });
    const made = await waitUntil(async () => addressOf(await site()), {
      what: 'its status',
      timeoutMs: 60_000,
      explain,
    });
    const [balancer] = host.model.state.clb.balancers().values();
    t.is(made, balancer?.vip ?? '');
    t.deepEqual((await site())?.metadata.finalizers, ['networking.tke.cloud.tencent.com/load-balancer-cleanup']);
    await admin.delete(INGRESSES, { namespace: NAMESPACE, name: 'site' });
    const isGone = async (): Promise<true | undefined> => ((await site()) === undefined ? true : undefined);
    await waitUntil(isGone, { what: 'its end', timeoutMs: 60_000, explain });
    t.is(host.model.state.clb.balancers().size, 0);
  });
}

function addressOf(ingress: KubeObject | undefined): string | undefined {
  const status = ingress?.['status'] as
    | { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } }
    | undefined;
  return status?.loadBalancer?.ingress?.[0]?.ip;
}
