import test, { type ExecutionContext } from 'ava';
import { NODE_DIRECT_ENI_LABEL } from '../../crd/names.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { CONFIG_MAPS, NODES } from '../../kube/resource-types.ts';
import { longTest } from '../support/suite-part.ts';
import { startTraffic } from '../support/traffic.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import type { PodMarks } from '../system/cluster.ts';
import { StatefulSet } from '../system/stateful-set.ts';
import { countAssigned, createSystem, type SeenNec, type System } from '../system/system.ts';
import type { SystemPod } from '../system/system-node.ts';

const NETWORKS = 'tke.cloud.tencent.com/networks';
const SERVICE_CIDRS = {
  ...{ group: 'networking.k8s.io', version: 'v1', plural: 'servicecidrs', kind: 'ServiceCIDR' },
  isNamespaced: false,
};
const DIRECT = 'tke.cloud.tencent.com/direct-eni';

let system: System;
let db: StatefulSet;

test.before(async () => {
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'n2' }],
    ipamds: 1,
    ipamdFlags: {
      'enable-direct-eni': 'true',
      'enable-static-ip': 'true',
      'enable-security-groups': 'true',
      'sync-interval': '10s',
    },
  });
  await system.cluster.admin.create(CONFIG_MAPS, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kubeadm-config', namespace: 'kube-system' } },
    data: { ClusterConfiguration: 'networking: {serviceSubnet: 10.96.0.0/16}\n' },
  });
  for (const { name } of system.nodes) {
    await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5 && spare(nec).length > 0, 60_000);
    await system.node(name).awaitReady(60_000);
  }
  db = new StatefulSet(system, {
    name: 'db',
    annotations: { [NETWORKS]: 'tke-direct-eni' },
    plugin: 'tke-direct-eni',
    resources: [DIRECT],
  });
});
test.after.always(() => system?.close());

/** Exclusive ENIs of a node. */
function whole(nec: SeenNec | undefined): readonly NodeEniInfo[] {
  return (nec?.status?.eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni');
}

function spare(nec: SeenNec): readonly NodeEniInfo[] {
  return whole(nec).filter(({ state, claim }) => state === 'Attached' && claim === undefined);
}

const MARKS: PodMarks = { annotations: { [NETWORKS]: 'tke-direct-eni' }, resources: [DIRECT] };

/** Runs a Pod with an ENI of its own, as its annotation asks. */
function runDirect(node: string, name: string): Promise<SystemPod> {
  return system.node(node).runPod(name, { plugin: 'tke-direct-eni', marks: MARKS });
}

/** Packets flow in both directions between a Pod, its node, other Pods and the outside. */
async function assertReaches(t: ExecutionContext, pod: SystemPod, others: readonly SystemPod[]): Promise<void> {
  const { vpc } = system.cloud;
  const { netns } = pod.sandbox;
  for (const { name } of system.nodes) {
    t.true(await netns.ping(vpc.node(name).primary.primaryIp), `${pod.name} -> node ${name}`);
    t.true(await vpc.node(name).netns.ping(pod.ip), `node ${name} -> ${pod.name}`);
  }
  for (const other of others) {
    t.true(await netns.ping(other.ip), `${pod.name} -> ${other.name}`);
    t.true(await other.sandbox.netns.ping(pod.ip), `${other.name} -> ${pod.name}`);
  }
  t.true(await netns.ping(vpc.outside.ip), `${pod.name} -> outside`);
  t.true(await vpc.outside.netns.ping(pod.ip), `outside -> ${pod.name}`);
}

/** The address and the MAC of a Pod's eth0, as its kernel has them. */
async function faceOf({ sandbox, ip }: SystemPod): Promise<readonly [ip: string, mac: unknown]> {
  const [link] = await sandbox.netns.ipJson('link', 'show', 'eth0');
  return [ip, link?.['address']];
}

test.serial('a spare ENI is there by itself, a Pod gets it whole, and packets flow every way', async (t) => {
  const before = spare((await system.nec('n1')) as SeenNec);
  t.is(before.length, 1);
  const near = await system.node('n1').runPod('near');
  const far = await system.node('n2').runPod('far');
  const pod = await runDirect('n1', 'whole');
  t.is(pod.ip, before[0]?.primaryIP ?? '');
  t.deepEqual(await faceOf(pod), [before[0]?.primaryIP ?? '', before[0]?.mac]);
  await assertReaches(t, pod, [near, far]);
  t.true(await near.sandbox.netns.ping(far.ip));
  // The warm pool of shared addresses goes on beside it.
  await system.node('n1').runPod('near-too');
  t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
});

test.serial('the ranges of Services are read from the cluster, and a Pod that runs follows them', async (t) => {
  const node = system.node('n1');
  const pod = node.pods.find(({ name }) => name === 'whole') as SystemPod;
  const devTo = async (ip: string) => (await pod.sandbox.netns.ipJson('route', 'get', ip))[0]?.['dev'];
  await waitUntil(async () => (await devTo('10.96.0.10')) === 'veth0', { what: 'the first range', timeoutMs: 60_000 });
  t.is(await devTo('10.97.0.10'), 'eth0');
  await system.cluster.admin.create(SERVICE_CIDRS, {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name: 'more' } },
    spec: { cidrs: ['10.96.0.0/16', '10.97.0.0/16'] },
  });
  // A new agent does not wait for the next time to read.
  await node.killAgent();
  await node.startAgent('ready');
  await waitUntil(async () => (await devTo('10.97.0.10')) === 'veth0', { what: 'the second range', timeoutMs: 60_000 });
  t.is(await devTo('10.96.0.10'), 'veth0');
});

