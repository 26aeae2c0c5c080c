import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { buildExecutables } from '../../tools/build.ts';
import { longTest, partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { fail, succeed } from './support/cni-answers.ts';
import { uninstallArgv } from './support/leaving.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';
import type { AttachedPod, SceneNode } from './support/scene-node.ts';

const BLOCK = '172.20.0.0/26';
const GATEWAY = '172.20.0.1';
const ON_BRIDGE = { 'default-network': 'tke-bridge' } as const;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
});

/** The other layout is tried in the suite `long`. */
const [MODE = 'compact'] = partOf(RULE_MODES, (mode) => mode === 'compact');

const scenes = openScenes(test, [
  {
    ruleMode: MODE,
    nodes: [
      { name: 'n1', enis: [{ eniId: 'eni-1', ips: 4 }], agentFlags: { 'pod-cidr': BLOCK } },
      {
        name: 'n2',
        enis: [{ eniId: 'eni-2', ips: 2 }],
        agentFlags: { 'pod-cidr': '172.21.0.0/30', ...ON_BRIDGE },
      },
      { name: 'n3', enis: [{ eniId: 'eni-3', ips: 2 }], agentFlags: ON_BRIDGE },
      {
        name: 'n4',
        enis: [{ eniId: 'eni-4', ips: 2 }],
        agentFlags: { 'pod-cidr': '172.22.0.0/26', 'gr-wiring': 'routed', ...ON_BRIDGE },
      },
    ],
  },
]);

/** An ENI Pod and two Pods on the bridge, of one node whose default was changed between. */
async function openPods(): Promise<{
  readonly node: SceneNode;
  readonly eni: AttachedPod;
  readonly bridged: readonly AttachedPod[];
}> {
  const { node } = scenes.get(MODE);
  await node.agent.stop();
  await node.startAgent();
  const eni = await node.addPod();
  await node.agent.stop();
  await node.startAgent({ flags: ON_BRIDGE });
  return { node, eni, bridged: [await node.addPod(), await node.addPod()] };
}

async function reachEachOther(t: ExecutionContext, node: SceneNode, pods: readonly AttachedPod[]): Promise<void> {
  for (const from of pods) {
    for (const to of pods) if (from !== to) t.true(await from.netns.ping(to.ip), `${from.ip} to ${to.ip}`);
    t.true(await node.netns.ping(from.ip), `the node to ${from.ip}`);
  }
}

test.serial(
  'GlobalRoute: two Pods on the bridge and one of an ENI reach each other, and end without a trace',
  async (t) => {
    const { node, eni, bridged } = await openPods();
    const [first, second] = bridged;
    if (first === undefined || second === undefined) return t.fail();
    t.deepEqual([first.ip, second.ip], ['172.20.0.2', '172.20.0.3']);
    t.like(first.result, {
      ips: [{ address: '172.20.0.2/26', gateway: GATEWAY }],
      routes: [{ dst: '0.0.0.0/0', gw: GATEWAY }],
    });
    t.true(await first.netns.ping(GATEWAY));
    await reachEachOther(t, node, [eni, first, second]);
    t.deepEqual(succeed(t, await node.call('ADD', first)), first.result, 'a repeated ADD answers the same');
    const conf = node.conf({ prevResult: first.result });
    const checked = await node.call('CHECK', first, { conf });
    t.is(checked.exitCode, 0, checked.stdout);
    const rules = await node.netns.ipJson('rule');
    t.true(rules.some((rule) => rule['priority'] === 1024 && rule['dst'] === '172.20.0.0'));

    await node.delete(first);
    t.deepEqual(await node.tracesOf(first.ip), []);
    t.false(await second.netns.ping(first.ip));
    await reachEachOther(t, node, [eni, second]);
    await node.delete(second, eni);
    t.deepEqual(await node.hostVeths(), []);
  },
);

