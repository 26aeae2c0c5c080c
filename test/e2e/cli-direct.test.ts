import test, { type ExecutionContext } from 'ava';
import type { RunResult } from '../../sim/support/run.ts';
import { buildExecutables } from '../../tools/build.ts';
import { runCli } from './support/run-cli.ts';
import { openScenes } from './support/scene.ts';
import type { AttachedPod, SceneNode } from './support/scene-node.ts';

// A Pod that has an ENI inside of it, beside one on a shared ENI: what the packaged tke-eni says of both, judged by packets.

const scenes = openScenes(test, [
  {
    ruleMode: 'compact',
    nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 3 }], directEnis: [{ eniId: 'eni-d1' }] }],
    agentFlags: { 'service-cidrs': '10.96.0.0/16' },
  },
]);

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
});

type Stage = {
  readonly node: SceneNode;
  readonly direct: AttachedPod;
  readonly shared: AttachedPod;
  readonly outside: string;
  ask(...words: readonly string[]): Promise<RunResult>;
};

async function stage(): Promise<Stage> {
  const { vpc, node } = scenes.get('compact');
  const conf = node.conf({ name: 'tke-direct-eni', type: 'tke-direct-eni' });
  const direct = await node.addPod({ plugin: 'tke-direct-eni', conf, namespace: 'shop', name: 'big-0' });
  const shared = await node.addPod({ namespace: 'shop', name: 'web-0' });
  const { stateDir, socketPath } = node.agent;
  const place = { netns: node.netns, stateDir, socketPath };
  return { node, direct, shared, outside: vpc.outside.ip, ask: (...words) => runCli(place, ...words) };
}

async function assertWell(t: ExecutionContext, { ask }: Stage, ...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await ask('explain', ...words);
  t.is(code, 0, `${words.join(' ')}:\n${stdout}${stderr}`);
  t.notRegex(stdout, /BROKEN|warning|unknown ENI/);
  return stdout;
}

test.serial('explain: says of a Pod with an ENI of its own where its packets leave, and finds no fault', async (t) => {
  t.timeout(120_000);
  const scene = await stage();
  const { direct, shared, outside } = scene;
  for (const ip of [outside, shared.ip]) t.true(await direct.netns.ping(ip), ip);
  t.true(await shared.netns.ping(direct.ip));
  t.true(await scene.node.netns.ping(direct.ip));
  const said = await assertWell(t, scene, 'shop/big-0');
  t.regex(said, /on ENI eni-d1, its own$/m);
  t.regex(said, /leaves by ENI eni-d1, its own, which is eth0 in the Pod/);
  t.regex(said, /arrives by ENI eni-d1, its own/);
  t.regex(said, /its packets leave\s+inside its namespace/);
  t.regex(said, /this node -> |\(this node\) -> /);
  await assertWell(t, scene, direct.ip);
  await assertWell(t, scene, 'shop/big-0', '--to', shared.ip);
  await assertWell(t, scene, 'shop/big-0', '--from', outside);
  const between = await assertWell(t, scene, 'shop/web-0', '--to', direct.ip);
  t.regex(between, /beside the ENI that the Pod has as its own/);
});

test.serial(
  'explain: says that packets to Services go by the link to the node, and that it follows them no further',
  async (t) => {
    const { ask } = await stage();
    const { stdout } = await ask('explain', 'shop/big-0', '--to', '10.96.0.10');
    t.notRegex(stdout, /BROKEN/);
    t.regex(stdout, /the link to this node beside its own ENI/);
    t.regex(stdout, /not walked/);
  },
);

test.serial('explain: names what is broken inside of such a Pod, and packets do fail', async (t) => {
  const { direct, outside, ask } = await stage();
  await direct.netns.ip('address', 'flush', 'dev', 'eth0', 'scope', 'global');
  t.false(await direct.netns.ping(outside));
  const { code, stdout } = await ask('explain', 'shop/big-0', '--to', outside);
  t.is(code, 1);
  t.regex(stdout, /pod-address-missing/);
});

test.serial('pods, enis, status, diff, check, repair, graph: take a Pod with an ENI of its own as it is', async (t) => {
  t.timeout(120_000);
  const { direct, ask } = await stage();
  const pods = JSON.parse((await ask('pods', direct.ip, '-o', 'json')).stdout);
  t.like(pods[0], { namespace: 'shop', pod: 'big-0', ips: [direct.ip], eniId: 'eni-d1', state: 'active' });
  for (const words of [['enis'], ['status'], ['pool'], ['diff'], ['check'], ['repair', '--dry-run']]) {
    const { code, stdout, stderr } = await ask(...words);
    t.is(code, 0, `${words.join(' ')}:\n${stdout}${stderr}`);
  }
  const { code, stdout, stderr } = await ask('graph', '-o', 'json');
  t.is(code, 0, `${stdout}${stderr}`);
  const { groups, nodes } = JSON.parse(stdout);
  t.true(groups.some((one: object) => 'title' in one && one.title === 'ENIs inside of Pods'));
  t.false(nodes.some((one: object) => 'state' in one && one.state === 'broken'));
});
