import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ENI_IP_TAINT, POD_ANNOTATION } from '../../crd/names.ts';
import { NODES } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import { kubernetesArgs } from '../support/exec-cni.ts';
import { binDirOf } from '../support/executables.ts';
import { waitUntil } from '../support/wait-until.ts';
import { POD_NAMESPACE } from '../system/cluster.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

const AGENT = 'system:serviceaccount:kube-system:tke-eni-agent';
const ON_BRIDGE = { 'default-network': 'tke-bridge' } as const;
const ON_ENIS = { 'default-network': 'tke-route-eni' } as const;
const BURST = 30;
/** Networks of the node's folder, made by the CNI project's plugins. */
const STORAGE = {
  ...{ cniVersion: '0.4.0', name: 'storage', type: 'bridge', bridge: 'storage0', isGateway: true },
  ipam: { type: 'host-local', subnet: '198.18.0.0/24' },
};

let system: System;
/** On this machine, as the nodes share its files. */
let delegateDir: string;

test.before(async (t) => {
  t.timeout(240_000);
  const ipamdFlags = {
    ...{ 'allocate-node-cidrs': 'true', 'cluster-cidr': '172.30.0.0/20', 'node-cidr-mask-size': '26' },
    ...{ 'gr-routes': 'ipamd', 'enable-node-taint': 'true', ...ON_BRIDGE },
  };
  delegateDir = mkdtempSync(join(tmpdir(), 'tke-test-delegates-'));
  mkdirSync(join(delegateDir, 'net.d'), { recursive: true });
  const agentFlags = { ...ON_BRIDGE, 'delegate-conf-dir': join(delegateDir, 'net.d') };
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], joinsAll: false, ipamdFlags, agentFlags });
});
test.after.always(async () => {
  await system?.close();
  rmSync(delegateDir, { recursive: true, force: true });
});

/** The routes of the VPC to nodes, sorted. */
function routes(): readonly string[] {
  const found = [...system.cloud.host.model.state.globalRoutes.values()];
  return found.map(({ cidr, gatewayIp }) => `${cidr} ${gatewayIp}`).toSorted();
}

async function podCidrOf(name: string): Promise<string> {
  const node = await system.cluster.admin.get(NODES, { name });
  const spec = isObject(node?.['spec']) ? node['spec'] : {};
  return String(spec['podCIDR'] ?? '');
}

async function taintsOf(name: string): Promise<readonly string[]> {
  const node = await system.cluster.admin.get(NODES, { name });
  const spec = isObject(node?.['spec']) ? node['spec'] : {};
  return (Array.isArray(spec['taints']) ? spec['taints'] : []).map((one: { readonly key: string }) => one.key);
}

/** Waits until the cloud has answered that packets to a node's block go there. */
async function awaitRoute(name: string): Promise<void> {
  const { primaryIp } = system.cloud.vpc.node(name).primary;
  await waitUntil(
    async () =>
      (await routeConditionOf(name)) === 'False' && routes().includes(`${await podCidrOf(name)} ${primaryIp}`),
    {
      what: `a podCIDR and a route of ${name}`,
      timeoutMs: 60_000,
      explain: () => `${routes().join('\n')}\n${system.logs()}`,
    },
  );
}

async function routeConditionOf(name: string): Promise<string | undefined> {
  const node = await system.cluster.admin.get(NODES, { name });
  const status = isObject(node?.['status']) ? node['status'] : {};
  const conditions = (Array.isArray(status['conditions']) ? status['conditions'] : []) as readonly Condition[];
  return conditions.find(({ type }) => type === 'NetworkUnavailable')?.status;
}

type Condition = { readonly type: string; readonly status: string };

/** Both nodes with a GlobalRoute Pod each, that reach each other. */
async function assertReached(t: ExecutionContext, from: string, to: string): Promise<void> {
  const [one, other] = [from, to].map((name) =>
    system.nodes.flatMap(({ pods }) => pods).find((pod) => pod.name === name),
  );
  if (one === undefined || other === undefined) throw new Error(`no Pods ${from} and ${to}`);
  const startMs = performance.now();
  await waitUntil(() => one.sandbox.netns.ping(other.ip), {
    what: `${one.ip} reaches ${other.ip}`,
    timeoutMs: 60_000,
    explain: () => `${routes().join('\n')}\n${system.logs()}`,
  });
  t.pass();
  t.log(`${from} reaches ${to} after ${Math.round(performance.now() - startMs)} ms`);
}

