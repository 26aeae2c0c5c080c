import test from 'ava';
import { openNetns } from '../../netlink/netns.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { buildExecutables } from '../../tools/build.ts';
import { PacketSocket } from '../support/packet-socket.ts';
import { fail, succeedSilently } from './support/cni-answers.ts';
import { placeOf } from './support/fault-trial.ts';
import { changesBetween, kernelImage } from './support/kernel-image.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// Pods whose sandbox has a network stack of its own: it took addresses and routes out of the namespace, as gVisor does.

/** As runsc: the addresses, with them the routes, and what routes are left. */
async function takeOut(netns: NetnsView): Promise<void> {
  await netns.ip('address', 'flush', 'dev', 'eth0');
  await netns.ip('-6', 'route', 'flush', 'dev', 'eth0');
}

async function check(trial: Trial, pod: AttachedPod) {
  return trial.node.call('CHECK', pod, { conf: trial.node.conf({ prevResult: pod.result }) });
}

/** What is of the test's machine, or of folders of CNI that this node does not have. */
const NOT_OF_THE_NODE = 'networkd,network-manager,cloud-init,inotify,state-dir-not-tmpfs,conntrack-pressure';

/** What doctor and diff find. */
async function findFaults(trial: Trial): Promise<readonly string[]> {
  const doctor = await askCli(placeOf(trial), 'doctor', '--skip', NOT_OF_THE_NODE);
  const diff = await askCli(placeOf(trial), 'diff');
  return [...listOf(doctor.document, 'findings'), ...listOf(diff.document, 'differences')].map(({ id }) => String(id));
}

async function eth0Of(netns: NetnsView): Promise<number> {
  const [link] = await netns.ipJson('link', 'show', 'eth0');
  return Number(link?.['ifindex']);
}

test('CHECK, doctor, diff, explain, repair: leave the inside of a sandbox alone, by its handler or its packet socket', async (t) => {
  t.timeout(300_000);
  await buildExecutables(['tke-eni']);
  const trial = await openTrial({ ruleMode: 'compact', isDual: true });
  t.teardown(() => trial.close());
  const pod = await trial.addPod();
  const healthy = await findFaults(trial);
  t.false(healthy.some((id) => id.startsWith('pod-')));
  const listed = { id: pod.containerId, podName: pod.name, podNamespace: pod.namespace, netns: pod.netns.path };

  await takeOut(pod.netns);
  trial.runtime.addSandbox({ ...listed, ips: pod.ips });
  const address = `Pod: address ${pod.ip}/32 is missing on eth0`;
  t.true(fail(t, await check(trial, pod)).details?.includes(address), 'nothing says that it is a sandbox');
  t.true((await findFaults(trial)).includes('pod-address-missing'));

  trial.runtime.addSandbox({ ...listed, ips: pod.ips, handler: 'runsc' });
  const before = await kernelImage([pod.netns]);
  succeedSilently(t, await check(trial, pod));
  t.deepEqual(await findFaults(trial), healthy);
  const said = 'inside of a sandbox by runsc: not looked at';
  const diff = await runCli(placeOf(trial), 'diff');
  t.is(diff.code, 0, diff.stdout + diff.stderr);
  t.true(diff.stdout.includes(said), diff.stdout);
  const summed = await runCli(placeOf(trial), 'check', pod.name);
  t.is(summed.code, 0, summed.stdout + summed.stderr);
  const explained = await runCli(placeOf(trial), 'explain', pod.ip);
  t.true(explained.stdout.includes(said), explained.stdout + explained.stderr);
  const repaired = await runCli(placeOf(trial), 'repair');
  t.is(repaired.code, 0, repaired.stdout + repaired.stderr);
  t.deepEqual(changesBetween(before, await kernelImage([pod.netns])), []);
  await pod.netns.ip('link', 'set', 'eth0', 'mtu', '1300');
  t.is(fail(t, await check(trial, pod)).details, 'Pod: link eth0: mtu is 1300, should be 1500', 'the link is ours');
  await pod.netns.ip('link', 'set', 'eth0', 'mtu', '1500');

  trial.runtime.addSandbox({ ...listed, ips: pod.ips });
  {
    using netns = openNetns(pod.netns.path);
    using _reader = new PacketSocket(netns, await eth0Of(pod.netns));
    succeedSilently(t, await check(trial, pod));
    await trial.killAgent();
    const alone = await runCli(placeOf(trial), 'repair');
    t.is(alone.code, 0, alone.stdout + alone.stderr);
    t.deepEqual(changesBetween(before, await kernelImage([pod.netns])), [], 'without an agent nobody knows a handler');
  }
  const mended = await runCli(placeOf(trial), 'repair');
  t.is(mended.code, 0, mended.stdout + mended.stderr);
  t.true((await pod.netns.ip('address', 'show', 'dev', 'eth0')).includes(`${pod.ip}/32`));
});
