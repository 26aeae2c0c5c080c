import test from 'ava';
import { callInTime } from '../support/call-in-time.ts';
import { IS_LONG, partOf, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { fail } from './support/cni-answers.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';
import type { AttachedPod, SceneNode } from './support/scene-node.ts';

const MANY = IS_LONG ? 30 : 24;

/** The other layout is tried in the suite `long`. */
const MODES = partOf(RULE_MODES, (mode) => mode === 'compact');

const scenes = openScenes(test, [
  ...MODES.map((ruleMode) => ({
    ruleMode,
    nodes: [
      {
        name: 'n1',
        enis: [
          { eniId: 'eni-1', ips: 20 },
          { eniId: 'eni-2', ips: 20 },
        ],
      },
    ],
  })),
  {
    key: 'three addresses',
    ruleMode: 'compact',
    nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 3 }] }],
    agentFlags: { 'ip-cooldown': '1h' },
  },
]);

function addMany(node: SceneNode, count: number): Promise<readonly AttachedPod[]> {
  return Promise.all(Array.from({ length: count }, () => node.addPod()));
}

for (const ruleMode of MODES) {
  test.serial(`ADD: serves ${MANY} at once, and DEL takes ${MANY} at once back, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const pods = await addMany(node, MANY);
    t.is(new Set(pods.map(({ ip }) => ip)).size, MANY, 'no address twice');
    t.is((await node.hostVeths()).length, MANY);
    await scenes.verify(t, ruleMode);
    const reached = await Promise.all(pods.map(({ netns }) => netns.ping(vpc.outside.ip)));
    t.true(reached.every(Boolean), 'every Pod reaches the outside');

    await node.delete(...pods);
    t.deepEqual(await node.hostVeths(), []);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`DEL: of old Pods and ADD of new ones at once do not disturb each other, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const old = await addMany(node, 10);
    const [young] = await Promise.all([addMany(node, 10), node.delete(...old)]);
    t.is(new Set(young.map(({ ip }) => ip)).size, young.length);
    t.is((await node.hostVeths()).length, young.length);
    const reached = await Promise.all(young.map(({ netns }) => netns.ping(vpc.outside.ip)));
    t.true(reached.every(Boolean));
    await scenes.verify(t, ruleMode);
    await node.delete(...young);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`ADD: one wins and all answer the same when it comes ten times at once, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    const pod = await node.newPod();
    const answers = await Promise.all(Array.from({ length: 10 }, () => node.add(pod)));
    for (const { result } of answers) t.deepEqual(result, answers[0]?.result);
    t.is((await node.hostVeths()).length, 1);
    await node.delete(pod);
    await scenes.verify(t, ruleMode);
  });
}

shortTest.serial(
  'cooldown: a freed address rests while there is another; then the one that rested longest comes',
  async (t) => {
    const { node } = scenes.get('three addresses');
    const [a, b, c] = [await node.addPod(), await node.addPod(), await node.addPod()];
    await node.delete(b);
    await node.delete(a);
    // Only b's and a's addresses are left, and both rest: the pool is under pressure.
    const first = await node.addPod();
    t.is(first.ip, b.ip, 'b rested longer');
    const second = await node.addPod();
    t.is(second.ip, a.ip);
    await node.delete(c);
    const third = await node.addPod();
    t.is(third.ip, c.ip);
    await scenes.verify(t, 'three addresses');
    await node.delete(first, second, third);
  },
);

shortTest.serial('cooldown: survives a restart of the agent', async (t) => {
  const { node, vpc } = scenes.get('three addresses');
  const ip = await vpc.assignIp('eni-1');
  node.writeSupply();
  // All others rest since the test before; the new one never had an owner.
  const pod = await waitUntil(
    async () => {
      const candidate = await node.addPod();
      if (candidate.ip === ip) return candidate;
      await node.delete(candidate);
      return false;
    },
    { what: `a Pod with ${ip}` },
  );
  await node.delete(pod);
  const fresh = await vpc.assignIp('eni-1');
  await node.agent.stop();
  node.writeSupply();
  await node.startAgent();
  const next = await node.addPod();
  t.is(next.ip, fresh, 'what rested before the restart rests after it');
  await node.delete(next);
  await scenes.verify(t, 'three addresses');
});

shortTest.serial('ADD: says how many addresses there are when none is left', async (t) => {
  const { node } = scenes.get('three addresses');
  const size = poolSize(node);
  const pods = await addMany(node, size);
  const pod = await node.newPod();
  const conf = { conf: node.conf({ timeoutMs: 3_000 }) };
  const error = fail(t, await callInTime(() => node.call('ADD', pod, conf)));
  t.is(error.code, 101);
  // A second of the three is left for the answer; the agent's own limit is five.
  t.regex(error.msg, new RegExp(`^no address left: want IPv4, free 0, cooling 0, in use ${size} \\(waited [23] s\\)$`));
  // One that waits is served as soon as somebody else gives an address back.
  const [waiting] = await Promise.all([node.add(pod), node.delete(pods[0] ?? pod)]);
  t.true(pods[0]?.ip === waiting.ip);
  await node.delete(...pods.slice(1), waiting);
  await scenes.verify(t, 'three addresses');
});

shortTest.serial('ADD: a caller that is killed while it waits holds no address', async (t) => {
  const { node } = scenes.get('three addresses');
  const pods = await addMany(node, poolSize(node));
  const doomed = await node.newPod();
  const waiting = node.start('ADD', doomed);
  await waitUntil(() => waiting.isRunning && isConnected(node, waiting.pid), { what: 'the ADD waits in the agent' });
  await waiting.stop('SIGKILL');
  const [first, ...rest] = pods;
  if (first === undefined) return t.fail('the pool is empty');
  await node.delete(first);
  const next = await node.addPod();
  t.is(next.ip, first.ip);
  t.deepEqual(await doomed.netns.linkNames(), ['lo']);
  await scenes.verify(t, 'three addresses');
  await node.delete(next, ...rest);
});

/** How many addresses the node's ENIs have. */
function poolSize(node: SceneNode): number {
  return node.enis.reduce((sum, { eniId }) => sum + node.vpc.assignedIps(eniId).length, 0);
}

/** Reports whether a process holds a connection to the agent's socket. */
async function isConnected(node: SceneNode, pid: number): Promise<boolean> {
  const { stdout } = await node.netns.tryRun(['ss', '-xpH', 'state', 'connected']);
  const lines = stdout.split('\n');
  const ours = lines.filter((line) => line.includes(`pid=${pid},`));
  const inodes = ours.flatMap((line) => line.match(/\b\d{3,}\b/g) ?? []);
  return lines.some((line) => line.includes(node.agent.socketPath) && inodes.some((inode) => line.includes(inode)));
}