test.serial(
  'nodes register: podCIDR, route, Pods of two nodes reach each other, though the leader is killed between',
  async (t) => {
    t.timeout(240_000);
    // Its podCIDR is recorded or written, and its route is not yet made.
    const allow = system.cloud.host.faults.add({ fault: { kind: 'hang' }, actions: ['CreateGlobalRoutes'] });
    await system.join('n1');
    await waitUntil(async () => (await podCidrOf('n1')) !== '', { what: 'a podCIDR', timeoutMs: 60_000 });
    const killed = await system.leader();
    await killed.kill();
    allow();
    await system.join('n2');
    await awaitRoute('n1');
    await awaitRoute('n2');
    t.not((await system.leader()).name, killed.name);
    killed.start();
    for (const name of ['n1', 'n2']) {
      await system.node(name).awaitReady(60_000);
      const pod = await system.node(name).runPod(`${name}-gr`, { marks: { resources: [] } });
      t.true(pod.ip.startsWith('172.30.'), pod.ip);
    }
    await assertReached(t, 'n1-gr', 'n2-gr');
  },
);

test.serial('a burst of GlobalRoute Pods asks the API server for none of them', async (t) => {
  t.timeout(240_000);
  let asked = 0;
  const uncount = system.cluster.server.api.faults.add({
    ...{ verbs: ['get', 'list'], resources: ['pods'], user: AGENT },
    // Read once for each request that it meets.
    get action() {
      asked++;
      return { kind: 'delay', ms: 0 } as const;
    },
  });
  const node = system.node('n1');
  const names = Array.from({ length: BURST }, (_, index) => `burst-${index}`);
  const pods = await Promise.all(names.map((name) => node.runPod(name, { marks: { resources: [] } })));
  uncount();
  t.is(new Set(pods.map(({ ip }) => ip)).size, BURST);
  t.is(asked, 0, 'requests for Pods');
  t.log(`figure: ${BURST} ADDs of GlobalRoute Pods at once, ${asked} requests for Pods`);
  for (const name of names) await node.removePod(name);
});

test.serial(
  'a Pod of another network: its plugins are called on the host, and end it though the agent is killed',
  async (t) => {
    t.timeout(120_000);
    writeFileSync(join(delegateDir, 'net.d', '10-storage.conf'), JSON.stringify(STORAGE));
    const { scene } = system.node('n1');
    const dataDir = join(delegateDir, 'host-local');
    writeFileSync(
      join(delegateDir, 'net.d', '10-storage.conf'),
      JSON.stringify({ ...STORAGE, ipam: { ...STORAGE.ipam, dataDir } }),
    );
    const options = {
      conf: scene.conf({ dataDir: join(delegateDir, 'data') }),
      env: { CNI_PATH: `${binDirOf('tke-route-eni')}:/usr/lib/cni` },
    };
    const runAs = async (name: string, network: string) => {
      const marks = { resources: [], annotations: { [POD_ANNOTATION.networks]: network } };
      const { metadata } = await system.cluster.addPod(name, 'n1', marks);
      const args = kubernetesArgs({
        name,
        namespace: POD_NAMESPACE,
        ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
      });
      return scene.newPod({ name, namespace: POD_NAMESPACE, args });
    };
    const pod = await runAs('stored', 'kube-system/storage');
    const added = await scene.call('ADD', pod, options);
    t.is(added.exitCode, 0, added.stdout);
    t.like(added.result, { cniVersion: '0.4.0', ips: [{ address: '198.18.0.2/24' }] });
    t.true(await pod.netns.ping('198.18.0.1'));
    t.deepEqual(readdirSync(join(delegateDir, 'data', 'delegates')).length, 1);
    const checked = await scene.call('CHECK', pod, {
      ...options,
      conf: { ...options.conf, prevResult: added.result ?? {} },
    });
    t.is(checked.exitCode, 0, checked.stdout);

    const unknown = await scene.call('ADD', await runAs('unknown', 'storage-2'), options);
    t.is(unknown.exitCode, 1);
    t.regex(
      unknown.stdout,
      /expected one of tke-bridge, tke-route-eni, tke-direct-eni, got \\"storage-2\\"; nor .* which has storage"/,
    );

    await system.node('n1').killAgent();
    const deleted = await scene.call('DEL', pod, options);
    t.is(deleted.exitCode, 0, deleted.stdout);
    t.deepEqual(readdirSync(join(delegateDir, 'data', 'delegates')), []);
    t.deepEqual(
      readdirSync(join(dataDir, 'storage')).filter((name) => name.startsWith('198.')),
      [],
      'host-local has it back',
    );
    await system.node('n1').startAgent('ready');
    await scene.netns.ip('link', 'del', 'storage0');
    for (const name of ['stored', 'unknown']) await system.cluster.removePod(name);
  },
);