longTest.serial('the agent is killed and started again: a Pod with a whole ENI loses no packet', async (t) => {
  const node = system.node('n1');
  const pod = node.pods.find(({ name }) => name === 'whole') as SystemPod;
  const near = node.pods.find(({ name }) => name === 'near') as SystemPod;
  const streams = [
    await startTraffic(
      { netns: pod.sandbox.netns, ip: pod.ip },
      { netns: system.cloud.vpc.outside.netns, ip: system.cloud.vpc.outside.ip },
      { rate: 200 },
    ),
    await startTraffic(
      { netns: pod.sandbox.netns, ip: pod.ip },
      { netns: near.sandbox.netns, ip: near.ip },
      { rate: 200, port: 7_100 },
    ),
  ];
  await node.killAgent();
  await node.startAgent('ready');
  for (const stream of streams) {
    const { aToB, bToA } = await stream.finish();
    t.deepEqual([aToB.lost, bToA.lost, aToB.sendErrors, bToA.sendErrors], [0, 0, 0, 0]);
  }
});

test.serial('a StatefulSet moves to another node and keeps its address and its MAC', async (t) => {
  const first = await faceOf(await db.start(0, 'n1'));
  await db.stop(0);
  const pod = await db.start(0, 'n2', 90_000);
  t.deepEqual(await faceOf(pod), first);
  await assertReaches(
    t,
    pod,
    system.nodes.flatMap((node) => node.pods).filter((other) => other !== pod),
  );
  t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
});

test.serial('a node serves exclusive ENIs no more: spare ones go, that of a Pod when the Pod ends', async (t) => {
  const node = system.node('n1');
  const ofPool = (nec: SeenNec) => whole(nec).filter(({ claim }) => claim === undefined);
  const pod = node.pods.find(({ name }) => name === 'whole') ?? (await runDirect('n1', 'whole'));
  const setLabel = async (value: string | null) => {
    const body = { metadata: { labels: { [NODE_DIRECT_ENI_LABEL]: value } } };
    await system.cluster.admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body });
  };
  await setLabel('false');
  await system.awaitNec('n1', 'the spare one goes', (nec) => ofPool(nec).length === 1, 60_000);
  t.is(ofPool((await system.nec('n1')) as SeenNec)[0]?.primaryIP, pod.ip);
  await assertReaches(t, pod, []);
  await node.removePod('whole');
  await system.awaitNec('n1', 'the last one goes', (nec) => ofPool(nec).length === 0, 60_000);
  await setLabel(null);
  await system.awaitNec('n1', 'a spare one again', (nec) => spare(nec).length === 1, 60_000);
  t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
});
