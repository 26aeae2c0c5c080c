import test from 'ava';
import { callInTime } from '../support/call-in-time.ts';
import { waitUntil } from '../support/wait-until.ts';
import { fail, succeedSilently } from './support/cni-answers.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';

const scenes = openScenes(
  test,
  RULE_MODES.map((ruleMode) => ({
    ruleMode,
    nodes: [
      { name: 'n1', enis: [{ eniId: 'eni-1', ips: 8 }] },
      // An ENI that has no address yet.
      { name: 'n2', enis: [{ eniId: 'eni-2', ips: 1 }] },
    ],
  })),
);

for (const ruleMode of RULE_MODES) {
  test.serial(
    `GC: releases what the runtime does not list and does not live, and that alone, ${ruleMode}`,
    async (t) => {
      const { node, vpc } = scenes.get(ruleMode);
      const kept = await node.addPod();
      const [unlisted, gone] = [await node.addPod(), await node.addPod({ ifName: 'net1' })];
      const dead = await node.addPod();
      for (const pod of [gone, dead]) await pod.netns.close();
      const other = await node.addPod({ conf: node.conf({ name: 'other-network' }) });
      const conf = node.conf({
        cniVersion: '1.1.0',
        'cni.dev/valid-attachments': [
          { containerID: kept.containerId, ifname: 'eth0' },
          // Another interface of it; the one that it had does not live.
          { containerID: dead.containerId, ifname: 'net1' },
          { containerID: 'never-seen', ifname: 'eth0' },
        ],
      });
      succeedSilently(t, await node.call('GC', undefined, { conf }));
      t.is((await node.hostVeths()).length, 3, 'what lives, and the one of another network');
      for (const pod of [gone, dead]) t.deepEqual(await node.tracesOf(pod.ip), []);
      for (const pod of [kept, unlisted, other]) t.true(await pod.netns.ping(vpc.outside.ip));
      await scenes.verify(t, ruleMode);
      succeedSilently(t, await node.call('GC', undefined, { conf }));
      await node.delete(kept, unlisted, other);
      await scenes.verify(t, ruleMode);
    },
  );
}

test.serial('GC: an empty list, as of another runtime, takes nothing from Pods that live', async (t) => {
  const { node, vpc } = scenes.get('compact');
  const pods = await Promise.all([node.addPod(), node.addPod()]);
  const conf = node.conf({ cniVersion: '1.1.0', 'cni.dev/valid-attachments': [] });
  succeedSilently(t, await node.call('GC', undefined, { conf }));
  for (const pod of pods) t.true(await pod.netns.ping(vpc.outside.ip));
  await scenes.verify(t, 'compact');
  await node.delete(...pods);
});

test.serial('GC: without a list it succeeds, and no Pod that lives loses a packet', async (t) => {
  const { node, vpc } = scenes.get('compact');
  const pods = await Promise.all([node.addPod(), node.addPod()]);
  const conf = node.conf({ cniVersion: '1.1.0' });
  const pings = Promise.all(pods.map((pod) => pod.netns.ping(vpc.outside.ip, { count: 10 })));
  succeedSilently(t, await node.call('GC', undefined, { conf }));
  t.deepEqual(await pings, [true, true]);
  t.is((await node.hostVeths()).length, 2);
  await node.delete(...pods);
});

test.serial('STATUS: is 0 when an ADD could be served, also when the pool is empty for the moment', async (t) => {
  const { nodes } = scenes.get('compact');
  const [, n2] = nodes;
  if (n2 === undefined) return t.fail('the scene has two nodes');
  const conf = n2.conf({ cniVersion: '1.1.0' });
  succeedSilently(t, await n2.call('STATUS', undefined, { conf }));
  const pod = await n2.addPod();
  succeedSilently(t, await n2.call('STATUS', undefined, { conf }));
  await n2.delete(pod);
});

test.serial('STATUS: is 50 without an ENI and without Pods, 51 when Pods still live there', async (t) => {
  const { nodes, vpc } = scenes.get('compact');
  const [, n2] = nodes;
  if (n2 === undefined) return t.fail('the scene has two nodes');
  const conf = n2.conf({ cniVersion: '1.1.0' });
  const status = () => n2.call('STATUS', undefined, { conf });
  const pod = await n2.addPod();
  const [eni] = n2.enis;
  await n2.netns.ip('link', 'delete', eni?.ifname ?? '');
  const limited = await waitUntil(async () => ((await status()).exitCode === 1 ? status() : false), {
    what: 'STATUS says that the ENI is gone',
  });
  t.deepEqual(fail(t, limited), {
    code: 51,
    msg: 'no ENI of this node is set up',
    details: `eni-2: no link with MAC ${eni?.mac}`,
  });
  const late = await n2.newPod();
  const refused = fail(t, await callInTime(() => n2.call('ADD', late, { conf: n2.conf({ timeoutMs: 2_000 }) })));
  t.is(refused.code, 102);
  await n2.delete(pod);
  t.is(fail(t, await status()).code, 50);

  await vpc.replug('eni-2');
  await waitUntil(async () => (await status()).exitCode === 0, { what: 'the ENI is back' });
  const again = await n2.addPod();
  t.true(await again.netns.ping(vpc.outside.ip));
  await n2.delete(again);
});

test.serial('STATUS: is 50 while the ENIs have no addresses', async (t) => {
  const { nodes, vpc } = scenes.get('per-pod');
  const [, n2] = nodes;
  if (n2 === undefined) return t.fail('the scene has two nodes');
  const conf = n2.conf({ cniVersion: '1.1.0' });
  const status = () => n2.call('STATUS', undefined, { conf });
  for (const { ip } of vpc.assignedIps('eni-2')) await vpc.unassignIp('eni-2', ip);
  n2.writeSupply();
  const refused = await waitUntil(async () => ((await status()).exitCode === 1 ? status() : false), {
    what: 'STATUS says that there are no addresses',
  });
  t.deepEqual(fail(t, refused), { code: 50, msg: 'the ENIs of this node have no addresses yet' });
  await vpc.assignIp('eni-2');
  n2.writeSupply();
  await waitUntil(async () => (await status()).exitCode === 0, { what: 'STATUS 0 with an address' });
});

test.serial('STATUS: is 50 when no agent runs, and names the socket', async (t) => {
  const { nodes } = scenes.get('per-pod');
  const [, n2] = nodes;
  if (n2 === undefined) return t.fail('the scene has two nodes');
  await n2.agent.stop();
  const error = fail(t, await n2.call('STATUS', undefined, { conf: n2.conf({ cniVersion: '1.1.0' }) }));
  t.is(error.code, 50);
  t.is(error.msg, `the agent on unix:${n2.agent.socketPath} does not answer`);
  await n2.startAgent();
});
