import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { childEnv } from '../../sim/support/child-env.ts';
import { createTestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { IS_LONG } from '../support/suite-part.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { programFilters } from './support/fast-filters.ts';
import { FORWARDING, snapshot, uninstallArgv } from './support/leaving.ts';
import { runCli } from './support/run-cli.ts';
import { SceneNode } from './support/scene-node.ts';

// The filters of a real agent: they come, come back, make way, go with the flag, and with an uninstallation.

const LIBERAL = 'net/netfilter/nf_conntrack_tcp_be_liberal';

test.before(async () => {
  await buildExecutables(['tke-route-eni', 'tke-eni-agent', ...(IS_LONG ? (['tke-eni'] as const) : [])]);
});

/** `dev direction program` of each filter with a program on the node, sorted. */
async function filtersOf({ netns }: SceneNode): Promise<readonly string[]> {
  return (await programFilters(netns)).map(({ dev, direction, name }) => `${dev} ${direction} ${name}`).sort();
}

/** The commands that compare a node with its plan find nothing about the filters, the chain and the setting. */
async function isFine(t: ExecutionContext, { netns, dir }: SceneNode): Promise<void> {
  const place = { netns, stateDir: join(dir, 'state'), socketPath: join(dir, 'agent.sock') };
  for (const command of [['diff'], ['doctor', '--only', 'traffic']]) {
    const { code, stdout, stderr } = await runCli(place, ...command);
    t.is(code, 0, stdout + stderr);
  }
}

/** The way of a Pod's packets has the fast path, in both directions. */
async function explains(t: ExecutionContext, { netns, dir }: SceneNode, ip: string, other: string): Promise<void> {
  const place = { netns, stateDir: join(dir, 'state'), socketPath: join(dir, 'agent.sock') };
  const { code, stdout, stderr } = await runCli(place, 'explain', ip, '--to', other);
  t.is(code, 0, stdout + stderr);
  const lines = stdout.match(/fast path: packets of followed flows go from \S+ to \S+ at once/g) ?? [];
  t.is(lines.length, 2, stdout);
  t.true(stdout.includes(`flows of ${ip} that are followed: 0`), stdout);
}

/** `tke-eni dump` names each filter: as an object that tc lists too, and as a comment of the script. */
async function dumps(t: ExecutionContext, { netns, dir }: SceneNode): Promise<void> {
  const place = { netns, stateDir: join(dir, 'state'), socketPath: join(dir, 'agent.sock') };
  const seen = await programFilters(netns);
  const json = await runCli(place, 'dump', '-o', 'json');
  t.is(json.code, 0, json.stderr);
  const { filters }: { readonly filters: readonly DumpedFilter[] } = JSON.parse(json.stdout);
  const listed = filters.map(({ dev, parent, options }) => [dev, parent, options.bpf_name, options.prog.id].join(' '));
  const theirs = seen.map(({ dev, direction, name, programId }) => [dev, direction, name, programId].join(' '));
  t.deepEqual(listed.sort(), theirs.sort());
  const script = await runCli(place, 'dump');
  for (const { dev, direction, name } of seen)
    t.regex(
      script.stdout,
      new RegExp(`^# left out: filter dev ${dev} ${direction} pref \\d+ bpf ${name} id \\d+$`, 'm'),
    );
}

type DumpedFilter = {
  readonly dev: string;
  readonly parent: string;
  readonly options: { readonly bpf_name: string; readonly prog: { readonly id: number } };
};

/** Without an agent, `tke-eni repair` takes away filters that are not in the plan, and no others. */
async function repairs(t: ExecutionContext, node: SceneNode, planned: readonly string[]): Promise<void> {
  const stateDir = join(node.dir, 'state');
  const place = { netns: node.netns, stateDir, socketPath: join(node.dir, 'agent.sock') };
  t.is((await runCli(place, 'repair')).code, 0);
  t.deepEqual(await filtersOf(node), planned);
  const path = join(stateDir, 'node.json');
  const record: { readonly node: object } = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...record, node: { ...record.node, fastPath: undefined } }));
  const diff = await runCli(place, 'diff');
  t.is(diff.code, 1, diff.stdout);
  t.regex(diff.stdout, /the filter tke_learn at the egress of \S+ is ours and is not in the plan/);
  const repair = await runCli(place, 'repair');
  t.is(repair.code, 0, repair.stdout + repair.stderr);
  t.deepEqual(await filtersOf(node), []);
}

