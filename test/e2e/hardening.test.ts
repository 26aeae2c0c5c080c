import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial, type Trial, type TrialSpec } from './support/trial.ts';

// What nobody plans for: a DEL that overtakes its ADD, a link that borrows an ENI's MAC, a network that comes up late;
// and settings that most nodes never use.

const withTrial = test.macro(
  async (t: ExecutionContext, spec: TrialSpec, body: (t: ExecutionContext, trial: Trial) => Promise<void>) => {
    t.timeout(90_000);
    const trial = await openTrial(spec);
    try {
      await body(t, trial);
    } finally {
      await trial.close();
    }
  },
);

/** Which way the packets of a ping left the node: `<ENI id> <source>`. */
async function wayOut(trial: Trial, from: { readonly run: (argv: readonly string[]) => Promise<string> }) {
  const { vpc } = trial;
  await vpc.resetPacketLog();
  await from.run(['ping', '-n', '-q', '-c', '1', '-W', '3', vpc.outside.ip]);
  const passed = await vpc.packetLog();
  return passed.filter(({ to }) => to === 'outside').map(({ via, src }) => `${via} ${src}`);
}

const METRICS = 'exec 3<>/dev/tcp/127.0.0.1/61680; printf "GET /metrics HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3';

/** How many ADDs have had their turn so far, those that wait included. */
async function addsBegun({ node }: Trial): Promise<number> {
  const text = await node.netns.run(['bash', '-c', METRICS]);
  return Number(/^tke_eni_add_phase_seconds_count\{phase="queue"\} (\d+)$/m.exec(text)?.[1] ?? 0);
}

test(
  'agent: a DEL ends the ADD of the same sandbox that waits for an address',
  withTrial,
  {
    ruleMode: 'compact',
    ipsPerEni: 1,
    flags: { 'add-wait': '30s', 'force-reuse-after': '30s', 'ip-cooldown': '1h' },
  },
  async (t, trial) => {
    const pods = [await trial.addPod(), await trial.addPod()];
    const late = await trial.newPod();
    const seen = trial.agent.logs().length;
    const adding = trial.node.call('ADD', late);
    await waitUntil(async () => (await addsBegun(trial)) === 3, { what: 'the third ADD in the agent' });
    const deleted = await trial.node.call('DEL', late);
    t.is(deleted.exitCode, 0, deleted.stdout);
    t.deepEqual(trial.node.spooled(), [], 'the agent itself answered the DEL');
    const added = await adding;
    t.like(added.error, { code: 11 }, added.stdout);
    t.regex(trial.agent.logs().slice(seen), /gave up while waiting for an address/);
    for (const pod of pods) await trial.delete(pod);
    await trial.settle('after the DEL that overtook its ADD');
  },
);

test(
  'agent: a bridge with the MAC of an ENI is not taken for the ENI',
  withTrial,
  { ruleMode: 'compact' },
  async (t, trial) => {
    const pod = await trial.addPod();
    const [eni] = trial.enis;
    const { netns } = trial.node;
    const before = await wayOut(trial, pod.netns);
    await netns.ip('link', 'add', 'br9', 'address', eni?.mac ?? '', 'type', 'bridge');
    // A pass that has seen the bridge: it mends what was broken after it.
    await netns.ip('route', 'delete', `${pod.ip}/32`, 'table', '3999');
    await waitUntil(async () => (await netns.ip('route', 'show', 'table', '3999')).includes(pod.ip), {
      what: 'a repair',
      explain: () => trial.lastWords(),
    });
    t.deepEqual(await wayOut(trial, pod.netns), before);
    t.is((await netns.ip('-4', 'address', 'show', 'dev', 'br9')).trim(), '');
    await netns.ip('link', 'delete', 'br9');
    await trial.delete(pod);
    await trial.settle('without the bridge');
  },
);

test(
  'agent: serves as soon as the node has its default route, not by the next timer',
  withTrial,
  { ruleMode: 'compact' },
  async (t, trial) => {
    await trial.killAgent();
    const { netns } = trial.node;
    const route = (await netns.ip('route', 'show', 'default')).trim().split(' ');
    await netns.ip('route', 'delete', 'default');
    // Nothing is left that names the primary interface.
    rmSync(join(trial.agent.stateDir, 'node.json'));
    // The trial's timer is an hour.
    await trial.startAgent({ until: 'listening' });
    const conf = trial.node.conf({ cniVersion: '1.1.0' });
    const error = await waitUntil(
      async () => {
        const status = await trial.node.call('STATUS', undefined, { conf });
        return status.error?.msg === 'the node has no primary interface yet' && status.error;
      },
      { what: 'STATUS that names the primary interface', explain: () => trial.lastWords() },
    );
    t.is(error.code, 50);
    await netns.ip('route', 'add', ...route);
    await t.notThrowsAsync(trial.agent.awaitUntil('ready'));
    await trial.delete(await trial.addPod());
    await trial.settle('with its default route');
  },
);

