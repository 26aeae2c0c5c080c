import test, { type ExecutionContext } from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import type { ClusterNode } from './cluster-node.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import type { DeploySpec } from './deploy.ts';
import { awaitPods, deploymentManifest, pingFrom, podManifest, podsOf, type SeenPod, spreadOverNodes } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { ECHO_SERVER } from './workloads/echo.ts';
import {
  blocksOf,
  CLUSTER_CIDR,
  GR_KUBE_PROXY,
  GR_SERVICE_CIDR,
  isOfBlockOf,
  routesOf,
  whyNotOpen,
} from './workloads/gr-cluster.ts';
import { startPings } from './workloads/steady-pings.ts';

// A GlobalRoute cluster whose blocks are kube-controller-manager's, and whose Pods are of the CNI project's plugins bridge
// and host-local. Ours take over, and then make Pods of each wiring, and of a network of another plugin.

const NODES = ['node1', 'node2'] as const;
/** Sorted before ours, as the file of multus is. */
const PRODUCT_CONF = '/etc/cni/net.d/00-tke-bridge.conflist';
const RESERVATIONS = '/var/lib/cni/networks/tke-bridge';
const DELEGATES = '/etc/cni/net.d/multus';
const COUNT = 4;

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: NODES.map((name) => ({ name, hasEniIpTaint: false })),
      serviceCidr: GR_SERVICE_CIDR,
      kubeProxyFlags: GR_KUBE_PROXY,
      controllerManagerFlags: {
        'allocate-node-cidrs': 'true',
        'configure-cloud-routes': 'false',
        'cluster-cidr': CLUSTER_CIDR,
        'service-cluster-ip-range': GR_SERVICE_CIDR,
        'node-cidr-mask-size': '26',
      },
    }),
  async (cluster) => {
    const hasBlocks = async () => [...(await blocksOf(cluster)).values()].every((block) => block !== '');
    await waitUntil(hasBlocks, { what: 'a podCIDR of each Node', everyMs: 500 });
    for (const [name, block] of await blocksOf(cluster)) await installBridge(cluster.node(name), block);
    await cluster.awaitReady();
  },
);

/** Puts the plugins of a product onto a node: each Pod is a port of cbr0, with an address of host-local. */
async function installBridge(node: ClusterNode, block: string): Promise<void> {
  const ipam = { type: 'host-local', subnet: block, routes: [{ dst: '0.0.0.0/0' }] };
  const bridge = { type: 'bridge', bridge: 'cbr0', mtu: 1_500, isGateway: true, forceAddress: true, promiscMode: true };
  const conf = { cniVersion: '0.3.1', name: 'tke-bridge', plugins: [{ ...bridge, ipam }] };
  const plugins = ['bridge', 'ptp', 'host-local', 'loopback'].map((name) => `/usr/lib/cni/${name}`).join(' ');
  await node.exec(['sh', '-ec', `cp ${plugins} /opt/cni/bin; mkdir -p ${DELEGATES}; cat > ${PRODUCT_CONF}`], {
    input: JSON.stringify(conf),
  });
}

/** How ours are brought into this cluster: the blocks stay, and subnets there are none. */
function deploymentOf(wiring: 'bridge' | 'routed'): DeploySpec {
  return {
    until: 'ready',
    subnetIds: [],
    agentSettings: { 'default-network': 'tke-bridge', 'gr-wiring': wiring, 'delegate-conf-dir': DELEGATES },
    ipamdSettings: {
      'default-network': 'tke-bridge',
      'gr-routes': 'ipamd',
      'cluster-cidr': CLUSTER_CIDR,
      'service-cluster-ip-range': GR_SERVICE_CIDR,
    },
  };
}

/** Makes Pods on both nodes, and waits until they run. */
async function runPods(t: ExecutionContext, name: string): Promise<readonly SeenPod[]> {
  const cluster = running();
  const spec = { ...ECHO_SERVER.spec, ...spreadOverNodes(name) };
  await cluster.apply(deploymentManifest(name, COUNT, { ...ECHO_SERVER, network: '', spec }));
  const pods = await awaitPods(cluster, `app=${name}`, COUNT, { timeoutMs: 120_000 });
  t.is(new Set(pods.map(({ node }) => node)).size, 2);
  for (const { ip, node } of pods) t.true(await isOfBlockOf(cluster, node, ip), `${name}: ${ip} on ${node}`);
  return pods;
}

async function assertReach(t: ExecutionContext, from: readonly SeenPod[], to: readonly SeenPod[]): Promise<void> {
  for (const asker of from)
    for (const { name, ip } of to) t.true(await pingFrom(running(), asker, ip), `${asker.name} to ${name}`);
}

const inSystem = (...words: readonly string[]) => running().kubectl('-n', 'kube-system', ...words);

async function linesOf(node: string, command: string): Promise<readonly string[]> {
  const text = await running()
    .node(node)
    .exec(['sh', '-c', `${command}; true`]);
  return text.split('\n').filter((line) => line !== '');
}

/** Addresses of which host-local has a file. */
const reservationsOf = (node: string) => linesOf(node, `ls ${RESERVATIONS} | grep -x '[0-9.]*'`);
/** Ports of the bridge of Pods. */
const portsOf = (node: string) => linesOf(node, 'ip -o link show master cbr0');

/** Waits until every node has an agent of the present settings: its nodes were Ready before. */
const awaitAgents = () => inSystem('rollout', 'status', 'daemonset/tke-eni-agent', '--timeout=55s');

