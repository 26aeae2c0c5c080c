import test, { type ExecutionContext } from 'ava';
import type { JsonObject } from '../../sim/support/netns.ts';
import type { CniAnswer } from '../support/exec-cni.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Conflist, callChain } from './support/chain.ts';
import { fail, ipsOf, succeed, succeedSilently, VERSIONS } from './support/cni-answers.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';
import type { SceneNode, ScenePod } from './support/scene-node.ts';

const NODES = [
  { name: 'n1', enis: [{ eniId: 'eni-1', ips: 8 }] },
  { name: 'n2', enis: [{ eniId: 'eni-2', ips: 8 }] },
] as const;

/** The other layout is tried in the suite `long`. */
const MODES = partOf(RULE_MODES, (mode) => mode === 'compact');

const scenes = openScenes(
  test,
  MODES.map((ruleMode) => ({ ruleMode, nodes: NODES })),
);

/** Confs of reference main plugins that ask us for the address. */
function mainConf(node: SceneNode, type: 'ptp' | 'bridge'): Conflist {
  const ipam = { type: 'tke-eni-ipamc', backend: `unix:${node.agent.socketPath}` };
  const own = type === 'ptp' ? {} : { bridge: 'tkebr0', isGateway: true };
  return { cniVersion: '1.0.0', name: `${type}-net`, plugins: [{ type, mtu: 1500, ...own, ipam }] };
}

function lastOf(t: ExecutionContext, answers: readonly CniAnswer[]): JsonObject {
  for (const answer of answers) t.is(answer.exitCode, 0, answer.stdout + answer.stderr);
  return answers.at(-1)?.result ?? {};
}

type MainPod = ScenePod & { readonly ip: string; readonly result: JsonObject; readonly list: Conflist };

async function addThrough(t: ExecutionContext, node: SceneNode, type: 'ptp' | 'bridge'): Promise<MainPod> {
  const pod = await node.newPod();
  const list = mainConf(node, type);
  const result = lastOf(t, await callChain('ADD', pod, list));
  return { ...pod, result, list, ip: ipsOf(result)[0] ?? '' };
}

for (const ruleMode of MODES) {
  for (const type of ['ptp', 'bridge'] as const) {
    test.serial(`tke-eni-ipamc: packets flow by the ENI under the reference ${type}, ${ruleMode}`, async (t) => {
      const { node, nodes, vpc } = scenes.get(ruleMode);
      const [, n2] = nodes;
      if (n2 === undefined) return t.fail('the scene has two nodes');
      const pods = [await addThrough(t, node, type), await addThrough(t, node, type)] as const;
      const [a, b] = pods;
      const far = await n2.addPod();
      const near = await node.addPod();
      t.is(vpc.eniOf(a.ip), 'eni-1');
      await scenes.verify(t, ruleMode);
      await vpc.resetPacketLog();
      t.true(await a.netns.ping(vpc.outside.ip), 'Pod -> outside');
      t.true(await a.netns.ping(b.ip), 'Pod -> Pod of the same main plugin');
      t.true(await a.netns.ping(near.ip), 'Pod -> Pod of tke-route-eni');
      t.true(await near.netns.ping(a.ip), 'and back');
      t.true(await a.netns.ping(far.ip), 'Pod -> Pod on the other node');
      t.true(await far.netns.ping(b.ip), 'Pod on the other node -> Pod');
      t.true(await node.netns.ping(a.ip), 'node -> Pod');
      t.true(await vpc.outside.netns.ping(a.ip), 'outside -> Pod');
      t.deepEqual(await vpc.droppedPackets(), []);
      const out = (await vpc.packetLog()).filter((way) => way.src === a.ip && way.dst === vpc.outside.ip);
      t.deepEqual([...new Set(out.map((way) => way.via))], ['eni-1'], 'it leaves by its own ENI');

      lastOf(t, await callChain('CHECK', a, a.list, { prevResult: a.result }));
      for (const pod of [a, a, b]) lastOf(t, await callChain('DEL', pod, pod.list, { prevResult: pod.result }));
      await Promise.all([node.delete(near), n2.delete(far)]);
      for (const pod of pods) {
        t.deepEqual(await node.tracesOf(pod.ip), []);
        t.deepEqual(await pod.netns.linkNames(), ['lo']);
      }
      await node.netns.tryRun(['ip', 'link', 'delete', 'tkebr0']);
      await scenes.verify(t, ruleMode);
    });
  }
}