const ofLinks = (...links: readonly string[]): readonly string[] =>
  links.flatMap((dev) => [`${dev} egress tke_learn`, `${dev} ingress tke_fast`]).sort();

test('--fast-path=bpf: filters on ENIs and Pods’ links, repaired, beside no others, and gone with the flag and the agent', async (t) => {
  t.timeout(120_000);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [
      { id: 'subnet-a', cidr: '10.0.1.0/24' },
      { id: 'subnet-b', cidr: '10.0.2.0/24' },
    ],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('fast-path-filters');
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-b' });
  for (let count = 0; count < 2; count++) await vpc.assignIp('eni-1');
  const flags = { 'gc-interval': '1h', 'add-wait': '5s', 'ip-cooldown': '0s', 'plugin-dir': DIST_BIN_DIR };
  const node = new SceneNode({ vpc, name: 'n1', dir: dir.path, ruleMode: 'compact', enis: [eni], flags });
  try {
    node.writeSupply();
    await node.netns.sysctl({ 'net/ipv4/conf/eth0/rp_filter': 1, [LIBERAL]: 0, ...FORWARDING });
    const before = await snapshot(node.netns);
    const liberal = async () => (await node.netns.run(['cat', `/proc/sys/${LIBERAL}`])).trim();
    const filters = () => filtersOf(node);
    const reaches = async (what: string, wanted: readonly string[]): Promise<void> => {
      await waitUntil(async () => String(await filters()) === String(wanted), { what, timeoutMs: 30_000 });
    };
    const { ifname } = eni;
    const restart = async (more: SceneNode['flags'], between = async () => {}): Promise<void> => {
      await node.agent.stop();
      await between();
      await node.startAgent({ flags: more });
    };

    await node.startAgent({ flags: { 'fast-path': 'bpf' } });
    await reaches('filters on the ENI', ofLinks(ifname));
    t.is(await liberal(), '1');
    const pod = await node.addPod();
    t.deepEqual(await filters(), ofLinks(ifname), 'not before the ADD is answered');
    const [host = ''] = (await node.netns.ipJson('link'))
      .map((link) => String(link['ifname']))
      .filter((name) => /^eni[0-9a-f]{11}$/.test(name));
    // In the short part another agent attaches them; this one would after 5 s.
    if (!IS_LONG) await restart({ 'fast-path': 'bpf' });
    await reaches('filters on the link of the Pod', ofLinks(ifname, host));
    t.true(await pod.netns.ping(vpc.outside.ip));
    if (IS_LONG) {
      await isFine(t, node);
      await explains(t, node, pod.ip, vpc.outside.ip);
      await dumps(t, node);
    }

    await node.netns.run(['tc', 'filter', 'del', 'dev', ifname, 'egress']);
    await node.netns.run(['tc', 'qdisc', 'del', 'dev', host, 'clsact']);
    await reaches('repair', ofLinks(ifname, host));

    await node.netns.run(['tc', 'filter', 'add', 'dev', host, 'ingress', 'pref', '9', 'u32', 'match', 'u32', '0', '0']);
    await reaches('way for others', ofLinks(ifname));
    await node.netns.run(['tc', 'filter', 'del', 'dev', host, 'ingress']);
    await reaches('return', ofLinks(ifname, host));

    await restart({}, async () => {
      t.deepEqual(await filters(), ofLinks(ifname, host), 'an agent that ends leaves them');
    });
    await reaches('no filters without the flag', []);
    t.is(await liberal(), '0');

    await restart({ 'fast-path': 'auto' });
    await reaches('filters of all links at the start', ofLinks(ifname, host));
    await node.killAgent();
    if (IS_LONG) await repairs(t, node, ofLinks(ifname, host));
    await pod.netns.close();
    await node.netns.run(uninstallArgv(node), { env: childEnv() });
    t.deepEqual(await snapshot(node.netns), before);
    t.is(await liberal(), '0');
    t.false((await node.netns.run(['tc', 'qdisc', 'show'])).includes('clsact'));
  } finally {
    await node.killAgent().catch(() => {});
    await vpc.close();
    dir.close();
  }
});