async function deleteDeployment(name: string): Promise<void> {
  await running().kubectl('delete', 'deployment', name, '--cascade=foreground', '--timeout=55s');
}

let old: readonly SeenPod[] = [];

test.serial('bridge and host-local: Pods are taken over as they run, and no packet is lost', async (t) => {
  const cluster = running();
  old = await runPods(t, 'old');
  const stops = NODES.map((name) =>
    startPings(
      cluster.node(name).ns,
      old.filter(({ node }) => node === name),
    ),
  );
  try {
    await cluster.deploy(deploymentOf('bridge'));
    await awaitAgents();
    for (const agent of await podsOf(cluster, 'k8s-app=tke-eni-agent', 'kube-system')) {
      const told = async () => (await inSystem('logs', agent.name)).split('took over a Pod on the bridge').length - 1;
      await waitUntil(async () => (await told()) === COUNT / 2, {
        what: `${agent.node}: ${COUNT / 2} Pods are taken over`,
        timeoutMs: 60_000,
        everyMs: 1_000,
      });
    }
    for (const name of NODES) await cluster.node(name).exec(['rm', PRODUCT_CONF]);
  } finally {
    for (const { pod, sent, answered } of (await Promise.all(stops.map((stop) => stop()))).flat()) {
      t.true(sent > 30, `${pod}: ${sent}`);
      t.is(answered, sent, pod);
    }
  }
  t.deepEqual(await podsOf(cluster, 'app=old'), old);
});

test.serial('bridge and host-local: new Pods are ours, and reach those that were taken over', async (t) => {
  const cluster = running();
  for (const name of NODES) t.deepEqual(await whyNotOpen(cluster, name), []);
  const blocks = await blocksOf(cluster);
  t.deepEqual(routesOf(cluster.cloud), cluster.nodes.map(({ name, ip }) => `${blocks.get(name)} ${ip}`).toSorted());
  const young = await runPods(t, 'young');
  t.is(new Set([...old, ...young].map(({ ip }) => ip)).size, COUNT * 2);
  await assertReach(t, young, [...young, ...old]);
  await assertReach(t, old, young);
  t.deepEqual(await auditCluster(cluster), []);
});

test.serial('bridge and host-local: Pods that were taken over end by ours, and leave nothing', async (t) => {
  const cluster = running();
  await deleteDeployment('old');
  const young = await podsOf(cluster, 'app=young');
  for (const name of NODES) {
    const ips = young.flatMap(({ node, ip }) => (node === name ? [ip] : []));
    const isLeft = async () => String((await reservationsOf(name)).toSorted()) === String(ips.toSorted());
    await waitUntil(isLeft, { what: `${name}: files of host-local of its Pods alone`, everyMs: 500 });
    t.is((await portsOf(name)).length, ips.length);
  }
  t.deepEqual(await auditCluster(cluster), []);
});

test.serial(
  '--delegate-conf-dir: a Pod that names a network of the folder gets it, and it goes with the Pod',
  async (t) => {
    const cluster = running();
    const { ip: nodeIp } = cluster.node('node1');
    const ipam = { type: 'host-local', subnet: '10.99.1.0/24', routes: [{ dst: '0.0.0.0/0' }] };
    const conf = JSON.stringify({ cniVersion: '0.3.1', name: 'others', type: 'ptp', ipam });
    await cluster.node('node1').exec(['sh', '-c', `cat > ${DELEGATES}/others.conf`], { input: conf });
    await cluster.apply(podManifest('guest', { network: 'others', spec: { nodeName: 'node1' } }));
    const [guest] = await awaitPods(cluster, 'app=guest', 1);
    if (guest === undefined) return t.fail();
    t.regex(guest.ip, /^10\.99\.1\./);
    t.true(await pingFrom(cluster, guest, nodeIp));
    await cluster.kubectl('delete', 'pod', 'guest', '--timeout=55s');
    const left = () =>
      linesOf('node1', "ls /var/lib/cni/tke-eni/delegates; ls /var/lib/cni/networks/others | grep '^10'");
    await waitUntil(async () => (await left()).length === 0, { what: 'nothing is left of guest', everyMs: 500 });
    await cluster.apply(podManifest('lost', { network: 'nobody', spec: { nodeName: 'node1' } }));
    const events = () => cluster.kubectl('get', 'events', '--field-selector', 'involvedObject.name=lost', '-o', 'json');
    await waitUntil(async () => /others/.test(await events()), { what: 'an event that names others', everyMs: 500 });
    await cluster.kubectl('delete', 'pod', 'lost', '--timeout=55s');
  },
);

test.serial('--gr-wiring=routed: Pods have a route and no port, and reach those on the bridge', async (t) => {
  const cluster = running();
  await cluster.deploy(deploymentOf('routed'));
  await awaitAgents();
  const ports = await Promise.all(NODES.map(portsOf));
  const routed = await runPods(t, 'routed');
  t.deepEqual(await Promise.all(NODES.map(portsOf)), ports);
  for (const { ip, node } of routed) {
    const [way = ''] = await linesOf(node, `ip -o route get ${ip}`);
    t.regex(way, / dev (?!cbr0|eth0|lo)\S+/, `${ip} on ${node}`);
  }
  const young = await podsOf(cluster, 'app=young');
  await assertReach(t, routed, [...routed, ...young]);
  await assertReach(t, young, routed);
  t.deepEqual(await auditCluster(cluster), []);
});

test.serial('bridge and host-local: nothing that was asked for was refused', (t) => {
  t.deepEqual(refusedRequests(running()), []);
});
