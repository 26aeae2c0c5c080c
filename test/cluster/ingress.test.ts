import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { BACKEND_READY_GATE } from '../../crd/names.ts';
import { SECRETS } from '../../kube/resource-types.ts';
import { type KeyPair, makeKeyPair } from '../../sim/kube-api/pki.ts';
import { certificatesOf } from '../../sim/vpc/api/model/clb/layer7.ts';
import type { ModelLoadBalancer } from '../../sim/vpc/api/model/clb/types.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type LoadTarget, startLoad } from '../system/balanced/load.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { CCM_COMPONENT, CLUSTER_ID, tellOurPods } from './deploy.ts';
import { blockOf } from './doc-commands.ts';
import { readPage } from './page-user.ts';
import { awaitPods, deploymentManifest, spreadOverNodes } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { loadWebServer, WEB_SERVER_IMAGE } from './web-server-image.ts';
import { ROLLOUT_MS, rollDeployment } from './workloads/roll.ts';

// Ingresses of the published manifests: TLS with a Secret on a load balancer of its own, and two Ingresses on one load balancer
// that was bought, by Pods and by node ports; a rolling update under load; and what is left when they are deleted. The client is
// a host of the VPC, the load balancers are those of the test cloud.

const HOST = 'shop.example.com';
const SECRET = 'shop-tls';
const PODS = 3;
const REQUESTS = 4_000;
const PRE_STOP_S = 10;
const SUBNET = { 'kubernetes.io/ingress.subnetId': POD_SUBNET.subnetId };
const DIRECT = { 'ingress.cloud.tencent.com/direct-access': 'true' };
const OTHER_HOST = 'other.example.com';
const NAMES = ['shop', 'one', 'two'];

const running = clusterOfFile(
  () => startRealCluster({ nodes: [{ name: 'node1' }, { name: 'node2' }, { name: 'client', joins: 'later' }] }),
  async (cluster) => {
    await loadWebServer(cluster.dir, cluster.nodes);
    await cluster.deploy({
      components: [CCM_COMPONENT, 'load-balancers', 'ingresses'],
      ccmSettings: { clusterid: CLUSTER_ID, 'vpc-id': cluster.cloud.vpcId, 'load-balancers': 'clb', ingress: 'clb' },
    });
    await cluster.apply(
      deploymentManifest('web', PODS, {
        spec: {
          terminationGracePeriodSeconds: PRE_STOP_S + 3,
          readinessGates: [{ conditionType: BACKEND_READY_GATE }],
          ...spreadOverNodes('web'),
        },
        container: {
          image: WEB_SERVER_IMAGE,
          env: [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          args: ['$(POD)', '80', 'finish'],
          readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 1, timeoutSeconds: 5 },
          lifecycle: { preStop: { sleep: { seconds: PRE_STOP_S } } },
        },
      }),
    );
    const spec = { type: 'NodePort', selector: { app: 'web' }, ports: [{ port: 80 }] };
    await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec }));
  },
);

const client = () => running().cloud.vpc.node('client').netns;
const state = () => running().cloud.host.model.state;
const balancers = (): readonly ModelLoadBalancer[] => [...state().clb.balancers().values()];

/** Rules and their targets, of all load balancers, one line each. */
const rules = (): readonly string[] =>
  balancers().flatMap(({ loadBalancerId, listeners }) =>
    [...listeners.values()].flatMap(({ protocol, port, layer7 }) =>
      [...(layer7?.rules.values() ?? [])].map(({ domain, url, targets }) => {
        const to = [...targets.values()].map((target) => `${target.ip}:${target.port} ${target.weight}`);
        return `${loadBalancerId} ${protocol}:${port} ${domain}${url}: ${to.toSorted().join(', ')}`;
      }),
    ),
  );

const explained = async (error: Error): Promise<never> => {
  const ingresses = await running().kubectl('get', 'ingresses', '-o', 'yaml').catch(String);
  throw new Error(`${error.message}\n${rules().join('\n')}\n${ingresses}\n${await tellOurPods(running())}`);
};