/** Starts every ipamd and every agent with another default, as a rollout does. */
async function changeDefault(flags: typeof ON_BRIDGE | typeof ON_ENIS): Promise<void> {
  for (const ipamd of system.ipamds) {
    await ipamd.stop();
    ipamd.start(flags);
  }
  for (const node of system.nodes) {
    await node.killAgent();
    await node.scene.startAgent({ until: 'listening', flags });
  }
}

test.serial(
  'the default network changes with Pods running and waiting: taints follow, running Pods keep their network',
  async (t) => {
    t.timeout(240_000);
    const running = system.nodes.flatMap(({ pods }) => pods.map(({ name, ip }) => `${name} ${ip}`));
    // A taint that TKE made, or an ipamd before: the bridge needs no address of an ENI.
    const taints = [ENI_IP_TAINT];
    await system.cluster.admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body: { spec: { taints } } });
    await waitUntil(async () => (await taintsOf('n1')).length === 0, { what: 'no taint', timeoutMs: 60_000 });
    for (const name of ['n1', 'n2']) await system.awaitNec(name, 'addresses', (nec) => countAssigned(nec) >= 2, 60_000);

    // No address of an ENI can be had: what is left in the pool is taken.
    await changeDefault(ON_ENIS);
    await system.node('n1').awaitReady(60_000);
    const onEni = await system.node('n1').runPod('n1-eni');
    t.false(onEni.ip.startsWith('172.30.'), onEni.ip);
    await assertReached(t, 'n1-gr', 'n2-gr');
    await assertReached(t, 'n1-eni', 'n2-gr');
    // A node whose agent is away does not serve: with this default it is marked.
    await system.node('n2').killAgent();
    await system.cluster.admin.patch(NODES, { name: 'n2' }, { kind: 'merge', body: { spec: { taints } } });
    await system.node('n2').scene.startAgent({ until: 'listening', flags: ON_ENIS });
    await waitUntil(async () => (await taintsOf('n2')).length === 0, {
      what: 'a node that serves has no taint',
      timeoutMs: 60_000,
      explain: () => system.logs(),
    });

    // A Pod waits meanwhile: by the time of its next sandbox the default is the bridge.
    const waiting = system.node('n1').runPod('n1-later', { waitMs: 90_000, marks: { resources: [] } });
    await changeDefault(ON_BRIDGE);
    const later = await waiting;
    t.truthy(later.ip);
    const again = await system.node('n1').runPod('n1-again', { marks: { resources: [] } });
    t.true(again.ip.startsWith('172.30.'), again.ip);
    for (const [from, to] of [
      ['n1-gr', 'n2-gr'],
      ['n1-eni', 'n2-gr'],
      ['n1-again', 'n1-eni'],
    ] as const)
      await assertReached(t, from, to);
    const after = system.nodes.flatMap(({ pods }) => pods.map(({ name, ip }) => `${name} ${ip}`));
    t.deepEqual(
      running.filter((one) => !after.includes(one)),
      [],
      'running Pods keep their addresses',
    );
    t.deepEqual(await Promise.all(['n1', 'n2'].map(taintsOf)), [[], []]);
  },
);
