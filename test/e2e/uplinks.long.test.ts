import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { childEnv } from '../../sim/support/child-env.ts';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { waitUntil } from '../support/wait-until.ts';
import { FORWARDING, snapshot, uninstallArgv } from './support/leaving.ts';
import { runCli } from './support/run-cli.ts';
import { openUplinksScene, type UplinksScene } from './support/uplinks-scene.ts';
import { watchNode } from './support/watch-node.ts';

const inScene = test.macro(
  async (
    t: ExecutionContext,
    kind: 'bare' | 'wired',
    body: (t: ExecutionContext, scene: UplinksScene) => Promise<void>,
  ) => {
    t.timeout(180_000);
    const scene = await openUplinksScene(kind);
    try {
      await body(t, scene);
      t.deepEqual(await scene.vpc.repeatedPackets(), [], 'no packet passed the VPC twice');
    } finally {
      await scene.close();
    }
  },
);

test.serial('uplinks: an agent that restarts or is killed loses no packet', inScene, 'wired', async (t, scene) => {
  const node = scene.node('n1');
  const [a, b, b2] = [scene.pod('a'), scene.pod('b'), scene.pod('b2')];
  const { vpc } = scene;
  const ways = await Promise.all([
    startTraffic({ netns: a.netns, ip: a.ips[4] }, { netns: vpc.outside.netns, ip: vpc.outside.ip }, { rate: 5_000 }),
    startTraffic(
      { netns: b2.netns, ip: b2.ips[6] },
      { netns: vpc.outside.netns, ip: vpc.outside.ipv6 },
      { rate: 500, port: 7001 },
    ),
    startTraffic({ netns: a.netns, ip: a.ips[4] }, { netns: b.netns, ip: b.ips[4] }, { rate: 500, port: 7002 }),
  ]);
  try {
    const watch = await watchNode(node.netns);
    await node.agent.stop();
    await scene.startAgent(node);
    await node.killAgent();
    await scene.startAgent(node);
    await sleep(500);
    const { deletions, changes, nft } = await watch.end();
    t.deepEqual([deletions, changes, nft], [[], [], []], 'nothing of ours was written or taken away');
    for (const way of ways) t.deepEqual(describeLoss(await way.finish()), []);
  } finally {
    await Promise.all(ways.map((way) => way.close()));
  }
});

test.serial(
  'uplinks: tke-eni says what the role is, and repairs without an agent',
  inScene,
  'wired',
  async (t, scene) => {
    const node = scene.node('n1');
    const { netns } = node;
    const { stateDir, socketPath } = node.agent;
    const ask = async (...args: readonly string[]) => (await runCli({ netns, stateDir, socketPath }, ...args)).stdout;
    t.regex(await ask('status'), /^pool +16 addresses of n1\n +role uplinks: another program gives them to Pods/m);
    t.regex(await ask('enis'), /^eni-1 +uplinks +another program gives its addresses to Pods/m);
    t.regex(await ask('doctor', '--only', 'cni'), /^skipped +cni: the agent wires no Pods here/m);
    t.regex(await ask('diff'), /^equal +0 Pods and 2 ENIs are as the agent planned them/m);
    await node.killAgent();
    await netns.ip('rule', 'flush', 'protocol', '84');
    t.regex(await ask('pool'), /role uplinks: another program gives them to Pods/, 'from the journal');
    t.regex(await ask('diff'), new RegExp(`rule-missing +ENI eni-1 .*from ${scene.pod('a').ips[4]}/32 lookup`));
    await ask('repair');
    await scene.settle(node);
    t.true(await scene.pod('a').netns.ping(scene.vpc.outside.ip));
  },
);

test.serial(
  'uplinks: an ENI that left the supply leaves nothing, and the others go on',
  inScene,
  'wired',
  async (t, scene) => {
    const node = scene.node('n1');
    const [a, b] = [scene.pod('a'), scene.pod('b')];
    const { vpc } = scene;
    // Cilium let its addresses go before ipamd detaches it.
    await node.netns.ip('link', 'del', a.lxc);
    await vpc.detachEni('eni-1');
    node.writeSupply();
    await scene.settle(node);
    t.deepEqual(await node.tracesOf(a.ips[4]), []);
    t.true(await b.netns.ping(vpc.outside.ip));
    t.true(await b.netns.ping(vpc.outside.ipv6));
  },
);

const HTTP = (path: string): readonly string[] => ['curl', '-s', '-m', '5', `http://127.0.0.1:61680${path}`];

test.serial(
  'uplinks: Pods of before the role go on, are named, and end by their DEL',
  inScene,
  'bare',
  async (t, scene) => {
    const node = scene.node('n1');
    const conf = join(node.dir, 'cni-conf');
    await node.startAgent({ flags: { role: 'full', 'rule-mode': 'compact' } });
    const old = await node.addPod({ name: 'old-0' });
    const { vpc } = scene;
    await node.agent.stop();
    mkdirSync(conf, { recursive: true });
    writeFileSync(join(conf, '10-tke-eni.conflist'), '{}');

    const traffic = await startTraffic(
      { netns: old.netns, ip: old.ip },
      { netns: vpc.outside.netns, ip: vpc.outside.ip },
    );
    try {
      await node.startAgent({ until: 'listening' });
      const readyz = async (): Promise<string> => (await node.netns.tryRun(HTTP('/readyz'))).stdout;
      await waitUntil(async () => /1 Pods have addresses of before --role=uplinks/.test(await readyz()), {
        what: 'the reason why the node is not ready',
      });
      t.regex(node.agent.logs(), /default\/old-0/, 'the Pod is named');
      t.false(existsSync(join(conf, '10-tke-eni.conflist')), 'the runtime is not sent here any more');
      await sleep(500);
      t.deepEqual(describeLoss(await traffic.finish()), [], 'it lost no packet');
      // An address of the supply that no Pod of ours has is for Cilium.
      const other = await scene.addPod('other', 'eni-2', scene.pairOf('eni-2', 2));
      t.true(await other.netns.ping(old.ip));
      t.true(await old.netns.ping(other.ips[4]));
      await node.delete(old);
      await scene.settle(node);
      await waitUntil(async () => !/before --role/.test(await readyz()), { what: 'a node that is ready' });
    } finally {
      await traffic.close();
    }
  },
);

test.serial(
  'uplinks: uninstall names addresses that are routed, and leaves nothing',
  inScene,
  'bare',
  async (t, scene) => {
    const node = scene.node('n1');
    await node.netns.sysctl({ 'net/ipv4/conf/eth0/rp_filter': 1, ...FORWARDING });
    const before = await snapshot(node.netns);
    await scene.startAgent(node);
    const pod = await scene.addPod('pod', 'eni-1', scene.pairOf('eni-1', 1));
    t.true(await pod.netns.ping(scene.vpc.outside.ip));
    await node.agent.stop();
    const uninstall = () => node.netns.tryRun(uninstallArgv(node), { env: childEnv() });
    const refused = await uninstall();
    t.is(refused.code, 1);
    t.true(refused.stderr.includes(pod.ips[4]), refused.stderr);
    t.regex(refused.stderr, /^(?!.*and \d+ more)/, 'only what is in use');
    await node.netns.ip('link', 'del', pod.lxc);
    const done = await uninstall();
    t.is(done.code, 0, done.stderr);
    t.deepEqual(await snapshot(node.netns), before);
    t.deepEqual(
      readdirSync(node.dir).filter((name) => !['node.yaml', 'cni-bin', 'cni-conf', 'kubelet'].includes(name)),
      [],
    );
  },
);