test(
  'agent: with --egress=node Pods leave the VPC with the address of the node',
  withTrial,
  { ruleMode: 'compact', flags: { egress: 'node', 'vpc-cidr': '10.0.0.0/16' } },
  async (t, trial) => {
    const [pod, other] = [await trial.addPod(), await trial.addPod()];
    const primary = /inet ([0-9.]+)/.exec(await trial.node.netns.ip('-4', 'address', 'show', 'dev', 'eth0'))?.[1] ?? '';
    const ways = await wayOut(trial, pod.netns);
    t.deepEqual(
      ways.map((way) => way.split(' ')[1]),
      [primary],
    );
    t.false(trial.enis.some(({ eniId }) => ways.some((way) => way.startsWith(`${eniId} `))));
    t.true(await other.netns.ping(pod.ip));
    // Back to the default while Pods live: they use their own address again.
    await trial.killAgent();
    await trial.startAgent({ flags: { egress: 'eni' } });
    await waitUntil(async () => (await wayOut(trial, pod.netns))[0]?.endsWith(` ${pod.ip}`), { what: 'its own ENI' });
    await trial.settle('with egress by the ENIs');
  },
);

test(
  'agent: serves executables on --listen-address too, and nobody from outside',
  withTrial,
  { ruleMode: 'compact', flags: { 'listen-address': '127.0.0.1:61677' } },
  async (t, trial) => {
    const conf = trial.node.conf({ backend: '127.0.0.1:61677' });
    const pod = await trial.newPod();
    const added = await trial.node.call('ADD', pod, { conf });
    t.is(added.exitCode, 0, added.stdout);
    t.true(await pod.netns.ping(trial.vpc.outside.ip));
    const listeners = await trial.node.netns.run(['ss', '-tlnH']);
    t.regex(listeners, /127\.0\.0\.1:61677/);
    t.notRegex(listeners, /(0\.0\.0\.0|\*|\[::\]):61677/);
    t.is((await trial.node.call('DEL', pod, { conf })).exitCode, 0);

    // The product's confs, of then and now, with keys that nothing here uses.
    const { backend: _default, ...plain } = conf;
    const ipam = { type: 'tke-eni-ipamc', backend: '127.0.0.1:61677' };
    const unused = { kubeconfig: '/etc/kubernetes/k', logLevel: 'info', eni: 'eth1', routeTable: 1 };
    for (const cniVersion of ['0.2.0', '0.3.1']) {
      const given = { ...plain, ...unused, ipam, cniVersion };
      const each = await trial.newPod();
      const answer = await trial.node.call('ADD', each, { conf: given });
      t.is(answer.exitCode, 0, answer.stdout);
      t.is('ip4' in (answer.result ?? {}), cniVersion === '0.2.0', answer.stdout);
      t.true(await each.netns.ping(trial.vpc.outside.ip));
      t.is((await trial.node.call('DEL', each, { conf: given })).exitCode, 0);
    }
    t.is(trial.agent.logs().split('keys that are not used').length, 2, 'one line');
    t.regex(trial.agent.logs(), /"keys":\["kubeconfig","logLevel","eni"\]/);
    await trial.settle('after a DEL by TCP');

    const refused = await trial.node.call('ADD', await trial.newPod(), {
      conf: { ...conf, backend: '127.0.0.1:61676' },
    });
    t.regex(refused.error?.details ?? '', /ECONNREFUSED.*--listen-address=127\.0\.0\.1:61676, and only root/);
  },
);

test(
  'agent: --rule-mode=auto leaves the marks to cilium-cni where that is chained',
  withTrial,
  { ruleMode: 'compact' },
  async (t, trial) => {
    const pod = await trial.addPod();
    await trial.killAgent();
    const { cniConfDir } = trial.agent;
    mkdirSync(cniConfDir, { recursive: true });
    mkdirSync(join(cniConfDir, '00-half-made.conf'));
    writeFileSync(
      join(cniConfDir, '05-cilium.conflist'),
      JSON.stringify({ cniVersion: '1.0.0', name: 'c', plugins: [{ type: 'tke-route-eni' }, { type: 'cilium-cni' }] }),
    );
    await trial.startAgent({ flags: { 'rule-mode': 'auto' } });
    t.regex(trial.agent.logs(), /05-cilium\.conflist chains cilium-cni/);
    trial.ruleMode = 'per-pod';
    await trial.settle('in per-pod mode');
    t.true(await pod.netns.ping(trial.vpc.outside.ip));
  },
);