test.serial('GlobalRoute: Pods survive a restart, a kill, and the loss of the journal', async (t) => {
  const { node, eni, bridged } = await openPods();
  const pods = [eni, ...bridged];
  await node.agent.stop();
  await reachEachOther(t, node, pods);
  await node.startAgent({ flags: ON_BRIDGE });
  await reachEachOther(t, node, pods);
  await node.killAgent();
  await node.startAgent({ flags: ON_BRIDGE });
  await reachEachOther(t, node, pods);

  await node.killAgent();
  const { stateDir } = node.agent;
  for (const name of readdirSync(stateDir)) if (name.startsWith('journal')) rmSync(join(stateDir, name));
  await node.startAgent({ flags: ON_BRIDGE });
  t.regex(node.agent.logs(), /adopted an attachment/);
  await reachEachOther(t, node, pods);
  const young = await node.addPod();
  t.false(
    pods.some(({ ip }) => ip === young.ip),
    young.ip,
  );
  t.regex(young.ip, /^172\.20\.0\./);
  await reachEachOther(t, node, [...pods, young]);
  // The default decides about new Pods alone.
  await node.agent.stop();
  await node.startAgent();
  await reachEachOther(t, node, [...pods, young]);
  await node.delete(...pods, young);
  t.deepEqual(await node.hostVeths(), []);
});

longTest.serial('GlobalRoute: what is deleted of the bridge comes back', async (t) => {
  const { node, eni, bridged } = await openPods();
  const [first, second] = bridged;
  if (first === undefined || second === undefined) return t.fail();
  const works = async (): Promise<boolean> =>
    (await first.netns.ping(second.ip)) && (await first.netns.ping(eni.ip)) && (await eni.netns.ping(second.ip));
  const port = (await node.netns.ipJson('link', 'show', 'master', 'cbr0'))[0]?.['ifname'];
  for (const command of [
    ['link', 'del', 'cbr0'],
    ['addr', 'flush', 'dev', 'cbr0'],
    ['link', 'set', String(port), 'nomaster'],
    ['link', 'set', 'cbr0', 'down'],
    ['rule', 'del', 'priority', '1024'],
  ]) {
    await node.netns.ip(...command);
    await waitUntil(works, {
      what: `the network after ip ${command.join(' ')}`,
      explain: () => node.agent.logs().slice(-2_000),
    });
    t.pass();
  }
  await node.netns.ip('link', 'del', 'cbr0');
  const young = await node.addPod();
  await reachEachOther(t, node, [eni, first, second, young]);
  await node.delete(eni, first, second, young);
});

test.serial('GlobalRoute: a full block and a missing one fail the ADD with the reason', async (t) => {
  const [, small, bare] = scenes.get(MODE).nodes;
  if (small === undefined || bare === undefined) return t.fail();
  const only = await small.addPod();
  t.is(only.ip, '172.21.0.2');
  const full = fail(t, await small.call('ADD', await small.newPod()));
  t.is(full.code, 11);
  t.regex(full.msg, /all 1 addresses of podCIDR 172\.21\.0\.0\/30 are in use/);
  await small.delete(only);
  t.is((await small.addPod()).ip, '172.21.0.2');

  const missing = fail(t, await bare.call('ADD', await bare.newPod()));
  t.is(missing.code, 11);
  t.regex(missing.msg, /this node has no podCIDR yet/);
  t.regex(missing.details ?? '', /--allocate-node-cidrs/);

  // A block in the subnet of the node: its bridge would take the packets for other machines of the subnet.
  const subnet = scenes.get(MODE).vpc.node('n3').primary.subnetCidr;
  await bare.agent.stop();
  await bare.startAgent({ flags: { 'pod-cidr': subnet, ...ON_BRIDGE } });
  const refused = fail(t, await bare.call('ADD', await bare.newPod()));
  t.is(refused.code, 11);
  t.regex(
    refused.msg,
    /^podCIDR .* overlaps the network of the primary interface, .*, so no new Pod can be on the bridge$/,
  );
  t.deepEqual(await bare.netns.ipJson('link', 'show', 'type', 'bridge'), []);
  t.true(await bare.netns.ping(scenes.get(MODE).vpc.outside.ip), 'the node itself is not cut off');
});

