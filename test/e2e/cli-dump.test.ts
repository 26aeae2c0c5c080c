import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { JsonObject, NetnsView } from '../../sim/support/netns.ts';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { type CliPlace, runCli } from './support/run-cli.ts';
import { RULE_MODES } from './support/scene.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// What a real node and a Pod on it hold is printed as a script, and that makes the same again elsewhere: judged by iproute2
// and nft.

/** The other layout is tried in the suite `long`. */
const MODES = partOf(RULE_MODES, (mode) => mode === 'compact');

type Wired = { readonly trial: Trial; readonly pods: readonly AttachedPod[]; readonly place: CliPlace };

const nodes = new Map<string, Wired>();

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  for (const ruleMode of MODES) nodes.set(ruleMode, await wire(ruleMode));
});
test.after.always(async () => {
  for (const { trial } of nodes.values()) await trial.close();
});

async function wire(ruleMode: (typeof MODES)[number]): Promise<Wired> {
  const trial = await openTrial({ ruleMode, isDual: true });
  const pods: AttachedPod[] = [];
  for (let count = 0; count < 3; count++) pods.push(await trial.addPod());
  await trial.settle('after three ADDs');
  const { netns } = trial.node;
  // Someone who was there before us, and something learned.
  await netns.ipBatch([
    'route add blackhole 10.200.0.0/16 metric 50',
    'route add 10.201.0.0/16 dev eth1 table 77 mtu lock 1400 advmss 1360 proto static',
    'rule add to 10.201.0.0/16 pref 900 lookup 77',
  ]);
  await netns.ping(pods[0]?.ip ?? '');
  return { trial, pods, place: { netns, stateDir: trial.agent.stateDir, socketPath: trial.agent.socketPath } };
}

function wired(ruleMode: string): Wired {
  const found = nodes.get(ruleMode);
  if (found === undefined) throw new Error(`no node in ${ruleMode} mode`);
  return found;
}

/** Everything that a script is to make again, each object as text; interface numbers, peers and ages left out. */
async function stateOf(netns: NetnsView): Promise<Readonly<Record<string, readonly string[]>>> {
  const dumps = {
    'IPv4 routes': await netns.ipJson('-4', '-d', 'route', 'show', 'table', 'all'),
    'IPv6 routes': await netns.ipJson('-6', '-d', 'route', 'show', 'table', 'all'),
    'IPv4 rules': await netns.ipJson('-4', '-d', 'rule'),
    'IPv6 rules': await netns.ipJson('-6', '-d', 'rule'),
    neighbours: (await netns.ipJson('neigh')).filter(isLasting).map(withoutAge),
    links: (await netns.ipJson('-d', 'link')).map(linkOf),
    addresses: (await netns.ipJson('address')).map(({ ifname, addr_info }) => ({ ifname, addr_info })),
  };
  const entries = Object.entries(dumps).map(([what, objects]) => {
    const ours = objects.filter((object) => !isStandIn(object));
    return [what, ours.map((object) => JSON.stringify(object)).sort()] as const;
  });
  return Object.fromEntries(entries);
}

const isStandIn = (object: JsonObject): boolean =>
  [object['ifname'], object['dev']].some((name) => String(name).startsWith('tke-si-'));

/** A question that is under way is nobody's state. */
const isLasting = ({ state }: JsonObject): boolean => !['FAILED', 'INCOMPLETE'].includes(String(state));

/** What was learned grows old; that it is permanent does not. */
const withoutAge = (neigh: JsonObject): JsonObject => ({
  ...neigh,
  state: String(neigh['state']) === 'PERMANENT' ? 'PERMANENT' : 'learned',
});

const linkOf = ({ ifname, mtu, group, address, ifalias, txqlen, flags }: JsonObject): JsonObject => ({
  ifname,
  mtu,
  group,
  address,
  ifalias,
  txqlen,
  isUp: Array.isArray(flags) && flags.includes('UP'),
});

async function nftOf(netns: NetnsView): Promise<string> {
  const objects = (await netns.nftJson('table', 'inet', 'tke_eni')) ?? [];
  // Handles are numbers as those of interfaces are.
  const text = JSON.stringify(objects, (key, value: unknown) => (key === 'handle' ? undefined : value));
  // Two networks side by side are a set of one range, which nft writes as that range once it is read again.
  return text.replaceAll(/\{"set":\[(\{"range":\[[^\]]*\]\})\]\}/g, '$1');
}

/** Longest wait for the end of duplicate address detection; it takes two seconds. */
const DETECTION_MS = 30_000;

/** Runs a script in an empty namespace and compares, once duplicate address detection is over. */
async function assertReplays(t: ExecutionContext, script: string, original: NetnsView, name: string): Promise<void> {
  const copy = await createPodNetns(name);
  try {
    // Settings are no part of a script; this one makes the kernel keep an anycast address on each interface.
    const forwards = await original.run(['cat', '/proc/sys/net/ipv6/conf/all/forwarding']);
    await copy.sysctl({ 'net/ipv6/conf/all/forwarding': forwards.trim() });
    await copy.run(['sh'], { input: script });
    let [want, got] = [await stateOf(original), await stateOf(copy)];
    const untilMs = performance.now() + DETECTION_MS;
    while (JSON.stringify(want) !== JSON.stringify(got) && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      [want, got] = [await stateOf(original), await stateOf(copy)];
    }
    t.deepEqual(got, want);
    t.true((want['IPv4 routes']?.length ?? 0) > 1 && (want['IPv6 routes']?.length ?? 0) > 1, 'there was something');
    t.is(await nftOf(copy), await nftOf(original));
  } finally {
    await copy.close();
  }
}

