import test from 'ava';
import type { KubeObject } from '../../kube/kube-client.ts';
import { INGRESSES, SERVICES } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import { Deployment } from '../system/balanced/deployment.ts';
import { startLoad } from '../system/balanced/load.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// A tenant who may write Services and Ingresses in one namespace makes the largest and busiest that he can, beside a Service
// of another namespace that has traffic and is changed.

const MINUTES = Number(process.env['HOSTILE_MINUTES'] || 1);
const EVIL = 'evil';
const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false } as const;
const DIRECT = {
  'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId,
  'service.cloud.tencent.com/direct-access': 'true',
} as const;
/** A change is served within one and a half times of what it takes alone; seconds more are for the machine, not the tenant. */
const FACTOR = 1.5;
const SLACK_MS = 10_000;
const ALONE = 3;
const BUSY_SERVICES = 60;

let system: System;
let cluster: BalancedSystem;
let web: Deployment;

test.before(async (t) => {
  t.timeout(400_000);
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'client' }], joinsAll: false, ipamds: 1 });
  await system.join('n1');
  const flags = { ingress: 'clb', 'ingress-without-class': 'true' };
  cluster = await balanceSystem(system, [system.node('n1')], { replicas: 2, flags });
  await system.node('n1').awaitReady();
  web = new Deployment(cluster, [system.node('n1')], 'web');
  await web.awaitReady(await web.start(2, 'finish'));
});
test.after.always(() => cluster?.close() ?? system?.close());

/** Creates a Service of the victim, waits until a request is answered, deletes it; returns milliseconds to the answer. */
async function serveOne(name: string): Promise<number> {
  const startedMs = performance.now();
  const vip = await cluster.balance({ name, app: 'web', annotations: DIRECT });
  await cluster.awaitAnswer(system.cloud.vpc.node('client').netns, vip);
  const tookMs = performance.now() - startedMs;
  await system.cluster.admin.delete(SERVICES, { namespace: 'default', name });
  const isGone = async (): Promise<boolean> => (await cluster.service(name)) === undefined;
  await waitUntil(isGone, { what: `the end of ${name}`, timeoutMs: 60_000, everyMs: 100, explain: cluster.logs });
  return tookMs;
}

test.serial(
  'a tenant who does his worst costs a Service of another namespace no request, and no patience',
  async (t) => {
    t.timeout((MINUTES + 10) * 60_000);
    const alone: number[] = [];
    for (let at = 0; at < ALONE; at++) alone.push(await serveOne(`alone-${at}`));
    const vip = await cluster.balance({ name: 'victim', app: 'web', annotations: DIRECT });
    const { netns } = system.cloud.vpc.node('client');
    await cluster.awaitAnswer(netns, vip);
    const ways = [true, false].map((isKept) => ({ host: vip, port: 80, protocol: 'TCP' as const, isKept, count: 3 }));
    const load = startLoad(netns, ways, 1_000);
    const leaders = cluster.ccms.filter((ccm) => ccm.leads());
    const ended = new AbortController();
    const attack = doHisWorst(ended.signal);
    const beside: number[] = [];
    const endMs = performance.now() + MINUTES * 60_000;
    while (beside.length < ALONE || performance.now() < endMs) beside.push(await serveOne(`beside-${beside.length}`));
    const { requests, failures } = await load.stop();
    ended.abort();
    const changes = await attack;
    const [best, worst] = [Math.max(...alone), Math.max(...beside)];
    t.log(`figure: ${requests} requests, ${failures.length} failed; ${changes} changes of the tenant`);
    t.log(`figure: slowest of ${alone.length} alone ${best | 0} ms, of ${beside.length} beside ${worst | 0} ms`);
    t.deepEqual(failures, []);
    t.true(worst <= FACTOR * best + SLACK_MS, `alone ${alone}, beside ${beside}`);
    t.true(changes > BUSY_SERVICES);
    t.deepEqual(
      cluster.ccms.filter((ccm) => ccm.leads()),
      leaders,
      'the leader still leads',
    );
  },
);

/** Makes the largest objects that the API server takes, and changes many all the time; returns the number of changes. */
async function doHisWorst(signal: AbortSignal): Promise<number> {
  const { admin } = system.cluster;
  await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: EVIL } });
  const ref = (name: string) => ({ name, namespace: EVIL });
  for (const ingress of [manyPaths(), manyWeights(), manySecrets('tls-a'), manySecrets('tls-b')])
    await admin.create(INGRESSES, ingress);
  const names = Array.from({ length: BUSY_SERVICES }, (_, at) => `busy-${at}`);
  const spec = { type: 'LoadBalancer', selector: { app: 'none' }, ports: [{ port: 80 }] };
  const annotations = DIRECT;
  for (const name of names)
    await admin.create(SERVICES, { apiVersion: 'v1', kind: 'Service', metadata: { ...ref(name), annotations }, spec });
  let changes = names.length;
  while (!signal.aborted) {
    for (const name of names) {
      const ports = [{ port: 80 + (changes % 7) }];
      await admin.patch(SERVICES, ref(name), { kind: 'merge', body: { spec: { ports } } });
      changes++;
      await systemClock.sleep(50);
    }
  }
  return changes;
}

function ingressOf(name: string, annotations: Readonly<Record<string, string>>, spec: object): KubeObject {
  const metadata = { name, namespace: EVIL, annotations };
  return { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec };
}

const backend = { service: { name: 'busy-0', port: { number: 80 } } };

/** 9,000 paths on 50 ports. */
function manyPaths(): KubeObject {
  const listen = Array.from({ length: 50 }, (_, at) => ({ [at % 2 ? 'HTTPS' : 'HTTP']: 2_000 + at }));
  const rules = Array.from({ length: 9 }, (_, host) => ({
    host: `h${host}.evil.example`,
    http: { paths: Array.from({ length: 1_000 }, (_, at) => ({ path: `/${at}`, pathType: 'Prefix', backend })) },
  }));
  const annotations = {
    'kubernetes.io/ingress.rule-mix-both': 'true',
    'ingress.cloud.tencent.com/listen-ports': JSON.stringify(listen),
  };
  return ingressOf('paths', annotations, { rules });
}

/** 30,000 weights. */
function manyWeights(): KubeObject {
  const weights = [{ weight: 1, podIndexes: Array.from({ length: 30_000 }, () => 1) }];
  const table = { groups: [{ key: {}, statefulSets: [{ name: 'busy-0', weights }] }] };
  const rules = [{ host: 'weights.example', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }];
  return ingressOf('weights', { 'ingress.cloud.tencent.com/lb-rs-weight': JSON.stringify(table) }, { rules });
}

/** 4,000 Secrets that do not exist. */
function manySecrets(name: string): KubeObject {
  const hosts = Array.from({ length: 4_000 }, (_, at) => `${name}-${at}.example`);
  const paths = [{ path: '/', pathType: 'Prefix', backend }];
  return ingressOf(
    name,
    {},
    {
      rules: hosts.slice(0, 50).map((host) => ({ host, http: { paths } })),
      tls: hosts.map((host) => ({ hosts: [host], secretName: host })),
    },
  );
}