/** Makes an Ingress of class `qcloud` that leads to the Service `web`. */
const createIngress = (name: string, annotations: Readonly<Record<string, string>>, host?: string, tls?: object) => {
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] };
  const rule = host === undefined ? { http } : { host, http };
  const spec = { ingressClassName: 'qcloud', rules: [rule], ...(tls === undefined ? {} : { tls: [tls] }) };
  const metadata = { name, annotations };
  return running().apply(JSON.stringify({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec }));
};

/** Waits until an Ingress has an address; answers with it. */
const addressOf = (name: string): Promise<string> => {
  const path = ['status', 'loadBalancer', 'ingress', 0, 'ip'] as const;
  const look = async () => {
    const ip = at(await running().kubectlJson('get', 'ingress', name), ...path);
    return typeof ip === 'string' && ip;
  };
  return waitUntil(look, { what: `an address of the Ingress ${name}`, timeoutMs: 120_000, everyMs: 500 }).catch(
    explained,
  );
};

/** Waits until curl gets a page that a Pod of the Deployment answers. */
const awaitPage = async (...args: readonly string[]): Promise<void> => {
  const argv = ['curl', '--silent', '--show-error', '--fail', '--max-time', '5', ...args];
  let last = '';
  const look = async () => {
    const { code, stdout, stderr } = await client().tryRun(argv);
    last = `${stdout}${stderr}`;
    return code === 0 && stdout.startsWith('web-');
  };
  const explain = (): string => last;
  const wait = { what: `a page: ${args.join(' ')}`, timeoutMs: 120_000, everyMs: 500, explain };
  await waitUntil(look, wait).catch(explained);
};

let bought = '';
let pair: KeyPair | undefined;
const addresses = new Map<string, string>();

test.serial('TLS with a Secret: an Ingress on a load balancer of its own is served by HTTPS', async (t) => {
  t.timeout(600_000);
  const cluster = running();
  pair = await makeKeyPair(cluster.dir, 'shop', { dns: [HOST] });
  const [crt, key] = [pair.cert, pair.key].map((text) => Buffer.from(text).toString('base64'));
  await cluster.admin.create(SECRETS, {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace: 'default' } },
    ...{ type: 'kubernetes.io/tls', data: { 'tls.crt': crt, 'tls.key': key } },
  });
  const rights = blockOf(readPage('cloud-controller-manager.md'), 'yaml', 'Rights to Secrets of Ingresses');
  await cluster.apply(rights.replaceAll('namespace: shop', 'namespace: default'));
  await createIngress('shop', { ...SUBNET, ...DIRECT }, HOST, { hosts: [HOST], secretName: SECRET });
  const vip = await addressOf('shop');
  addresses.set('shop', vip);
  await awaitPage('--cacert', pair.certPath, '--resolve', `${HOST}:443:${vip}`, `https://${HOST}/`);
  const pods = await awaitPods(cluster, 'app=web', PODS, { timeoutMs: 120_000 });
  const [own] = balancers();
  const wanted = pods.map(({ ip }) => `${ip}:80 10`).toSorted();
  t.deepEqual(rules(), [`${own?.loadBalancerId} HTTPS:443 ${HOST}/: ${wanted.join(', ')}`]);
});