for (const cniVersion of VERSIONS) {
  shortTest.serial(`tke-eni-ipamc: prints addresses and routes and no interface, CNI ${cniVersion}`, async (t) => {
    const { node, vpc } = scenes.get('compact');
    const pod = await node.newPod();
    const conf = {
      cniVersion,
      name: 'any',
      type: 'macvlan',
      master: 'eth0',
      ipam: { type: 'tke-eni-ipamc', backend: `unix:${node.agent.socketPath}` },
    };
    const result = succeed(t, await node.call('ADD', pod, { plugin: 'tke-eni-ipamc', conf }));
    const [ip = ''] = ipsOf(result);
    t.is(vpc.eniOf(ip), 'eni-1');
    const gateway = node.enis[0]?.primaryIp;
    t.deepEqual(result, {
      cniVersion,
      ips: [
        {
          ...(cniVersion.startsWith('0.') ? { version: '4' } : {}),
          address: `${ip}/24`,
          gateway,
        },
      ],
      // The halves of the subnet: its other members are behind the gateway too.
      routes: [{ dst: '0.0.0.0/0' }, { dst: '10.0.2.0/25', gw: gateway }, { dst: '10.0.2.128/25', gw: gateway }],
    });
    t.deepEqual(await pod.netns.linkNames(), ['lo'], "the link is the main plugin's");
    await scenes.verify(t, 'compact');
    succeedSilently(t, await node.call('DEL', pod, { plugin: 'tke-eni-ipamc', conf }));
    await scenes.verify(t, 'compact');
  });
}

shortTest.serial('tke-eni-ipamc: gives cilium-cni the ENI as uplink, and keeps no rule for the address', async (t) => {
  const { node, vpc } = scenes.get('compact');
  const conf = {
    ...{ cniVersion: '1.1.0', name: 'cilium', type: 'cilium-cni', 'enable-debug': false, 'log-file': '/run/c.log' },
    ipam: { type: 'tke-eni-ipamc', uplink: true, backend: `unix:${node.agent.socketPath}` },
  };
  const call = (command: 'ADD' | 'DEL' | 'CHECK' | 'STATUS' | 'GC', pod?: ScenePod, more: JsonObject = {}) =>
    node.call(command, pod, { plugin: 'tke-eni-ipamc', conf: { ...conf, ...more } });
  const rulesOf = async (ip: string) =>
    (await node.netns.ipJson('rule', 'show')).filter(({ src, dst }) => src === ip || dst === ip);
  succeedSilently(t, await call('STATUS'));
  const [pod, other] = [await node.newPod(), await node.newPod()];
  const result = succeed(t, await call('ADD', pod));
  const [ip = ''] = ipsOf(result);
  t.is(vpc.eniOf(ip), 'eni-1');
  const [eni] = await node.netns.ipJson('link', 'show', 'dev', 'eth1');
  t.deepEqual(result, {
    cniVersion: '1.1.0',
    interfaces: [{ name: 'eth1', mac: eni?.['address'] }],
    ips: [{ address: `${ip}/24`, gateway: '10.0.2.1' }],
    routes: [{ dst: '0.0.0.0/0', gw: '10.0.2.1' }],
  });
  t.deepEqual(await rulesOf(ip), []);
  t.deepEqual(succeed(t, await call('ADD', pod)), result, 'the same again');
  succeedSilently(t, await call('CHECK', pod, { prevResult: result }));
  const { uplink: _no, ...ipam } = conf.ipam;
  const plain = succeed(t, await call('ADD', other, { ipam }));
  t.is((await rulesOf(ipsOf(plain)[0] ?? '')).length, 2, 'without the option the rules are ours');
  await node.killAgent();
  await node.startAgent();
  t.deepEqual(await rulesOf(ip), [], 'after a restart too');
  const valid = [{ containerID: pod.containerId, ifname: pod.ifName }];
  await other.netns.close();
  succeedSilently(t, await call('GC', undefined, { 'cni.dev/valid-attachments': valid }));
  t.deepEqual(await rulesOf(ipsOf(plain)[0] ?? ''), [], 'GC ends what is not valid and lives no more');
  t.deepEqual(succeed(t, await call('ADD', pod)), result, 'and nothing else');
  for (let round = 0; round < 2; round++) succeedSilently(t, await call('DEL', pod));
  // The route that refuses packets to an address is made by a pass of its own once cilium-cni has it no more.
  await waitUntil(async () => (await node.violations()).length === 0, { what: 'the invariants of the node' });
});

shortTest.serial('tke-eni-ipamc: leaves a DEL for an agent that is dead', async (t) => {
  const { node } = scenes.get('compact');
  const pod = await addThrough(t, node, 'ptp');
  await node.killAgent();
  lastOf(t, await callChain('DEL', pod, pod.list, { prevResult: pod.result }));
  t.is(node.spooled().length, 1);
  await node.startAgent();
  t.deepEqual(await node.tracesOf(pod.ip), []);
  await scenes.verify(t, 'compact');
});

shortTest.serial('tke-eni-ipamc: names the reason through the main plugin when there is no agent', async (t) => {
  const { node } = scenes.get('compact');
  await node.agent.stop();
  const pod = await node.newPod();
  const [answer] = await callChain('ADD', pod, mainConf(node, 'ptp'));
  if (answer === undefined) return t.fail('no answer');
  const error = fail(t, { ...answer, stderr: '' });
  t.is(error.code, 11);
  t.is(error.msg, `the agent on unix:${node.agent.socketPath} does not answer`);
  await node.startAgent();
});

shortTest.serial('tke-direct-eni: is told that a node without exclusive ENIs has none', async (t) => {
  const { node } = scenes.get('compact');
  const answer = await node.call('ADD', await node.newPod(), { plugin: 'tke-direct-eni' });
  const error = fail(t, answer);
  t.is(error.code, 101);
  t.regex(error.msg, /no exclusive ENI left: free 0, cooling 0, in use 0 of 0/);
});
