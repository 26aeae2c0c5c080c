import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { RuleMode } from '../../dataplane/network.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { createTestVpc, type TestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { longTest, partOf, shortTest } from '../support/suite-part.ts';
import { createTempDir, type TempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { FORWARDING, snapshot, uninstallArgv } from './support/leaving.ts';
import { SceneNode } from './support/scene-node.ts';

/** A node that no agent has seen yet: two ENIs are plugged in, nothing is set up. */
type Bare = { readonly vpc: TestVpc; readonly dir: TempDir; readonly node: SceneNode; close(): Promise<void> };

async function openBare(ruleMode: RuleMode, flags: SceneNode['flags'] = {}): Promise<Bare> {
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16', 'fd00:10::/32'],
    subnets: [
      { id: 'subnet-a', cidr: '10.0.1.0/24', cidrV6: 'fd00:10:0:1::/64' },
      { id: 'subnet-b', cidr: '10.0.2.0/24', cidrV6: 'fd00:10:0:2::/64' },
    ],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('uninstall');
  const enis = [];
  for (const eniId of ['eni-1', 'eni-2']) {
    enis.push(await vpc.attachEni('n1', { eniId, subnetId: 'subnet-b' }));
    for (let count = 0; count < 2; count++) await vpc.assignDual(eniId);
  }
  const node = new SceneNode({
    ...{ vpc, name: 'n1', dir: dir.path, ruleMode, enis },
    flags: {
      ...{ 'rule-mode': ruleMode, 'gc-interval': '1h', 'add-wait': '5s', 'ip-cooldown': '0s' },
      'plugin-dir': DIST_BIN_DIR,
      'port-mapping': true,
      ...flags,
    },
  });
  node.writeSupply();
  const close = async (): Promise<void> => {
    await node.killAgent().catch(() => {});
    await vpc.close();
    dir.close();
  };
  return { vpc, dir, node, close };
}

const withBare = test.macro(
  async (t: ExecutionContext, mode: RuleMode, body: (t: ExecutionContext, bare: Bare) => Promise<void>) => {
    t.timeout(240_000);
    const bare = await openBare(mode);
    try {
      await body(t, bare);
    } finally {
      await bare.close();
    }
  },
);

test.before(async () => {
  await buildExecutables(['tke-route-eni', 'tke-eni-agent']);
});

type Outcome = { readonly code: number | null; readonly out: string; readonly err: string };

async function uninstall(node: SceneNode, ...flags: readonly string[]): Promise<Outcome> {
  const answer = await node.netns.tryRun(uninstallArgv(node, flags), { env: childEnv() });
  return { code: answer.code, out: answer.stdout, err: answer.stderr };
}

/** Files of ours anywhere in the node's folder. The supply is the test's own. */
function filesOf(dir: string): readonly string[] {
  return readdirSync(dir, { recursive: true })
    .map(String)
    .filter((name) => !['node.yaml', 'cni-bin', 'cni-conf', 'kubelet', 'kubelet/device-plugins'].includes(name))
    .sort();
}

/** Lets Pods come, and dies with them still there: sandboxes end without a DEL, and the agent without a farewell. */
async function liveAndDie({ node, vpc }: Bare, t: ExecutionContext): Promise<void> {
  await node.startAgent();
  const pods = [await node.addPod(), await node.addPod(), await node.addPod()];
  t.true(await pods[0]?.netns.ping(vpc.outside.ip), 'the Pods had their network');
  // It comes last of what an agent puts: executables and reference plugins are copied after an ADD may be served.
  const conflist = join(node.dir, 'cni-conf', '10-tke-eni.conflist');
  await waitUntil(() => existsSync(conflist), { what: 'the network configuration' });
  await node.killAgent();
  for (const { netns } of pods) await netns.close();
}

/** Runs `uninstall` and kills it as one of its threads enters its n-th call of these. Reports whether it was killed. */
async function isKilledAt(node: SceneNode, calls: string, nth: number): Promise<boolean> {
  // Its children are let alone: a killed nft is an error of another kind.
  const watch = ['-f', '-b', 'execve', '-q', '-o', '/dev/null', '-e', `trace=${calls}`];
  const argv = ['strace', ...watch, '-e', `inject=${calls}:signal=KILL:when=${nth}`, ...uninstallArgv(node)];
  const { code, stdout, stderr } = await node.netns.tryRun(argv, { env: childEnv() });
  if (code !== 0 && code !== null && code !== 137)
    throw new Error(`not killed, and ended with ${code}: ${stdout}${stderr}`);
  return code !== 0;
}

const MOST_KILLS = 100;

/** How often a run writes that is refused as soon as it began: what comes later changes something. */
async function countWrites({ node, dir }: Bare): Promise<number> {
  const file = dir.join('start.strace');
  const argv = ['strace', '-f', '-q', '-o', file, '-e', 'trace=write,writev', ...uninstallArgv(node, ['--help'])];
  await node.netns.tryRun(argv, { env: childEnv() });
  const count = readFileSync(file, 'utf8').split('\n').length;
  rmSync(file);
  return count;
}

for (const mode of partOf(['compact', 'per-pod'] as const, (one) => one === 'compact')) {
  test(
    `uninstall: leaves a node as it was before the first agent, in ${mode} mode`,
    withBare,
    mode,
    async (t, bare) => {
      const { node, vpc } = bare;
      // rp_filter as distributions have it, so that the agent has something to change and to give back; a node of a
      // cluster forwards whoever does its network.
      await node.netns.sysctl({ 'net/ipv4/conf/eth0/rp_filter': 1, ...FORWARDING });
      const before = await snapshot(node.netns);
      await node.startAgent();
      const pods = [await node.addPod(), await node.addPod(), await node.addPod()];
      t.true(await pods[0]?.netns.ping(vpc.outside.ip), 'the Pods had their network');
      t.notDeepEqual(await snapshot(node.netns), before);
      mkdirSync(join(node.dir, 'kubelet', 'device-plugins'), { recursive: true });
      writeFileSync(join(node.dir, 'kubelet', 'device-plugins', 'tke-eni-ip.sock'), '');

      const refused = await uninstall(node);
      t.is(refused.code, 1);
      t.regex(refused.err, /another agent serves on .*agent\.sock/, 'nothing while an agent serves');
      await node.agent.stop();

      const names = pods.map(({ namespace, name }) => `${namespace}/${name}`);
      const busy = await snapshot(node.netns);
      const occupied = await uninstall(node);
      t.is(occupied.code, 1);
      for (const name of names) t.true(occupied.err.includes(name), `the refusal names ${name}: ${occupied.err}`);
      t.regex(occupied.err, /Drain the node.*--despite-pods/);
      t.deepEqual(await snapshot(node.netns), busy, 'a refusal touches nothing');

      // One goes by a DEL that an executable leaves for an agent that is not there, two die with their namespaces.
      const [first] = pods;
      if (first !== undefined) await node.delete(first);
      for (const { netns } of pods) await netns.close();
      const done = await uninstall(node);
      t.is(done.code, 0, done.out + done.err);
      t.deepEqual(await snapshot(node.netns), before, 'before the installation as after the uninstallation');
      t.deepEqual(filesOf(node.dir), []);

      const again = await uninstall(node);
      t.is(again.code, 0, again.err);
      t.deepEqual(await snapshot(node.netns), before, 'a second run finds nothing to do');
      t.deepEqual(filesOf(node.dir), []);
    },
  );
}

longTest(
  'uninstall: killed again and again, at each change that it makes, it ends where one run ends',
  withBare,
  'compact',
  async (t, bare) => {
    const { node } = bare;
    await node.netns.sysctl({ 'net/ipv4/conf/eth0/rp_filter': 1, ...FORWARDING });
    const before = await snapshot(node.netns);
    for (const calls of ['unlink,unlinkat,rmdir', 'write,writev']) {
      await liveAndDie(bare, t);
      // Each run gets a little further than the one before it: what is done stays done, and the rest is found again.
      const atStart = calls.startsWith('write') ? await countWrites(bare) : 0;
      let kills = 0;
      while (kills < MOST_KILLS && (await isKilledAt(node, calls, atStart + 1 + 2 * kills))) kills += 1;
      t.log(`${calls}: killed ${kills} times`);
      t.true(kills >= 3 && kills < MOST_KILLS, 'it was killed on its way, and came to its end');
      t.deepEqual(await snapshot(node.netns), before);
      t.deepEqual(filesOf(node.dir), [], 'no file is left');
    }
  },
);

shortTest('uninstall: leaves what others put beside ours', withBare, 'per-pod', async (t, bare) => {
  const { node } = bare;
  const bin = join(node.dir, 'cni-bin');
  mkdirSync(bin, { recursive: true });
  mkdirSync(join(node.dir, 'cni-conf'));
  // Theirs from before; a rule, a route and a table of theirs at our places; and a plugin of ours that they use by now.
  writeFileSync(join(bin, 'bandwidth'), 'theirs', { mode: 0o755 });
  await node.netns.ip('rule', 'add', 'pref', '512', 'to', '192.0.2.1', 'lookup', 'main', 'proto', 'static');
  await node.netns.ip('route', 'add', '192.0.2.1', 'dev', 'eth0', 'table', '4999', 'proto', 'static');
  await node.netns.nft('table inet theirs {\n chain c {\n }\n}\n');
  await node.netns.sysctl(FORWARDING);
  const before = await snapshot(node.netns);
  await liveAndDie(bare, t);
  t.true(readdirSync(bin).includes('host-local'), 'the agent brought the reference plugins that were missing');
  writeFileSync(join(node.dir, 'cni-conf', '20-theirs.conf'), '{"type": "bridge", "ipam": {"type": "host-local"}}');
  rmSync(join(bin, 'tke-direct-eni'));
  writeFileSync(join(bin, 'tke-direct-eni'), "the product's own", { mode: 0o755 });

  const done = await uninstall(node);
  t.is(done.code, 0, done.out + done.err);
  t.deepEqual(await snapshot(node.netns), before);
  t.deepEqual(readdirSync(bin).sort(), ['bandwidth', 'bridge', 'host-local', 'loopback', 'tke-direct-eni']);
  t.deepEqual(readdirSync(join(node.dir, 'cni-conf')), ['20-theirs.conf']);
  for (const name of ['bridge', 'host-local', 'loopback', 'tke-direct-eni']) {
    t.regex(done.out, new RegExp(`"left".*cni-bin/${name}: `), `it says that it leaves ${name}`);
  }
});

shortTest('uninstall: takes the network of Pods that live when told to', withBare, 'compact', async (t, bare) => {
  const { node, vpc } = bare;
  await node.netns.sysctl({ 'net/ipv4/conf/eth0/rp_filter': 2 });
  await node.startAgent();
  const pod = await node.addPod();
  await node.killAgent();
  t.is((await uninstall(node)).code, 1);
  t.true(await pod.netns.ping(vpc.outside.ip), 'refused, it took nothing');
  const done = await uninstall(node, '--despite-pods');
  t.is(done.code, 0, done.err);
  t.deepEqual(await pod.netns.linkNames(), ['lo']);
  t.deepEqual(await node.tracesOf(pod.ip), []);
  t.regex(done.out, new RegExp(`${pod.namespace}/${pod.name}`), 'it says whose network it takes');
  t.regex(
    done.out,
    /"left":\[.*net\.ipv4\.ip_forward=1: others rely on it; it was 0/,
    'forwarding stays, and it says so',
  );
});

shortTest(
  'uninstall: names every faulty flag and touches nothing, and says what it takes',
  withBare,
  'compact',
  async (t, { node }) => {
    const wrong = await uninstall(node, '--then=sleep', '--dispite-pods');
    t.is(wrong.code, 78);
    t.regex(wrong.err, /--dispite-pods.*--despite-pods.*--then.*exit, wait/s);
    const help = await uninstall(node, '--help');
    t.is(help.code, 0);
    t.regex(help.out, /--despite-pods[\s\S]*--cni-bin-dir/);
  },
);

longTest(
  'uninstall: stays on a clean node when told to, until it is told to go',
  withBare,
  'compact',
  async (t, bare) => {
    const { node } = bare;
    await liveAndDie(bare, t);
    const child = node.netns.start(uninstallArgv(node, ['--then=wait']), { env: childEnv() });
    try {
      await waitUntil(() => child.stdout.includes('nothing of ours is left'), { what: 'a clean node' });
      t.deepEqual(filesOf(node.dir), []);
      t.true(child.isRunning);
      t.is((await child.stop('SIGTERM', 10_000)).code, 0);
    } finally {
      await child.stop('SIGKILL');
    }
  },
);