test.serial('two Ingresses share a load balancer that was bought, one by Pods and one by node ports', async (t) => {
  t.timeout(600_000);
  const { host, vpcId } = running().cloud;
  const known = new Set(balancers().map(({ loadBalancerId }) => loadBalancerId));
  const params = { LoadBalancerType: 'INTERNAL', VpcId: vpcId, SubnetId: POD_SUBNET.subnetId };
  const answer = await host.serve('clb', 'CreateLoadBalancer', { ...params, LoadBalancerName: 'bought' });
  t.is(answer.kind, 'answer', JSON.stringify(answer));
  const made = async () => {
    await host.catchUp();
    return balancers().find((one) => !known.has(one.loadBalancerId) && one.state === 'NORMAL')?.loadBalancerId;
  };
  bought = await waitUntil(made, { what: 'a load balancer that was bought', timeoutMs: 10_000, everyMs: 100 });
  const shared = { 'kubernetes.io/ingress.existLbId': bought, 'ingress.cloud.tencent.com/enable-group': 'true' };
  await createIngress('one', { ...shared, ...DIRECT });
  await createIngress('two', shared, OTHER_HOST);
  for (const name of ['one', 'two']) addresses.set(name, await addressOf(name));
  const vip = addresses.get('one') ?? '';
  t.is(addresses.get('two'), vip);
  await awaitPage(`http://${vip}/`);
  await awaitPage('--resolve', `${OTHER_HOST}:80:${vip}`, `http://${OTHER_HOST}/`);
  t.is(balancers().length, 2);
  const [listener, ...more] = balancers().flatMap((one) =>
    one.loadBalancerId === bought ? [...one.listeners.values()] : [],
  );
  t.is(more.length, 0, 'they share the listener too');
  t.deepEqual([...(listener?.layer7?.rules.values() ?? [])].map(({ domain }) => domain).toSorted(), [vip, OTHER_HOST]);
});

test.serial('rolling update of the backends under load, by HTTP and HTTPS: no request fails', async (t) => {
  t.timeout(ROLLOUT_MS * 2);
  const [host = '', secure = ''] = ['one', 'shop'].map((name) => addresses.get(name) ?? '');
  const ways = [{}, { name: OTHER_HOST }].map((way) => ({ host, port: 80, protocol: 'TCP' as const, ...way }));
  const targets = ways.flatMap((way): readonly LoadTarget[] => [
    { ...way, isKept: true, count: 3 },
    { ...way, isKept: false, count: 2 },
  ]);
  const script = new URL('../vpc/clb/handshake-client.ts', import.meta.url).pathname;
  const handshakes = client().start([process.execPath, script, secure, HOST, '1', pair?.certPath ?? '']);
  const load = startLoad(client(), targets, REQUESTS);
  try {
    await sleep(1_000);
    await rollDeployment(running(), 'web', PODS).catch(explained);
    await sleep(2_000);
  } finally {
    handshakes.writeLine('end');
  }
  const report = await load.stop();
  await handshakes.exited;
  const secured = JSON.parse(handshakes.stdout);
  t.log(`figure: ${report.requests} requests by HTTP, ${report.failed} failed; ${secured.handshakes} handshakes`);
  t.true(Object.keys(report.answers).length > PODS, 'Pods of before and of after answered');
  t.deepEqual([report.failed, report.failures], [0, []]);
  // Its kept connection may go to a Pod that ends: the load balancer opens another one.
  t.deepEqual(secured.failures, [], handshakes.stderr);
  t.true(secured.handshakes > 50, `${secured.handshakes}`);
});

test.serial('deleted: nothing of the Ingresses is in the cloud, and what was bought stays', async (t) => {
  t.timeout(400_000);
  const cluster = running();
  await cluster.kubectl('delete', 'ingresses', ...NAMES, '--wait=false');
  const names = async () => (await cluster.kubectl('get', 'ingresses', '-o', 'name')).trim();
  const isGone = async () => (await names()) === '';
  await waitUntil(isGone, { what: 'no Ingress', timeoutMs: 180_000, everyMs: 1_000 }).catch(explained);
  t.deepEqual(
    balancers().map(({ loadBalancerId, listeners }) => [loadBalancerId, listeners.size]),
    [[bought, 0]],
  );
  // An uploaded certificate that nobody uses goes in a sweep, not before it is a quarter of an hour old.
  t.deepEqual(
    balancers().flatMap((one) => [...certificatesOf(one)]),
    [],
  );
  await cluster.kubectl('delete', 'deployment/web', 'service/web', '--wait=true');
  t.deepEqual(await auditCluster(cluster), []);
  t.deepEqual(refusedRequests(cluster), []);
});