test.serial('GlobalRoute: routed Pods reach each other without a bridge', async (t) => {
  const node = scenes.get(MODE).nodes[3];
  if (node === undefined) return t.fail();
  const pods = [await node.addPod(), await node.addPod()];
  await reachEachOther(t, node, pods);
  t.deepEqual(await node.netns.ipJson('link', 'show', 'type', 'bridge'), []);
  await node.delete(...pods);
});

test.serial('GlobalRoute: Pods of other nodes and hosts reach a Pod by its own address', async (t) => {
  const { vpc, nodes } = scenes.get(MODE);
  const [node, , , other] = nodes;
  if (node === undefined || other === undefined) return t.fail();
  for (const [{ name }, cidr] of [
    [node, BLOCK],
    [other, '172.22.0.0/26'],
  ] as const) {
    await vpc.addGlobalRoute({ cidr, nodeIp: vpc.node(name).primary.primaryIp });
  }
  await node.agent.stop();
  await node.startAgent({ flags: ON_BRIDGE });
  const [bridged, routed] = [await node.addPod(), await other.addPod()];
  t.true(await bridged.netns.ping(routed.ip), 'bridge to routed');
  t.true(await routed.netns.ping(bridged.ip), 'routed to bridge');
  t.true(await other.netns.ping(bridged.ip), 'another node to the bridge');
  t.true(await bridged.netns.ping(vpc.outside.ip), 'to the outside, with the address of the node');
  await node.delete(bridged);
  t.false(
    await other.netns.ping(bridged.ip),
    'an address that no Pod has is refused, and does not come back by the VPC',
  );
  await other.delete(routed);
});

test.serial('GlobalRoute: tke-eni shows the Pods and finds nothing to repair', async (t) => {
  const { node } = scenes.get(MODE);
  await node.agent.stop();
  await node.startAgent({ flags: ON_BRIDGE });
  const pod = await node.addPod({ namespace: 'shop', name: 'cart-0' });
  const place = { netns: node.netns, stateDir: node.agent.stateDir, socketPath: node.agent.socketPath };
  const status = await runCli(place, 'status');
  t.is(status.code, 0, status.stderr);
  t.regex(status.stdout, /default tke-bridge; podCIDR 172\.20\.0\.0\/26, 1 of 61 addresses in use/);
  t.regex(status.stdout, /wiring bridge; masquerade on: there is no ip-masq-agent/);
  const pods = await runCli(place, 'pods', pod.ip, '-o', 'json');
  t.like(JSON.parse(pods.stdout)[0], { namespace: 'shop', pod: 'cart-0', ips: [pod.ip], network: 'tke-bridge' });
  const pool = await askCli(place, 'pool');
  t.true(listOf(pool.document, 'addresses').some(({ ip, use }) => ip === pod.ip && use === 'in-use'));
  t.like(listOf(pool.document, 'blocks')[0], { cidr: BLOCK, isCurrent: true, total: 61, inUse: 1 });
  const diff = await runCli(place, 'diff');
  t.is(diff.code, 0, diff.stdout);
  const explain = await runCli(place, 'explain', 'shop/cart-0');
  t.is(explain.code, 0, explain.stdout);
  t.regex(explain.stdout, /of podCIDR 172\.20\.0\.0\/26 of this node, on the bridge/);
  t.regex(explain.stdout, /bridge cbr0, port eni/);
  const doctor = await askCli(place, 'doctor', '--only', 'pod-cidr,bridge-ports,masquerade,differences');
  t.is(doctor.code, 0, JSON.stringify(doctor.document));
  t.deepEqual(listOf(doctor.document, 'findings'), []);
  await node.delete(pod);
});

test.serial('GlobalRoute: uninstall takes the bridge away', async (t) => {
  const small = scenes.get(MODE).nodes[1];
  if (small === undefined) return t.fail();
  const only = await small.addPod();
  await small.delete(only);
  t.is((await small.netns.ipJson('link', 'show', 'type', 'bridge')).length, 1);
  await small.agent.stop();
  await small.netns.run([...uninstallArgv(small)]);
  t.deepEqual(await small.netns.ipJson('link', 'show', 'type', 'bridge'), []);
  t.deepEqual(
    (await small.netns.ipJson('rule')).filter(({ priority }) => priority === 1024),
    [],
  );
});