for (const ruleMode of MODES) {
  test.serial(`tke-eni dump: its script makes a whole node again, ${ruleMode}`, async (t) => {
    const { place, trial } = wired(ruleMode);
    const { code, stdout, stderr } = await runCli(place, 'dump', '--stand-ins');
    t.is(code, 0, stderr);
    t.true(stdout.includes('END_OF_NFT'));
    await assertReplays(t, stdout, trial.node.netns, `dump-${ruleMode}`);
  });

  test.serial(`tke-eni dump --pod: its script makes the inside of a Pod again, ${ruleMode}`, async (t) => {
    const { place, pods } = wired(ruleMode);
    for (const pod of pods.slice(0, 1)) {
      const { code, stdout, stderr } = await runCli(place, 'dump', '--stand-ins', '--pod', pod.ip);
      t.is(code, 0, stderr);
      await assertReplays(t, stdout, pod.netns, `dump-pod-${ruleMode}`);
    }
  });

  test.serial(`tke-eni routes: groups a node's routes by their owners, ${ruleMode}`, async (t) => {
    const { place, pods } = wired(ruleMode);
    const { code, stdout } = await runCli(place, 'routes', '-o', 'wide');
    t.is(code, 0);
    const sections = stdout.split('\n\n');
    const section = (title: string) => sections.find((text) => text.startsWith(title)) ?? '';
    for (const eni of ['ENI eni-1', 'ENI eni-2'])
      t.regex(section(eni), /default +10\.0\.\d\.1 +eth\d +eni-\d +tke-eni/);
    for (const { ip, name, namespace } of pods) {
      const table = ruleMode === 'compact' ? 'tke-pods' : 'main';
      t.regex(section('Pods'), new RegExp(`${namespace}/${name} +${ip} .*${table} +tke-eni`));
    }
    t.regex(section('Foreign (ip or a script)'), /blackhole 10\.200\.0\.0\/16/);
  });

  test.serial(`tke-eni routes --pod: shows the inside of the Pod too, ${ruleMode}`, async (t) => {
    const { place, pods } = wired(ruleMode);
    const [pod] = pods;
    const { code, stdout } = await runCli(place, 'routes', '--pod', `${pod?.namespace}/${pod?.name}`);
    t.is(code, 0);
    t.regex(stdout, new RegExp(`Inside Pod ${pod?.namespace}/${pod?.name}\n`));
    t.regex(stdout, /default +169\.254\.1\.1 +eth0/);
    t.false(stdout.includes(pods[1]?.ip ?? '?'), 'another Pod is shown');
  });

  test.serial(`tke-eni routes -o json: prints what ip -j prints, ${ruleMode}`, async (t) => {
    const { place, trial } = wired(ruleMode);
    const { stdout } = await runCli(place, 'routes', '-o', 'json');
    t.deepEqual(JSON.parse(stdout), await trial.node.netns.ipJson('route', 'show', 'table', 'all'));
  });
}

shortTest.serial('tke-eni rules --eni: lists those that lead to the ENI, both families', async (t) => {
  const { place } = wired('compact');
  const { stdout } = await runCli(place, 'rules', '--eni', 'eni-1', '-o', 'json', '--owners');
  const rules: readonly JsonObject[] = JSON.parse(stdout);
  t.deepEqual([...new Set(rules.map(({ priority }) => priority))].sort(), [1536, 1537]);
  t.deepEqual([...new Set(rules.map(({ family }) => family))].sort(), ['inet', 'inet6']);
});

shortTest.serial('tke-eni links --pod: says which Pod is not there, and what to do', async (t) => {
  const { code, stderr } = await runCli(wired('compact').place, 'links', '--pod', 'no-such-pod');
  t.is(code, 2);
  t.regex(stderr, /no-such-pod/);
  t.regex(stderr, /tke-eni pods/);
});

shortTest.serial('tke-eni routes --pod: finds the inside of a Pod without a journal', async (t) => {
  const { place, pods } = wired('compact');
  for (const pod of pods) {
    const blind = { ...place, stateDir: '/nonexistent' };
    const { code, stdout, stderr } = await runCli(blind, 'routes', '--pod', pod.ip, '-o', 'json');
    t.is(code, 0, stderr);
    const routes: readonly JsonObject[] = JSON.parse(stdout);
    const inside = routes.filter((route) => 'pod' in route).map(({ pod: _, ...route }) => route);
    t.deepEqual(inside, await pod.netns.ipJson('route', 'show', 'table', 'all'));
  }
});

shortTest.serial('tke-eni: tells everybody what needs no root, and what does', async (t) => {
  const { place, pods, trial } = wired('compact');
  const asNobody = (...args: readonly string[]) =>
    place.netns.tryRun([
      ...['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'],
      ...[join(DIST_BIN_DIR, 'tke-eni'), ...args, '--state-dir', place.stateDir, '--host-root', '/'],
    ]);
  const routes = await asNobody('routes', '-o', 'wide');
  t.is(routes.code, 0, routes.stderr);
  t.regex(routes.stdout, /ENI \(eth1, table \d+\)/);
  const inside = await asNobody('routes', '--pod', pods[0]?.ip ?? '');
  t.is(inside.code, 2);
  t.regex(inside.stderr, /root/);
  const dump = await asNobody('dump');
  t.is(dump.code, 2);
  t.regex(dump.stderr, /root.*\n.*CAP_NET_ADMIN/);
  const elsewhere = await asNobody('rules', '--netns', trial.node.netns.name);
  t.is(elsewhere.code, 2);
  t.regex(elsewhere.stderr, /CAP_SYS_ADMIN/);
});
