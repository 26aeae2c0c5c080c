import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { partOf, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { fail, succeedSilently } from './support/cni-answers.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';
import type { AttachedPod } from './support/scene-node.ts';

/** So long that an address which rests once rests for the whole test file. */
const COOLDOWN = { 'ip-cooldown': '1h' } as const;

/** The other layout is tried in the suite `long`. */
const MODES = partOf(RULE_MODES, (mode) => mode === 'compact');

const scenes = openScenes(
  test,
  MODES.map((ruleMode) => ({
    ruleMode,
    nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 40 }] }],
    agentFlags: COOLDOWN,
  })),
);

/** What is still to be found of a Pod on its node. */
async function leftOf(pod: AttachedPod): Promise<readonly string[]> {
  const links = await pod.node.netns.ipJson('-d', 'link', 'show', 'type', 'veth');
  const ours = links.filter((link) => String(link['ifalias']).includes(pod.containerId));
  return [...ours.map((link) => String(link['ifname'])), ...(await pod.node.tracesOf(pod.ip))];
}

for (const ruleMode of MODES) {
  test.serial(`DEL: leaves nothing when CNI_NETNS is empty, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    const pod = await node.addPod();
    t.not((await leftOf(pod)).length, 0, 'there is something to leave');
    succeedSilently(t, await node.call('DEL', pod, { env: { CNI_NETNS: '' } }));
    t.deepEqual(await leftOf(pod), []);
    t.deepEqual(await pod.netns.linkNames(), ['lo']);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`DEL: leaves nothing when CNI_NETNS is not set, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    const pod = await node.addPod();
    succeedSilently(t, await node.call('DEL', pod, { env: { CNI_NETNS: undefined, CNI_ARGS: undefined } }));
    t.deepEqual(await leftOf(pod), []);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`DEL: leaves nothing when the netns is gone already, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    const pod = await node.addPod();
    await pod.netns.close();
    succeedSilently(t, await node.call('DEL', pod));
    t.deepEqual(await leftOf(pod), []);
    succeedSilently(t, await node.call('DEL', pod));
    await scenes.verify(t, ruleMode);
  });

  test.serial(`DEL: succeeds and touches nobody when the sandbox is unknown, ${ruleMode}`, async (t) => {
    const { node, vpc } = scenes.get(ruleMode);
    const bystander = await node.addPod();
    // The very namespace and Pod name of a Pod that lives: only the container id is another.
    const unknown = { ...bystander, containerId: 'unknown-to-the-agent' };
    succeedSilently(t, await node.call('DEL', unknown));
    t.true(await bystander.netns.ping(vpc.outside.ip));
    await node.delete(bystander);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`DEL: is left for an agent that is dead, which does it before it serves, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    const pod = await node.addPod();
    const survivor = await node.addPod();
    await node.killAgent();
    succeedSilently(t, await node.call('DEL', pod));
    t.is(node.spooled().length, 1);
    t.not((await leftOf(pod)).length, 0, 'nobody else writes the kernel');
    succeedSilently(t, await node.call('DEL', pod));
    t.is(node.spooled().length, 1, 'one attachment, one file');

    // Ready means that an ADD could be served; by then the DEL must be done.
    await node.startAgent();
    t.deepEqual(await leftOf(pod), []);
    t.deepEqual(node.spooled(), []);
    await scenes.verify(t, ruleMode);
    const next = await node.addPod();
    t.not(next.ip, pod.ip, 'the address rests');
    await node.delete(next, survivor);
    await scenes.verify(t, ruleMode);
  });

  test.serial(`DEL: is left for an agent that is stopped, which does it when it goes on, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    const pod = await node.addPod();
    node.agent.kill('SIGSTOP');
    try {
      succeedSilently(t, await node.call('DEL', pod, { conf: node.conf({ timeoutMs: 500 }) }));
      t.is(node.spooled().length, 1);
      t.not((await leftOf(pod)).length, 0);
      const refused = fail(t, await node.call('ADD', await node.newPod(), { conf: node.conf({ timeoutMs: 500 }) }));
      t.is(refused.code, 11);
    } finally {
      node.agent.kill('SIGCONT');
    }
    await node.awaitDrained();
    await waitUntil(async () => (await leftOf(pod)).length === 0, { what: 'the Pod gone' });
    // The ADD whose caller gave up must not have left anything either.
    await waitUntil(async () => (await node.hostVeths()).length === 0, { what: 'no host veth' });
    await waitUntil(async () => (await node.violations()).length === 0, { what: 'the node at rest' });
    await scenes.verify(t, ruleMode);
    const next = await node.addPod();
    t.not(next.ip, pod.ip, 'the address rests');
    await node.delete(next);
  });

  test.serial(`DEL: loses nothing when the agent starts at that moment, ${ruleMode}`, async (t) => {
    const { node } = scenes.get(ruleMode);
    // From before the process exists until after it serves: start-up takes some hundred milliseconds.
    for (const delayMs of [0, 80, 160, 240, 400]) {
      const pod = await node.addPod();
      await node.killAgent();
      const starting = node.startAgent();
      await sleep(delayMs);
      succeedSilently(t, await node.call('DEL', pod));
      await starting;
      await node.awaitDrained();
      await waitUntil(async () => (await leftOf(pod)).length === 0, {
        what: `Pod gone, DEL ${delayMs} ms after start`,
      });
      await scenes.verify(t, ruleMode);
    }
  });
}

shortTest.serial('ADD: answers code 11 when no agent runs', async (t) => {
  const { node } = scenes.get('compact');
  await node.agent.stop();
  const pod = await node.newPod();
  const error = fail(t, await node.call('ADD', pod));
  t.is(error.code, 11);
  t.is(error.msg, `the agent on unix:${node.agent.socketPath} does not answer`);
  t.regex(error.details ?? '', /^ADD: UNREACHABLE: .*; see whether the tke-eni-agent Pod of this node runs/);
  t.deepEqual(await pod.netns.linkNames(), ['lo']);
  t.is(fail(t, await node.call('STATUS', undefined, { conf: node.conf({ cniVersion: '1.1.0' }) })).code, 50);
  await node.startAgent();
  await node.delete(await node.add(pod));
});
